"""`morello calibrate --report`: how much it measures, and what it prints."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from morello_mlir.calibration import calibrate
from morello_mlir.calibration.calibrate import QUICK_REPORT, QUICK_SHAPES, REPORT, SHAPES, Effort, Quality, Shape
from morello_mlir.targets import called, get_target
from morello_mlir.tools import calibrate as command
from morello_mlir.tools.main import main


@pytest.mark.parametrize(
    ("options", "effort", "shapes"), [([], REPORT, SHAPES), (["--quick"], QUICK_REPORT, QUICK_SHAPES)]
)
def test_a_report_measures_enough_schedules_to_rank(
    options: list[str],
    effort: Effort,
    shapes: tuple[Shape, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked: list[tuple[Shape, int, int, int]] = []

    def assess(target: Any, shape: Shape, effort: Effort, seed: int, progress: Any) -> tuple[Quality, None]:
        asked.append((shape, effort.schedules, effort.rounds, seed))
        return Quality(shape, effort.schedules, 0.75, 0.01), None

    monkeypatch.setattr(calibrate, "assess", assess)
    monkeypatch.setattr(command, "_schedule_list", lambda measured, target: "")
    assert main(["calibrate", "--report", "--json", "--seed", "4", *options]) == 0
    seed = 4 + command.REPORT_SEED
    assert asked == [(shape, effort.schedules, effort.rounds, seed) for shape in shapes]
    assert effort.schedules >= 30
    report = json.loads(capsys.readouterr().out)
    assert report["schedules"] == effort.schedules * len(shapes)
    assert report["target"] == called(get_target("host"))
    assert np.isclose(report["correlation"], 0.75) and np.isclose(report["regret"], 0.01)
