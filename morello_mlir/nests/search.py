"""The search for nests."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from threading import RLock

from ..errors import SpecError
from ..search.nest_steps import Pass, Rows
from ..search.schedule import Hole, Node, Parallel, Serial
from ..targets import COST_UNITS, Target, thread_count
from .actions import check_tree, goal
from .fill import fill
from .plan import goals, swept_outputs, value_of
from .spec import NestSpec


@dataclass(frozen=True, slots=True)
class NestSolution:
    """As `search.solve.Solution`: a schedule of a nest and its predicted cost in integer units. spec: the goal that it
    is for, whose dims it names."""

    spec: NestSpec
    schedule: Node
    cost: int
    source: str
    seconds: float

    @property
    def cycles(self) -> float:
        return self.cost / COST_UNITS


class NestSearch:
    """Solves nests for one target; solved goals are kept. Thread-safe."""

    def __init__(self, target: Target):
        self.target = target
        self._solved: dict[NestSpec, tuple[Node, int]] = {}
        self._lock = RLock()

    def goal(self, spec: NestSpec) -> NestSpec:
        """`spec` with its number of threads, and its operands where they are when it starts (see `actions.goal`)."""
        if 0 in spec.dims:
            raise SpecError(f"nothing to search: a size is 0 in {spec}")
        spec = goal(spec, self.target)
        if spec.serial:
            return spec
        threads = spec.threads or thread_count()
        return replace(spec, serial=threads == 1, threads=0 if threads == 1 else threads)

    def solve(self, spec: NestSpec) -> NestSolution:
        """The cheapest implementation of `spec` in its canonical form. Raises SpecError where a size is 0."""
        start = time.perf_counter()
        spec = self.goal(spec.canonical())
        with self._lock:
            known = spec in self._solved
            if not known:
                self._solved[spec] = default(spec, self.target), 0
            node, cost = self._solved[spec]
        return NestSolution(spec, node, cost, "memo" if known else "search", time.perf_counter() - start)

    def complete(self, spec: NestSpec, node: Node) -> NestSolution:
        """`node`, whose steps name the dims of `spec` as they stand, with its holes filled by the search.

        Raises ScheduleError where a step is not legal.
        """
        start = time.perf_counter()
        if isinstance(node, Hole):
            return self.solve(spec)
        spec = self.goal(spec)
        check_tree(spec, node, self.target)
        full = fill(spec, node, self.target, self._fill)
        return NestSolution(spec, full, 0, "manual", time.perf_counter() - start)

    def _fill(self, spec: NestSpec, rows: Rows | None) -> Node:
        return default(spec, self.target)


def vector_dim(spec: NestSpec) -> int:
    """A dim along which most operands are contiguous."""
    score = [sum(2 * (o.strides[d] == 1) - (o.strides[d] > 1) for o in spec.operands) for d in range(len(spec.dims))]
    return max(range(len(spec.dims)), key=lambda d: (score[d], min(spec.dims[d], 64), d))


def default(spec: NestSpec, target: Target) -> Node:
    """A legal schedule: every reduction in a pass of its own, then the outputs."""
    swept = len(swept_outputs(spec))
    names = goals(spec)
    split = len(names) - swept
    passes = [Pass((name,)) for name in sorted(names[:split], key=lambda n: value_of(n, spec))]
    if swept:
        passes.append(Pass(names[split:]))
    rows = Rows(f"d{vector_dim(spec)}", 1, (), 0, tuple(passes))
    if spec.serial:
        return rows
    for d in spec.parallel_dims:
        if spec.dims[d] > 1 and spec.dims[d] % 2 == 0:
            return Parallel(f"d{d}", spec.dims[d] // 2, rows, None)
    return Serial(rows)


_searches: dict[str, NestSearch] = {}
_searches_lock = RLock()


def nest_search_for(target: Target) -> NestSearch:
    """The process's search for nests on `target`."""
    with _searches_lock:
        name = target.fingerprint
        if name not in _searches:
            _searches[name] = NestSearch(target)
        return _searches[name]


__all__ = ["NestSearch", "default", "nest_search_for"]
