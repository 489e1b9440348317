"""Timing a call."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

_ROUNDS = 15
_ROUND_SECONDS = 0.02
_TOTAL_SECONDS = 3.0


def measure(call: Callable[[], Any], flops: int | None) -> dict[str, Any]:
    """Time `call`, warm, in several rounds of enough calls to outlast the clock's grain.

    Returns median_s and min_s of one call over the rounds, rounds, and gflops (from the median; None without `flops`).
    """
    call()
    started = time.perf_counter()
    call()
    once = max(time.perf_counter() - started, 1e-7)
    number = max(1, round(_ROUND_SECONDS / once))
    seconds: list[float] = []
    begin = time.perf_counter()
    while len(seconds) < 3 or (len(seconds) < _ROUNDS and time.perf_counter() - begin < _TOTAL_SECONDS):
        started = time.perf_counter()
        for _ in range(number):
            call()
        seconds.append((time.perf_counter() - started) / number)
    median = statistics.median(seconds)
    gflops = flops / median / 1e9 if flops else None
    return {"median_s": median, "min_s": min(seconds), "rounds": len(seconds), "gflops": gflops}
