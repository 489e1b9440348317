"""Solved tables as records, and records as tables again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..actions import Action, TableKey
from ..actions.space import holds
from ..search.tables import AXES, Tables
from ..spec import dtype_bytes
from ..spec.spec import MAX_STRIDE_CLASS
from ..targets import Target
from . import policy
from .boxes import NOTHING, compress, volume_of
from .coordinates import key_text, memo_key, on_scale, specs_at_a_point
from .record import Record, action_from, used_only
from .states import States

Sizes = tuple[tuple[int, ...], ...]


#: While a user waits only the order of axes is tried that is best on the whole: n, m, limit, k. It costs a tenth of
#: trying all of them, and 5 % more boxes; `morello memo pack` makes up for it.
QUICK = ((2, 0, 3, 1),)


def records_of(
    tables: Tables, key: TableKey, *, costs: bool = False, orders: Sequence[Sequence[int]] | None = None
) -> list[Record]:
    """The solved table of `key` as records: one of the sizes on the scale, and one of what is off it, if there is any.

    costs: keep normalised costs as well as actions. orders: see `compress`.
    """
    choice, actions = policy.choose(tables, key)
    labels = [a.label() for a in actions]
    block = tables.table(key) if costs else None
    key = memo_key(key, tables.target)
    sizes: Sizes = tuple(tuple(tables.sizes[d]) for d in AXES)
    scale = [np.array([on_scale(s) for s in axis]) for axis in sizes]

    def record(sizes: Sizes, choice: np.ndarray, block: np.ndarray | None) -> Record:
        numbers, used = used_only(choice, labels)
        volume = volume_of(sizes) if block is not None else None
        boxes = compress(numbers, block, volume, orders)
        specs = count_specs(key, sizes, choice >= 0, tables.target)
        return Record(key_text(key), sizes, choice.shape[3], used, boxes, True, specs)

    if all(s.all() for s in scale):
        return [record(sizes, choice, block)]
    at = np.ix_(*scale, np.ones(choice.shape[3], bool))
    inner: Sizes = tuple(tuple(np.array(a)[s].tolist()) for a, s in zip(sizes, scale, strict=True))
    rest = choice.copy()
    rest[at] = NOTHING
    return [record(inner, choice[at], None if block is None else block[at]), record(sizes, rest, block)]


def count_specs(
    key: TableKey, sizes: Sizes, known: np.ndarray, target: Target, largest_class: int = MAX_STRIDE_CLASS
) -> int:
    """How many Specs the cells `known[m, k, n, limit]` answer. largest_class: of their row strides."""
    cells = int((known.sum(axis=3) * is_possible(key, sizes, target)).sum())
    return cells * specs_at_a_point(key, target, largest_class)


def is_possible(key: TableKey, sizes: Sizes, target: Target) -> np.ndarray:
    """`[m, k, n]`: whether a Spec of these sizes has this key: one whose operands do not fit the last-level cache is
    `far` as long as an operand is in GL."""
    grids = dict(zip(AXES, np.ix_(*(np.array(s, np.int64) for s in sizes)), strict=True))
    shape = tuple(map(len, sizes))
    if key.far or "GL" not in key.memories:
        return np.ones(shape, bool)
    size = np.zeros(shape, np.int64)
    for i, state in enumerate(key.operands):
        shape_of_operand: list[Any] = [grids.get(d, 1) for d in key.names(i)]
        size = size + state.layout.volume(shape_of_operand) * dtype_bytes(key.dtype_of(i))
    return size <= target.l3_bytes


def block_of(tables: Tables, key: TableKey, records: Iterable[Record]) -> np.ndarray | None:
    """The costs of the table of `key` from complete `records` of it; None where they do not answer every cell, or name
    an action that is not legal here."""
    choice = np.full(tables.shape(key), NOTHING, np.int16)
    known = np.zeros(choice.shape[:3], bool)
    actions: list[Action] = []
    for record in records:
        if record.complete and not record.variants and record.limits == choice.shape[3]:
            _fill(choice, known, record, tables, len(actions))
            actions += [action_from(label, key) for label in record.actions]
    if not known.all() or not all(holds(a.requires(key, tables.target)) for a in actions):
        return None
    block = policy.price(tables, key, choice, actions)
    return block if (np.isfinite(block) == (choice >= 0)).all() else None


def _fill(choice: np.ndarray, known: np.ndarray, record: Record, tables: Tables, base: int) -> None:
    """Copies what `record` knows of the table's sizes; its actions are numbered from `base`."""
    number = [{s: i for i, s in enumerate(axis)} for axis in record.sizes]
    wanted = [tables.sizes[d] for d in AXES]
    here = [np.array([s in n for s in axis]) for axis, n in zip(wanted, number, strict=True)]
    there = [[n[s] for s in axis if s in n] for axis, n in zip(wanted, number, strict=True)]
    at = np.ix_(*here)
    grid = record.boxes.actions()[np.ix_(*there)]
    new = ~known[at]
    if record.is_off_scale:
        scale = np.ix_(*(np.array([on_scale(s) for s in axis])[h] for axis, h in zip(wanted, here, strict=True)))
        new[scale] = False
    # Assigned through the flat rows, since a mask of a mask is a copy.
    rows = choice[at]
    rows[new] = np.where(grid >= 0, grid + base, NOTHING)[new]
    choice[at] = rows
    known[at] |= new


def reached_record(key: TableKey, states: States, target: Target) -> Record:
    """A policy for some points of the table of `key`; nothing is said of the others."""
    points = states.points
    found = [np.unique(points[:, i], return_inverse=True) for i in range(3)]
    axes: Sizes = tuple(tuple(sizes.tolist()) for sizes, _ in found)
    axis = key.limit_axis()
    limits = target.limits[axis] // target.cache(axis).step + 1 if axis else 1
    labels = sorted(states.labels)
    code = np.array([labels.index(label) for label in states.labels], np.int16)
    choice = np.full((*map(len, axes), limits), NOTHING, np.int16)
    choice[(*(at for _, at in found), points[:, 3])] = code[states.numbers]
    specs = len(states) * specs_at_a_point(key, target)
    return Record(key_text(key), axes, limits, tuple(labels), compress(choice), False, specs)


def states_of(records: Iterable[Record]) -> States:
    """What records of the same single table know; later ones decide."""
    out = States()
    for record in records:
        grid = record.boxes.actions()
        for number, label in enumerate(record.actions):
            at = np.nonzero(grid == number)
            sizes = [np.array(axis, np.int64)[i] for axis, i in zip(record.sizes, at[:3], strict=True)]
            out.add(np.column_stack([*sizes, at[3]]), label)
    return out
