"""The two generic kernels of the search in plain NumPy: the reference that tests hold the compiled ones against.

A block is `cost[m, k, n, limit]`, int64, INFINITE where there is no implementation. Both kernels update it in place.
"""

from __future__ import annotations

import numpy as np

from ..targets import INFINITE
from .tilelists import TileLists


def move_pass(block: np.ndarray, child: np.ndarray, cost: np.ndarray, group: np.ndarray, maps: np.ndarray) -> None:
    """block = min(block, child at what the move leaves + cost).

    child: `[m, k, n, child limit]`; cost and group: broadcastable to `[m, k, n]`; maps: `[group, limit]`, the child's limit
    index, or -1 where the move does not fit.
    """
    group = np.broadcast_to(group, block.shape[:3])
    cost = np.broadcast_to(cost, block.shape[:3])
    for g in range(len(maps)):
        at = np.nonzero(group == g)
        fits = maps[g] >= 0
        if not at[0].size or not fits.any():
            continue
        below = child[at][:, np.where(fits, maps[g], 0)]
        value = np.where((below < INFINITE) & fits, below + cost[at][:, None], INFINITE)
        block[at] = np.minimum(block[at], value)


def tile_pass(block: np.ndarray, lists: TileLists) -> None:
    """One ascending sweep: block = min(block, count * tile + rest) over the tile lists of the three axes.

    A cell depends only on cells with smaller indices along one axis, so one sweep suffices; the axes are interleaved per
    cell, since a tile of one dim may be a tile of another inside.
    """
    sizes = block.shape[:3]
    for a in range(sizes[0]):
        for b in range(sizes[1]):
            for c in range(sizes[2]):
                cell = block[a, b, c]
                for axis, at in enumerate((a, b, c)):
                    first, last = lists.start[axis][at], lists.start[axis][at + 1]
                    for t in range(first, last):
                        index = [a, b, c]
                        index[axis] = lists.index[axis][t]
                        body = block[tuple(index)]
                        ok = body < INFINITE
                        value = np.where(ok, body, 0) * lists.count[axis][t]
                        if lists.rest[axis][t] >= 0:
                            index[axis] = lists.rest[axis][t]
                            rest = block[tuple(index)]
                            ok = ok & (rest < INFINITE)
                            value = value + np.where(ok, rest, 0)
                        np.minimum(cell, np.where(ok, value, INFINITE), out=cell)
