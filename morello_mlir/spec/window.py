"""Windows: how a tensor lies whose places along a dim are not all one stride apart, as the input of a convolution.

Along each of the last two dims places count like the digits of a number. Of the input of a 3 x 3 convolution in
[h, w, c], seen as a matrix, 56 positions along w make up one along h (`m%56`: a new line every 56 rows), and 192
neighbours in memory (3 pixels of 64 channels) one line of the window (`k%192`). A *lap* says that steps along two
digits lead to the same places: one row further is 64 columns further (`lap 1:1:1:64`, see `Lap`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from ..errors import SpecError
from .edge import Edge, parse_edge
from .layout import NUMBER


@dataclass(frozen=True, slots=True, order=True)
class Lap:
    """`reach` steps of the digit of the second-last dim that counts `first` places each come as far as `stride` steps
    of the digit of the last dim that counts `second` places each."""

    first: int
    second: int
    stride: int
    reach: int

    def __str__(self) -> str:
        return f"lap {self.first}:{self.second}:{self.stride}:{self.reach}"

    def exchanged(self) -> Lap:
        """The same of the tensor whose last two dims are exchanged."""
        return Lap(self.second, self.first, self.reach, self.stride)

    def distinct(self, a: Any, b: Any) -> Any:
        """How many places `a` steps of the first digit and `b` of the second lead to. (An upper bound where the strides
        leave gaps.)"""
        span = (a - 1) * self.stride + (b - 1) * self.reach + 1
        return least(span, a * b)


def least(a: Any, b: Any) -> Any:
    """Elementwise minimum of ints or arrays."""
    return (a <= b) * a + (a > b) * b


@dataclass(frozen=True, slots=True)
class Window:
    """units: for each of the last two dims, how many places one step of a digit counts, slowest digit first; that of
    the fastest digit, 1, is left out. Each is a multiple of the next. laps: which digits share places. edges: which
    places are known to hold zeros.

    Raises SpecError where units are no chain of multiples.
    """

    units: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    laps: tuple[Lap, ...] = ()
    edges: tuple[Edge, ...] = ()

    def __post_init__(self) -> None:
        for units in self.units:
            for a, b in pairwise((*units, 1)):
                if b < 1 or a <= b or a % b:
                    raise SpecError(f"window: {'%'.join(map(str, units))} is no chain of multiples")
        for lap in self.laps:
            if min(lap.first, lap.second, lap.stride, lap.reach) < 1:
                raise SpecError(f"window: {lap} is not positive")
        for edge in self.edges:
            sides = (edge.position, edge.taps)
            if min(n for side in sides for n in (side.unit, side.count, side.step)) < 1 or edge.low > edge.high:
                raise SpecError(f"window: {edge.text(('0', '1', '2'))} is none")

    def __bool__(self) -> bool:
        return any(self.units) or bool(self.laps or self.edges)

    def exchanged(self) -> Window:
        """The window of the tensor whose last two dims are exchanged."""
        laps, edges = sorted(lap.exchanged() for lap in self.laps), sorted(edge.exchanged() for edge in self.edges)
        return Window(self.units[::-1], tuple(laps), tuple(edges))

    def of(self, dim: int) -> tuple[int, ...]:
        """The units of logical dim `dim` (1 or 2; a batch has none)."""
        return self.units[dim - 1] if dim else ()

    def without(self, dim: int) -> Window | None:
        """The window of a tensor that reaches over no more than the first unit of `dim`; None where nothing is left."""
        unit = self.of(dim)[0]
        units = tuple(u[1:] if d == dim - 1 else u for d, u in enumerate(self.units))
        laps = tuple(lap for lap in self.laps if (lap.first, lap.second)[dim - 1] != unit)
        edges = tuple(e for e in self.edges if e.along == dim or e.taps.unit <= unit)
        return Window(units, laps, edges) or None  # type: ignore[arg-type]

    def fitted(self, sizes: Sequence[int]) -> Window | None:
        """The window of a tensor of logical `sizes` (three of them) without what does not matter at that size."""
        units = tuple(tuple(u for u in self.units[d] if u < sizes[d + 1]) for d in (0, 1))
        kept = Window(units)  # type: ignore[arg-type]
        laps = []
        for lap in self.laps:
            a, b = kept._count(1, lap.first, sizes[1]), kept._count(2, lap.second, sizes[2])
            if lap.distinct(a, b) < a * b:
                laps.append(lap)
        edges = tuple(e for e in self.edges if e.steps(sizes[3 - e.along]))
        return Window(kept.units, tuple(laps), edges) or None

    @property
    def without_edges(self) -> Window | None:
        """The same, and nothing is known of what its places hold."""
        return replace(self, edges=()) or None

    def _count(self, dim: int, unit: int, size: Any) -> Any:
        """Steps of the digit with this unit over `size` places."""
        steps = -(-size // unit)
        outer = [u for u in self.of(dim) if u > unit]
        return least(steps, outer[-1] // unit) if outer else steps

    def counts(self, dim: int, size: Any) -> list[Any]:
        """Steps of every digit of `dim` over `size` places, slowest first."""
        return [self._count(dim, unit, size) for unit in (*self.of(dim), 1)]

    def shape(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """The shape of the tensor digit by digit, batch first."""
        return (sizes[0], *(int(c) for d in (1, 2) for c in self.counts(d, sizes[d])))

    def fills(self, inner: int) -> bool:
        """Whether steps along the other dim lead to places between those of the fastest digit of dim `inner`, which are
        apart: of the neighbours of a line that a window goes over two at a time."""
        at = (lambda lap: (lap.second, lap.reach)) if inner == 2 else (lambda lap: (lap.first, lap.stride))
        return any(unit == 1 and step > 1 for unit, step in map(at, self.laps))

    def runs(self, inner: int, sizes: Sequence[Any], gaps: bool = False) -> tuple[Any, Any]:
        """(how many, elements in each) of the runs of places that follow one another along the fastest digit of dim
        `inner`, each place counted once. gaps: where places of the other dim lie between them, those that are left out
        count as well."""
        units = [(d, u) for d in (1, 2) for u in (*self.of(d), 1)]
        left = set(units)
        rows, row = 1, 1
        for lap in self.laps:
            pair = ((1, lap.first), (2, lap.second))
            a, b = (self._count(d, u, sizes[d]) for d, u in pair)
            distinct = lap.distinct(a, b)
            left -= set(pair)
            if (inner, 1) not in pair:
                rows = rows * distinct
                continue
            # Where no place is shared, rows are rows.
            shared = distinct < a * b
            own, others = (a, b) if inner == 1 else (b, a)
            if gaps:
                row = (a - 1) * lap.stride + (b - 1) * lap.reach + 1
                continue
            row = shared * distinct + (1 - shared) * own
            rows = rows * (shared + (1 - shared) * others)
        for d, u in left:
            count = self._count(d, u, sizes[d])
            if (d, u) == (inner, 1):
                row = count
            else:
                rows = rows * count
        return rows, row

    def text(self, names: Sequence[str]) -> list[str]:
        """The parts of a tensor spec that say this; `parse` reads each."""
        out = [f"{names[d + 1]}%{'%'.join(map(str, units))}" for d, units in enumerate(self.units) if units]
        return [*out, *(str(lap) for lap in self.laps), *(edge.text(names) for edge in self.edges)]


_UNITS = re.compile(rf"([A-Za-z_]\w*)((?:%{NUMBER})+)$")
_LAP = re.compile(rf"lap\s+({NUMBER}):({NUMBER}):({NUMBER}):({NUMBER})$")


def is_part(text: str) -> bool:
    """Whether `text` reads as a part of a window."""
    return bool(_UNITS.match(text) or _LAP.match(text) or text.startswith("edge "))


def parse_window(parts: Sequence[str], names: Sequence[str]) -> Window | None:
    """Reads what `Window.text` printed. Raises SpecError."""
    units: dict[int, tuple[int, ...]] = {}
    laps, edges = [], []
    for part in parts:
        if part.startswith("edge "):
            edge = parse_edge(part, names)
            if edge is None:
                raise SpecError(f"window: cannot read '{part}'")
            edges.append(edge)
        elif m := _LAP.match(part):
            laps.append(Lap(*map(int, m.groups())))
        elif m := _UNITS.match(part):
            if m[1] not in names[1:] or names.index(m[1]) in units:
                raise SpecError(f"window '{part}': expected one of {', '.join(names[1:])}, each once")
            units[names.index(m[1])] = tuple(int(u) for u in m[2][1:].split("%"))
    return Window((units.get(1, ()), units.get(2, ())), tuple(laps), tuple(edges)) or None
