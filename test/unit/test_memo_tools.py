"""`morello memo` and `morello precompute`."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from morello_mlir.actions import key_of
from morello_mlir.errors import InputError
from morello_mlir.memo import locate, manage, precompute
from morello_mlir.memo.answers import Answer, Answers, answer_space
from morello_mlir.memo.coordinates import kernels_of
from morello_mlir.memo.families import Family, element_types
from morello_mlir.memo.memo import Memo
from morello_mlir.memo.record import row_of
from morello_mlir.memo.store import Store
from morello_mlir.memo.table import records_of
from morello_mlir.memo.variants import tables_of
from morello_mlir.memo.version import space_of
from morello_mlir.search.solve import Search
from morello_mlir.search.tables import Tables
from morello_mlir.spec import matmul_spec
from morello_mlir.targets import TARGETS, get_target
from morello_mlir.tools import precompute as precompute_tool
from morello_mlir.tools.main import main
from morello_mlir.tools.precompute import SHIPPED_PARTS, _parts, add_arguments, parse_size

AVX2 = TARGETS["avx2"]
ROWS = (("row_major", "row_major"),)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memo of every table of one small goal, and of a run."""
    path = tmp_path_factory.mktemp("memo") / "memo.sqlite"
    search = Search(AVX2, Memo(AVX2, Store(path)))
    search.solve(matmul_spec(6, 12, 16))
    search.solve(matmul_spec(6, 12, 16))
    search.memo.user.store.close()
    return path


def run(capsys, *args: object) -> tuple[int, str, str]:
    status = main([str(a) for a in args])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_stats(filled, capsys, tmp_path):
    picture = tmp_path / "memo.svg"
    status, out, _ = run(capsys, "memo", "stats", "--memo", filled, "--json", "--plot", picture)
    report = json.loads(out)
    assert status == 0
    whole = report["all"]
    for part in (whole, *report["tables"], *report["spaces"]):
        assert part["specs_covered"] > 0 and part["boxes"] > 0 and part["bytes"] > 0
        assert part["bytes_one_record_each"] == 26 * part["specs_covered"]
        assert part["ratio"] == pytest.approx(part["bytes_one_record_each"] / part["bytes"])
    assert whole["bytes"] == filled.stat().st_size
    assert whole["specs_covered"] == sum(t["specs_covered"] for t in report["tables"])
    assert report["hit_rate"] == 0.5 and report["runs"][0]["memory"] == 1
    assert {s["target"] for s in report["shipped"]} == set(TARGETS)
    assert len(ElementTree.parse(picture).getroot().findall(".//{*}circle")) == len(report["tables"])


def test_stats_in_words(filled, capsys):
    status, out, _ = run(capsys, "memo", "stats", "--memo", filled, "--tables")
    assert status == 0 and "hit rate of the last 1 runs: 50.0%" in out and "shipped for avx2" in out
    report = json.loads(run(capsys, "memo", "stats", "--memo", filled, "--json")[1])
    for table in report["tables"]:
        assert f"  {table['table']}; {table['shape']}\n" in out, "each table by its whole key"
    assert f"  avx2 {report['spaces'][0]['space']}\n" in out


