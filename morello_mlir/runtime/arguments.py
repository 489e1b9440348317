"""From what a caller passes to memory that compiled code can use: checked, copied only where the layout demands it."""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from morello_mlir.errors import InputError

from .elements import Element
from .objects import data_address
from .signature import Parameter


@dataclass
class Memory:
    """An argument array as the program sees it.

    view:   np.ndarray with the wanted layout; its data pointer goes to the program.
    origin: np.ndarray of the caller, where the contents go after the call; None where nothing needs writing back.
    """

    view: np.ndarray
    origin: np.ndarray | None

    def write_back(self) -> None:
        """Give the caller what the program wrote."""
        if self.origin is not None:
            self.origin[...] = self.view


def as_array(value: Any, where: str) -> np.ndarray:
    """Any array-like as a numpy array on the same memory: numpy, torch, DLPack, the buffer protocol. bf16 as its bits.

    Raises InputError for anything else, `where` naming the argument.
    """
    if isinstance(value, np.ndarray):
        return value
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return _from_torch(torch, value, where)
    if isinstance(value, np.generic):
        return np.asarray(value)
    if hasattr(value, "__dlpack__"):
        try:
            return np.from_dlpack(value)
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            raise InputError(f"{where}: cannot take this {type(value).__name__} through DLPack: {error}") from error
    if hasattr(value, "__array_interface__") or hasattr(value, "__array__"):
        return np.asarray(value)
    if isinstance(value, (str, list, tuple, dict)) or value is None:
        raise InputError(f"{where}: expected an array, got a {type(value).__name__}")
    try:
        return np.asarray(memoryview(value))
    except TypeError as error:
        raise InputError(f"{where}: expected an array, got a {type(value).__name__}") from error


def _from_torch(torch: Any, value: Any, where: str) -> np.ndarray:
    if value.device.type != "cpu" or value.layout != torch.strided:
        raise InputError(f"{where}: expected a dense tensor on the CPU, got {value.layout} on '{value.device}'")
    value = value.detach().resolve_conj().resolve_neg()
    if value.dtype == torch.bfloat16:
        # numpy has no bf16 of its own; the bits are what is passed on.
        return value.view(torch.int16).numpy().view(np.uint16)
    return value.numpy()


def check_array(array: np.ndarray, parameter: Parameter, where: str) -> None:
    """Check dtype, rank and sizes against a parameter. Raises InputError."""
    element = parameter.element
    if native(array.dtype) not in element.accepts:
        raise InputError(f"{where}: expected dtype {element.describe()} for {element.mlir}, got {array.dtype.name}")
    wanted = parameter.shape or ()
    if array.ndim != len(wanted) or any(w not in (None, s) for s, w in zip(array.shape, wanted, strict=True)):
        raise InputError(f"{where}: expected shape {shape_text(wanted)}, got {shape_text(array.shape)}")


def native(dtype: np.dtype) -> np.dtype:
    """The dtype in this machine's byte order: an array in the other one is copied, as one with other strides is."""
    return dtype.newbyteorder("=")


def shape_text(shape: tuple[int | None, ...]) -> str:
    """A shape for people: `2x?xf`-style sizes, `scalar (rank 0)` for none."""
    return "x".join("?" if size is None else str(size) for size in shape) if shape else "() (rank 0)"


def memory_for(array: np.ndarray, parameter: Parameter, where: str) -> Memory:
    """The memory to pass for a checked array. Raises InputError for read-only memory that the program writes to."""
    if parameter.memref and parameter.written and not array.flags.writeable:
        raise InputError(f"{where}: the program writes to this memref, but the array is read-only")
    if has_layout(array, parameter):
        return Memory(array, None)
    view = allocate(array.shape, native(array.dtype), parameter.strides)
    view[...] = array
    return Memory(view, array if parameter.memref and parameter.written else None)


def has_layout(array: np.ndarray, parameter: Parameter) -> bool:
    """Whether an array lies in memory as the parameter's type says. Where there is nothing to step over, it does."""
    if not array.flags.aligned or not array.dtype.isnative:
        return False
    if array.size == 0:
        return True
    size = array.itemsize
    return all(
        extent == 1 or (stride % size == 0 if wanted is None else stride == wanted * size)
        for extent, stride, wanted in zip(array.shape, array.strides, _strides_for(array.shape, parameter), strict=True)
    )


