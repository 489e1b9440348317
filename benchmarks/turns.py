"""Samples of several libraries in turns, each in a process of its own that is stopped while the others run: of the
families whose modules have WORKLOADS (with labels), LIBRARIES, and `build(workload, library, threads, target)`, which
gives a call, or None where the library has nothing for it.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from .peers.driver import PREPARE_LIMIT, SAMPLE_LIMIT, Process

#: Seconds that a sample lasts at least.
SAMPLE = 0.01
#: Seconds of calls before each sample: others had the core and its caches.
WARM_UP = 0.002


class Library(Process):
    """A library's process for one family."""

    def __init__(self, family: str, name: str, threads: int, target: str, log: Path | None = None):
        super().__init__(
            ["benchmarks.turns", family, name, str(threads), target], threads, self._settings(threads), log
        )
        self.name = name

    @staticmethod
    def _settings(threads: int) -> dict[str, str]:
        flags = {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"} if threads == 1 else {}
        return {"JAX_PLATFORMS": "cpu", **flags}


def measure(
    family: str, labels: Sequence[str], threads: int, target: str, rounds: int
) -> Iterator[tuple[str, dict[str, float]]]:
    """By row: its label, and seconds per call of each library that has it, the median of the rounds."""
    names = importlib.import_module(f"benchmarks.{family}").LIBRARIES
    log = os.environ.get("MORELLO_BENCHMARK_LOG")
    libraries = [Library(family, name, threads, target, Path(log) if log else None) for name in names]
    try:
        for label in labels:
            answers = {lib: lib.ask(PREPARE_LIMIT, do="prepare", label=label) for lib in libraries}
            for lib, answer in answers.items():
                if answer.get("why"):
                    print(f"{lib.name}, {label}: {answer['why']}", file=sys.stderr)
            samples: dict[str, list[float]] = {lib.name: [] for lib, answer in answers.items() if answer["ok"]}
            for _ in range(rounds):
                for lib in libraries:
                    if lib.name in samples:
                        samples[lib.name].append(lib.ask(SAMPLE_LIMIT, do="sample").get("seconds", math.nan))
            yield label, {name: statistics.median(times) for name, times in samples.items()}
    finally:
        for lib in libraries:
            lib.close()


class Worker:
    """What a library's process does."""

    def __init__(self, family: str, name: str, threads: int, target: str):
        self.family, self.name, self.threads, self.target = family, name, threads, target
        self.call: Callable[[], Any] = lambda: None
        self.repeats = 1

    def answer(self, command: dict[str, Any]) -> dict[str, Any]:
        return self.prepare(command["label"]) if command["do"] == "prepare" else self.sample()

    def prepare(self, label: str) -> dict[str, Any]:
        module = importlib.import_module(f"benchmarks.{self.family}")
        workload = next(w for w in module.WORKLOADS if w.label == label)
        call = module.build(workload, self.name, self.threads, self.target)
        if call is None:
            return {"ok": False, "why": ""}
        self.call = call
        call()
        start, count = time.perf_counter(), 0
        while (took := time.perf_counter() - start) < SAMPLE or count < 2:
            call()
            count += 1
        self.repeats = max(1, round(SAMPLE * count / took))
        return {"ok": True}

    def sample(self) -> dict[str, Any]:
        call, start = self.call, time.perf_counter()
        call()
        while time.perf_counter() - start < WARM_UP:
            call()
        start = time.perf_counter()
        for _ in range(self.repeats):
            call()
        return {"seconds": (time.perf_counter() - start) / self.repeats}


def main() -> None:
    family, name, threads, target = sys.argv[1:]
    # Libraries print where they like; the answers go where only we write.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    worker = Worker(family, name, int(threads), target)
    for line in sys.stdin:
        try:
            answer = worker.answer(json.loads(line))
        except Exception as error:  # whatever a library throws: the run goes on without it
            answer = {"ok": False, "why": f"{type(error).__name__}: {error}"[:300]}
        with contextlib.suppress(BrokenPipeError):
            answers.write(json.dumps(answer) + "\n")
            answers.flush()


if __name__ == "__main__":
    main()
