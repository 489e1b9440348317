"""The tiles of every size of an axis, as flat arrays for the tile pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

#: For each of the axes m, k, n, which of its sizes (bool) make up cells that are known.
Known = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class TileLists:
    """Compressed rows for each of three axes: the tiles of size number i are `start[i]:start[i+1]` of the others.

    index: the tile's size number; count: how often it fits (float64, as costs are); rest: the size number of the
    remainder, or -1.
    """

    start: tuple[np.ndarray, np.ndarray, np.ndarray]
    index: tuple[np.ndarray, np.ndarray, np.ndarray]
    count: tuple[np.ndarray, np.ndarray, np.ndarray]
    rest: tuple[np.ndarray, np.ndarray, np.ndarray]


def axis_lists(sizes: list[int], tiles: Callable[[int], list[tuple[int, int, int]]]) -> tuple[np.ndarray, ...]:
    """start, index, count and rest of one axis. `tiles(size)` lists (tile size, count, remainder)."""
    number = {s: i for i, s in enumerate(sizes)}
    start, index, count, rest = [0], [], [], []
    for size in sizes:
        for tile, times, left in tiles(size):
            index.append(number[tile])
            count.append(times)
            rest.append(number[left] if left else -1)
        start.append(len(index))
    return tuple(
        np.array(x, t) for x, t in ((start, np.int64), (index, np.int64), (count, np.float64), (rest, np.int64))
    )
