"""The pass `morello-vector-math`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import mlir.ir as ir

from .base import Pass
from .symbols import all_ops


@dataclass(frozen=True)
class VectorMath(Pass):
    """Compute `math` functions of vectors by polynomials, instead of calling a scalar library for every lane.

    Before: `math.exp` and its like (docs/vector-math.md) on vectors of any static shape. After: arithmetic on 1-D
    vectors of f32. f64, and what there is no polynomial for, become scalar ops, lane by lane. Scalars and scalable
    vectors stay.
    """

    name: ClassVar[str] = "morello-vector-math"
    summary: ClassVar[str] = "Compute math functions of vectors by polynomials"

    def run(self, op: Any) -> None:
        from morello_mlir.lowering.splice import splice

        found = [each for each in all_ops(op) if _is_ours(each)]
        if found:
            texts = [_function(each, i) for i, each in enumerate(found)]
            splice(op.operation, found, "\n".join(["module {", *texts, "}"]))


def _is_ours(op: Any) -> bool:
    from morello_mlir.nests.lowering.vector_math import FUNCTIONS, OTHERS

    dialect, _, name = op.name.partition(".")
    if dialect != "math" or name not in (*FUNCTIONS, *OTHERS):
        return False
    type_ = op.results[0].type
    if not isinstance(type_, ir.VectorType) or type_.scalable or type_.rank == 0:
        return False
    return isinstance(type_.element_type, (ir.F64Type, ir.F32Type, ir.F16Type, ir.BF16Type))


def _function(op: Any, number: int) -> str:
    """The function that takes the place of the op."""
    from morello_mlir.lowering.builder import Builder
    from morello_mlir.lowering.splice import ROOT
    from morello_mlir.nests.lowering.vector_math import apply
    from morello_mlir.nests.lowering.vectors import Vectors

    type_ = op.results[0].type
    lanes = 1
    for size in type_.shape:
        lanes *= size
    b = Builder()
    dtype = str(type_.element_type)
    computed = "f64" if dtype == "f64" else "f32"
    v = Vectors(b, computed, lanes)
    flat = f"vector<{lanes}x{dtype}>"
    args = []
    for i in range(len(op.operands)):
        x = f"%arg{i}"
        if type_.rank != 1:
            x = b.value(f"vector.shape_cast {x} : {type_} to {flat}")
        args.append(v.convert((x,), dtype, computed))
    (y,) = v.convert(apply(v, op.name.partition(".")[2], *args), computed, dtype)
    if type_.rank != 1:
        y = b.value(f"vector.shape_cast {y} : {flat} to {type_}")
    parameters = ", ".join(f"%arg{i}: {type_}" for i in range(len(op.operands)))
    return f"func.func private @{ROOT}{number}({parameters}) -> {type_} {{\n{b.text()}\nreturn {y} : {type_}\n}}"
