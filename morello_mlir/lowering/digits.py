"""Places of operands that have a window (see `morello_mlir.spec.Window`): digit by digit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..spec import Window
from .builder import Builder, Index
from .views import View


@dataclass(frozen=True, slots=True)
class Digit:
    """One of the loops that k goes through in a window: how many steps, and elements of lhs and of rhs from one to the
    next."""

    count: int
    lhs: int
    rhs: int


def digits_of(depth: int, lhs: View, rhs: View) -> list[Digit]:
    """The digits of k, slowest first."""
    units = lhs.of(2) or rhs.of(1)
    counts = [int(c) for c in Window((units, ())).counts(1, depth)]
    x, y = (v.digits(d) if v.of(d) else [(u, u * v.stride(d)) for u in (*units, 1)] for v, d in ((lhs, 2), (rhs, 1)))
    return [Digit(n, i, j) for n, (_, i), (_, j) in zip(counts, x, y, strict=True)]


def place_of(b: Builder, digits: Sequence[tuple[int, int]], index: Index) -> Index:
    """Elements from the start of a dim to place `index` on it. digits: see `View.digits`."""
    at: Index = 0
    for unit, jump in digits:
        steps = b.div(index, unit)
        at = b.add(at, b.mul(steps, jump))
        index = b.add(index, b.mul(steps, -unit))
    return at
