"""The comparison with other libraries: rows, checks, native loops, processes, reports. Speed is not asserted."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.peers import command, plot
from benchmarks.peers.adapters import peers
from benchmarks.peers.adapters.morello import module_text
from benchmarks.peers.driver import PeerProcess, Result
from benchmarks.peers.native import NativeCall, address_of, repeat
from benchmarks.peers.report import OURS, PEAK, Row, line, markdown
from benchmarks.peers.workloads import WORKLOADS, Data, Workload, dtype_of, selected
from benchmarks.turns import Library


def test_every_row_has_a_name_of_its_own() -> None:
    assert len({w.key for w in WORKLOADS}) == len(WORKLOADS)
    assert selected("tiny/,square/16x") == [w for w in WORKLOADS if w.group == "tiny" or w.label == "16x16x16"]
    assert selected("") == list(WORKLOADS)


@pytest.mark.parametrize("workload", [
    Workload("t", 7, 5, 3), Workload("t", 3, 4, 5, batch=2), Workload("t", 4, 6, 8, types=("u8", "i8", "i32")),
    Workload("t", 4, 6, 8, types=("bf16", "bf16", "f32")), Workload("t", 4, 6, 8, types=("f32", "bf16", "f32")),
], ids=lambda w: w.label)  # fmt: skip
def test_a_wrong_result_is_noticed(workload: Workload) -> None:
    data = Data(workload)
    exact = data.lhs.astype(np.float64) @ data.rhs.astype(np.float64)
    right = exact.astype(dtype_of(workload.types[2]))
    assert data.error(right) is None
    for bad in (right + 1, np.full_like(right, np.nan) if workload.is_float else right - 1, right[..., :-1]):
        assert data.error(bad)


def test_of_large_results_rows_are_sampled_and_the_last_one_is_among_them() -> None:
    data = Data(Workload("t", 2000, 300, 300))
    right = data.lhs @ data.rhs
    assert data.error(right) is None
    right[-1, 7] += 1
    assert data.error(right)


@pytest.mark.parametrize("workload", [
    Workload("t", 5, 6, 7), Workload("t", 5, 6, 7, ahead=True), Workload("t", 5, 6, 7, batch=3),
    Workload("t", 5, 6, 7, types=("u8", "i8", "i32")), Workload("t", 5, 6, 7, types=("f32", "bf16", "f32")),
], ids=lambda w: w.label)  # fmt: skip
def test_our_module_computes_every_kind_of_row(workload: Workload) -> None:
    import morello_mlir

    data = Data(workload)
    compiled = morello_mlir.compile(module_text(workload, data), optimize=None if workload.is_float else False)
    compiled.mm(*([data.lhs, data.out] if workload.ahead else [data.lhs, data.rhs, data.out]))
    assert data.error(data.out) is None


def test_a_native_loop_calls_in_order_and_as_often_as_told() -> None:
    calls: list[int] = []
    record = ctypes.CFUNCTYPE(None, ctypes.c_int)(calls.append)
    address = address_of(record)
    repeat([NativeCall(address, (1,)), NativeCall(address, (2,))])(3)
    assert calls == [1, 2, 1, 2, 1, 2]


def test_families_in_turns() -> None:
    """A row of a family, by the libraries that are there, each in a process of its own."""
    from benchmarks import fused, streaming

    library = Library("streaming", "numpy", 1, "avx2")
    try:
        assert library.ask(60, do="prepare", label="softmax 1x512") == {"ok": True}
        assert 0 < library.ask(60, do="sample")["seconds"] < 1
        assert "StopIteration" in library.ask(60, do="prepare", label="nothing")["why"]
    finally:
        library.close()
    row = next(w for w in fused.WORKLOADS if w.label == "chain 64")
    assert fused.build(row, "XNNPACK", 1, "avx2") is None
    for family in (fused, streaming):
        labels = [w.label for w in family.WORKLOADS]
        assert len(labels) == len(set(labels))


def test_a_worker_that_dies_is_replaced() -> None:
    process = PeerProcess(peers()["numpy"], threads=1, isa="native")
    try:
        prepare = {"do": "prepare", "workload": "tiny/4x4x4", "seconds": 1e-4}
        assert process.ask(60, **prepare)["ok"]
        assert process.ask(60, do="sample")["seconds"] > 0
        assert process._child is not None
        os.kill(process._child.pid, signal.SIGKILL)
        process._child.wait()
        assert "died" in process.ask(60, do="sample")["why"]
        assert process.ask(60, **prepare)["ok"]
        assert not process.ask(60, do="prepare", workload="none", seconds=1.0)["ok"]
    finally:
        process.close()


def test_the_command_writes_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--only", "tiny/4x4x4,tiny/5x7x3", "--peers", "numpy", "--rounds", "2", "--seconds", "1e-4"]
    (tmp_path / "peers.svg").write_text("of an earlier run", encoding="utf-8")
    assert command.main([*arguments, "--out", str(tmp_path)], {"host": "this"}) == 0
    captured = capsys.readouterr()
    assert "| 5x7x3 |" in captured.out
    assert "no peers.svg: " in captured.err
    assert not (tmp_path / "peers.svg").exists()
    record = json.loads((tmp_path / "peers.json").read_text(encoding="utf-8"))
    assert [r["workload"] for r in record["rows"]] == ["tiny/4x4x4", "tiny/5x7x3"]
    results = record["rows"][0]["results"]
    assert {"ours", "numpy", "FMA peak", "read bandwidth"} <= set(results)
    assert all(len(r["samples_s"]) == 2 for r in results.values())
    assert "numpy⁽ᵖ⁾" in (tmp_path / "peers.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("wrong", [
    ["--only", "no-such-row"], ["--peers", "nobody"], ["--threads", "0"], ["--rounds", "0"], ["--isa", "mmx"],
    ["--only", "tiny/4x4x4", "--out", "/dev/null"],
], ids=" ".join)  # fmt: skip
def test_bad_options_are_refused(wrong: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        command.main(wrong, {})
    assert caught.value.code == 2


def _row(size: int = 64) -> Row:
    results = (
        Result(OURS, [1e-6, 2e-6, 3e-6]), Result(PEAK, [0.5e-6] * 3), Result("slow", [4e-6, 4e-6, 9e-6], python=True),
        Result("fast", [2e-6, 2e-6, 3e-6]), Result("broken", [], why="wrong result"),
    )  # fmt: skip
    return Row(Workload("square", size, size, size), results)


def test_ratios_are_to_the_best_peer() -> None:
    row = _row()
    assert [p.peer for p in row.peers] == ["fast", "slow"]
    assert row.ratio == 1.0
    assert row.ratio_best == 2.0
    assert row.of_peak == 0.25
    assert row.of_read is None
    assert "| 1.00 | 2.00 | 25% | – |" in line(row)
    assert "worst 1.00 (64x64x64)" in markdown([row], {})
    assert Row(row.workload, row.results[1:]).ratio is None


def test_the_picture_needs_matplotlib_and_squares(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    assert plot.plot([_row(64), _row(128)], tmp_path / "a.svg") == ""
    assert (tmp_path / "a.svg").read_text(encoding="utf-8").lstrip().startswith("<?xml")
    assert "square/" in plot.plot([], tmp_path / "b.svg")
    assert not (tmp_path / "b.svg").exists()


def test_without_the_peak_the_picture_shows_speeds(tmp_path: Path) -> None:
    """As with several threads."""
    pytest.importorskip("matplotlib")
    rows = [Row(r.workload, tuple(x for x in r.results if x.peer != PEAK)) for r in (_row(64), _row(128))]
    assert plot.plot(rows, tmp_path / "a.svg") == ""
    assert plot.SPEED in (tmp_path / "a.svg").read_text(encoding="utf-8")


def test_without_matplotlib_the_picture_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert "matplotlib" in plot.plot([_row(64)], tmp_path / "a.svg")
    assert not (tmp_path / "a.svg").exists()
