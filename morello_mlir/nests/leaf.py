"""The cheapest `rows` of a nest."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from ..search.nest_steps import Pass, Rows
from ..targets import Target, fixed
from .cost import RowsModel
from .plan import PassPlan, RowsPlan, lanes_of, rows_plan
from .space import Structures, can_pipeline, layouts, streams, sweeps_of
from .spec import NestSpec
from .sweeps import Sweep, Sweeps, Unroll, unrolled
from .touch import Layout


def _subsets(items: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The smallest first."""
    for n in range(len(items) + 1):
        yield from combinations(items, n)


@dataclass(frozen=True, slots=True)
class Form:
    """A structure in so many sweeps, before it is known how it is cut into groups. around: number of what comes to the
    sweeps. given: of how many passes the unrolling and the stores are."""

    plan: RowsPlan
    sweeps: tuple[Sweep, ...]
    around: int
    given: int


@dataclass(frozen=True, slots=True)
class Option:
    """A form with its vector dim and the points of a group. before: cycles that come to its sweeps; found: of every
    sweep, what `Sweeps.best` says; least: what it takes at least, without its cache lines."""

    form: Form
    vector: int
    points: tuple[int, ...]
    layout: Layout
    before: float
    found: Sequence[tuple[float, float, Unroll]]
    least: float


