"""Winners: schedules that were measured on a machine and found the fastest, in the table `winners` of a memo file.

A winner is for one space (target, cost model), one kind of machine and one Spec. Nothing that is read is believed: a
row whose checksum is wrong is dropped and reported, and whoever uses a winner checks its schedule like any other.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass, fields, replace
from math import isfinite
from typing import Any

from ..actions import check_tree
from ..errors import ScheduleError
from ..search.schedule import has_hole, parse
from ..spec import Spec
from ..targets import Target
from .database import named
from .schema import WINNERS_SCHEMA
from .store import Store, log

CHECKSUM_BYTES = 16


@dataclass(frozen=True, slots=True)
class Winner:
    """space, host, spec: what it is for (`space_of`, `Host.machine_key`, text of a canonical Spec). target: its name.

    schedule: text. seconds, model_seconds: of this schedule and of the cost model's choice, measured side by side.
    considered: among how many of the cheapest schedules it was chosen.
    """

    space: str
    host: str
    spec: str
    target: str
    schedule: str
    seconds: float
    model_seconds: float
    considered: int

    @property
    def key(self) -> tuple[str, str, str]:
        return self.space, self.host, self.spec

    def checksum(self) -> bytes:
        return hashlib.blake2b(json.dumps(astuple(self)).encode(), digest_size=CHECKSUM_BYTES).digest()

    def check(self, target: Target) -> None:
        """Checks the schedule of a contraction step by step. Raises ScheduleError, SpecError."""
        spec, node = Spec.parse(self.spec), parse(self.schedule)
        if has_hole(node):
            raise ScheduleError("schedule: it has holes")
        check_tree(spec, node, target)


_COLUMNS = ", ".join(f.name for f in fields(Winner))
_KEY = "space = ? AND host = ? AND spec = ?"


class Winners:
    """The winners of a memo file; those that cannot be written are kept in memory."""

    def __init__(self, store: Store, searched: Callable[[], None] = lambda: None):
        """searched: called when a winner that was not there has been measured and put."""
        self.store = store
        self._searched = searched
        self._memory: dict[tuple[str, str, str], Winner] = {}

    def get(self, space: str, host: str, spec: str) -> Winner | None:
        """What was found for `spec`, or None."""
        key = (space, host, spec)
        if key in self._memory:
            return self._memory[key]
        return next(self._select(f" WHERE {_KEY}", key), None)

    def put(self, winner: Winner) -> None:
        """Keeps `winner` in place of what was there for its key."""

        def write(connection: sqlite3.Connection) -> None:
            connection.execute(WINNERS_SCHEMA)
            row = (*astuple(winner), winner.checksum())
            connection.execute(f"INSERT OR REPLACE INTO winners VALUES ({', '.join('?' * len(row))})", row)

        if self.store.write(write):
            self._memory.pop(winner.key, None)
        else:
            self._memory[winner.key] = winner
        self._searched()

    def drop(self, space: str, host: str, spec: str, why: str) -> None:
        """Forgets a winner that is not right, and says so."""
        self.store.dropped += 1
        log.warning("memo %s: dropped the winner of '%s': %s", self.store.path, spec, why)
        self._memory.pop((space, host, spec), None)
        self.store.erase("winners", (space, host, spec))

    def rows(self) -> Iterator[Winner]:
        """Every winner of the file; damaged ones are dropped on the way."""
        yield from self._select("", ())

    def _select(self, where: str, args: tuple[str, ...]) -> Iterator[Winner]:
        rows: list[tuple[Any, ...]] = self.store.read(
            lambda c: (
                named(c.execute(f"SELECT {_COLUMNS}, checksum FROM winners{where}", args).fetchall(), 3, *args)
                if _has_table(c)
                else []
            ),
            [],
        )
        for row in rows:
            try:
                yield _decoded(row)
            except ValueError as error:
                self.drop(row[0], row[1], row[2], str(error))


def _has_table(connection: sqlite3.Connection) -> bool:
    """Files that are older than winners have no table of them."""
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'winners'").fetchone() is not None


def _decoded(row: tuple[Any, ...]) -> Winner:
    """A row as a winner. Raises ValueError."""
    winner = Winner(*row[:-1])
    kinds = (str, str, str, str, str, float, float, int)
    if not all(isinstance(v, k) for v, k in zip(row, kinds, strict=False)) or winner.checksum() != row[-1]:
        raise ValueError("its checksum is wrong")
    if not (isfinite(winner.seconds) and winner.seconds > 0):
        raise ValueError(f"it took {winner.seconds} seconds")
    return winner


@dataclass
class MergedWinners:
    """Winners added, those that were there already or are slower than what is there, and damaged ones."""

    added: int = 0
    known: int = 0
    damaged: int = 0


def merge_winners(into: Store, source: Store, wanted: Callable[[Winner], bool] = lambda w: True) -> MergedWinners:
    """Adds the winners of `source` to `into`. Those of different machines stand side by side; of two for the same kind
    of machine the faster one is kept, and for equal schedules the larger number of candidates."""
    out, have, before = MergedWinners(), Winners(into), source.dropped
    for winner in Winners(source).rows():
        if not wanted(winner):
            continue
        known = have.get(*winner.key)
        better = winner if known is None else _faster(known, winner)
        if better == known:
            out.known += 1
        else:
            have.put(better)
            out.added += 1
    out.damaged = source.dropped - before
    return out


def _faster(known: Winner, other: Winner) -> Winner:
    best = other if other.seconds < known.seconds else known
    if known.schedule == other.schedule:
        best = replace(best, considered=max(known.considered, other.considered))
    return best
