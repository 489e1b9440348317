"""Boxes: a block of a table as axis-parallel boxes of equal cells, structure of arrays.

`lo` and `hi` (inclusive) are integer points, `action` is a number, and `cost`, where it is kept, the exact cost divided
by the volume of the Spec as a reduced fraction: neighbours that only repeat the same work have equal ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations
from types import ModuleType

import numpy as np

from .native import kernels

#: What a look-up answers where no box is.
NOTHING = -1


@lru_cache(maxsize=1)
def merge_kernel() -> ModuleType:
    """The compiled kernel, or the NumPy one where numba cannot be imported."""
    return kernels("merge")


@dataclass(frozen=True, eq=False)
class Boxes:
    """Disjoint boxes in a grid of `shape`.

    lo, hi: [n, d] uint8 or uint16, inclusive corners; action: [n] int32; cost: [n, 2] int64 (numerator, denominator),
    or None where the boxes are a policy only.
    """

    shape: tuple[int, ...]
    lo: np.ndarray
    hi: np.ndarray
    action: np.ndarray
    cost: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.action)

    @property
    def cells(self) -> int:
        """Grid cells that lie in some box."""
        return int(np.prod(self.hi.astype(np.int64) - self.lo + 1, axis=1).sum()) if len(self) else 0

    def find(self, point: tuple[int, ...]) -> int:
        """The number of the box that `point` lies in, or NOTHING."""
        inside = np.nonzero(((self.lo <= point) & (self.hi >= point)).all(axis=1))[0]
        return int(inside[0]) if len(inside) else NOTHING

    def find_many(self, points: np.ndarray) -> np.ndarray:
        """`find` for every row of `points[p, d]`, through the dense grid: for batches."""
        out = np.full(len(points), NOTHING, np.int64)
        inside = ((points >= 0) & (points < self.shape)).all(axis=1)
        out[inside] = self.grid[tuple(points[inside].T)]
        return out

    @property
    def grid(self) -> np.ndarray:
        """For every cell the number of its box, or NOTHING; made once."""
        cached = self.__dict__.get("_grid")
        if cached is None:
            cached = np.full(self.shape, NOTHING, np.int32)
            merge_kernel().paint(cached, self.lo, self.hi, np.arange(len(self), dtype=np.int32))
            self.__dict__["_grid"] = cached
        return cached

    def actions(self) -> np.ndarray:
        """The action at every cell, or NOTHING: the inverse of `compress`."""
        return np.append(self.action, np.int32(NOTHING))[self.grid]

    def costs(self, volume: np.ndarray) -> np.ndarray:
        """The exact cost at every cell, given the volume of every cell's Spec; infinite where there is no box."""
        if self.cost is None:
            raise ValueError("these boxes hold a policy only")
        top, bottom = (np.append(self.cost[:, i], 0)[self.grid] for i in (0, 1))
        known = bottom > 0
        # The denominator divides the volume: no rounding.
        whole = top * (np.broadcast_to(volume, self.shape) // np.maximum(bottom, 1))
        return np.where(known, whole.astype(np.float64), np.inf)


def normalised(cost: np.ndarray, volume: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """cost / volume as reduced fractions: numerators and denominators, int64. Costs are whole numbers."""
    whole = np.where(np.isfinite(cost), cost, 0).astype(np.int64)
    bottom = np.broadcast_to(np.asarray(volume, np.int64), whole.shape)
    divisor = np.gcd(whole, bottom)
    return whole // divisor, bottom // divisor


def compress(
    action: np.ndarray,
    cost: np.ndarray | None = None,
    volume: np.ndarray | None = None,
    orders: Sequence[Sequence[int]] | None = None,
) -> Boxes:
    """Boxes of equal action (and, with `cost` and `volume`, of equal cost per volume). Cells below 0 get none.

    The merge is greedy along one axis after the other. orders: the orders of the axes to try, of which the best is
    kept; by default all of them, so that the result is at least as good as greedy merging in any order.
    """
    shape = action.shape
    value, fractions = _values(action, cost, volume)
    start, extent, number = _best_merge(value, orders)
    lo = np.stack(np.unravel_index(start, shape), 1) if len(start) else np.zeros((0, len(shape)), np.int64)
    kind = np.uint8 if max(shape, default=0) <= 256 else np.uint16
    at = action.reshape(-1)[start].astype(np.int32)
    kept = fractions[number] if fractions is not None else None
    return Boxes(shape, lo.astype(kind), (lo + extent - 1).astype(kind), at, kept)


def _values(
    action: np.ndarray, cost: np.ndarray | None, volume: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray | None]:
    """A number for every distinct content of a cell (negative: no box), and the fraction that each number has."""
    if cost is None or volume is None:
        return action.astype(np.int32), None
    top, bottom = normalised(cost, volume)
    rows = np.stack([action.astype(np.int64).reshape(-1), top.reshape(-1), bottom.reshape(-1)], 1)
    order = np.lexsort(rows.T)
    new = np.concatenate([[True], (rows[order][1:] != rows[order][:-1]).any(axis=1)])
    number = np.empty(len(rows), np.int32)
    number[order] = np.cumsum(new) - 1
    fractions = rows[order][new][:, 1:]
    return np.where(action < 0, NOTHING, number.reshape(action.shape)).astype(np.int32), fractions


Parts = tuple[np.ndarray, np.ndarray, np.ndarray]


def _best_merge(value: np.ndarray, orders: Sequence[Sequence[int]] | None) -> Parts:
    """start (flat), extent and value of the boxes of the best order."""
    shape = value.shape
    last = np.zeros(value.size, np.int32)
    start = np.nonzero(value.reshape(-1) >= 0)[0]
    cells = start, np.ones((len(start), len(shape)), np.int32), value.reshape(-1)[start]
    axes = [a for a in range(len(shape)) if shape[a] > 1]
    wanted = list(permutations(axes)) if orders is None else [tuple(a for a in o if a in axes) for o in orders]
    return _merged(cells, sorted(set(wanted)), shape, last)


def _merged(boxes: Parts, orders: list[tuple[int, ...]], shape: tuple[int, ...], last: np.ndarray) -> Parts:
    """The best of the `orders` from here on; those that begin alike share their first merge."""
    best = boxes
    for axis in sorted({o[0] for o in orders if o}):
        below = [o[1:] for o in orders if o and o[0] == axis]
        found = _merged(merge_kernel().merge_axis(*boxes, shape, axis, last), below, shape, last)
        if len(found[0]) < len(best[0]):
            best = found
    return best


def volume_of(sizes: Sequence[Sequence[int]]) -> np.ndarray:
    """The volume (product of the sizes) of every cell of a grid with these axes and a limit axis, `[.., 1]`."""
    volume = np.ones((1,) * len(sizes), np.int64)
    for grid in np.ix_(*(np.array(s, np.int64) for s in sizes)):
        volume = volume * grid
    return volume[..., None]
