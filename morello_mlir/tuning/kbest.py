"""The k cheapest schedules of a Spec, enumerated lazily from its solved tables.

Tables and actions form a hypergraph: a point of a table is a node, an action at it a hyperedge to its children. The
enumeration is the lazy k-best algorithm for such graphs (Huang and Chiang, "Better k-best parsing", algorithm 3): every
point keeps a heap of derivations and takes one more from a child only when a better combination may come of it.

Schedules that make the same code (they differ in the order of moves that emit nothing, or in loops that merge) count
once: that is decided at every point, so that equal parts are not combined again and again.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from ..actions import Action, ExchangeAction, TableKey, explore, key_of, limits_of, matters, remaining, spec_of
from ..actions.space import holds
from ..lowering.plan import Plan, Planner
from ..search.schedule import Node
from ..search.solve import Search, Solution
from ..spec import Spec
from ..targets import INFINITE, Target

DIMS = ("b", "m", "k", "n")
LIMITS = ("VRF", "L1", "L2")


@dataclass(frozen=True, slots=True)
class _Point:
    """A goal: table key, sizes (b, m, k, n), what is left (VRF, L1, L2). exchanged: it is part of the transposed
    problem, which has tables of its own."""

    key: TableKey
    sizes: tuple[int, ...]
    left: tuple[int, ...]
    exchanged: bool = False


@dataclass(frozen=True, slots=True)
class _Edge:
    """An action at a point, and its children. price: its cost, given theirs."""

    action: Action
    price: Callable[[list[float]], float]
    children: tuple[_Point, ...]


@dataclass(slots=True)
class _State:
    """What is known of a point: derivations found so far, cheapest first, and the heap of the next candidates.

    Heap entries are (cost, edge number, rank of each child's derivation): ties go to the preferred action. taken: the
    combination that was popped last; its neighbours are pushed when another derivation is asked for, not before.
    """

    spec: Spec
    edges: list[_Edge]
    heap: list[tuple[float, int, tuple[int, ...]]]
    found: list[tuple[float, Node]] = field(default_factory=list)
    plans: set[Plan] = field(default_factory=set)
    pushed: set[tuple[int, tuple[int, ...]]] = field(default_factory=set)
    taken: tuple[int, tuple[int, ...]] | None = None


class KBest:
    """Iterates over the schedules of `spec` by rising cost; the first costs what the optimum of `Search.solve` does.

    search: for `target`, that has solved `spec`: its tables are used. Raises what `Search.solve` raises.
    """

    def __init__(self, spec: Spec, target: Target, search: Search | None = None):
        self.spec = spec.canonical()
        self.target = target
        self._search = search or Search(target)
        self._search.solve(self.spec)  # refuses what cannot be searched, and solves the tables
        self._planner = Planner(target)
        self._states: dict[_Point, _State] = {}
        dims = dict(zip(self.spec.info.dims, self.spec.dims, strict=True))
        key, left = key_of(self.spec, target), limits_of(self.spec, target)
        self._tables = {False: self._search.tables_of(key, dims, left)}
        self._root = self._point(key, dims, left, False)

    def __iter__(self) -> Iterator[Solution]:
        rank = 0
        while (one := self._derivation(self._root, rank)) is not None:
            cost, node = one
            yield Solution(self.spec, node, int(cost), "search", 0.0)
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
            absent = [0.0] * (len(children) - len(below))
            yield _Edge(action, partial(_priced, action, point.key, dims, self.target, absent), tuple(below))

    def _least(self, point: _Point) -> float:
        """The optimal cost at a point, without deriving a tree."""
        dims = dict(zip(DIMS, point.sizes, strict=True))
        left = dict(zip(LIMITS, point.left, strict=True))
        return self._search.value(self._tables[point.exchanged], point.key, dims, left)

    def _state(self, point: _Point) -> _State:
        state = self._states.get(point)
        if state is None:
            edges = list(self._edges(point))
            heap = []
            for number, edge in enumerate(edges):
                cost = edge.price([self._least(child) for child in edge.children])
                if cost < INFINITE:
                    heap.append((cost, number, (0,) * len(edge.children)))
            heapq.heapify(heap)
            dims = dict(zip(DIMS, point.sizes, strict=True))
            keep = {
                m: v
                for m, v in zip(LIMITS, point.left, strict=True)
                if v != self.target.limits[m] and matters(point.key, m)
            }
            state = self._states[point] = _State(spec_of(point.key, dims, keep), edges, heap)
        return state

    # ------------------------------------------------------------ derivations

    def _derivation(self, point: _Point, rank: int) -> tuple[float, Node] | None:
        """The derivation number `rank` of a point by cost, or None where there are not that many."""
        state = self._state(point)
        while len(state.found) <= rank:
            if state.taken is not None:
                self._push_next(state, *state.taken)
                state.taken = None
            if not state.heap:
                break
            cost, number, ranks = heapq.heappop(state.heap)
            state.taken = (number, ranks)
            edge = state.edges[number]
            bodies = [self._known(child, r)[1] for child, r in zip(edge.children, ranks, strict=True)]
            node = edge.action.node(bodies)
            plan = self._planner.plan(state.spec, node)
            if plan not in state.plans:
                state.plans.add(plan)
                state.found.append((cost, node))
        return state.found[rank] if len(state.found) > rank else None

    def _known(self, point: _Point, rank: int) -> tuple[float, Node]:
        """A derivation that exists: its combination was pushed."""
        found = self._derivation(point, rank)
        assert found is not None
        return found

    def _push_next(self, state: _State, number: int, ranks: tuple[int, ...]) -> None:
        """The neighbours of a combination: one child's next derivation instead of its last."""
        edge = state.edges[number]
        for i in range(len(ranks)):
            after = (*ranks[:i], ranks[i] + 1, *ranks[i + 1 :])
            if (number, after) in state.pushed or self._derivation(edge.children[i], after[i]) is None:
                continue
            state.pushed.add((number, after))
            cost = edge.price([self._known(child, r)[0] for child, r in zip(edge.children, after, strict=True)])
            heapq.heappush(state.heap, (cost, number, after))


def _priced(
    action: Action, key: TableKey, dims: Mapping[str, int], target: Target, absent: list[float], below: list[float]
) -> float:
    """The cost of `action` with children that cost `below`; those that are not there come last."""
    total: float = action.total(key, dims, target, [*below, *absent])
    return total
