"""Calibrating: measure the kernel table and random schedules, fit, and say how good the result is."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..spec import matmul_spec
from ..targets import Target
from ..targets.calibration import Calibration
from .fit import fit, predict
from .kernel_table import ROWS, Tile, measure_table
from .measure import SpecMeasurements, measure_random, measure_schedules
from .ranking import regret, spearman
from .threads import measure_threads

Shape = tuple[int, int, int]

#: Shapes that are sampled: within L2 and beyond it, square and not, row strides of every class up to 4096 bytes.
SHAPES: tuple[Shape, ...] = (
    *((256, 256, 256), (512, 512, 512), (1024, 1024, 1024), (64, 1024, 1024), (197, 768, 768), (300, 700, 900)),
    *((768, 256, 512), (2048, 256, 1024)),
)
QUICK_SHAPES: tuple[Shape, ...] = ((256, 256, 256), (512, 512, 512), (64, 1024, 1024), (300, 700, 900))
#: Rows of the kernel table that are measured when it has to be quick.
QUICK_ROWS = (1, 2, 4, 6, 8, 12, 14, 16, 24, 28)

#: Told what is being done, how much of it is done, and of how much.
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Effort:
    """How much to measure: schedules of each shape, rounds of each schedule, rounds of the kernel table."""

    shapes: tuple[Shape, ...] = SHAPES
    schedules: int = 15
    rounds: int = 25
    table_rounds: int = 15
    table_rows: tuple[int, ...] = ROWS


QUICK = Effort(QUICK_SHAPES, 8, 15, 7, QUICK_ROWS)
#: Reports fit nothing, and need more schedules, each less exactly: of 15 the rank correlation is 0.03 too low in the
#: mean of many such samples and differs by 0.07 from one to the next at one shape, of 60 by 0.003 and 0.03.
REPORT = Effort(schedules=60, rounds=10)
QUICK_REPORT = Effort(QUICK_SHAPES, 30, 10)


@dataclass(frozen=True)
class Quality:
    """How well a target predicts schedules of one shape. correlation: Spearman's, over `schedules` random ones. regret:
    how much slower its choice is than the best that was measured (negative: it is the best)."""

    shape: Shape
    schedules: int
    correlation: float
    regret: float

    def record(self) -> dict[str, Any]:
        m, k, n = self.shape
        figures = {"correlation": round(self.correlation, 3), "regret": round(self.regret, 4)}
        return {"shape": f"{m}x{k}x{n}", "schedules": self.schedules, **figures}


def measure_shapes(target: Target, effort: Effort, seed: int, progress: Progress) -> list[SpecMeasurements]:
    """Random schedules of all shapes, measured."""
    out, total = [], len(effort.shapes) * effort.schedules
    for i, shape in enumerate(effort.shapes):
        label, before = "x".join(map(str, shape)), i * effort.schedules

        def tell(done: int, label: str = label, before: int = before) -> None:
            progress(f"schedules of {label}", before + done, total)

        tell(0)
        out.append(
            measure_random(matmul_spec(*shape), target, effort.schedules, seed, rounds=effort.rounds, progress=tell)
        )
    return out


def calibrate(base: Target, machine: str, effort: Effort, seed: int, progress: Progress) -> tuple[Calibration, Target]:
    """Measures this machine; returns what is to be stored, and `base` with it."""
    progress("register tiles", 0, 1)
    table = measure_table(base, rounds=effort.table_rounds, rows=effort.table_rows)
    started = replace(base, kernel_table=smoothed(table, base))
    measurements = measure_shapes(base, effort, seed, progress)
    progress("fitting", 0, 1)
    fitted = fit(measurements, started)
    progress("threads", 0, 1)
    fitted = replace(fitted, costs=measure_threads(base, fitted.costs, effort.table_rounds))
    correlations = [correlation(m, fitted) for m in measurements]
    report = {
        "seed": seed,
        "schedules": sum(len(m.samples) for m in measurements),
        "correlation_before": round(statistics.fmean(correlation(m, base) for m in measurements), 3),
        "correlation": round(statistics.fmean(correlations), 3),
    }
    made = Calibration(machine, base.name, base.fingerprint, fitted.costs, fitted.kernel_table, base.l2.lines, report)
    return made, fitted


def smoothed(table: Mapping[Tile, float], target: Target) -> dict[Tile, float]:
    """A measured kernel table without what is noise: a tile is no faster than its multiply-adds allow, and two large
    tiles whose rates differ by less than the measurement's error are told apart by their size alone.

    Differences of a per cent among good tiles would only make the search mix tiles for no gain.
    """
    per_cycle = target.costs.fma_per_cycle
    excess = {t: cycles - t[0] * t[1] / per_cycle for t, cycles in table.items()}
    busy = [e for (m, v), e in excess.items() if m * v >= target.registers // 2]
    usual = max(0.0, float(np.quantile(busy, 0.25))) if busy else 0.0
    out = {}
    for (m, v), e in excess.items():
        work = m * v / per_cycle
        noise = 0.04 * work
        out[m, v] = round(work + (usual if abs(e - usual) <= noise else max(e, 0.0)), 2)
    return out


def correlation(measurements: SpecMeasurements, target: Target) -> float:
    """Spearman's of predicted and measured cycles over the samples of one Spec."""
    p = predict(measurements, target)
    return spearman(p.predicted, p.measured)


def assess(
    target: Target, shape: Shape, effort: Effort, seed: int, progress: Progress
) -> tuple[Quality, SpecMeasurements]:
    """How well `target` ranks random schedules of a shape, and how good its own choice is beside them."""
    spec = matmul_spec(*shape).canonical()

    def tell(done: int) -> None:
        progress(f"schedules of {'x'.join(map(str, shape))}", done, effort.schedules)

    sampled = measure_random(spec, target, effort.schedules, seed, rounds=effort.rounds, progress=tell)
    times = np.array([m.cycles for m in sampled.samples])
    best = int(np.argmin(times))
    # Chosen and best are measured against each other once more: the best of many is a lucky one.
    rival = sampled.samples[best].sample.schedule
    again = measure_schedules(spec, sampled.reference, [rival], target, rounds=2 * effort.rounds)
    return Quality(shape, len(times), correlation(sampled, target), regret(again[0], np.array(again))), sampled
