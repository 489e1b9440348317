"""`morello bench`: contractions timed beside numpy's BLAS, interleaved in one run, both on as many threads."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..errors import CompileError, InputError
from ..spec.spec import MAX_STEPS
from ..targets import thread_count
from . import _cli
from ._progress import counting

_SHAPE = re.compile(r"(\d{1,18})x(\d{1,18})x(\d{1,18})\Z", re.ASCII)
#: Seconds that one sample lasts at least: shorter ones misread the clock.
SAMPLE_S = 0.005
#: How long a sample of several threads waits before it starts: OpenBLAS's threads spin for a tenth of a second or more
#: after a call, on cores that are then not ours.
PAUSE_S = 0.25


@dataclass(frozen=True, slots=True)
class Workload:
    """out[m, n] = lhs @ rhs; `transposed` names the operands (`lhs`, `rhs`) that are stored transposed."""

    m: int
    k: int
    n: int
    dtype: str = "f32"
    transposed: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        marks = "".join({"lhs": " A^T", "rhs": " B^T"}[t] for t in self.transposed)
        return f"{self.m}x{self.k}x{self.n} {self.dtype}{marks}"

    @property
    def flops(self) -> int:
        return 2 * self.m * self.k * self.n

    def mlir(self) -> str:
        """A module with a function `mm` on memrefs that overwrites its third argument."""
        a, b = ("d0, d2", f"{self.m}x{self.k}"), ("d2, d1", f"{self.k}x{self.n}")
        if "lhs" in self.transposed:
            a = ("d2, d0", f"{self.k}x{self.m}")
        if "rhs" in self.transposed:
            b = ("d1, d2", f"{self.n}x{self.k}")
        types = [f"memref<{s}x{self.dtype}>" for s in (a[1], b[1], f"{self.m}x{self.n}")]
        maps = ", ".join(f"affine_map<(d0, d1, d2) -> ({d})>" for d in (a[0], b[0], "d0, d1"))
        return f"""
func.func @mm(%a: {types[0]}, %b: {types[1]}, %c: {types[2]}) {{
  %zero = arith.constant 0.0 : {self.dtype}
  linalg.fill ins(%zero : {self.dtype}) outs(%c : {types[2]})
  linalg.contract indexing_maps = [{maps}] ins(%a, %b : {types[0]}, {types[1]}) outs(%c : {types[2]})
  return
}}
"""


@dataclass(frozen=True, slots=True)
class Row:
    """Times are seconds a call; ratio: numpy's over ours, median of the rounds and best against best."""

    workload: Workload
    ours_median: float
    ours_best: float
    peer_median: float
    peer_best: float
    ratio: float
    ratio_best: float

    def record(self) -> dict[str, Any]:
        gflops = {
            "ours_gflops": self.workload.flops / self.ours_median / 1e9,
            "ours_best_gflops": self.workload.flops / self.ours_best / 1e9,
            "numpy_gflops": self.workload.flops / self.peer_median / 1e9,
            "numpy_best_gflops": self.workload.flops / self.peer_best / 1e9,
        }
        return {"workload": self.workload.label, "ratio": self.ratio, "ratio_best": self.ratio_best, **gflops}


def make_array(shape: tuple[int, ...], dtype: Any) -> Any:
    """An array of zeros that starts at a cache line, as a numerical program's would."""
    import numpy as np

    from ..aligned import aligned

    return aligned(int(np.prod(shape)) * np.dtype(dtype).itemsize).view(dtype).reshape(shape)


def measure(workload: Workload, *, target: str = "host", threads: int = 1, rounds: int = 15, seed: int = 0) -> Row:
    """Compile `workload`, check its result against float64, and time it beside numpy.

    Raises CompileError where the result is wrong.
    """
    import numpy as np
    from threadpoolctl import threadpool_limits

    import morello_mlir

    dtype = {"f32": np.float32, "f64": np.float64}[workload.dtype]
    rng = np.random.default_rng(seed)
    shapes = {"lhs": (workload.m, workload.k), "rhs": (workload.k, workload.n)}
    stored = {}
    for name, shape in shapes.items():
        stored[name] = make_array(shape[::-1] if name in workload.transposed else shape, dtype)
        stored[name][:] = rng.uniform(-1, 1, stored[name].shape)
    a, b = (stored[n].T if n in workload.transposed else stored[n] for n in ("lhs", "rhs"))
    ours, theirs = (make_array((workload.m, workload.n), dtype) for _ in range(2))
    function = morello_mlir.compile(workload.mlir(), target=target, threads=threads).mm
    with threadpool_limits(threads, user_api="blas"):
        function(stored["lhs"], stored["rhs"], ours)
        _check(workload, ours, a, b)
        calls = {
            "numpy": lambda: np.matmul(a, b, out=theirs),
            "ours": lambda: function(stored["lhs"], stored["rhs"], ours),
        }
        samples = interleave(calls, rounds, PAUSE_S if threads > 1 else 0.0)
    return _row(workload, samples)


