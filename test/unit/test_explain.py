"""Schedules explained: the numbers add up, the text is a schedule; and the command `morello explain`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from morello_mlir.errors import InputError, ScheduleError
from morello_mlir.search.explain import explain, peak_share, steps, traffic
from morello_mlir.search.schedule import parse, to_text
from morello_mlir.search.solve import Search
from morello_mlir.spec import Spec, matmul_spec
from morello_mlir.targets import COST_UNITS, TARGETS, get_target
from morello_mlir.tools.main import main

AVX2 = TARGETS["avx2"]
SPEC = matmul_spec(37, 24, 40)
TEXT = str(SPEC)


@pytest.fixture(scope="module")
def best():
    return Search(AVX2).solve(SPEC)


def test_the_steps_add_up_to_the_cost(best):
    root = steps(SPEC.canonical(), best.schedule, AVX2)
    assert root.total == best.cost == sum(step.own for step in root.walk())
    for step in root.walk():
        assert step.total == step.own + sum(below.total for below in step.below)


def test_runs_multiply_down_the_loops():
    root = steps(matmul_spec(8, 4, 8, accumulate=True), parse(LOOPS), AVX2)
    runs = {step.label: step.runs for step in root.walk()}
    assert runs["tile m by 4"] == 1 and runs["tile n by 2"] == 2 and runs["kernel scalar"] == 8


LOOPS = """
move lhs to L2
move rhs to L2
move out to L2
tile m by 4:
    tile n by 2:
        kernel scalar
"""


def test_the_output_moves_both_ways():
    root = steps(matmul_spec(8, 4, 8, accumulate=True), parse(LOOPS), AVX2)
    moved = traffic(root)
    # Rows of 16, 32 and 32 bytes take a line each.
    assert moved["GL", "L2"] == 64 * (8 + 4 + 8) and moved["L2", "GL"] == 64 * 8
    assert list(moved) == [("GL", "L2"), ("L2", "GL"), ("L2", "L1")]


def test_the_text_is_the_schedule(best):
    text = explain(SPEC, best.schedule, AVX2, least=0)
    head, _, table = text.partition("\n\n")
    assert parse(table) == best.schedule
    assert head.startswith(TEXT) and f"{best.cycles:,.0f} cycles predicted" in head


def test_cheap_branches_are_cut(best):
    whole, cut = (explain(SPEC, best.schedule, AVX2, least=least) for least in (0, 101))
    assert "..." in cut and "..." not in whole and len(cut) < len(whole)


def test_the_share_of_the_peak():
    assert peak_share(SPEC, SPEC.flops / 32, AVX2) == 1.0
    assert peak_share(SPEC, 0, AVX2) == 0.0


def test_illegal_schedules_are_refused():
    with pytest.raises(ScheduleError, match="tile m by 64"):
        explain(SPEC, parse("to_accum\ntile m by 64:\n  ?"), AVX2)


# ---------------------------------------------------------------- the command


def run(*arguments: str) -> int:
    return main(["explain", *arguments, "--target", "avx2"])


def test_a_spec_as_text(capfd, best):
    assert run(TEXT, "--plain") == 0
    assert parse(capfd.readouterr().out) == best.schedule


def test_json(capfd, best):
    assert run(TEXT, "--json") == 0
    (record,) = json.loads(capfd.readouterr().out)
    assert (record["spec"], record["cost"], record["target"]) == (TEXT, best.cost, "avx2")
    assert record["cycles"] * COST_UNITS == record["cost"] and Spec.parse(record["spec"]) == SPEC


def test_a_schedule_of_ones_own(capfd, tmp_path: Path, best):
    file = tmp_path / "mine.txt"
    file.write_text("to_accum\ntile m by 12:\n    ?\nrest:\n    ?\n")
    assert run(TEXT, "--schedule", str(file), "--json") == 0
    (record,) = json.loads(capfd.readouterr().out)
    assert record["source"] == "manual" and record["cost"] >= best.cost
    assert to_text(parse(record["schedule"])).startswith("to_accum\ntile m by 12:")


def test_a_module(capfd, tmp_path: Path):
    file = tmp_path / "m.mlir"
    file.write_text("""
      func.func @f(%a: memref<37x24xf32>, %b: memref<24x40xf32>, %c: memref<37x40xf32>) {
        linalg.matmul ins(%a, %b : memref<37x24xf32>, memref<24x40xf32>) outs(%c : memref<37x40xf32>)
        return
      }""")
    assert run(str(file)) == 0
    out = capfd.readouterr().out
    assert out.startswith("MatmulAccum([1, 37, 24, 40]") and "kernel broadcast_fma" in out


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("Matmul(",), 1, "cannot read the Spec"),
        (("no_such_file.mlir",), 2, "no_such_file.mlir"),
        (("m.mlir", "--schedule", "s.txt"), 2, "--schedule goes with a Spec"),
        ((TEXT, "--schedule", "no_such_file"), 2, "cannot open input file"),
    ],
)
def test_unusable_input(capfd, arguments, status, message):
    assert run(*arguments) == status
    assert message in capfd.readouterr().err


def test_an_illegal_schedule_names_the_step(capfd, tmp_path: Path):
    file = tmp_path / "mine.txt"
    file.write_text("to_accum\ntile m by 64:\n    ?\n")
    assert run(TEXT, "--schedule", str(file)) == 1
    assert "tile m by 64: the size must be less than m=37" in capfd.readouterr().err


def test_the_environment_names_the_host(monkeypatch):
    monkeypatch.setenv("MORELLO_TARGET", "avx2")
    assert get_target("host") is get_target("avx2")
    monkeypatch.setenv("MORELLO_TARGET", "z80")
    with pytest.raises(InputError, match="unknown target 'z80'"):
        get_target("host")