def test_stats_of_a_fresh_installation(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("MORELLO_MEMO", str(tmp_path / "memo"))
    status, out, _ = run(capsys, "memo", "stats")
    assert status == 0 and "(not there yet)" in out and "no runs yet" in out and "shipped for avx512" in out
    assert not list(tmp_path.iterdir())


def test_stats_count_what_is_in_the_log(capsys, tmp_path):
    search = Search(AVX2, Memo(AVX2, Store(tmp_path / "memo")))
    search.solve(matmul_spec(6, 12, 16))
    _, out, _ = run(capsys, "memo", "stats", "--memo", tmp_path / "memo", "--json")
    assert json.loads(out)["all"]["bytes"] == sum((tmp_path / name).stat().st_size for name in ("memo", "memo-wal"))


def test_verify(filled, capsys):
    status, out, _ = run(capsys, "memo", "verify", "--memo", filled, "--sample", 3, "--json")
    report = json.loads(out)
    assert status == 0 and report["wrong"] == [] and report["compared"] == 3 and report["damaged"] == 0
    assert report["foreign"] == 0


def test_verify_says_what_it_cannot_compare(capsys, tmp_path):
    store = Store(tmp_path / "memo")
    store.put(f"{AVX2.fingerprint}/1", "avx2", _records())
    store.close()
    status, out, _ = run(capsys, "memo", "verify", "--memo", tmp_path / "memo")
    assert status == 0 and f"{len(_records())} records are for other targets or another version: not compared" in out
    assert "0 Specs compared" in out


def test_verify_finds_what_is_wrong(capsys, tmp_path):
    """Records that are whole and legal, but of another cost model."""
    other = replace(AVX2, costs=replace(AVX2.costs, call=4000.0))
    tables = Tables({"m": 12, "k": 12, "n": 32}, other.limits, other)
    tables.table(key_of(matmul_spec(12, 12, 32, accumulate=True), other))
    store = Store(tmp_path / "memo")
    for key in list(tables.tables):
        if "VRF" not in key.memories:
            store.put(space_of(AVX2), "avx2", records_of(tables, key))
    status, out, _ = run(capsys, "memo", "verify", "--memo", store.path, "--sample", 20)
    assert status == 1 and "wrong: avx2: MatmulAccum" in out


@pytest.mark.parametrize(
    "action", [("stats",), ("verify",), ("pack",), ("export", "new"), ("merge", "other"), ("import", "other")]
)
def test_a_file_that_is_no_memo_is_refused_and_left_alone(filled, capsys, tmp_path, monkeypatch, action):
    monkeypatch.chdir(tmp_path)
    notes = tmp_path / "notes.txt"
    notes.write_text("not a memo\n" * 500)
    (tmp_path / "other").write_bytes(filled.read_bytes())
    status, out, err = run(capsys, "memo", *action, "--memo", notes)
    assert status == 2 and out == "" and "notes.txt is no memo that can be" in err
    assert notes.read_text() == "not a memo\n" * 500
    assert {f.name for f in tmp_path.iterdir()} == {"notes.txt", "other"}


def test_what_is_known_of_reached_states_is_not_added_again(capsys, tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    fill = ("precompute", "--targets", "avx2", "--layouts", "row_major:row_major", "--threads", 1, "--jobs", 1)
    for path, largest in ((one, 4), (two, 3)):
        assert run(capsys, *fill, "--max-size", largest, "--memo", path)[0] == 0
    merged = json.loads(run(capsys, "memo", "merge", two, "--memo", one, "--json")[1])[str(two)]
    assert merged["added"] == 0 < merged["known"]
    assert json.loads(run(capsys, "memo", "merge", one, "--memo", two, "--json")[1])[str(one)]["added"] > 0
    assert json.loads(run(capsys, "memo", "merge", one, "--memo", two, "--json")[1])[str(one)]["added"] == 0


def test_targets_are_exported_by_the_names_that_stats_prints(capsys, tmp_path):
    path = tmp_path / "memo"
    targets = [get_target(name) for name in ("avx2", "haswell", "znver4")]
    for target in targets:
        Search(target, Memo(target, Store(path))).solve(matmul_spec(2, 3, 4))
        Answers(Store(path)).put(Answer(answer_space(target), "Softmax", "?", 1))
    for name, has in (("haswell", [1]), ("znver4", [2]), ("avx2", [0, 1]), ("avx512", [2])):
        part = tmp_path / f"part_{name}"
        status, out, _ = run(capsys, "memo", "export", part, "--memo", path, "--target", name)
        assert status == 0 and f"answers for whole goals: {len(has)} added" in out
        assert {row.space for row in Store(part).rows()} == {space_of(targets[i]) for i in has}
        assert {a.space for a in Answers(Store(part)).rows()} == {answer_space(targets[i]) for i in has}
    status, _, err = run(capsys, "memo", "export", tmp_path / "no", "--memo", path, "--target", "pentium")
    assert status == 2 and "pentium" in err and not (tmp_path / "no").exists()


def test_import_takes_no_answers_of_other_targets(capsys, tmp_path):
    path, new = tmp_path / "memo", tmp_path / "new"
    Answers(Store(path)).put(Answer(answer_space(AVX2), "Softmax", "?", 1))
    Answers(Store(path)).put(Answer("of/other/machines", "Softmax", "?", 1))
    assert run(capsys, "memo", "import", path, "--memo", new)[0] == 0
    assert [a.space for a in Answers(Store(new)).rows()] == [answer_space(AVX2)]


def test_merge_export_import(filled, capsys, tmp_path):
    part, rest, whole = tmp_path / "part", tmp_path / "rest", tmp_path / "whole"
    assert run(capsys, "memo", "export", part, "--memo", filled, "--match", "GL row_major")[0] == 0
    assert run(capsys, "memo", "export", rest, "--memo", filled, "--max-boxes", 1 << 30)[0] == 0
    assert 0 < len(list(Store(part).rows())) < len(list(Store(rest).rows()))
    status, out, _ = run(capsys, "memo", "merge", part, rest, "--memo", whole, "--json")
    results = json.loads(out)
    assert status == 0 and results[str(rest)]["known"] == results[str(part)]["added"]
    assert {(r.key, r.data) for r in Store(whole).rows()} == {(r.key, r.data) for r in Store(filled).rows()}
    results = json.loads(run(capsys, "memo", "merge", rest, "--memo", whole, "--json")[1])
    assert (results[str(rest)]["added"], results[str(rest)]["conflicts"]) == (0, 0), "merging again adds nothing"
    again = tmp_path / "again"
    assert run(capsys, "memo", "import", whole, "--memo", again)[0] == 0
    assert len(list(Store(again).rows())) == len(list(Store(filled).rows()))
    assert run(capsys, "memo", "export", part, "--memo", filled)[0] == 2, "never over a file"


def test_conflicts_keep_what_is_there(filled, tmp_path):
    row = next(r for r in Store(filled).rows() if r.boxes > 1)
    record = row.record()
    other = Store(tmp_path / "other")
    record = replace(record, actions=record.actions[::-1])
    other.put(row.space, row.target, [record])
    into = Store(tmp_path / "into")
    manage.merge(into, Store(filled))
    found = manage.merge(into, other)
    assert (found.conflicts, found.added, found.known) == (len(record.actions) > 1, 0, len(record.actions) == 1)
    assert [row_of(row.space, row.target, r) for r in into.get(row.space, row.key)] == [row]
    # Another fingerprint is another space: no conflict.
    other.put("elsewhere/1", "other", [record])
    assert manage.merge(into, other, lambda r: r.space == "elsewhere/1").added == 1


def test_what_is_known_of_a_key_is_read_once(filled, tmp_path, monkeypatch):
    row = next(Store(filled).rows())
    record = row.record()
    rows, *others = record.sizes
    source, into, asked = Store(tmp_path / "source"), Store(tmp_path / "into"), []
    source.put(row.space, row.target, [record])
    source.put(row.space, row.target, [replace(record, sizes=((*rows[:-1], odd), *others)) for odd in (997, 1009)])
    get = Store.get
    monkeypatch.setattr(Store, "get", lambda self, *name: asked.append(name) or get(self, *name))
    assert manage.merge(into, source).added == 3
    assert asked == [(row.space, row.key)]
    assert list(into.rows()) == list(source.rows())


def test_pack(filled, capsys, tmp_path):
    copy = tmp_path / "copy"
    assert run(capsys, "memo", "export", copy, "--memo", filled)[0] == 0
    status, out, err = run(capsys, "memo", "pack", "--memo", copy, "--json")
    assert err.startswith(f"packing {copy}, 0 s")
    report = json.loads(out)
    assert status == 0 and report["boxes"] <= report["boxes_before"]
    there = Store(filled)
    tables = [t for row in Store(copy).rows() for t in tables_of(row.record())]
    assert len(tables) == len(list(there.rows()))
    for table in tables:
        (same,) = (r for r in there.get(space_of(AVX2), table.key) if r.shape == table.shape)
        labels = [np.array([*r.actions, ""])[r.boxes.actions()] for r in (table, same)]
        assert (labels[0] == labels[1]).all()


@pytest.mark.parametrize("kind", ["garbage", "empty", "folder"])
@pytest.mark.parametrize(
    "args", [("merge", "{}"), ("import", "{}"), ("pack", "--memo", "{}"), ("stats", "--memo", "{}")]
)
def test_a_file_that_cannot_be_read_is_refused_and_left_alone(kind, args, capsys, tmp_path):
    bad = tmp_path / "bad"
    if kind == "folder":
        bad.mkdir()
    else:
        bad.write_bytes(b"no database" if kind == "garbage" else b"")
    into = () if "--memo" in args else ("--memo", tmp_path / "into")
    status, _, err = run(capsys, "memo", *(a.format(bad) for a in args), *into)
    assert status == 2
    assert f"there is no memo at {bad}" in err if kind == "folder" else f"{bad} is no memo that can be read" in err
    assert {p.name for p in tmp_path.iterdir()} == {"bad"}
    assert bad.is_dir() or bad.read_bytes() in (b"no database", b"")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["memo", "stats", "--memo", "off"], "the memo is off"),
        (["memo", "verify", "--shipped", "avx2", "--sample", "-5"], "--sample must not be negative"),
        (["memo", "verify", "--memo", "/nowhere/memo"], "there is no memo at /nowhere/memo"),
        (["memo", "merge", "/nowhere/memo", "--memo", "/tmp/x"], "there is no memo at /nowhere/memo"),
        (["precompute", "--memo", "off"], "the memo is off"),
        (["precompute", "--functions", "fft", "--memo", "/tmp/x"], "cannot precompute 'fft'"),
        (["precompute", "--dtypes", "f8", "--memo", "/tmp/x"], "no kernels for f8 (have f32, f64, bf16"),
        (["precompute", "--dtypes", "i8:f32:f32", "--memo", "/tmp/x"], "no kernels for i8:f32:f32"),
        (["precompute", "--layouts", "diagonal", "--memo", "/tmp/x"], "--layouts: expected LHS:RHS"),
        (["precompute", "--max-size", "41286", "--memo", "/tmp/x"], "--max-size is 41285 at most"),
        (["precompute", "--memory-cap", "lots", "--memo", "/tmp/x"], "cannot read the size 'lots'"),
        (["precompute", "--threads", "1,all", "--memo", "/tmp/x"], "positive integer, not 'all'"),
        (["precompute", "--targets", "vax", "--memo", "/tmp/x"], "unknown target 'vax'"),
    ],
)
def test_what_is_unusable_is_said(args, message, capsys):
    status, _, err = run(capsys, *args)
    assert status == 2 and message in err


