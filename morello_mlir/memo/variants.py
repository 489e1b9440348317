"""Tables that differ only in row stride classes, packed as one record.

The row stride of a contiguous operand follows from its innermost dim, so such tables form a grid: one class for each of
the dims m, k, n that some operand has innermost. Along it policies hardly change, and boxes run through.

In whole tables a class also bounds the sizes that were solved (a row of 48 floats is never 4096 long): every table has
an extent of its own, and what lies beyond is not known. Boxes that touch their table's end are drawn out to the end of
the grid, since nothing is asked there; so they meet those of longer tables. Of tables of which only some states are
known, a box says what it says and no more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations, product

import numpy as np

from ..actions import TableKey, scale
from ..errors import MorelloError
from ..search.tables import AXES
from .boxes import NOTHING, Boxes, compress, merge_kernel
from .coordinates import key_text, parse_key
from .record import Record

#: Orders in which a table's own axes are merged before the classes are: the best ones on the whole.
ORDERS = ((2, 0, 3, 1), (0, 2, 3, 1), (1, 2, 0, 3))

#: What stands for the class of a dim in a pattern; strides are powers of two, so that no other one looks like it.
_DIM_MARK = {"m": 3, "k": 5, "n": 7}

Classes = tuple[int, int, int]


def pattern_of(key: TableKey) -> tuple[str, Classes] | None:
    """The text of `key` with dims in place of row stride classes, and the classes of m, k, n (0: no operand has one).

    None where two operands disagree about a dim, as those of strided arrays may, or where there is no class at all.
    """
    classes = dict.fromkeys(AXES, 0)
    pattern = key
    for i, state in enumerate(key.operands):
        # In L1 a class says no more than whether vectors are aligned: it is not a place on the grid.
        if state.stride is None or state.memory == "L1":
            continue
        dim = key.names(i)[state.layout.innermost]
        if dim not in classes or classes[dim] not in (0, state.stride):
            return None
        classes[dim] = state.stride
        pattern = pattern.with_operand(i, replace(state, stride=_DIM_MARK[dim]))
    if not any(classes.values()):
        return None
    return "any " + key_text(pattern), (classes["m"], classes["k"], classes["n"])


def key_at(pattern: str, classes: Sequence[int]) -> TableKey:
    """The key that `pattern_of` took apart. Raises SpecError."""
    key = parse_key(pattern.removeprefix("any "))
    strides = {_DIM_MARK[d]: c for d, c in zip(AXES, classes, strict=True)}
    for i, state in enumerate(key.operands):
        if state.stride is not None:
            key = key.with_operand(i, replace(state, stride=strides.get(state.stride, state.stride)))
    return key


# ---------------------------------------------------------------- taking apart


def tables_of(record: Record) -> Iterator[Record]:
    """The records of single tables that `record` stands for: itself, where it is one."""
    if not record.variants:
        yield record
        return
    for classes in product(*record.variants):
        one = table_at(record, classes)
        if one is not None:
            yield one


def table_at(record: Record, classes: Sequence[int]) -> Record | None:
    """The record of the table with these classes; None where `record` does not have it."""
    try:
        at = [axis.index(c) for axis, c in zip(record.variants, classes, strict=True)]
    except ValueError:
        return None
    boxes = record.boxes
    extent: tuple[int, ...] = tuple(map(len, record.sizes))
    if record.complete:
        extent = record.extents[int(np.ravel_multi_index(at, [len(v) for v in record.variants]))]
    here = ((boxes.lo[:, :3] <= at) & (boxes.hi[:, :3] >= at) & (boxes.lo[:, 3:6] < extent)).all(axis=1)
    if 0 in extent or not (record.complete or here.any()):
        return None
    lo, hi = boxes.lo[here, 3:], boxes.hi[here, 3:].copy()
    hi[:, :3] = np.minimum(hi[:, :3], np.array(extent) - 1)
    sizes = tuple(axis[:e] for axis, e in zip(record.sizes, extent, strict=True))
    single = Boxes((*extent, record.limits), lo, hi, boxes.action[here])
    key = key_text(key_at(record.key, classes))
    # A share of the Specs: exact would need the target.
    specs = record.specs * single.cells // max(boxes.cells, 1)
    return Record(key, sizes, record.limits, record.actions, single, record.complete, specs)


# ---------------------------------------------------------------- putting together


def packed(pattern: str, members: dict[Classes, Record]) -> Record:
    """One record for whole tables of the scale that share `pattern`."""
    variants = tuple(tuple(sorted({c[i] for c in members})) for i in range(3))
    sizes = tuple(max((r.sizes[i] for r in members.values()), key=len) for i in range(3))
    if any(s != full[: len(s)] for r in members.values() for s, full in zip(r.sizes, sizes, strict=True)):
        raise MorelloError(f"tables of different scales under {pattern}")
    (limits,) = {r.limits for r in members.values()}
    actions = tuple(sorted({a for r in members.values() for a in r.actions}))
    shape = (*map(len, variants), *map(len, sizes), limits)
    places = list(product(*variants))
    found = {
        place: _renumbered(members[classes], actions)
        for place, classes in zip(np.ndindex(*shape[:3]), places, strict=True)
        if classes in members
    }
    best = min((_joined(found, shape, order, drawn_out=True) for order in ORDERS), key=len)
    none = (0, 0, 0)
    extents = tuple(tuple(map(len, members[c].sizes)) if c in members else none for c in places)
    specs = sum(r.specs for r in members.values())
    return Record(pattern, sizes, limits, actions, best, True, specs, variants, extents)


def packed_states(pattern: str, members: dict[Classes, list[Record]]) -> Record:
    """One record for what is known of tables with sizes of the scale that share `pattern`."""
    every = [r for records in members.values() for r in records]
    variants = tuple(tuple(sorted({c[i] for c in members})) for i in range(3))
    sizes = tuple(_scale_to(max(r.sizes[i][-1] for r in every)) for i in range(3))
    (limits,) = {r.limits for r in every}
    actions = tuple(sorted({a for r in every for a in r.actions}))
    shape = (*map(len, variants), *map(len, sizes), limits)
    found = {}
    for classes, records in members.items():
        choice = np.full(shape[3:], NOTHING, np.int32)
        for record in records:
            at = np.ix_(*(np.searchsorted(axis, own) for axis, own in zip(sizes, record.sizes, strict=True)))
            policy = _renumbered(record, actions)
            choice[at] = np.where(policy >= 0, policy, choice[at])
        found[tuple(v.index(c) for v, c in zip(variants, classes, strict=True))] = choice
    best = min((_joined(found, shape, order) for order in ORDERS), key=len)
    specs = sum(max(r.specs for r in records) for records in members.values())
    return Record(pattern, sizes, limits, actions, best, False, specs, variants)


def _scale_to(largest: int) -> tuple[int, ...]:
    return tuple(scale(largest + 1))


def _renumbered(record: Record, actions: tuple[str, ...]) -> np.ndarray:
    """The policy of `record`, numbered over `actions`."""
    number = np.array([*(actions.index(a) for a in record.actions), NOTHING], np.int32)
    return number[record.boxes.actions()]


def _joined(
    found: dict[tuple[int, ...], np.ndarray], shape: tuple[int, ...], order: Sequence[int], *, drawn_out: bool = False
) -> Boxes:
    """The boxes of every table, merged along their own axes by `order`, then along the classes in the best order.

    drawn_out: boxes that touch the end of a table that is shorter than the grid reach to the end of the grid.
    """
    corners, extents, values = [], [], []
    for place, policy in found.items():
        boxes = compress(policy, orders=(order,))
        hi = boxes.hi.astype(np.int64)
        for axis in range(3) if drawn_out else ():
            hi[hi[:, axis] == policy.shape[axis] - 1, axis] = shape[3 + axis] - 1
        corners.append(np.hstack([np.tile(place, (len(boxes), 1)), boxes.lo]))
        extents.append(np.hstack([np.ones((len(boxes), 3), np.int64), hi - boxes.lo + 1]))
        values.append(boxes.action)
    start = np.ravel_multi_index(tuple(np.vstack(corners).T), shape)
    ascending = np.argsort(start, kind="stable")
    parts = start[ascending], np.vstack(extents)[ascending], np.concatenate(values)[ascending]
    last = np.zeros(math.prod(shape), np.int32)
    best = parts
    for classes in permutations(a for a in range(3) if shape[a] > 1):
        merged = parts
        for axis in classes:
            merged = merge_kernel().merge_axis(*merged, shape, axis, last)
        best = min(best, merged, key=lambda p: len(p[0]))
    lo = np.stack(np.unravel_index(best[0], shape), 1)
    kind = np.uint8 if max(shape) <= 256 else np.uint16
    return Boxes(shape, lo.astype(kind), (lo + best[1] - 1).astype(kind), best[2].astype(np.int32))
