"""What the memo asks of SQLite beside its own tables: connections, what an error means, files packed or moved aside."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

#: How long a process waits for another's transaction.
BUSY_SECONDS = 10.0


def connect(uri: str) -> sqlite3.Connection:
    """A connection that begins no transactions, for any thread. `uri`: as SQLite writes it. Raises sqlite3.Error."""
    return sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)


def is_damage(error: sqlite3.DatabaseError) -> bool:
    """Whether the error says that the file is damaged, or no database."""
    return getattr(error, "sqlite_errorname", "").startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB"))


def check_sound(connection: sqlite3.Connection) -> None:
    """Raises sqlite3.DatabaseError, an error that `is_damage` knows, where the trees of the file are not in order."""
    (said,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if said != "ok":
        error = sqlite3.DatabaseError(f"database disk image is malformed: {said.splitlines()[-1]}")
        error.sqlite_errorname = "SQLITE_CORRUPT"
        raise error


def is_busy(error: sqlite3.DatabaseError) -> bool:
    """Whether another process holds the file."""
    return getattr(error, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


def vacuum(path: Path, *, alone: bool = False) -> None:
    """Gives unused pages back. alone: without the runs and without a write-ahead log, for a file that is only read."""
    connection = connect(f"file:{quote(str(path))}")
    try:
        if alone:
            connection.execute("DELETE FROM runs")
            connection.execute("PRAGMA journal_mode = DELETE")
            # Records are small: pages of a KiB hold one, and are half empty.
            connection.execute("PRAGMA page_size = 512")
        connection.execute("VACUUM")
    finally:
        connection.close()


def move_aside(path: Path) -> None:
    """Renames a damaged file and what goes with it to `NAME.damaged`, unless another process has just done so."""
    import fcntl

    with path.with_name(path.name + ".lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            probe = connect(f"file:{quote(str(path))}?mode=ro")
            try:
                sound = probe.execute("PRAGMA quick_check(1)").fetchone() == ("ok",)
            finally:
                probe.close()
        except sqlite3.Error:
            sound = False
        if not sound:
            for suffix in ("-wal", "-shm"):
                path.with_name(path.name + suffix).unlink(missing_ok=True)
            with suppress(FileNotFoundError):
                path.rename(path.with_name(path.name + ".damaged"))
