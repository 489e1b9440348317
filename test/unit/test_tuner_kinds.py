"""Nests, chains and windows: their schedules are compared, and the fastest remembered, as those of contractions are."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conv_support import CONV

import morello_mlir
from morello_mlir.errors import CompileError, SpecError
from morello_mlir.memo.answers import answer_space
from morello_mlir.memo.manage import statistics, verify
from morello_mlir.memo.memo import Memo
from morello_mlir.memo.store import Store
from morello_mlir.memo.winners import Winner, Winners
from morello_mlir.search.solve import Search
from morello_mlir.targets import TARGETS, get_target, this_host
from morello_mlir.tools import _cli, _goals, _progress
from morello_mlir.tuning import alone, contest, progress, tuner, worker
from morello_mlir.tuning.kinds import check_winner, kind_of, parse_goal, schedule_text
from morello_mlir.tuning.measure import Measured, measure_schedules
from morello_mlir.tuning.tuner import Tuner, cheapest
from morello_mlir.tuning.worker import Job

pytestmark = pytest.mark.isa("avx2")

HOST = get_target("host")
ROW = "(f32, GL, row_major)"
HELD = "(f32, GL, [84, 12, 1])"
SOFTMAX = '"m = max(x0); e = exp(sub(x0, m)); s = sum(e); y = div(e, s)"'
NEST = f"Softmax([5, 300 scan], (f32, GL, [300, 1]), (f32, GL, [300, 1]), {SOFTMAX}, serial)"
CHAIN = (
    f"Chain(t0 = Matmul([2, 7, 4, 12], {ROW}, (f32, GL, [b, n, k]), {ROW}, serial) of x0, x1 | "
    f"t1 = Softmax([2, 7, 12 scan], {HELD}, {HELD}, {SOFTMAX}, serial) of t0 | "
    f"y = Matmul([2, 7, 12, 6], {ROW}, {ROW}, {ROW}, serial) of t1, x2, serial)"
)


class Stopwatch:
    """A measurer to which the last schedule is the fastest."""

    def __init__(self) -> None:
        self.jobs: list[tuple[str, int, bool]] = []

    def __call__(self, goal, schedules, target, function):
        self.jobs.append((str(goal), len(schedules), bool(function)))
        last = len(schedules) - 1
        return Measured(last, {i: 2e-6 - 1e-6 * (i == last) for i in range(len(schedules))}, 0.5, 0.01)


def search_at(path: Path) -> Search:
    return Search(HOST, Memo(HOST, Store(path)))


@pytest.fixture
def few_rounds(monkeypatch):
    monkeypatch.setattr(contest, "MOST_ROUNDS", contest.LEAST_ROUNDS)


def window(tmp_path: Path) -> _goals.Asked:
    path = tmp_path / "conv.mlir"
    path.write_text(CONV)
    (asked,) = _goals.lifted(str(path), HOST, 1, _cli.Notebook()).goals
    return asked


# ---------------------------------------------------------------- candidates and winners


@pytest.mark.parametrize("text", [NEST, CHAIN], ids=["nest", "chain"])
def test_the_cheapest_of_any_kind(text, tmp_path):
    goal, search = parse_goal(text), Search(HOST)
    found = cheapest(search, goal, 5)
    best = kind_of(goal, search).solve(goal)
    assert found[0].schedule == best.schedule and len(found) == 5
    assert [s.cost for s in found] == sorted(s.cost for s in found)
    assert len({schedule_text(goal, s.schedule) for s in found}) == 5
    remembered = search_at(tmp_path / "memo.sqlite")
    kind_of(goal, remembered).solve(goal)
    again = search_at(tmp_path / "memo.sqlite")
    assert [s.schedule for s in cheapest(again, goal, 5)] == [s.schedule for s in found]


@pytest.mark.parametrize("text", [NEST, CHAIN], ids=["nest", "chain"])
def test_winners_are_remembered(text, tmp_path):
    path, watch, goal = tmp_path / "memo.sqlite", Stopwatch(), parse_goal(text)
    first = Tuner(search_at(path), 4, measure=True, measurer=watch).solve(goal)
    assert first.solution.source == "measured" and first.solution.schedule == first.candidates[3].schedule
    again = Tuner(search_at(path), 3, measure=True, measurer=watch).solve(goal)
    assert again.solution.schedule == first.solution.schedule and again.solution.cost == first.solution.cost
    assert len(watch.jobs) == 1 and "(remembered)" in again.describe()
    plain = Tuner(search_at(path), 1).solve(goal)
    assert plain.solution.schedule == first.candidates[0].schedule and plain.winner is None
    assert verify(Store(path), 0, check=check_winner).winners == 1
    assert statistics(Store(path))["winners"] == {"all": 1, "usable": 1, "faster": 1}


@pytest.mark.parametrize("schedule", ["?", "nonsense", "rows vector d7:\n    pass y"])
@pytest.mark.parametrize("text", [NEST, CHAIN], ids=["nest", "chain"])
def test_winners_that_are_not_legal_are_dropped(text, schedule, tmp_path, caplog):
    goal, path, watch = parse_goal(text), tmp_path / "memo.sqlite", Stopwatch()
    name = str(kind_of(goal, search_at(path)).goal(goal))
    bad = Winner(answer_space(HOST), this_host().machine_key, name, HOST.name, schedule, 1e-9, 1e-6, 99)
    Winners(Store(path)).put(bad)
    assert verify(Store(path), 0, check=check_winner).winners == 0
    Winners(Store(path)).put(bad)
    Tuner(search_at(path), 2, measure=True, measurer=watch).solve(goal)
    assert len(watch.jobs) == 1 and "dropped the winner" in caplog.text


def test_windows_are_measured_by_their_function(tmp_path):
    asked, watch = window(tmp_path), Stopwatch()
    found = Tuner(search_at(tmp_path / "memo.sqlite"), 3, measure=True, measurer=watch).solve(
        asked.spec, asked.function
    )
    assert watch.jobs == [(str(asked.spec), 3, True)]
    assert found.winner is not None and found.winner.space == answer_space(HOST)


# ---------------------------------------------------------------- the worker


def job(goal, count: int, function: str = "") -> Job:
    found = cheapest(Search(HOST), goal, count)
    return Job(str(found[0].spec), {i: schedule_text(goal, s.schedule) for i, s in enumerate(found)}, HOST, function)


@pytest.mark.parametrize("text", [NEST, CHAIN], ids=["nest", "chain"])
def test_schedules_are_timed(text, few_rounds):
    told = []
    found = worker.measure(job(parse_goal(text), 3), told.append)
    assert found["numbers"] == [0, 1, 2] and found["wrong"] == [] and told == [0, 1, 2, None]
    assert np.array(found["samples"]).shape == (contest.LEAST_ROUNDS, 4)


def test_windows_are_timed(few_rounds, tmp_path):
    asked = window(tmp_path)
    found = worker.measure(job(asked.spec, 3, asked.function), lambda number: None)
    assert found["numbers"][0] == 0 and len(found["numbers"]) > 1 and found["wrong"] == []
    with pytest.raises(SpecError, match="where the places of a window lie"):
        worker.measure(job(asked.spec, 2), lambda number: None)


def test_equal_code_is_timed_once(few_rounds):
    one = job(parse_goal(NEST), 1)
    twice = Job(one.spec, {0: one.schedules[0], 1: one.schedules[0]}, HOST)
    assert worker.measure(twice, lambda number: None) == {"numbers": [0], "samples": [], "wrong": []}


def test_wrong_results_leave_a_schedule_out(few_rounds, monkeypatch):
    verdicts = iter([True, False, True])
    monkeypatch.setattr(alone.Operands, "is_right", lambda self, call: next(verdicts))
    found = worker.measure(job(parse_goal(NEST), 3), lambda number: None)
    assert found["numbers"] == [0, 2] and found["wrong"] == [1]


def test_what_takes_too_long(monkeypatch):
    monkeypatch.setattr(worker, "LONGEST_CALL", 0.0)
    with pytest.raises(CompileError, match="too long to be measured"):
        worker.measure(job(parse_goal(NEST), 2), lambda number: None)


def test_a_target_without_a_name():
    with pytest.raises(SpecError, match="programs cannot be compiled for"):
        alone.name_of(replace(TARGETS["avx2"], registers=12))


def test_in_place_goals_start_from_the_same_values():
    """What is added up over and over would grow without end."""
    module = morello_mlir.compile("func.func @f(%x: memref<8xf32>) { return }", optimize=False)
    operands = alone.Operands(module.functions["f"].signature)
    (array,) = operands.arrays

    def triple() -> None:
        array[...] *= 3

    assert operands.is_right(triple) and operands.is_right(triple)
    operands.sampler()(lambda times: [triple() for _ in range(times)], 2)
    np.testing.assert_allclose(array, operands.before[0] * 9, rtol=1e-6)


@pytest.mark.parametrize(
    "got, want, same",
    [
        ([1.0, np.nan, np.inf], [1.0, np.nan, np.inf], True),
        ([1.0, 2.0, 1.00001], [1.0, 2.0, 1.0], True),
        ([1.0, np.nan, 3.0], [1.0, 2.0, 3.0], False),
        ([1.0, 2.0, 3.1], [1.0, 2.0, 3.0], False),
    ],
)
def test_which_results_are_the_same(got, want, same):
    assert alone._is_close(np.float32(got), np.float32(want)) == same


def test_in_a_process_of_its_own():
    goal = parse_goal(NEST)
    schedules = [s.schedule for s in cheapest(Search(HOST), goal, 3)]
    found = measure_schedules(goal, schedules, HOST)
    assert set(found.seconds) == {0, 1, 2} and all(0 < s < 1 for s in found.seconds.values()) and not found.problems


# ---------------------------------------------------------------- compile()


def test_compile_takes_winners_of_all_kinds(monkeypatch, tmp_path):
    watch, memo = Stopwatch(), tmp_path / "memo.sqlite"
    monkeypatch.setattr(tuner, "measure_schedules", watch)
    text = """
