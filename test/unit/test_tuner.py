"""The k cheapest schedules and their measurement: with a measurer that tests make up, and in the worker process."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from small_target import SMALL

import morello_mlir
from morello_mlir.errors import CompileError, InputError, SpecError
from morello_mlir.lowering.plan import Planner
from morello_mlir.memo.memo import Memo
from morello_mlir.memo.store import Store
from morello_mlir.memo.version import space_of
from morello_mlir.memo.winners import Winner, Winners
from morello_mlir.search.schedule import to_text
from morello_mlir.search.solve import Search, Solution
from morello_mlir.spec import matmul_spec
from morello_mlir.targets import get_target, this_host
from morello_mlir.tuning import contest, measure, tuner, worker
from morello_mlir.tuning.measure import Measured, measure_schedules
from morello_mlir.tuning.tuner import DEFAULT_CANDIDATES, Tuner, candidate_count, cheapest, check_measurable
from morello_mlir.tuning.worker import Job

SPEC = matmul_spec(4, 3, 8).canonical()
#: Few tables: no packing.
TINY = replace(SMALL, name="tiny", pack_rows=(), pack_vectors=())


class Stopwatch:
    """A measurer to which the schedule of number `fastest` is the fastest."""

    def __init__(self, fastest: int = 2, problem: Exception | None = None):
        self.fastest, self.problem = fastest, problem
        self.jobs: list[int] = []

    def __call__(self, goal, schedules, target, function):
        self.jobs.append(len(schedules))
        if self.problem is not None:
            raise self.problem
        winner = min(self.fastest, len(schedules) - 1)
        return Measured(winner, {i: 2e-6 - 1e-6 * (i == winner) for i in range(len(schedules))}, 0.5, 0.01)


def search_at(path: Path | None) -> Search:
    return Search(TINY, Memo(TINY, Store(path)) if path else None)


@lru_cache(maxsize=1)
def known() -> list[Solution]:
    return cheapest(search_at(None), SPEC, 8)


@pytest.fixture(autouse=True)
def _enumerated_once(monkeypatch):
    monkeypatch.setattr(tuner, "cheapest", lambda s, spec, n: known()[:n] if spec == SPEC else cheapest(s, spec, n))


# ---------------------------------------------------------------- the N cheapest


@pytest.mark.parametrize("count", [1, 2, 9])
def test_the_cheapest_have_rising_costs_and_different_code(count):
    search = search_at(None)
    found = cheapest(search, SPEC, count)
    assert found[0].schedule == search.solve(SPEC).schedule and len(found) == count
    assert [s.cost for s in found] == sorted(s.cost for s in found)
    planner = Planner(TINY)
    assert len({planner.plan(SPEC, s.schedule) for s in found}) == count


def test_a_small_space_has_fewer():
    assert 1 <= len(cheapest(search_at(None), matmul_spec(1, 1, 1), 10_000)) < 10_000


def test_without_measuring_nothing_is_measured_or_read(tmp_path):
    watch = Stopwatch()
    search = search_at(tmp_path / "memo.sqlite")
    assert Tuner(search, 4, measure=True, measurer=watch).solve(SPEC).solution.source == "measured"
    plain = Tuner(search_at(tmp_path / "memo.sqlite"), 4, measurer=watch).solve(SPEC)
    assert plain.solution.schedule == search_at(None).solve(SPEC).schedule and len(plain.candidates) == 4
    assert plain.winner is None and watch.jobs == [4]


@pytest.mark.parametrize("given, measuring, count", [(None, False, 1), (None, True, DEFAULT_CANDIDATES), (5, True, 5)])
def test_how_many(given, measuring, count):
    assert candidate_count(given, measuring) == count


@pytest.mark.parametrize("given", [0, -3])
def test_not_fewer_than_one(given):
    with pytest.raises(InputError, match=f"top-k must be at least 1, not {given}"):
        candidate_count(given, False)


@pytest.mark.parametrize("given", [2.5, "3", True, float("nan")])
def test_counts_are_integers(given):
    with pytest.raises(InputError, match="top-k must be an integer, not"):
        candidate_count(given, False)


# ---------------------------------------------------------------- winners


def test_the_fastest_is_taken_and_remembered(tmp_path):
    path, watch = tmp_path / "memo.sqlite", Stopwatch(fastest=2)
    first = Tuner(search_at(path), 4, measure=True, measurer=watch).solve(SPEC)
    assert first.solution.schedule == first.candidates[2].schedule and first.solution.source == "measured"
    assert "schedule 3 of 4 takes 1.00 us, the model's choice 2.00 us" in first.describe()
    again = Tuner(search_at(path), 4, measure=True, measurer=watch).solve(SPEC)
    assert again.solution.schedule == first.solution.schedule and again.solution.cost == first.solution.cost
    assert again.winner == first.winner and "(remembered)" in again.describe() and watch.jobs == [4]


def test_the_models_choice_is_remembered_too(tmp_path):
    path, watch = tmp_path / "memo.sqlite", Stopwatch(fastest=0)
    for _ in range(2):
        found = Tuner(search_at(path), 3, measure=True, measurer=watch).solve(SPEC)
        assert found.solution.schedule == search_at(None).solve(SPEC).schedule
        assert found.solution.source == "measured" and "the model's choice stays" in found.describe()
    assert watch.jobs == [3]


def test_more_candidates_are_measured_anew_and_fewer_are_not(tmp_path):
    path, watch = tmp_path / "memo.sqlite", Stopwatch()
    for count in (4, 6, 5, 2):
        Tuner(search_at(path), count, measure=True, measurer=watch).solve(SPEC)
    assert watch.jobs == [4, 6]


def test_without_a_file_the_process_remembers():
    search, watch = search_at(None), Stopwatch()
    for _ in range(2):
        Tuner(search, 4, measure=True, measurer=watch).solve(SPEC)
    assert watch.jobs == [4]


def test_another_machines_winner_is_not_taken(tmp_path):
    path, watch = tmp_path / "memo.sqlite", Stopwatch()
    other = to_text(cheapest(search_at(None), SPEC, 2)[1].schedule)
    Winners(Store(path)).put(Winner(space_of(TINY), "another machine", str(SPEC), "tiny", other, 1e-9, 1e-6, 99))
    Tuner(search_at(path), 4, measure=True, measurer=watch).solve(SPEC)
    assert watch.jobs == [4]


@pytest.mark.parametrize("text", ["kernel scalar", "to_accum\n?", "nonsense", "to_accum\ntile m by 64:\n    ?"])
def test_a_winner_that_is_not_legal_is_dropped_and_measured_again(tmp_path, caplog, text):
    path, watch = tmp_path / "memo.sqlite", Stopwatch()
    host = this_host().machine_key
    Winners(Store(path)).put(Winner(space_of(TINY), host, str(SPEC), "tiny", text, 1e-9, 1e-6, 99))
    found = Tuner(search_at(path), 4, measure=True, measurer=watch).solve(SPEC)
    assert watch.jobs == [4] and "dropped the winner" in caplog.text
    assert Winners(Store(path)).get(space_of(TINY), host, str(SPEC)) == found.winner


@pytest.mark.parametrize("problem", [CompileError("not measured: it crashed"), SpecError("it is packed")])
def test_what_cannot_be_measured_keeps_the_models_choice(tmp_path, problem):
    path = tmp_path / "memo.sqlite"
    found = Tuner(search_at(path), 4, measure=True, measurer=Stopwatch(problem=problem)).solve(SPEC)
    assert found.problem == str(problem) and found.winner is None
    assert found.solution.schedule == search_at(None).solve(SPEC).schedule and found.solution.source != "measured"
    assert list(Winners(Store(path)).rows()) == []


def test_one_schedule_is_not_measured():
    watch = Stopwatch()
    found = Tuner(search_at(None), 1, measure=True, measurer=watch).solve(SPEC)
    assert watch.jobs == [] and found.winner is None and len(found.candidates) == 1


def test_what_cannot_be_searched():
    with pytest.raises(SpecError, match="a size is 0"):
        Tuner(search_at(None), 4, measure=True, measurer=Stopwatch()).solve(matmul_spec(0, 1, 1))


def test_a_target_that_this_machine_cannot_run(monkeypatch):
    monkeypatch.setattr("morello_mlir.targets.missing_features", lambda target, host=None: ["avx512f"])
    with pytest.raises(InputError, match="nothing can be measured: this machine cannot run code for target 'avx512'"):
        check_measurable(get_target("avx512"))
    with pytest.raises(InputError, match="this machine cannot run code"):
        measure_schedules(SPEC, [search_at(None).solve(SPEC).schedule], get_target("avx512"))


# ---------------------------------------------------------------- the worker process


@pytest.fixture(scope="module")
def host_schedules():
    target = get_target("host")
    return [s.schedule for s in cheapest(Search(target), SPEC, 3)]


@pytest.fixture
def few_rounds(monkeypatch):
    monkeypatch.setattr(contest, "MOST_ROUNDS", contest.LEAST_ROUNDS)


def job_of(schedules) -> Job:
    return Job(str(SPEC), {i: to_text(s) for i, s in enumerate(schedules)}, get_target("host"))


def test_schedules_are_timed(host_schedules):
    found = measure_schedules(SPEC, host_schedules, get_target("host"))
    assert found.winner in range(3) and set(found.seconds) == {0, 1, 2} and found.problems == ()
    assert all(0 < s < 1 for s in found.seconds.values()) and found.margin >= 0.01


def test_equal_code_is_timed_once(few_rounds, host_schedules):
    best, other, _ = host_schedules
    told = []
    found = worker.measure(job_of([best, best, other, other]), told.append)
    assert found["numbers"] == [0, 2] and np.array(found["samples"]).shape == (contest.LEAST_ROUNDS, 3)
    assert told == [0, 1, 2, 3, None]
    assert worker.measure(job_of([best, best]), told.append) == {"numbers": [0], "samples": [], "wrong": []}


def test_wrong_results_leave_a_schedule_out(few_rounds, host_schedules, monkeypatch):
    verdicts = iter([True, False, True])
    monkeypatch.setattr(worker, "_right", lambda *args: next(verdicts))
    found = worker.measure(job_of(host_schedules), lambda number: None)
    assert found["numbers"] == [0, 2] and found["wrong"] == [1]


def test_what_stops_a_measurement(host_schedules, monkeypatch):
    forked = (
        "Matmul([1, 4, 4, 16], (f32, GL, row_major), (f32, GL, row_major), (f32, GL, row_major), parallel 2 forked)"
    )
    with pytest.raises(SpecError, match="only a whole goal"):
        worker.measure(replace(job_of(host_schedules), spec=forked), lambda number: None)
    monkeypatch.setattr(worker, "LONGEST_CALL", 0.0)
    with pytest.raises(CompileError, match="too long to be measured"):
        worker.measure(job_of(host_schedules), lambda number: None)
    monkeypatch.setattr(worker, "_right", lambda *args: False)
    with pytest.raises(CompileError, match="the cheapest schedule computes something else"):
        worker.measure(job_of(host_schedules), lambda number: None)


def times_of(numbers, wrong=()) -> str:
    samples = [[1.0, *[0.5] * (len(numbers) - 1), 1.0]] * 11
    return json.dumps({"times": {"numbers": list(numbers), "samples": samples, "wrong": list(wrong)}})


def with_worker(monkeypatch, schedules, answers: str) -> Measured:
    """Measures with a worker that does nothing but what `answers` says, given `numbers` and `say`."""
    program = (
        "import os, pickle, time\n"
        "numbers = list(pickle.load(sys.stdin.buffer).schedules)\n"
        "def say(line): print(line, flush=True)\n"
    )
    monkeypatch.setattr(measure, "PROGRAM", f"\n{program}{answers}")
    return measure_schedules(SPEC, schedules, get_target("host"))


#: A worker that ends in one way while it has the second schedule in hand.
SECOND = """
if 1 in numbers:
    say('{{"doing": 1}}')
    {action}
