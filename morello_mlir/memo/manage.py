"""What `morello memo` does: figures, comparison with a fresh search, merging, subsets, recompression."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np

from ..actions import TableKey
from ..errors import MorelloError
from ..search.solve import Search
from ..spec import Spec
from ..targets import CPUS, TARGETS, Target, get_target, this_host
from .answers import answer_space
from .boxes import compress
from .coordinates import coordinate, kernels_of, parse_key, size_coordinate, spec_at
from .examine import examine
from .memo import Memo
from .precompute import joined_with
from .record import PLAIN_BYTES, DamagedRecord, Record, Row
from .store import Store
from .variants import Classes, packed, packed_states, pattern_of, tables_of
from .version import space_of
from .winners import Winner, Winners, merge_winners

#: The largest product of the sizes of a Spec that `verify` searches for.
LARGEST_CHECKED = 1 << 31


def current_spaces() -> dict[str, list[Target]]:
    """The spaces of the targets of this installation: the named ones, those of CPUs, and the host's as calibrated. In
    one space are targets that differ in their kernels for narrow element types alone."""
    out: dict[str, list[Target]] = {}
    for target in map(get_target, (*CPUS, "host", *TARGETS)):
        known = out.setdefault(space_of(target), [])
        if all(t.narrow_fingerprint != target.narrow_fingerprint for t in known):
            known.append(target)
    return out


def winner_spaces() -> dict[str, list[Target]]:
    """As `current_spaces`, with those under which winners of nests, chains and windows are kept."""
    spaces = current_spaces()
    answers = {answer_space(t): [t] for targets in spaces.values() for t in targets}
    return {**spaces, **answers}


def _that_has(kernels: str, targets: Iterable[Target]) -> Target | None:
    """The target whose kernels for narrow element types a key speaks of; any, where it speaks of none."""
    return next((t for t in targets if kernels in ("", t.narrow_fingerprint)), None)


# ---------------------------------------------------------------- figures


def figures(rows: Iterable[Row], file_bytes: int | None = None) -> dict[str, Any]:
    """specs_covered, boxes, bytes, bytes_one_record_each and ratio of some records; bytes are the file's, if given."""
    specs = boxes = size = records = 0
    for row in rows:
        records += 1
        specs += row.specs
        boxes += row.boxes
        size += len(row.data)
    size = size if file_bytes is None else file_bytes
    plain = specs * PLAIN_BYTES
    return {
        "records": records,
        "specs_covered": specs,
        "boxes": boxes,
        "bytes": size,
        "bytes_one_record_each": plain,
        "ratio": plain / size if size else 0.0,
    }


def statistics(store: Store) -> dict[str, Any]:
    """What is in a memo: in all, per space and per table; and where the answers of the last runs came from."""
    rows = list(store.rows())
    current = current_spaces()
    spaces = []
    for space in sorted({r.space for r in rows}):
        own = [r for r in rows if r.space == space]
        spaces.append({"space": space, "target": own[0].target, "current": space in current, **figures(own)})
    tables = [{"space": r.space, "target": r.target, "table": r.key, "shape": r.shape, **figures([r])} for r in rows]
    runs = store.runs()
    return {
        "path": str(store.path),
        "all": figures(rows, store.size),
        "spaces": spaces,
        "tables": tables,
        "runs": runs,
        "hit_rate": hit_rate(runs),
        "winners": _winner_figures(store, winner_spaces()),
    }


def _winner_figures(store: Store, current: Collection[str]) -> dict[str, int]:
    """How many winners there are; of these, for this kind of machine and a current space; and other than the model's
    choice."""
    winners = list(Winners(store).rows())
    host = this_host().machine_key
    return {
        "all": len(winners),
        "usable": sum(w.host == host and w.space in current for w in winners),
        "faster": sum(w.seconds < w.model_seconds for w in winners),
    }


def hit_rate(runs: Iterable[dict[str, float]]) -> float | None:
    """The share of goals that needed no search; None where there were none."""
    found = searched = 0.0
    for run in runs:
        found += run["memory"] + run["memo"] + run["shipped"]
        searched += run["search"]
    return found / (found + searched) if found + searched else None


# ---------------------------------------------------------------- verification


@dataclass
class Verdict:
    """records: read; foreign: of them, for targets, kernels or a cost model that this installation does not have;
    winners: read; damaged: records and winners dropped; compared: Specs searched anew; wrong: those with another
    cost."""

    records: int = 0
    damaged: int = 0
    compared: int = 0
    wrong: list[str] | None = None
    winners: int = 0
    foreign: int = 0