def test_sizes_read():
    assert (parse_size("800M"), parse_size("4g"), parse_size("12")) == (800 << 20, 4 << 30, 12)
    assert precompute.share_memory(4 << 30, 2) == (2, (2 << 30) - precompute.PROCESS_BYTES)
    assert precompute.share_memory(1 << 20, 8)[0] == 1


# ---------------------------------------------------------------- precompute


def test_precompute_in_processes_and_again(tmp_path, capsys):
    path = tmp_path / "memo"
    args = ("precompute", "--max-size", 6, "--targets", "avx2", "--layouts", "row_major:row_major", "--memo", path,
            "--threads", "1,2")  # fmt: skip
    status, out, err = run(capsys, *args, "--jobs", 2)
    assert status == 0 and "250 goals for avx2" in out
    assert err.startswith("avx2: 0 of 250 goals, 0 s\n"), "without a terminal it says where it is now and then"
    for sizes in ((1, 1, 1), (6, 4, 3), (2, 6, 6)):
        spec = matmul_spec(*sizes)
        for goal in (spec, replace(spec, serial=False, threads=2)):
            found = Search(AVX2, Memo(AVX2, Store(path))).solve(goal)
            assert found.source == "memo" and found.schedule == Search(AVX2).solve(goal).schedule
    status, out, err = run(capsys, *args)
    assert "0 goals" in out and not err, "what is there is not done again"


