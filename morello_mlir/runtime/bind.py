"""Calls whose arguments are fixed ahead: a function object without arguments that enters the program at once.

The arguments are checked when they are bound, and never again. What a call needs lies in one array of 8-byte slots,

    the address of `morello.call`    the Python object to return    the packet (see wrapper.py)

which is the `self` of the function object and keeps everything that it points to alive.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from morello_mlir.errors import InputError
from morello_mlir.locks import once

from . import fastcall, jit
from .arguments import Memory, as_array, check_array, has_layout, shape_text, shares
from .signature import Parameter

_ENTRY = "morello.bound"
_HEAD = 2
_METH_NOARGS = 0x4


class _Slots(np.ndarray):
    """The slots of a call. kept: whatever they point to."""

    kept: Any


def bound(entry: int, packet: Sequence[int], answer: Any, kept: Any) -> Callable[[], Any]:
    """A function that runs the program at `entry` (its `morello.call`) with a packet, and returns `answer`.

    kept: objects that must live as long as the function does.
    """
    slots = np.array([entry, id(answer), *packet], np.int64).view(_Slots)
    slots.kept = (answer, kept)
    if fastcall.FIELDS is None:
        enter, address = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(entry), slots.ctypes.data + 8 * _HEAD

        def call() -> Any:
            enter(address)
            return slots.kept[0]

        return call
    return fastcall.function("bound", _library().addresses[_ENTRY], slots, _METH_NOARGS)


@once
def _library() -> jit.Library:
    """The code of every bound function: it is the same for all programs."""
    assert fastcall.FIELDS is not None
    ir = f"""
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare void @Py_IncRef(ptr)
define ptr @"{_ENTRY}"(ptr %self, ptr %none) {{
  %field = getelementptr i8, ptr %self, i64 {fastcall.FIELDS.data}
  %slots = load ptr, ptr %field
  %entry = load ptr, ptr %slots
  %second = getelementptr i64, ptr %slots, i64 1
  %answer = load ptr, ptr %second
  %packet = getelementptr i64, ptr %slots, i64 {_HEAD}
  ; Whatever the program does, who called keeps %self, and that keeps the rest.
  %thread = call ptr @PyEval_SaveThread()
  call void %entry(ptr %packet)
  call void @PyEval_RestoreThread(ptr %thread)
  call void @Py_IncRef(ptr %answer)
  ret ptr %answer
}}
"""
    return jit.load(ir, (_ENTRY,), jit.Options(vectorize=False), None, fastcall.interpreter_symbols())


def in_place(value: Any, parameter: Parameter, where: str) -> Memory:
    """The memory of an argument that is used where it lies at every call. Raises InputError where that cannot be."""
    array = as_array(value, where)
    check_array(array, parameter, where)
    if parameter.memref and parameter.written and not array.flags.writeable:
        raise InputError(f"{where}: the program writes to this memref, but the array is read-only")
    if not has_layout(array, parameter):
        raise InputError(
            f"{where}: a bound array is used where it lies, and this one is not laid out as the program expects "
            f"(strides {array.strides} bytes, dtype {array.dtype.str}): bind a copy in row-major order"
        )
    return Memory(array, None)


def results_in(out: Any, parameters: Sequence[Parameter], inputs: Sequence[np.ndarray], name: str) -> list[np.ndarray]:
    """The arrays that a caller supplies for results, checked.

    out: an array, or a sequence of as many as there are results. parameters: those that receive the results.
    Raises InputError: the wrong number, dtype, shape or layout, read-only, or memory that an argument or another result
    has too.
    """
    given = list(out) if isinstance(out, (tuple, list)) else [out]
    if len(given) != len(parameters):
        raise InputError(f"@{name}: out: expected {len(parameters)} arrays, got {len(given)}")
    found: list[np.ndarray] = []
    for position, (array, parameter) in enumerate(zip(given, parameters, strict=True)):
        where = f"@{name}: out" if len(given) == 1 else f"@{name}: out {position}"
        if not isinstance(array, np.ndarray):
            raise InputError(f"{where}: expected a numpy array, got a {type(array).__name__}")
        check_array(array, parameter, where)
        if not array.flags.carray or not array.dtype.isnative:
            kind = _unfit(array)
            raise InputError(f"{where}: results go to writable arrays in row-major order, and this one is {kind}")
        if any(shares(array, other) for other in (*inputs, *found)):
            raise InputError(f"{where}: shares memory with an argument or another result ({shape_text(array.shape)})")
        found.append(array)
    return found


def _unfit(array: np.ndarray) -> str:
    """Why results cannot be written to an array as it lies."""
    if not array.flags.writeable:
        return "read-only"
    return "not row-major" if array.dtype.isnative else f"in another byte order ({array.dtype.str})"