def verify(
    store: Store,
    sample: int,
    seed: int = 0,
    check: Callable[[Winner, Target], object] | None = None,
) -> Verdict:
    """Reads every record and every winner, and compares `sample` Specs of the records for this installation's targets
    with a fresh search.

    check: raises a MorelloError where the schedule of a winner is not legal for a target, whatever goal it is of;
    without it those of tables are checked.
    """
    verdict = Verdict(wrong=[])
    found: list[tuple[Target, TableKey, Record]] = []
    current = current_spaces()
    before = store.dropped
    examine(store, largest=None)
    for row in store.rows():
        record = store.sound(row)
        if record is None:
            continue
        verdict.records += 1
        target = _that_has(kernels_of(row.key), current.get(row.space, ()))
        if target is None:
            verdict.foreign += 1
        else:
            found += [(target, parse_key(t.key), t) for t in tables_of(record) if len(t.boxes)]
    verdict.winners = _check_winners(store, check)
    verdict.damaged = store.dropped - before
    for target, spec in _sample(found, sample, random.Random(seed)):
        verdict.compared += 1
        if not same_as_search(store, target, spec):
            assert verdict.wrong is not None
            verdict.wrong.append(f"{target.name}: {spec}")
    return verdict


def _check_winners(store: Store, check: Callable[[Winner, Target], object] | None) -> int:
    """Drops the winners that are damaged, or not legal on the target they are for; returns how many are left."""
    current = winner_spaces() if check else current_spaces()
    check = check or Winner.check
    winners, sound = Winners(store), 0
    for winner in list(winners.rows()):
        errors = [_why_illegal(winner, target, check) for target in current.get(winner.space, ())]
        if errors and all(errors):
            winners.drop(*winner.key, str(errors[0]))
        else:
            sound += 1
    return sound


def _why_illegal(winner: Winner, target: Target, check: Callable[[Winner, Target], object]) -> MorelloError | None:
    try:
        check(winner, target)
    except MorelloError as error:
        return error
    return None


def _sample(
    found: list[tuple[Target, TableKey, Record]], count: int, rng: random.Random
) -> Iterator[tuple[Target, Spec]]:
    """Specs that records answer, at random; not those that are too large to be searched for a check."""
    for _ in range(50 * count if found else 0):
        if count <= 0:
            return
        target, key, record = rng.choice(found)
        box = rng.randrange(len(record.boxes))
        cell = [rng.randint(int(a), int(b)) for a, b in zip(record.boxes.lo[box], record.boxes.hi[box], strict=True)]
        m, k, n = (axis[i] for axis, i in zip(record.sizes, cell, strict=False))
        spec = spec_at(key, (*(size_coordinate(s) for s in (m, k, n)), cell[3]), target)  # type: ignore[arg-type]
        at = coordinate(spec, target)
        if at is not None and at[0] == key and m * k * n <= LARGEST_CHECKED:
            count -= 1
            yield target, spec


def same_as_search(store: Store, target: Target, spec: Spec) -> bool:
    """True where the schedule that `store` has for `spec` is as cheap as what a search without a memo finds.

    A state that leads nowhere (a record below it is missing) is no error: it is searched when it is asked for.
    """
    search = Search(target)
    found = Memo(target, store).find(*search.point(spec))
    if found is None:
        return True
    node, cost, _ = found
    return cost == search.cost(spec) == search.price(spec, node)


# ---------------------------------------------------------------- merging


@dataclass
class Merged:
    """Records added to a memo, those that were there already, those that contradict what is there, and damaged ones."""

    added: int = 0
    known: int = 0
    conflicts: int = 0
    damaged: int = 0


