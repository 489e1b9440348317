"""The cheapest `rows` of a nest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from ..search.nest_steps import Pass, Rows
from ..targets import Target, fixed
from .cost import RowsModel
from .plan import PassPlan, RowsPlan, lanes_of, rows_plan
from .space import Structures, can_pipeline, layouts, streams, sweeps_of, unrolls
from .spec import NestSpec
from .touch import Layout
from .tour import Lines


def _subsets(items: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The smallest first."""
    for n in range(len(items) + 1):
        yield from combinations(items, n)


class LeafSearch:
    """Finds the cheapest `rows` of one nest. near: as if lines of operands that come back did so from the nearest
    cache."""

    def __init__(self, spec: NestSpec, target: Target, *, near: bool = False):
        self.spec, self.target = spec, target
        self.near = near
        self.model = RowsModel(spec, target, near=near)
        self.lanes = lanes_of(spec, target)
        self._unrolled: dict[object, tuple[float, float, tuple[tuple[str, int], ...]]] = {}

    def best(self, given: Rows | None = None) -> tuple[int, Rows] | None:
        """(cost, step): the first of the cheapest; None where there is none. given: its vector dim, tile, pipelining
        and first passes are kept."""
        found: tuple[float, RowsPlan] | None = None
        for option in self.options(given):
            if found is None or option[0] < found[0]:
                found = option
        if found is None:
            return None
        return fixed(found[0]), self.node(found[1])

    def cheapest(self, count: int) -> list[tuple[int, Rows]]:
        """(cost, step) of the `count` cheapest, the first as `best` has it. No two differ in how passes are unrolled
        alone: that is done in the cheapest way. Outputs go past the caches where that is cheapest, all that may, or
        none."""
        seen: set[Rows] = set()
        out: list[tuple[int, Rows]] = []
        for cycles, plan in sorted(self._past_or_not(self.options()), key=lambda option: option[0]):
            if len(out) == count:
                break
            node = self.node(plan)
            if node not in seen:
                seen.add(node)
                out.append((fixed(cycles), node))
        return out

    def _past_or_not(self, options: Iterable[tuple[float, RowsPlan]]) -> Iterator[tuple[float, RowsPlan]]:
        """Every option, and what it is with all outputs past the caches that may be, and with none."""
        for cycles, plan in options:
            yield cycles, plan
            for past in (False, True):
                steps = [replace(p.step, streaming=past and streams(p, self.spec, plan.vector)) for p in plan.passes]
                if steps != [p.step for p in plan.passes]:
                    passes = (replace(p, step=step) for p, step in zip(plan.passes, steps, strict=True))
                    other = replace(plan, passes=tuple(passes))
                    yield self.model.cycles(other), other

    def options(self, given: Rows | None = None) -> Iterator[tuple[float, RowsPlan]]:
        """(cycles, plan) of every form: sequence of passes, group, and which passes share loops. given: see `best`."""
        first = [p for p in given.passes if isinstance(p, Pass)] if given else []
        all_ = Structures(self.spec, self.target)
        structures = list(all_.plans(first)) if first else all_.known()
        for vector, vectors, tile in self.cuts(given):
            for structure in structures:
                points = tuple(
                    vectors * self.lanes if d == vector and not self.spec.scan[d] else n for d, n in enumerate(tile)
                )
                plan = replace(structure, vector=vector, tile=points)
                for per in self.pipelines(plan, given):
                    option = self.choose(replace(plan, sweeps=sweeps_of(len(plan.passes), per)), len(first))
                    if option is not None:
                        yield option

    def cuts(self, given: Rows | None) -> Sequence[tuple[int, int, tuple[int, ...]]]:
        if given is None:
            return list(layouts(self.spec, self.target))
        tile = dict(given.tile)
        points = tuple(tile.get(f"d{d}", 1) for d in range(len(self.spec.dims)))
        return [(int(given.vector[1:]), given.vectors, points)]

    def pipelines(self, plan: RowsPlan, given: Rows | None) -> list[int]:
        count = len(plan.passes)
        options = [given.pipeline or count] if given else [count, *range(1, count)]
        return [per for per in options if 0 < per <= count and (per == count or can_pipeline(plan, per))]

    # ------------------------------------------------------------ one structure, cut in one way

    def choose(self, plan: RowsPlan, given: int) -> tuple[float, RowsPlan] | None:
        """(cycles, plan) with the cheapest unrolling of the passes (but for the first `given`), and those writing past
        the caches that gain by it."""
        model = self.model
        layout = model.layout(plan)
        memory = model.memory(plan, layout)
        passes = list(plan.passes)
        free = {j for j, p in enumerate(passes) if j >= given and streams(p, self.spec, plan.vector)}
        other = model.memory(plan, layout, past=True) if free else memory
        total = model.around(plan, layout)
        for sweep in plan.sweeps:
            held = [passes[j].step.unroll for j, _ in sweep if j < given]
            if any(unroll != held[0] for unroll in held):
                return None
            # What is fastest is so whatever the lines take.
            own = [passes[j] for j, _ in sweep]
            busy, around, unroll = self.unrolled(own, layout, plan, held)
            own = [replace(p, step=replace(p.step, unroll=unroll)) for p in own]
            # Each pass that may writes past the caches or not, in any combination.
            best: tuple[float, tuple[int, ...]] | None = None
            for past in _subsets([j for j, _ in sweep if j in free]):
                lines = sum((other[j] if j in past else memory[j] for j, _ in sweep), Lines())
                cycles = model.combined(own, busy, lines, plan.vector)
                if best is None or cycles < best[0]:
                    best = cycles, past
            assert best is not None
            total += best[0] + around
            for j, _ in sweep:
                step = replace(passes[j].step, unroll=unroll)
                passes[j] = replace(passes[j], step=replace(step, streaming=True) if j in best[1] else step)
        return total, replace(plan, passes=tuple(passes))

    def unrolled(
        self, passes: Sequence[PassPlan], layout: Layout, plan: RowsPlan, held: Sequence[tuple[tuple[str, int], ...]]
    ) -> tuple[float, float, tuple[tuple[str, int], ...]]:
        """(cycles of instructions, cycles before and after, unrolling) of one sweep."""
        what = tuple((p.reductions, p.outputs, p.loads, p.compute, p.stores, p.step.online) for p in passes)
        key = layout.vector, layout.group, what, tuple(plan.stored), tuple(held[:1])
        if key not in self._unrolled:
            best: tuple[float, float, tuple[tuple[str, int], ...]] | None = None
            for unroll in held[:1] or unrolls(self.spec, layout.vector, self.lanes):
                own = [replace(p, step=replace(p.step, unroll=unroll)) for p in passes]
                cycles = self.model.compute(own, layout, plan)
                around = self.model.setting_out(own, layout, plan)
                if best is None or cycles + around < best[0] + best[1]:
                    best = cycles, around, unroll
            assert best is not None
            self._unrolled[key] = best
        return self._unrolled[key]

    def node(self, plan: RowsPlan) -> Rows:
        """The step, checked: the plan made from it costs what has been found."""
        tile = tuple((f"d{d}", n) for d, n in enumerate(plan.tile) if n > 1 and d != plan.vector)
        parallel = not self.spec.scan[plan.vector]
        vectors = plan.tile[plan.vector] // self.lanes if parallel else 1
        per = len(plan.sweeps) if plan.pipelined else 0
        node = Rows(f"d{plan.vector}", vectors, tile, per, tuple(p.step for p in plan.passes))
        checked = rows_plan(self.spec, node, self.target)
        assert self.model.cost(checked) == self.model.cost(plan), (node.label(), str(self.spec))
        return node
