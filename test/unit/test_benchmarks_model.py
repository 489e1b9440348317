"""The benchmark of the cost model: which schedules it draws, and what it prints."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from benchmarks import __main__ as command
from benchmarks import model
from morello_mlir.calibration.calibrate import Effort, Quality, Shape
from morello_mlir.tools.calibrate import REPORT_SEED


@pytest.mark.parametrize(("options", "seed"), [([], REPORT_SEED), (["--seed", "7"], 7), (["--seed", "0"], 0)])
def test_the_seed_draws_the_schedules(
    options: list[str], seed: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[tuple[Shape, int]] = []

    def assess(target: Any, shape: Shape, effort: Effort, seed: int, progress: Any) -> tuple[Quality, None]:
        asked.append((shape, seed))
        return Quality(shape, effort.schedules, 0.5, 0.01), None

    monkeypatch.setattr(model, "assess", assess)
    monkeypatch.setattr(sys, "argv", ["benchmarks", "model", "--target", "avx2", *options])
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    command.main()
    assert asked == [(shape, seed) for shape in model.SHAPES]
    printed = capsys.readouterr().out
    assert f"{len(model.SHAPES) * model.SCHEDULES} schedules: rank correlation 0.500, regret 1.0%" in printed
