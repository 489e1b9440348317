"""Whole networks: ours beside torch, as it is (eager) and as its own compiler makes it (inductor), interleaved."""

from __future__ import annotations

import contextlib
import math
import statistics
import time
from collections.abc import Callable
from typing import Any

#: A sample takes at least so long (s): short calls are repeated in it.
_SAMPLE = 20e-3
#: Between two samples (s): threads that one library keeps spinning would take a core from the next.
_PAUSE = 20e-3
#: What a network is compared with, by how its column is called.
_PEERS = {"eager": "torch", "inductor": "torch.compile"}
_COLUMNS = (
    "network",
    "threads",
    "ours, ms",
    *_PEERS.values(),
    "in our code",
    "lifted, left",
    "compile, s",
    "difference",
)


def run(target: str, rounds: int, threads: int = 0, names: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """Times every network, or those named. threads: one count, or 0 for one and two."""
    try:
        import torch
    except ImportError:
        print("torch is not installed: pip install 'morello-mlir[torch]'")
        return []
    from .networks import NETWORKS

    print(f"| {' | '.join(_COLUMNS)} |\n|{'---|' * len(_COLUMNS)}")
    rows = []
    for count in (threads,) if threads else (1, 2):
        torch.set_num_threads(count)
        for name in names or tuple(NETWORKS):
            rows.append(_row(name, target, count, rounds))
            print(_line(rows[-1]), flush=True)
    for count in sorted({row["threads"] for row in rows}):
        means = {peer: _mean([row["faster"][peer] for row in rows if row["threads"] == count]) for peer in _PEERS}
        listed = ", ".join(f"{_PEERS[peer]} {mean:.2f}" for peer, mean in means.items())
        print(f"\n{count} thread{'s' * (count > 1)}: geometric mean of how much faster than {listed}")
    return rows


def _row(name: str, target: str, threads: int, rounds: int) -> dict[str, Any]:
    import torch

    from morello_mlir.frontends import torch as frontend

    from .networks import network

    module, x = network(name)
    torch.compiler.reset()
    started = time.perf_counter()
    ours = frontend.compile(module, (x,), threads=threads, target=target)
    seconds = time.perf_counter() - started
    theirs = torch.compile(module, dynamic=False)
    calls: dict[str, Callable[[], Any]] = {
        "ours": lambda: ours(x),
        "eager": lambda: module(x),
        "inductor": lambda: theirs(x),
    }
    with torch.inference_mode():
        wanted = module(x)
        worst = float((ours(x) - wanted).abs().max() / wanted.abs().max())
        times = _times(calls, rounds)
        profile = ours.profile(x)
    medians = {key: statistics.median(each) for key, each in times.items()}
    return {
        "network": name,
        "threads": threads,
        "median_s": medians,
        "min_s": {key: min(each) for key, each in times.items()},
        "faster": {key: medians[key] / medians["ours"] for key in _PEERS},
        "difference": worst,
        "lifted": ours.compiled.lifted,
        "left": ours.compiled.left,
        "compile_s": seconds,
        "times": ours.compiled.times,
        "shares": {kind: profile.share(kind) for kind in ("goal", "upstream", "copy", "memory")},
    }


def _times(calls: dict[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    """Seconds of a call, in turns; the first one after another library's is not counted."""
    counts = {}
    for key, call in calls.items():
        call()
        started = time.perf_counter()
        call()
        counts[key] = max(1, math.ceil(_SAMPLE / (time.perf_counter() - started)))
    found: dict[str, list[float]] = {key: [] for key in calls}
    with _undisturbed():
        for _ in range(rounds):
            for key, call in calls.items():
                time.sleep(_PAUSE)
                call()
                started = time.perf_counter()
                for _ in range(counts[key]):
                    call()
                found[key].append((time.perf_counter() - started) / counts[key])
    return found


#: Replaced by who can keep the machine quiet while times are taken.
_undisturbed: Callable[[], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext


def _mean(values: list[float]) -> float:
    return math.exp(statistics.fmean(math.log(v) for v in values))


def _line(row: dict[str, Any]) -> str:
    faster = [f"{row['faster'][peer]:.2f}" for peer in _PEERS]
    cells = [row["network"], str(row["threads"]), f"{1e3 * row['median_s']['ours']:.3f}", *faster]
    cells += [
        f"{row['shares']['goal']:.1%}",
        f"{row['lifted']}, {row['left']}",
        f"{row['compile_s']:.1f}",
        f"{row['difference']:.1e}",
    ]
    return f"| {' | '.join(cells)} |"
