"""The two generic kernels of the search as machine code: `passes.ll`, compiled by LLVM, once per machine. Same contract
as passes_numpy, which tests compare them with.

Loading numba and what it has compiled takes longer than most searches; an object from the cache takes a millisecond.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..runtime.cache import ObjectCache, default_directory
from ..runtime.jit import Library, Options, load
from .tilelists import TileLists

_IR = Path(__file__).with_name("passes.ll")
_MOVE = (*[ctypes.c_void_p] * 5, *[ctypes.c_int64] * 3)
_TILE = (ctypes.c_void_p, *[ctypes.c_int64] * 4, ctypes.c_void_p)
_LIBRARY: Library = load(_IR.read_text(encoding="utf-8"), ("move", "tile"), Options(), ObjectCache(default_directory()))


def _function(name: str, arguments: Sequence[Any]) -> Callable[..., None]:
    """Calls leave the interpreter lock to others."""
    return ctypes.CFUNCTYPE(None, *arguments)(_LIBRARY.addresses[name])


_move, _tile = _function("move", _MOVE), _function("tile", _TILE)


def _pointers(arrays: Sequence[np.ndarray]) -> Any:
    return (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))


def move_pass(block: np.ndarray, child: np.ndarray, cost: np.ndarray, group: np.ndarray, maps: np.ndarray) -> None:
    """See passes_numpy.move_pass."""
    rows = block.shape[:3]
    below = np.ascontiguousarray(child)
    costs = np.ascontiguousarray(np.broadcast_to(cost, rows), np.float64)
    groups, maps = (np.ascontiguousarray(x, np.int64) for x in (np.broadcast_to(group, rows), maps))
    _check(block)
    cells, limits = costs.size, block.shape[3]
    arrays = (block, below, costs, groups, maps)
    _move(*(a.ctypes.data for a in arrays), cells, limits, below.shape[3])


def tile_pass(block: np.ndarray, lists: TileLists) -> None:
    """See passes_numpy.tile_pass."""
    _check(block)
    flat = [x[axis] for axis in range(3) for x in (lists.start, lists.index, lists.count, lists.rest)]
    _tile(block.ctypes.data, *block.shape, _pointers(flat))


def _check(block: np.ndarray) -> None:
    if not (block.flags.c_contiguous and block.dtype == np.float64):
        raise ValueError("a block is contiguous, of float64")
