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


class SharedTables:
    """Blocks of solved tables, for goals that come later and are not larger. Serves as a `Source` of tables.

    A block serves smaller goals where its sizes begin with theirs, as those of the scale do.
    """

    def __init__(self, capacity: int = SHARED_BYTES):
        self.capacity = capacity
        self._blocks: OrderedDict[TableKey, tuple[dict[str, list[int]], np.ndarray]] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def load(self, tables: Tables, key: TableKey) -> np.ndarray | None:
        key = memo_key(key, tables.target)
        if key not in self._blocks:
            return None
        sizes, block = self._blocks[key]
        if any(sizes[d][: len(tables.sizes[d])] != tables.sizes[d] for d in AXES):
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
            _, old = self._blocks.pop(key, (None, None))
            self._bytes += block.nbytes - (old.nbytes if old is not None else 0)
            self._blocks[key] = (tables.sizes, block)
            while self._bytes > self.capacity and len(self._blocks) > 1:
                self._bytes -= self._blocks.popitem(last=False)[1][1].nbytes


class Reach:
    """The states reached so far: for every table key, the action at each point (m, k, n, limit index)."""

    def __init__(self, target: Target):
        self.target = target
        self.states: dict[TableKey, dict[Point, Action]] = {}

    def add(self, root: Root, shared: SharedTables) -> None:
        """The states of the optima of all goals of `root`."""
        tables = Tables(root.largest, self.target.limits, self.target, source=shared)
        tables.table(root.key)
        walk = _Walk(tables, self.states)
        walk.run((root.key, size, self.target.limits) for size in root.sizes)

    def tabled(self) -> Iterator[tuple[TableKey, dict[Point, Action]]]:
        """The states that a memo keeps: where the output is in registers only kernels are left to be priced."""
        return ((key, states) for key, states in self.states.items() if "VRF" not in key.memories)


class _Walk:
    def __init__(self, tables: Tables, states: dict[TableKey, dict[Point, Action]]):
        self.tables = tables
        self.states = states
        self.policies: dict[TableKey, tuple[np.ndarray, list[Action]]] = {}

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
        if key not in self.policies:
            self.policies[key] = policy.choose(self.tables, key)
        choice, actions = self.policies[key]
        number = self.tables.number
        code = choice[number["m"][point[0]], number["k"][point[1]], number["n"][point[2]], point[3]]
        if code < 0:
            raise AssertionError(f"an optimum of {key} leads to {point}, which has no implementation")
        return actions[code]
