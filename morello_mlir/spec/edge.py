"""Edges: which places of a padded image lie beyond it, and so hold zeros that need not be multiplied."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from .layout import NUMBER


@dataclass(frozen=True, slots=True, order=True)
class Side:
    """A digit of a dim of a tensor with a window: `count` steps of `unit` places each, `step` on in the image."""

    unit: int
    count: int
    step: int

    def text(self, name: str) -> str:
        return f"{name} {self.unit}x{self.count}:{self.step}"


@dataclass(frozen=True, slots=True, order=True)
class Edge:
    """Step a of `position` and step b of `taps`, together, find a zero unless
    low <= a * position.step + b * taps.step < high.

    along: the dim (1 or 2) of the positions; the other one is that of the window, whose steps are added up. It is a
    fact about the contents: whoever does not use it multiplies zeros, with the same result. (Where filters hold
    infinities or NaN the result is another: see `docs/convolutions.md`.)
    """

    position: Side
    taps: Side
    low: int
    high: int
    along: int = 1

    def inside(self, at: int) -> tuple[int, int]:
        """The steps of `taps`, from the first to the one after the last, that find the image from position `at`."""
        first, after = (
            min(max(-(-(end - at * self.position.step) // self.taps.step), 0), self.taps.count)
            for end in (self.low, self.high)
        )
        return first, max(first, after)

    @property
    def found(self) -> int:
        """How many pairs of steps find the image."""
        return sum(after - first for first, after in map(self.inside, range(self.position.count)))

    @property
    def share(self) -> float:
        """The share of all pairs of steps that find the image."""
        return self.found / (self.position.count * self.taps.count)

    def runs(self) -> list[tuple[int, int, int, int]]:
        """The steps of `taps` in runs that the same positions find: (first step, the one after the last, first
        position, the one after the last); those that none finds are left out."""
        inside = [self.inside(a) for a in range(self.position.count)]
        ends = sorted({end for pair in inside for end in pair})
        runs = []
        for first, after in pairwise(ends):
            there = [a for a, (low, high) in enumerate(inside) if low <= first < high]
            if there:
                runs.append((first, after, there[0], there[-1] + 1))
        return runs

    @property
    def moves(self) -> bool:
        """Whether places within one step of the positions are neighbours of one another: a tile of these has a
        position of its own. Else the positions are the rows of a tile."""
        return self.position.unit > 1

    def fits(self, places: Any) -> Any:
        """Whether a tile of so many places knows its positions: it lies in one, or has all of them. (Ints or
        arrays.)"""
        return places <= self.position.unit if self.moves else places == self.position.count

    def steps(self, depth: Any) -> Any:
        """Whether a tile of so many steps along the window is made of steps of `taps`: of all of them, again and again,
        or of some where the tile has a position of its own. (Ints or arrays.)"""
        whole = self.taps.unit * self.taps.count
        return (depth % whole == 0) | (self.moves & (depth < whole) & (depth % self.taps.unit == 0))

    def exchanged(self) -> Edge:
        """The same of the tensor whose last two dims are exchanged."""
        return replace(self, along=3 - self.along)

    def text(self, names: Sequence[str]) -> str:
        position, taps = self.position.text(names[self.along]), self.taps.text(names[3 - self.along])
        return f"edge {position} {taps} in {self.low}:{self.high}"


_SIDE = rf"([A-Za-z_]\w*)\s+({NUMBER})x({NUMBER}):({NUMBER})"
_EDGE = re.compile(rf"edge\s+{_SIDE}\s+{_SIDE}\s+in\s+({NUMBER}):({NUMBER})$")


def parse_edge(text: str, names: Sequence[str]) -> Edge | None:
    """Reads what `Edge.text` printed; None of any other text, or other dims than the last two."""
    m = _EDGE.match(text)
    if m is None or sorted((m[1], m[5])) != sorted(names[1:]):
        return None
    position, taps = (Side(*(int(m[i]) for i in range(at, at + 3))) for at in (2, 6))
    return Edge(position, taps, int(m[9]), int(m[10]), names.index(m[1]))
