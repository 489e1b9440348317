"""What the memo asks of SQLite beside its own tables: connections, what an error means, files packed or moved aside."""

from __future__ import annotations

import sqlite3
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ..locks import lock

#: Marks a file as ours (`PRAGMA application_id`): "MORM".
APPLICATION_ID = 0x4D4F524D
#: What SQLite files begin with, and where the application id is.
_MAGIC, _ID_AT = b"SQLite format 3\0", 68
#: How long a process waits for another's transaction.
BUSY_SECONDS = 10.0


class _Connection(sqlite3.Connection):
    """A connection that knows its file."""

    inode = 0

    def close(self) -> None:
        self.inode = 0
        super().close()


#: Of this process. Whoever closes any descriptor of a file ends the locks that the process has there: others would take
#: the file for one that nobody uses, and delete the log of a connection that writes it.
_connections: weakref.WeakSet[_Connection] = weakref.WeakSet()
#: Held while these are listed or added to: threads open files of their own.
_listing = lock()


def connect(path: Path, how: str = "") -> sqlite3.Connection:
    """A connection that begins no transactions, for any thread. Text that is none comes as bytes. how: options, as
    SQLite writes them behind `?`. Raises sqlite3.Error."""
    connection = sqlite3.connect(
        f"file:{quote(str(path))}{how}",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        factory=_Connection,
    )
    connection.text_factory = _text
    connection.inode = inode(path)
    with _listing:
        _connections.add(connection)
    return connection


def is_open(path: Path) -> bool:
    """Whether this process has a connection to the file at `path`, which then is nobody's to open and close beside
    it."""
    which = inode(path)
    with _listing:
        return which != 0 and any(connection.inode == which for connection in _connections)


def _text(raw: bytes) -> str | bytes:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


#: What SQLite says of files that are damaged: of pages, of the header, and, since all that we ask for is in our schema
#: and every type of it is ours, of a schema that is another. (Codes of errors are for Python 3.11 and later.)
_DAMAGE = (
    "malformed",
    "not a database",
    "unsupported file format",
    "no such table",
    "no such column",
    "has no column",
    "values were supplied",
    "may not be modified",
    "logic error",
    "constraint failed",
    "mismatch",
    "too big",
)
#: What a damaged file makes Python's module raise. Messages of SQLite may quote what is no text.
ERRORS = (sqlite3.DatabaseError, UnicodeDecodeError)


def is_damage(error: Exception) -> bool:
    """Whether the error says that the file is damaged, or no database."""
    return isinstance(error, UnicodeDecodeError) or any(said in str(error) for said in _DAMAGE)


def damage(what: str) -> sqlite3.DatabaseError:
    """An error that `is_damage` knows."""
    return sqlite3.DatabaseError(f"database disk image is malformed: {what}")


def is_something_else(path: Path) -> bool:
    """Whether there is a file that is no SQLite database. (SQLite takes the shortest ones for empty.) Folders and
    devices are none; of a pipe, which is none either, nothing may ever come."""
    if path.exists() and not path.is_file():
        return True
    if is_open(path):
        return False
    try:
        with path.open("rb") as file:
            head = file.read(len(_MAGIC))
    except FileNotFoundError:
        return False
    return head not in (b"", _MAGIC)


def is_memo(path: Path) -> bool:
    """Whether a file, sound or not, is marked as a memo (what is open was, when it was opened). Raises OSError."""
    if is_open(path):
        return True
    with path.open("rb") as file:
        head = file.read(100)
    return head.startswith(_MAGIC) and head[_ID_AT:].startswith(APPLICATION_ID.to_bytes(4, "big"))


def check_sound(connection: sqlite3.Connection) -> None:
    """Raises sqlite3.DatabaseError, damage, where the trees of the file are not in order, or a table has one name in
    the list of tables and another in its own declaration."""
    named_otherwise = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND instr(sql, 'TABLE ' || name || ' ') = 0"
    if connection.execute(named_otherwise).fetchone():
        raise damage("the name of a table is another")
    (said,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if said != "ok":
        raise damage(str(said).splitlines()[-1])


def named(rows: list[tuple[Any, ...]], names: int, *asked: str) -> list[tuple[Any, ...]]:
    """`rows`, of which the first `names` columns are the key. Raises sqlite3.DatabaseError, damage, where a key is no
    text (nobody could delete such a row by it), or does not begin with what was asked for (a tree that is out of order
    is gone through in vain, and the row at the end is another)."""
    for row in rows:
        if row[: len(asked)] != asked or not all(isinstance(value, str) for value in row[:names]):
            raise damage("a key is another")
    return rows


def is_busy(error: Exception) -> bool:
    """Whether another process holds the file."""
    return "is locked" in str(error)


def vacuum(path: Path, *, alone: bool = False) -> None:
    """Gives unused pages back. alone: without the runs and without a write-ahead log, for a file that is only read."""
    connection = connect(path)
    try:
        if alone:
            connection.execute("DELETE FROM runs")
            connection.execute("PRAGMA journal_mode = DELETE")
            # Records are small: pages of a KiB hold one, and are half empty.
            connection.execute("PRAGMA page_size = 512")
        connection.execute("VACUUM")
    finally:
        connection.close()


def inode(path: Path) -> int:
    """Which file is at `path`; 0 where there is none."""
    try:
        return path.stat().st_ino
    except OSError:
        return 0


def move_aside(path: Path, which: int) -> None:
    """Renames a damaged file, of inode `which`, to `NAME.damaged` and deletes what goes with it, unless another process
    has just done so."""
    import fcntl

    with path.with_name(path.name + ".lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if inode(path) == which:
            for suffix in ("-wal", "-shm"):
                path.with_name(path.name + suffix).unlink(missing_ok=True)
            with suppress(FileNotFoundError):
                path.rename(path.with_name(path.name + ".damaged"))
