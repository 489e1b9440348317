"""The benchmark of whole networks: which are run, and the table."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")

from benchmarks import models


def test_the_networks_that_are_named_are_rows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def row(name: str, target: str, threads: int, rounds: int) -> dict[str, Any]:
        return {
            "network": name,
            "threads": threads,
            "median_s": {"ours": 1e-3},
            "faster": {"eager": 2.0, "inductor": 0.5},
            "shares": {"goal": 0.75},
            "lifted": 4,
            "left": 1,
            "compile_s": 1.5,
            "difference": 1e-6,
        }

    monkeypatch.setattr(models, "_row", row)
    rows = models.run("avx2", 1, 2, ("a", "b"))
    assert [(r["network"], r["threads"]) for r in rows] == [("a", 2), ("b", 2)]
    head, _, first, *_ = capsys.readouterr().out.splitlines()
    assert first == "| a | 2 | 1.000 | 2.00 | 0.50 | 75.0% | 4, 1 | 1.5 | 1.0e-06 |"
    assert head.count("|") == first.count("|")
