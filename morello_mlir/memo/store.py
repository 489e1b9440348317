"""The store: records in one SQLite file that several processes share and that survives whatever ends them.

Nothing that happens to the file is an error for whoever asks: damaged records are dropped and reported, a file that
cannot be written (or is no memo) leaves what is found in memory.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import astuple
from pathlib import Path
from typing import Any, TypeVar

from ..locks import before_forks, forks_wait_for, lock
from .database import ERRORS, check_sound, damage, inode, is_busy, is_damage, is_memo, is_open, move_aside, named
from .record import DamagedRecord, Record, Row, row_of
from .schema import (
    ANSWERS_SCHEMA,
    TABLES,
    WINNERS_SCHEMA,
    ForeignFile,
    connect_to_read,
    connect_writable,
    salvage,
    transaction,
)

log = logging.getLogger("morello_mlir.memo")

T = TypeVar("T")

#: Runs remembered for the hit rate.
RUNS_KEPT = 100
#: Where answers come from; columns of `runs`.
_SOURCES = ("memory", "memo", "shipped", "search")

#: Connections of the process that this one was forked from, which are not to be closed here: the locks are its own.
_of_parents: list[sqlite3.Connection] = []
#: Of this process, by `id`. (A dict can be listed while other threads add to it.)
_stores: weakref.WeakValueDictionary[int, Store] = weakref.WeakValueDictionary()


@before_forks
def _let_go() -> None:
    """SQLite keeps a list of the locks that its process has on a file. A child that finds its parent's there takes them
    for its own and asks the system for none, so that others take the file for one that nobody uses."""
    for each in _stores.valuerefs():
        store = each()
        if store is not None:
            store.let_go()


class Store:
    """A memo file. All methods are safe in threads and never raise for what is wrong with the file.

    path: None keeps everything in memory. writable: False never writes (a shipped memo).
    """

    def __init__(self, path: Path | None, *, writable: bool = True):
        self.path = path
        if path is not None:
            # It is opened again after a fork, and the process may have gone to another folder.
            with suppress(OSError):
                self.path = path.absolute()
        self.writable = writable and path is not None
        self.dropped = 0
        # SQLite has locks of its own, for all connections, that a child would find taken. Should it take too long, the
        # child finds at least this one free.
        self._lock = forks_wait_for(lock())
        self._pid = os.getpid()
        self._run = f"{self._pid}-{time.time_ns():x}"
        self._counts: dict[str, int] = {}
        self._warned: set[str] = set()
        self._memory: dict[tuple[str, str], dict[str, Record]] = {}
        self._connection: sqlite3.Connection | None = None
        #: The one whose trees were checked.
        self._checked: sqlite3.Connection | None = None
        #: Whether all of the file was read (`examine`).
        self.is_examined = path is None
        #: The inode of the file that is open, or was when it was opened.
        self._which = 0
        self._tried = False
        #: How deep in `_do` the thread is that has the lock.
        self._working = 0
        _stores[id(self)] = self

    # ------------------------------------------------------------ records

    def get(self, space: str, key: str) -> list[Record]:
        """The records of `key`, those of the scale first."""
        with self._lock:
            found = dict(self._memory.get((space, key), {}))
            query = "SELECT * FROM records WHERE space = ? AND key = ?"
            rows: list[tuple[Any, ...]] = self._do(
                lambda c: named(c.execute(query, (space, key)).fetchall(), 3, space, key), []
            )
            for row in self.typed(rows):
                record = self.sound(row)
                if record is not None:
                    found.setdefault(row.shape, record)
            return [found[s] for s in sorted(found, key=lambda s: not s.startswith("scale"))]

    def has_shape(self, space: str, *shapes: str) -> bool:
        """Whether there are records of `space` with one of these shapes."""
        with self._lock:
            if any(at[0] == space and not known.keys().isdisjoint(shapes) for at, known in self._memory.items()):
                return True
            marks = ", ".join("?" * len(shapes))
            query = f"SELECT 1 FROM records WHERE space = ? AND shape IN ({marks}) LIMIT 1"
            return bool(self._do(lambda c: c.execute(query, (space, *shapes)).fetchall(), []))

    def put(self, space: str, target: str, records: Iterable[Record]) -> None:
        """Keeps `records`, all or none; those of smaller sizes that they contain are dropped."""
        batch = list(records)
        rows = [row_of(space, target, record) for record in batch]
        with self._lock:
            done = self.writable and self._do(lambda c: self._write(c, rows), False, writing=True)
            if not done:
                for record in batch:
                    self._memory.setdefault((space, record.key), {})[record.shape] = record

    def _write(self, connection: sqlite3.Connection, rows: list[Row]) -> bool:
        self._check(connection)
        with transaction(connection):
            for row in rows:
                held = connection.execute("SELECT shape FROM records WHERE space = ? AND key = ?", row.name[:2])
                shapes = [s for (s,) in held]
                if any(_contains(s, row.shape) for s in shapes if s != row.shape):
                    continue
                for old in shapes:
                    if _contains(row.shape, old):
                        connection.execute(
                            "DELETE FROM records WHERE space = ? AND key = ? AND shape = ?", (*row.name[:2], old)
                        )
                connection.execute("INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?, ?, ?, ?)", astuple(row))
        return True

    def check(self) -> None:
        """Has the trees of the file checked, once a connection: what is out of place in them is not found."""
        self.read(self._check, None)

    def _check(self, connection: sqlite3.Connection) -> None:
        """Also before the first records are written through a connection: what is written into a damaged tree may not
        be found again. Raises sqlite3.DatabaseError."""
        if self._checked is not connection:
            check_sound(connection)
            self._checked = connection

    def typed(self, rows: Iterable[tuple[Any, ...]]) -> Iterator[Row]:
        """Rows of `records`, with all columns; those with values of other types are dropped."""
        for row in rows:
            try:
                yield Row.of(row)
            except DamagedRecord as error:
                self.drop(row[0], row[1], row[2], str(error))

    def sound(self, row: Row) -> Record | None:
        """The record of `row`; None where it is damaged, which drops it."""
        try:
            return row.record()
        except DamagedRecord as error:
            self.drop(*row.name, str(error))
            return None

    def drop(self, space: str, key: str, shape: str, why: str) -> None:
        """Forgets a record that is not right, and says so."""
        self.dropped += 1
        log.warning("memo %s: dropped the record of '%s' (%s): %s", self.path, key, shape, why)
        with self._lock:
            self._memory.get((space, key), {}).pop(shape, None)
            self.erase("records", (space, key, shape))

    def delete(self, *names: tuple[str, str, str]) -> None:
        """Forgets records, by (space, key, shape), in one transaction."""
        statement = "DELETE FROM records WHERE space = ? AND key = ? AND shape = ?"
        with self._lock:
            for space, key, shape in names:
                self._memory.get((space, key), {}).pop(shape, None)
            self.write(lambda c: c.executemany(statement, names))

    def erase(self, table: str, name: tuple[str, ...]) -> None:
        """Deletes the row of `table` with this key, which is damaged, and what else is there under it."""
        columns = TABLES[table].split(", ")
        found, met = (" AND ".join(f"{by}{column} = ?" for column in columns) for by in ("", "+"))

        def erase(connection: sqlite3.Connection) -> None:
            connection.execute(f"DELETE FROM {table} WHERE {found}", name)
            # In trees that are out of order are rows that one meets on going through (`+column` looks nothing up) and
            # does not find.
            if connection.execute(f"SELECT 1 FROM {table} WHERE {met}", name).fetchone():
                raise damage("a row is out of place")

        self.write(erase)

    def rows(self, space: str | None = None) -> Iterator[Row]:
        """Every record of the file as it lies there, its data unchecked."""
        where, args = ("WHERE space = ?", (space,)) if space else ("", ())
        one = "SELECT * FROM records WHERE space = ? AND key = ? AND shape = ?"
        with self._lock:
            keys: list[tuple[str, str, str]] = self._do(
                lambda c: named(c.execute(f"SELECT space, key, shape FROM records {where}", args).fetchall(), 3), []
            )
        for name in keys:
            with self._lock:
                found: list[tuple[Any, ...]] = self._do(lambda c: named(c.execute(one, name).fetchall(), 3, *name), [])  # noqa: B023
            yield from self.typed(found)

    # ------------------------------------------------------------ runs

    def count(self, source: str) -> None:
        """Counts where the answer to a goal came from: memory, memo, shipped or search.

        Answers from memory are written along with the next other one, or on closing: they must cost nothing.
        """
        if source not in _SOURCES or not self.writable:
            return
        with self._lock:
            self._counts[source] = self._counts.get(source, 0) + 1
            if source != "memory":
                self._write_counts()

    def _write_counts(self) -> None:
        counts, self._counts = self._counts, {}

        def add(connection: sqlite3.Connection) -> None:
            with transaction(connection):
                row = (self._run, time.time())
                new = connection.execute("INSERT OR IGNORE INTO runs (id, started) VALUES (?, ?)", row)
                if new.rowcount:
                    kept = "SELECT id FROM runs ORDER BY started DESC LIMIT ?"
                    connection.execute(f"DELETE FROM runs WHERE id NOT IN ({kept})", (RUNS_KEPT,))
                for source, count in counts.items():
                    connection.execute(f"UPDATE runs SET {source} = {source} + ? WHERE id = ?", (count, self._run))

        if counts and self.writable:
            self._do(add, None, writing=True)

    def runs(self) -> list[dict[str, float]]:
        """The last runs, newest first: started, and how many answers came from memory, memo, shipped and search."""
        names = ("started", *_SOURCES)
        with self._lock:
            rows: list[tuple[float, ...]] = self._do(
                lambda c: c.execute(f"SELECT {', '.join(names)} FROM runs ORDER BY started DESC").fetchall(), []
            )
        return [dict(zip(names, row, strict=True)) for row in rows if all(isinstance(x, (int, float)) for x in row)]

    # ------------------------------------------------------------ the file

    def close(self) -> None:
        """Writes what is left to write. The store can be used again: it opens the file anew."""
        with self._lock:
            self._write_counts()
            self._disconnect()

    def let_go(self) -> None:
        """Closes the file, which is opened anew when it is asked for; not in the middle of something."""
        if self._lock.acquire(False):
            try:
                if self._connection is not None and self._pid == os.getpid() and not self._working:
                    self._disconnect()
            finally:
                self._lock.release()

    def _disconnect(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
        self._connection, self._tried = None, False

    @property
    def size(self) -> int:
        """Bytes of the file, and of the log beside it, where what is not in the file yet is."""
        names = [self.path.with_name(self.path.name + end) for end in ("", "-wal")] if self.path else []
        return sum(path.stat().st_size for path in names if path.is_file())

    @property
    def is_readable(self) -> bool:
        """Whether the file is there and is a memo that can be read; why it cannot be has been reported."""
        return self.read(lambda c: bool(c.execute("SELECT count(*) FROM records").fetchone()), False)

    def read(self, work: Callable[[sqlite3.Connection], T], otherwise: T) -> T:
        """What `work` finds in the file, or `otherwise` where it cannot be read."""
        with self._lock:
            return self._do(work, otherwise)

    def write(self, work: Callable[[sqlite3.Connection], object]) -> bool:
        """Does `work` in a transaction; False where the file cannot be written."""

        def whole(connection: sqlite3.Connection) -> bool:
            with transaction(connection):
                work(connection)
            return True

        with self._lock:
            return self.writable and self._do(whole, False, writing=True)

    def _do(self, work: Callable[[sqlite3.Connection], T], otherwise: T, writing: bool = False) -> T:
        """The answer of `work`, or `otherwise` where the file does not allow it."""
        self._working += 1
        try:
            return self._attempt(work, otherwise, writing)
        finally:
            self._working -= 1

    def _attempt(self, work: Callable[[sqlite3.Connection], T], otherwise: T, writing: bool) -> T:
        for attempt in (1, 2):
            connection = self._open()
            if connection is None:
                return otherwise
            try:
                return work(connection)
            except ERRORS as error:
                if is_damage(error) and attempt == 1 and self.writable:
                    self._repair(connection, error)
                    continue
                self._warn("it cannot be written" if writing else "it cannot be read", error)
                if writing and not is_busy(error):
                    self.writable = False
                return otherwise
        return otherwise

    def _open(self) -> sqlite3.Connection | None:
        """The connection of this process; None where there is no usable file."""
        if self._pid != os.getpid():
            # SQLite connections do not survive a fork. (Libraries that fork do not say so before.)
            if self._connection is not None:
                _of_parents.append(self._connection)
            self._pid, self._connection, self._tried = os.getpid(), None, False
        if self._connection is None and not self._tried and self.path is not None:
            self._tried = True
            self._which = inode(self.path)
            self._connection = self._connect(self.path)
            self._which = self._which or inode(self.path)
        return self._connection

    def _connect(self, path: Path) -> sqlite3.Connection | None:
        if self.writable:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                return connect_writable(path)
            except ForeignFile as error:
                self._warn("it is left alone", error)
                self.writable = False
                return None
            except ERRORS as error:
                if is_damage(error):
                    return self._replace(path, error)
                self._warn("it is only read", error)
            except OSError as error:
                self._warn("it is only read", error)
            self.writable = False
        return self._connect_read_only(path)

    def _connect_read_only(self, path: Path) -> sqlite3.Connection | None:
        if not path.is_file() or not path.stat().st_size:
            return None
        # An immutable file is read without locks and without the files that go with a write-ahead log: right for
        # package data and for folders that cannot be written, as long as nobody else is writing there.
        live = path.with_name(path.name + "-wal").exists() or is_open(path)
        try:
            try:
                return connect_to_read(path, "" if live else "&immutable=1")
            except sqlite3.OperationalError as error:
                if not live:
                    raise
                # The index of the log cannot be made here.
                connection = connect_to_read(path, "&immutable=1")
                self._warn("what is in its log cannot be read", error)
                return connection
        except (*ERRORS, ForeignFile) as error:
            self._warn("it cannot be read", error)
            return None

    def _replace(self, path: Path, error: Exception) -> sqlite3.Connection | None:
        """Begins anew where a memo is damaged: it is moved aside, under a lock so that one process does it. What is not
        marked as a memo is left alone."""
        try:
            if not is_memo(path):
                raise ForeignFile(f"it is no memo ({error})")
        except FileNotFoundError:
            pass  # Another process has moved it.
        except (OSError, ForeignFile) as why:
            self._warn("it is left alone", why)
            self.writable = False
            return None
        self.dropped += 1
        self._warn("it is damaged and begun anew", error, "what can be read of it is kept")
        try:
            move_aside(path, self._which)
            self._which = 0
            return connect_writable(path)
        except (OSError, *ERRORS, ForeignFile) as again:
            self._warn("it cannot be written", again)
            self.writable = False
            return None

    def _repair(self, connection: sqlite3.Connection, error: Exception) -> None:
        """Keeps what can still be read of a damaged file, in a new one."""
        assert self.path is not None
        kept = salvage(connection)
        with suppress(sqlite3.Error):
            connection.close()
        self._connection = None
        self._tried = True
        self._connection = self._replace(self.path, error)
        if self._connection is not None:
            with suppress(sqlite3.Error), transaction(self._connection) as c:
                c.execute(WINNERS_SCHEMA)
                c.execute(ANSWERS_SCHEMA)
                for table, rows in kept.items():
                    for row in rows:
                        with suppress(sqlite3.Error):
                            c.execute(f"INSERT OR REPLACE INTO {table} VALUES ({', '.join('?' * len(row))})", row)
            self._which = inode(self.path)

    def _warn(self, what: str, error: Exception, then: str = "answers are kept in memory") -> None:
        """Says once per process and kind what is wrong."""
        if what not in self._warned:
            self._warned.add(what)
            log.warning("memo %s: %s: %s; %s", self.path, what, error, then)


def _contains(shape: str, other: str) -> bool:
    """True where a record of `shape` answers everything that one of `other` does."""
    kind, _, sizes = shape.partition(" ")
    kind2, _, sizes2 = other.partition(" ")
    if kind != "scale" or kind2 != "scale":
        return shape == other
    return all(int(a) >= int(b) for a, b in zip(sizes.split("x"), sizes2.split("x"), strict=True))
