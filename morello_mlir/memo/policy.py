"""Policies: which action is optimal at every cell of a table.

A policy says as much as the costs do, and compresses twenty times better: a tile stays the best one over whole regions
in which every cost differs. The costs come back exactly by evaluating it (`price`), one candidate a cell.
"""

from __future__ import annotations

from functools import lru_cache
from types import ModuleType

import numpy as np

from ..actions import Action, MoveAction, ParallelTile, SerialAction, TableKey, TileAction, scale
from ..actions.space import groups, holds, serials
from ..search.catalog import Catalog
from ..search.tables import AXES, Tables
from ..targets import INFINITE
from .native import kernels

#: No implementation, or (in a policy that is not complete) not known.
NONE = -1


@lru_cache(maxsize=1)
def kernels_of_policies() -> ModuleType:
    """The compiled kernels, or the NumPy ones where numba cannot be imported."""
    return kernels("policy")


def actions_of(key: TableKey, largest: dict[str, int], catalog: Catalog) -> list[Action]:
    """Every action at `key`, by number, in the order in which reconstruction tries them; tiles up to `largest`."""
    target = catalog.target
    out = [*catalog.kernels(key), *serials(key, target), *catalog.moves(key)]
    for dim in AXES:
        shared = (ParallelTile(dim, step, group) for group in groups(key) for step in scale(largest[dim]))
        out += [a for a in shared if holds(a.requires(key, target))]
    for dim in AXES:
        width = key.pack_width(dim)
        steps = (TileAction(dim, step) for step in scale(largest[dim]) if step % width == 0)
        out += [a for a in steps if holds(a.requires(key, target))]
    return out


def choose(tables: Tables, key: TableKey, impl: ModuleType | None = None) -> tuple[np.ndarray, list[Action]]:
    """The policy of the solved table of `key` (what reconstruction would choose), and its actions by number."""
    impl = impl or kernels_of_policies()
    block = tables.table(key)
    choice = np.full(block.shape, NONE, np.int16)
    actions = actions_of(key, {d: tables.sizes[d][-1] for d in AXES}, tables.catalog)
    codes = np.full((3, max(block.shape[:3])), NONE, np.int16)
    for code, action in enumerate(actions):
        if isinstance(action, TileAction):
            codes[AXES.index(action.dim), tables.number[action.dim][action.size]] = code
        elif isinstance(action, MoveAction):
            impl.choose_move(choice, block, tables.reads(key, action), code)
        elif isinstance(action, (ParallelTile, SerialAction)):
            choice[(choice < 0) & (tables.parallel_costs(key, action) == block) & (block < INFINITE)] = code
        else:
            costs = tables.kernel_costs(key, action)
            choice[(choice < 0) & (costs == block) & (block < INFINITE)] = code
    if (codes >= 0).any():
        impl.choose_tiles(choice, block, tables.tile_lists(key), codes)
    if not ((choice >= 0) == (block < INFINITE)).all():
        raise AssertionError(f"some cell of {key} has a cost that no action explains")
    return choice, actions


def price(
    tables: Tables, key: TableKey, choice: np.ndarray, actions: list[Action], impl: ModuleType | None = None
) -> np.ndarray:
    """The costs that a policy stands for, `[m, k, n, limit]`: the inverse of `choose`."""
    impl = impl or kernels_of_policies()
    block = np.full(choice.shape, INFINITE)
    for code, action in enumerate(actions):
        here = choice == code
        if isinstance(action, TileAction) or not here.any():
            continue
        if isinstance(action, MoveAction):
            block[here] = _moved(tables, key, action)[here]
        elif isinstance(action, (ParallelTile, SerialAction)):
            block[here] = tables.parallel_costs(key, action)[here]
        else:
            block[here] = np.broadcast_to(tables.kernel_costs(key, action), block.shape)[here]
    price_tiles(tables, block, choice, actions, impl)
    return block


def price_tiles(
    tables: Tables, block: np.ndarray, choice: np.ndarray, actions: list[Action], impl: ModuleType | None = None
) -> int:
    """Lowers the costs in `block` of the cells whose choice is a tile to what it costs; those of the others are there.
    Returns how often the policy cannot be right."""
    # One more for a policy without actions.
    axis_of, index_of = np.full((2, len(actions) + 1), -1, np.int64)
    for code, action in enumerate(actions):
        if isinstance(action, TileAction):
            axis_of[code] = AXES.index(action.dim)
            index_of[code] = tables.number[action.dim].get(action.size, -1)
    impl = impl or kernels_of_policies()
    wrong: int = impl.price_tiles(block, choice, axis_of, index_of, *_size_arrays(tables))
    return wrong


def _moved(tables: Tables, key: TableKey, action: Action) -> np.ndarray:
    """What `action` costs at every cell; INFINITE where it does not fit."""
    reads = tables.reads(key, action)
    shape = tables.shape(key)
    at = np.broadcast_to(reads.maps[np.broadcast_to(reads.group, shape[:3])], shape)
    value = np.take_along_axis(reads.below, np.maximum(at, 0), -1) + reads.cost[..., None]
    return np.where(at >= 0, value, INFINITE)


def _size_arrays(tables: Tables) -> tuple[np.ndarray, np.ndarray]:
    """`sizes[axis, number]`, and `number[axis, size]` for the sizes that there are."""
    sizes = np.zeros((3, max(len(s) for s in tables.sizes.values())), np.int64)
    number = np.full((3, 1 + max(s[-1] for s in tables.sizes.values())), -1, np.int64)
    for axis, dim in enumerate(AXES):
        sizes[axis, : len(tables.sizes[dim])] = tables.sizes[dim]
        number[axis, tables.sizes[dim]] = np.arange(len(tables.sizes[dim]))
    return sizes, number
