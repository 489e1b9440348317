"""Places of operands that have a window (see `morello_mlir.spec.Window`): digit by digit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..spec import Edge, Window
from .builder import Builder, Index
from .views import Operand, View


@dataclass(frozen=True, slots=True)
class Digit:
    """One of the loops that k goes through in a window: how many steps, and elements of lhs and of rhs from one to the
    next.

    bounds: where it goes through a part of its steps, the first one and the one after the last, as run time knows them.
    runs: where steps are for some rows of a tile only (see `Edge.runs`), each for which.
    """

    count: int
    lhs: int
    rhs: int
    bounds: tuple[Index, Index] | None = None
    runs: tuple[tuple[int, int, int, int], ...] = ()


def digits_of(b: Builder, sizes: Sequence[int], lhs: Operand, rhs: View) -> list[Digit]:
    """The digits of k of a tile of `sizes`, slowest first."""
    view, (_, rows, depth, _) = lhs.view, sizes
    units = view.of(2) or rhs.of(1)
    counts = [int(c) for c in Window((units, ())).counts(1, depth)]
    x, y = (v.digits(d) if v.of(d) else [(u, u * v.stride(d)) for u in (*units, 1)] for v, d in ((view, 2), (rhs, 1)))
    found = [Digit(n, i, j) for n, (_, i), (_, j) in zip(counts, x, y, strict=True)]
    places, single = [*units, 1], []
    for edge in edges_at(view, rows, depth):
        here = lhs.begin(edge)
        if edge.taps.unit == depth:
            single.append(Digit(1, 0, 0, _bounds(b, edge, here, 1)))
            continue
        at = places.index(edge.taps.unit)
        if edge.moves:
            found[at] = replace(found[at], bounds=_bounds(b, edge, here, found[at].count))
        else:
            found[at] = replace(found[at], runs=tuple(edge.runs()))
    return [*single, *found]


def edges_at(lhs: View, rows: int, depth: int) -> list[Edge]:
    """The edges that a tile of so many rows and k steps knows."""
    return [e for e in lhs.edges if e.along == 1 and e.fits(rows) and e.steps(depth)]


def _bounds(b: Builder, edge: Edge, begin: tuple[Index, Index], count: int) -> tuple[Index, Index]:
    """Which of `count` steps of the taps, from where a tile begins, find the image (see `Edge.inside`)."""
    position, tap = begin
    here = b.add(b.mul(position, edge.position.step), b.mul(tap, edge.taps.step))
    reach = edge.taps.step
    first, after = (
        b.least(b.div(b.add(b.most(b.minus(end, here), 0), reach - 1), reach), count) for end in (edge.low, edge.high)
    )
    return first, after


def place_of(b: Builder, digits: Sequence[tuple[int, int]], index: Index) -> Index:
    """Elements from the start of a dim to place `index` on it. digits: see `View.digits`."""
    at: Index = 0
    for unit, jump in digits:
        steps = b.div(index, unit)
        at = b.add(at, b.mul(steps, jump))
        index = b.add(index, b.mul(steps, -unit))
    return at
