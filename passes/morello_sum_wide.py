"""The pass `morello-sum-wide`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import mlir.ir as ir
from mlir.dialects import arith, memref

from morello_mlir.lifting.contraction import indexing_maps, recognise
from morello_mlir.lifting.generic import generic
from morello_mlir.lifting.outcome import NotLifted
from morello_mlir.spec import accumulator, is_float

from .base import Pass
from .symbols import all_ops


@dataclass(frozen=True)
class SumWide(Pass):
    """Add contractions with an output in bf16 or f16 up in f32 and round once, as lifted ones are.

    For the reference of a check: rounded at every step, as these ops are written, long sums are off by more than any
    tolerance that would find a mistake. On memrefs of static sizes; others stay.
    """

    name: ClassVar[str] = "morello-sum-wide"
    summary: ClassVar[str] = "Add contractions with narrow outputs up in f32 and round once"
    anchor: ClassVar[str | None] = None

    def run(self, op: Any) -> None:
        for each in all_ops(op):
            if not each.name.startswith("linalg.") or len(each.results):
                continue
            try:
                found = recognise(each)
            except NotLifted:
                continue
            *inputs, out = found.dtypes
            if is_float(out) and accumulator(inputs, out) != out:
                with ir.InsertionPoint(each), each.location:
                    _rewrite(each, *found.values)
                each.erase()


def _rewrite(op: Any, lhs: Any, rhs: Any, out: Any) -> None:
    wide = ir.F32Type.get()
    narrow = out.type.element_type
    kind = ir.MemRefType.get(out.type.shape, wide)
    sums = memref.AllocOp(kind, [], []).result
    same = ir.AffineMap.get_identity(len(out.type.shape))
    generic([out], sums, [same, same], lambda x, _: _extended(x, wide))
    generic(
        [lhs, rhs],
        sums,
        indexing_maps(op),
        lambda x, y, acc: arith.addf(acc, arith.mulf(_extended(x, wide), _extended(y, wide))),
    )
    generic([sums], out, [same, same], lambda x, _: arith.truncf(narrow, x))
    memref.DeallocOp(sums)


def _extended(value: Any, wide: Any) -> Any:
    return value if value.type == wide else arith.extf(wide, value)
