"""What schedules of nests cost (docs/nests.md). Cycles until the end, where `fixed` makes integers of them.

A sweep takes max(C, M) + overlap * min(C, M): C is what its instructions take (`instructions`), M what its lines do
(`tour`). To that come, for each group, setting out, combining lanes, and what is computed once per row.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..targets import Target, fixed
from .instructions import Instructions
from .plan import PassPlan, RowsPlan, innermost, is_window
from .spec import NestSpec
from .touch import Layout
from .tour import Lines, Tour


class RowsModel:
    """The cost of `rows` of one nest, for any of its schedules; what they have in common is worked out once. near: as
    if lines of operands that come back did so from the nearest cache. instructions: of its family, where there are."""

    def __init__(self, spec: NestSpec, target: Target, *, near: bool = False, instructions: Instructions | None = None):
        self.spec, self.target, self.s = spec, target, target.streams
        self.near = near
        self.instructions = instructions or Instructions(spec, target)
        self.layouts: dict[tuple[int, tuple[int, ...]], Layout] = {}

    def layout(self, plan: RowsPlan) -> Layout:
        return self.layout_of(plan.vector, plan.tile, plan.lanes)

    def layout_of(self, vector: int, tile: Sequence[int], lanes: int) -> Layout:
        """That of plans with this vector dim and tile."""
        group = tuple(n if s else min(t, n) for n, s, t in zip(self.spec.dims, self.spec.scan, tile, strict=True))
        key = vector, group
        if key not in self.layouts:
            self.layouts[key] = Layout(self.spec, self.target, vector, lanes, group, self.near)
        return self.layouts[key]

    def cost(self, plan: RowsPlan) -> int:
        """Of the plan, in integer units."""
        return fixed(self.cycles(plan))

    def cycles(self, plan: RowsPlan) -> float:
        layout = self.layout(plan)
        memory = self.memory(plan, layout)
        total = self.around(plan, layout)
        for sweep in plan.sweeps:
            passes, lines = [plan.passes[j] for j, _ in sweep], [memory[j] for j, _ in sweep]
            compute, out = self.sweep(passes, layout, plan)
            total += self.whole(sweep, passes, lines, (compute, out), layout, plan)
            total += out
        return total + self.end(plan.passes)

    def end(self, passes: Sequence[PassPlan]) -> float:
        """What comes at the end of all groups: what has been written past the caches arrives."""
        return self.s.fence if any(p.step.streaming for p in passes) else 0.0

    def whole(
        self,
        sweep: Sequence[tuple[int, int]],
        passes: Sequence[PassPlan],
        lines: Sequence[Lines],
        busy: tuple[float, float],
        layout: Layout,
        plan: RowsPlan,
    ) -> float:
        """Cycles of one sweep over all groups, without what comes before and after. sweep: of `plan`; passes: what runs
        in it, as they are unrolled; lines: theirs; busy: what `sweep` says of them."""
        compute, out = busy
        cycles = self.combined(passes, compute, sum(lines, Lines()), plan.vector)
        late = max(lag for _, lag in sweep)
        if not late:
            return cycles
        inner = innermost(plan)
        assert inner is not None
        # At both ends of the loop some passes have nothing to do, so that less takes place beside the others.
        parts = 0.0
        for turn in range(late):
            for first in (True, False):
                there = [i for i, (_, lag) in enumerate(sweep) if (lag <= turn) == first]
                own = [passes[i] for i in there]
                compute, around = self.sweep(own, layout, plan)
                parts += self.combined(own, compute, sum((lines[i] for i in there), Lines()), plan.vector) + around
        longer = max(0.0, parts - late * (cycles + out)) / layout.groups
        restarts = layout.groups // (self.spec.dims[inner] // plan.tile[inner])
        return cycles + restarts * (longer + late * self.s.ramp)

    def combined(self, passes: Sequence[PassPlan], compute: float, lines: Lines, vector: int) -> float:
        """Cycles of one sweep. An online pass waits for some of its lines while it looks for their maximum, not beside
        what takes long. A window of a few lines waits in its own way: on Zen 5 for them all."""
        online = any(p.step.online is not None for p in passes)
        overlap = self.s.online_overlap if online else self.s.overlap
        if is_window(self.spec, vector):
            overlap = self.s.window_overlap
        # What is written past the caches takes place beside other lines, but for those that wait.
        beside = self.s.past_beside * max(0.0, lines.past - lines.waits)
        memory = lines.cached + lines.past - beside
        return max(max(compute, memory) + overlap * min(compute, memory), lines.past)

    def sweep(self, passes: Sequence[PassPlan], layout: Layout, plan: RowsPlan) -> tuple[float, float]:
        """(cycles of the instructions, cycles before and after) of passes that are one sweep, over all groups."""
        compute = out = 0.0
        for shape, count in layout.shapes:
            busy, around = self.instructions.sweep(passes, layout, shape, plan)
            compute, out = compute + count * busy, out + count * around
        return compute, out

    def around(self, plan: RowsPlan, layout: Layout) -> float:
        """What comes to the sweeps, over all groups: combining lanes, what is computed once per row."""
        total = 0.0
        for shape, count in layout.shapes:
            total += count * self.instructions.around(plan, layout, shape)
        return total

    def memory(self, plan: RowsPlan, layout: Layout, *, past: bool = False) -> list[Lines]:
        """By pass: cycles of the lines that all groups touch. past: all outputs are written past the caches, instead of
        those of passes that say so."""
        tour = Tour(self.target, plan, layout, past=past)
        return [tour.visit(j, p) for j, p in enumerate(plan.passes)]

    def moved(self, plan: RowsPlan, layout: Layout) -> list[dict[tuple[str, str], int]]:
        """By pass: bytes that all groups move, by (from, to) memory."""
        tour = Tour(self.target, plan, layout)
        return [tour.moved(j, p) for j, p in enumerate(plan.passes)]
