"""The cost model against the machine: rank correlation over random schedules, and the regret of the chosen one."""

from __future__ import annotations

import statistics
from typing import Any

from morello_mlir.calibration.calibrate import Effort, Shape, assess
from morello_mlir.targets import get_target
from morello_mlir.tools.calibrate import REPORT_SEED, quality_table

#: Within L2 and beyond it, square and not, row strides that share a factor with the sets of the caches and that do not.
SHAPES: tuple[Shape, ...] = (
    (256, 256, 256),
    (512, 512, 512),
    (1024, 1024, 1024),
    (64, 1024, 1024),
    (300, 700, 900),
    (2048, 256, 1024),
)
#: Schedules of each: enough for a rank correlation to within a few hundredths.
SCHEDULES = 100


def run(target: str, rounds: int, seed: int = REPORT_SEED) -> list[dict[str, Any]]:
    """Assesses the target at every shape, on the schedules that `seed` draws: others than it was fitted to."""
    machine, effort = get_target(target), Effort(SHAPES, SCHEDULES, rounds)
    rows = []
    for shape in effort.shapes:
        quality, _ = assess(machine, shape, effort, seed, lambda what, done, total: None)
        rows.append(quality)
        lines = quality_table(rows[-1:]).splitlines()
        print(lines[-1] if len(rows) > 1 else "\n".join(lines), flush=True)
    count, mean = sum(r.schedules for r in rows), statistics.fmean(r.correlation for r in rows)
    print(f"\n{count} schedules: rank correlation {mean:.3f}, regret {statistics.median(r.regret for r in rows):.1%}")
    return [row.record() for row in rows]
