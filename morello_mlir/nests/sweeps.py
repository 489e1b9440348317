"""Cycles of instructions, looked up: what the search for `rows` asks for again and again (docs/nests.md).

Groups of one shape are met in many layouts, and in many nests: those that threads and outer loops leave of one another
differ in sizes alone. What their sweeps take is counted once for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..search.nest_steps import Pass
from ..targets import Target
from .instructions import Instructions
from .plan import PassPlan, RowsPlan
from .space import unrolls
from .spec import NestSpec
from .touch import Layout

Unroll = tuple[tuple[str, int], ...]
#: Structures of families, of which a search keeps no more.
MOST_FAMILIES = 256


@dataclass(frozen=True, slots=True)
class Sweep:
    """Of a plan: numbers of its passes, the number of what they do, and the unrolling that they must have, if any."""

    passes: tuple[int, ...]
    number: int
    held: tuple[Unroll, ...]


class Sweeps:
    """Cycles of the sweeps of one family of nests (`Instructions.family`), by the shape of a group."""

    def __init__(self, spec: NestSpec, target: Target):
        self.instructions = Instructions(spec, target)
        self._numbers: dict[object, int] = {}
        self._ways: dict[tuple[int, int], list[Unroll]] = {}
        self._sweeps: dict[tuple[int, int, tuple[int, ...]], list[tuple[float, float]]] = {}
        self._around: dict[tuple[int, int, tuple[int, ...]], float] = {}

    def number(self, what: object) -> int:
        """One for all that is equal to `what`."""
        return self._numbers.setdefault(what, len(self._numbers))

    def number_of_sweep(self, plan: RowsPlan, passes: Sequence[int], held: Sequence[Unroll]) -> int:
        """Of what a sweep of a plan does; held: the unrolling that it must have, if any."""
        own = [plan.passes[j] for j in passes]
        what = tuple((p.reductions, p.outputs, p.loads, p.compute, p.stores, p.rows, p.step.online) for p in own)
        return self.number((what, tuple(self.instructions.corrected(p, plan) for p in own), tuple(held[:1])))

    def number_around(self, plan: RowsPlan) -> int:
        """Of what comes to the sweeps of a plan."""
        return self.number((plan.before, tuple((p.reductions, p.after, len(p.writes_after)) for p in plan.passes)))

    def all(self, sweep: Sweep, plan: RowsPlan, layout: Layout) -> list[tuple[float, float, Unroll]]:
        """(cycles of instructions, cycles before and after, unrolling) of every way to unroll a sweep of `plan`, over
        all groups."""
        ways = self._ways_of(sweep, layout)
        busy, around = [0.0] * len(ways), [0.0] * len(ways)
        for shape, count in layout.shapes:
            key = sweep.number, layout.vector, shape
            found = self._sweeps.get(key)
            if found is None:
                found = self._sweeps[key] = [self._count(sweep, plan, layout, shape, way) for way in ways]
            for i, (own, out) in enumerate(found):
                busy[i] += count * own
                around[i] += count * out
        return list(zip(busy, around, ways, strict=True))

    def best(self, sweep: Sweep, plan: RowsPlan, layout: Layout) -> tuple[float, float, Unroll]:
        """Of `all`, the first of the fastest."""
        return min(self.all(sweep, plan, layout), key=lambda way: way[0] + way[1])

    def _ways_of(self, sweep: Sweep, layout: Layout) -> list[Unroll]:
        key = sweep.number, layout.vector
        if key not in self._ways:
            self._ways[key] = list(sweep.held[:1]) or unrolls(layout.spec, layout.vector, layout.lanes)
        return self._ways[key]

    def _count(
        self, sweep: Sweep, plan: RowsPlan, layout: Layout, shape: tuple[int, ...], unroll: Unroll
    ) -> tuple[float, float]:
        passes = [unrolled(plan.passes[j], unroll) for j in sweep.passes]
        return self.instructions.sweep(passes, layout, shape, plan)

    def around(self, number: int, plan: RowsPlan, layout: Layout) -> float:
        """As `RowsModel.around`. number: `number_around`."""
        total = 0.0
        for shape, count in layout.shapes:
            key = number, layout.vector, shape
            found = self._around.get(key)
            if found is None:
                found = self._around[key] = self.instructions.around(plan, layout, shape)
            total += count * found
        return total


class Families:
    """The sweeps of the families of a search."""

    def __init__(self, target: Target):
        self.target = target
        self._found: dict[object, Sweeps] = {}

    def of(self, spec: NestSpec) -> Sweeps:
        key = Instructions.family(spec)
        if key not in self._found:
            if len(self._found) >= MOST_FAMILIES:
                self._found.clear()
            self._found[key] = Sweeps(spec, self.target)
        return self._found[key]


def unrolled(p: PassPlan, unroll: Unroll, *, streaming: bool = False) -> PassPlan:
    """A pass with its scan dims unrolled so. streaming: and its outputs written past the caches."""
    step: Pass = replace(p.step, unroll=unroll, streaming=streaming or p.step.streaming)
    return replace(p, step=step)
