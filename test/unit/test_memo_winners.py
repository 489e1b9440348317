"""Winners in a memo file: kept, merged, never believed when damaged, and no trouble for files without them."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import pytest
from memo_support import SMALL, records

from morello_mlir.memo.manage import merge_winners, statistics, verify
from morello_mlir.memo.store import Store
from morello_mlir.memo.version import space_of
from morello_mlir.memo.winners import Winner, Winners
from morello_mlir.search.schedule import to_text
from morello_mlir.search.solve import Search
from morello_mlir.spec import matmul_spec
from morello_mlir.targets import TARGETS, this_host
from morello_mlir.tools.main import main

AVX2 = TARGETS["avx2"]
SPEC = matmul_spec(8, 8, 16)
HOST = "x86_64_some-machine"


@lru_cache(maxsize=1)
def schedule() -> str:
    return to_text(Search(AVX2).solve(SPEC).schedule)


def winner(**changes) -> Winner:
    plain = Winner(space_of(AVX2), HOST, str(SPEC), "avx2", schedule(), 2e-6, 3e-6, 8)
    return replace(plain, **changes)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memo.sqlite"


def filled(path: Path, *winners: Winner) -> Store:
    store = Store(path)
    for each in winners or (winner(),):
        Winners(store).put(each)
    return store


def change(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()


def test_a_winner_comes_back_in_another_process(path):
    filled(path).close()
    again = Winners(Store(path))
    assert again.get(*winner().key) == winner()
    assert again.get(winner().space, HOST, str(matmul_spec(8, 8, 8))) is None
    assert again.get(winner().space, "another machine", str(SPEC)) is None


def test_a_later_winner_replaces_the_earlier(path):
    store = filled(path, winner(), winner(seconds=1e-6, considered=20))
    assert list(Winners(store).rows()) == [winner(seconds=1e-6, considered=20)]


@pytest.mark.parametrize("store", [Store(None), Store(Path("/proc/none/memo.sqlite"))], ids=["off", "unwritable"])
def test_without_a_file_winners_are_kept_in_memory(store):
    winners = Winners(store)
    assert winners.get(*winner().key) is None
    winners.put(winner())
    assert winners.get(*winner().key) == winner()
    winners.drop(*winner().key, "a test")
    assert winners.get(*winner().key) is None


def test_files_from_before_winners(path):
    store = Store(path)
    for record in records(8, 8, 16):
        store.put(space_of(SMALL), "small", [record])
    store.close()
    change(path, "DROP TABLE IF EXISTS winners")
    old = Store(path)
    assert Winners(old).get(*winner().key) is None and statistics(old)["winners"]["all"] == 0
    Winners(old).put(winner())
    assert Winners(Store(path, writable=False)).get(*winner().key) == winner()
    assert len(list(old.rows())) == len(records(8, 8, 16))


@pytest.mark.parametrize(
    "damage",
    [
        "schedule = 'kernel scalar'",
        "seconds = 1e-9",
        "seconds = 'fast'",
        "checksum = x'00'",
        "considered = 1000",
        "schedule = x'ff00'",
        "target = 7",
    ],
)
def test_damaged_rows_are_dropped_and_reported(path, caplog, damage):
    filled(path, winner(), winner(host="another")).close()
    change(path, f"UPDATE winners SET {damage} WHERE host = '{HOST}'")
    store = Store(path)
    assert Winners(store).get(*winner().key) is None
    assert store.dropped == 1 and "dropped the winner of" in caplog.text
    assert [w.host for w in Winners(store).rows()] == ["another"]


def test_seconds_that_cannot_be(path):
    store = filled(path, winner(seconds=0.0), winner(host="b", seconds=float("inf")))
    assert list(Winners(store).rows()) == [] and store.dropped == 2


def test_verify_checks_every_schedule(path):
    illegal = winner(host="b", schedule="to_accum\nkernel broadcast_fma")
    unreadable = winner(host="c", schedule="fold m by 3:")
    holed = winner(host="d", schedule="?")
    another = winner(host="e", space="0123456789abcdef/1", schedule="?")
    store = filled(path, winner(), illegal, unreadable, holed, another)
    verdict = verify(store, sample=0)
    assert (verdict.winners, verdict.damaged) == (2, 3)
    assert {w.host for w in Winners(store).rows()} == {HOST, "e"}


def test_merging_keeps_the_faster_of_one_machine_and_all_machines(path, tmp_path):
    into = filled(path, winner(schedule="?"), winner(host="b"))
    other = filled(
        tmp_path / "other.sqlite", winner(seconds=1e-6), winner(host="b", seconds=9e-6, considered=3), winner(host="c")
    )
    merged = merge_winners(into, other)
    assert (merged.added, merged.known, merged.damaged) == (2, 1, 0)
    found = {w.host: w for w in Winners(into).rows()}
    assert found == {HOST: winner(seconds=1e-6), "b": winner(host="b"), "c": winner(host="c")}


def test_merging_equal_schedules_keeps_the_larger_choice(path, tmp_path):
    into = filled(path)
    merge_winners(into, filled(tmp_path / "other.sqlite", winner(seconds=5e-6, considered=50)))
    assert list(Winners(into).rows()) == [winner(considered=50)]


def test_damage_in_the_source_of_a_merge(path, tmp_path):
    other = tmp_path / "other.sqlite"
    filled(other).close()
    change(other, "UPDATE winners SET seconds = 1.0")
    merged = merge_winners(Store(path), Store(other, writable=False))
    assert (merged.added, merged.damaged) == (0, 1)


def test_a_damaged_file_keeps_its_readable_winners(path):
    store = filled(path)
    connection = store._open()
    assert connection is not None
    store._repair(connection, sqlite3.DatabaseError("a test"))
    assert list(Winners(store).rows()) == [winner()]


def test_the_command_line(path, tmp_path, capsys):
    filled(path, winner(), winner(host=this_host().machine_key, seconds=3e-6)).close()
    assert main(["memo", "stats", "--memo", str(path)]) == 0
    assert "winners: 2 measured, 1 for this machine, 1 faster than the model's choice" in capsys.readouterr().out
    assert main(["memo", "verify", "--memo", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["winners"] == 2
    kept, none = tmp_path / "kept.sqlite", tmp_path / "none.sqlite"
    assert main(["memo", "export", str(kept), "--memo", str(path), "--match", "[1, 8, 8, 16]"]) == 0
    assert "winners: 2 added" in capsys.readouterr().out
    assert main(["memo", "export", str(none), "--memo", str(path), "--target", "avx512"]) == 1
    new = tmp_path / "new.sqlite"
    assert main(["memo", "import", str(kept), "--memo", str(new)]) == 0
    assert len(list(Winners(Store(new)).rows())) == 2
    capsys.readouterr()
    assert main(["memo", "merge", str(kept), "--memo", str(new), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[str(kept)]["winners"] == {"added": 0, "known": 2, "damaged": 0}
    change(kept, "UPDATE winners SET seconds = 1.0")
    assert main(["memo", "verify", "--memo", str(kept)]) == 1
