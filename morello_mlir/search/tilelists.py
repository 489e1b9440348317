"""The tiles of every size of an axis, as flat arrays for the tile pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np


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
    return _flat(sizes, {size: tiles(size) for size in sizes})


def decisive_lists(sizes: list[int], tiles: Callable[[int], list[tuple[int, int, int]]]) -> tuple[np.ndarray, ...]:
    """`axis_lists` without the tiles that cannot be cheaper than another: those of which twice as large ones are tried.

    Of a size `s = q t + r`, tiles of 2 t cost no more than tiles of t: each of them costs at most 2 C(t), since t is a
    tile of it, and where q is odd what is left over costs at most C(t) + C(r), t being a tile of that as well. So at
    most two tiles of a size are left instead of all on the scale, and the costs of every cell are the same.
    """
    legal = {size: tiles(size) for size in sizes}
    tried = {size: {tile for tile, _, _ in ways} for size, ways in legal.items()}

    def is_beaten(size: int, tile: int, times: int, left: int) -> bool:
        doubled = 2 * tile in tried[size] and tile in tried[2 * tile]
        return doubled and (times % 2 == 0 or left == 0 or tile in tried.get(tile + left, ()))

    return _flat(sizes, {size: [w for w in ways if not is_beaten(size, *w)] for size, ways in legal.items()})


def _flat(sizes: list[int], tiles: Mapping[int, list[tuple[int, int, int]]]) -> tuple[np.ndarray, ...]:
    number = {s: i for i, s in enumerate(sizes)}
    start, index, count, rest = [0], [], [], []
    for size in sizes:
        for tile, times, left in tiles[size]:
            index.append(number[tile])
            count.append(times)
            rest.append(number[left] if left else -1)
        start.append(len(index))
    return tuple(
        np.array(x, t) for x, t in ((start, np.int64), (index, np.int64), (count, np.float64), (rest, np.int64))
    )
