"""Damage anywhere in a memo file: never believed, never fatal, reported, and of use again afterwards."""

from __future__ import annotations

import random
import shutil
import sqlite3
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import pytest
from memo_support import SMALL, records, search_with

from morello_mlir.memo.answers import Answer, Answers, merge_answers
from morello_mlir.memo.database import is_damage
from morello_mlir.memo.examine import examine
from morello_mlir.memo.manage import merge, merge_winners, statistics, verify
from morello_mlir.memo.record import encode
from morello_mlir.memo.store import Store
from morello_mlir.memo.version import space_of
from morello_mlir.memo.winners import Winner, Winners
from morello_mlir.search.schedule import to_text
from morello_mlir.spec import matmul_spec

SPACE, SPEC = space_of(SMALL), matmul_spec(8, 8, 16)
#: Other spaces, before and behind it in the file, in which the same tables have other actions.
OTHERS = (f"0{SPACE}", f"z{SPACE}")


@lru_cache(maxsize=1)
def truth() -> tuple[int, str]:
    found = search_with(None).solve(SPEC)
    return found.cost, to_text(found.schedule)


def winner(i: int) -> Winner:
    return Winner(SPACE, f"machine {i}", str(SPEC), "small", truth()[1], 1e-6 * (i + 1), 2e-6, 8)


def answer(i: int) -> Answer:
    return Answer(SPACE, f"goal {i}", "a schedule", i)


def fill(path: Path) -> None:
    search = search_with(path)
    search.solve(SPEC)
    store = search.memo.user.store
    for space in OTHERS:
        store.put(space, "small", [replace(r, actions=r.actions[1:] + r.actions[:1]) for r in records(8, 8, 16)])
    for i in range(40):
        Winners(store).put(winner(i))
        Answers(store).put(answer(i))
    store.count("search")
    store.close()


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sound") / "memo.sqlite"
    fill(path)
    return path


@pytest.fixture
def path(sound: Path, tmp_path: Path) -> Path:
    return shutil.copy(sound, tmp_path / "memo.sqlite")


