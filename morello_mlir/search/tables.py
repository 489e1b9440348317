"""Tables: for one table key, the optimal cost at every size of the closure and every limit that can still matter."""

from __future__ import annotations

import os
import warnings
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from types import MappingProxyType, ModuleType
from typing import Any, Protocol

import numpy as np

from ..actions import (
    Action,
    ParallelTile,
    TableKey,
    TileAction,
    WithinAction,
    closure,
    scale,
    steps,
)
from ..actions.space import groups, holds, serials
from ..spec import MEMORIES, is_float
from ..targets import INFINITE, Target, ceil_div
from .catalog import Catalog
from .tilelists import TileLists, axis_lists, decisive_lists

__all__ = ["Tables"]

AXES = ("m", "k", "n")
#: The tiles of axes, for all tables of the process: goals share most of theirs. No more of them are kept than this.
_axes: OrderedDict[tuple[object, ...], tuple[np.ndarray, ...]] = OrderedDict()
_MOST_AXES = 4096
#: More than windows have units.
_MOST_UNITS = 16


def workers() -> int:
    """How many tables are solved at once: as many as there are cores for this process, within reason."""
    available = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    return min(len(available), 4)


@lru_cache(maxsize=1)
def passes() -> ModuleType:
    """The compiled kernels, or the NumPy ones where llvmlite cannot be imported."""
    try:
        from . import passes_native

        return passes_native
    except ImportError as error:
        from . import passes_numpy

        warnings.warn(f"llvmlite cannot be imported, so searches take much longer: {error}", stacklevel=2)
        return passes_numpy


@dataclass(frozen=True, slots=True)
class Reads:
    """What a move reads: `below[m, k, n, child limit]`, plus `cost`. `maps[group, limit]` gives the child's limit
    index, or -1 where the move does not fit. cost and group are `[m, k, n]`, broadcastable."""

    below: np.ndarray
    cost: np.ndarray
    group: np.ndarray
    maps: np.ndarray


class Source(Protocol):
    """Where solved tables may come from, and go to."""

    def load(self, tables: Tables, key: TableKey) -> np.ndarray | None:
        """The block of `key`, a canonical key, where it is known."""

    def solved(self, tables: Tables, key: TableKey, block: np.ndarray) -> None:
        """`block` has been solved."""


