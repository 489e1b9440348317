"""A goal of any kind with its schedule, explained: what the text, the JSON and the page show of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

from ..actions import key_of, multiply_adds
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
    """spec: the goal, as its schedule names it. schedule: as text. root: the tree of its steps. source: where the
    schedule comes from. threads: how many work on it. packed: what it packs ahead. calls: how often every call of the
    module does it; once: how often the first call does besides. where: the op, as `file:line:column`, or empty.
    measured_s: how long one call took on this machine; None: it was not timed, and `why` may say why."""

    spec: Goal
    schedule: str
    root: Step
    target: Target
    source: str
    threads: int
    packed: Sequence[Packed] = ()
    calls: int = 1
    once: int = 0
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
        """Of what is multiplied, and of the sums where that is another; of a nest that of its first output."""
        if isinstance(self.spec, NestSpec):
            return self.spec.outputs[0].dtype
        spec = _contraction(self.spec)
        if spec is None:
            return "f32"
        inputs = " x ".join(dict.fromkeys(t.dtype for t in spec.operands[:2]))
        return inputs if inputs == spec.sums else f"{inputs} in {spec.sums}"

    @property
    def packed_lines(self) -> list[str]:
        """What is packed ahead, a line each."""
        first = "packed ahead, in the first call: "
        return [f"{first}{p.operand} as {p.layout}, {bytes_text(p.bytes)}" for p in self.packed]

    @property
    def peak(self) -> float | None:
        """Operations a cycle that one thread does at best, in multiply-adds of these types; None without such."""
        spec = _contraction(self.spec)
        return None if spec is None else 2 * multiply_adds(key_of(spec.plain, self.target), self.target)

    @property
    def peak_share(self) -> float | None:
        """Predicted share of the multiply-add peak of all threads; None without multiply-adds."""
        if isinstance(self.spec, NestSpec) or self.peak is None or not self.cycles:
            return None
        return self.spec.flops / (self.threads * self.peak) / self.cycles

    @property
    def times(self) -> str:
        """What follows from `calls` and `once`, in words; empty where it is done once in every call."""
        said = [f"called {self.calls} times"] if self.calls > 1 else []
        if self.once:
            count = "once" if self.once == 1 else f"{self.once} times"
            said.append(f"{count} more in the first call" if self.calls else f"called {count}, in the first call only")
        return " and ".join(said)

    def head(self) -> list[str]:
        """What is said before the tree."""
        share = self.peak_share
        peak = "" if share is None else f", {share:.1%} of the peak"
        times = self.times
        if times:
            times += ", each: " if self.calls + self.once > 1 else ": "
        return [
            f"{self.spec}",
            f"target {called(self.target)}: {times}{self.cycles:,.0f} cycles predicted{peak}",
            f"traffic: {traffic_text(self.traffic)}",
            *self.packed_lines,
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
            "once": self.once,
            "threads": self.threads,
            "flops": self.flops,
            "bytes": self.bytes,
            "traffic": {f"{a} to {b}": n for (a, b), n in self.traffic.items()},
            "packed_ahead": [asdict(p) for p in self.packed],
            "schedule": self.schedule,
            "steps": self.root.record(),
        }


def explained(spec: Goal, node: Any, target: Target, source: str = "search") -> Explained:
    """A goal with its schedule `node`, which has no holes. Raises ScheduleError where that is not legal."""
    if isinstance(spec, ChainSpec):
        text, root = chain_schedule.to_text(node), chains.steps(spec, node, target)
        return Explained(spec, text, root, target, source, Point.of(spec, target).threads)
    text = schedules.to_text(node)
    if isinstance(spec, NestSpec):
        threads = 1 if spec.serial else spec.threads
        return Explained(spec, text, nests.steps(spec, node, target), target, source, threads)
    spec = spec.canonical()
    threads, root = key_of(spec.plain, target).threads, contractions.steps(spec, node, target)
    return Explained(spec, text, root, target, source, threads, packed_ahead(spec, node))


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


def _contraction(spec: Goal) -> Spec | None:
    """The goal, or the first of a chain's, that is one."""
    goals = [stage.goal for stage in spec.stages] if isinstance(spec, ChainSpec) else [spec]
    return next((goal for goal in goals if isinstance(goal, Spec)), None)
