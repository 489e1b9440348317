"""The cost model against the machine: rank correlation over random schedules, and the regret of the chosen one."""

from __future__ import annotations

import statistics
from typing import Any

from morello_mlir.calibration.calibrate import Effort, assess
from morello_mlir.targets import get_target
from morello_mlir.tools.calibrate import REPORT_SEED, quality_table


def run(target: str, rounds: int) -> list[dict[str, Any]]:
    """Assesses the target at every shape of a full calibration, on schedules that it was not fitted to."""
    machine, effort = get_target(target), Effort(rounds=max(rounds, 25))
    rows = []
    for shape in effort.shapes:
        quality, _ = assess(machine, shape, effort, REPORT_SEED, lambda what, done, total: None)
        rows.append(quality)
        lines = quality_table(rows[-1:]).splitlines()
        print(lines[-1] if len(rows) > 1 else "\n".join(lines), flush=True)
    count, mean = sum(r.schedules for r in rows), statistics.fmean(r.correlation for r in rows)
    print(f"\n{count} schedules: rank correlation {mean:.3f}, regret {statistics.median(r.regret for r in rows):.1%}")
    return [row.record() for row in rows]
