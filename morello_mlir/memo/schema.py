"""The tables of a memo file: opening a file that has them, and what can be read of a damaged one."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from pathlib import Path

from .database import APPLICATION_ID, ERRORS, connect, is_something_else
from .version import FORMAT, READABLE

_SCHEMA = """
CREATE TABLE IF NOT EXISTS records (
    space TEXT NOT NULL, key TEXT NOT NULL, shape TEXT NOT NULL,
    target TEXT NOT NULL, boxes INTEGER NOT NULL, specs INTEGER NOT NULL, data BLOB NOT NULL,
    PRIMARY KEY (space, key, shape)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS runs (
    id TEXT PRIMARY KEY, started REAL NOT NULL, memory INTEGER NOT NULL DEFAULT 0, memo INTEGER NOT NULL DEFAULT 0,
    shipped INTEGER NOT NULL DEFAULT 0, search INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
"""

#: The table of `winners`, which files get with their first winner.
WINNERS_SCHEMA = """
CREATE TABLE IF NOT EXISTS winners (
    space TEXT NOT NULL, host TEXT NOT NULL, spec TEXT NOT NULL, target TEXT NOT NULL, schedule TEXT NOT NULL,
    seconds REAL NOT NULL, model_seconds REAL NOT NULL, considered INTEGER NOT NULL, checksum BLOB NOT NULL,
    PRIMARY KEY (space, host, spec)
) WITHOUT ROWID
"""

#: The table of `answers`, which files get with their first answer.
ANSWERS_SCHEMA = """
CREATE TABLE IF NOT EXISTS answers (
    space TEXT NOT NULL, spec TEXT NOT NULL, schedule TEXT NOT NULL, cost INTEGER NOT NULL, checksum BLOB NOT NULL,
    PRIMARY KEY (space, spec)
) WITHOUT ROWID
"""

#: Tables and their primary keys.
TABLES = {
    "records": "space, key, shape",
    "runs": "id",
    "winners": "space, host, spec",
    "answers": "space, spec",
}


class ForeignFile(Exception):
    """A file that is not a memo, or one of another format."""


class transaction:
    """BEGIN IMMEDIATE, so that two writers never deadlock by upgrading; COMMIT or ROLLBACK."""

    def __init__(self, connection: sqlite3.Connection):
        self.connection = connection

    def __enter__(self) -> sqlite3.Connection:
        self.connection.execute("BEGIN IMMEDIATE")
        return self.connection

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        if kind is None:
            self.connection.execute("COMMIT")
        else:
            with suppress(sqlite3.Error):
                self.connection.execute("ROLLBACK")


def connect_writable(path: Path) -> sqlite3.Connection:
    """Raises sqlite3.Error, OSError, ForeignFile."""
    if is_something_else(path):
        raise ForeignFile("it is no memo")
    connection = connect(path)
    try:
        if not _check_format(connection):
            connection.execute("PRAGMA journal_mode = WAL")
            with transaction(connection):
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {FORMAT}")
                for statement in _SCHEMA.split(";"):
                    connection.execute(statement)
            # So that the file itself says what it is, whatever happens to the log.
            connection.execute("PRAGMA wal_checkpoint")
        elif connection.execute("PRAGMA user_version").fetchone() != (FORMAT,):
            connection.execute(f"PRAGMA user_version = {FORMAT}")
        # With a write-ahead log this loses nothing to a killed process; a power cut may cost the last transactions.
        connection.execute("PRAGMA synchronous = NORMAL")
        return connection
    except BaseException:
        connection.close()
        raise


def connect_to_read(path: Path, how: str) -> sqlite3.Connection:
    """Raises sqlite3.Error, UnicodeDecodeError, ForeignFile."""
    connection = connect(path, f"?mode=ro{how}")
    try:
        if not _check_format(connection):
            raise ForeignFile("there is nothing in it")
        return connection
    except BaseException:
        connection.close()
        raise


def _check_format(connection: sqlite3.Connection) -> bool:
    """True for a memo that we can read, False for an empty file that is not marked as another program's. Raises
    ForeignFile for anything else."""
    (owner,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if owner == APPLICATION_ID and version in READABLE:
        return True
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if tables == 0 and (owner == APPLICATION_ID or (owner, version) == (0, 0)):
        return False
    if owner == APPLICATION_ID:
        raise ForeignFile(f"it is a memo of format {version}, this is {FORMAT}")
    raise ForeignFile("it is a database of something else")


def salvage(connection: sqlite3.Connection) -> dict[str, list[tuple[object, ...]]]:
    """The rows of a damaged file that can still be read, from both ends of each table."""
    out = {}
    for table, order in TABLES.items():
        rows: dict[tuple[object, ...], None] = {}
        for way in ("ASC", "DESC"):
            columns = ", ".join(f"{c} {way}" for c in order.split(", "))
            with suppress(*ERRORS):
                for row in connection.execute(f"SELECT * FROM {table} ORDER BY {columns}"):
                    if all(isinstance(value, str) for value in row[: len(order.split(", "))]):
                        rows[row] = None
        out[table] = list(rows)
    return out
