"""What the optimal trees of a family of goals reach: a policy for these states and no others.

Whole tables of every row stride class are far too much to ship; the states that optima pass through are few, since
goals share almost all of their sub-goals.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from threading import Lock
from typing import Any

import numpy as np

from ..actions import Action, TableKey, remaining
from ..search.tables import AXES, Tables
from ..search.tilelists import Known
from ..targets import Target
from . import policy
from .coordinates import memo_key
from .families import Root

#: Tables of goals before this one, kept for the next.
SHARED_BYTES = 800 << 20

Point = tuple[int, int, int, int]
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

    def seed(self, tables: Tables, key: TableKey, block: np.ndarray) -> Known | None:
        """Nothing: a block serves as a whole or not at all."""
        return None

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
        self.states: dict[TableKey, dict[Point, Action]] = {}

    def add(self, root: Root, shared: SharedTables) -> None:
        """The states of the optima of all goals of `root`."""
        tables = Tables(root.largest, self.target.limits, self.target, source=shared)
        tables.table(root.key)
        walk = _Walk(tables, shared, self.states)
        walk.run((root.key, size, self.target.limits) for size in root.sizes)

    def tabled(self) -> Iterator[tuple[TableKey, dict[Point, Action]]]:
        """The states that a memo keeps: where the output is in registers only kernels are left to be priced."""
        return ((key, states) for key, states in self.states.items() if "VRF" not in key.memories)


class _Walk:
    def __init__(self, tables: Tables, shared: SharedTables, states: dict[TableKey, dict[Point, Action]]):
        self.tables = tables
        self.shared = shared
        self.states = states

    def run(self, starts: Iterable[tuple[TableKey, tuple[int, ...], Mapping[str, int]]]) -> None:
        target = self.tables.target
        stack = list(starts)
        while stack:
            key, size, left = stack.pop()
            key = memo_key(key, target)
            axis = key.limit_axis()
            limit = left[axis] // target.cache(axis).step if axis else 0
            known = self.states.setdefault(key, {})
            point = (size[0], size[1], size[2], limit)
            if point in known:
                continue
            action = self._action(key, point)
            known[point] = action
            dims: dict[str, Any] = {"b": 1, **dict(zip(AXES, size, strict=True))}
            after = remaining(action, key, dims, left, target)
            for child in action.children(key, dims):
                if child.count:
                    stack.append((child.key, tuple(int(child.dims[d]) for d in AXES), after))

    def _action(self, key: TableKey, point: Point) -> Action:
        choice, actions = self.shared.policy(self.tables, key)
        number = self.tables.number
        code = choice[number["m"][point[0]], number["k"][point[1]], number["n"][point[2]], point[3]]
        if code < 0:
            raise AssertionError(f"an optimum of {key} leads to {point}, which has no implementation")
        return actions[code]
