"""Transposes beside torch and numpy, in turns, and beside the fastest of the cheapest schedules by the model.

All are called from Python and write into an array that is there. Inputs start at pages, outputs some lines behind one.
"""

from __future__ import annotations

import importlib.util
import math
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

import morello_mlir
from morello_mlir.aligned import PAGE, aligned
from morello_mlir.nests import NestSpec
from morello_mlir.nests.search import nest_search_for
from morello_mlir.search.schedule import to_text
from morello_mlir.targets import get_target

from .forms import with_schedule
from .streaming import Call

_NUMPY = {"f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16, "i8": np.int8}
#: How many of the cheapest schedules are timed.
_CHEAPEST = 24


@dataclass(frozen=True)
class Workload:
    """shape: of the input, row-major. perm: as numpy's transpose takes it. relu: of its result."""

    shape: tuple[int, ...]
    perm: tuple[int, ...]
    dtype: str = "f32"
    relu: bool = False

    @property
    def label(self) -> str:
        end = ", relu" if self.relu else ""
        return f"{self.dtype} {'x'.join(map(str, self.shape))} to {''.join(map(str, self.perm))}{end}"

    @property
    def bytes(self) -> int:
        return 2 * math.prod(self.shape) * np.dtype(_NUMPY[self.dtype]).itemsize

    def spec(self, threads: int) -> NestSpec:
        out = [self.shape[p] for p in self.perm]
        source = [_strides(self.shape)[p] for p in self.perm]
        body = f"y = max(x0, 0.0:{self.dtype})" if self.relu else "y = x0"
        threading = f"parallel {threads}" if threads > 1 else "serial"
        operands = f"({self.dtype}, GL, {source}), ({self.dtype}, GL, {_strides(out)})"
        return NestSpec.parse(f'Map({out}, {operands}, "{body}", {threading})')

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """The input and room for the output, as lines of elements."""
        dtype = np.dtype(_NUMPY[self.dtype])
        x, y = (
            aligned(math.prod(self.shape) * dtype.itemsize + behind, PAGE)[behind:].view(dtype) for behind in (0, 1088)
        )
        x[:] = np.random.default_rng(0).integers(-100, 100, x.size).astype(dtype)
        y[:] = 0
        return x, y

    def of(self, x: np.ndarray) -> np.ndarray:
        """The result, as a line of elements."""
        y = np.ascontiguousarray(x.reshape(self.shape).transpose(self.perm)).reshape(-1)
        return np.maximum(y, y.dtype.type(0)) if self.relu else y


def _strides(shape: Sequence[int]) -> list[int]:
    return [math.prod(shape[i + 1 :]) for i in range(len(shape))]


def _workloads() -> tuple[Workload, ...]:
    flat = (1, 0)
    squares = [Workload((n, n), flat) for n in (64, 128, 256, 512, 1024, 2048, 4096)]
    odd = [Workload((1000, 1023), flat, dtype) for dtype in ("f32", "bf16", "i8", "f64")]
    narrow = [Workload((n, n), flat, dtype) for dtype in ("bf16", "i8", "f64") for n in (256, 1024, 4096)]
    more = [
        Workload((12, 128, 64), (0, 2, 1)),
        Workload((64, 256, 256), (0, 2, 1)),
        Workload((8, 128, 12, 64), (0, 2, 1, 3)),
        Workload((1, 1024, 16, 64), (0, 2, 1, 3), "bf16"),
        Workload((32, 64, 56, 56), (0, 2, 3, 1)),
        Workload((8, 56, 56, 64), (3, 0, 1, 2)),
        Workload((8, 57, 57, 65), (3, 0, 1, 2)),
        Workload((1024, 1024), flat, relu=True),
    ]
    return (*squares, *odd, *narrow, *more)


WORKLOADS = _workloads()
LIBRARIES = ("ours", "torch", "numpy")


def build(w: Workload, library: str, threads: int, target: str) -> Call | None:
    """A call of a library (one of LIBRARIES), or None. Raises AssertionError where our result is wrong."""
    x, y = w.arrays()
    if library == "torch":
        return _torch(w, x, y, threads)
    if library == "numpy":
        view, out = x.reshape(w.shape).transpose(w.perm), y.reshape([w.shape[p] for p in w.perm])
        if w.relu:
            return lambda: np.maximum(view, np.float32(0), out=out)
        return lambda: np.copyto(out, view)
    return _compiled(w, threads, target, x, y)


def _compiled(w: Workload, threads: int, target: str, x: np.ndarray, y: np.ndarray, schedule: str = "") -> Call:
    """A call of ours. schedule: of the spec as the search has it; without one, what it picks."""
    search = nest_search_for(get_target(target))
    spec = search.goal(w.spec(threads).canonical())
    text = with_schedule(spec, schedule or to_text(search.solve(spec).schedule))
    run = morello_mlir.compile(text, target=target, threads=threads).run
    run(x, y)
    np.testing.assert_array_equal(y, w.of(x))
    return lambda: run(x, y)


def _torch(w: Workload, x: np.ndarray, y: np.ndarray, threads: int) -> Call | None:
    if not importlib.util.find_spec("torch"):
        return None
    import torch

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    t, out = (
        torch.from_numpy(a.view(np.int16)).view(torch.bfloat16) if w.dtype == "bf16" else torch.from_numpy(a)
        for a in (x, y)
    )
    view, out = t.reshape(w.shape).permute(w.perm), out.reshape([w.shape[p] for p in w.perm])
    if w.relu:
        return lambda: torch.clamp_min(view, 0, out=out)
    return lambda: out.copy_(view)


def fastest(w: Workload, threads: int, target: str, rounds: int) -> tuple[float, float]:
    """(seconds of what the search picks, of the fastest of the cheapest schedules), in turns."""
    search = nest_search_for(get_target(target))
    x, y = w.arrays()
    texts = [to_text(s.schedule) for s in (search.solve(w.spec(threads)), *search.cheapest(w.spec(threads), _CHEAPEST))]
    calls = [_compiled(w, threads, target, x, y, text) for text in dict.fromkeys(texts)]
    samples: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for call, seconds in zip(calls, samples, strict=True):
            call()
            start, count = time.perf_counter(), 0
            while (took := time.perf_counter() - start) < 1e-3:
                call()
                count += 1
            seconds.append(took / count)
    medians = [statistics.median(seconds) for seconds in samples]
    return medians[0], min(medians)


def labels() -> list[str]:
    """The names of the rows."""
    return [w.label for w in WORKLOADS]


def run(target: str, rounds: int, threads: int = 1, only: str = "") -> list[dict[str, Any]]:
    """Measures and prints the table. only: rows whose label contains it."""
    from .turns import measure

    out = []
    print(f"| {threads} thread{'s' * (threads > 1)} | us | GB/s | torch | numpy | regret |\n|---|---|---|---|---|---|")
    rows = {w.label: w for w in WORKLOADS if only in w.label}
    for label, took in measure("transposes", list(rows), threads, target, rounds):
        own, nbytes = took["ours"], rows[label].bytes
        picked, best = fastest(rows[label], threads, target, rounds)
        cells = [f"{took[n] / own:.2f}x" if n in took else "" for n in LIBRARIES[1:]]
        shown = f"{1e6 * own:.2f} | {nbytes / own / 1e9:.1f} | {' | '.join(cells)} | {100 * (picked / best - 1):.1f} %"
        print(f"| {label} | {shown} |", flush=True)
        seconds = {**took, "picked": picked, "fastest": best}
        out.append({"workload": label, "threads": threads, "seconds": seconds, "bytes": nbytes})
    return out
