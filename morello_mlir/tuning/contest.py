"""A contest between schedules: timed in turns, and decided only where the times tell them apart.

Entrant 0 is the cost model's choice, and it enters twice: how far the two of it differ is what the machine's noise and
the order of calls do, and nobody wins by less. All comparisons are of times from the same round, so that a slow moment
hits both sides, and by signs, so that a few outliers count no more than others.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import comb

import numpy as np

from ..calibration.timing import QUANTILE, Repeating, repeats_for, sample

#: Rounds at most and at least, and the seconds after which no more rounds than the least are begun.
MOST_ROUNDS = 41
LEAST_ROUNDS = 11
BUDGET_SECONDS = 6.0
#: The seconds of one sample. Where time allows, the best of PASSES samples counts in a round: noise only ever adds.
SAMPLE_SECONDS = 0.0007
PASSES = 3
#: Nobody wins by less than this share, however quiet the machine is: what is that close will differ tomorrow.
LEAST_MARGIN = 0.01
#: Chance at which some schedule is preferred that is not faster, over all of the candidates together.
RISK = 0.05

#: Seconds per repetition of a call.
Sampler = Callable[[Repeating, int], float]


@dataclass(frozen=True, slots=True)
class Verdict:
    """winner: the number of an entrant; 0 where nobody is clearly faster than the model's choice.

    seconds: of each entrant. ratios: how long each takes relative to entrant 0, by round, the median. margin: the share
    by which a winner has to be faster.
    """

    winner: int
    seconds: tuple[float, ...]
    ratios: tuple[float, ...]
    margin: float


def run(
    calls: Sequence[Repeating], *, seed: int = 0, sampler: Sampler = sample, budget: float = BUDGET_SECONDS
) -> np.ndarray:
    """Seconds `[rounds, len(calls) + 1]` of all calls, in a new random order in every round; the last column is entrant
    0 again."""
    rng = random.Random(seed)
    entrants = [*calls, calls[0]]
    repeats = [repeats_for(call, SAMPLE_SECONDS, sampler) for call in calls]
    repeats.append(repeats[0])
    round_seconds = sum(sampler(call, r) * r for call, r in zip(entrants, repeats, strict=True))
    passes = PASSES if PASSES * LEAST_ROUNDS * round_seconds < budget else 1
    rows: list[list[float]] = []
    spent = 0.0
    while len(rows) < MOST_ROUNDS and (len(rows) < LEAST_ROUNDS or spent < budget):
        row = [float("inf")] * len(entrants)
        for _ in range(passes):
            for i in rng.sample(range(len(entrants)), len(entrants)):
                took = sampler(entrants[i], repeats[i])
                row[i] = min(row[i], took)
                spent += took * repeats[i]
        rows.append(row)
    return np.array(rows)


def decide(samples: np.ndarray) -> Verdict:
    """Who won, from the seconds that `run` gives.

    An entrant beats entrant 0 where the median of their ratios is below 1 - margin with confidence, by a sign test;
    of several that do, the one with the least median wins.
    """
    ratios = samples / samples[:, :1]
    low, high = _interval(ratios[:, -1], RISK / 2)
    margin = max(LEAST_MARGIN, 1 - low, high - 1)
    medians = np.median(ratios[:, :-1], axis=0)
    candidates = max(1, samples.shape[1] - 2)
    beaten = [i for i in range(1, samples.shape[1] - 1) if _interval(ratios[:, i], RISK / candidates)[1] < 1 - margin]
    winner = min(beaten, key=lambda i: float(medians[i]), default=0)
    seconds = np.quantile(samples[:, :-1], QUANTILE, axis=0)
    # The twin is another sample of entrant 0: its share of the evidence is in the margin alone.
    return Verdict(winner, tuple(map(float, seconds)), tuple(map(float, medians)), margin)


def _interval(values: np.ndarray, risk: float) -> tuple[float, float]:
    """Bounds of the median of what `values` are drawn from: each is wrong with a chance of at most `risk`, whatever
    the distribution is. Infinitely wide where there are too few values to say."""
    ordered, n = np.sort(values), len(values)
    # The median is above the (n-j)-th of n values where at most j signs are as they are: a binomial tail.
    tail, j = 0.0, -1
    while tail + comb(n, j + 1) / 2**n <= risk:
        j += 1
        tail += comb(n, j) / 2**n
    if j < 0:
        return 0.0, float("inf")
    return float(ordered[j]), float(ordered[n - 1 - j])
