"""One sweep over the scan dims of a group of rows: evaluates values tile by tile, reduces, stores.

Several stages may share a sweep: passes of successive groups of rows, side by side in one loop.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ...lowering.builder import Index
from ..body import Value
from .memory import Tile, cells, spread
from .points import Evaluation, Nest, Online, Stage
from .reductions import Reduction, State
from .vectors import Bundle

#: Multiply-adds and the like that must be under way at once: so many accumulators are worth having.
IN_FLIGHT = 8
#: Terms, at least, that one accumulator adds up before it is added to a sum of sums: rounding errors stay small.
CHAIN = 256


class Sweep:
    """A loop nest over the scan dims of all `stages`; their groups know the reductions afterwards. unroll: steps along
    each scan dim side by side."""

    def __init__(self, nest: Nest, stages: Sequence[Stage], unroll: dict[int, int]):
        self.nest = nest
        self.stages = stages
        self.unroll = unroll
        #: Whether tiles write what they are to write.
        self.writing = True
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
        """Steps along a scan dim side by side. Blocks are along the innermost dim."""
        if self.block is not None and dim != self.dims[-1]:
            return 1
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

    def loops(
        self, dims: Sequence[int], at: dict[int, tuple[Index, int]], live: int | None, state: list[State]
    ) -> list[State]:
        """Loops over `dims`; at: position and count along the dims outside of them."""
        if not dims:
            return self.body(at, live, state)
        if len(dims) == 1 and (block := self.block) is not None:
            return self.blocks(dims[0], block, at, live, state)
        return self.span(dims, 0, self.nest.spec.dims[dims[0]], at, live, state)

    def span(
        self,
        dims: Sequence[int],
        lower: Index,
        size: int,
        at: dict[int, tuple[Index, int]],
        live: int | None,
        state: list[State],
    ) -> list[State]:
        """As `loops`, over the `size` elements of the first of `dims` from `lower` on."""
        d, inner, b = dims[0], dims[1:], self.nest.b
        unit, count = self.unit(d), self.count(d)
        step = count * unit
        full = size - size % step

        def one(iv: Index, count: int, live: int | None, state: list[State]) -> list[State]:
            return self.loops(inner, {**at, d: (iv, count)}, live, state)

        if full:
            state = self.chunked(lower, full, step, self.terms(inner), lambda iv, s: one(iv, count, live, s), state)
        whole, left = divmod(size - full, unit)
        if whole:
            state = one(b.add(lower, full), whole, live, state)
        if left:
            state = one(b.add(lower, size - left), 1, left, state)
        return state

    @property
    def block(self) -> Online | None:
        """The online pass by whose blocks the innermost loop goes; None: there are no blocks."""
        return self.stages[0].work.against

    def blocks(
        self, d: int, online: Online, at: dict[int, tuple[Index, int]], live: int | None, state: list[State]
    ) -> list[State]:
        """The innermost loop, in blocks."""
        n, size = self.nest.spec.dims[d], online.block
        number: Index = 0
        for outer in self.dims[:-1]:
            number = self.nest.b.add(self.nest.b.mul(number, self.nest.spec.dims[outer]), at[outer][0])
        number = self.nest.b.mul(number, -(-n // size))

        def one(lower: Index, size: int, state: list[State]) -> list[State]:
            own = self.nest.b.add(number, self.nest.b.div(lower, online.block))
            return self.in_block(online, own, lambda s: self.span([d], lower, size, at, live, s), state)

        full = n - n % size
        if full:
            state = self.loop(0, full, size, lambda iv, s: one(iv, size, s), state)
        return one(full, n - full, state) if n > full else state

    def in_block(
        self, online: Online, number: Index, run: Callable[[list[State]], list[State]], state: list[State]
    ) -> list[State]:
        """Block `number`: what is stored against the maximum of that time is corrected on the way."""
        (stage,) = self.stages
        group, place, b = stage.group, online.shifts, self.nest.b
        assert place is not None
        count = math.prod(group.counts)
        type_ = self.nest.v.type(place.dtype)
        first = b.mul(b.mul(number, online.rows), self.nest.v.lanes)
        old = tuple(
            b.value(
                f"vector.load {place.memory}[{b.index(b.add(first, r * self.nest.v.lanes))}] : {place.type}, {type_}"
            )
            for r in range(count)
        )
        for at in stage.work.stored:
            if at in online.scaling:
                group.factors[at] = self.nest.factor(group, online, at, old)
        state = run(state)
        group.factors.clear()
        return state

    def terms(self, dims: Sequence[int]) -> int:
        """How many terms an accumulator takes up in the loops over `dims`."""
        return math.prod(-(-self.nest.spec.dims[d] // (self.count(d) * self.unit(d))) for d in dims)

    def chunked(
        self,
        lower: Index,
        size: int,
        step: int,
        terms: int,
        body: Callable[[Index, list[State]], list[State]],
        state: list[State],
    ) -> list[State]:
        """A loop over `size` elements whose trips take up `terms` terms each; long sums are cut into shorter ones."""
        trips, end = size // step, self.nest.b.add(lower, size)
        if not any(r.is_sum for _, _, r, _ in self.reductions) or trips * terms <= 2 * CHAIN:
            return self.loop(lower, end, step, body, state)
        if terms >= CHAIN:
            return self.loop(lower, end, step, lambda iv, s: self.apart(lambda fresh: body(iv, fresh), s), state)
        # Sums of about as many terms as there are sums.
        chunk = max(CHAIN // terms, math.isqrt(trips)) * step
        whole = self.nest.b.add(lower, size - size % chunk)

        def piece(iv: Index, s: list[State]) -> list[State]:
            return self.apart(lambda fresh: self.loop(iv, self.nest.b.add(iv, chunk), step, body, fresh), s)

        state = self.loop(lower, whole, chunk, piece, state)
        if size % chunk:
            state = self.apart(lambda fresh: self.loop(whole, end, step, body, fresh), state)
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
        """The innermost loop's body."""
        return self.tile(at, live, state)

    def tile(self, at: dict[int, tuple[Index, int]], live: int | None, state: list[State]) -> list[State]:
        """Evaluates one tile of every stage."""
        out = list(state)
        for stage in self.stages:
            group, spec = stage.group, self.nest.spec
            place = tuple(at[d][0] if d in at else x for d, x in enumerate(group.at))
            counts = tuple(at[d][1] if d in at else x for d, x in enumerate(group.counts))
            tile = Tile(place, counts, group.live if live is None else live, inside=group.inside)
            ev = Evaluation(self.nest, tile, group, stage.work.stored)
            if stage.work.prefetch and live is None and self.writing:
                self.prefetch(stage, tile)
            if self.writing:
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
            known = not place.axes and number not in self.nest.row
            if known and place.strides[self.nest.vector] == 1:
                self.nest.memory.prefetch(place, tile, tile.shape(spec.varies[number]), stage.work.prefetch)

    def write(self, stage: Stage, ev: Evaluation) -> None:
        bundles = ev.values([number for number, _, _ in stage.work.writes])
        for (number, place, streaming), bundle in zip(stage.work.writes, bundles, strict=True):
            shape = tuple(n if s else 1 for n, s in zip(ev.tile.counts, place.strides, strict=True))
            bundle = spread(bundle, ev.shape(number), shape)
            self.nest.memory.write(place, ev.tile, shape, bundle, streaming)

    def reduce(self, ev: Evaluation, value: Value, reduction: Reduction, several: int, state: State) -> State:
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
        if several == 1 and product is not None:
            return [self.in_order(reduction, state[0], args, ev.live if self.masks else None)]
        for first in range(0, steps, several):
            width = min(several, steps - first)
            picks = [(row, step) for row in range(rows) for step in range(width)]
            part = [tuple(x[row][first + step] for row, step in picks) for x in args]
            slots = [row * several + step for row, step in picks]
            before = [tuple(bundle[i] for i in slots) for bundle in state]
            if product is None:
                after = reduction.step(self.nest.v, before, part, ev.live if self.masks else None, width)
            else:
                after = [self.fused(reduction, before[0], part, ev.live if self.masks else None)]
            state = [_with(bundle, slots, new) for bundle, new in zip(state, after, strict=True)]
        return state

    def in_order(
        self, reduction: Reduction, acc: Bundle, args: Sequence[list[list[str]]], live: Bundle | None
    ) -> Bundle:
        """The sums of products of a tile, by row, in the order in which the first factors were read: what neighbouring
        rows share is used up before the next is needed. args: of each factor the names by row, then by step."""
        read = dict.fromkeys(name for row in args[0] for name in row)
        order = {name: i for i, name in enumerate(read)}
        places = [(order[name], r, t) for r, row in enumerate(args[0]) for t, name in enumerate(row)]
        out = list(acc)
        for _, r, t in sorted(places):
            (out[r],) = self.fused(reduction, (out[r],), [(x[r][t],) for x in args], live)
        return tuple(out)

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
        for (stage, number, r, several), one in zip(self.reductions, state, strict=True):
            result = r.result(self.nest.v, self.combined(r, several, r.settle(self.nest.v, one)))
            stage.group.rows[number] = self.narrowed(stage, number, result)

    def narrowed(self, stage: Stage, number: int, bundle: Bundle) -> Bundle:
        """A bundle of all rows of a group as one of those along which the value varies: it may be the same for some."""
        counts = stage.group.counts
        shape = stage.group.tile.shape(self.nest.spec.varies[number])
        kept = [all(i < n for i, n in zip(cell, shape, strict=True)) for cell in cells(counts)]
        return tuple(x for x, keep in zip(bundle, kept, strict=True) if keep) if len(bundle) == len(kept) else bundle

    def combined(self, r: Reduction, several: int, whole: State) -> State:
        """A settled state with one accumulator for each row and, along a scan dim, the same in all lanes."""
        merged = self.merged(r, several, whole)
        return r.across(self.nest.v, merged) if self.masks else merged

    def merged(self, r: Reduction, several: int, whole: State) -> State:
        """A settled state with one accumulator for each row."""
        v = self.nest.v
        rows = len(whole[0]) // several
        parts = [[tuple(x[i * several + k] for i in range(rows)) for x in whole] for k in range(several)]
        while len(parts) > 1:
            pairs = [parts[i : i + 2] for i in range(0, len(parts), 2)]
            parts = [r.merge(v, *p) if len(p) == 2 else p[0] for p in pairs]
        return parts[0]


def _with(bundle: Bundle, slots: Sequence[int], new: Bundle) -> Bundle:
    out = list(bundle)
    for i, x in zip(slots, new, strict=True):
        out[i] = x
    return tuple(out)
