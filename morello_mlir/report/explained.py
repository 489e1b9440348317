"""A goal of any kind with its schedule, explained: what the text, the JSON and the page show of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

from ..actions import key_of
from ..actions.state import operand_bytes
from ..chains import ChainSpec
from ..chains import explain as chains
from ..chains import schedule as chain_schedule
from ..chains.space import Point
from ..nests import NestSpec
from ..nests import explain as nests
from ..search import explain as contractions
from ..search import schedule as schedules
from ..search.explain import Packed, packed_ahead
from ..search.steps import Step, Traffic, bytes_text, table, traffic, traffic_text
from ..search.then import then_bytes
from ..spec import Spec
from ..targets import COST_UNITS, Target, called

Goal: TypeAlias = Spec | NestSpec | ChainSpec


@dataclass(frozen=True)
class Explained:
    """spec: the goal, as its schedule names it. schedule: as text. root: the tree of its steps. calls: how often the
    module does it. source: where the schedule comes from. threads: how many work on it. packed: what it packs ahead.
    where: the op, as `file:line:column`, or empty. measured_s: how long one call took on this machine; None: it was not
    timed, and `why` may say why."""

    spec: Goal
    schedule: str
    root: Step
    target: Target
    source: str
    threads: int
    calls: int = 1
    packed: Sequence[Packed] = ()
    where: str = ""
    measured_s: float | None = field(default=None, compare=False)
    why: str = field(default="", compare=False)

    @property
    def cost(self) -> int:
        """Of one call, in integer units."""
        return self.root.total

    @property
    def cycles(self) -> float:
        return self.cost / COST_UNITS

    @property
    def traffic(self) -> Traffic:
        """Bytes moved by one call, by (from, to) memory."""
        return traffic(self.root)

    @property
    def flops(self) -> int:
        """Operations of one call: multiplications and additions of contractions; of nests, each op of the body as often
        as its value is needed, whatever it takes."""
        return _flops(self.spec)

    @property
    def bytes(self) -> int:
        """Of all operands, each element once: what must be moved at least."""
        if isinstance(self.spec, Spec):
            return operand_bytes(self.spec) + then_bytes(self.spec)
        return self.spec.bytes

    @property
    def intensity(self) -> float:
        """Operations a byte."""
        return self.flops / self.bytes if self.bytes else 0.0

    @property
    def dtype(self) -> str:
        """In which it computes: of the sums, or of the first output."""
        return _sums(self.spec) or (self.spec.outputs[0].dtype if isinstance(self.spec, NestSpec) else "f32")

    @property
    def peak_share(self) -> float | None:
        """Predicted share of the multiply-add peak of all threads' vector units; None without multiply-adds."""
        dtype = _sums(self.spec)
        if isinstance(self.spec, NestSpec) or dtype is None or not self.cycles:
            return None
        per_cycle = self.threads * self.target.costs.fma_per_cycle * self.target.lanes(dtype) * 2
        return self.spec.flops / per_cycle / self.cycles

    def head(self) -> list[str]:
        """What is said before the tree."""
        share = self.peak_share
        peak = "" if share is None else f", {share:.1%} of the FMA peak"
        times = f"called {self.calls} times, each: " if self.calls > 1 else ""
        return [
            f"{self.spec}",
            f"target {called(self.target)}: {times}{self.cycles:,.0f} cycles predicted{peak}",
            f"traffic: {traffic_text(self.traffic)}",
            *(f"packed ahead: {p.operand}, {bytes_text(p.bytes)}" for p in self.packed),
        ]

    def text(self, least: float = 0.5) -> str:
        """The schedule as annotated text; branches that cost less than `least` percent of the whole become `...`."""
        return "\n".join([*self.head(), "", *table(self.root, least)])

    def record(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "spec": str(self.spec),
            "target": called(self.target),
            "cost": self.cost,
            "cycles": self.cycles,
            "source": self.source,
            "calls": self.calls,
            "threads": self.threads,
            "flops": self.flops,
            "bytes": self.bytes,
            "traffic": {f"{a} to {b}": n for (a, b), n in self.traffic.items()},
            "packed_ahead": [asdict(p) for p in self.packed],
            "schedule": self.schedule,
            "steps": self.root.record(),
        }


def explained(
    spec: Goal, node: Any, target: Target, source: str = "search", *, calls: int = 1, where: str = ""
) -> Explained:
    """A goal with its schedule `node`, which has no holes. Raises ScheduleError where that is not legal."""
    if isinstance(spec, ChainSpec):
        text, root = chain_schedule.to_text(node), chains.steps(spec, node, target)
        return Explained(spec, text, root, target, source, Point.of(spec, target).threads, calls, (), where)
    text = schedules.to_text(node)
    if isinstance(spec, NestSpec):
        threads = 1 if spec.serial else spec.threads
        return Explained(spec, text, nests.steps(spec, node, target), target, source, threads, calls, (), where)
    spec = spec.canonical()
    threads, root = key_of(spec.plain, target).threads, contractions.steps(spec, node, target)
    return Explained(spec, text, root, target, source, threads, calls, packed_ahead(spec, node), where)


def _flops(spec: Goal) -> int:
    if isinstance(spec, ChainSpec):
        return sum(_flops(stage.goal) for stage in spec.stages)
    if isinstance(spec, Spec):
        b, m, _, n = spec.dims
        return spec.flops + b * m * n * (sum(not v.is_leaf for v in spec.then.body.values) if spec.then else 0)
    total = 0
    for at, value in enumerate(spec.body.values):
        if not value.is_leaf:
            along = spec.varies[at] | (frozenset(spec.scan_dims) if value.reduces else frozenset())
            total += math.prod(spec.dims[d] for d in along)
    return total


def _sums(spec: Goal) -> str | None:
    """The type in which contractions add up."""
    if isinstance(spec, ChainSpec):
        return next((_sums(stage.goal) for stage in spec.stages if stage.is_contraction), None)
    return spec.sums if isinstance(spec, Spec) else None
