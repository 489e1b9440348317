"""One sweep over the scan dims of a group of rows: evaluates values tile by tile, reduces, stores.

Several stages may share a sweep: passes of successive groups of rows, side by side in one loop.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from ...lowering.builder import Builder, Carried, Index
from ..body import Body, Value
from ..ops import element_bytes
from ..spec import NestSpec
from ..online import Scaling
from .facts import Facts
from .memory import Memory, Place, Tile, cells, spread
from .reductions import Reduction, State
from .values import Values
from .vectors import Bundle

#: Multiply-adds and the like that must be under way at once: so many accumulators are worth having.
IN_FLIGHT = 8
#: Terms that one accumulator adds up before it is added to a sum of sums: rounding errors stay small.
CHAIN = 256
#: Bytes of buffers on the stack; what is more comes from the heap.
STACK = 1 << 14


class NestBuilder(Builder):
    """A builder whose loops carry values of several types, and which has buffers for the time of its function."""

    def __init__(self) -> None:
        super().__init__()
        self._before: list[str] = []
        self._after: list[str] = []
        self._on_stack = 0

    def buffer(self, dtype: str, elements: int) -> str:
        """The name of a line of `elements` elements (see `Place`), aligned to cache lines: small ones on the stack."""
        size, name, flat = elements * element_bytes(dtype), self.name(), self.name()
        type_ = f"memref<{elements}x{dtype}>"
        on_stack = self._on_stack + size <= STACK
        self._on_stack += size if on_stack else 0
        op = "alloca" if on_stack else "alloc"
        self._before.append(f"{name} = memref.{op}() {{alignment = 64 : i64}} : {type_}")
        self._before.append(f"{flat} = memref.cast {name} : {type_} to memref<?x{dtype}, strided<[1], offset: ?>>")
        if not on_stack:
            self._after.append(f"memref.dealloc {name} : {type_}")
        return flat

    def text(self) -> str:
        lines, self.lines = self.lines, [*self._before, *self.lines, *self._after]
        out = super().text()
        self.lines = lines
        return out

    @contextmanager
    def carry(
        self, lower: Index, upper: Index, step: int, values: Sequence[str], types: Sequence[str]
    ) -> Iterator[tuple[Index, Carried]]:
        """As `carrying_loop`; from any lower bound."""
        carried = Carried(list(values))
        if isinstance(lower, int) and isinstance(upper, int) and lower + step >= upper:
            yield lower, carried
            return
        iv = self.name()
        bounds = " ".join([self.index(lower), "to", self.index(upper), "step", self.index(step)])
        if not values:
            self.line(f"scf.for {iv} = {bounds} {{")
            yield iv, carried
            self.line("}")
            return
        out = self.name()
        carried.args = carried.results = [self.name() for _ in values]
        pairs = ", ".join(f"{a} = {v}" for a, v in zip(carried.args, values, strict=True))
        listed = ", ".join(types)
        self.line(f"{out}:{len(values)} = scf.for {iv} = {bounds} iter_args({pairs}) -> ({listed}) {{")
        yield iv, carried
        self.line(f"scf.yield {', '.join(carried.results)} : {listed}")
        self.line("}")
        carried.results = [f"{out}#{i}" for i in range(len(values))]


@dataclass
class Group:
    """Points of the parallel dims that are worked on together. at, counts, live: as in Tile, of the parallel dims (0 and
    1 along the others). rows: what is known of the values that do not vary along scan dims, each a bundle."""

    at: tuple[Index, ...]
    counts: tuple[int, ...]
    live: int | str | None
    rows: dict[int, Bundle] = field(default_factory=dict)

    @property
    def tile(self) -> Tile:
        return Tile(self.at, self.counts, self.live)


@dataclass(frozen=True, slots=True)
class Online:
    """See `Pass.online`: the maximum, how what is made of it scales, and the block (0: an unrolled step)."""

    maximum: int
    scaling: dict[int, Scaling]
    block: int


@dataclass(frozen=True, slots=True)
class Sweeping:
    """What one pass does in a sweep: the reductions that it computes, and what it writes where (place, value, past the
    caches). stored: where values lie that earlier passes have written."""

    reductions: tuple[int, ...]
    writes: tuple[tuple[int, Place, bool], ...]
    stored: dict[int, Place]
    prefetch: int = 0
    online: Online | None = None


@dataclass(frozen=True, slots=True)
class Stage:
    group: Group
    work: Sweeping


class Nest:
    """Emits tiles and sweeps of one nest. inputs: where they lie; base: what is added to positions along each dim, where
    the nest is part of a larger one."""

    def __init__(self, b: NestBuilder, spec: NestSpec, memory: Memory, inputs: Sequence[Place], base: Sequence[Index]):
        self.b = b
        self.spec = spec
        self.memory = memory
        self.inputs = inputs
        self.base = base
        self.v: Values = memory.values
        self.vector = memory.vector
        self.scan = frozenset(spec.scan_dims)
        self.facts = Facts(spec.body)
        #: Values that are computed once for a group of rows. Without scan dims, everything is computed in tiles.
        self.row = frozenset(v for v in range(len(spec.body.values)) if self.scan and spec.is_row(v))

    # ---------------------------------------------------------------- values

    def rows(self, group: Group, wanted: Sequence[int]) -> None:
        """Computes the values `wanted`, which do not vary along scan dims, and remembers them in the group. The
        reductions that they are made of are known, or are none."""
        _Evaluation(self, group.tile, group, {}, rows=True).values(wanted)

    def write_row(self, group: Group, number: int, place: Place) -> None:
        """Stores the value `number`, which the group knows."""
        shape = group.tile.shape(frozenset(d for d, s in enumerate(place.strides) if s))
        bundle = spread(group.rows[number], group.tile.shape(self.spec.varies[number]), shape)
        self.memory.write(place, group.tile, shape, bundle)

    def row_leaves(self, values: Sequence[int], have: set[int]) -> list[int]:
        """Of the values that `values` are made of, those that a sweep needs from outside of it: what does not vary along
        scan dims, but for what is made of the reductions `have`, which the sweep itself computes."""
        found: dict[int, None] = {}
        seen: set[int] = set()
        stack = list(values)
        while stack:
            at = stack.pop()
            if at in seen:
                continue
            seen.add(at)
            if at in self.row and not have & self.spec.body.depends(at):
                found[at] = None
            else:
                stack += self.spec.body.values[at].args
        return sorted(found)

    # ---------------------------------------------------------------- sweeps

    def reduction(self, at: int) -> Reduction:
        """How the reduction number `at` is done."""
        body = self.spec.body
        value = body.values[at]
        name, args = value.op.removeprefix("reduce_"), [body.values[a] for a in value.args]
        if not name.startswith("arg"):
            return Reduction(name, args[0].dtype, quiet=at in self.facts.quiet)
        dim = args[1].attr
        ascending = args[1].op == "index" and self.scan == frozenset((dim,))
        return Reduction(name, args[0].dtype, args[1].dtype, ascending=ascending)

    def sweep(self, stages: Sequence[Stage], unroll: dict[int, int]) -> None:
        """Makes one loop nest over the scan dims of all stages; their groups know the reductions afterwards. unroll: steps
        along each scan dim side by side."""
        _Sweep(self, stages, unroll).run()


class _Evaluation:
    """The values of one tile."""

    def __init__(self, nest: Nest, tile: Tile, group: Group, stored: dict[int, Place], rows: bool = False):
        self.nest = nest
        self.tile = tile
        self.group = group
        self.stored = stored
        #: What is computed is remembered by the group.
        self.known: dict[int, Bundle] = group.rows if rows else {}
        self.live = nest.memory.mask(tile)

    def shape(self, at: int) -> tuple[int, ...]:
        return self.tile.shape(self.nest.spec.varies[at])

    def values(self, wanted: Sequence[int]) -> list[Bundle]:
        """The bundles of the values `wanted`."""
        body = self.nest.spec.body
        todo: set[int] = set()
        stack = list(wanted)
        while stack:
            at = stack.pop()
            if at not in todo and at not in self.known and at not in self.group.rows:
                todo.add(at)
                if at not in self.stored:
                    stack += self.nest.facts.arguments(at, self._fuses(at))
        for at in sorted(todo):
            self.known[at] = self._compute(at, body.values[at])
        return [self.get(at) for at in wanted]

    def get(self, at: int) -> Bundle:
        return self.known[at] if at in self.known else self.group.rows[at]

    def _fuses(self, at: int) -> bool:
        """Whether a multiply-add can be made of the value: not where its product is known already."""
        product = self.nest.facts.products.get(at)
        if product is None:
            return False
        known = product in self.known or product in self.group.rows or product in self.stored
        # What is the same for all of a row is computed once, outside.
        return not known and not (product in self.nest.row and at not in self.nest.row)

    def _compute(self, at: int, value: Value) -> Bundle:
        nest = self.nest
        if at in self.stored:
            return nest.memory.read(self.stored[at], self.tile, self.shape(at))
        if value.op == "input":
            return nest.memory.read(nest.inputs[int(value.attr or 0)], self.tile, self.shape(at))
        if value.op == "const":
            return nest.v.number(value.number, value.dtype)
        if value.op == "index":
            return self._positions(int(value.attr or 0), value.dtype)
        assert not value.reduces, "a reduction is known before what is made of it"
        if self._fuses(at):
            return self._fused(at, value)
        if at in nest.facts.differences:
            return self._difference(at, nest.facts.differences[at])
        operands = [nest.spec.body.values[a] for a in value.args]
        args = [spread(self.get(a), self.shape(a), self.shape(at)) for a in value.args]
        return nest.v.apply(value, args, [o.dtype for o in operands], operands, self.live)

    def _difference(self, at: int, parts: tuple[int, int]) -> Bundle:
        """exp(x - top)."""
        from .vector_math import exp_of_difference

        x, top = (spread(self.get(a), self.shape(a), self.shape(at)) for a in parts)
        return exp_of_difference(self.nest.v.floats("f32"), x, top)

    def _fused(self, at: int, value: Value) -> Bundle:
        """A sum or difference of which one part is a product."""
        facts, v = self.nest.facts, self.nest.v.floats(value.dtype)
        product = facts.products[at]
        x, y = (spread(self.get(a), self.shape(a), self.shape(at)) for a in self.nest.spec.body.values[product].args)
        (other,) = [a for a in value.args if a != product]
        z = spread(self.get(other), self.shape(other), self.shape(at))
        if value.op == "sub":
            return v.fma(x, y, v.neg(z)) if value.args[0] == product else v.fma(v.neg(x), y, z)
        return v.fma(x, y, z)

    def _positions(self, dim: int, dtype: str) -> Bundle:
        """Where the points of the tile are along `dim`."""
        b, v, nest = self.nest.b, self.nest.v, self.nest
        lanes = v.lanes if dim == nest.vector else 1
        out = []
        for step in range(self.tile.counts[dim]):
            at = b.add(b.add(nest.base[dim], self.tile.at[dim]), step * lanes)
            if isinstance(at, int):
                splat = v.number(at, dtype)
            else:
                splat = (v.splat(b.value(f"arith.index_cast {at} : index to {dtype}"), dtype),)
            if dim == nest.vector:
                splat = v.each(f"arith.addi {{}}, {{}} : {v.type(dtype)}", splat, v.lane_numbers(dtype))
            out += splat
        return tuple(out)


class _Sweep:
    def __init__(self, nest: Nest, stages: Sequence[Stage], unroll: dict[int, int]):
        self.nest = nest
        self.stages = stages
        self.unroll = unroll
        spec = nest.spec
        # The vector dim innermost.
        self.dims = sorted(spec.scan_dims, key=lambda d: d == nest.vector)
        #: (stage, number of the reduction, how it is done, accumulators for each row)
        self.reductions: list[tuple[Stage, int, Reduction, int]] = []
        positions = math.prod(self.count(d) for d in self.dims)
        for stage in stages:
            rows = math.prod(stage.group.counts)
            for at in stage.work.reductions:
                several = max(1, min(positions, -(-IN_FLIGHT // rows)))
                self.reductions.append((stage, at, nest.reduction(at), several))

    def unit(self, dim: int) -> int:
        return self.nest.v.lanes if dim == self.nest.vector else 1

    def count(self, dim: int) -> int:
        """Steps along a scan dim side by side."""
        return max(1, min(self.unroll.get(dim, 1), self.nest.spec.dims[dim] // self.unit(dim)))

    def run(self) -> None:
        if not any(s.work.reductions or s.work.writes for s in self.stages):
            return
        for stage in self.stages:
            own = set(stage.work.reductions)
            wanted = [a for r in own for a in self.nest.spec.body.values[r].args] + [w[0] for w in stage.work.writes]
            self.nest.rows(stage.group, self.nest.row_leaves(wanted, own))
        state = self.start()
        state = self.loops(self.dims, {}, None, state)
        self.finish(state)

    # ---------------------------------------------------------------- state

    def start(self) -> list[State]:
        v = self.nest.v
        return [r.start(v, math.prod(s.group.counts) * k) for s, _, r, k in self.reductions]

    def flat(self, state: list[State]) -> list[str]:
        return [x for one in state for bundle in one for x in bundle]

    def types(self, state: list[State]) -> list[str]:
        v = self.nest.v
        return [
            v.type(t)
            for (_, _, r, _), one in zip(self.reductions, state, strict=True)
            for t, bundle in zip(r.types, one, strict=True)
            for _ in bundle
        ]

    def nested(self, names: Sequence[str], like: list[State]) -> list[State]:
        it = iter(names)
        return [[tuple(next(it) for _ in bundle) for bundle in one] for one in like]

    # ---------------------------------------------------------------- loops

    def loops(self, dims: Sequence[int], at: dict[int, tuple[Index, int]], live: int | None, state: list[State]) -> list[State]:
        """Loops over `dims`; at: position and count along the dims outside of them."""
        if not dims:
            return self.body(at, live, state)
        d, inner = dims[0], dims[1:]
        n, unit, count = self.nest.spec.dims[d], self.unit(d), self.count(d)
        step = count * unit
        full = n - n % step

        def one(iv: Index, count: int, live: int | None, state: list[State]) -> list[State]:
            return self.loops(inner, {**at, d: (iv, count)}, live, state)

        if full:
            state = self.chunked(0, full, step, self.terms(inner), lambda iv, s: one(iv, count, live, s), state)
        whole, left = divmod(n - full, unit)
        if whole:
            state = one(full, whole, live, state)
        if left:
            state = one(n - left, 1, left, state)
        return state

    def terms(self, dims: Sequence[int]) -> int:
        """How many terms an accumulator takes up in the loops over `dims`."""
        return math.prod(-(-self.nest.spec.dims[d] // (self.count(d) * self.unit(d))) for d in dims)

    def chunked(
        self,
        lower: int,
        upper: int,
        step: int,
        terms: int,
        body: Callable[[Index, list[State]], list[State]],
        state: list[State],
    ) -> list[State]:
        """A loop whose trips take up `terms` terms each; long sums are cut into shorter ones."""
        trips = (upper - lower) // step
        if not any(r.is_sum for _, _, r, _ in self.reductions) or trips * terms <= 2 * CHAIN:
            return self.loop(lower, upper, step, body, state)
        if terms >= CHAIN:
            return self.loop(lower, upper, step, lambda iv, s: self.apart(lambda fresh: body(iv, fresh), s), state)
        chunk = CHAIN // terms * step
        whole = upper - (upper - lower) % chunk

        def piece(iv: Index, s: list[State]) -> list[State]:
            end = self.nest.b.add(iv, chunk)
            return self.apart(lambda fresh: self.loop(iv, end, step, body, fresh), s)

        state = self.loop(lower, whole, chunk, piece, state)
        if whole < upper:
            state = self.apart(lambda fresh: self.loop(whole, upper, step, body, fresh), state)
        return state

    def apart(self, body: Callable[[list[State]], list[State]], state: list[State]) -> list[State]:
        """`body` with sums that start from nothing, which are then added."""
        fresh = self.start()
        inside = [f if r.is_sum else s for (_, _, r, _), f, s in zip(self.reductions, fresh, state, strict=True)]
        out = body(inside)
        v = self.nest.v
        return [
            [r.combine(v, s[0], o[0])] if r.is_sum else o
            for (_, _, r, _), s, o in zip(self.reductions, state, out, strict=True)
        ]

    def loop(
        self,
        lower: Index,
        upper: Index,
        step: int,
        body: Callable[[Index, list[State]], list[State]],
        state: list[State],
    ) -> list[State]:
        with self.nest.b.carry(lower, upper, step, self.flat(state), self.types(state)) as (iv, carried):
            carried.results = self.flat(body(iv, self.nested(carried.args, state)))
        return self.nested(carried.results, state)

    # ---------------------------------------------------------------- a tile

    def body(self, at: dict[int, tuple[Index, int]], live: int | None, state: list[State]) -> list[State]:
        out = list(state)
        for stage in self.stages:
            group, spec = stage.group, self.nest.spec
            place = tuple(at[d][0] if d in at else x for d, x in enumerate(group.at))
            counts = tuple(at[d][1] if d in at else x for d, x in enumerate(group.counts))
            tile = Tile(place, counts, group.live if live is None else live)
            ev = _Evaluation(self.nest, tile, group, stage.work.stored)
            if stage.work.prefetch and live is None:
                self.prefetch(stage, tile)
            self.write(stage, ev)
            own = [i for i, (s, *_) in enumerate(self.reductions) if s is stage]
            for i in own:
                _, number, reduction, several = self.reductions[i]
                out[i] = self.reduce(ev, spec.body.values[number], reduction, several, out[i])
        return out

    def prefetch(self, stage: Stage, tile: Tile) -> None:
        spec = self.nest.spec
        for k, number in spec.body.inputs.items():
            place = self.nest.inputs[k]
            if place.strides[self.nest.vector] == 1 and number not in self.nest.row:
                self.nest.memory.prefetch(place, tile, tile.shape(spec.varies[number]), stage.work.prefetch)

    def write(self, stage: Stage, ev: _Evaluation) -> None:
        bundles = ev.values([number for number, _, _ in stage.work.writes])
        for (number, place, streaming), bundle in zip(stage.work.writes, bundles, strict=True):
            shape = tuple(n if s else 1 for n, s in zip(ev.tile.counts, place.strides, strict=True))
            bundle = spread(bundle, ev.shape(number), shape)
            self.nest.memory.write(place, ev.tile, shape, bundle, streaming)

    def reduce(self, ev: _Evaluation, value: Value, reduction: Reduction, several: int, state: State) -> State:
        """The accumulators after a tile. They are ordered by row, `several` for each; the steps of the scan dims take
        them in turn."""
        counts = ev.tile.counts
        product = self.nest.facts.squares.get(value.args[0]) if reduction.name == "sum" else None
        if value.args[0] in ev.known or value.args[0] in ev.stored:
            product = None
        wanted = value.args if product is None else product
        args = [
            self.by_step(spread(x, ev.shape(a), counts), counts) for a, x in zip(wanted, ev.values(wanted), strict=True)
        ]
        steps = math.prod(n for d, n in enumerate(counts) if d in self.nest.scan)
        rows = math.prod(counts) // steps
        for first in range(0, steps, several):
            width = min(several, steps - first)
            picks = [(row, step) for row in range(rows) for step in range(width)]
            part = [tuple(x[row][first + step] for row, step in picks) for x in args]
            slots = [row * several + step for row, step in picks]
            before = [tuple(bundle[i] for i in slots) for bundle in state]
            if product is None:
                after = reduction.step(self.nest.v, before, part, ev.live if self.masks else None)
            else:
                after = [self.fused(reduction, before[0], part, ev.live if self.masks else None)]
            state = [_with(bundle, slots, new) for bundle, new in zip(state, after, strict=True)]
        return state

    def fused(self, reduction: Reduction, acc: Bundle, args: Sequence[Bundle], live: Bundle | None) -> Bundle:
        """A sum of products, a multiply-add for each."""
        v = self.nest.v.floats(reduction.dtype)
        x = args[0] if live is None else v.select(live, args[0], v.number(0.0))
        y = args[1] if live is None else v.select(live, args[1], v.number(0.0))
        return v.fma(x, y, acc)

    @property
    def masks(self) -> bool:
        """Whether lanes that do not count are lanes of a reduction (and not rows that nobody looks at)."""
        return self.nest.vector in self.nest.scan

    def by_step(self, bundle: Bundle, counts: Sequence[int]) -> list[list[str]]:
        """The names of a bundle of a whole tile by row, then by step of the scan dims."""
        out: dict[tuple[int, ...], list[str]] = {}
        names = bundle if len(bundle) > 1 else bundle * math.prod(counts)
        for cell, name in zip(cells(counts), names, strict=True):
            row = tuple(i for d, i in enumerate(cell) if d not in self.nest.scan)
            out.setdefault(row, []).append(name)
        return list(out.values())

    # ---------------------------------------------------------------- the end

    def finish(self, state: list[State]) -> None:
        """Combines the accumulators; the groups know the results."""
        v = self.nest.v
        for (stage, number, r, several), one in zip(self.reductions, state, strict=True):
            whole = r.settle(v, one)
            rows = len(whole[0]) // several
            parts = [[tuple(x[i * several + k] for i in range(rows)) for x in whole] for k in range(several)]
            while len(parts) > 1:
                pairs = [parts[i : i + 2] for i in range(0, len(parts), 2)]
                parts = [r.merge(v, *p) if len(p) == 2 else p[0] for p in pairs]
            done = r.across(v, parts[0]) if self.masks else parts[0]
            stage.group.rows[number] = r.result(v, done)


def _with(bundle: Bundle, slots: Sequence[int], new: Bundle) -> Bundle:
    out = list(bundle)
    for i, x in zip(slots, new, strict=True):
        out[i] = x
    return tuple(out)
