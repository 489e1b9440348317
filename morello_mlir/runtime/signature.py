"""What an entry function takes and returns, as plain data: nothing here keeps MLIR objects alive."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from morello_mlir.errors import CompileError

from .elements import Element, element_of


@dataclass(frozen=True)
class Parameter:
    """One argument of the lowered entry.

    element:  its element type (of a scalar: its type).
    shape:    None for a scalar, else sizes with None where dynamic.
    strides:  in elements, None where dynamic; row-major for tensors.
    offset:   in elements; None where dynamic.
    row_major: whether the strides follow from the sizes, dynamic or not.
    memref:   whether the program sees the caller's memory (a tensor argument is a value).
    written:  whether the program may write to that memory.
    result:   the number of the result that this argument receives; None for an argument of the caller's.
    """

    element: Element
    shape: tuple[int | None, ...] | None
    strides: tuple[int | None, ...] = ()
    offset: int | None = 0
    row_major: bool = False
    memref: bool = False
    written: bool = False
    result: int | None = None

    @property
    def is_static(self) -> bool:
        """Whether all is known at compile time (always, for a scalar)."""
        return self.shape is None or (None not in self.shape and None not in self.strides and self.offset is not None)

    @property
    def is_plain(self) -> bool:
        """A static array in row-major order without an offset."""
        return self.shape is not None and self.is_static and self.offset == 0 and self.row_major

    @property
    def nbytes(self) -> int:
        """Bytes of a static array without gaps."""
        return math.prod(size or 0 for size in self.shape or ()) * self.element.size


@dataclass(frozen=True)
class Result:
    """One result of the lowered entry that it returns itself.

    shape:  None for a scalar, else sizes with None where dynamic.
    owned:  for an array: the caller gets memory of its own (a tensor); else it may be an argument's memory.
    number: its place among the results of the original function.
    """

    element: Element
    shape: tuple[int | None, ...] | None
    owned: bool
    number: int


@dataclass(frozen=True)
class Signature:
    """The arguments and results of an entry function.

    parameters: the caller's arguments first, in order, then those that receive results.
    results:    the results that are returned, in order.
    """

    name: str
    parameters: tuple[Parameter, ...]
    results: tuple[Result, ...]

    @property
    def inputs(self) -> tuple[Parameter, ...]:
        """The caller's arguments."""
        return tuple(p for p in self.parameters if p.result is None)

    @property
    def result_count(self) -> int:
        """How many results the original function has."""
        return len(self.results) + sum(p.result is not None for p in self.parameters)

    @property
    def is_dynamic(self) -> bool:
        """Whether an argument has a size that is known only when called."""
        return any(p.shape is not None and None in p.shape for p in self.inputs)


def may_clash(a: Parameter, b: Parameter) -> bool:
    """Whether it matters that two arguments are one memory: a memref is, and may be written to."""
    return any(p.memref and p.written for p in (a, b))


def row_major_strides(shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
    """The strides of a contiguous array in elements; None outside a dynamic size."""
    strides: list[int | None] = []
    stride: int | None = 1
    for size in reversed(shape):
        strides.append(stride)
        stride = None if size is None or stride is None else stride * size
    return tuple(reversed(strides))


def signature_of(function: Any) -> Signature:
    """The signature of a `func.func`, before or after `morello-return-to-argument`, before bufferization.

    Raises CompileError for a type that no array or number can stand for.
    """
    import mlir.ir as ir

    from morello_mlir.lifting.writes import may_write
    from morello_mlir.passes.morello_return_to_argument import RESULT
    from morello_mlir.passes.symbols import has_body, symbol_name
    from morello_mlir.passes.types import function_type, is_memref

    name = symbol_name(function) or ""
    type_ = function_type(function)
    attributes = function.operation.attributes
    listed = list(ir.ArrayAttr(attributes["arg_attrs"])) if "arg_attrs" in attributes else [{}] * len(type_.inputs)
    moved = [ir.IntegerAttr(each[RESULT]).value if RESULT in each else None for each in listed]
    arguments = function.operation.regions[0].blocks[0].arguments if has_body(function) else [None] * len(moved)
    parameters = []
    for position, (each, result, value) in enumerate(zip(type_.inputs, moved, arguments, strict=True)):
        parameter = _parameter(each, f"@{name}: argument {position}")
        written = is_memref(each) and (value is None or may_write(value))
        parameters.append(replace(parameter, written=written, result=result))
    numbers = [n for n in range(len(type_.results) + len(moved)) if n not in moved]
    results = [
        _result(each, number, f"@{name}: result {number}")
        for each, number in zip(type_.results, numbers[: len(type_.results)], strict=True)
    ]
    return Signature(name, tuple(parameters), tuple(results))


def _element(type_: Any, where: str) -> Element:
    element = element_of(str(type_))
    if element is None:
        raise CompileError(f"{where} has type {type_}, which no array can hold")
    return element


def _parameter(type_: Any, where: str) -> Parameter:
    import mlir.ir as ir

    from morello_mlir.passes.types import shape_of, strides_of

    if isinstance(type_, ir.RankedTensorType):
        if type_.encoding is not None:
            raise CompileError(f"{where} has type {type_}: tensors with an encoding are not supported")
        shape = shape_of(type_)
        return Parameter(_element(type_.element_type, where), shape, row_major_strides(shape), row_major=True)
    if isinstance(type_, ir.MemRefType):
        try:
            strides, offset = strides_of(type_)
        except ValueError as error:
            raise CompileError(f"{where}: {error}") from error
        shape = shape_of(type_)
        natural = row_major_strides(shape)
        identity = type_.affine_map == ir.AffineMap.get_identity(type_.rank) or (
            None not in natural and strides == natural
        )
        element = _element(type_.element_type, where)
        return Parameter(element, shape, strides, offset, row_major=identity, memref=True)
    if isinstance(type_, (ir.UnrankedMemRefType, ir.UnrankedTensorType)):
        raise CompileError(f"{where} has type {type_}: an argument needs a rank")
    return Parameter(_element(type_, where), None)


def _result(type_: Any, number: int, where: str) -> Result:
    import mlir.ir as ir

    from morello_mlir.passes.types import is_shaped, shape_of

    if is_shaped(type_):
        owned = isinstance(type_, ir.RankedTensorType)
        return Result(_element(type_.element_type, where), shape_of(type_), owned, number)
    if isinstance(type_, (ir.UnrankedMemRefType, ir.UnrankedTensorType)):
        raise CompileError(f"{where} has type {type_}: a result needs a rank")
    return Result(_element(type_, where), None, True, number)
