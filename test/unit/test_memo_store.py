"""The store outlives everything: kills, other processes, damage, files that are no memo, full and read-only disks."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
import weakref
from functools import lru_cache, partial
from pathlib import Path

import pytest
from memo_support import SMALL, USE, in_child, put_all, records, same, search_with
from thread_support import at_once

from morello_mlir.memo import database, schema
from morello_mlir.memo import store as store_module
from morello_mlir.memo.answers import Answer, Answers
from morello_mlir.memo.database import is_memo
from morello_mlir.memo.manage import merge, verify
from morello_mlir.memo.record import encode
from morello_mlir.memo.store import Store
from morello_mlir.memo.version import FORMAT, space_of
from morello_mlir.spec import matmul_spec

SPACE = space_of(SMALL)


@lru_cache(maxsize=1)
def plain_cost() -> int:
    return search_with(None).solve(matmul_spec(8, 8, 16)).cost


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "memo.sqlite"


def test_records_come_back_in_another_process(path):
    batch = records(8, 8, 16)
    put_all(Store(path), batch)
    assert same(Store(path), batch)
    assert Store(path).get("other/1", batch[0].key) == []
    assert Store(path).get(SPACE, "another key") == []


def test_larger_records_replace_smaller_ones(path):
    store = Store(path)
    small, large = ({r.key: r for r in records(*goal)} for goal in ((8, 8, 16), (16, 8, 16)))
    key = next(k for k in small if k in large)
    store.put(SPACE, "small", [small[key]])
    store.put(SPACE, "small", [large[key]])
    assert [r.shape for r in store.get(SPACE, key)] == ["scale 16x8x16"]
    store.put(SPACE, "small", [small[key]])
    assert [r.shape for r in store.get(SPACE, key)] == ["scale 16x8x16"]


def test_another_store_of_the_process_ends_no_locks(path):
    """Another process that closes the file, and takes itself for its last user, deletes the log."""
    batch = records(8, 8, 16)
    first = Store(path)
    first.put(SPACE, "small", batch[:3])
    for store in (Store(path), Store(path, writable=False)):
        assert store.get(SPACE, batch[0].key)
        store.close()

    subprocess.run([sys.executable, "-c", USE, path], check=True, capture_output=True)
    assert path.with_name(path.name + "-wal").exists()
    first.put(SPACE, "small", batch[3:])
    assert same(Store(path), batch)


def test_two_writers_and_a_merge(path, tmp_path):
    """All that any of them has said was written is there."""
    batch = records(8, 8, 16)
    source = Store(tmp_path / "source")
    source.put("other/1", "small", batch)

    def write(who: str) -> None:
        stores = [Store(path) for _ in range(0, len(batch), 5)]
        for i, store in zip(range(0, len(batch), 5), stores, strict=True):
            store.put(f"{who}/1", "small", batch[i : i + 5])
            Answers(store).put(Answer(f"{who}/1", f"goal {i}", "a schedule", i))
            if i % 2:
                store.close()

    children = [in_child(partial(write, who)) for who in "ab"]
    children.append(in_child(lambda: merge(Store(path), Store(source.path, writable=False))))
    for child in children:
        os.waitpid(child, 0)
    store = Store(path)
    for who in "ab":
        assert {r.key for r in store.rows(f"{who}/1")} == {r.key for r in batch}
        assert all(Answers(store).get(f"{who}/1", f"goal {i}") for i in range(0, len(batch), 5))
    assert {r.key for r in store.rows("other/1")} == {r.key for r in batch}
    assert verify(store, 0).damaged == 0 and not path.with_name(path.name + ".damaged").exists()


def test_nothing_is_lost_to_kills(path):
    """Two hundred writers, each killed at some moment: what they said was written is there, and all of it is right."""
    batch, rng = records(8, 8, 16), random.Random(0)
    Store(path).count("search")
    said: set[int] = set()
    for _ in range(200):
        reading, writing = os.pipe()

        def work(writing=writing):
            store = Store(path)
            order = list(range(len(batch)))
            random.shuffle(order)
            for i in order:
                store.put(SPACE, "small", [batch[i]])
                os.write(writing, bytes([i]))

        child = in_child(work)
        os.close(writing)
        time.sleep(rng.random() * 0.03)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        said.update(os.read(reading, 1 << 16))
        os.close(reading)
    assert len(batch) < 256 and said
    store = Store(path)
    for i, record in enumerate(batch):
        found = store.get(SPACE, record.key)
        assert all(encode(r) in [encode(x) for x in batch] for r in found)
        assert i not in said or encode(record) in [encode(r) for r in found]
    assert store.dropped == 0
    assert sqlite3.connect(path).execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_killed_search_resumes_where_it_stopped(path):
    spec = matmul_spec(13, 7, 24)
    child = in_child(lambda: search_with(path).solve(spec))
    while not list(Store(path, writable=False).rows()):
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    kept = [(row.key, row.shape) for row in Store(path).rows()]
    assert kept
    search = search_with(path)
    loaded = []
    original = search.memo.load
    search.memo.load = lambda t, k: [b := original(t, k), loaded.append(b is not None)][0]
    assert search.solve(spec).schedule == search_with(None).solve(spec).schedule
    # Below a table that is there nothing is asked for, so that not all need to be read.
    assert any(loaded) and search_with(path).solve(spec).source == "memo"


def test_several_processes_write_at_once(path):
    batch = records(13, 7, 24)
    children = [in_child(lambda i=i: put_all(Store(path), batch[i::4] + batch)) for i in range(4)]
    assert [os.waitpid(c, 0)[1] for c in children] == [0] * 4
    assert same(Store(path), batch)


def test_threads_share_a_store(path):
    store, batch = Store(path), records(8, 8, 16)
    at_once([partial(put_all, store, batch[i::3]) for i in range(3)])
    assert same(store, batch)


# ---------------------------------------------------------------- damage


def test_a_damaged_record_is_dropped_and_reported(path, caplog):
    batch = records(8, 8, 16)
    put_all(Store(path), batch)
    with sqlite3.connect(path) as c:
        c.execute("UPDATE records SET data = zeroblob(length(data)) WHERE key = ?", (batch[0].key,))
    store = Store(path)
    assert store.get(SPACE, batch[0].key) == [] and store.dropped == 1
    assert "dropped the record" in caplog.text and "checksum" in caplog.text
    assert same(store, [b for b in batch if b.key != batch[0].key])
    store.put(SPACE, "small", [batch[0]])
    assert same(Store(path), batch)


def test_a_memo_that_cannot_be_read_is_begun_anew(path, caplog):
    batch = records(8, 8, 16)
    store = Store(path)
    put_all(store, batch)
    store.close()
    content = path.read_bytes()[:100] + b"no pages at all. " * 600
    path.write_bytes(content)
    put_all(Store(path), batch)
    assert same(Store(path), batch)
    assert "begun anew" in caplog.text
    assert path.with_name("memo.sqlite.damaged").read_bytes() == content


def test_a_new_file_says_at_once_what_it_is(path):
    store = Store(path)
    put_all(store, records(8, 8, 16)[:1])
    assert is_memo(path)


@pytest.mark.parametrize(
    "content", [b"", b"not a database at all. " * 300, b"SQLite format 3\0" * 512, b"x", b"SQLite format 3\0"]
)
def test_a_file_that_is_no_memo_is_left_alone(path, content, caplog):
    path.parent.mkdir()
    path.write_bytes(content)
    store, batch = Store(path), records(8, 8, 16)
    put_all(store, batch)
    assert same(store, batch)
    if content:
        assert path.read_bytes() == content
        assert [f.name for f in path.parent.iterdir()] == [path.name]
        assert len(caplog.records) == 1 and "it is left alone: it is no memo" in caplog.text
    else:
        assert same(Store(path), batch)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_left_alone(path, make, caplog):
    """A pipe, too, of which nothing may ever come."""
    path.parent.mkdir()
    make(path)
    store, batch = Store(path), records(8, 8, 16)
    put_all(store, batch)
    assert same(store, batch)
    assert [f.name for f in path.parent.iterdir()] == [path.name]
    assert len(caplog.records) == 1 and "it is left alone: it is no memo" in caplog.text


def test_a_damaged_database_of_something_else_is_left_alone(path, caplog):
    path.parent.mkdir()
    with sqlite3.connect(path) as c:
        c.execute("CREATE TABLE songs (name TEXT)")
        c.executemany("INSERT INTO songs VALUES (?)", [(f"song {i}" * 50,) for i in range(100)])
    content = path.read_bytes()[:200] + bytes(20000)
    path.write_bytes(content)
    put_all(Store(path), records(8, 8, 16))
    assert path.read_bytes() == content
    assert "it is left alone" in caplog.text and not path.with_name("memo.sqlite.damaged").exists()


@pytest.mark.parametrize("seed", range(9))
def test_damaged_pages_are_never_believed(path, seed, caplog):
    """Bytes overwritten anywhere in the file: whatever is answered is right, and the file is of use again."""
    batch, rng = records(8, 8, 16), random.Random(seed)
    store = Store(path)
    put_all(store, batch)
    store.close()
    data = bytearray(path.read_bytes())
    for _ in range(3):
        at = rng.randrange(0 if seed % 3 == 0 else 100, len(data) - 600)
        data[at : at + 600] = rng.randbytes(600)
    path.write_bytes(data)
    store = Store(path)
    for record in batch:
        for found in store.get(SPACE, record.key):
            assert encode(found) in [encode(b) for b in batch]
    put_all(store, batch)
    assert search_with(path).solve(matmul_spec(8, 8, 16)).cost == plain_cost()
    assert same(Store(path), batch) or "in memory" in caplog.text


def test_an_older_format_is_read_and_becomes_this_one(path):
    batch = records(8, 8, 16)
    put_all(Store(path), batch)
    with sqlite3.connect(path) as c:
        c.execute("PRAGMA user_version = 1")
    assert same(Store(path, writable=False), batch) and same(Store(path), batch)
    with sqlite3.connect(path) as c:
        assert c.execute("PRAGMA user_version").fetchone() == (FORMAT,)


def test_other_formats_and_databases_are_left_alone(path, caplog):
    put_all(Store(path), records(8, 8, 16))
    with sqlite3.connect(path) as c:
        c.execute(f"PRAGMA user_version = {FORMAT + 1}")
    before = path.read_bytes()
    store, batch = Store(path), records(8, 8, 16)
    assert store.get(SPACE, batch[0].key) == []
    put_all(store, batch)
    assert same(store, batch), "answers are kept in memory"
    store.close()
    assert path.read_bytes() == before and f"format {FORMAT + 1}, this is {FORMAT}" in caplog.text
    other = path.with_name("music.sqlite")
    with sqlite3.connect(other) as c:
        c.execute("CREATE TABLE songs (name TEXT)")
    before = other.read_bytes()
    put_all(Store(other), batch)
    assert other.read_bytes() == before and "something else" in caplog.text


@pytest.mark.parametrize("mark", ["application_id", "user_version"])
def test_what_others_marked_is_left_alone_also_while_it_has_no_tables(path, caplog, mark):
    path.parent.mkdir(parents=True, exist_ok=True)
    with sqlite3.connect(path) as c:
        c.execute(f"PRAGMA {mark} = 77")
    before, batch = path.read_bytes(), records(8, 8, 16)
    store = Store(path)
    put_all(store, batch)
    assert same(store, batch), "answers are kept in memory"
    store.close()
    assert path.read_bytes() == before and "something else" in caplog.text


# ---------------------------------------------------------------- disks


def test_a_full_disk_is_one_warning(path, caplog):
    store, batch = Store(path), records(13, 7, 24)
    put_all(store, batch[:2])
    store._open().execute("PRAGMA max_page_count = 5")
    put_all(store, batch)
    assert same(store, batch), "answers are kept in memory"
    assert len(caplog.records) == 1 and "full" in caplog.text
    assert same(Store(path), batch[:2])


def test_files_that_may_not_grow(path):
    """The system refuses to write, at whatever page it happens: what was committed is there."""
    resource = pytest.importorskip("resource")
    batch = records(13, 7, 24)
    put_all(Store(path), batch[:2])

    def work() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (48 << 10, 48 << 10))
        store = Store(path)
        put_all(store, batch)
        os._exit(0 if same(store, batch) and not store.writable else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(in_child(work), 0)[1]) == 0, "answers are kept in memory"
    kept = Store(path)
    assert same(kept, batch[:2]) and len(list(kept.rows())) < len(batch)
    assert sqlite3.connect(path).execute("PRAGMA integrity_check").fetchone() == ("ok",)
    put_all(kept, batch)
    assert same(Store(path), batch), "with room again it goes on"


@pytest.mark.parametrize("where", ["/proc/morello/memo.sqlite", "/dev/null/memo.sqlite"])
def test_a_place_that_cannot_be_written_is_one_warning(where, caplog):
    store, batch = Store(Path(where)), records(8, 8, 16)
    put_all(store, batch)
    store.count("search")
    assert same(store, batch) and len(caplog.records) == 1
    assert store.runs() == [] and list(store.rows()) == []


def test_a_read_only_file_is_read(path):
    batch = records(8, 8, 16)
    put_all(Store(path), batch)
    store = Store(path, writable=False)
    put_all(store, records(13, 7, 24))
    store.count("search")
    assert same(store, [*batch, *records(13, 7, 24)])
    assert len(list(Store(path).rows())) == len(batch) and Store(path).runs() == []


def _killed_while_writing(path: Path, batch) -> None:
    def work() -> None:
        put_all(Store(path), batch)
        os.kill(os.getpid(), signal.SIGKILL)

    os.waitpid(in_child(work), 0)


@pytest.mark.parametrize("index", [True, False], ids=["with its index", "without"])
def test_a_log_where_nothing_can_be_written(path, index, monkeypatch, caplog):
    """A process was killed, and the folder cannot be written any more: with the log's index (`-shm`) all is read; a
    log without one nobody can read."""
    batch = records(8, 8, 16)
    _killed_while_writing(path, batch)
    log = path.with_name("memo.sqlite-wal")
    assert log.stat().st_size > path.stat().st_size
    if not index:
        path.with_name("memo.sqlite-shm").unlink()
        real = schema.connect
        nowhere = Path("/nowhere/x")
        monkeypatch.setattr(schema, "connect", lambda path, how="": real(path if "immutable" in how else nowhere, how))
    store = Store(path, writable=False)
    assert [len(store.get(SPACE, b.key)) for b in batch] == [int(index)] * len(batch)
    assert len(caplog.records) == 1 - index


def test_an_empty_file_on_a_full_disk_is_one_warning(path, monkeypatch, caplog):
    def full(path: Path) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    path.parent.mkdir()
    path.touch()
    monkeypatch.setattr(store_module, "connect_writable", full)
    store, batch = Store(path), records(8, 8, 16)
    put_all(store, batch)
    assert same(store, batch) and len(caplog.records) == 1 and "full" in caplog.text


def test_threads_that_open_files_while_others_look_for_one(tmp_path, monkeypatch):
    """A set that grows while it is listed is an error."""
    monkeypatch.setattr(database, "_connections", weakref.WeakSet())
    kept, before = [database.connect(tmp_path / "0")], sys.getswitchinterval()

    def opens() -> None:
        kept.extend(database.connect(tmp_path / str(i)) for i in range(1, 300))

    def looks() -> None:
        for _ in range(100_000):
            assert database.is_open(tmp_path / "0")
            if len(kept) == 300:
                return

    sys.setswitchinterval(1e-6)
    try:
        at_once([opens, looks, looks])
    finally:
        sys.setswitchinterval(before)
    for connection in kept:
        connection.close()
    assert not any(database.is_open(tmp_path / str(i)) for i in range(300))


def test_runs_are_counted(path):
    store = Store(path)
    for source in ("search", "memory", "memory", "memo", "nonsense"):
        store.count(source)
    Store(path).count("shipped")
    newest, oldest = Store(path).runs()
    assert (newest["shipped"], oldest["search"], oldest["memory"], oldest["memo"]) == (1, 1, 2, 1)
