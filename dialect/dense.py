"""Dense attributes with elements that MLIR's bindings have no class for, as complex numbers are."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from morello_mlir.locks import once


@once
def admit_all_elements() -> None:
    """Have the bindings give such an attribute as a plain `mlir.ir.Attribute`: by themselves they raise TypeError where
    anybody looks at an op that has one."""
    from mlir import ir
    from mlir._mlir_libs import _mlir

    with ir.Context():
        dense = ir.Attribute.parse("dense<0> : tensor<1xi8>").typeid

    @_mlir.register_type_caster(dense, replace=True)
    def cast(attribute: Any) -> Any:
        for known in (ir.DenseFPElementsAttr, ir.DenseIntElementsAttr):
            with suppress(ValueError):
                return known(attribute)
        return attribute
