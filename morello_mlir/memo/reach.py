"""What the optimal trees of a family of goals reach: a policy for these states and no others.

Whole tables of every row stride class are far too much to ship; the states that optima pass through are few, since
goals share almost all of their sub-goals.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from threading import Lock
from typing import Any

import numpy as np

from ..actions import Action, TableKey
from ..search.catalog import Catalog
from ..search.tables import AXES, Tables, depth
from ..targets import Target, ceil_div
from . import policy
from .coordinates import memo_key
from .families import Root
from .record import IMPOSSIBLE
from .states import States

#: Tables of goals before this one, kept for the next.
SHARED_BYTES = 800 << 20

#: Which action is chosen at each cell `[m, k, n, limit]`, by number, and the actions.
Policy = tuple[np.ndarray, list[Action]]
#: The sizes of a block by dim, in the order of its axes.
Sizes = dict[str, list[int]]


class SharedTables:
    """Blocks of solved tables, for goals that come later and are not larger. Serves as a `Source` of tables.

    A block serves smaller goals where its sizes begin with theirs, as those of the scale do; so does its policy, since
    what is chosen at a cell does not depend on larger ones.
    """

    def __init__(self, capacity: int = SHARED_BYTES):
        self.capacity = capacity
        self._blocks: OrderedDict[TableKey, tuple[Sizes, np.ndarray]] = OrderedDict()
        self._policies: dict[TableKey, tuple[Sizes, Policy]] = {}
        self._bytes = 0
        self._lock = Lock()

    def load(self, tables: Tables, key: TableKey) -> np.ndarray | None:
        key = memo_key(key, tables.target)
        sizes, block = self._blocks.get(key, ({}, None))
        if block is None or not _begin_with(sizes, tables.sizes):
            return None
        self._blocks.move_to_end(key)
        m, k, n = (len(tables.sizes[d]) for d in AXES)
        return np.ascontiguousarray(block[:m, :k, :n])

    def solved(self, tables: Tables, key: TableKey, block: np.ndarray) -> None:
        key = memo_key(key, tables.target)
        # Tables of one depth are solved in several threads.
        with self._lock:
            self._forget(key)
            self._blocks[key] = (tables.sizes, block)
            self._bytes += block.nbytes
            while self._bytes > self.capacity and len(self._blocks) > 1:
                self._forget(next(iter(self._blocks)))

    def policy(self, tables: Tables, key: TableKey) -> Policy:
        """The policy of the table of `key`, for the sizes of `tables` at least."""
        key = memo_key(key, tables.target)
        sizes, found = self._policies.get(key, ({}, None))
        if found is None or not _begin_with(sizes, tables.sizes):
            self._drop_policy(key)
            found = policy.choose(tables, key)
            self._policies[key] = (tables.sizes, found)
            self._bytes += found[0].nbytes
        return found

    def _forget(self, key: TableKey) -> None:
        if key in self._blocks:
            self._bytes -= self._blocks.pop(key)[1].nbytes
        self._drop_policy(key)

    def _drop_policy(self, key: TableKey) -> None:
        if key in self._policies:
            self._bytes -= self._policies.pop(key)[1][0].nbytes


def _begin_with(sizes: Sizes, others: Sizes) -> bool:
    return bool(sizes) and all(sizes[d][: len(others[d])] == others[d] for d in AXES)


class Reach:
    """The states reached so far: for every table key, the action at each point (m, k, n, limit index)."""

    def __init__(self, target: Target):
        self.target = target
        self.catalog = Catalog(target)
        self.states: dict[TableKey, States] = {}

    def add(self, root: Root, shared: SharedTables) -> None:
        """The states of the optima of all goals of `root`."""
        tables = Tables(root.largest, self.target.limits, self.target, source=shared, catalog=self.catalog)
        tables.table(root.key)
        _Walk(tables, shared, self.states).run(root)

    def tabled(self) -> Iterator[tuple[TableKey, States]]:
        """The states that a memo keeps: where the output is in registers only kernels are left to be priced."""
        return iter(self.states.items())


class _Walk:
    """Follows the optima of one root, table by table from the top, all points of a table at once."""

    def __init__(self, tables: Tables, shared: SharedTables, states: dict[TableKey, States]):
        self.tables = tables
        self.target = tables.target
        self.shared = shared
        self.states = states
        self.waiting: dict[TableKey, list[np.ndarray]] = {}

    def run(self, root: Root) -> None:
        top = [self._limit(root.key, root.key, np.zeros(1, np.int64), {})]
        sizes = np.array(root.sizes, np.int64)
        self._wait(root.key, np.column_stack([sizes, np.broadcast_to(top[0], len(sizes))]))
        while self.waiting:
            # Moves and threads lead to deeper tables, tiles to the same one.
            key = min(self.waiting, key=depth)
            found = self.states.setdefault(key, States())
            while key in self.waiting:
                points = found.unknown(np.concatenate(self.waiting.pop(key)))
                if len(points):
                    self._follow(key, points, found, may_fail=key == root.key)

    def _wait(self, key: TableKey, points: np.ndarray) -> None:
        self.waiting.setdefault(key, []).append(points)

    def _follow(self, key: TableKey, points: np.ndarray, found: States, *, may_fail: bool) -> None:
        """Adds `points` of the table of `key` to what was found, and has their children wait. may_fail: they are goals,
        for which there may be no implementation."""
        choice, actions = self.shared.policy(self.tables, key)
        # Sizes of the scale are in ascending order.
        at = [np.searchsorted(self.tables.sizes[d], points[:, i]) for i, d in enumerate(AXES)]
        codes = choice[at[0], at[1], at[2], points[:, 3]]
        fails = codes < 0
        if fails.any():
            if not may_fail:
                raise AssertionError(f"an optimum of {key} leads to {points[fails][0]}, which has no implementation")
            found.add(points[fails], IMPOSSIBLE)
        for code in np.unique(codes[~fails]):
            here = points[codes == code]
            found.add(here, actions[code])
            self._leave(key, here, actions[code])

    def _leave(self, key: TableKey, points: np.ndarray, action: Action) -> None:
        """Has wait what `action` leads to."""
        dims: dict[str, Any] = {"b": 1, **{d: points[:, i] for i, d in enumerate(AXES)}}
        for child in action.children(key, dims):
            below = key if child.key is key else memo_key(child.key, self.target)
            if "VRF" in below.memories:
                continue
            limit = self._limit(key, below, points[:, 3], action.uses(key, dims, self.target))
            columns = [np.broadcast_to(x, len(points)) for x in (*(child.dims[d] for d in AXES), limit)]
            self._wait(below, np.column_stack(columns)[np.broadcast_to(child.count, len(points)) > 0])

    def _limit(self, key: TableKey, below: TableKey, limit: np.ndarray, used: Mapping[str, Any]) -> np.ndarray:
        """The limit index in the table of `below`, from that in the one of `key` and what is used on the way."""
        axis = below.limit_axis()
        if axis is None:
            return np.zeros_like(limit)
        step = self.target.cache(axis).step
        # Where a limit begins to matter, nothing has been taken yet.
        before = limit if axis == key.limit_axis() else self.target.limits[axis] // step
        return before - ceil_div(np.asarray(used.get(axis, 0)), step)
