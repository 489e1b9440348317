"""Arguments that `compile` is given beforehand: they become constants of the module."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from morello_mlir.errors import InputError

from ..aligned import lasting
from .arguments import as_array, check_array, native
from .build import copy_of
from .objects import data_address
from .signature import Parameter, signature_of

_PREFIX = "morello.given."
#: How an argument may be called: an attribute of it, a string.
NAME = "morello.name"


def bind(module: Any, name: str, constants: Mapping[int | str, Any]) -> tuple[Any, dict[str, np.ndarray]]:
    """A copy of `module` whose function `name` does not take the arguments that `constants` has, by position or by
    name, any more; and the contents of the globals that it reads in their place, by symbol.

    Raises InputError: no such argument, an array that does not fit, an argument that is not an array, or is written to.
    """
    import mlir.ir as ir
    from mlir.passmanager import PassManager

    from morello_mlir.passes.morello_specialize import PROPAGATE
    from morello_mlir.passes.symbols import function_named
    from morello_mlir.passes.types import function_type, set_function_type

    copy = copy_of(module)
    function = function_named(copy, name)
    signature = signature_of(function)
    arrays = _by_position(function, name, constants)
    block = function.operation.regions[0].blocks[0]
    inputs, casts = list(function_type(function).inputs), False
    found: dict[str, np.ndarray] = {}
    with function.operation.location:
        for position, value in sorted(arrays.items()):
            data = _data(value, signature.inputs[position], f"@{name}: constant for argument {position}")
            symbol = f"{_PREFIX}{len(found)}"
            found[symbol] = data.reshape(-1).view(np.uint8)
            with ir.InsertionPoint.at_block_begin(copy.body):
                _declare(symbol, data, inputs[position].element_type)
            with ir.InsertionPoint.at_block_begin(block):
                source = _read(symbol, data.shape, inputs[position])
            casts = casts or source.owner.operation.name.endswith(".cast")
            block.arguments[position].replace_all_uses_with(source)
    attributes = function.operation.attributes
    listed = list(ir.ArrayAttr(attributes["arg_attrs"])) if "arg_attrs" in attributes else None
    for position in sorted(arrays, reverse=True):
        block.erase_argument(position)
        del inputs[position]
        if listed is not None:
            del listed[position]
    set_function_type(function, inputs, list(function_type(function).results))
    if listed is not None:
        attributes["arg_attrs"] = ir.ArrayAttr.get(listed)
    if casts:
        PassManager.parse(PROPAGATE.format(inline="")).run(copy.operation)
    return copy, found


def _by_position(function: Any, name: str, constants: Mapping[int | str, Any]) -> dict[int, Any]:
    names = _argument_names(function)
    found: dict[int, Any] = {}
    if not isinstance(constants, Mapping):
        raise InputError(f"constants: expected a mapping from arguments to arrays, got a {type(constants).__name__}")
    for key, value in constants.items():
        if isinstance(key, str):
            if key not in names:
                known = ", ".join(n for n in names if n) or "none has a name"
                raise InputError(f"@{name}: no argument is called '{key}' ({known})")
            key = names.index(key)
        if isinstance(key, bool) or not isinstance(key, int) or not 0 <= key < len(names):
            raise InputError(f"@{name}: constants: no argument {key!r} (it takes {len(names)})")
        if key in found:
            raise InputError(f"@{name}: constants: argument {key} is given twice")
        found[key] = value
    return found


def _argument_names(function: Any) -> list[str]:
    """The name of each argument: its attribute `morello.name`, else that of its location; empty without either. Raises
    InputError for an attribute that is no string."""
    import mlir.ir as ir

    attributes = function.operation.attributes
    block = function.operation.regions[0].blocks[0]
    listed = list(ir.ArrayAttr(attributes["arg_attrs"])) if "arg_attrs" in attributes else [{}] * len(block.arguments)
    names = []
    for argument, each in zip(block.arguments, listed, strict=True):
        if NAME in each:
            if not isinstance(each[NAME], ir.StringAttr):
                raise InputError(f"{NAME} of argument {argument.arg_number} must be a string, not {each[NAME]}")
            names.append(str(ir.StringAttr(each[NAME]).value))
        else:
            location = argument.location
            names.append(location.name_str if location.is_a_name() else "")
    return names


def _data(value: Any, parameter: Parameter, where: str) -> np.ndarray:
    """The contents, in memory that the caller cannot change: a copy, unless the array is read-only and lies right."""
    if parameter.shape is None:
        raise InputError(f"{where}: it is a scalar: only arrays can be given")
    if parameter.memref and not parameter.row_major:
        raise InputError(f"{where}: its type has strides of its own: only plain memrefs and tensors can be given")
    if parameter.written:
        raise InputError(f"{where}: the program writes to it")
    array = as_array(value, where)
    check_array(array, replace(parameter, written=False), where)
    if array.dtype.isnative and array.flags.c_contiguous and not _is_writable(array) and data_address(array) % 64 == 0:
        return array
    room = lasting(array.nbytes).view(native(array.dtype)).reshape(array.shape)
    room[...] = array
    return room


def _is_writable(array: np.ndarray) -> bool:
    """Whether somebody can write to the memory of an array: through it, or through one that it is a view of."""
    each: Any = array
    while isinstance(each, np.ndarray):
        if each.flags.writeable:
            return True
        each = each.base
    return isinstance(each, memoryview) and not each.readonly


def _declare(symbol: str, data: np.ndarray, element: Any) -> None:
    """A constant global that is defined elsewhere."""
    import mlir.ir as ir

    from morello_mlir.lifting.constants import FINITE

    type_ = ir.MemRefType.get(list(data.shape), element)
    named = {"sym_name": ir.StringAttr.get(symbol), "type": ir.TypeAttr.get(type_), "constant": ir.UnitAttr.get()}
    if _is_finite(data):
        named[FINITE] = ir.UnitAttr.get()
    ir.Operation.create("memref.global", attributes=named)


def _is_finite(data: np.ndarray) -> bool:
    """Whether numbers are known to be finite: their sum is then, unless they are huge."""
    try:
        with np.errstate(all="ignore"):
            return data.dtype.kind in "iu" or bool(np.isfinite(data.sum()))
    except TypeError:  # a type that numpy does not add up
        return False


def _read(symbol: str, shape: tuple[int, ...], type_: Any) -> Any:
    """The global as a value of `type_`, the argument's."""
    import mlir.ir as ir
    from mlir.dialects import bufferization, memref, tensor

    whole = memref.get_global(ir.MemRefType.get(list(shape), type_.element_type), symbol)
    if isinstance(type_, ir.MemRefType):
        return whole if whole.type == type_ else memref.cast(type_, whole)
    static = ir.RankedTensorType.get(list(shape), type_.element_type)
    value = bufferization.to_tensor(static, whole, restrict=True)
    return value if static == type_ else tensor.cast(type_, value)
