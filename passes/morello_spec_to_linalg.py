"""The pass `morello-spec-to-linalg`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import mlir.ir as ir
from mlir.dialects import arith, linalg

from morello_mlir.dialect import SpecOp, spec_ops
from morello_mlir.errors import SpecError
from morello_mlir.spec import FUNCTIONS

from .base import Pass

#: All operands are memrefs in logical order: a batch, rows, columns.
_RANK = 3


@dataclass(frozen=True)
class SpecToLinalg(Pass):
    """Say in linalg what `morello.spec` ops compute, whatever their schedules: the reference of a check.

    Ops whose operands are packed or in registers, as a partly executed schedule leaves them, stay.
    """

    name: ClassVar[str] = "morello-spec-to-linalg"
    summary: ClassVar[str] = "Turn morello.spec ops back into linalg, ignoring their schedules"
    anchor: ClassVar[str | None] = None

    def run(self, op: Any) -> None:
        for spec_op in spec_ops(op):
            if all(isinstance(v.type, ir.MemRefType) and v.type.rank == _RANK for v in spec_op.operands):
                self._replace(spec_op)

    def _replace(self, spec_op: SpecOp) -> None:
        op = spec_op.operation
        try:
            accumulates = FUNCTIONS[spec_op.spec.function].accumulates
        except SpecError as error:
            self.fail(op, str(error))
        lhs, rhs, out = op.operands
        with ir.InsertionPoint(op), op.location:
            if not accumulates:
                element = out.type.element_type
                linalg.fill(arith.constant(element, 0.0), outs=[out])
            linalg.batch_matmul(lhs, rhs, outs=[out])
        op.erase()
