"""The pass `morello-check-known`."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

from morello_mlir.lifting.views import MOST_ELEMENTS

from .base import Pass, emit_error
from .symbols import all_ops
from .types import is_memref, is_shaped, shape_of, strides_of


@dataclass(frozen=True)
class CheckKnown(Pass):
    """Refuse what MLIR parses and some passes of upstream abort on: ops that it does not know, tensors and memrefs with
    more elements than it can count."""

    name: ClassVar[str] = "morello-check-known"
    summary: ClassVar[str] = "Report every op of a dialect that is not loaded here, and types beyond any memory"

    def run(self, op: Any) -> None:
        context = op.operation.context
        known: dict[str, bool] = {}
        countable: dict[Any, bool] = {}
        for each in all_ops(op):
            values = [*each.results, *(a for region in each.regions for block in region for a in block.arguments)]
            for type_ in (value.type for value in values):
                if type_ not in countable:
                    countable[type_] = not is_shaped(type_) or _count(type_) < MOST_ELEMENTS
                if not countable[type_]:
                    emit_error(each, f"{type_} has more elements than any memory, or reaches beyond it")
                    countable[type_] = True
            name = each.name
            if name not in known:
                known[name] = context.is_registered_operation(name)
            if not known[name]:
                dialect = name.partition(".")[0]
                emit_error(
                    each, f"cannot be lowered to LLVM: nothing here implements this op of the '{dialect}' dialect"
                )
                known[name] = True  # One report per op name will do.


def _count(type_: Any) -> int:
    """The elements of a type, or those that it reaches over: sizes and strides that are not known count as one."""
    sizes = [size or 1 for size in shape_of(type_)]
    strides: tuple[int | None, ...] = ()
    if is_memref(type_):
        with suppress(ValueError):
            strides = strides_of(type_)[0]
    reach = (size * abs(stride or 0) for size, stride in zip(sizes, strides, strict=False))
    return max(math.prod(sizes), *reach, 0)