say('{{"doing": null}}')
say('{times}')
"""


@pytest.mark.parametrize(
    "action, message",
    [
        ("os.kill(os.getpid(), 11)", "crashed (SIGSEGV)"),
        ("os._exit(3)", "ended with status 3"),
    ],
)
def test_a_schedule_that_ends_the_worker_is_left_out(monkeypatch, host_schedules, action, message):
    found = with_worker(monkeypatch, host_schedules, SECOND.format(action=action, times=times_of([0, 2])))
    assert found.problems == (f"schedule 2 {message}",)
    assert found.winner == 2 and found.seconds == {0: 1.0, 2: 0.5} and found.ratio == 0.5


def test_silence_is_noticed(monkeypatch):
    monkeypatch.setattr(measure, "PATIENCE_SECONDS", 0.1)
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert list(measure._answers(process)) == [None]
    process.communicate(b"\n")


def test_a_schedule_that_hangs_is_left_out(monkeypatch, host_schedules):
    runs = iter([[{"doing": 1}, None], [json.loads(times_of([0, 2]))]])
    monkeypatch.setattr(measure, "_answers", lambda process: iter(next(runs)))
    found = measure_schedules(SPEC, host_schedules, get_target("host"))
    assert found.problems == ("schedule 2 did not end within 300 s",) and set(found.seconds) == {0, 2}


def test_wrong_schedules_and_chatter(monkeypatch, host_schedules):
    answers = f"say('Welcome to Python')\nsay('17')\nsay('{times_of([0, 1], wrong=[2])}')"
    found = with_worker(monkeypatch, host_schedules, answers)
    assert found.problems == ("schedule 3 computes something else than the Spec says",) and found.winner == 1


@pytest.mark.parametrize(
    "answers, message",
    [
        ("os.abort()", r"the process that measures crashed \(SIGABRT\)"),
        ("say('{\"doing\": 0}'); os.abort()", r"the process that measures crashed \(SIGABRT\)"),
        ('say(\'{"error": "out of memory"}\')', "not measured: out of memory"),
        ("raise SystemExit(3)", "the process that measures ended with status 3"),
        ("sys.stdout.write('{\"times\"')", "the process that measures ended with status 0"),
    ],
)
def test_when_nothing_is_measured(monkeypatch, host_schedules, answers, message):
    with pytest.raises(CompileError, match=message):
        with_worker(monkeypatch, host_schedules, answers)


def test_no_process_can_be_started(monkeypatch, host_schedules):
    monkeypatch.setattr(measure.sys, "executable", "/nowhere/python")
    with pytest.raises(CompileError, match="no process can be started"):
        measure_schedules(SPEC, host_schedules, get_target("host"))


def test_the_tuner_measures_by_default():
    assert Tuner(search_at(None), 2).measurer is measure_schedules


# ---------------------------------------------------------------- compile(), and determinism

PRODUCT = """
func.func @mm(%a: tensor<5x6xf32>, %b: tensor<6x7xf32>, %c: tensor<5x7xf32>) -> tensor<5x7xf32> {
  %r = linalg.matmul ins(%a, %b : tensor<5x6xf32>, tensor<6x7xf32>) outs(%c : tensor<5x7xf32>) -> tensor<5x7xf32>
  return %r : tensor<5x7xf32>
}
"""


def product(module):
    """What is reported of the one contraction; copies around it are nests."""
    (found,) = [s for s in module.specs if s["function"].startswith("Matmul")]
    return found


def test_compile_lists_alternatives():
    plain, listed = morello_mlir.compile(PRODUCT), morello_mlir.compile(PRODUCT, top_k=3)
    before, spec = product(plain), product(listed)
    assert before["alternatives"] is None and before["measured_s"] is None
    costs = [a["cost"] for a in spec["alternatives"]]
    assert len(costs) == 3 and costs == sorted(costs) and costs[0] == spec["cost"]
    assert spec["alternatives"][0]["schedule"] == spec["schedule"] == before["schedule"]


def test_compile_takes_the_winner_and_only_when_asked(monkeypatch, tmp_path):
    watch, memo = Stopwatch(fastest=3), tmp_path / "memo.sqlite"
    monkeypatch.setattr(tuner, "measure_schedules", watch)
    before = morello_mlir.compile(PRODUCT, memo=memo)
    module = morello_mlir.compile(PRODUCT, measure=True, memo=memo)
    spec = product(module)
    jobs = list(watch.jobs)
    assert jobs[0] == DEFAULT_CANDIDATES and spec["source"] == "measured" and spec["alternatives"] is None
    assert (spec["measured_s"], spec["model_s"]) == (1e-6, 2e-6)
    random = np.random.default_rng(0)
    a, b, c = (random.uniform(-1, 1, shape).astype(np.float32) for shape in ((5, 6), (6, 7), (5, 7)))
    np.testing.assert_allclose(module(a, b, c), a @ b + c, rtol=1e-5, atol=1e-5)
    again = product(morello_mlir.compile(PRODUCT, measure=True, memo=memo))
    assert again["schedule"] == spec["schedule"] and again["measured_s"] == 1e-6 and watch.jobs == jobs
    after = morello_mlir.compile(PRODUCT, memo=memo)
    assert product(after)["schedule"] == product(before)["schedule"] != spec["schedule"]


def test_compile_says_why_nothing_was_measured(monkeypatch):
    monkeypatch.setattr(tuner, "measure_schedules", Stopwatch(problem=CompileError("not measured: no clock")))
    module = morello_mlir.compile(PRODUCT, measure=True, top_k=2)
    assert module.specs[0]["source"] in ("search", "memo")
    assert any("warning: not measured: no clock; the cost model's choice is taken" in m for m in module.messages)


@pytest.mark.parametrize("options", [{"top_k": 0}, {"top_k": -1, "measure": True}])
def test_compile_refuses_counts_below_one(options):
    with pytest.raises(InputError, match="top-k must be at least 1"):
        morello_mlir.compile(PRODUCT, **options)


def test_compile_refuses_to_measure_for_another_machine(monkeypatch):
    monkeypatch.setattr("morello_mlir.targets.missing_features", lambda target, host=None: ["avx512f"])
    with pytest.raises(InputError, match="nothing can be measured"):
        morello_mlir.compile(PRODUCT, measure=True, target="avx512")


def test_too_many_candidates_are_refused():
    with pytest.raises(InputError, match="top-k must be at most 1000, not 1001"):
        candidate_count(1001, measure=False)
