"""The kernels that take groups along k: each adds to a register tile, several products an instruction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .builder import Builder, Index
from .bundle import Bundle, unroll
from .instructions import Instruction, bf16_pairs, byte_quads, short_pairs
from .plan import Sizes
from .views import Flat, Operand


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
