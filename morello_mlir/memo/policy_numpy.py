"""The kernels of policies in plain NumPy: the reference that tests hold the compiled ones against.

A policy is `choice[m, k, n, limit]`, int16: a number into the actions of its table, or -1. `block` holds the costs.
"""

from __future__ import annotations

import numpy as np

from ..search.tables import Reads
from ..search.tilelists import TileLists


def choose_move(choice: np.ndarray, block: np.ndarray, reads: Reads, code: int) -> None:
    """`code` wherever there is no choice yet and the move gives the cell's cost."""
    cost, group = (np.broadcast_to(x, block.shape[:3])[..., None] for x in (reads.cost, reads.group))
    at = reads.maps[group[..., 0]]
    value = np.take_along_axis(reads.below, np.maximum(at, 0), -1) + cost
    choice[(choice < 0) & (at >= 0) & (value == block) & np.isfinite(block)] = code


def choose_tiles(choice: np.ndarray, block: np.ndarray, lists: TileLists, codes: np.ndarray) -> None:
    """The first tile that gives the cost of a cell without a choice: those that divide before those that leave a
    remainder, dims in order, sizes ascending. `codes[axis, size number]` are the actions' numbers."""
    for at in np.ndindex(*block.shape[:3]):
        cell, chosen = block[at], choice[at]
        for remainder in (False, True):
            for axis in range(3):
                first, last = lists.start[axis][at[axis] : at[axis] + 2]
                for t in range(first, last):
                    if (lists.rest[axis][t] >= 0) == remainder:
                        index = list(at)
                        index[axis] = lists.index[axis][t]
                        value = block[tuple(index)] * lists.count[axis][t]
                        if remainder:
                            index[axis] = lists.rest[axis][t]
                            value = value + block[tuple(index)]
                        explained = (chosen < 0) & (value == cell) & np.isfinite(cell)
                        chosen[explained] = codes[axis, lists.index[axis][t]]


def price_tiles(
    block: np.ndarray,
    choice: np.ndarray,
    axis_of: np.ndarray,
    index_of: np.ndarray,
    sizes: np.ndarray,
    number: np.ndarray,
) -> int:
    """The costs of cells that are tiled, from those of smaller sizes, in one ascending sweep, where they are lower.

    axis_of, index_of: the axis of an action (-1: not a tile) and the number of its size; sizes[axis, number] and back.
    Returns how often the policy cannot be right: tiles that are no smaller than their cell, cells with a choice and no
    cost, and cells without an implementation (-1) that have one. Choices below -1 are not looked at.
    """
    wrong = 0
    for at in np.ndindex(*block.shape[:3]):
        for x, code in enumerate(choice[at]):
            if code >= 0 and axis_of[code] >= 0:
                axis = axis_of[code]
                index = list(at)
                size, tile = sizes[axis, at[axis]], sizes[axis, index_of[code]]
                if index_of[code] >= 0 and tile < size:
                    index[axis] = index_of[code]
                    value = block[(*index, x)] * (size // tile)
                    if size % tile:
                        index[axis] = number[axis, size % tile]
                        value += block[(*index, x)]
                    block[(*at, x)] = min(block[(*at, x)], value)
                else:
                    wrong += 1
            if code >= -1:
                wrong += bool((code >= 0) != (block[(*at, x)] < np.inf))
    return wrong
