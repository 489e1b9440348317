"""Whether the search picks the fastest form of softmax: every form of each row of `streaming` is timed, in turns.

A form is what the passes do (and store, and where), online blocks, which of them share a loop, how many rows a group
has, and whether the output is written past the caches; how far passes are unrolled is what the search would have.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import morello_mlir
from morello_mlir.nests import NestSpec
from morello_mlir.nests.leaf import LeafSearch
from morello_mlir.nests.plan import RowsPlan
from morello_mlir.nests.rewrite import reciprocal_body
from morello_mlir.nests.search import nest_search_for
from morello_mlir.nests.space import Structures, streams
from morello_mlir.search.nest_steps import Reciprocal, Rows
from morello_mlir.search.schedule import to_text
from morello_mlir.targets import Target, get_target

from .streaming import WORKLOADS, Workload, array, module

#: Rows of a group that are timed.
_TILES = (1, 2, 4)
#: Online blocks that are timed (0: an unrolled step).
_BLOCKS = (0, 512, 1024, 2048, 4096)
#: Forms that are predicted to take so many times as long as the best are not timed.
_HOPELESS = 1.7
#: Within this the fastest form and another are the same.
_SAME = 0.02


@dataclass
class Form:
    schedule: str
    predicted: float
    seconds: list[float]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


def forms(spec: NestSpec, target: Target) -> Iterator[tuple[float, Rows]]:
    """(predicted cycles, leaf) of every form of a serial nest, unrolled as the cost model has it."""
    search = LeafSearch(spec, target)
    structures = [
        s
        for s in Structures(spec, target).known()
        if all(p.step.online is None or p.step.online in _BLOCKS for p in s.passes)
    ]
    unrolled = [form for structure in structures for form in search.forms(structure)]
    for vector, _, tile in search.cuts(None):
        if not spec.scan[vector] or max(tile) not in _TILES:
            continue
        for form in unrolled:
            option = search.option(form, vector, tile)
            if option is not None:
                yield from _with_streaming(search, search.choose(option)[1])


def _with_streaming(search: LeafSearch, plan: RowsPlan) -> Iterator[tuple[float, Rows]]:
    """A form with its output written past the caches, and not."""
    for past in (False, True):
        passes = [
            replace(p, step=replace(p.step, streaming=past and streams(p, plan.spec, plan.vector))) for p in plan.passes
        ]
        own = replace(plan, passes=tuple(passes))
        yield search.model.cycles(own), search.node(own)


def candidates(w: Workload, target: Target) -> list[Form]:
    """What the search picks, then every other form."""
    search = nest_search_for(target)
    best = search.solve(w.spec())
    spec = best.spec
    body = reciprocal_body(spec)
    inner = spec if body is None else replace(spec, body=body)
    found = [Form(to_text(best.schedule), best.cycles, [])]
    for cycles, rows in sorted(forms(inner, target), key=lambda f: f[0]):
        text = to_text(rows if body is None else Reciprocal(rows))
        if cycles <= _HOPELESS * best.cycles and all(text != f.schedule for f in found):
            found.append(Form(text, cycles, []))
    return found


def with_schedule(spec: NestSpec, schedule: str) -> str:
    """A module with one function, @run, by this schedule."""
    lines = ", ".join(f'"{line}"' for line in schedule.splitlines())
    return module(spec).replace('body = "', f'schedule = [{lines}], body = "', 1)


def measure(w: Workload, found: list[Form], target: str, rounds: int) -> None:
    """Times all forms of a workload in turns."""
    x, y = array(*w.shape), array(*w.out_shape, behind=1088)
    x[:] = np.random.default_rng(0).normal(size=x.shape)
    flat, out = x.reshape(-1), y.reshape(-1)
    spec = nest_search_for(get_target(target)).goal(w.spec().canonical())
    calls = [morello_mlir.compile(with_schedule(spec, f.schedule), target=target, threads=1).run for f in found]
    repeats = []
    for call in calls:
        call(flat, out)
        start = time.perf_counter()
        call(flat, out)
        repeats.append(max(2, round(5e-4 / (time.perf_counter() - start))))
    for _ in range(rounds):
        for form, call, count in zip(found, calls, repeats, strict=True):
            call(flat, out)
            start = time.perf_counter()
            for _ in range(count):
                call(flat, out)
            form.seconds.append((time.perf_counter() - start) / count)


def labels() -> list[str]:
    """The names of the rows."""
    return [w.label for w in WORKLOADS if w.kind == "softmax"]


def run(target: str, rounds: int, only: str = "") -> list[dict[str, Any]]:
    """Prints, for each row, what the search picks, the fastest form, and how much longer the first takes."""
    rows = []
    print("| row | forms | picked, us | fastest, us | regret | picked | fastest |\n|---|---|---|---|---|---|---|")
    for w in (w for w in WORKLOADS if w.kind == "softmax" and only in w.label):
        found = candidates(w, get_target(target))
        measure(w, found, target, rounds)
        best = min(found, key=lambda f: f.median)
        regret = found[0].median / best.median - 1
        cells = [f"{1e6 * f.median:.2f}" for f in (found[0], best)] + [f"{100 * regret:.1f} %"]
        cells += [short(f.schedule) for f in (found[0], best)]
        print(f"| {w.label} | {len(found)} | {' | '.join(cells)} |", flush=True)
        listed = [{"schedule": f.schedule, "predicted": f.predicted, "seconds": f.median} for f in found]
        rows.append({"workload": w.label, "shape": w.shape, "regret": regret, "forms": listed})
    if rows:
        right = sum(row["regret"] <= _SAME for row in rows)
        median = statistics.median(row["regret"] for row in rows)
        print(f"\nfastest (within {_SAME:.0%}) on {right} of {len(rows)}; median regret {100 * median:.1f} %")
    return rows


def short(schedule: str) -> str:
    """A schedule in one line."""
    words = [line.strip().removeprefix("pass ") for line in schedule.splitlines() if line.strip() != "reciprocal"]
    return "; ".join(words)
