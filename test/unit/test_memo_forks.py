"""The store over forks: what is said to be written is there, whoever of a family writes, ends, or is killed."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from memo_support import SPACE, USE, in_child, put_all, records, same

from morello_mlir.memo.store import Store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "memo.sqlite"


def test_a_store_survives_a_fork(path):
    store, batch = Store(path), records(8, 8, 16)
    put_all(store, batch[:3])
    child = in_child(lambda: put_all(store, batch[3:]))
    assert os.waitpid(child, 0)[1] == 0
    assert same(store, batch)


@pytest.mark.parametrize("own", [True, False], ids=["a store of its own", "its parent's"])
def test_a_child_has_locks_of_its_own(path, own):
    """Its parent closes the file, and another process takes itself for the last user: it deletes no log."""
    batch = records(8, 8, 16)
    parent = Store(path)
    parent.put(SPACE, "small", batch[:3])
    (waiting, go), (told, tell) = os.pipe(), os.pipe()

    def work() -> None:
        os.close(go)
        store = Store(path) if own else parent
        store.put(SPACE, "small", batch[3:5])
        os.write(tell, b"x")
        os.read(waiting, 1)
        store.put(SPACE, "small", batch[5:])

    child = in_child(work)
    os.close(tell)
    os.read(told, 1)
    parent.close()
    subprocess.run([sys.executable, "-c", USE, path], check=True, capture_output=True)
    kept = path.with_name(path.name + "-wal").exists()
    for end in (go, waiting, told):
        os.close(end)
    assert os.waitpid(child, 0)[1] == 0
    assert kept and same(Store(path), batch)


def test_families_write_while_others_come_and_go(path):
    """A hundred and fifty forks, all of which write, many of which are killed, and another process that opens the file
    and closes it: all that was said to be written is there."""
    batch, rng = records(8, 8, 16), random.Random(0)
    store = Store(path)
    put_all(store, batch[:1])
    loop = f"import sys\nwhile True:\n    {USE.replace('import sqlite3, sys', 'import sqlite3')}"
    other = subprocess.Popen([sys.executable, "-c", loop, path])
    said: list[bytes] = []
    reading, writing = os.pipe()

    def write(who: str) -> None:
        for i in (0, 1):
            store.put(f"{who}/{i}", "small", batch[:3])
            os.write(writing, f"{who}/{i}\n".encode())

    def family(who: str) -> None:
        children = [in_child(partial(write, f"{who} child {i}")) for i in (0, 1)]
        write(who)
        for child in children:
            os.waitpid(child, 0)

    try:
        for i in range(50):
            write(f"parent {i}")
            child = in_child(partial(family, f"family {i}"))
            store.close()
            if i % 2:
                time.sleep(rng.random() * 0.05)
                os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            said.append(os.read(reading, 1 << 16))
    finally:
        other.kill()
        other.wait()
    os.close(writing)
    while more := os.read(reading, 1 << 16):
        said.append(more)
    os.close(reading)
    store.close()
    kept, spaces = Store(path), b"".join(said).decode().splitlines()
    assert all(kept.get(space, x.key) for space in spaces for x in batch[:3])
    assert len(spaces) > 200 and kept.dropped == 0
    assert sqlite3.connect(path).execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_fork_in_the_middle_of_something_closes_nothing(path):
    """As a handler of signals may do it."""
    store, batch = Store(path), records(8, 8, 16)
    put_all(store, batch)

    def fork(connection: sqlite3.Connection) -> object:
        os.waitpid(in_child(lambda: None), 0)
        return connection.execute("SELECT count(*) FROM records").fetchone()

    assert store.read(fork, None) == (len(batch),)
    assert store.write(fork) and store._connection is not None
    os.waitpid(in_child(lambda: None), 0)
    assert store._connection is None and same(store, batch)


def test_a_relative_path_stays_the_same_file(tmp_path, monkeypatch):
    """After a fork it is opened again, and daemons go to other folders."""
    monkeypatch.chdir(tmp_path)
    store, batch = Store(Path("memo.sqlite")), records(8, 8, 16)
    put_all(store, batch[:3])
    monkeypatch.chdir("/")
    os.waitpid(in_child(lambda: put_all(store, batch[3:])), 0)
    assert same(store, batch) and same(Store(tmp_path / "memo.sqlite"), batch)
