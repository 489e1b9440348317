"""The two generic kernels of the search, compiled. Same contract as passes_numpy, which tests compare them with."""

from __future__ import annotations

import numba
import numpy as np

from ..targets import INFINITE
from .tilelists import TileLists

_INF = np.int64(INFINITE)


@numba.njit(cache=True, nogil=True)
def _move(block, child, cost, group, maps):  # type: ignore[no-untyped-def]
    rows, depth, cols, limits = block.shape
    for a in range(rows):
        for b in range(depth):
            for c in range(cols):
                index = maps[group[a, b, c]]
                extra = cost[a, b, c]
                cell = block[a, b, c]
                below = child[a, b, c]
                for x in range(limits):
                    at = index[x]
                    if at >= 0:
                        value = below[at]
                        if value < _INF:
                            cell[x] = min(cell[x], value + extra)


@numba.njit(cache=True, nogil=True)
def _relax(cell, body, rest, count, has_rest):  # type: ignore[no-untyped-def]
    if has_rest:
        for x in range(cell.shape[0]):
            value = body[x] * count + rest[x]
            if body[x] >= _INF or rest[x] >= _INF:
                value = _INF
            cell[x] = min(cell[x], value)
    else:
        for x in range(cell.shape[0]):
            value = body[x] * count
            if body[x] >= _INF:
                value = _INF
            cell[x] = min(cell[x], value)


@numba.njit(cache=True, nogil=True)
def _tile(block, sm, im, cm, rm, sk, ik, ck, rk, sn, in_, cn, rn):  # type: ignore[no-untyped-def]
    rows, depth, cols, _ = block.shape
    for a in range(rows):
        for b in range(depth):
            for c in range(cols):
                cell = block[a, b, c]
                for t in range(sm[a], sm[a + 1]):
                    _relax(cell, block[im[t], b, c], block[rm[t], b, c], cm[t], rm[t] >= 0)
                for t in range(sk[b], sk[b + 1]):
                    _relax(cell, block[a, ik[t], c], block[a, rk[t], c], ck[t], rk[t] >= 0)
                for t in range(sn[c], sn[c + 1]):
                    _relax(cell, block[a, b, in_[t]], block[a, b, rn[t]], cn[t], rn[t] >= 0)


def move_pass(block: np.ndarray, child: np.ndarray, cost: np.ndarray, group: np.ndarray, maps: np.ndarray) -> None:
    """See passes_numpy.move_pass."""
    shape = block.shape[:3]
    _move(block, child, np.broadcast_to(cost, shape), np.broadcast_to(group, shape), maps)


def tile_pass(block: np.ndarray, lists: TileLists) -> None:
    """See passes_numpy.tile_pass."""
    args = [x[axis] for axis in range(3) for x in (lists.start, lists.index, lists.count, lists.rest)]
    _tile(block, *args)