def _strides_for(shape: tuple[int, ...], parameter: Parameter) -> tuple[int | None, ...]:
    """The strides an array of this shape must have. Those of a tensor, or of a memref without a layout, follow from its
    sizes even where these are dynamic; only a strided layout leaves them open."""
    if parameter.row_major:
        return contiguous_strides(shape)
    return parameter.strides


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides in elements."""
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    return tuple(strides)


def allocate(shape: tuple[int, ...], dtype: np.dtype, strides: tuple[int | None, ...]) -> np.ndarray:
    """New zeroed memory of a shape. strides: in elements, None where any will do."""
    natural = contiguous_strides(shape)
    if 0 in shape or all(s in (None, n) for s, n in zip(strides, natural, strict=True)):
        return np.zeros(shape, dtype)
    wanted = _without_overlap(shape, strides)
    reach = [(extent - 1) * stride for extent, stride in zip(shape, wanted, strict=True)]
    before = -sum(r for r in reach if r < 0)
    flat = np.zeros(before + sum(r for r in reach if r > 0) + 1, dtype)
    return np.lib.stride_tricks.as_strided(flat[before:], shape, [s * flat.itemsize for s in wanted])


def _without_overlap(shape: tuple[int, ...], strides: tuple[int | None, ...]) -> list[int]:
    """Strides with the open ones chosen so that no two elements meet: beyond what the others reach, from inside."""
    chosen = list(strides)
    span = 1 + sum((extent - 1) * abs(s) for extent, s in zip(shape, strides, strict=True) if s is not None)
    for axis in reversed(range(len(shape))):
        if strides[axis] is None:
            chosen[axis] = span
            span *= shape[axis]
    return [s or 0 for s in chosen]


def shares(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays have an element in common; yes where finding out takes long."""
    if not np.may_share_memory(a, b):
        return False
    try:
        return np.shares_memory(a, b, max_work=1000)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


def array_slots(memory: Memory, parameter: Parameter) -> list[int]:
    """The packet slots of an array argument: pointer, dynamic sizes, dynamic strides in elements."""
    view = memory.view
    pointer = data_address(view) - (parameter.offset or 0) * view.itemsize
    shape = parameter.shape or ()
    sizes = [actual for actual, known in zip(view.shape, shape, strict=True) if known is None]
    if view.size and not parameter.row_major:
        actual_strides: tuple[int, ...] = tuple(s // view.itemsize for s in view.strides)
    else:
        actual_strides = contiguous_strides(view.shape)
    strides = [actual for actual, known in zip(actual_strides, parameter.strides, strict=True) if known is None]
    return [pointer, *sizes, *strides]


# ---- scalars -------------------------------------------------------------------------------------------------------

_PACK: dict[str, Callable[..., bytes]] = {
    "float16": struct.Struct("<e6x").pack,
    "float32": struct.Struct("<f4x").pack,
    "float64": struct.Struct("<d").pack,
}


def scalar_slots(value: Any, element: Element, where: str) -> list[int]:
    """The packet slots of a scalar argument: a Python or numpy number, or an array of rank 0 with the right dtype.

    Raises InputError: not a number, the wrong kind or dtype, or out of range.
    """
    # numpy's float64 is a Python float too, but has said which dtype it is.
    if isinstance(value, (bool, int, float, complex)) and not isinstance(value, np.generic):
        array = _from_python(value, element, where)
    else:
        array = as_array(value, where)
        if array.ndim != 0:
            raise InputError(
                f"{where}: expected a scalar {element.mlir}, got an array of shape {shape_text(array.shape)}"
            )
        if native(array.dtype) not in element.accepts:
            raise InputError(f"{where}: expected dtype {element.describe()} for {element.mlir}, got {array.dtype.name}")
    data = array.astype(native(array.dtype), copy=False).tobytes()
    data += bytes(-len(data) % 8)
    return list(struct.unpack(f"={len(data) // 8}q", data))


def _from_python(value: complex, element: Element, where: str) -> np.ndarray:
    kind = element.dtype.kind
    if kind == "b":
        fits = isinstance(value, bool) or value in (0, 1)
    elif kind in "iu":
        bounds = [np.iinfo(d) for d in element.accepts]
        fits = isinstance(value, int) and min(b.min for b in bounds) <= value <= max(b.max for b in bounds)
    else:
        fits = kind == "c" or not isinstance(value, complex)
    if not fits:
        raise InputError(f"{where}: {value!r} is not a value of type {element.mlir}")
    if kind in "iu":
        bits = 8 * element.size
        return np.array(int(value.real) & ((1 << bits) - 1), f"uint{bits}").view(element.dtype)
    return np.array(value).astype(element.dtype)
