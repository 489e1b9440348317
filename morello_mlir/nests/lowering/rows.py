"""`rows` of a schedule as code: loops over the parallel dims, and for each group of points the passes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from ...lowering.builder import Index
from ...lowering.machine import Machine
from ..ops import element_bytes
from ..plan import PassPlan, RowsPlan, innermost, swept_outputs
from .builder import NestBuilder
from .edges import Edge, all_inside, unknown
from .memory import Memory, Place
from .online import OnlineSweep
from .points import Group, Nest, Online, Stage, Sweeping
from .sweep import Sweep
from .values import Values, computed

#: Bytes that a row must have for its lines to be asked for ahead, and how far ahead, where the nest is streaming.
_AHEAD_BYTES = 4096
#: Groups at each end of a dim, at most, that are at a border and have code of their own.
MOST_EDGES = 4
#: What operands of no more bytes are near in any case.
_NEAR_BYTES = 1 << 15


def emit_rows(b: NestBuilder, machine: Machine, plan: RowsPlan, places: Sequence[Place]) -> None:
    """The leaf `plan` of a nest whose operands are at `places`."""
    values = Values(b, plan.lanes)
    memory = Memory(b, machine, values, plan.vector)
    spec = plan.spec
    if 0 in [n for n, s in zip(spec.dims, spec.scan, strict=True) if not s]:
        return
    nest = Nest(b, spec, memory, places[: len(spec.inputs)])
    streams = [places[len(spec.inputs) + k] for p in plan.passes if p.step.streaming for k in p.outputs]
    rows = _Rows(b, nest, plan, places[len(spec.inputs) :])
    condition = _aligned(b, memory, plan, streams) if streams else None
    if condition is None:
        rows.emit(streaming=False)
        return
    b.line(f"scf.if {condition} {{")
    rows.emit(streaming=True)
    b.fence()
    b.line("} else {")
    rows.emit(streaming=False)
    b.line("}")


def _aligned(b: NestBuilder, memory: Memory, plan: RowsPlan, streams: Sequence[Place]) -> str | None:
    """An i1: whether all vectors of `streams` are aligned; None where rows of some are not in any case."""
    ok: str | None = None
    for place in streams:
        size = memory.vector_bytes(place)
        others = [s for d, s in enumerate(place.strides) if d != plan.vector and plan.spec.dims[d] > 1]
        if any(s * element_bytes(place.dtype) % size for s in others):
            return None
        address = b.value(f"memref.extract_aligned_pointer_as_index {place.memory} : {place.type} -> index")
        names = [b.name() for _ in range(4)]
        b.line(
            f"{', '.join(names)} = memref.extract_strided_metadata {place.memory} : {place.type} -> "
            f"memref<{place.dtype}>, index, index, index"
        )
        start = b.add(b.mul(b.add(names[1], place.offset), element_bytes(place.dtype)), address)
        low = b.value(f"arith.remui {b.index(start)}, {b.index(size)} : index")
        fits = b.value(f"arith.cmpi eq, {low}, {b.index(0)} : index")
        ok = fits if ok is None else b.value(f"arith.andi {ok}, {fits} : i1")
    return ok


class _Rows:
    def __init__(self, b: NestBuilder, nest: Nest, plan: RowsPlan, outputs: Sequence[Place]):
        self.b = b
        self.nest = nest
        self.plan = plan
        self.spec = plan.spec
        self.outputs = outputs
        self.lanes = plan.lanes
        self.scratch = {s.value: self._scratch(s.value) for s in plan.scratch}
        self.online = {i: self._online(p) for i, p in enumerate(plan.passes) if p.maximum is not None}
        self.streaming = False
        # Outputs that no pass completes: they are made of inputs that do not vary along scan dims.
        complete = {k for p in plan.passes for k in p.writes_after} | set(swept_outputs(plan.spec))
        self.rest = [k for k in range(len(plan.spec.outputs)) if k not in complete]

    def _scratch(self, value: int) -> Place:
        """Room for a value of one group: row-major, whole vectors along the vector dim."""
        dtype = self.spec.body.values[value].dtype
        dtype = computed(dtype)
        strides, step = [0] * len(self.spec.dims), 1
        order = [d for d in range(len(self.spec.dims)) if d != self.plan.vector] + [self.plan.vector]
        for d in reversed(order):
            size = self.spec.dims[d] if self.spec.scan[d] else self.plan.tile[d]
            if d == self.plan.vector:
                size = -(-size // self.lanes) * self.lanes
            if d in self.spec.varies[value]:
                strides[d] = step
                step *= size
        name = self.b.buffer(dtype, step)
        local = tuple(d for d, s in enumerate(self.spec.scan) if not s)
        return Place(name, dtype, tuple(strides), 0, local)

    def _online(self, one: PassPlan) -> Online:
        """How an online pass runs: blocks of whole steps of its loop, and room for the maxima that stored values are
        against."""
        assert one.maximum is not None
        inner = sorted(self.spec.scan_dims, key=lambda d: d == self.plan.vector)[-1]
        n, unit = self.spec.dims[inner], self.unit(inner)
        step = max(1, min(one.unroll(inner), n // unit)) * unit
        block = max(1, (one.step.online or 0) // step) * step if one.step.online or one.stores else 0
        if not one.stores:
            return Online(one.maximum, one.scaling, block)
        rows = math.prod(t // self.unit(d) for d, t in enumerate(self.plan.tile) if not self.spec.scan[d])
        others = math.prod(self.spec.dims[d] for d in self.spec.scan_dims if d != inner)
        dtype = computed(self.spec.body.values[one.maximum].dtype)
        name = self.b.buffer(dtype, -(-n // block) * others * rows * self.lanes)
        return Online(one.maximum, one.scaling, block, Place(name, dtype, ()), rows)

    def emit(self, streaming: bool) -> None:
        self.streaming = streaming
        start = Group((0,) * len(self.spec.dims), (1,) * len(self.spec.dims), None)
        self.loops(list(self.spec.parallel_dims), start)

    # ---------------------------------------------------------------- loops

    def unit(self, d: int) -> int:
        return self.lanes if d == self.plan.vector else 1

    def loops(self, dims: Sequence[int], outer: Group) -> None:
        """Loops over the parallel dims `dims` and, inside, the passes of each group."""
        if not dims:
            self.group(outer)
            return
        d, inner = dims[0], dims[1:]
        n, step, unit = self.spec.dims[d], min(self.plan.tile[d], self._room(d)), self.unit(d)
        full = n - n % step
        if self.plan.pipelined and d == innermost(self.plan):
            self.pipeline(d, step, inner, outer)
            return
        if full:
            self.full_groups(d, full, step, inner, outer)
        whole, left = divmod(n - full, unit)
        if whole:
            self.loops(inner, _along(outer, d, full, whole, outer.live))
        if left:
            self.loops(inner, _along(outer, d, n - left, 1, left))

    def full_groups(self, d: int, full: int, step: int, inner: Sequence[int], outer: Group) -> None:
        """The groups of `step` positions along `d`, up to `full`: the many inside of borders in a loop that knows of
        none, the few others each by itself, where it is known what they read."""
        met = [edge for place in self.nest.inputs for edge in unknown(place) if edge[0].steps[d]]
        here = frozenset(met)

        def one(at: Index, inside: frozenset[Edge] = frozenset()) -> None:
            group = _along(outer, d, at, step // self.unit(d), outer.live)
            self.loops(inner, replace(group, inside=group.inside | inside))

        low, high = 0, full
        known = all(isinstance(shift, int) for _, shift in met)
        for border, shift in met if known else ():
            own = replace(border, start=border.start + int(shift)).inside(d, self.spec.dims)
            low, high = max(low, -(-own.start // step) * step), min(high, own.stop // step * step)
        low = min(low, full)
        high = max(low, high)
        if known and max(low, full - high) <= MOST_EDGES * step:
            for at in range(0, low, step):
                one(at)
            if high > low:
                with self.b.carry(low, high, step, (), ()) as (iv, _):
                    one(iv, here)
            for at in range(high, full, step):
                one(at)
            return
        with self.b.carry(0, full, step, (), ()) as (iv, _):
            self.b.line(f"scf.if {self.is_inside(d, iv, step, met)} {{")
            one(iv, here)
            self.b.line("} else {")
            one(iv)
            self.b.line("}")

    def is_inside(self, d: int, at: Index, step: int, met: Sequence[Edge]) -> str:
        """An i1: whether `step` positions along `d` from `at` on are inside of the borders, wherever the group is along
        other dims."""
        found = []
        for border, shift in met:
            place = self.b.add(self.b.add(shift, border.start), self.b.mul(at, border.steps[d]))
            sizes = [step if e == d else n for e, n in enumerate(self.spec.dims)]
            found.append(((border, shift), place, border.reach(sizes)))
        return all_inside(self.b, found)

    def _room(self, d: int) -> int:
        """The largest step along `d` that has only whole vectors; one vector where there is none."""
        n, unit = self.spec.dims[d], self.unit(d)
        return max(unit, n - n % unit)

    def group(self, group: Group) -> None:
        """All passes of one group, one after the other. Where they are no loops, its vectors go one after the other:
        what is loaded for one of them (all of a window's filters, say) is of no use for the next, and for all together
        it would not fit registers."""
        vector, count = self.plan.vector, group.counts[self.plan.vector]
        if count > 1 and self.plan.is_straight:
            for i in range(count):
                at = self.b.add(group.at[vector], i * self.lanes)
                self.group(replace(_along(group, vector, at, 1, group.live), inside=group.inside))
            return
        group.rows = {}
        for at in range(len(self.plan.passes)):
            self.sweep([(at, group)])

    # ---------------------------------------------------------------- passes

    def sweep(self, some: Sequence[tuple[int, Group]]) -> None:
        """One sweep of passes, of a group each, and what follows them."""
        stages = [Stage(group, self.work(at)) for at, group in some]
        unroll = {d: self.plan.passes[some[0][0]].unroll(d) for d in self.spec.scan_dims}
        if stages[0].work.online is not None:
            OnlineSweep(self.nest, stages[0], unroll).run()
        else:
            Sweep(self.nest, stages, unroll).run()
        for at, group in some:
            self.after(self.plan.passes[at], group)

    def work(self, at: int) -> Sweeping:
        """What pass `at` does."""
        one = self.plan.passes[at]
        writes = [
            (self.spec.body.outputs[k], self.outputs[k], one.step.streaming and self.streaming) for k in one.outputs
        ]
        writes += [(s.value, self.place(s.value), False) for s in one.stores]
        stored = {v: self.place(v) for v in one.loads if v in self.plan.stored}
        against = next((o for o in self.online.values() if o.shifts and set(stored) & set(o.scaling)), None)
        return Sweeping(one.reductions, tuple(writes), stored, self.ahead(one), self.online.get(at), against)

    def ahead(self, one: PassPlan) -> int:
        """How many elements ahead inputs are asked for. Where outputs are streamed, everything comes from memory, and
        the first pass is the one that waits for it. While a block of an online pass is summed, the next one comes near:
        looking for its maximum takes no time in which lines could."""
        if one is not self.plan.passes[0] or self.nest.vector not in self.nest.scan:
            return 0
        if one.step.online and self.spec.bytes > _NEAR_BYTES:
            return one.step.online
        return _AHEAD_BYTES // 4 if self.streaming else 0

    def place(self, value: int) -> Place:
        """Where a stored value lies."""
        output = self.plan.stored[value].output
        return self.scratch[value] if output is None else self.outputs[output]

    def after(self, one: PassPlan, group: Group) -> None:
        """Writes the outputs that are complete now, and do not vary along scan dims."""
        for k in (*one.writes_after, *(self.rest if one is self.plan.passes[-1] else ())):
            number = self.spec.body.outputs[k]
            self.nest.rows(group, [number])
            self.nest.write_row(group, number, self.outputs[k])

    # ---------------------------------------------------------------- pipelines

    def pipeline(self, d: int, step: int, inner: Sequence[int], outer: Group) -> None:
        """Groups along `d`, whose passes overlap: in one iteration, sweep by sweep, passes of successive groups."""
        assert all(self.spec.dims[e] == self.plan.tile[e] for e in inner), "the loop is the innermost one"
        for e in inner:
            outer = _along(outer, e, 0, self.plan.tile[e] // self.unit(e), outer.live)
        trips = self.spec.dims[d] // step
        lag = max(lag for sweep in self.plan.sweeps for _, lag in sweep)
        state: list[Group | None] = [None] * lag

        def group(iv: Index) -> Group:
            return _along(outer, d, iv, step // self.unit(d), outer.live)

        for i in range(lag):
            state = self.iteration([group(i * step), *state])
        # Every group in flight is there: what they know is carried.
        known = [sorted(self.carried(g, i + 1)) for i, g in enumerate(state)]
        names = _known(state, known)
        types = [
            self.nest.v.type(self.spec.body.values[v].dtype)
            for g, own in zip(state, known, strict=True)
            if g is not None
            for v in own
            for _ in g.rows[v]
        ]
        with self.b.carry(lag * step, trips * step, step, names, types) as (iv, carried):
            groups = self.unpacked(state, known, carried.args, iv, d, step)
            after = self.iteration([group(iv), *groups])
            carried.results = _known(after, known)
        state = list(self.unpacked(state, known, carried.results, trips * step, d, step))
        for _ in range(lag):
            state = self.iteration([None, *state])

    def unpacked(
        self,
        like: Sequence[Group | None],
        known: Sequence[Sequence[int]],
        names: Sequence[str],
        iv: Index,
        d: int,
        step: int,
    ) -> list[Group]:
        """The groups in flight when the newest is at `iv`, with what they know."""
        it, out = iter(names), []
        for i, (g, own) in enumerate(zip(like, known, strict=True)):
            assert g is not None
            new = _along(g, d, self.b.add(iv, -(i + 1) * step), g.counts[d], g.live)
            new.rows = {v: tuple(next(it) for _ in g.rows[v]) for v in own}
            out.append(new)
        return out

    def carried(self, group: Group | None, lag: int) -> set[int]:
        """The reductions that a group `lag` behind the newest has, and its later passes need."""
        later = {at for sweep in self.plan.sweeps for at, own in sweep if own >= lag}
        needed: set[int] = set()
        body = self.spec.body
        for at in later:
            one = self.plan.passes[at]
            makes = [a for r in one.reductions for a in body.values[r].args]
            makes += [body.outputs[k] for k in (*one.outputs, *one.writes_after, *self.rest)] + [
                s.value for s in one.stores
            ]
            for v in makes:
                needed |= body.depends(v)
        assert group is not None
        return {r for r in body.reductions if r in needed and r in group.rows}

    def iteration(self, groups: Sequence[Group | None]) -> list[Group | None]:
        """One iteration of a pipeline; groups: the newest first. Returns those still in flight."""
        for sweep in self.plan.sweeps:
            some = [(at, g) for at, lag in sweep if (g := groups[lag]) is not None]
            if some:
                self.sweep(some)
        return list(groups[:-1])


def _known(groups: Sequence[Group | None], known: Sequence[Sequence[int]]) -> list[str]:
    """The names of the values `known` of each group."""
    return [x for g, own in zip(groups, known, strict=True) if g is not None for v in own for x in g.rows[v]]


def _along(group: Group, d: int, at: Index, count: int, live: int | str | None) -> Group:
    """The part of a group at `at` along `d`."""
    positions, counts = list(group.at), list(group.counts)
    positions[d], counts[d] = at, count
    return replace(group, at=tuple(positions), counts=tuple(counts), live=live, rows={})
