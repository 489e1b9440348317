"""The kernels: leaves of a schedule as vector code. Here is `broadcast_fma`, and where the others are."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from ..spec import dtype_bytes
from ..targets import PAGE
from .builder import Builder, Index
from .bundle import Ask, Bundle, is_straight, unroll
from .digits import Digit, digits_of, edges_at
from .dots import dot_dpbf16, dot_dpbusd, dot_fma
from .groups import dpbf16, dpbusd, maddwd
from .narrow import Together, pair, spreads
from .plan import Sizes
from .scalar import scalar
from .views import Flat, Operand

_LINE = 64
#: Multiply-adds between asking for a line of rhs and using it: some hundred cycles, what the last-level cache takes.
_AHEAD = 144
#: The same for what was packed ahead: what memory takes. It may reach into the slack behind the last panel.
_STREAM = 768

#: K steps of the inner digits of a window that are emitted without a loop.
_FEW = 16


@dataclass(frozen=True, slots=True)
class _Strides:
    """Element strides of the operands of a k step, and where the vectors of a rhs row start and how wide they are."""

    lhs_row: int
    lhs_step: int
    rhs_step: int
    rhs_lane: int
    widths: tuple[int, ...]


def broadcast_fma(
    b: Builder,
    sizes: Sizes,
    lhs: Operand,
    rhs: Operand,
    tile: Bundle,
    looped: Index | None = None,
    ask: Ask | None = None,
) -> Bundle:
    """Adds lhs @ rhs to a register tile: a k step loads the vectors of a row of rhs and broadcasts elements of lhs.

    looped: how many k steps the loop takes (a multiple of `unroll`), where only run time knows; the depth in `sizes` is
    then that of one iteration and what follows the loop. ask: lines that are wanted next.
    """
    depth, lanes, step = sizes[2], b.machine.lanes, unroll(tile.rows, tile.vectors)
    windowed = bool(lhs.view.of(2) or rhs.view.of(1) or edges_at(lhs.view, tile.rows, depth))
    # Panels are padded with zeros: whole vectors may be read.
    available = max(sizes[3], rhs.view.packed[1] if rhs.view.packed else 0)
    widths = tuple(min(lanes, available - v * lanes) for v in range(tile.vectors))
    s = _Strides(lhs.view.stride(1), lhs.view.stride(2), rhs.view.stride(1), rhs.view.stride(2), widths)
    further = 0 if looped is None else b.add(looped, -step)
    a, w = lhs.flat(b, b.mul(further, s.lhs_step)), rhs.flat(b, b.mul(further, s.rhs_step))
    if windowed:
        ahead = _ahead(s, tile, rhs) if rhs.view.ahead else 0
        digits = _in_order(digits_of(b, sizes, lhs, rhs.view), s, tile)
        return _through_window(b, (a, w), (0, 0), s, tile, (digits, ahead))
    if looped is None and is_straight(tile.rows, tile.vectors, depth):
        step = depth
    together, start = Together.of(b, sizes, lhs, rhs, step), tile.values
    if together:
        tile = tile.with_values([b.zeros()] * tile.rows)
    after = depth % step
    whole: Index = depth - after if looped is None else looped
    steps = partial(_steps, b, a, w, s=s, together=together, in_order=_comes_in_order(s, tile, rhs, b.machine.dtype))
    if whole:
        with b.carrying_loop(0, whole, step, tile.values, b.machine.vector()) as (k, carried):
            at = (b.mul(k, s.lhs_step), b.mul(k, s.rhs_step))
            if ask and not ask.own:
                _ask_next(b, a if ask.lines else w, ask, s, (k, step))
            elif ask and ask.along:
                if _ahead(s, tile, rhs):
                    _ask(b, w, b.add(b.mul(k, s.rhs_step), ask.along), s, step)
            elif ahead := ask.steps if ask else _ahead(s, tile, rhs):
                # Behind a panel that was packed ahead lies the next one, which is wanted next.
                last = b.add(k, ahead) if rhs.view.ahead else b.least(b.add(k, ahead), b.add(whole, -step))
                _ask(b, w, b.mul(last, s.rhs_step), s, step)
            carried.results = steps(at=at, tile=tile.with_values(carried.args), count=step)
        tile = tile.with_values(carried.results)
    if after:
        at = (b.mul(whole, s.lhs_step), b.mul(whole, s.rhs_step))
        tile = tile.with_values(steps(at=at, tile=tile, count=after))
    return tile.with_values(together.summed(b, tile.values, start)) if together else tile


def _ahead(s: _Strides, tile: Bundle, rhs: Operand) -> int:
    """How many k steps before they are needed the lines of a row of rhs are asked for; 0: they are not.

    A kernel that walks down a strip of rhs in place finds each row in other lines, which no hardware foresees:
    from the last-level cache it would wait for every row. Panels that were packed ahead come from there or from memory,
    faster than hardware foresees. Where the loads of a step leave room, asking costs nothing.
    """
    line = _LINE // dtype_bytes(rhs.view.dtype)
    width = sum(s.widths)
    near = not rhs.view.ahead and (rhs.view.packed or s.rhs_step < width + line)
    loads, fmas = tile.rows + tile.vectors + -(-width // line), tile.rows * tile.vectors
    if near or s.rhs_lane != 1 or loads > fmas:
        return 0
    return -(-(_STREAM if rhs.view.ahead else _AHEAD) // fmas)


def _comes_in_order(s: _Strides, tile: Bundle, rhs: Operand, dtype: str) -> bool:
    """Whether lines of rhs are to be read in the order in which they lie: LLVM orders loads as it likes, and hardware
    does not foresee lines whose last is wanted first.

    Of rows pages apart, and of panels that were packed ahead: they come from the last-level cache or from memory. Where
    each multiply-add of a single row takes its vector from memory itself, rows were faster as they came.
    """
    if rhs.view.packed or s.rhs_lane != 1:
        return rhs.view.ahead
    alone = tile.rows == 1 and rhs.view.dtype == dtype
    return s.rhs_step * dtype_bytes(rhs.view.dtype) >= PAGE and not alone


def _ask_next(b: Builder, w: Flat, ask: Ask, s: _Strides, at: tuple[Index, int]) -> None:
    """Asks for the part of the next panel, in `w`, that falls to the iteration at (k, steps)."""
    k, steps = at
    line = _LINE // dtype_bytes(w.dtype)
    count = ask.lines or -(-steps * sum(s.widths) // (line * ask.trips))
    start = b.add(ask.at, b.mul(b.div(k, steps), count * line))
    for i in range(count):
        b.prefetch(w, b.add(start, i * line), locality=2)


def _through_window(
    b: Builder,
    inputs: tuple[Flat, Flat],
    at: tuple[Index, Index],
    s: _Strides,
    tile: Bundle,
    left: tuple[list[Digit], int],
) -> Bundle:
    """The steps of all digits that are left, from `at` (offsets in lhs and rhs) on: loops, those inside of which there
    is little to do without one. The last part of `left`: how far ahead rows of rhs are asked for, in steps (0: they are
    not)."""
    digits, ahead = left
    (here, *below), (a, w) = digits, inputs
    if here.runs:
        return _at_edges(b, inputs, at, s, tile, left)
    if here.bounds and here.bounds[0] == here.bounds[1]:
        return tile
    bounds = here.bounds
    if not bounds and below and (math.prod(d.count for d in digits) > _FEW or _comes_back(here, s, tile)):
        bounds = 0, here.count
    if bounds:
        with b.carrying_loop(*bounds, 1, tile.values, b.machine.vector()) as (i, carried):
            start = b.add(at[0], b.mul(i, here.lhs)), b.add(at[1], b.mul(i, here.rhs))
            rest = below or [Digit(1, here.lhs, here.rhs)]
            inside = _through_window(b, inputs, start, s, tile.with_values(carried.args), (rest, ahead))
            carried.results = list(inside.values)
        return tile.with_values(carried.results)
    if below:
        for i in range(here.count):
            start = b.add(at[0], i * here.lhs), b.add(at[1], i * here.rhs)
            tile = _through_window(b, inputs, start, s, tile, (below, ahead))
        return tile
    step, s = unroll(tile.rows, tile.vectors), replace(s, lhs_step=here.lhs, rhs_step=here.rhs)
    after = here.count % step
    whole = here.count - after if here.count > step else 0
    if whole:
        with b.carrying_loop(0, whole, step, tile.values, b.machine.vector()) as (k, carried):
            start = b.add(at[0], b.mul(k, here.lhs)), b.add(at[1], b.mul(k, here.rhs))
            if ahead:
                _ask(b, w, b.add(start[1], ahead * here.rhs), s, step)
            carried.results = _steps(b, a, w, start, s, tile.with_values(carried.args), step)
        tile = tile.with_values(carried.results)
    if here.count > whole:
        start = b.add(at[0], whole * here.lhs), b.add(at[1], whole * here.rhs)
        tile = tile.with_values(_steps(b, a, w, start, s, tile, here.count - whole))
    return tile


def _at_edges(
    b: Builder,
    inputs: tuple[Flat, Flat],
    at: tuple[Index, Index],
    s: _Strides,
    tile: Bundle,
    left: tuple[list[Digit], int],
) -> Bundle:
    """As `_through_window`, where steps of the slowest digit are for some rows only."""
    (here, *below), ahead = left
    values = list(tile.values)
    for first, after, row, beyond in here.runs:
        part = slice(row * tile.vectors, beyond * tile.vectors)
        rows = Bundle(beyond - row, tile.vectors, tile.tail, values[part])
        start = b.add(at[0], first * here.lhs + row * s.lhs_row), b.add(at[1], first * here.rhs)
        digits = [Digit(after - first, here.lhs, here.rhs), *below]
        values[part] = _through_window(b, inputs, start, s, rows, (digits, ahead)).values
    return tile.with_values(values)


def _comes_back(digit: Digit, s: _Strides, tile: Bundle) -> bool:
    """Whether steps of a digit broadcast again what other rows of the tile have had, as those along a line do where
    rows are neighbours in it; where these are two apart, every second step does. Of many steps those of one iteration
    meet in straight-line code."""
    together = unroll(tile.rows, tile.vectors)
    together = digit.count if digit.count < 2 * together else together
    steps = (step * digit.lhs for step in range(1, together))
    return any(0 < at < tile.rows * s.lhs_row and at % s.lhs_row == 0 for at in steps)


def _in_order(digits: list[Digit], s: _Strides, tile: Bundle) -> list[Digit]:
    """The digits as loops, slowest first. Steps that come back to the same elements are a loop around others: without a
    loop between them LLVM would keep what they share in registers, which are the sums'."""
    inner = next((i for i in reversed(range(len(digits))) if not _comes_back(digits[i], s, tile)), None)
    return digits if inner is None else [*digits[:inner], *digits[inner + 1 :], digits[inner]]


