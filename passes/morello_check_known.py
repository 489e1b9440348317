"""The pass `morello-check-known`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .base import Pass, emit_error
from .symbols import all_ops


@dataclass(frozen=True)
class CheckKnown(Pass):
    """Refuse ops that MLIR has parsed without knowing them: some of upstream's passes abort on them."""

    name: ClassVar[str] = "morello-check-known"
    summary: ClassVar[str] = "Report every op of a dialect that is not loaded here"

    def run(self, op: Any) -> None:
        context = op.operation.context
        known: dict[str, bool] = {}
        for each in all_ops(op):
            name = each.name
            if name not in known:
                known[name] = context.is_registered_operation(name)
            if not known[name]:
                dialect = name.partition(".")[0]
                emit_error(
                    each, f"cannot be lowered to LLVM: nothing here implements this op of the '{dialect}' dialect"
                )
                known[name] = True  # One report per op name will do.
