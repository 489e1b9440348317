"""The kernels of policies, compiled. Same contract as policy_numpy, which tests compare them with."""

from __future__ import annotations

import numba
import numpy as np

from ..search.tables import Reads
from ..search.tilelists import TileLists


@numba.njit(cache=True, nogil=True)
def _choose_move(choice, block, child, cost, group, maps, code):  # type: ignore[no-untyped-def]
    rows, depth, cols, limits = block.shape
    for a in range(rows):
        for b in range(depth):
            for c in range(cols):
                index = maps[group[a, b, c]]
                extra = cost[a, b, c]
                for x in range(limits):
                    at = index[x]
                    open_ = at >= 0 and choice[a, b, c, x] < 0 and block[a, b, c, x] < np.inf
                    if open_ and child[a, b, c, at] + extra == block[a, b, c, x]:
                        choice[a, b, c, x] = code


@numba.njit(cache=True, nogil=True)
def _match(choice, cell, body, rest, count, has_rest, code):  # type: ignore[no-untyped-def]
    """Gives `code` to what it explains of the cells without a choice; returns how many are left."""
    left = 0
    for x in range(cell.shape[0]):
        if choice[x] < 0 and cell[x] < np.inf:
            value = body[x] * count
            if has_rest:
                value += rest[x]
            if value == cell[x]:
                choice[x] = code
            else:
                left += 1
    return left


@numba.njit(cache=True, nogil=True)
def _choose_tiles(choice, block, sm, im, cm, rm, sk, ik, ck, rk, sn, in_, cn, rn, codes):  # type: ignore[no-untyped-def]
    rows, depth, cols, limits = block.shape
    for a in range(rows):
        for b in range(depth):
            for c in range(cols):
                ch, cell = choice[a, b, c], block[a, b, c]
                todo = 0
                for x in range(limits):
                    todo += ch[x] < 0 and cell[x] < np.inf
                for remainder in (False, True):
                    for t in range(sm[a], sm[a + 1]):
                        if todo and (rm[t] >= 0) == remainder:
                            body, rest = block[im[t], b, c], block[rm[t], b, c]
                            todo = _match(ch, cell, body, rest, cm[t], remainder, codes[0, im[t]])
                    for t in range(sk[b], sk[b + 1]):
                        if todo and (rk[t] >= 0) == remainder:
                            body, rest = block[a, ik[t], c], block[a, rk[t], c]
                            todo = _match(ch, cell, body, rest, ck[t], remainder, codes[1, ik[t]])
                    for t in range(sn[c], sn[c + 1]):
                        if todo and (rn[t] >= 0) == remainder:
                            body, rest = block[a, b, in_[t]], block[a, b, rn[t]]
                            todo = _match(ch, cell, body, rest, cn[t], remainder, codes[2, in_[t]])


@numba.njit(cache=True, nogil=True)
def _price_tiles(block, choice, axis_of, index_of, sizes, number):  # type: ignore[no-untyped-def]
    rows, depth, cols, limits = block.shape
    at = np.zeros(3, np.int64)
    wrong = 0
    for a in range(rows):
        for b in range(depth):
            for c in range(cols):
                for x in range(limits):
                    code = choice[a, b, c, x]
                    if code >= 0 and axis_of[code] >= 0:
                        axis = axis_of[code]
                        at[0], at[1], at[2] = a, b, c
                        size, tile = sizes[axis, at[axis]], sizes[axis, index_of[code]]
                        if index_of[code] >= 0 and tile < size:
                            at[axis] = index_of[code]
                            value = block[at[0], at[1], at[2], x] * (size // tile)
                            if size % tile:
                                at[axis] = number[axis, size % tile]
                                value += block[at[0], at[1], at[2], x]
                            if value < block[a, b, c, x]:
                                block[a, b, c, x] = value
                        else:
                            wrong += 1
                    if code >= -1:
                        wrong += (code >= 0) != (block[a, b, c, x] < np.inf)
    return wrong


def choose_move(choice: np.ndarray, block: np.ndarray, reads: Reads, code: int) -> None:
    """See policy_numpy.choose_move."""
    cost, group = (np.broadcast_to(x, block.shape[:3]) for x in (reads.cost, reads.group))
    _choose_move(choice, block, reads.below, cost, group, reads.maps, code)


def choose_tiles(choice: np.ndarray, block: np.ndarray, lists: TileLists, codes: np.ndarray) -> None:
    """See policy_numpy.choose_tiles."""
    args = [x[axis] for axis in range(3) for x in (lists.start, lists.index, lists.count, lists.rest)]
    _choose_tiles(choice, block, *args, codes)


def price_tiles(
    block: np.ndarray,
    choice: np.ndarray,
    axis_of: np.ndarray,
    index_of: np.ndarray,
    sizes: np.ndarray,
    number: np.ndarray,
) -> int:
    """See policy_numpy.price_tiles."""
    return _price_tiles(block, choice, axis_of, index_of, sizes, number)
