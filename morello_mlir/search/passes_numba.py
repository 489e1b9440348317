"""The two generic kernels of the search, compiled. Same contract as passes_numpy, which tests compare them with."""

from __future__ import annotations

import numba
import numpy as np

from .tilelists import Known, TileLists


@numba.njit(cache=True, nogil=True)
def _move(block, child, cost, group, maps):  # type: ignore[no-untyped-def]
    rows, depth, cols, limits = block.shape
    for a in range(rows):
        for b in range(depth):
            for c in range(cols):
                index = maps[group[a, b, c]]
                extra = cost[a, b, c]
                for x in range(limits):
                    at = index[x]
                    if at >= 0:
                        value = child[a, b, c, at] + extra
                        if value < block[a, b, c, x]:
                            block[a, b, c, x] = value


@numba.njit(cache=True, nogil=True)
def _relax(cells, body, rest, count, has_rest):  # type: ignore[no-untyped-def]
    """cells = min(cells, body * count + rest), flat: what the compiler vectorises."""
    if has_rest:
        for x in range(cells.shape[0]):
            value = body[x] * count + rest[x]
            cells[x] = value if value < cells[x] else cells[x]
    else:
        for x in range(cells.shape[0]):
            value = body[x] * count
            cells[x] = value if value < cells[x] else cells[x]


@numba.njit(cache=True, nogil=True)
def _tile(rows_, limits, km, kk, kn, sm, im, cm, rm, sk, ik, ck, rk, sn, in_, cn, rn):  # type: ignore[no-untyped-def]
    """rows_: the block as [m, k, n * limit]. Tiles of m and k relax a whole row at once: those they read are finished.
    Along n the row is finished in ascending order. km, kk, kn: the sizes at which a cell is known, if all three are."""
    rows, depth, width = rows_.shape
    for a in range(rows):
        for b in range(depth):
            row = rows_[a, b]
            first = 0
            while first < width:
                # The next columns that are not known: all of them, or a run of sizes.
                last = width
                if km[a] and kk[b]:
                    while first < width and kn[first // limits]:
                        first += limits
                    last = first
                    while last < width and not kn[last // limits]:
                        last += limits
                for t in range(sm[a], sm[a + 1]):
                    body, rest = rows_[im[t], b, first:last], rows_[rm[t], b, first:last]
                    _relax(row[first:last], body, rest, cm[t], rm[t] >= 0)
                for t in range(sk[b], sk[b + 1]):
                    body, rest = rows_[a, ik[t], first:last], rows_[a, rk[t], first:last]
                    _relax(row[first:last], body, rest, ck[t], rk[t] >= 0)
                first = last
            for c in range(width // limits):
                if km[a] and kk[b] and kn[c]:
                    continue
                cell = row[c * limits : (c + 1) * limits]
                for t in range(sn[c], sn[c + 1]):
                    body = row[in_[t] * limits : (in_[t] + 1) * limits]
                    left = max(rn[t], 0)
                    rest = row[left * limits : (left + 1) * limits]
                    _relax(cell, body, rest, cn[t], rn[t] >= 0)


def move_pass(block: np.ndarray, child: np.ndarray, cost: np.ndarray, group: np.ndarray, maps: np.ndarray) -> None:
    """See passes_numpy.move_pass."""
    shape = block.shape[:3]
    _move(block, child, np.broadcast_to(cost, shape), np.broadcast_to(group, shape), maps)


def tile_pass(block: np.ndarray, lists: TileLists, known: Known | None = None) -> None:
    """See passes_numpy.tile_pass."""
    finished = known or [np.zeros(size, bool) for size in block.shape[:3]]
    args = [x[axis] for axis in range(3) for x in (lists.start, lists.index, lists.count, lists.rest)]
    _tile(block.reshape(*block.shape[:2], -1), block.shape[3], *finished, *args)
