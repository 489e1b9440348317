"""Convolutions as contractions: several loops that the output and one input step through evenly are one loop of the
Spec, though the other input, through which the window slides, has a stride for each of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, permutations, product
from typing import TypeAlias

from morello_mlir.spec import Edge, Lap, Side, Window

from .loops import Loop

#: (places, elements) of a step of each digit of a dim but the fastest, slowest first.
Digits: TypeAlias = Sequence[tuple[int, int]]
#: The same, of a dim with so many steps: (places, how many steps, elements of a step).
Counted: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True)
class Pad:
    """A dim of a padded buffer: elements from one step to the next, how many steps, and those that are the image's."""

    stride: int
    extent: int
    low: int
    high: int


def fold(loops: Sequence[Loop], window: int) -> list[Loop]:
    """`loops` with those joined that only input `window` keeps apart: all others step through them as one loop."""
    parallel = "mn"[window]
    out = [loop for loop in loops if loop.role not in (parallel, "k")]
    for role in (parallel, "k"):
        out += _joined([replace(loop, window=window) for loop in loops if loop.role == role], window)
    return out


def _joined(loops: list[Loop], window: int) -> list[Loop]:
    """Joins every two loops of which all operands but `window` make one."""
    while True:
        for outer, inner in permutations(loops, 2):
            pairs = enumerate(zip(outer.strides, inner.strides, strict=True))
            if all(i == window or (o or 0) == (n or 0) * inner.size for i, (o, n) in pairs):
                at = loops.index(inner)
                slower = [(unit * inner.size, jump) for unit, jump in outer.digits]
                digits = (*slower, (inner.size, outer.strides[window] or 0), *inner.digits)
                loops[at] = replace(inner, size=outer.size * inner.size, digits=digits)
                loops.remove(outer)
                break
        else:
            return loops


def unfold(loop: Loop) -> list[Loop]:
    """The loops, slowest first, that `fold` has made one: what is no dim of the Spec goes through memory evenly."""
    if loop.window is None or not loop.digits:
        return [loop]
    units = [loop.size, *(unit for unit, _ in loop.digits), 1]
    jumps = [*(jump for _, jump in loop.digits), loop.strides[loop.window]]
    return [
        replace(
            loop,
            size=outer // unit,
            strides=tuple(jump if i == loop.window else s and s * unit for i, s in enumerate(loop.strides)),
            digits=(),
        )
        for (outer, unit), jump in zip(pairwise(units), jumps, strict=True)
    ]


def window_of(sizes: Sequence[int], strides: Sequence[int], digits: Sequence[Digits]) -> Window | None:
    """The window of an operand of three logical dims; None where it lies as any other.

    strides: of the fastest digit of each dim; digits: the slower ones.
    """
    a, b = ([*digits[d], (1, strides[d])] for d in (1, 2))
    laps: list[Lap] = []
    for (u, i), (v, j) in sorted(product(_steps(a, sizes[1]), _steps(b, sizes[2])), key=lambda p: _saved(*p)):
        lap = _lap((u, i[0]), (v, j[0]))
        if lap.distinct(i[1], j[1]) < i[1] * j[1] and not any(u == o.first or v == o.second for o in laps):
            laps.append(lap)
    units = tuple(tuple(unit for unit, _ in d) for d in digits[1:])
    return Window(units, tuple(sorted(laps))).fitted(sizes)  # type: ignore[arg-type]


#: (unit, (elements, how many steps)) of a digit.
_Step = tuple[int, tuple[int, int]]


def _steps(digits: Sequence[tuple[int, int]], size: int) -> list[_Step]:
    units = [size, *(unit for unit, _ in digits)]
    return [(unit, (jump, outer // unit)) for (unit, jump), (outer, _) in zip(digits, pairwise(units), strict=True)]


def _lap(a: tuple[int, int], b: tuple[int, int]) -> Lap:
    """The lap of two digits, given as (unit, elements)."""
    common = math.gcd(a[1], b[1]) or 1
    return Lap(a[0], b[0], max(a[1] // common, 1), max(b[1] // common, 1))


def _saved(a: _Step, b: _Step) -> float:
    """The share of places that are distinct."""
    (u, (i, n)), (v, (j, m)) = a, b
    return float(_lap((u, i), (v, j)).distinct(n, m) / (n * m))


def edges_of(pads: Sequence[Pad], dims: Sequence[Sequence[Counted]], window: int, other: Sequence[int]) -> list[Edge]:
    """The edges of an operand.

    dims: the digits of its last two dims, slowest first. window: which of them (1 or 2) is that of the window. other:
    elements that the batch and the loops around the Spec reach over, each with the elements of a step.
    """
    found = [_edge(pad, dims, window, other) for pad in pads]
    return sorted({edge for edge in found if edge is not None and edge.share < 1})


def _edge(pad: Pad, dims: Sequence[Sequence[Counted]], window: int, other: Sequence[int]) -> Edge | None:
    """The edge along one dim of the buffer, where one digit of each dim goes through it, and others stay beside it."""
    block, small = pad.stride * pad.extent, 0
    through: list[list[Counted]] = [[], []]
    for dim, digits in enumerate(dims):
        for unit, count, jump in digits:
            span = (count - 1) * jump
            if span >= pad.stride and jump % block:
                through[dim].append((unit, count, jump))
            elif jump % block:
                small += span
    positions, taps = through[2 - window], through[window - 1]
    if len(taps) != 1 or len(positions) > 1 or any(jump % block for jump in other):
        return None
    tap = taps[0]
    # With one position there is no digit for it.
    size = math.prod(count for _, count, _ in dims[2 - window])
    position = positions[0] if positions else (size, 1, tap[2])
    common = math.gcd(position[2], tap[2])
    reach = sum((count - 1) * jump for _, count, jump in (position, tap))
    beside = small == 0 or (small < common and pad.stride % common == 0) or common % pad.stride == 0
    if reach + small >= block or small >= pad.stride or not beside:
        return None
    low, high = (-(-end * pad.stride // common) for end in (pad.low, pad.high))
    across, along = (Side(unit, count, jump // common) for unit, count, jump in (position, tap))
    return Edge(across, along, low, high, 3 - window)
