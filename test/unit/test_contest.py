"""Contests between schedules, with clocks that tests wind: who wins, and that noise does not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from morello_mlir.tuning import contest
from morello_mlir.tuning.contest import LEAST_MARGIN, LEAST_ROUNDS, MOST_ROUNDS, PASSES, decide, run


def samples(rng: np.random.Generator, means, rounds: int = MOST_ROUNDS, noise: float = 0.01) -> np.ndarray:
    """Times of entrants with these means, as `run` gives them: noise of each sample, and of each round."""
    all_means = np.array([*means, means[0]])
    busy = 1 + rng.exponential(5 * noise, (rounds, 1))
    return all_means * busy * (1 + rng.exponential(noise, (rounds, len(all_means))))


def test_the_fastest_wins():
    verdict = decide(samples(np.random.default_rng(0), [1.0, 0.9, 0.8, 0.85, 1.1]))
    assert verdict.winner == 2 and LEAST_MARGIN <= verdict.margin < 0.1
    assert verdict.ratios[2] == pytest.approx(0.8, rel=0.03) and verdict.seconds[2] == pytest.approx(0.8, rel=0.1)
    assert len(verdict.seconds) == len(verdict.ratios) == 5


@pytest.mark.parametrize("faster", [0.0, 0.005])
def test_what_is_hardly_faster_does_not_win(faster):
    quiet = samples(np.random.default_rng(1), [1.0, 1 - faster, 1.0], noise=1e-5)
    verdict = decide(quiet)
    assert verdict.winner == 0 and verdict.margin == LEAST_MARGIN


def test_the_margin_grows_with_the_noise():
    rng = np.random.default_rng(2)
    quiet, loud = (decide(samples(rng, [1.0, 0.93], noise=noise)) for noise in (0.002, 0.3))
    assert quiet.winner == 1 and loud.winner == 0
    assert quiet.margin < 0.02 < loud.margin


def test_equal_schedules_hardly_ever_win():
    rng = np.random.default_rng(3)
    wins = sum(decide(samples(rng, [1.0] * 8, rounds=LEAST_ROUNDS, noise=0.05)).winner != 0 for _ in range(200))
    assert wins <= 0.05 * 200


def test_a_few_outliers_decide_nothing():
    times = np.ones((MOST_ROUNDS, 4))
    times[:, 1] = 0.9
    times[:5, 1] = 50.0
    times[5:9, 3] = 50.0
    assert decide(times).winner == 1


def test_too_few_rounds_decide_nothing():
    assert decide(np.tile([1.0, 0.5, 1.0], (3, 1))).winner == 0


@given(st.integers(1, 60), st.integers(0, 1 << 30), st.integers(2, 9))
def test_nobody_wins_without_being_faster_in_most_rounds(rounds, seed, entrants):
    times = np.random.default_rng(seed).uniform(0.5, 1.5, (rounds, entrants + 1))
    verdict = decide(times)
    if verdict.winner:
        assert np.median(times[:, verdict.winner] / times[:, 0]) < 1 - verdict.margin
    assert verdict.margin >= LEAST_MARGIN and verdict.ratios[0] == 1.0


@pytest.mark.parametrize("values, risk, bounds", [
    (range(1, 6), 1 / 32, (1, 5)),
    (range(1, 6), 6 / 32, (2, 4)),
    (range(1, 6), 0.03, (0, float("inf"))),
    (range(1, 12), 0.01, (2, 10)),
])  # fmt: skip
def test_bounds_of_the_median(values, risk, bounds):
    assert contest._interval(np.array(values, float), risk) == bounds


class Clock:
    """A sampler that needs no time: entrants have fixed seconds, and every call is noted."""

    def __init__(self, seconds):
        self.calls = [lambda times, s=s: None for s in seconds]
        self.seconds = dict(zip(self.calls, seconds, strict=True))
        self.order = []

    def __call__(self, call, repeats):
        self.order.append(self.calls.index(call))
        return self.seconds[call]


def test_rounds_are_interleaved_in_random_order():
    clock = Clock([1e-5, 2e-5, 3e-5])
    found = run(clock.calls, sampler=clock)
    assert found.shape == (MOST_ROUNDS, 4)
    assert (found == [1e-5, 2e-5, 3e-5, 1e-5]).all()
    turns = clock.order[-MOST_ROUNDS * PASSES * 4 :]
    passes = [tuple(turns[i : i + 4]) for i in range(0, len(turns), 4)]
    assert all(sorted(each) == [0, 0, 1, 2] for each in passes) and len(set(passes)) > 6


def test_the_order_is_the_same_every_time():
    first, second = Clock([1e-5, 2e-5]), Clock([1e-5, 2e-5])
    run(first.calls, sampler=first)
    run(second.calls, sampler=second)
    assert first.order == second.order


def test_long_calls_are_timed_less_often():
    clock = Clock([1.0, 1.0])
    assert run(clock.calls, sampler=clock).shape == (LEAST_ROUNDS, 3)
    # Once to see how long it takes, once more as a trial round, then once a round.
    assert len(clock.order) == 2 + 3 + 3 * LEAST_ROUNDS
