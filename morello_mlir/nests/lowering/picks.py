"""Vectors of elements a few apart, picked from the vectors that hold them: rows of images under windows with a stride.

What the vectors of a row (of the steps of a window along it) pick from is read once, in whole vectors side by side.
Where those begin at a line of the image, they are half as dear as between two lines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

#: The first elements of two vectors' lanes one after the other, by lane.
Shuffle = Callable[[str, str, Sequence[int]], str]


@dataclass
class Picks:
    """The vectors of one row. wanted: by the place of its first lane, which lanes of a vector count; stride: from lane
    to lane; grid: a place at which a vector that is read begins; load: makes a vector of the so many elements (lanes,
    at most) from a place on. Nothing is read before the first of the elements that count, or beyond the last."""

    wanted: Mapping[int, Sequence[bool]]
    stride: int
    grid: int
    load: Callable[[int, int], str]
    shuffle: Shuffle
    parts: dict[int, str] = field(default_factory=dict)
    done: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.lanes = len(next(iter(self.wanted.values())))
        found = [at + i * self.stride for at, lanes in self.wanted.items() for i, x in enumerate(lanes) if x]
        self.low, self.high = min(found), max(found)

    def all(self) -> dict[int, str]:
        """By place, the vectors that are wanted: those of the fewest parts first, others being like them."""
        for at in sorted(self.wanted, key=lambda at: len(set(self._sources(at).values()))):
            self.done[at] = self._pick(at)
        return self.done

    def _sources(self, at: int) -> dict[int, int]:
        """By lane, where the vector begins that has its element; none for lanes that do not count."""
        last = max(self.low, self.high - self.lanes + 1)
        out = {}
        for i in range(self.lanes):
            x = at + i * self.stride
            if self.low <= x <= self.high:
                out[i] = min(max(x - (x - self.grid) % self.lanes, self.low), last)
        return out

    def _part(self, first: int) -> str:
        if first not in self.parts:
            self.parts[first] = self.load(first, min(self.lanes, self.high + 1 - first))
        return self.parts[first]

    def _pick(self, at: int) -> str:
        """One more vector. Lanes that another one has in another place are taken from there."""
        sources = self._sources(at)
        base, there = self._like(at, sources)
        for first in dict.fromkeys(sources[i] for i in sources if i not in there):
            own = {i: at + i * self.stride - first for i, f in sources.items() if f == first and i not in there}
            part = self._part(first)
            if base is None:
                base, there = part, own
                continue
            choice = [there.get(i, self.lanes + own.get(i, 0)) for i in range(self.lanes)]
            base, there = self.shuffle(base, part, choice), {i: i for i in (*there, *own)}
        assert base is not None, "a vector without an element is not read"
        if any(i != x for i, x in there.items()):
            base = self.shuffle(base, base, [there.get(i, 0) for i in range(self.lanes)])
        return base

    def _like(self, at: int, sources: Mapping[int, int]) -> tuple[str | None, dict[int, int]]:
        """(a vector that is there, by lane where its element is in it): that which saves the most shuffles; None where
        none saves any."""
        best: tuple[str | None, dict[int, int]] = (None, {})
        fewest = len(set(sources.values())) - 1
        for other, name in self.done.items():
            steps, odd = divmod(other - at, self.stride)
            has = self._sources(other) if not odd else {}
            there = {i: i - steps for i in sources if i - steps in has}
            left = len({f for i, f in sources.items() if i not in there}) or 1
            if there and left < fewest:
                best, fewest = (name, there), left
        return best
