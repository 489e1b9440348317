"""The pass `morello-legalize-copy`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import mlir.ir as ir
from mlir.dialects import linalg

from .base import Pass
from .siblings import OWN_COPY
from .symbols import all_ops


@dataclass(frozen=True)
class LegalizeCopy(Pass):
    """Copy between strided memrefs by `linalg.copy`.

    Upstream lowers such a `memref.copy` to a call of a run-time library; contiguous copies become `memcpy` and stay.
    `morello-lift` makes nests of what comes of it: vectors, and threads where it is much.
    """

    name: ClassVar[str] = "morello-legalize-copy"
    summary: ClassVar[str] = "Turn copies between strided memrefs into linalg.copy"

    def run(self, op: Any) -> None:
        for each in all_ops(op):
            if each.name != "memref.copy":
                continue
            source, target = each.operands[0], each.operands[1]
            if not all(isinstance(v.type, ir.MemRefType) for v in (source, target)):
                continue
            if all(v.type.affine_map == ir.AffineMap.get_identity(v.type.rank) for v in (source, target)):
                continue
            with ir.InsertionPoint(each), each.location:
                own_copy(source, target)
            each.erase()


def own_copy(source: Any, target: Any) -> None:
    """A copy that is not the user's."""
    copied = linalg.CopyOp([], [source], [target])
    linalg.fill_builtin_region(copied.operation)
    copied.operation.attributes[OWN_COPY] = ir.UnitAttr.get()