def change(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA writable_schema = ON")
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def use(path: Path) -> str:
    """Asks for everything, as a compilation does: whatever is answered is right. Returns where the schedule is from."""
    search = search_with(path)
    found = search.solve(SPEC)
    assert (found.cost, to_text(found.schedule)) == truth()
    store = search.memo.user.store
    for i in range(0, 40, 9):
        assert Answers(store).get(SPACE, f"goal {i}") in (None, answer(i))
        assert Winners(store).get(*winner(i).key) in (None, winner(i))
    store.count(found.source)
    assert len(store.runs()) >= store.writable
    store.close()
    return found.source


def lost(path: Path) -> list[object]:
    """What is not found any more of all that was put, whether it is asked for or not."""
    path = shutil.copy(path, path.with_name("copy.sqlite"))
    store = Store(path, writable=False)
    if not store.is_readable:
        return ["all of it"]
    spaces = {space: [key.key for key in records(8, 8, 16)] for space in (SPACE, *OTHERS)}
    gone: list[object] = [(s, key) for s, keys in spaces.items() for key in keys if not store.get(s, key)]
    gone += [i for i in range(40) if Answers(store).get(SPACE, f"goal {i}") != answer(i)]
    return gone + [i for i in range(40) if Winners(store).get(*winner(i).key) != winner(i)]


def search_more(path: Path) -> None:
    """A goal that the file does not answer, as a process does that knows nothing of the damage."""
    search = search_with(path)
    search.solve(matmul_spec(8, 8, 24))
    search.memo.user.store.close()


def look_after(path: Path) -> None:
    """All that `morello memo` does with a file: what it leaves is sound."""
    store, into = Store(path), Store(path.with_name("into.sqlite"))
    statistics(store)
    verify(store, 0)
    for merging in (merge, merge_winners, merge_answers):
        merging(into, store)
    store.close()
    assert verify(into, 0).damaged == 0 == verify(Store(path), 0).damaged


def damaged(data: bytearray, rng: random.Random) -> bytearray:
    size, page = len(data), 4096
    at, length = rng.randrange(size), rng.choice([1, 3, 16, 512, page])
    kind = rng.choice(["bits", "head", "cells", "cut", "zeros", "noise", "pages", "longer", "text"])
    if kind == "bits":
        for _ in range(length):
            data[rng.randrange(size)] ^= 1 << rng.randrange(8)
    elif kind == "head":
        data[rng.randrange(100) : 100 + rng.randrange(2000)] = rng.randbytes(rng.randrange(1, 300))
    elif kind == "cells":
        start = at // page * page
        data[start + rng.randrange(8, 60)] = rng.randrange(256)
    elif kind == "cut":
        del data[at:]
    elif kind == "zeros":
        data[at : at + length] = bytes(len(data[at : at + length]))
    elif kind == "noise":
        data[at : at + length] = rng.randbytes(len(data[at : at + length]))
    elif kind == "pages":
        a, b = (slice(p * page, (p + 1) * page) for p in rng.sample(range(size // page), 2))
        data[a], data[b] = data[b], data[a]
    elif kind == "longer":
        data += rng.randbytes(length)
    else:
        for _ in range(3):
            word = data.find(rng.choice([b"Matmul", b"CREATE", b"machine", b"scale"]), at)
            data[word + rng.randrange(6)] = rng.randrange(128, 256)
    return data


@pytest.mark.parametrize("seed", range(60))
def test_damage_anywhere(path, seed, caplog):
    data = damaged(bytearray(path.read_bytes()), random.Random(seed))
    path.write_bytes(data)
    gone = lost(path)
    caplog.clear()
    search_more(path)
    assert caplog.text or not gone
    use(path)
    use(path)
    look_after(path)
    # What was not found is found again, unless the file does not say that it is ours.
    assert "memo" in (use(path), use(path)) or "left alone" in caplog.text


NO_TEXT = "CAST(x'4d61ff' AS TEXT)"


@pytest.mark.parametrize(
    "damage",
    [
        f"UPDATE records SET key = {NO_TEXT} WHERE space = '{SPACE}' AND key = (SELECT max(key) FROM records)",
        f"UPDATE winners SET spec = {NO_TEXT} WHERE host = 'machine 9'",
        f"UPDATE winners SET schedule = {NO_TEXT} WHERE host = 'machine 9'",
        f"UPDATE answers SET schedule = {NO_TEXT} WHERE spec = 'goal 9'",
        f"UPDATE records SET boxes = 'many', target = {NO_TEXT}",
        "UPDATE records SET data = 1.5",
        "UPDATE runs SET started = 'yesterday', search = x'00'",
        "UPDATE sqlite_master SET sql = replace(sql, 'schedule TEXT', 'schedu_e TEXT') WHERE name = 'winners'",
        f"UPDATE sqlite_master SET sql = replace(sql, 'space', {NO_TEXT}) WHERE name = 'records'",
        "DELETE FROM sqlite_master WHERE name = 'records'",
    ],
)
def test_values_that_we_would_not_have_written(path, damage, caplog):
    change(path, damage)
    use(path)
    look_after(path)
    assert "runs" in damage or "memo" in caplog.text
    assert "memo" in (use(path), use(path))
    store = Store(path)
    assert Winners(store).get(*winner(0).key) == winner(0) or "sqlite_master" in damage
    assert Answers(store).get(SPACE, "goal 0") == answer(0)


def edited(table: str, column: str, value: str) -> str:
    """A statement that changes one row somewhere in the middle, though nothing of the order of rows."""
    where = {"records": f"space = '{SPACE}'", "winners": "host = 'machine 9'", "answers": "spec = 'goal 9'"}[table]
    last = f" AND key = (SELECT max(key) FROM records WHERE space = '{SPACE}')" if table == "records" else ""
    return f"UPDATE {table} SET {column} = {value} WHERE {where}{last}"


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("records", "space", f"'{SPACE}x'"),
        ("records", "key", "key || 'x'"),
        ("records", "shape", "shape || 'x'"),
        ("records", "target", "'large'"),
        ("records", "boxes", "boxes + 1"),
        ("records", "specs", "specs + 1"),
        ("winners", "space", f"'{SPACE}x'"),
        ("winners", "host", "'machine 99'"),
        ("winners", "spec", "spec || ' '"),
        ("answers", "space", f"'{SPACE}x'"),
        ("answers", "spec", "'goal 99'"),
    ],
)
def test_what_is_not_found_any_more_is_reported(path, table, column, value, caplog):
    """By whoever searches for anything, once; and by verify."""
    change(path, edited(table, column, value))
    copy = Store(shutil.copy(path, path.with_name("copy.sqlite")))
    before = 3 * len(records(8, 8, 16))
    verdict = verify(copy, 0)
    assert copy.dropped == 1 == len(caplog.records)
    assert (verdict.records, verdict.winners) == (before - (table == "records"), 40 - (table == "winners"))
    caplog.clear()
    search_more(path)
    assert len(caplog.records) == 1 and "dropped" in caplog.text
    caplog.clear()
    search_more(path)
    use(path)
    assert "memo" in (use(path), use(path)) and not caplog.text


def test_a_record_of_another_cost_model_is_not_believed(path):
    """One bit of its space: 8 becomes 9."""
    key = records(8, 8, 16)[0].key
    old = f"{SPACE}9"
    Store(path).put(old, "small", [replace(r, actions=r.actions[1:] + r.actions[:1]) for r in records(8, 8, 16)])
    change(
        path,
        f"DELETE FROM records WHERE space = '{SPACE}'",
        f"UPDATE records SET space = '{SPACE}' WHERE space = '{old}'",
    )
    assert use(path) == "search"
    assert verify(Store(path), 0).damaged == 0 and Store(path).get(SPACE, key)


def test_a_table_under_another_name(path, caplog):
    change(path, "UPDATE sqlite_master SET name = 'answerz', tbl_name = 'answerz' WHERE name = 'answers'")
    search_more(path)
    assert len(caplog.records) == 1 and "damaged" in caplog.text
    Answers(Store(path)).put(answer(3))
    assert Answers(Store(path)).get(SPACE, "goal 3") == answer(3)


def unsealed(path: Path) -> None:
    """Makes the file one of a version without seals."""
    connection = sqlite3.connect(path)
    for space, key, shape in connection.execute("SELECT space, key, shape FROM records").fetchall():
        found = next(r for r in Store(path, writable=False).get(space, key) if r.shape == shape)
        row = encode(found), space, key, shape
        connection.execute("UPDATE records SET data = ? WHERE space = ? AND key = ? AND shape = ?", row)
    connection.commit()
    connection.close()


def test_files_of_earlier_versions(path, caplog):
    sealed = list(Store(path).rows())
    unsealed(path)
    assert not any(row.is_sealed() for row in Store(path).rows()) and use(path) == "memo"
    change(path, edited("records", "shape", "shape || 'x'"))
    search_more(path)
    assert len(caplog.records) == 1 and "another record" in caplog.text
    assert all(row.is_sealed() for row in Store(path).rows())
    assert sum(row in sealed for row in Store(path).rows()) > len(sealed) / 2


def test_a_file_that_is_only_read_is_looked_through(path, caplog):
    change(path, edited("records", "key", "key || 'x'"))
    before = path.read_bytes()
    search = search_with(path.with_name("user.sqlite"), shipped=path)
    search.solve(matmul_spec(8, 8, 24))
    search.solve(matmul_spec(16, 8, 8))
    assert len(caplog.records) == 1 and "dropped" in caplog.text
    assert path.read_bytes() == before and not path.with_name("memo.sqlite-wal").exists()


def test_look_ups_do_not_look_through(path, monkeypatch):
    """Nor does a process more than once, nor where the file is large."""
    looked: list[Path] = []
    monkeypatch.setattr(Store, "check", lambda store: looked.append(store.path))
    search = search_with(path)
    assert search.solve(SPEC).source == "memo" and not looked
    search.solve(matmul_spec(8, 8, 24))
    search.solve(matmul_spec(16, 8, 8))
    assert looked == [path]
    store = Store(path)
    examine(store, largest=store.size - 1)
    assert looked == [path]
    examine(store, largest=None)
    assert looked == [path, path]


def test_a_read_only_file_with_damage(path, caplog):
    change(path, f"UPDATE records SET shape = {NO_TEXT} WHERE space = '{SPACE}'")
    before = path.read_bytes()
    store = Store(path, writable=False)
    assert all(store.get(SPACE, r.key) == [] for r in records(8, 8, 16))
    assert Winners(store).get(*winner(1).key) == winner(1)
    assert path.read_bytes() == before and len(caplog.records) == 1 and "cannot be read" in caplog.text


def test_the_damaged_file_is_kept(path):
    change(path, "UPDATE sqlite_master SET sql = replace(sql, 'space', 'shape') WHERE name = 'winners'")
    before = path.read_bytes()
    assert use(path) == "memo"
    kept = path.with_name("memo.sqlite.damaged").read_bytes()
    assert len(kept) == len(before) and b"shape TEXT" in kept
    assert verify(Store(path), 0).records == 3 * len(records(8, 8, 16))


def test_damage_is_told_by_what_sqlite_says():
    """Python before 3.11 does not tell SQLite's codes."""
    for text in ("database disk image is malformed", "file is not a database", "no such table: records"):
        assert is_damage(sqlite3.DatabaseError(text))
    for text in ("database is locked", "database or disk is full", "attempt to write a readonly database"):
        assert not is_damage(sqlite3.OperationalError(text))