@pytest.mark.parametrize(
    ("name", "target"), [("bf16", "avx512"), ("u8i8", "znver5"), ("f16", "avx2"), ("f32:bf16:bf16", "znver4")]
)
def test_precompute_for_narrow_element_types(tmp_path, capsys, name, target):
    """With weights packed ahead, in groups where kernels take them."""
    path = tmp_path / "memo"
    args = ("precompute", "--max-size", 4, "--targets", target, "--dtypes", name, "--memo", path, "--threads", 1)
    assert run(capsys, *args, "--layouts", "row_major:row_major,row_major:col_major,row_major:const")[0] == 0
    plain = matmul_spec(2, 4, 3, rhs="col_major")
    operands = tuple(replace(o, dtype=d) for o, d in zip(plain.operands, element_types(name), strict=True))
    target = get_target(target)
    for rhs in (operands[1], replace(operands[1], layout=operands[0].layout, const=True)):
        goal = replace(plain, operands=(operands[0], rhs, operands[2]))
        found = Search(target, Memo(target, Store(path))).solve(goal)
        assert found.source == "memo" and found.schedule == Search(target).solve(goal).schedule


def test_shipping_goes_on_with_what_is_there(tmp_path, capsys, monkeypatch):
    """Several targets in one file, each with its own threads; what is stale is dropped."""
    monkeypatch.setattr(locate, "shipped_path", lambda target: tmp_path / f"{target.name}.sqlite")
    path = tmp_path / "avx2.sqlite"
    stale = Store(path)
    stale.put("0000000000000000/1", "avx2", [next(r for r in _records())])
    stale.close()
    args = ("precompute", "--ship", "--max-size", 4, "--layouts", "row_major:row_major", "--dtypes", "f32")
    status, out, _ = run(capsys, *args, "--targets", "avx2,haswell", "--threads", "1")
    assert status == 0 and out.count(": 64 goals for ") == 2
    first = {r.space for r in Store(path, writable=False).rows()}
    assert first == {space_of(AVX2), space_of(get_target("haswell"))}
    assert run(capsys, *args, "--targets", "avx2", "--threads", "1,2")[0] == 0
    assert {r.space for r in Store(path, writable=False).rows()} == first
    assert not path.with_name(path.name + "-wal").exists()
    for target, threads in ((AVX2, 2), (AVX2, 1), (get_target("haswell"), 1)):
        goal = matmul_spec(3, 4, 2)
        goal = goal if threads == 1 else replace(goal, serial=False, threads=threads)
        assert Search(target, Memo(target, None, Store(path, writable=False))).solve(goal).source == "shipped"
    status, out, _ = run(capsys, *args, "--targets", "avx2", "--threads", "1,2")
    assert "0 goals for avx2" in out and out.count("bytes") == 1, "nothing is left to be done"
    status, _, err = run(capsys, *args, "--targets", "tigerlake")
    assert status == 2 and "tigerlake is not among the targets that are shipped" in err