func.func @f(%x: tensor<6x40xf32>) -> tensor<6x40xf32> {
  %e = tensor.empty() : tensor<6x40xf32>
  %r = linalg.softmax dimension(1) ins(%x : tensor<6x40xf32>) outs(%e : tensor<6x40xf32>) -> tensor<6x40xf32>
  return %r : tensor<6x40xf32>
}
"""
    module = morello_mlir.compile(text, measure=True, top_k=4, threads=1, memo=memo)
    (spec,) = module.specs
    assert spec["source"] == "measured" and (spec["measured_s"], spec["model_s"]) == (1e-6, 2e-6)
    assert [j[1:] for j in watch.jobs] == [(4, True)]
    x = np.random.default_rng(0).standard_normal((6, 40)).astype(np.float32)
    e = np.exp(x - x.max(-1, keepdims=True))
    np.testing.assert_allclose(module(x), e / e.sum(-1, keepdims=True), rtol=1e-5)
    listed = morello_mlir.compile(text, top_k=4, threads=1, memo=memo)
    (plain,) = listed.specs
    assert len(plain["alternatives"]) == 4 and plain["alternatives"][-1]["schedule"] == spec["schedule"]
    assert plain["schedule"] == plain["alternatives"][0]["schedule"] and len(watch.jobs) == 1


# ---------------------------------------------------------------- what is said meanwhile


class Told(list):
    def begin(self, goal):
        self.append(goal)

    def stage(self, what, at, of):
        self.append((what, at, of))

    def end(self):
        self.append("end")


def test_who_listens_is_told(few_rounds):
    goal = parse_goal(NEST)
    with progress.listening(told := Told()):
        Tuner(Search(HOST), 2, measure=True).solve(goal)
    assert told[0].startswith("Softmax(") and told[-1] == "end"
    assert told[1:-1] == [("compiling", 0, 2), ("compiling", 1, 2), ("timing", 2, 2)]
    Tuner(Search(HOST), 2).solve(goal)
    assert len(told) == 5


def test_lines_and_bars(capfd, monkeypatch):
    with _progress.measuring(), progress.reporting("Goal(1)"):
        progress.stage("timing", 1, 2)
    with _progress.measuring(asked=False), progress.reporting("Goal(2)"):
        pass
    with _progress.counting("timing", 2) as say:
        say("a")
    assert capfd.readouterr().err == "measuring Goal(1)\ntiming a\n"
    monkeypatch.setattr(_progress, "PACE", 0.01)
    done = iter(range(1000))
    with _progress.now_and_then(lambda: f"{next(done)} of 1000"):
        time.sleep(0.2)
    first, second, *_ = capfd.readouterr().err.splitlines()
    assert (first, second) == ("0 of 1000, 0 s", "1 of 1000, 0 s")
    monkeypatch.setattr(_progress.sys.stderr, "isatty", lambda: True, raising=False)
    with _progress.measuring(), progress.reporting("Goal [3]"):
        progress.stage("timing", 1, 2)
    with _progress.counting("timing", 1) as say:
        say("b")
