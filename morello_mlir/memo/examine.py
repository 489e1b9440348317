"""Looking through a whole memo file. What is damaged in the columns that it is found by is not found when it is asked
for, and nobody would be told: so a process that has to search looks through the file, once."""

from __future__ import annotations

from typing import Any

from .answers import Answers
from .database import named
from .record import Row
from .store import Store
from .winners import Winners

#: Bytes of the files that are looked through unasked.
LARGEST = 64 << 20
#: Rows read at once: others wait for the file so long.
_ROWS = 256

_NEXT = "SELECT * FROM records WHERE (space, key, shape) > (?, ?, ?) ORDER BY space, key, shape LIMIT ?"


def examine(store: Store, largest: int | None = LARGEST) -> None:
    """Checks the trees of a file and every row against its checksum: what is damaged is reported and dropped, as where
    it is met. Rows of earlier versions get their seals. Once a process and file, and not where it has more than
    `largest` bytes."""
    if store.is_examined or (largest is not None and store.size > largest):
        return
    store.is_examined = True
    store.check()
    last: tuple[str, ...] = ("", "", "")
    while rows := store.read(lambda c: named(c.execute(_NEXT, (*last, _ROWS)).fetchall(), 3), _NONE):  # noqa: B023
        last = rows[-1][:3]
        _seal(store, [r for r in store.typed(rows) if not r.is_sealed() and store.sound(r) is not None])
    for table in (Winners(store), Answers(store)):
        for _ in table.rows():
            pass


_NONE: list[tuple[Any, ...]] = []


def _seal(store: Store, rows: list[Row]) -> None:
    statement = "UPDATE records SET data = ? WHERE space = ? AND key = ? AND shape = ? AND data = ?"
    if rows and store.writable:
        store.write(lambda c: c.executemany(statement, [(row.sealed().data, *row.name, row.data) for row in rows]))
