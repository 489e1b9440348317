"""Timing on a machine that others use too: samples of at least half a millisecond, taken in turns, the best of many."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import numpy as np

#: Shorter samples misread the clock.
LEAST_SECONDS = 0.0005
#: Which quantile of the samples counts. Noise only ever adds (a busy core, a neighbour in the shared cache, a low
#: clock); of 25 samples this is about the second best, which repeats far better than the median.
QUANTILE = 0.05

#: Does something a number of times.
Repeating = Callable[[int], None]


def sample(call: Repeating, repeats: int) -> float:
    """Seconds per repetition."""
    start = time.perf_counter()
    call(repeats)
    return (time.perf_counter() - start) / repeats


def repeats_for(call: Repeating, seconds: float, sampler: Callable[[Repeating, int], float] = sample) -> int:
    """How many repetitions last about `seconds`. Warms up on the way. sampler: seconds per repetition of a call."""
    repeats = 1
    while True:
        took = sampler(call, repeats) * repeats
        if took >= seconds / 2 or repeats >= 1 << 24:
            return max(1, round(repeats * seconds / max(took, 1e-9)))
        repeats *= 4


def in_turns(calls: Mapping[str, Repeating], rounds: int, seconds: float) -> dict[str, float]:
    """Seconds per repetition of each call: a busy moment hits all of them alike."""
    repeats = {name: repeats_for(call, max(seconds, LEAST_SECONDS)) for name, call in calls.items()}
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            samples[name].append(sample(call, repeats[name]))
    return {name: float(np.quantile(values, QUANTILE)) for name, values in samples.items()}
