"""What the memo's tests share: tiny solved tables and stores."""

from __future__ import annotations

import os
import warnings
from functools import lru_cache
from pathlib import Path

from small_target import SMALL

from morello_mlir.actions import key_of
from morello_mlir.memo.memo import Memo
from morello_mlir.memo.record import Record, encode
from morello_mlir.memo.store import Store
from morello_mlir.memo.table import records_of
from morello_mlir.memo.version import space_of
from morello_mlir.search.solve import Search
from morello_mlir.search.tables import Tables
from morello_mlir.spec import matmul_spec
from morello_mlir.targets import Target

SPACE = space_of(SMALL)
#: Another process opens a file and closes it.
USE = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('SELECT * FROM runs').fetchall(); c.close()"


@lru_cache(maxsize=8)
def solved(m: int, k: int, n: int) -> Tables:
    """All tables of one tiny goal on the small machine."""
    tables = Tables({"m": m, "k": k, "n": n}, SMALL.limits, SMALL)
    tables.table(key_of(matmul_spec(m, k, n, accumulate=True), SMALL))
    return tables


@lru_cache(maxsize=8)
def records(m: int, k: int, n: int) -> list[Record]:
    """The records of these tables."""
    tables = solved(m, k, n)
    return [r for key in list(tables.tables) if "VRF" not in key.memories for r in records_of(tables, key)]


def search_with(path: Path | None, shipped: Path | None = None, target: Target = SMALL) -> Search:
    """A fresh search, as another process would have it; what it solves is on disk when it has an answer."""
    user = Store(path) if path else None
    other = Store(shipped, writable=False) if shipped else None
    return Search(target, Memo(target, user, other))


def put_all(store: Store, batch) -> None:
    """Each record in a transaction of its own."""
    for record in batch:
        store.put(SPACE, "small", [record])


def same(store: Store, batch) -> bool:
    """True where `store` holds exactly what was put: every record, byte by byte."""
    return all([encode(r) for r in store.get(SPACE, x.key) if r.shape == x.shape] == [encode(x)] for x in batch)


def in_child(work) -> int:
    """Forks; the child runs `work` and ends without cleaning up. Returns its process id."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    return child