def test_parts_that_are_shipped():
    def asked(*args: str) -> list[tuple[tuple[str, ...], str]]:
        parser = argparse.ArgumentParser()
        add_arguments(parser)
        return [(p.dtypes, p.threads) for p in _parts(parser.parse_args(["--ship", *args]))]

    every = [(p.dtypes, p.threads) for p in SHIPPED_PARTS]
    assert asked() == every and every[0] == (("f32",), "1,2,4,8")
    assert asked("--threads", "8") == [(dtypes, "8") for dtypes, _ in every]
    assert asked("--dtypes", "f64,i8") == [(("i8",), "1,2"), (("f64",), "1,2")]
    assert asked("--dtypes", "f64:f64:f64,f32", "--threads", "3") == [(("f32",), "3"), (("f64:f64:f64",), "3")]
    assert [p.is_for(get_target("znver4")) for p in SHIPPED_PARTS] == [True, True, False, False]
    assert [p.is_for(get_target("skylake")) for p in SHIPPED_PARTS] == [False, False, False, True]


def test_a_shipped_file_does_not_become_too_large(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(locate, "shipped_path", lambda target: tmp_path / f"{target.name}.sqlite")
    args = ("precompute", "--ship", "--layouts", "row_major:row_major", "--dtypes", "f32", "--targets", "avx2")
    assert run(capsys, *args, "--max-size", 2, "--threads", "1")[0] == 0
    before = (tmp_path / "avx2.sqlite").read_bytes()
    monkeypatch.setattr(precompute_tool, "LARGEST_FILE", len(before))
    status, out, _ = run(capsys, *args, "--max-size", 16, "--threads", "1,2")
    assert status == 0 and f"{len(before)} are the most: left out" in out
    assert (tmp_path / "avx2.sqlite").read_bytes() == before


def test_shipping_drops_kernels_as_they_were(tmp_path, capsys, monkeypatch):
    """Answers for narrow element types are for the kernels that there are."""
    monkeypatch.setattr(locate, "shipped_path", lambda target: tmp_path / f"{target.name}.sqlite")
    args = ("precompute", "--ship", "--max-size", 2, "--targets", "sapphirerapids", "--threads", "1")
    assert run(capsys, *args, "--dtypes", "f32,bf16")[0] == 0
    path, own = tmp_path / "avx512.sqlite", get_target("sapphirerapids").narrow_fingerprint
    keys = [r.key for r in Store(path, writable=False).rows()]
    assert {kernels_of(key) for key in keys} == {"", own}
    monkeypatch.setattr(locate, "shipped_targets", lambda name: {"other": get_target("avx512")})
    assert run(capsys, *args, "--dtypes", "f32")[0] == 0
    assert {r.key for r in Store(path, writable=False).rows()} == {key for key in keys if not kernels_of(key)}


@pytest.mark.parametrize("name", ["host", "znver4", "sapphirerapids", "avx2"])
def test_stats_of_what_is_shipped(capsys, name):
    status, out, _ = run(capsys, "memo", "stats", "--shipped", name)
    assert status == 0 and f"{get_target(name).name}.sqlite" in out
    assert name == "host" or re.search(rf"  {name} [0-9a-f]+/", out)


def test_stats_say_what_is_shipped(tmp_path, capsys, monkeypatch, filled):
    monkeypatch.setattr(locate, "shipped_path", lambda target: tmp_path / f"{target.name}.sqlite")
    monkeypatch.setattr(locate, "SHIPPED", ("avx2", "haswell"))
    monkeypatch.setattr(locate, "PACKAGED", ("avx2", "haswell"))
    store = Store(tmp_path / "avx2.sqlite")

    def state() -> str:
        out = json.loads(run(capsys, "memo", "stats", "--memo", filled, "--json")[1])
        return next(s["state"] for s in out["shipped"] if s["target"] == "avx2")

    assert state() == "missing"
    store.put(space_of(AVX2), "avx2", _records()[:1])
    assert state().startswith("missing for haswell (")
    monkeypatch.setattr(locate, "PACKAGED", ("avx2",))
    assert state() == "current, but for haswell, whose goals are searched for"
    store.put(space_of(get_target("haswell")), "avx2", _records()[:1])
    assert state() == "current"
    store.put("0000000000000000/1", "avx2", _records()[:1])
    assert state().startswith("stale in part (")


def _records():
    tables = Tables({"m": 2, "k": 2, "n": 2}, AVX2.limits, AVX2)
    tables.table(key_of(matmul_spec(2, 2, 2, accumulate=True), AVX2))
    return [r for key in list(tables.tables) if "VRF" not in key.memories for r in records_of(tables, key)]


def test_an_interrupted_precompute_goes_on(tmp_path):
    store = Store(tmp_path / "memo")
    family = Family(max_size=8, layouts=ROWS)
    tasks = precompute.tasks_of([family], AVX2, store, False, 1 << 26)
    assert len(tasks) > 1
    precompute.keep(store, AVX2, precompute.work(tasks[0]))
    left = precompute.tasks_of([family], AVX2, Store(store.path), False, 1 << 26)
    assert [t.roots for t in left] == [t.roots for t in tasks[1:]]


def test_whole_tables_answer_parts_under_limits(tmp_path):
    store = Store(tmp_path / "memo")
    family = Family(max_size=4, layouts=ROWS)
    for task in precompute.tasks_of([family], AVX2, store, True, 1 << 26):
        precompute.keep(store, AVX2, precompute.work(task))
    assert precompute.tasks_of([family], AVX2, Store(store.path), True, 1 << 26) == []
    found = Search(AVX2, Memo(AVX2, store)).solve(matmul_spec(3, 4, 2))
    assert found.source == "memo" and found.cost == Search(AVX2).solve(matmul_spec(3, 4, 2)).cost
    assert manage.verify(store, 4).wrong == []
    assert {row.space for row in store.rows()} == {space_of(AVX2)}


@pytest.mark.filterwarnings("ignore")
def test_precompute_on_a_dask_cluster(tmp_path):
    """A real scheduler with two worker processes."""
    code = (
        "import sys\n"
        "from distributed import LocalCluster\n"
        "from morello_mlir.tools.main import main\n"
        "if __name__ == '__main__':\n"
        "    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:\n"
        "        args = ['--max-size', '4', '--targets', 'avx2', '--layouts', 'row_major:row_major']\n"
        "        sys.exit(main(['precompute', *args, '--memo', sys.argv[1], '--dask', cluster.scheduler_address]))\n"
    )
    script, path = tmp_path / "run.py", tmp_path / "memo"
    script.write_text(code, encoding="utf-8")
    done = subprocess.run([sys.executable, script, path], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert "64 goals for avx2" in done.stdout
    assert Search(AVX2, Memo(AVX2, Store(path))).solve(matmul_spec(4, 3, 2)).source == "memo"


def test_a_cluster_that_is_not_there(tmp_path):
    pytest.importorskip("distributed")
    with pytest.raises(InputError, match="no Dask scheduler"), precompute.open_pool(1, "nonsense://1"):
        pass