class LeafSearch:
    """Finds the cheapest `rows` of one nest. near: as if lines of operands that come back did so from the nearest
    cache. sweeps: those of its family, where there are."""

    def __init__(self, spec: NestSpec, target: Target, *, near: bool = False, sweeps: Sweeps | None = None):
        self.spec, self.target = spec, target
        self.near = near
        self.sweeps = sweeps or Sweeps(spec, target)
        self.model = RowsModel(spec, target, near=near, instructions=self.sweeps.instructions)
        self.lanes = lanes_of(spec, target)

    def best(self, given: Rows | None = None, below: float = math.inf) -> tuple[int, Rows] | None:
        """(cost, step): the first of the cheapest; None where there is none of less than `below` cycles. given: its
        vector dim, tile, pipelining and first passes are kept."""
        found = self._first(list(self.options(given)), below)
        return None if found is None else (fixed(found[0]), self.node(found[1]))

    def cheapest(self, count: int) -> list[tuple[int, Rows]]:
        """(cost, step) of the `count` cheapest, the first as `best` has it. No two differ in how passes are unrolled
        alone: that is done in the cheapest way. Outputs go past the caches where that is cheapest, all that may, or
        none."""
        seen: set[Rows] = set()
        out: list[tuple[int, Rows]] = []
        found = (self.choose(option) for option in self.options())
        for cycles, plan in sorted(self._past_or_not(found), key=lambda option: option[0]):
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

    def options(self, given: Rows | None = None) -> Iterator[Option]:
        """Every form: sequence of passes, group, and which passes share loops. given: see `best`."""
        first = [p for p in given.passes if isinstance(p, Pass)] if given else []
        all_ = Structures(self.spec, self.target)
        structures = list(all_.plans(first)) if first else all_.known()
        forms = [f for structure in structures for f in self.forms(structure, given, len(first))]
        for vector, vectors, tile in self.cuts(given):
            points = self.points(vector, vectors, tile)
            for form in forms:
                option = self.option(form, vector, points)
                if option is not None:
                    yield option

    def _first(self, options: Sequence[Option], below: float) -> tuple[float, RowsPlan] | None:
        """(cycles, plan) of the first of the cheapest; None where none takes less than `below`. Nobody asks for the
        cache lines of what takes longer for its instructions alone."""
        best: tuple[float, int, RowsPlan] | None = None
        for i in sorted(range(len(options)), key=lambda i: options[i].least):
            if options[i].least >= below or (best and options[i].least > best[0]):
                break
            cycles, plan = self.choose(options[i])
            if cycles < below and (best is None or (cycles, i) < best[:2]):
                best = cycles, i, plan
        return None if best is None else (best[0], best[2])

    def cuts(self, given: Rows | None) -> Sequence[tuple[int, int, tuple[int, ...]]]:
        if given is None:
            return list(layouts(self.spec, self.target))
        tile = dict(given.tile)
        points = tuple(tile.get(f"d{d}", 1) for d in range(len(self.spec.dims)))
        return [(int(given.vector[1:]), given.vectors, points)]

    def points(self, vector: int, vectors: int, tile: Sequence[int]) -> tuple[int, ...]:
        """Steps of every dim in a group, as plans have them."""
        return tuple(vectors * self.lanes if d == vector and not self.spec.scan[d] else n for d, n in enumerate(tile))

    def forms(self, structure: RowsPlan, given: Rows | None = None, first: int = 0) -> Iterator[Form]:
        """A structure in every number of sweeps, those of which each pass is one first. first: how many of its passes
        are `given`, which are unrolled as they are."""
        count = len(structure.passes)
        around = self.sweeps.number_around(structure)
        for per in [given.pipeline or count] if given else [count, *range(1, count)]:
            if not 0 < per <= count:
                continue
            plan = replace(structure, sweeps=sweeps_of(count, per))
            own = tuple(self._sweep(plan, tuple(j for j, _ in sweep), first) for sweep in plan.sweeps)
            if all(len(set(s.held)) < 2 for s in own):
                yield Form(plan, own, around, first)

    def _sweep(self, plan: RowsPlan, passes: tuple[int, ...], first: int) -> Sweep:
        held = tuple(plan.passes[j].step.unroll for j in passes if j < first)
        return Sweep(passes, self.sweeps.number_of_sweep(plan, passes, held), held)

    # ------------------------------------------------------------ one structure, cut in one way

    def option(self, form: Form, vector: int, points: tuple[int, ...]) -> Option | None:
        """A form cut into groups of these points, unrolled as is fastest but for what is given; None where it is not
        legal."""
        plan = form.plan
        if plan.pipelined:
            plan = replace(plan, vector=vector, tile=points)
            if not can_pipeline(plan, len(plan.sweeps)):
                return None
        layout = self.model.layout_of(vector, points, plan.lanes)
        before = self.sweeps.around(form.around, plan, layout)
        # What is fastest is so whatever the lines take.
        found = [self.sweeps.best(s, plan, layout) for s in form.sweeps]
        least = before
        for busy, around, _ in found:
            least += busy + around
        return Option(form, vector, points, layout, before, found, least)

    def choose(self, option: Option) -> tuple[float, RowsPlan]:
        """(cycles, plan) with the passes that gain by it writing past the caches."""
        form = option.form
        plan = replace(form.plan, vector=option.vector, tile=option.points)
        free = {j for j, p in enumerate(plan.passes) if j >= form.given and streams(p, self.spec, plan.vector)}
        total, passes = self._choose(option, plan, free)
        if free and any(passes[j].step.streaming for j in free):
            # What comes once at the end, however many passes do, may be more than all of them gain.
            without = self._choose(option, plan, set())
            total, passes = min((total, passes), without, key=lambda found: found[0])
        return total, replace(plan, passes=passes)

    def _choose(self, option: Option, plan: RowsPlan, free: set[int]) -> tuple[float, tuple[PassPlan, ...]]:
        """(cycles, passes) of `plan`, of which those of `free` write past the caches or not."""
        form, layout, model, total = option.form, option.layout, self.model, option.before
        memory = model.memory(plan, layout)
        other = model.memory(plan, layout, past=True) if free else memory
        passes: dict[int, PassPlan] = {}
        for sweep, lags, fastest in zip(form.sweeps, plan.sweeps, option.found, strict=True):
            # What is fastest is so whatever the lines take, but where passes of neighbouring groups share a loop.
            late = any(lag for _, lag in lags)
            best: tuple[float, float, list[PassPlan]] | None = None
            for busy, around, unroll in self.sweeps.all(sweep, plan, layout) if late else [fastest]:
                # Each pass that may writes past the caches or not, in any combination.
                for past in _subsets([j for j in sweep.passes if j in free]):
                    own = [unrolled(plan.passes[j], unroll, streaming=j in past) for j in sweep.passes]
                    lines = [other[j] if j in past else memory[j] for j in sweep.passes]
                    cycles = model.whole(lags, own, lines, (busy, around), layout, plan)
                    if best is None or cycles + around < best[0] + best[1]:
                        best = cycles, around, own
            assert best is not None
            total += best[0] + best[1]
            passes.update(zip(sweep.passes, best[2], strict=True))
        chosen = tuple(passes[j] for j in range(len(passes)))
        return total + model.end(chosen), chosen

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
