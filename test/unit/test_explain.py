"""Schedules explained: the numbers add up, the text is a schedule; and the command `morello explain`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from quantised_support import product

import morello_mlir
from morello_mlir.actions import key_of, multiply_adds
from morello_mlir.chains import ChainSpec, Stage
from morello_mlir.chains import schedule as chain_schedule
from morello_mlir.errors import InputError, ScheduleError
from morello_mlir.report import explained
from morello_mlir.search.explain import Packed, packed_ahead, steps
from morello_mlir.search.schedule import parse, to_text
from morello_mlir.search.solve import Search
from morello_mlir.search.steps import traffic
from morello_mlir.spec import Spec, matmul_spec
from morello_mlir.targets import COST_UNITS, CPUS, TARGETS, called, cpu_target, get_target
from morello_mlir.tools.main import main
from morello_mlir.tuning import tuner
from morello_mlir.tuning.measure import Measured

AVX2 = TARGETS["avx2"]
SPEC = matmul_spec(37, 24, 40)
TEXT = str(SPEC)


@pytest.fixture(scope="module")
def best():
    return Search(AVX2).solve(SPEC)


def test_targets_are_called_by_the_cpus_that_they_plan_for():
    zen = cpu_target("znver5", CPUS["znver5"])
    assert [called(t) for t in (zen, replace(zen, cpu=""), TARGETS["avx2"], TARGETS["avx512"])] == [
        "znver5", "znver5", "avx2", "avx512"
    ]  # fmt: skip
    assert called(replace(zen, cpu="", l3_bytes=12345)) == "avx512"


def test_runs_multiply_down_the_loops():
    root = steps(matmul_spec(8, 4, 8, accumulate=True), parse(LOOPS), AVX2)
    runs = {step.label: step.runs for step in root.walk()}
    assert runs["tile m by 4:"] == 1 and runs["tile n by 2:"] == 2 and runs["kernel scalar"] == 8


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
    text = explained(SPEC, best.schedule, AVX2).text(least=0)
    head, _, table = text.partition("\n\n")
    assert parse(table) == best.schedule
    assert head.startswith(TEXT) and f"{best.cycles:,.0f} cycles predicted" in head


def test_cheap_branches_are_cut(best):
    whole, cut = (explained(SPEC, best.schedule, AVX2).text(least) for least in (0, 101))
    assert "..." in cut and "..." not in whole and len(cut) < len(whole)


def test_the_share_of_the_peak(best):
    shown = explained(SPEC, best.schedule, AVX2)
    # Two multiply-adds of eight lanes a cycle.
    assert shown.peak_share == pytest.approx(SPEC.flops / 32 / best.cycles)
    assert (shown.flops, shown.bytes) == (2 * 37 * 24 * 40, 4 * (37 * 24 + 24 * 40 + 37 * 40))


@pytest.mark.parametrize(
    ("types", "target", "per_cycle"),
    [
        (("f32", "f32", "f32"), "avx2", 2 * 8),
        (("f64", "f64", "f64"), "avx2", 2 * 4),
        (("f32", "f32", "f32"), "znver5", 2 * 16),
        (("bf16", "bf16", "f32"), "znver5", 2 * 16 * 2),
        (("i8", "i8", "i32"), "znver5", 2 * 16 * 4),
    ],
)
def test_the_peak_is_that_of_the_fastest_instruction_for_the_types(types, target, per_cycle):
    assert multiply_adds(*_of_types(types, target)) == per_cycle


def test_the_peak_of_tile_registers_is_above_that_of_vectors():
    (key, wide), (_, narrow) = _of_types(("i8",) * 2 + ("i32",), "sapphirerapids"), _of_types(("f32",) * 3, "znver5")
    assert multiply_adds(key, wide) > 4 * multiply_adds(key, narrow)


def _of_types(types, target):
    operands = ", ".join(f"({dtype}, GL, row_major)" for dtype in types)
    machine = get_target(target)
    return key_of(Spec.parse(f"Matmul([1, 64, 64, 64], {operands}, serial)"), machine), machine


def test_illegal_schedules_are_refused():
    with pytest.raises(ScheduleError, match="tile m by 64"):
        explained(SPEC, parse("to_accum\ntile m by 64:\n  ?"), AVX2)


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


def test_chains(capfd, tmp_path: Path):
    first, second = matmul_spec(8, 4, 8), matmul_spec(8, 8, 4)
    chain = ChainSpec((Stage(first, ("x0", "x1")), Stage(second, ("t0", "x2")))).canonical()
    text = str(chain)
    assert run(text, "--plain") == 0
    schedule = capfd.readouterr().out
    assert not chain_schedule.has_hole(chain_schedule.parse(schedule))
    assert run(text) == 0
    out = capfd.readouterr().out
    head, _, table = out.partition("\n\n")
    assert head.startswith(text) and "cycles predicted" in head and "traffic: GL to L2" in head
    assert chain_schedule.parse(table) == chain_schedule.parse(schedule)
    file = tmp_path / "mine.txt"
    file.write_text(schedule)
    assert run(text, "--schedule", str(file), "--json") == 0
    (record,) = json.loads(capfd.readouterr().out)
    assert record["spec"] == text and record["source"] == "manual" and record["schedule"].strip() == schedule.strip()


def test_a_module_with_a_chain(capfd, tmp_path: Path):
    file = tmp_path / "m.mlir"
    file.write_text("""
      func.func @f(%a: tensor<8x4xf32>, %b: tensor<4x8xf32>, %c: tensor<8x4xf32>) -> tensor<8x4xf32> {
        %zero = arith.constant 0.0 : f32
        %e = tensor.empty() : tensor<8x8xf32>
        %t0 = linalg.fill ins(%zero : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
        %t = linalg.matmul ins(%a, %b : tensor<8x4xf32>, tensor<4x8xf32>) outs(%t0 : tensor<8x8xf32>) -> tensor<8x8xf32>
        %o = tensor.empty() : tensor<8x4xf32>
        %y0 = linalg.fill ins(%zero : f32) outs(%o : tensor<8x4xf32>) -> tensor<8x4xf32>
        %y = linalg.matmul ins(%t, %c : tensor<8x8xf32>, tensor<8x4xf32>) outs(%y0 : tensor<8x4xf32>) -> tensor<8x4xf32>
        return %y : tensor<8x4xf32>
      }""")
    assert run(str(file), "--threads", "1", "--json") == 0
    (record,) = json.loads(capfd.readouterr().out)
    assert record["spec"].startswith("Chain(") and record["cost"] > 0 and "stage 2:" in record["schedule"]
    assert run(str(file), "--threads", "1", "--shares") == 0
    assert "100.0%    1 x " in capfd.readouterr().out
    (spec,) = morello_mlir.compile(str(file), target="avx2", threads=1).specs
    assert spec["cost"] == record["cost"] and spec["schedule"] == record["schedule"]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("Matmul(",), 1, "cannot read the Spec"),
        (("no_such_file.mlir",), 2, "no_such_file.mlir"),
        (("m.mlir", "--schedule", "s.txt"), 2, "--schedule goes with a Spec"),
        ((TEXT, "--schedule", "no_such_file"), 2, "cannot open input file"),
        ((TEXT, "--schedule", "s.txt", "--top-k", "3"), 2, "nothing to choose for --top-k"),
        ((TEXT, "--top-k", "0"), 2, "top-k must be at least 1, not 0"),
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


def test_the_cheapest_are_listed(capfd, best):
    assert run(TEXT, "--top-k", "3", "--json") == 0
    (record,) = json.loads(capfd.readouterr().out)
    costs = [a["cost"] for a in record["alternatives"]]
    assert len(costs) == 3 and costs == sorted(costs) and costs[0] == best.cost
    assert parse(record["alternatives"][0]["schedule"]) == best.schedule == parse(record["schedule"])
    assert run(TEXT, "--top-k", "3") == 0
    out = capfd.readouterr().out
    assert out.count("cycles predicted") == 4 and "\nschedule 3: " in out and "measured" not in out
    assert run(TEXT, "--top-k", "3", "--plain") == 0
    found = capfd.readouterr().out.split("\n\n")
    assert [text.splitlines()[0][:14] for text in found] == [f"// schedule {i}:" for i in (1, 2, 3)]
    assert parse(found[0]) == best.schedule and parse(found[2]) != best.schedule


def test_the_fastest_is_explained(capfd, monkeypatch):
    def fake(goal, schedules, target, function):
        return Measured(1, {0: 3e-6, 1: 2e-6}, 0.7, 0.02, ("schedule 3 crashed (SIGSEGV)",))

    monkeypatch.setattr(tuner, "measure_schedules", fake)
    assert run(TEXT, "--measure", "--top-k", "3") == 0
    out, err = capfd.readouterr()
    assert "measured: schedule 2 of 3 takes 2.00 us, the model's choice 3.00 us; to win" in out
    assert "schedule 2: " in out and ", 2.00 us\n" in out and ", not timed\n" in out
    assert "warning: Matmul([1, 37, 24, 40]" in err and "schedule 3 crashed" in err


def test_measuring_for_another_machine(capfd, monkeypatch):
    monkeypatch.setattr("morello_mlir.targets.missing_features", lambda target, host=None: ["avx2"])
    assert run(TEXT, "--measure") == 2
    assert "nothing can be measured: this machine cannot run code for target 'avx2'" in capfd.readouterr().err


def test_what_is_packed_ahead_is_said_with_its_bytes():
    spec = matmul_spec(4, 32, 40, rhs="col_major", const=("rhs",))
    node = parse(
        "to_accum\npack_ahead rhs as [b, n/16, k, n%16]\nmove lhs to L2\nmove rhs to L2\nmove out to L2\n"
        "tile n by 16:\n  kernel scalar\nrest:\n  kernel scalar"
    )
    assert packed_ahead(spec, node) == [Packed("rhs", "[b, n/16, k, n%16]", 48 * 32 * 4)]
    said = "packed ahead, in the first call: rhs as [b, n/16, k, n%16], 6.14 kB"
    assert said in explained(spec, node, AVX2).text()


def test_what_is_packed_ahead_in_another_type_has_the_bytes_of_that():
    text = "Matmul([1, 4, 32, 40], (bf16, GL, row_major), (bf16, GL, row_major, const), (f32, GL, row_major), serial)"
    node = parse("to_accum\npack_ahead rhs as [b, n/16, k, n%16] f32\n?")
    assert packed_ahead(Spec.parse(text), node) == [Packed("rhs", "[b, n/16, k, n%16] f32", 48 * 32 * 4)]


def test_shares_of_a_module(tmp_path, capfd):
    path = tmp_path / "two.mlir"
    path.write_text(
        """
func.func @f(%a: tensor<32x32xf32>, %b: tensor<32x32xf32>, %k: tensor<3xf32>, %x: tensor<9xf32>, %y: tensor<7xf32>)
    -> (tensor<32x32xf32>, tensor<32x32xf32>, tensor<7xf32>) {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<32x32xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<32x32xf32>) -> tensor<32x32xf32>
  %p = linalg.matmul ins(%a, %b : tensor<32x32xf32>, tensor<32x32xf32>) outs(%i : tensor<32x32xf32>)
    -> tensor<32x32xf32>
  %q = linalg.matmul ins(%b, %a : tensor<32x32xf32>, tensor<32x32xf32>) outs(%i : tensor<32x32xf32>)
    -> tensor<32x32xf32>
  %c = linalg.conv_1d ins(%x, %k : tensor<9xf32>, tensor<3xf32>) outs(%y : tensor<7xf32>) -> tensor<7xf32>
  return %p, %q, %c : tensor<32x32xf32>, tensor<32x32xf32>, tensor<7xf32>
}
""",
        encoding="utf-8",
    )
    assert run(str(path), "--shares", "--threads", "1") == 0
    lines = capfd.readouterr().out.splitlines()
    assert lines[0].endswith(" cycles predicted in all")
    assert lines[1].startswith("traffic: GL to L2 ")
    assert any("2 x" in line and "Matmul([1, 32, 32, 32]" in line for line in lines)
    assert sum(float(line.partition("%")[0]) for line in lines[2:-1]) == pytest.approx(100, abs=0.5)
    assert lines[-1].startswith("left to upstream: ")
    shares = lines
    assert run(str(path), "--threads", "1") == 0
    goals, _, whole = capfd.readouterr().out.rpartition("\n\n")
    assert whole.splitlines() == shares
    assert goals.count("kernel ") >= len(lines) - 3 and "called 2 times, each: " in goals


def test_what_the_first_call_does_besides_is_no_share_of_the_whole(tmp_path, capfd):
    """Sums of a weight's columns, and its panels."""
    path, page = tmp_path / "quantized.mlir", tmp_path / "page.html"
    path.write_text(product(6, 40, 33, (4, 0), mark="{morello.constant}"), encoding="utf-8")
    assert run(str(path), "--threads", "1") == 0
    text = capfd.readouterr().out
    own, sums, whole = text.split("\n\n")[::2]
    assert "packed ahead, in the first call: rhs as " in own and "called" not in own
    assert ": called once, in the first call only: " in sums
    lines = whole.splitlines()
    assert lines[2].startswith("100.0%    1 x ") and lines[3].startswith("  once    1 x ")
    assert lines[4].startswith("in the first call only: ") and lines[4].endswith(", constants of 1 goal packed")
    assert run(str(path), "--threads", "1", "--json") == 0
    records = json.loads(capfd.readouterr().out)
    assert [(r["calls"], r["once"]) for r in records] == [(1, 0), (0, 1)]
    assert lines[0] == f"{records[0]['cycles']:,.0f} cycles predicted in all"
    assert lines[4].startswith(f"in the first call only: {records[1]['cycles']:,.0f} cycles predicted")
    assert run(str(path), "--threads", "1", "--html", str(page), "--clock", "3") == 0
    shown = page.read_text(encoding="utf-8")
    assert ">Called once, in the first call only.<" in shown and ">1 once<" in shown and lines[4] in shown
