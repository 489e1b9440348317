"""The pass `morello-legalize-tosa`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from mlir.passmanager import PassManager

from .base import Pass
from .symbols import all_ops

#: Upstream's, in the order of its `tosa-to-linalg-pipeline`, without the validation, which refuses dynamic sizes.
_TO_LINALG = (
    "builtin.module("
    "func.func(tosa-optional-decompositions),canonicalize,"
    "func.func(tosa-infer-shapes,tosa-make-broadcastable,tosa-to-linalg-named),canonicalize,"
    "func.func(tosa-layerwise-constant-fold,tosa-make-broadcastable,tosa-to-linalg,tosa-to-scf,tosa-to-tensor,"
    "tosa-to-arith{include-apply-rescale=true}),canonicalize)"
)


@dataclass(frozen=True)
class LegalizeTosa(Pass):
    """Take TOSA ops to linalg and tensor ops, by upstream's conversions (https://mlir.llvm.org/docs/Dialects/TOSA/).

    A module without any is left as it is. What upstream does not convert ends in an error that names it.
    """

    name: ClassVar[str] = "morello-legalize-tosa"
    summary: ClassVar[str] = "Take TOSA ops to linalg on tensors, where there are any"

    def run(self, op: Any) -> None:
        if any(each.name.startswith("tosa.") for each in all_ops(op)):
            PassManager.parse(_TO_LINALG).run(op.operation)