def _check(workload: Workload, got: Any, a: Any, b: Any) -> None:
    import numpy as np

    want = a.astype(np.float64) @ b.astype(np.float64)
    tolerance = np.finfo(got.dtype).eps * 4 * max(workload.k, 16) ** 0.5 * max(1.0, float(np.abs(want).max()))
    worst = float(np.abs(got - want).max())
    if not worst <= tolerance:
        raise CompileError(f"{workload.label}: wrong result, off by {worst:.3g}")


def interleave(calls: dict[str, Callable[[], Any]], rounds: int, pause: float = 0.0) -> dict[str, list[float]]:
    """Seconds a call, `rounds` samples each, taken in turns so that a busy moment hits all alike. pause: seconds before
    every sample."""
    repeats = {name: _repeats(call) for name, call in calls.items()}
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            time.sleep(pause)
            call()
            start = time.perf_counter()
            for _ in range(repeats[name]):
                call()
            samples[name].append((time.perf_counter() - start) / repeats[name])
    return samples


def numpy_blas() -> str:
    """numpy's BLAS: name, version, the CPU that its kernels are for, and whether the environment says which."""
    import threadpoolctl

    blas: dict[str, Any] = next((p for p in threadpoolctl.threadpool_info() if p["user_api"] == "blas"), {})
    text = f"{blas.get('internal_api')} {blas.get('version')} ({blas.get('architecture')})"
    forced = [f"{v}={os.environ[v]}" for v in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE") if os.environ.get(v)]
    return f"{text}, as {' and '.join(forced)} has it" if forced else text


def _repeats(call: Callable[[], Any]) -> int:
    call()
    start = time.perf_counter()
    call()
    return max(1, int(SAMPLE_S / max(time.perf_counter() - start, 1e-7)) + 1)


def _row(workload: Workload, samples: dict[str, list[float]]) -> Row:
    import numpy as np

    ours, peer = np.array(samples["ours"]), np.array(samples["numpy"])
    return Row(
        workload,
        float(np.median(ours)),
        float(ours.min()),
        float(np.median(peer)),
        float(peer.min()),
        float(np.median(peer / ours)),
        float(peer.min() / ours.min()),
    )


def table(rows: list[Row]) -> str:
    """The rows as a Markdown table, GFLOP/s as median (best)."""
    out = ["| workload | ours GFLOP/s | numpy GFLOP/s | numpy/ours median | numpy/ours best |", "|---|---|---|---|---|"]
    for row in rows:
        r = row.record()
        out.append(
            f"| {r['workload']} | {r['ours_gflops']:.1f} ({r['ours_best_gflops']:.1f}) "
            f"| {r['numpy_gflops']:.1f} ({r['numpy_best_gflops']:.1f}) | {row.ratio:.2f} | {row.ratio_best:.2f} |"
        )
    return "\n".join(out)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "GFLOP/s are of the median, in brackets of the best round. numpy/ours is the ratio of times, round by round: "
        "above 1 ours is faster."
    )
    parser.add_argument("shapes", nargs="+", metavar="MxKxN", help="contractions to time")
    parser.add_argument("--dtype", choices=("f32", "f64"), default="f32")
    parser.add_argument("--transposed", choices=("lhs", "rhs"), action="append", default=[],
                        help="an operand that is stored transposed (may be given twice)")  # fmt: skip
    parser.add_argument("--target", default="host", help="the machine: host, avx2, avx512, or a CPU (default: host)")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="threads for both (default: 1)")
    parser.add_argument("--rounds", type=int, default=15, metavar="N", help="samples of each (default: 15)")
    parser.add_argument("--json", action="store_true", help="print a JSON list instead of a table")


def run(options: argparse.Namespace) -> int:
    # In a child, as all that runs native code: interrupted within numba's, the interpreter may crash.
    return _cli.isolated("morello", " ".join(options.shapes), lambda notebook: _run(options, notebook))


def _run(options: argparse.Namespace, notebook: _cli.Notebook) -> int:
    workloads = [_workload(text, options) for text in options.shapes]
    rows = []
    with counting("timing", len(workloads)) as say:
        for workload in workloads:
            say(workload.label)
            notebook.note(f"timing {workload.label}")
            rows.append(measure(workload, target=options.target, threads=thread_count(options.threads),
                                rounds=max(1, options.rounds)))  # fmt: skip
    print(json.dumps([r.record() for r in rows], indent=2) if options.json else table(rows))
    print(f"numpy's BLAS: {numpy_blas()}", file=sys.stderr)
    return 0


def _workload(text: str, options: argparse.Namespace) -> Workload:
    """What a shape stands for. Raises InputError."""
    match = _SHAPE.match(text)
    m, k, n = map(int, match.groups()) if match else (0, 0, 0)
    if not min(m, k, n):
        raise InputError(f"cannot read the shape '{text}': expected MxKxN, all positive")
    if m * k * n > MAX_STEPS or m * k + k * n + m * n > MAX_STEPS:
        raise InputError(f"the shape '{text}' is too large")
    return Workload(m, k, n, options.dtype, tuple(options.transposed))
