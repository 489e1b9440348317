"""The two generic kernels of the search in plain NumPy: the reference that tests hold the compiled ones against.

A block is `cost[m, k, n, limit]`, float64 with integer values, infinite where there is no implementation. Both kernels
update it in place.
"""

from __future__ import annotations

import numpy as np

from .tilelists import TileLists


def move_pass(block: np.ndarray, child: np.ndarray, cost: np.ndarray, group: np.ndarray, maps: np.ndarray) -> None:
    """block = min(block, child at what the move leaves + cost).

    child: `[m, k, n, child limit]`; cost and group: broadcastable to `[m, k, n]`; maps: `[group, limit]`, the child's
    limit index, or -1 where the move does not fit.
    """
    group = np.broadcast_to(group, block.shape[:3])
    cost = np.broadcast_to(cost, block.shape[:3])
    for g in range(len(maps)):
        at = np.nonzero(group == g)
        fits = maps[g] >= 0
        if at[0].size and fits.any():
            below = child[at][:, maps[g][fits]] + cost[at][:, None]
            block[(*(i[:, None] for i in at), np.nonzero(fits)[0])] = np.minimum(block[at][:, fits], below)


def tile_pass(block: np.ndarray, lists: TileLists) -> None:
    """One ascending sweep: block = min(block, count * tile + rest) over the tile lists of the three axes.

    A cell depends only on cells with smaller indices along one axis, so one sweep suffices; the axes are interleaved
    per cell, since a tile of one dim may be a tile of another inside.
    """
    for at in np.ndindex(*block.shape[:3]):
        cell = block[at]
        for axis in range(3):
            first, last = lists.start[axis][at[axis] : at[axis] + 2]
            for t in range(first, last):
                index = list(at)
                index[axis] = lists.index[axis][t]
                value = block[tuple(index)] * lists.count[axis][t]
                if lists.rest[axis][t] >= 0:
                    index[axis] = lists.rest[axis][t]
                    value = value + block[tuple(index)]
                np.minimum(cell, value, out=cell)
