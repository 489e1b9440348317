"""Products of unsigned integers in StableHLO, in jaxlib's MLIR: its lowering would widen them as if they had a sign."""

from __future__ import annotations

from typing import Any

from .control_flow import inner_first

_PRODUCTS = ("stablehlo.dot_general", "stablehlo.dot", "stablehlo.convolution")


def widen(module: Any) -> None:
    """Convert operands that are unsigned, of products under a module that are added up in another type, to this."""
    from jaxlib.mlir import ir

    for op in inner_first(module.operation):
        if op.name not in _PRODUCTS:
            continue
        wide = ir.RankedTensorType(op.result.type).element_type
        types = [ir.RankedTensorType(value.type) for value in op.operands]
        if not any(_is_unsigned(t.element_type) and t.element_type != wide for t in types):
            continue
        with ir.InsertionPoint(op), op.location:
            for number, (value, narrow) in enumerate(zip(op.operands, types, strict=True)):
                result = ir.RankedTensorType.get(narrow.shape, wide)
                op.operands[number] = ir.Operation.create("stablehlo.convert", [result], [value]).result


def _is_unsigned(element: Any) -> bool:
    from jaxlib.mlir import ir

    return isinstance(element, ir.IntegerType) and element.is_unsigned
