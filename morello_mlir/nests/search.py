"""The search for nests."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

from ..errors import ScheduleError, SpecError
from ..locks import lock
from ..memo.answers import Answer, Answers, answer_space
from ..search.nest_steps import Partial, Pass, Reciprocal, Rows, Stage
from ..search.schedule import Hole, Node, Parallel, Serial, Tile, children, has_hole, parse, to_text
from ..search.solution import Solved
from ..search.solve import Search
from ..targets import COST_UNITS, Target, thread_count
from .actions import check_tree, goal, positions, rewritten
from .cost import RowsModel
from .fill import fill, with_children
from .leaf import LeafSearch
from .plan import goals, rows_plan, swept_outputs, value_of
from .rewrite import Child, reciprocal_body
from .sharing import own_cost
from .space import BLOCK_GAIN, BLOCK_STEPS, shared_steps, stages
from .spec import NestSpec
from .sweeps import Families


@dataclass(frozen=True, slots=True)
class NestSolution(Solved[NestSpec, Node]):
    """Of a nest."""


#: Among the dims that are cut: parts are made above.
PARTS_MADE = -1


class NestSearch:
    """Solves nests for one target; solved goals are kept, and those of `answers` (what earlier processes found) are
    used. Thread-safe."""

    def __init__(self, target: Target, answers: Answers | None = None):
        self.target = target
        self.answers = answers
        self._solved: dict[tuple[NestSpec, frozenset[int]], tuple[int, Node] | None] = {}
        self._leaves: dict[NestSpec, tuple[int, Rows] | None] = {}
        self._families = Families(target)
        self._lock = lock()

    def goal(self, spec: NestSpec) -> NestSpec:
        """`spec` with its number of threads, and its operands where they are when it starts (see `actions.goal`)."""
        if 0 in spec.dims:
            raise SpecError(f"nothing to search: a size is 0 in {spec}")
        spec = goal(spec, self.target)
        if spec.serial:
            return spec
        threads = spec.threads or thread_count()
        return replace(spec, serial=threads == 1, threads=0 if threads == 1 else threads)

    # ------------------------------------------------------------ the optimum

    def solve(self, spec: NestSpec) -> NestSolution:
        """The cheapest implementation of `spec` in its canonical form. Raises SpecError where a size is 0."""
        start = time.perf_counter()
        spec = self.goal(spec.canonical())
        with self._lock:
            known = (spec, frozenset()) in self._solved or self._remembered(spec)
            found = self.best(spec)
            assert found is not None, f"no schedule for {spec}"
            if not known and self.answers:
                self.answers.put(Answer(answer_space(self.target), str(spec), to_text(found[1]), found[0]))
        return NestSolution(spec, found[1], found[0], "memo" if known else "search", time.perf_counter() - start)

    def cheapest(self, spec: NestSpec, count: int) -> list[NestSolution]:
        """The `count` cheapest implementations of `spec` in its canonical form, no two alike but for how passes are
        unrolled; fewer where there are not that many. The first costs what `solve` finds, whose errors it raises."""
        from .kbest import NestKBest

        start = time.perf_counter()
        spec = self.goal(spec.canonical())
        with self._lock:
            found = NestKBest(self, count).best(spec)
        took = time.perf_counter() - start
        return [NestSolution(spec, node, cost, "search", took) for cost, node in found]

    def _remembered(self, spec: NestSpec) -> bool:
        """Whether the memo has the answer, which is then among the solved goals: checked, and priced anew."""

        def read(schedule: str) -> tuple[Node, int]:
            node = parse(schedule)
            if has_hole(node):
                raise ScheduleError("its schedule has holes")
            return node, self.complete(spec, node).cost

        found = self.answers.checked(answer_space(self.target), str(spec), read) if self.answers else None
        if found is None:
            return False
        self._solved[spec, frozenset()] = found[1], found[0]
        return True

    def best(self, spec: NestSpec, cut: frozenset[int] = frozenset()) -> tuple[int, Node] | None:
        """(cost, schedule) of the first of the cheapest; None where there is none. cut: dims whose loops are above,
        and PARTS_MADE below `partial`, once which is enough."""
        key = spec, cut
        if key not in self._solved:
            found: tuple[int, Node] | None = None
            if spec.serial and reciprocal_body(spec) is None:
                found = self.leaf(spec)
            for step in self.steps(spec, cut):
                option = self.complete_step(spec, step, cut)
                if option and (found is None or option[0] < found[0]):
                    found = option
            self._solved[key] = found
        return self._solved[key]

    def leaf(self, spec: NestSpec) -> tuple[int, Rows] | None:
        if spec not in self._leaves:
            self._leaves[spec] = self.leaf_search(spec).best()
        return self._leaves[spec]

    def leaf_search(self, spec: NestSpec, *, near: bool = False) -> LeafSearch:
        """A search for `rows`, with what is known of the family of `spec`."""
        return LeafSearch(spec, self.target, near=near, sweeps=self._families.of(spec))

    def steps(self, spec: NestSpec, cut: frozenset[int]) -> Iterator[Node]:
        """The steps other than `rows` that are tried, with holes below, in the order that decides among equal costs."""
        hole = Hole()
        if reciprocal_body(spec) is not None:
            # One division for a whole row: nothing is cheaper with more.
            yield Reciprocal(hole)
            return
        loops = [d for d in spec.parallel_dims if spec.dims[d] > 1 and not positions(spec, d)]
        if spec.serial:
            yield from self.blocks(spec, [d for d in loops if d not in cut])
        else:
            yield Serial(hole)
            for d in loops:
                n = spec.dims[d]
                for size in shared_steps(n, spec.threads):
                    yield Parallel(f"d{d}", size, hole, hole if n % size else None)
            for d in spec.scan_dims if PARTS_MADE not in cut else ():
                n = spec.dims[d]
                for size in shared_steps(n, spec.threads)[:1]:
                    yield Partial(f"d{d}", size, hole, hole if n % size else None, hole)
        # A stage pays where its parts are shared among the threads otherwise than the whole can be.
        if not spec.serial and all(spec.dims[d] < spec.threads for d in loops):
            for values in stages(spec):
                yield Stage(values, hole, hole)

    def blocks(self, spec: NestSpec, dims: Sequence[int]) -> Iterator[Node]:
        """Loops that keep near what comes back: where the cheapest `rows` would be cheaper by a share of BLOCK_GAIN if
        it all came from the nearest cache."""
        rows = self.leaf(spec) if dims else None
        if rows is None or stays_near(spec, rows[1], self.target):
            return
        most = (1 - BLOCK_GAIN) * rows[0]
        # A cycle more, for what becomes an integer.
        least = self.leaf_search(spec, near=True).best(below=most / COST_UNITS + 1)
        if least is None or least[0] > most:
            return
        for d in dims:
            n = spec.dims[d]
            for size in BLOCK_STEPS:
                if size < n:
                    yield Tile(f"d{d}", size, Hole(), Hole() if n % size else None)

    def complete_step(self, spec: NestSpec, step: Node, cut: frozenset[int]) -> tuple[int, Node] | None:
        """(cost, schedule) with the cheapest below `step`; None where it is not legal, or nothing is below."""
        try:
            below = rewritten(spec, step, self.target).children
        except ScheduleError:
            return None
        found = [self.best(c.spec, self.cut_by(step, cut)) for c in below]
        if any(f is None for f in found):
            return None
        costs = [f[0] for f in found if f]
        return self.total(spec, step, below, costs), with_children(step, [f[1] for f in found if f])

    @staticmethod
    def cut_by(step: Node, cut: frozenset[int]) -> frozenset[int]:
        """`cut` below `step`."""
        if isinstance(step, (Tile, Partial)):
            return cut | {int(step.dim[1:]) if isinstance(step, Tile) else PARTS_MADE}
        return cut

    def total(self, spec: NestSpec, step: Node, below: Sequence[Child], costs: Sequence[int]) -> int:
        """The cost of a step with what is below it: one after another, or as long as the thread with most to do."""
        most = max(sum(n * cost for n, cost in zip(way, costs, strict=True)) for way in ways(spec, step, below))
        return own_cost(spec, step, self.target) + most

    # ------------------------------------------------------------ schedules given by hand

    def complete(self, spec: NestSpec, node: Node) -> NestSolution:
        """`node`, whose steps name the dims of `spec` as they stand, with its holes filled by the search.

        Raises ScheduleError where a step is not legal.
        """
        start = time.perf_counter()
        if isinstance(node, Hole):
            return self.solve(spec)
        spec = self.goal(spec)
        check_tree(spec, node, self.target)
        with self._lock:
            full = fill(spec, node, self.target, self._fill)
        return NestSolution(spec, full, self.price(spec, full), "manual", time.perf_counter() - start)

    def _fill(self, spec: NestSpec, rows: Rows | None) -> Node:
        found: tuple[int, Node] | None
        found = self.best(spec) if rows is None else self.leaf_search(spec).best(rows)
        if found is None:
            raise ScheduleError(f"nothing fills {'the hole' if rows is None else rows.label()}, in {spec}")
        return found[1]

    def price(self, spec: NestSpec, node: Node) -> int:
        """The cost of the schedule `node` of `spec`, in integer units. Raises ScheduleError where it is not legal or
        has holes."""
        if isinstance(node, Rows):
            rewritten(spec, node, self.target)
            return RowsModel(spec, self.target).cost(rows_plan(spec, node, self.target))
        below = rewritten(spec, node, self.target).children
        costs = [self.price(c.spec, b) for c, b in zip(below, children(node), strict=True)]
        return self.total(spec, node, below, costs)


def ways(spec: NestSpec, step: Node, below: Sequence[Child]) -> list[tuple[int, ...]]:
    """How often each child of a step is met by one thread, on each of the ways that threads go; the dearest decides."""
    if not isinstance(step, Parallel):
        return [tuple(c.count for c in below)]
    turns = sum(c.count for c in below)
    most = -(-turns // spec.threads)
    if len(below) == 1:
        return [(most,)]
    # The last thread has the remainder, and as many turns as any; others have one less if one is left over.
    return [(most - (turns % spec.threads == 1), 0), (most - 1, 1)]


def stays_near(spec: NestSpec, rows: Rows, target: Target) -> bool:
    """Whether all lines of operands that `rows` meets again come from the nearest cache."""
    plan = rows_plan(spec, rows, target)
    return RowsModel(spec, target).layout(plan).stays_near()


def default(spec: NestSpec, target: Target) -> Node:
    """A legal schedule, whatever it costs: every reduction in a pass of its own, then the outputs."""
    swept = len(swept_outputs(spec))
    names = goals(spec)
    split = len(names) - swept
    passes = [Pass((name,)) for name in sorted(names[:split], key=lambda n: value_of(n, spec))]
    if swept:
        passes.append(Pass(names[split:]))
    vector = max(range(len(spec.dims)), key=lambda d: (sum(o.strides[d] == 1 for o in spec.operands), spec.dims[d]))
    rows = Rows(f"d{vector}", 1, (), 0, tuple(passes))
    return rows if spec.serial else Serial(rows)


_searches: dict[str, NestSearch] = {}
_searches_lock = lock()


_beside: WeakKeyDictionary[Search, NestSearch] = WeakKeyDictionary()


def nest_search_for(target: Target) -> NestSearch:
    """The process's search for nests on `target`."""
    with _searches_lock:
        name = target.fingerprint
        if name not in _searches:
            _searches[name] = NestSearch(target)
        return _searches[name]


def nest_search_of(search: Search) -> NestSearch:
    """The search for nests beside `search`, with its target and its memo."""
    with _searches_lock:
        if search not in _beside:
            _beside[search] = NestSearch(search.target, search.memo.answers if search.memo else None)
        return _beside[search]


__all__ = ["NestSearch", "default", "nest_search_for", "nest_search_of"]
