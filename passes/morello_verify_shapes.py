"""The pass `morello-verify-shapes`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import mlir.ir as ir
from mlir.passmanager import PassManager

from .base import Pass
from .symbols import all_ops, functions


@dataclass(frozen=True)
class VerifyShapes(Pass):
    """Check at run time what types do not promise: that the dynamic sizes of linalg operands fit each other.

    Upstream's generate-runtime-verification, on the functions that have a linalg op on memrefs of dynamic size. Without
    it sizes that do not fit are an access beyond the end.
    """

    name: ClassVar[str] = "morello-verify-shapes"
    summary: ClassVar[str] = "Check at run time that the dynamic sizes of linalg operands fit each other"

    def run(self, op: Any) -> None:
        manager = PassManager.parse("func.func(generate-runtime-verification)")
        for function in functions(op):
            if any(_is_dynamic(each) for each in all_ops(function)):
                manager.run(function.operation)


def _is_dynamic(op: Any) -> bool:
    return op.name.startswith("linalg.") and any(
        isinstance(value.type, ir.MemRefType) and not value.type.has_static_shape for value in op.operands
    )
