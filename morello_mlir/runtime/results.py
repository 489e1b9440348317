"""Results as numpy arrays: memory that the program allocated is owned by the array and freed with it."""

from __future__ import annotations

import ctypes
import struct
import weakref
from functools import lru_cache
from typing import Any

import numpy as np

from .arguments import Memory
from .elements import Element
from .signature import Result

# Upstream's lowering gives memrefs of constants this "allocated pointer": not ours to free, and read-only.
_CONSTANT = 0xDEADBEEF


@lru_cache(maxsize=1)
def _free() -> Any:
    function = ctypes.CDLL(None).free
    function.argtypes = [ctypes.c_void_p]
    function.restype = None
    return function


class _Buffer:
    """Memory with a shape, which numpy takes over by the array interface and keeps alive."""

    def __init__(self, address: int, shape: tuple[int, ...], strides: tuple[int, ...], element: Element, owner: Any):
        self.owner = owner
        self.__array_interface__ = {
            "version": 3,
            "data": (address, False),
            "shape": shape,
            "strides": tuple(s * element.size for s in strides),
            # The extension types of ml_dtypes have no name here: pass the bits.
            "typestr": element.dtype.str
            if element.dtype.kind in "biufc"
            else f"|u{element.size}"
            if element.size == 1
            else f"<u{element.size}",
        }


class _Owned:
    """A block from malloc, freed with this object."""

    def __init__(self, address: int):
        # Not at exit: arrays may outlive it.
        weakref.finalize(self, _free(), address).atexit = False


class Collector:
    """Turns the array results of one call into numpy arrays.

    arguments: the memory passed in, by the pointer that the program got (which is not the first element's where the
    type has an offset); a result that is one of them is a view of it.
    """

    def __init__(self, arguments: dict[int, Memory]):
        self._arguments = arguments
        self._owners: dict[int, _Owned] = {}

    def array(self, slots: list[int], result: Result) -> np.ndarray:
        """The array of a result from its packet slots: allocated and aligned pointer, offset, sizes, strides."""
        rank = len(result.shape or ())
        allocated, aligned, offset = (slots[i] & (2**64 - 1) for i in (0, 1, 2))
        shape, strides = tuple(slots[3 : 3 + rank]), tuple(slots[3 + rank : 3 + 2 * rank])
        address = aligned + slots[2] * result.element.size if offset else aligned
        if 0 in shape and allocated != _CONSTANT:
            self._owner(allocated)
            return np.zeros(shape, result.element.dtype)
        owner = None if allocated == _CONSTANT else self._owner(allocated)
        array = np.asarray(_Buffer(address, shape, strides, result.element, owner))
        if array.dtype != result.element.dtype:
            array = array.view(result.element.dtype)
        return array.copy() if owner is None else array

    def _owner(self, allocated: int) -> Any:
        """Whoever keeps the memory at `allocated` alive: an argument's array, or a new owner that will free it."""
        memory = self._arguments.get(allocated)
        if memory is not None:
            return memory.view
        if allocated not in self._owners:
            self._owners[allocated] = _Owned(allocated)
        return self._owners[allocated]


def scalar(slots: list[int], element: Element) -> Any:
    """The numpy scalar of a scalar result from its packet slots."""
    data = struct.pack(f"={len(slots)}q", *slots)
    return np.frombuffer(data, element.dtype, 1)[0]
