"""The k cheapest schedules of a Spec that differ in what a machine can tell, enumerated lazily from its solved tables.

Tables and actions form a hypergraph: a point of a table is a node, an action at it a hyperedge to its children. The
enumeration is the lazy k-best algorithm for such graphs (Huang and Chiang, "Better k-best parsing", algorithm 3), with
lower bounds: every point keeps a heap of derivations, and takes one step towards another of a child only where that may
come next.

Of schedules that go the same way (`Way`) the cheapest counts. The way of a schedule follows from its first step and the
way of what is below, and its cost rises with the cost of that: so this is decided at every point, exactly, and equal
parts are not combined again and again.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ..actions import (
    Action,
    ExchangeAction,
    TableKey,
    child_specs,
    explore,
    key_of,
    limits_of,
    matters,
    remaining,
)
from ..actions.base import sum_of
from ..actions.parallel import ParallelTile
from ..actions.space import holds
from ..actions.tile import TileAction
from ..hashed import Hashed
from ..lowering.plan import Planner
from ..search.schedule import Exchange, Kernel, Move, Node, PackAhead, Parallel, Split, Tile, children
from ..search.solution import Solved
from ..search.solve import Search, Solution
from ..spec import Spec
from ..targets import INFINITE, Target

DIMS = ("b", "m", "k", "n")
LIMITS = ("VRF", "L1", "L2")


#: What tells schedules apart, from the top to the kernel, remainders left out: kernels and packs with the sizes that
#: they are for, loops that threads share, and which loop is around each of these directly. Not: further loops, which
#: say how these walk through the operands; where operands that stay as they lie enter a cache; remainders.
Way = tuple[tuple[object, ...], ...]
_AROUND = "around"


def extended(step: Node, sizes: tuple[int, ...], below: Way) -> Way:
    """The way of a schedule of sizes b, m, k, n that begins with `step`; below: the way of its body."""
    if isinstance(step, Kernel):
        return ((step.name, *sizes),)
    if isinstance(step, (Tile, Split)):
        return below if below[0][0] == _AROUND else ((_AROUND, step.dim), *below)
    if isinstance(step, (Move, PackAhead)) and step.layout:
        return ((type(step).__name__, step.operand, step.layout, *sizes), *below)
    if isinstance(step, (Exchange, Parallel)) or (isinstance(step, Move) and step.memory in ("VRF", "WC")):
        return ((step.label(),), *below)
    return below


def way_of(spec: Spec, node: Node, target: Target) -> Way:
    """The way of the schedule `node` of `spec`. Raises ScheduleError where it is not legal."""
    below = [s for _, s in child_specs(spec, node, target)]
    sizes = tuple(spec.size(d) for d in DIMS)
    return extended(node, sizes, way_of(below[0], children(node)[0], target) if below else ())


#: A loop whose bodies do no more than this share of its range has the cheapest of bodies: or a way in which a few
#: columns are done would count as a way to do them all.
LEAST_SHARE = 0.75


def varies(action: Action, dims: Mapping[str, int]) -> bool:
    """Whether other bodies of `action` than the cheapest make other ways to do `dims`."""
    if not isinstance(action, (TileAction, ParallelTile)):
        return True
    extent = dims[action.dim]
    return extent - extent % action.size > LEAST_SHARE * extent


@dataclass(frozen=True, slots=True)
class _Point(Hashed):
    """A goal: table key, sizes (b, m, k, n), what is left (VRF, L1, L2). exchanged: it is part of the transposed
    problem, which has tables of its own."""

    key: TableKey
    sizes: tuple[int, ...]
    left: tuple[int, ...]
    exchanged: bool = False


@dataclass(frozen=True, slots=True)
class _Edge:
    """An action at a point, and its children, the remainder last. own: its cost without theirs; ways: how often each
    way through it meets the first of them, and what the others cost there. varies: whether other derivations of the
    first child than the cheapest count."""

    action: Action
    children: tuple[_Point, ...]
    own: float
    ways: tuple[tuple[int, float], ...]
    varies: bool

    def price(self, first: float) -> float:
        """The cost where the first child, if there is one, costs so much."""
        return self.own + max((count * first if count else 0.0) + others for count, others in self.ways)


@dataclass(frozen=True, slots=True)
class _Found:
    """A derivation, the cheapest of its way."""

    cost: float
    node: Node
    way: Way


@dataclass(slots=True)
class _State:
    """What is known of a point: derivations found so far, cheapest first, and the heap of the next candidates.

    Heap entries are (lower bound of the cost, edge number, rank of the first child's derivation): ties go to the
    preferred action. Of a remainder it is always the cheapest.
    """

    edges: list[_Edge]
    heap: list[tuple[float, int, int]]
    found: list[_Found] = field(default_factory=list)
    ways: set[Way] = field(default_factory=set)


class KBest:
    """Iterates over the schedules of `spec` by rising cost, of each way the cheapest; the first costs what the optimum
    of `Search.solve` does.

    search: for `target`, that has solved `spec`: its tables are used. Raises what `Search.solve` raises.
    """

    def __init__(self, spec: Spec, target: Target, search: Search | None = None):
        self.spec = spec.canonical()
        self.target = target
        self._search = search or Search(target)
        self._search.solve(self.spec)  # refuses what cannot be searched, and solves the tables
        self._states: dict[_Point, _State] = {}
        dims = dict(zip(self.spec.info.dims, self.spec.dims, strict=True))
        key, left = key_of(self.spec, target), limits_of(self.spec, target)
        self._tables = {False: self._search.tables_of(key, dims, left)}
        self._root = self._point(key, dims, left, False)

    def __iter__(self) -> Iterator[Solution]:
        rank = 0
        while (one := self._derivation(self._root, rank)) is not None:
            yield Solution(self.spec, one.node, int(one.cost), "search", 0.0)
            rank += 1

    # ------------------------------------------------------------ the hypergraph

    @staticmethod
    def _point(key: TableKey, dims: dict[str, int], left: dict[str, int], exchanged: bool) -> _Point:
        """A point; limits that cannot matter any more do not tell points apart."""
        own = tuple(left[m] if matters(key, m) else 0 for m in LIMITS)
        return _Point(key, tuple(dims[d] for d in DIMS), own, exchanged)

    def _edges(self, point: _Point) -> Iterator[_Edge]:
        dims = dict(zip(DIMS, point.sizes, strict=True))
        left = dict(zip(LIMITS, point.left, strict=True))
        for action in explore(point.key, dims, self.target):
            if not holds(action.conditions(point.key, dims, left, self.target)):
                continue
            after = remaining(action, point.key, dims, left, self.target)
            children = action.children(point.key, dims)
            exchanged = point.exchanged != isinstance(action, ExchangeAction)
            if exchanged not in self._tables:
                self._tables[exchanged] = self._search.tables_below(self._tables[False], action, children, after)
            below = [
                self._point(c.key, {d: int(c.dims[d]) for d in DIMS}, after, exchanged) for c in children if c.count
            ]
            own = float(action.cost(point.key, dims, self.target))
            rests = [self._least(p) for p in below[1:]]
            ways = [
                (int(way[0]) if way else 0, float(sum_of(way[1 : 1 + len(rests)], rests)))
                for way in action.ways(point.key, dims)
            ]
            yield _Edge(action, tuple(below), own, tuple(ways), varies(action, dims))

    def _least(self, point: _Point) -> float:
        """The optimal cost at a point, without deriving a tree."""
        dims = dict(zip(DIMS, point.sizes, strict=True))
        left = dict(zip(LIMITS, point.left, strict=True))
        return self._search.value(self._tables[point.exchanged], point.key, dims, left)

    def _state(self, point: _Point) -> _State:
        state = self._states.get(point)
        if state is None:
            edges = list(self._edges(point))
            bounds = ((e.price(self._least(e.children[0]) if e.children else 0.0), n) for n, e in enumerate(edges))
            heap = [(cost, number, 0) for cost, number in bounds if cost < INFINITE]
            heapq.heapify(heap)
            state = self._states[point] = _State(edges, heap)
        return state

    # ------------------------------------------------------------ derivations

    def _derivation(self, point: _Point, rank: int) -> _Found | None:
        """The derivation number `rank` of a point by cost, or None where there are not that many."""
        state = self._state(point)
        while len(state.found) <= rank and state.heap:
            self._step(point, state)
        return state.found[rank] if len(state.found) > rank else None

    def _step(self, point: _Point, state: _State) -> None:
        """Looks at the first candidate of a point: it is found, or its child is brought one step further."""
        cost, number, rank = heapq.heappop(state.heap)
        edge = state.edges[number]
        if not edge.children:
            node = edge.action.node([])
            _keep(state, _Found(cost, node, extended(node, point.sizes, ())))
            return
        child = edge.children[0]
        below = self._state(child)
        # Another edge may have brought the child further since.
        bound = self._bound(below, edge, rank)
        if bound is None:
            return
        if bound == cost and len(below.found) > rank:
            first = below.found[rank]
            node = edge.action.node([first.node, *(self._cheapest(rest).node for rest in edge.children[1:])])
            # Some actions leave no step.
            way = first.way if node is first.node else extended(node, point.sizes, first.way)
            _keep(state, _Found(cost, node, way))
            if not edge.varies:
                return
            rank += 1
        elif bound == cost:
            self._step(child, below)
        bound = self._bound(below, edge, rank)
        if bound is not None:
            heapq.heappush(state.heap, (bound, number, rank))

    @staticmethod
    def _bound(below: _State, edge: _Edge, rank: int) -> float | None:
        """What an edge costs at least with derivation number `rank` of its first child, of state `below`; exactly,
        once that is found. None: there are not that many."""
        if len(below.found) > rank:
            return edge.price(below.found[rank].cost)
        return edge.price(below.heap[0][0]) if below.heap else None

    def _cheapest(self, point: _Point) -> _Found:
        """The optimum of a point that has one."""
        found = self._derivation(point, 0)
        assert found is not None
        return found


def _keep(state: _State, found: _Found) -> None:
    """Keeps a derivation where it is the first of its way."""
    if found.way not in state.ways:
        state.ways.add(found.way)
        state.found.append(found)


def cheapest(search: Search, best: Solved[Spec, Node]) -> Iterator[Solution]:
    """The schedules of a Spec by rising cost, no two with the same code. best: what `search` found for it."""
    # Tables that are solved are used. Reading them from a memo takes longer than solving them, and it may not hold all.
    solved = search if best.source == "search" else None
    planner, plans = Planner(search.target), set()
    for found in KBest(best.spec, search.target, solved):
        plan = planner.plan(found.spec, found.schedule)
        if plan not in plans:
            plans.add(plan)
            yield found