def merge(into: Store, source: Store, wanted: Callable[[Row], bool] = lambda row: True) -> Merged:
    """Adds the records of `source` to `into`.

    Spaces never mix: a record is for one fingerprint, cost model and table. Answers are a function of these, so that
    two records of one table and shape are equal; where they are not, one of the machines is wrong, and the one that is
    there is kept. What optima reach is united.
    """
    out = Merged()
    # All of one key together: what is known of it is read once, and what is new is one transaction.
    for (space, _), rows in groupby(filter(wanted, source.rows()), key=lambda row: (row.space, row.key)):
        known: dict[str, dict[str, Record]] = {}
        new: dict[str, list[Record]] = {}
        for row in rows:
            try:
                tables = tables_of(row.record())
            except DamagedRecord:
                out.damaged += 1
                continue
            for table in tables:
                if table.key not in known:
                    known[table.key] = {r.shape: r for r in into.get(space, table.key)}
                added = _added(row, table, known[table.key], out)
                if added is not None:
                    known[table.key][added.shape] = added
                    new.setdefault(row.target, []).append(added)
        for target, records in new.items():
            into.put(space, target, records)
    return out


def _added(row: Row, record: Record, known: dict[str, Record], out: Merged) -> Record | None:
    """What is to be written of one table, of whose key `known` is there, by shape; None where it is there already."""
    if record.shape in known:
        joined = record if record.complete else _united(row, record, known)
        same = _same_policy(known[record.shape], joined)
        if same or record.complete:
            out.known += same
            out.conflicts += not same
            return None
        record = joined
    out.added += 1
    return record


def _same_policy(a: Record, b: Record) -> bool:
    def labels(r: Record) -> np.ndarray:
        return np.array([*r.actions, ""], object)[r.boxes.actions()]

    return a.sizes == b.sizes and a.limits == b.limits and bool((labels(a) == labels(b)).all())


def _united(row: Row, record: Record, known: dict[str, Record]) -> Record:
    target = _that_has(kernels_of(row.key), current_spaces().get(row.space, ()))
    if target is None:
        return record
    try:
        return joined_with(record, known.values(), target)
    except MorelloError:
        return record


def keep_only(store: Store, targets: Iterable[Target]) -> None:
    """Forgets every record that is for none of `targets`, as they are now."""
    wanted = {(space_of(t), kernels) for t in targets for kernels in ("", t.narrow_fingerprint)}
    store.delete(*((r.space, r.key, r.shape) for r in store.rows() if (r.space, kernels_of(r.key)) not in wanted))


def pack(store: Store, space: str | None = None) -> tuple[int, int]:
    """Compresses every record (of one space) again: tables that differ in row stride classes together, the others with
    all orders of the axes. Returns the boxes before and after."""
    before = after = 0
    groups: dict[tuple[str, str, str, bool], dict[Classes, list[Record]]] = {}
    examine(store, largest=None)
    for row in list(store.rows(space)):
        record = store.sound(row)
        if record is None:
            continue
        before += row.boxes
        for table in tables_of(record):
            pattern = None if table.is_off_scale else pattern_of(parse_key(table.key))
            if pattern is None:
                after += _packed_alone(store, row, table)
            else:
                members = groups.setdefault((row.space, row.target, pattern[0], table.complete), {})
                members.setdefault(pattern[1], []).append(table)
    for (space, target, name, complete), found in groups.items():
        largest: dict[Classes, Record] = {}
        if complete:
            largest = {c: max(tables, key=lambda t: t.boxes.shape) for c, tables in found.items()}
            whole = packed(name, largest)
        else:
            whole = packed_states(name, found)
        store.put(space, target, [whole])
        every = [(classes, table) for classes, tables in found.items() for table in tables]
        gone = [t for classes, t in every if not complete or _within(t, largest[classes])]
        store.delete(*((space, t.key, t.shape) for t in gone))
        after += len(whole.boxes)
    return before, after


def is_loose(store: Store, space: str) -> bool:
    """Whether there are records of `space` that `pack` would put together with others."""
    return any(not r.shape.startswith("packed") and pattern_of(parse_key(r.key)) for r in store.rows(space))


def _within(table: Record, other: Record) -> bool:
    return all(a <= b for a, b in zip(table.boxes.shape, other.boxes.shape, strict=True))


def _packed_alone(store: Store, row: Row, record: Record) -> int:
    """Tries all orders for one record; returns its boxes."""
    if record.boxes.cost is None and not record.variants:
        boxes = compress(record.boxes.actions())
        if len(boxes) < len(record.boxes):
            record = replace(record, boxes=boxes)
            store.put(row.space, row.target, [record])
    return len(record.boxes)


__all__ = [
    "Merged",
    "Verdict",
    "current_spaces",
    "figures",
    "hit_rate",
    "is_loose",
    "keep_only",
    "merge",
    "merge_winners",
    "pack",
    "same_as_search",
    "statistics",
    "verify",
]
