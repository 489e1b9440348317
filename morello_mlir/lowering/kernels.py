"""The kernels: leaves of a schedule as vector code."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ..actions import PAIR_KERNELS, STEPS_OF_FOUR
from ..spec import dtype_bytes, is_float
from ..targets import PAGE
from .builder import Builder, Index
from .digits import Digit, digits_of, edges_at, place_of
from .dots import dot_dpbf16, dot_dpbusd, dot_fma
from .finish import Finish, on_last
from .instructions import Instruction, bf16_pairs, byte_quads, short_pairs
from .narrow import Together, pair, spreads
from .plan import Sizes
from .views import Flat, Operand

_LINE = 64
#: Multiply-adds between asking for a line of rhs and using it: some hundred cycles, what the last-level cache takes.
_AHEAD = 144
#: The same for what was packed ahead: what memory takes. It may reach into the slack behind the last panel.
_STREAM = 768

#: K steps of the inner digits of a window that are emitted without a loop.
_FEW = 16


@dataclass(frozen=True, slots=True)
class Ask:
    """What a kernel asks for on the way.

    `broadcast_fma`: the panel that comes after its own. All of the `trips` kernels that read one panel of rhs ask for a
    part of the next, from element `at` of rhs on; or, where `lines` says how many an iteration, of the next panel of
    lhs, from element `at` of lhs on. `dot_fma`: the rows of the next tile, from element `at` of lhs on.
    """

    at: Index
    trips: int = 1
    lines: int = 0


#: Whether the first step stores (True), all accumulate (False), or an i1 says so at run time (its SSA name).
First = bool | str


@dataclass(frozen=True, slots=True)
class Bundle:
    """An m x n output tile in registers: `rows` x `vectors` of SSA vectors, row by row, along n; the last vector of a
    row has `tail` live lanes."""

    rows: int
    vectors: int
    tail: int
    values: Sequence[str]

    @staticmethod
    def shape(m: int, n: int, lanes: int) -> tuple[int, int, int]:
        """Rows, vectors in a row, and live lanes of the last one."""
        vectors = -(-n // lanes)
        return m, vectors, n - (vectors - 1) * lanes

    def with_values(self, values: Sequence[str]) -> Bundle:
        return Bundle(self.rows, self.vectors, self.tail, values)


# ---------------------------------------------------------------- broadcast_fma


@dataclass(frozen=True, slots=True)
class _Strides:
    """Element strides of the operands of a k step, and where the vectors of a rhs row start and how wide they are."""

    lhs_row: int
    lhs_step: int
    rhs_step: int
    rhs_lane: int
    widths: tuple[int, ...]


#: Multiply-adds up to which the k loop is unrolled as a whole: its addresses are constants then, which costs a
#: multiply-add from memory one micro-operation less, and there is no loop to get out of.
_STRAIGHT = 320


def unroll(rows: int, vectors: int, kernel: str = "") -> int:
    """K steps in one iteration of the loop: enough to hide its own instructions, no more than pays for compiling."""
    return (4 if rows * vectors <= STEPS_OF_FOUR else 2) * GROUPS.get(kernel, 1)


def is_straight(rows: int, vectors: int, depth: int) -> bool:
    """Whether a register tile of `depth` k steps has no loop."""
    return rows * vectors * depth <= _STRAIGHT


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
            if ask:
                _ask_next(b, a if ask.lines else w, ask, s, (k, step))
            elif ahead := _ahead(s, tile, rhs):
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
            x = pairs[r][step % 2] if r in pairs else b.broadcast(b.read(a, place))
            if step % 2:
                pairs.pop(r, None)
            for v, y in enumerate(vectors):
                i = r * tile.vectors + v
                values[i] = b.fma(x, y, values[i])
    return values


# ---------------------------------------------------------------- groups along k


#: How many neighbours along k the kernels for groups take at once.
GROUPS = {k.name: k.group for k in PAIR_KERNELS}


def dpbf16(b: Builder, sizes: Sizes, lhs: Operand, rhs: Operand, tile: Bundle, looped: Index | None = None) -> Bundle:
    """Adds lhs @ rhs to a register tile, two bf16 products an instruction."""
    return _groups(b, sizes, (lhs, rhs), tile, looped, bf16_pairs())


def maddwd(b: Builder, sizes: Sizes, lhs: Operand, rhs: Operand, tile: Bundle, looped: Index | None = None) -> Bundle:
    """Adds lhs @ rhs to a register tile, two i16 products an instruction."""
    return _groups(b, sizes, (lhs, rhs), tile, looped, short_pairs(b.machine.vector_bytes))


def dpbusd(b: Builder, sizes: Sizes, lhs: Operand, rhs: Operand, tile: Bundle, looped: Index | None = None) -> Bundle:
    """Adds lhs @ rhs to a register tile, four products of an unsigned and a signed byte an instruction.

    Where both are signed, 128 is added to lhs: a flip of its upper bit. What that adds to every row is summed up beside
    the tile, and taken off at the end.
    """
    return _groups(b, sizes, (lhs, rhs), tile, looped, byte_quads(lhs.view.dtype, rhs.view.dtype))


@dataclass(frozen=True, slots=True)
class _Groups:
    """Where groups are: memory; elements from one row of lhs to the next, from one group to the next, in a vector of
    rhs, and in a row of its panel."""

    a: Flat
    w: Flat
    lhs_row: int
    lhs_step: int
    rhs_step: int
    rhs_vector: int
    rhs_row: int


def _groups(
    b: Builder, sizes: Sizes, inputs: tuple[Operand, Operand], tile: Bundle, looped: Index | None, s: Instruction
) -> Bundle:
    """The loop over k of a kernel for groups; `looped` as in `broadcast_fma`."""
    (lhs, rhs), group, depth = inputs, s.group, sizes[2]
    in_groups = lhs.view.group == group
    step = unroll(tile.rows, tile.vectors) * group
    lhs_step = lhs.view.stride(2) if in_groups else group
    rhs_step = rhs.view.stride(1)
    further = 0 if looped is None else b.div(b.add(looped, -step), group)
    g = _Groups(
        lhs.flat(b, b.mul(further, lhs_step)),
        rhs.flat(b, b.mul(further, rhs_step)),
        lhs.view.stride(1),
        lhs_step,
        rhs_step,
        b.machine.lanes * group,
        rhs.view.packed[1] * group if rhs.view.packed else 0,
    )
    values = list(tile.values)
    if s.offset:
        values += [b.zeros()] * tile.vectors
    after = depth % step
    whole: Index = depth - after if looped is None else looped
    if whole:
        with b.carrying_loop(0, whole, step, values, b.machine.vector()) as (k, carried):
            carried.results = _group_steps(b, g, b.div(k, group), tile, carried.args, s, (step, in_groups))
        values = list(carried.results)
    if after:
        values = _group_steps(b, g, b.div(whole, group), tile, values, s, (after, in_groups))
    return tile.with_values(_without_offset(b, tile, values) if s.offset else values)


def _group_steps(
    b: Builder, g: _Groups, at: Index, tile: Bundle, before: Sequence[str], s: Instruction, extent: tuple[int, bool]
) -> list[str]:
    """The steps from group `at` on, without a loop. extent: how many k they take, and whether lhs is in groups, padded
    with zeros to whole ones; where it is not, no more than there is is read."""
    values = list(before)
    depth, padded = extent
    for number, first in enumerate(range(0, depth, s.group)):
        row = b.add(b.mul(at, g.rhs_step), number * g.rhs_step)
        starts = range(0, tile.vectors * g.rhs_vector, g.rhs_vector)
        vectors = [b.vload(g.w, b.add(row, v), min(g.rhs_vector, g.rhs_row - v), g.rhs_vector) for v in starts]
        here = b.add(b.mul(at, g.lhs_step), number * g.lhs_step)
        width = s.group if padded else min(s.group, depth - first)
        for r in range(tile.rows):
            x = _group_in_all(b, g.a, b.add(here, r * g.lhs_row), width, s)
            for v, y in enumerate(vectors):
                i = r * tile.vectors + v
                values[i] = s.multiply(b, x, y, values[i])
        if s.offset:
            for v, y in enumerate(vectors):
                i = tile.rows * tile.vectors + v
                values[i] = s.multiply(b, s.same(b), y, values[i])
    return values


def _group_in_all(b: Builder, a: Flat, at: Index, width: int, s: Instruction) -> str:
    """A group of lhs, zeros after `width` elements, in all lanes."""
    lanes = b.machine.lanes
    some = b.bitcast(b.vload(a, at, width, s.group), s.group, s.dtype, 1, "i32")
    every = b.value(f"vector.broadcast {some} : vector<1xi32> to {b.machine.vector(lanes, 'i32')}")
    return s.moved(b, b.bitcast(every, lanes, "i32", lanes * s.group, s.dtype))


def _without_offset(b: Builder, tile: Bundle, values: Sequence[str]) -> list[str]:
    """The tile without what the offset added: the last row of `values`."""
    count, t = tile.rows * tile.vectors, b.machine.vector()
    extra = values[count:]
    return [b.value(f"arith.subi {x}, {extra[i % tile.vectors]} : {t}") for i, x in enumerate(values[:count])]


# ---------------------------------------------------------------- scalar


def _multiply_add(b: Builder, x: str, y: str, acc: str) -> str:
    """acc + x * y, scalars."""
    if not is_float(b.machine.dtype):
        return b.plus(acc, b.value(f"arith.muli {x}, {y} : {b.machine.dtype}"))
    product = b.value(f"arith.mulf {x}, {y} fastmath<contract> : {b.machine.dtype}")
    return b.value(f"arith.addf {acc}, {product} fastmath<contract> : {b.machine.dtype}")


def scalar(b: Builder, sizes: Sizes, operands: Sequence[Operand], first: First, finish: Finish | None = None) -> None:
    """Scalar multiply-adds in loops over b, m, n and k: anything, with any strides."""
    lhs, rhs, out = operands[:3]
    a, w, c = lhs.flat(b), rhs.flat(b), out.flat(b)
    with b.loop(0, sizes[0], 1) as batch, b.loop(0, sizes[1], 1) as i, b.loop(0, sizes[3], 1) as j:
        at = _offset(b, out, batch, i, j)
        start = _initial(b, c, at, first)
        row, column = _offset(b, lhs, batch, i, 0), _offset(b, rhs, batch, 0, j)
        with b.carrying_loop(0, sizes[2], 1, [start], b.machine.dtype) as (k, carried):
            x = b.read(a, b.add(row, _along(b, k, lhs, 2)))
            y = b.read(w, b.add(column, _along(b, k, rhs, 1)))
            carried.results = [_multiply_add(b, x, y, carried.args[0])]
        (total,) = carried.results
        results = partial(Finish.elements, b=b, operands=operands, places=[(batch, i, j)], sums=[total])
        on_last(b, finish, results, partial(b.write, total, c, at))


def _along(b: Builder, k: Index, operand: Operand, dim: int) -> Index:
    """Elements from the start of dim `dim`, which is not packed, to place `k` on it."""
    view = operand.view
    if view.of(dim):
        return place_of(b, view.digits(dim), k)
    if view.group == 1:
        return b.mul(k, view.stride(dim))
    group = b.div(k, view.group)
    within = b.add(k, b.mul(group, -view.group))
    return b.add(b.mul(group, view.stride(dim)), within)


def _initial(b: Builder, c: Flat, at: Index, first: First) -> str:
    """What the sum starts from."""
    if first is True:
        return b.zero()
    if first is False:
        return b.read(c, at)
    with b.branch(first, b.machine.dtype, [b.zero()]) as computed:
        computed.results = [b.read(c, at)]
    return computed.results[0]


def _offset(b: Builder, operand: Operand, batch: Index, i: Index, j: Index) -> Index:
    """The element offset of a logical index. Within a packed dim the index may cross panels."""
    view, at = operand.view, b.mul(batch, operand.view.stride(0))
    for dim, place in ((1, i), (2, j)):
        if view.packed and view.packed[0] == dim and view.sizes[dim] > view.packed[1]:
            panel = b.div(place, view.packed[1])
            at = b.add(at, b.mul(panel, view.strides[1]))
            place = b.add(place, b.mul(panel, -view.packed[1]))
        at = b.add(at, b.mul(place, view.stride(dim)))
    return at


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
