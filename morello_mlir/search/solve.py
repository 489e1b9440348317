"""Search: the optimum of a Spec as a schedule tree with its cost, holes of a partial schedule filled, trees priced."""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..actions import (
    Action,
    Child,
    ExchangeAction,
    TableKey,
    action_of,
    check,
    check_tree,
    child_specs,
    explore,
    key_of,
    limits_of,
    remaining,
)
from ..actions.space import holds
from ..errors import ScheduleError, SpecError
from ..locks import lock
from ..spec import Spec
from ..targets import COST_UNITS, INFINITE, MAX_COST, Target
from .catalog import Catalog
from .schedule import Hole, Node, children, parse, to_text
from .solution import Solved
from .tables import AXES, Tables
from .then import then_cost

if TYPE_CHECKING:
    from ..memo.memo import Memo

#: Bytes of solved tables kept for later goals of the same process.
TABLE_CACHE_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class Solution(Solved[Spec, Node]):
    """Of a contraction."""


class Search:
    """Solves Specs for one target. Solved goals and, up to TABLE_CACHE_BYTES, their tables are kept. Thread-safe.

    memo: what earlier processes found, and where what this one finds goes. Answers are the same with and without.
    """

    def __init__(self, target: Target, memo: Memo | None = None):
        self.target = target
        self.memo = memo
        self.catalog = Catalog(target)
        self._solved: dict[Spec, tuple[Node, int, str]] = {}
        self._tables: OrderedDict[tuple[object, ...], Tables] = OrderedDict()
        self._lock = lock()

    # ------------------------------------------------------------ the optimum

    def solve(self, spec: Spec) -> Solution:
        """The cheapest implementation of `spec`.

        Raises SpecError where a size is 0 or the target has no kernels for the dtype, ScheduleError where no
        implementation fits the limits.
        """
        start = time.perf_counter()
        goal = spec.canonical()
        if goal.then is not None:
            return self._with_then(goal, self.solve(goal.plain))
        with self._lock:
            known = goal in self._solved
            if not known:
                self._check_goal(goal)
                self._solved[goal] = self._remembered(goal) or self._searched(goal)
            node, cost, source = self._solved[goal]
            if self.memo:
                self.memo.count("memory" if known else source)
                if not known and source == "search":
                    self.memo.searched()
        if known and source == "search":
            source = "memo"
        return Solution(goal, node, cost, source, time.perf_counter() - start)

    def _with_then(self, spec: Spec, plain: Solution) -> Solution:
        """A schedule of `spec` without `then` as one of `spec`: what is done to the sums costs the same in all."""
        return replace(plain, spec=spec, cost=plain.cost + then_cost(spec, self.target))

    def _remembered(self, spec: Spec) -> tuple[Node, int, str] | None:
        """The optimum of `spec` as the memo has it."""
        if not self.memo:
            return None
        key, dims, left = self.point(spec)
        if not key.has_window:
            return self.memo.find(key, dims, left)
        return self._answered(spec, self.memo)

    def _answered(self, spec: Spec, memo: Memo) -> tuple[Node, int, str] | None:
        """The optimum of a goal with a window, which the memo keeps as a whole: checked, and priced anew."""
        from ..memo.answers import answer_space

        def read(schedule: str) -> tuple[Node, int]:
            node = parse(schedule)
            return node, self.price(spec, node)

        found = memo.answers.checked(answer_space(self.target), str(spec), read) if memo.answers else None
        return None if found is None else (*found, "memo")

    def _searched(self, spec: Spec) -> tuple[Node, int, str]:
        """The optimum of `spec`, searched for."""
        from ..memo.answers import Answer, answer_space

        node, cost = self._reconstruct(spec)
        if self.memo and self.memo.answers and self.point(spec)[0].has_window:
            self.memo.answers.put(Answer(answer_space(self.target), str(spec), to_text(node), cost))
        return node, cost, "search"

    def cost(self, spec: Spec) -> float:
        """The optimal cost of `spec`, from its table; INFINITE where no implementation fits."""
        key, dims, left = self.point(spec.canonical().plain)
        found = self.value(self.tables_of(key, dims, left), key, dims, left) + then_cost(spec, self.target)
        if self.memo:
            self.memo.searched()
        return found

    def _check_goal(self, spec: Spec) -> None:
        if 0 in spec.dims:
            raise SpecError(f"nothing to search: a size is 0 in {spec}")
        key_of(spec, self.target)

    def point(self, spec: Spec) -> tuple[TableKey, dict[str, int], dict[str, int]]:
        """The table key of `spec`, its sizes, and what it may take of each memory."""
        dims = dict(zip(spec.info.dims, spec.dims, strict=True))
        return key_of(spec, self.target), dims, limits_of(spec, self.target)

    def tables_of(self, key: TableKey, dims: Mapping[str, int], limits: Mapping[str, int]) -> Tables:
        """The tables of a goal at `key`, from the cache or new."""
        units = {d: key.units(d) for d in AXES}
        name = (*(dims[d] for d in AXES), *units.values(), *sorted(limits.items()))
        # The memo holds the tables of whole machines: where less is left, other cells are reached. Nor does it know the
        # sizes that windows lead to.
        source = self.memo if limits == self.target.limits and not key.has_window else None
        tables = self._tables.pop(name, None) or Tables(
            dims, limits, self.target, source=source, units=units, catalog=self.catalog
        )
        self._tables[name] = tables
        while len(self._tables) > 1 and sum(t.nbytes for t in self._tables.values()) > TABLE_CACHE_BYTES:
            self._tables.popitem(last=False)
        return tables

    def tables_for(self, key: TableKey, whole: Mapping[str, int], tile: Mapping[str, int]) -> Tables:
        """Tables that hold a tile of `whole`: those of the whole, or, where its sizes are not on their scale (they were
        given by hand), its own."""
        tables = self.tables_of(key, whole, self.target.limits)
        return tables if tables.holds(tile) else self.tables_of(key, {**whole, **tile}, self.target.limits)

    def value(self, tables: Tables, key: TableKey, dims: Mapping[str, int], left: Mapping[str, int]) -> float:
        """The optimal cost at a point. Points that no table holds (before to_accum, batches, registers taken by an
        output) are worked out from the actions, as reconstruction does."""
        if _tabled(key, dims):
            return tables.at(key, dims, left)
        options = (self._price(tables, a, key, dims, left) for a in explore(key, dims, self.target))
        return min(options, default=INFINITE)

    def _price(
        self, tables: Tables, action: Action, key: TableKey, dims: Mapping[str, int], left: Mapping[str, int]
    ) -> float:
        """What `action` costs here with optimal children; INFINITE where it is not legal."""
        if not holds(action.conditions(key, dims, left, self.target)):
            return INFINITE
        after = remaining(action, key, dims, left, self.target)
        children = action.children(key, dims)
        tables = self.tables_below(tables, action, children, after)
        below = [self.value(tables, c.key, c.dims, after) if c.count else 0 for c in children]
        return action.total(key, dims, self.target, below)

    def tables_below(
        self, tables: Tables, action: Action, children: Sequence[Child], left: Mapping[str, int]
    ) -> Tables:
        """Where the children of `action` are looked up, at a point of `tables`: exchanged, a goal has tables of its
        own."""
        if not isinstance(action, ExchangeAction):
            return tables
        return self.tables_of(children[0].key, children[0].dims, left)

    def _reconstruct(self, spec: Spec) -> tuple[Node, int]:
        """The optimal tree of `spec` and its cost, checked against the table at every node."""
        key, dims, left = self.point(spec)
        tables = self.tables_of(key, dims, left)
        cost = self.value(tables, key, dims, left)
        if cost >= INFINITE:
            raise ScheduleError(f"no implementation fits the limits of {spec}")
        if cost >= MAX_COST:
            raise SpecError(f"too large: costs beyond {MAX_COST // COST_UNITS:,} cycles are not exact, in {spec}")
        return self.tree(tables, key, dims, left), int(cost)

    def tree(self, tables: Tables, key: TableKey, dims: Mapping[str, int], left: Mapping[str, int]) -> Node:
        """An optimal tree at a point that has one, read off the tables from the top."""
        done: dict[object, Node] = {}

        def build(tables: Tables, key: TableKey, dims: Mapping[str, int], left: Mapping[str, int]) -> Node:
            axis = key.limit_axis()
            point = (key, *(dims[d] for d in ("b", *AXES)), left[axis] if axis else None, left["VRF"])
            if point not in done:
                done[point] = step(tables, key, dims, left)
            return done[point]

        def step(tables: Tables, key: TableKey, dims: Mapping[str, int], left: Mapping[str, int]) -> Node:
            best = self.value(tables, key, dims, left)
            for action in explore(key, dims, self.target):
                if self._price(tables, action, key, dims, left) == best:
                    after = remaining(action, key, dims, left, self.target)
                    children = action.children(key, dims)
                    below = self.tables_below(tables, action, children, after)
                    return action.node([build(below, c.key, c.dims, after) for c in children if c.count])
            raise AssertionError(f"no action of {key} at {dict(dims)} has the table's cost {best}")

        return build(tables, key, dims, left)

    # ------------------------------------------------------------ schedules given by hand

    def complete(self, spec: Spec, node: Node) -> Solution:
        """`node` with its holes filled by the search.

        Raises ScheduleError naming the step and the reason where a step is not legal.
        """
        start = time.perf_counter()
        spec = spec.canonical()
        if spec.then is not None:
            return self._with_then(spec, self.complete(spec.plain, node))
        if isinstance(node, Hole):
            return self.solve(spec)
        check_tree(spec, node, self.target)
        full = self._fill(spec, node)
        return Solution(spec, full, self.price(spec, full), "manual", time.perf_counter() - start)

    def _fill(self, spec: Spec, node: Node) -> Node:
        if isinstance(node, Hole):
            return self.solve(spec).schedule
        bodies = children(node)
        if not bodies:
            return node
        specs = child_specs(spec, node, self.target)
        filled = [self._fill(s, b) for (_, s), b in zip(specs, bodies, strict=True)]
        return action_of(node, spec).node(filled)

    def price(self, spec: Spec, node: Node) -> int:
        """The cost of the schedule `node` of `spec` under the target's model, in integer units.

        Raises ScheduleError where it is not legal or has holes.
        """
        memo: dict[tuple[Spec, Node], int] = {}

        def visit(s: Spec, n: Node) -> int:
            if (s, n) not in memo:
                action = action_of(n, s)
                check(action, s, self.target)
                key, dims, _ = self.point(s)
                below = [visit(c, b) for (_, c), b in zip(child_specs(s, n, self.target), children(n), strict=True)]
                below += [0] * (len(action.children(key, dims)) - len(below))
                memo[s, n] = int(action.total(key, dims, self.target, below))
            return memo[s, n]

        return visit(spec.canonical().plain, node) + then_cost(spec, self.target)


def _tabled(key: TableKey, dims: Mapping[str, int]) -> bool:
    begun = key.function.endswith("Accum") or key.streams
    return begun and dims["b"] == 1 and "VRF" not in key.memories and not key.has_const


_searches: dict[tuple[str, Path | None], Search] = {}
_searches_lock = lock()


def search_for(target: Target, memo: str | os.PathLike[str] | None = None) -> Search:
    """The process's search for `target` with the memo file `memo` (`off`: none; empty: `MORELLO_MEMO`, else the user's
    file).

    One per target's fingerprint and file, so that solved goals are shared.
    """
    from ..memo.locate import user_path
    from ..memo.memo import memo_for

    path = user_path(memo)
    with _searches_lock:
        name = (target.fingerprint + target.narrow_fingerprint, path)
        if name not in _searches:
            _searches[name] = Search(target, memo_for(target, memo))
        return _searches[name]


def keep_memos() -> None:
    """Waits until all that the searches of this process have solved is in their memos, and in one file each: for
    processes that end without Python's leave."""
    with _searches_lock:
        searches = list(_searches.values())
    for search in searches:
        if search.memo:
            search.memo.close()
