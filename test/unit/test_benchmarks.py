"""The command line of `python -m benchmarks`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def bench(*args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", *args]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["conv", "fused", "--only", "nosuchrow"], "no row contains 'nosuchrow'; there are\nconv: "),
        (["--only", "nosuchrow"], "\nstreaming: "),
        (["memo", "--only", "x"], "those of memo have no names"),
        (["nosuch"], "unknown family 'nosuch' (have contractions, "),
    ],
)
def test_rows_and_families_that_are_not_there(args, said):
    done = bench(*args)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stdout == ""
