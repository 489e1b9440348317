"""Answers for goals that are kept as a whole, in the table `answers` of a memo file: chains and nests, and contractions
with windows, which few goals have parts in common with.

Nothing that is read is believed: a row whose checksum is wrong is dropped and reported, and whoever uses an answer
checks and prices its schedule like one by hand.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass
from typing import Any, TypeVar

from ..errors import MorelloError
from ..targets import Target
from .database import named
from .schema import ANSWERS_SCHEMA
from .store import Store, log
from .version import COST_MODEL

T = TypeVar("T")

CHECKSUM_BYTES = 16
#: To be raised whenever the space or the cost of chains, nests or windows changes by anything but coefficients.
ANSWER_MODEL = 7
_KEY = "space = ? AND spec = ?"
_COLUMNS = "space, spec, schedule, cost, checksum"


@dataclass(frozen=True, slots=True)
class Answer:
    """space, spec: what it is for (`answer_space`, text of a canonical goal). schedule: text. cost: integer units."""

    space: str
    spec: str
    schedule: str
    cost: int

    def checksum(self) -> bytes:
        return hashlib.blake2b(json.dumps(astuple(self)).encode(), digest_size=CHECKSUM_BYTES).digest()


def answer_space(target: Target) -> str:
    """The name under which answers for `target` are kept: they depend on what contractions and nests cost."""
    streams = hashlib.sha256(repr(target.streams).encode()).hexdigest()[:8]
    return f"{target.fingerprint}/{COST_MODEL}/{streams}/{target.narrow_fingerprint}/{ANSWER_MODEL}"


class Answers:
    """The answers of a memo file. Those that cannot be written are lost: the search keeps what it has found."""

    def __init__(self, store: Store, searched: Callable[[], None] = lambda: None):
        """searched: called when an answer that was not there has been searched for and put."""
        self.store = store
        self._searched = searched

    def get(self, space: str, spec: str) -> Answer | None:
        """What was found for `spec`, or None."""
        return next(self._select(f" WHERE {_KEY}", (space, spec)), None)

    def checked(self, space: str, spec: str, read: Callable[[str], tuple[T, float]]) -> tuple[T, int] | None:
        """The schedule found for `spec` and its cost, or None. read: the schedule of a text and what it costs now;
        where that raises a MorelloError, or the cost is another, the answer is dropped."""
        answer = self.get(space, spec)
        if answer is None:
            return None
        try:
            node, cost = read(answer.schedule)
            if cost != answer.cost:
                raise MorelloError(f"its schedule costs {cost}, not {answer.cost}")
        except MorelloError as error:
            self.drop(space, spec, str(error))
            return None
        return node, answer.cost

    def put(self, answer: Answer) -> None:
        """Keeps `answer` in place of what was there for its goal."""

        def write(connection: sqlite3.Connection) -> None:
            connection.execute(ANSWERS_SCHEMA)
            row = (*astuple(answer), answer.checksum())
            connection.execute(f"INSERT OR REPLACE INTO answers VALUES ({', '.join('?' * len(row))})", row)

        self.store.write(write)
        self._searched()

    def drop(self, space: str, spec: str, why: str) -> None:
        """Forgets an answer that is not right, and says so."""
        self.store.dropped += 1
        log.warning("memo %s: dropped the answer to '%s': %s", self.store.path, spec, why)
        self.store.erase("answers", (space, spec))

    def rows(self) -> Iterator[Answer]:
        """Every answer of the file; damaged ones are dropped on the way."""
        yield from self._select("", ())

    def _select(self, where: str, args: tuple[str, ...]) -> Iterator[Answer]:
        rows: list[tuple[Any, ...]] = self.store.read(
            lambda c: (
                named(c.execute(f"SELECT {_COLUMNS} FROM answers{where}", args).fetchall(), 2, *args)
                if c.execute("SELECT 1 FROM sqlite_master WHERE name = 'answers'").fetchone()
                else []
            ),
            [],
        )
        for row in rows:
            kinds = (str, str, str, int, bytes)
            good = all(isinstance(v, k) for v, k in zip(row, kinds, strict=True))
            answer = Answer(*row[:-1])
            if good and answer.checksum() == row[-1]:
                yield answer
            else:
                self.drop(row[0], row[1], "its checksum is wrong")


@dataclass
class MergedAnswers:
    """Answers added, those that were there already, and damaged ones."""

    added: int = 0
    known: int = 0
    damaged: int = 0


def merge_answers(
    into: Store, source: Store, match: str = "", wanted: Callable[[Answer], bool] = lambda answer: True
) -> MergedAnswers:
    """Adds the answers of `source` that are `wanted` and whose goal contains `match` to `into`. What both have is
    equal: the space says all that an answer depends on."""
    out, have, before = MergedAnswers(), Answers(into), source.dropped
    for answer in Answers(source).rows():
        if match not in answer.spec or not wanted(answer):
            continue
        if have.get(answer.space, answer.spec) is None:
            have.put(answer)
            out.added += 1
        else:
            out.known += 1
    out.damaged = source.dropped - before
    return out
