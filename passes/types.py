"""Questions about MLIR types that several passes and the runtime ask."""

from __future__ import annotations

from typing import Any

import mlir.ir as ir

DYNAMIC = ir.ShapedType.get_dynamic_size()


def is_tensor(type_: Any) -> bool:
    """Ranked or unranked tensor."""
    return isinstance(type_, (ir.RankedTensorType, ir.UnrankedTensorType))


def is_memref(type_: Any) -> bool:
    """Ranked or unranked memref."""
    return isinstance(type_, (ir.MemRefType, ir.UnrankedMemRefType))


def is_shaped(type_: Any) -> bool:
    """A tensor or memref with a rank: what an array can stand for."""
    return isinstance(type_, (ir.RankedTensorType, ir.MemRefType))


def shape_of(type_: Any) -> tuple[int | None, ...]:
    """The shape of a ranked type; None for a dynamic size."""
    return tuple(None if size == DYNAMIC else size for size in type_.shape)


def strides_of(type_: Any) -> tuple[tuple[int | None, ...], int | None]:
    """The strides and the offset of a memref in elements; None where dynamic.

    Raises ValueError for a layout that is not strided (a general affine map).
    """
    try:
        strides, offset = type_.get_strides_and_offset()
    except (ValueError, RuntimeError) as error:
        raise ValueError(f"{type_} has no strided layout") from error
    # MLIR marks "dynamic" with one number for sizes and another name, but the same value, for strides and offsets.
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    return (
        tuple(None if stride == dynamic else stride for stride in strides),
        None if offset == dynamic else offset,
    )


def is_static_memref(type_: Any) -> bool:
    """A memref whose sizes, strides and offset are all in its type."""
    if not isinstance(type_, ir.MemRefType) or not type_.has_static_shape:
        return False
    try:
        strides, offset = strides_of(type_)
    except ValueError:
        return False
    return None not in strides and offset is not None


def with_shape(type_: Any, shape: tuple[int, ...]) -> Any:
    """The same tensor or memref type with other sizes. A strided layout keeps its strides."""
    if isinstance(type_, ir.RankedTensorType):
        return ir.RankedTensorType.get(shape, type_.element_type, type_.encoding)
    layout = None if type_.affine_map == ir.AffineMap.get_identity(type_.rank) else type_.layout
    return ir.MemRefType.get(shape, type_.element_type, layout, type_.memory_space)


def with_element(type_: Any, element: Any) -> Any:
    """The same memref type (ranked or not) with another element type."""
    if isinstance(type_, ir.UnrankedMemRefType):
        return ir.UnrankedMemRefType.get(element, type_.memory_space)
    layout = None if type_.affine_map == ir.AffineMap.get_identity(type_.rank) else type_.layout
    return ir.MemRefType.get(type_.shape, element, layout, type_.memory_space)


def function_type(function: Any) -> Any:
    """The `FunctionType` of a `func.func`."""
    return ir.TypeAttr(function.operation.attributes["function_type"]).value


def set_function_type(function: Any, inputs: list[Any], results: list[Any]) -> None:
    """Replace the signature of a `func.func`; its blocks and returns are the caller's concern."""
    function.operation.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))