def _ask(b: Builder, w: Flat, base: Index, s: _Strides, count: int) -> None:
    """Asks for the lines of `count` rows of rhs from element `base` on."""
    line = _LINE // dtype_bytes(w.dtype)
    for step in range(count):
        for at in range(0, sum(s.widths), line):
            b.prefetch(w, b.add(base, step * s.rhs_step + at))


def _steps(
    b: Builder,
    a: Flat,
    w: Flat,
    at: tuple[Index, Index],
    s: _Strides,
    tile: Bundle,
    count: int,
    together: Together | None = None,
    in_order: bool = False,
) -> list[str]:
    """`count` k steps from `at` (offsets in lhs and rhs), without a loop. in_order: see `_comes_in_order`."""
    if together:
        return together.steps(b, (a, w), at, (s.lhs_row, s.rhs_step), tile.values, count)
    values, line = list(tile.values), _LINE // dtype_bytes(w.dtype)
    spread = spreads(b, tile.rows, tile.vectors, s.lhs_step, a.dtype)
    pairs: dict[int, tuple[str, str]] = {}
    for step in range(count):
        row, vectors = b.add(at[1], step * s.rhs_step), []
        for v, width in enumerate(s.widths):
            if in_order and v * b.machine.lanes % line == 0:
                b.keep_order()
            vectors.append(b.vread(w, b.add(row, v * b.machine.lanes * s.rhs_lane), width, stride=s.rhs_lane))
        for r in range(tile.rows):
            place = b.add(at[0], step * s.lhs_step + r * s.lhs_row)
            if r < spread and step % 2 == 0 and step + 1 < count:
                pairs[r] = pair(b, a, place)
            x = pairs[r][step % 2] if r in pairs else b.spread(a, place)
            if step % 2:
                pairs.pop(r, None)
            for v, y in enumerate(vectors):
                i = r * tile.vectors + v
                values[i] = b.fma(x, y, values[i])
    return values


#: Kernels by name: those that add to a register tile, and those whose output is in memory.
REGISTER_KERNELS: dict[str, Callable[..., Bundle]] = {
    "broadcast_fma": broadcast_fma,
    "dpbf16": dpbf16,
    "dpbusd": dpbusd,
    "maddwd": maddwd,
}
MEMORY_KERNELS: dict[str, Callable[..., None]] = {
    "dot_fma": dot_fma,
    "dot_dpbf16": dot_dpbf16,
    "dot_dpbusd": dot_dpbusd,
    "scalar": scalar,
}