class Tables:
    """All tables of one goal: sizes `dims` (m, k, n; batch 1), `limits` at the root, on demand, deepest first.

    The key graph is acyclic: operands only move inwards and are packed at most once. source: asked before a table is
    solved, and told after. units: of the goal's windows, by dim. catalog: what earlier goals have found out of keys.
    """

    def __init__(
        self,
        dims: Mapping[str, int],
        limits: Mapping[str, int],
        target: Target,
        impl: ModuleType | None = None,
        source: Source | None = None,
        units: Mapping[str, tuple[int, ...]] = MappingProxyType({}),
        catalog: Catalog | None = None,
    ):
        self.target = target
        self.limits = dict(limits)
        self.impl = impl or passes()
        self.source = source
        self.sizes = {d: in_order(closure(dims[d], units.get(d, ()))) for d in AXES}
        self.number = {d: {s: i for i, s in enumerate(self.sizes[d])} for d in AXES}
        self.tables: dict[TableKey, np.ndarray] = {}
        self._lists: dict[tuple[object, ...], TileLists] = {}
        self.catalog = catalog or Catalog(target)
        self._grid = {
            d: np.array(self.sizes[d], np.int64).reshape([-1 if e == d else 1 for e in AXES]) for d in AXES
        } | {"b": np.int64(1)}

    @property
    def cells(self) -> int:
        """Cells of all solved tables."""
        return sum(t.size for t in self.tables.values())

    @property
    def nbytes(self) -> int:
        return sum(t.nbytes for t in self.tables.values())

    # ------------------------------------------------------------ look-up

    def limit_values(self, key: TableKey) -> np.ndarray:
        """The limits along the last axis of the table of `key`; one value where no limit can matter."""
        memory = key.limit_axis()
        if memory is None:
            return np.zeros(1, np.int64)
        step = self.target.cache(memory).step
        return np.arange(0, self.limits[memory] + 1, step, dtype=np.int64)

    def holds(self, dims: Mapping[str, int]) -> bool:
        """Whether the tables have these sizes."""
        return all(dims[d] in self.number[d] for d in AXES)

    def at(self, key: TableKey, dims: Mapping[str, int], left: Mapping[str, int]) -> float:
        """The optimal cost of the Spec at `key`, `dims` with `left` of each memory; INFINITE where there is none."""
        table = self.table(key)
        memory = key.limit_axis()
        i = left[memory] // self.target.cache(memory).step if memory else 0
        value = table[self.number["m"][dims["m"]], self.number["k"][dims["k"]], self.number["n"][dims["n"]], i]
        return int(value) if value < INFINITE else INFINITE

    def table(self, key: TableKey) -> np.ndarray:
        """The block of `key`, `[m, k, n, limit]`, solving it (and what it needs) first."""
        key = key.canonical(self.target)
        if key not in self.tables:
            layers = self._unsolved(key)
            with ThreadPoolExecutor(workers()) as pool:
                for layer in sorted(layers, reverse=True):
                    # What a table reads lies deeper. Blocks are filled outside of the interpreter lock.
                    list(pool.map(self._settle, layers[layer]))
        return self.tables[key]

    def _unsolved(self, root: TableKey) -> dict[int, list[TableKey]]:
        """The keys from `root` down that must be solved, by depth. What the source has is taken from it."""
        layers: dict[int, list[TableKey]] = {}
        seen, stack = {root}, [root]
        while stack:
            key = stack.pop()
            known = self.source.load(self, key) if self.source else None
            if known is not None:
                self.tables[key] = known
                continue
            layers.setdefault(depth(key), []).append(key)
            for child in self._children(key):
                below = child.canonical(self.target)
                if below not in seen and below not in self.tables:
                    seen.add(below)
                    stack.append(below)
        return layers

    def _children(self, key: TableKey) -> Iterator[TableKey]:
        """The keys of the tables that the table of `key` reads."""
        ways = (*serials(key, self.target), *self.catalog.moves(key), *self.parallel_tiles(key), *withins(key))
        for action in ways:
            for child in action.children(key, self._grid):
                yield child.key

    def _settle(self, key: TableKey) -> None:
        # Reading a known table may have needed this one meanwhile.
        if key in self.tables:
            return
        self.tables[key] = self._solve(key)
        if self.source:
            self.source.solved(self, key, self.tables[key])

    def shape(self, key: TableKey) -> tuple[int, int, int, int]:
        """The shape of the table of `key`."""
        m, k, n = (len(self.sizes[d]) for d in AXES)
        return m, k, n, len(self.limit_values(key))

    # ------------------------------------------------------------ solving

    def _solve(self, key: TableKey) -> np.ndarray:
        block = np.full(self.shape(key), INFINITE)
        for kernel in self.catalog.kernels(key):
            np.minimum(block, self.kernel_costs(key, kernel), out=block)
        for move in self.catalog.moves(key):
            reads = self.reads(key, move)
            self.impl.move_pass(block, reads.below, reads.cost, reads.group, reads.maps)
        for action in (*serials(key, self.target), *self.parallel_tiles(key)):
            np.minimum(block, self.parallel_costs(key, action), out=block)
        for within in withins(key):
            self._enter(key, within, block)
        if "VRF" not in key.memories and not key.forked:
            self.impl.tile_pass(block, self.tile_lists(key, decisive=True))
        return block

    def _enter(self, key: TableKey, within: WithinAction, block: np.ndarray) -> None:
        """Sizes that a window does not matter at cost what they cost without it."""
        (child,) = within.children(key, self._grid)
        below, axis = self.table(child.key), AXES.index(within.dim)
        inside = np.array([size <= key.unit(within.dim) for size in self.sizes[within.dim]])
        np.moveaxis(block, axis, 0)[inside] = np.moveaxis(below, axis, 0)[inside]

    # ------------------------------------------------------------ threads

    def parallel_tiles(self, key: TableKey) -> list[ParallelTile]:
        """Every parallel tile of some size of the table of `key`."""
        sizes = {d: steps(max(self.sizes[d]), key.units(d)) for d in AXES}
        candidates = [ParallelTile(d, s, g) for g in groups(key) for d in AXES for s in sizes[d]]
        return [a for a in candidates if holds(a.requires(key, self.target))]

    def parallel_costs(self, key: TableKey, action: Action) -> np.ndarray:
        """The cost of `serial` or of a parallel tile at every size, `[m, k, n, 1]`: all operands are in GL, so that no
        limit matters."""
        if not isinstance(action, ParallelTile):
            (child,) = action.children(key, self._grid)
            return self.table(child.key)
        axis, sizes = AXES.index(action.dim), self.sizes[action.dim]
        below = np.moveaxis(self.table(action.children(key, self._grid)[0].key), axis, 0)
        # counts[way, child, size]: how often the main body and the remainder are met.
        counts = np.zeros((2, 2, len(sizes), 1, 1, 1))
        for i, size in enumerate(sizes):
            for w, way in enumerate(action.ways(key, {action.dim: size}) if size > action.size else ()):
                counts[w, :, i, 0, 0, 0] = way
        rests = [self.number[action.dim].get(size % action.size, 0) for size in sizes]
        costs = (below[[self.number[action.dim][action.size]]], below[rests])
        ways = [sum(np.multiply(n, c, out=np.zeros(below.shape), where=n > 0) for n, c in zip(w, costs, strict=True))
                for w in counts]  # fmt: skip
        out = np.moveaxis(np.maximum(*ways), 0, axis)
        for legal, _ in action.conditions(key, self._grid, self.limits, self.target):
            out = np.where(_three(np.asarray(legal))[..., None], out, INFINITE)
        own = np.asarray(action.cost(key, self._grid, self.target), np.float64)
        return out + _three(own)[..., None]

    def _left(self, key: TableKey) -> dict[str, Any]:
        """What is left of each memory at the cells of `key`, in the shape of the block where it varies. Registers taken
        by the output follow from the sizes: nothing else takes any before a kernel does."""
        left: dict[str, Any] = dict(self.limits)
        memory = key.limit_axis()
        if memory:
            left[memory] = self.limit_values(key)
        if "VRF" in key.memories:
            lanes = self.target.lanes(key.dtype)
            left["VRF"] = self.limits["VRF"] - self._grid["m"] * -(-self._grid["n"] // lanes)
        return left

    def kernel_costs(self, key: TableKey, kernel: Action) -> np.ndarray:
        """The cost of `kernel` at every size that it takes, `[m, k, n, 1]`, broadcastable."""
        ok = np.ones((1, 1, 1), bool)
        for condition, _ in kernel.conditions(key, self._grid, self._left(key), self.target):
            ok = ok & condition
        return np.where(ok, kernel.cost(key, self._grid, self.target), INFINITE)[..., None]

    def reads(self, key: TableKey, move: Action) -> Reads:
        """What `move` reads: the child's table, at what the move leaves of the memory it allocates."""
        (child,) = move.children(key, self._grid)
        below = self.table(child.key)
        cost = np.asarray(move.cost(key, self._grid, self.target), np.float64)
        used = move.uses(key, self._grid, self.target)
        memory, amount = next(iter(used.items()), (None, np.zeros((1, 1, 1), np.int64)))
        maps, group = self._limit_maps(key, child.key, memory, np.asarray(amount, np.int64))
        return Reads(below, _three(cost), _three(group), maps)

    def _limit_maps(
        self, key: TableKey, child: TableKey, memory: str | None, taken: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """`maps[group, limit]`: the limit index of `child` for every limit of `key`, -1 where `memory` does not have
        what is taken of it; and the group of every amount taken: how many steps of the limit it is."""
        axis, below = key.limit_axis(), child.limit_axis()
        places = np.arange(len(self.limit_values(key)))
        if memory is None or memory == "VRF":
            index = places if below == axis else np.full(len(places), self._top(below))
            return np.stack([index, np.full(len(places), -1)]), (taken > self.limits["VRF"]).astype(np.int64)
        # Limits are whole steps (`limits_of`): what is taken of one counts as whole steps too.
        steps, top = ceil_div(taken, self.target.cache(memory).step), self._top(memory)
        before = places if axis == memory else np.full(len(places), top)
        rest = before - np.arange(top + 2)[:, None]
        index = rest if below == memory else np.full(rest.shape, self._top(below))
        return np.where(rest >= 0, index, -1), np.minimum(steps, top + 1)

    def _top(self, memory: str | None) -> int:
        """The index of the whole limit: where an axis begins to matter, nothing has been taken yet."""
        return self.limits[memory] // self.target.cache(memory).step if memory else 0

    # ------------------------------------------------------------ tiles

    def tile_lists(self, key: TableKey, *, decisive: bool = False) -> TileLists:
        """The legal tiles of every size of the three axes at `key`. decisive: without those that cannot be cheaper than
        another of them, which changes no cost."""
        # All that decides which tiles are legal: widths of panels, and the rest of TileAction.requires.
        rounds = bool(key.operands[-1].dtype) and is_float(key.dtype)
        common = (key.function, rounds, key.forked, "VRF" in key.memories)
        widths = tuple((key.pack_width(d), key.units(d)) for d in AXES)
        name = (widths, common, decisive)
        if name not in self._lists:
            cols = [self._axis_lists(key, d, (*widths[i], *common), decisive) for i, d in enumerate(AXES)]
            self._lists[name] = TileLists(*(tuple(c[i] for c in cols) for i in range(4)))  # type: ignore[arg-type]
        return self._lists[name]

    def _axis_lists(
        self, key: TableKey, dim: str, deciding: tuple[object, ...], decisive: bool
    ) -> tuple[np.ndarray, ...]:
        """The legal tiles of one axis. deciding: all of `key` that they depend on."""
        name = (dim, tuple(self.sizes[dim]), deciding, decisive)
        found = _axes.get(name)
        if found is None:
            lists = decisive_lists if decisive else axis_lists
            found = _axes[name] = lists(self.sizes[dim], partial(self._tiles, key, dim))
            while len(_axes) > _MOST_AXES:
                _axes.popitem(last=False)
        return found

    def _tiles(self, key: TableKey, dim: str, size: int) -> list[tuple[int, int, int]]:
        """(tile size, count, remainder) of every legal tile of a dim of size `size`, from the action's declaration."""
        out: list[tuple[int, int, int]] = []
        if size % key.unit(dim):
            return out  # nothing leads there
        for step in steps(size, key.units(dim)):
            action = TileAction(dim, step)
            if holds(action.requires(key, self.target)):
                body, rest = action.children(key, {"b": 1, "m": size, "k": size, "n": size})
                out.append((int(body.dims[dim]), int(body.count), int(rest.dims[dim])))
        return out


def withins(key: TableKey) -> list[WithinAction]:
    """The steps to sizes within one unit of a window, for the dims that have one."""
    return [WithinAction(dim) for dim in AXES if key.units(dim)]


def in_order(sizes: list[int]) -> list[int]:
    """`sizes` as axes have them: those of the scale, then the others, each ascending. Tiling a size leads to sizes
    before it, and what is known of the scale comes first."""
    on_scale = set(scale(sizes[-1] + 1))
    return sorted(sizes, key=lambda s: (s not in on_scale, s))


def depth(key: TableKey) -> int:
    """Rises with every move: operands go inwards, and are packed at most once. Serial goals lie below parallel ones."""
    threads = 100 * key.is_serial + 50 * key.forked
    places = sum(2 * MEMORIES.index(o.memory) + o.layout.is_packed for o in key.operands)
    # Of keys that differ in their windows alone, the one with fewer units lies deeper.
    return (threads + places) * _MOST_UNITS - sum(len(key.units(d)) for d in AXES)


def _three(x: np.ndarray) -> np.ndarray:
    """`x` with exactly three axes."""
    return x.reshape((1,) * (3 - x.ndim) + x.shape) if x.ndim < 3 else x
