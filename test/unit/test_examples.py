"""Every example runs, alone, and says what it is meant to."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
#: What each prints, among other things.
SAYS = {
    "matmul_numpy": "197 x 64 x 49: right\n",
    "schedule_by_hand": "\nto_accum\nsplit k by 64:\n",
    "passes": " steps\n",
    "demo": "\ncheck: right",
    "torch_model": "32 x 256 to 32 x 64: right\n",
    "jax_function": " left to upstream: right\n",
    "onnx_model": "outputs ('z',): right\n",
}
#: The packages that some need.
NEEDS = {"torch_model": ("torch", "torch_mlir"), "jax_function": ("jax",), "onnx_model": ("onnx", "torch_mlir")}


def test_every_example_is_run_here() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(SAYS)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SAYS))
def test_it_runs(name: str, tmp_path: Path) -> None:
    for package in NEEDS.get(name, ()):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    # From another folder: none may depend on where it is started.
    command = [sys.executable, str(EXAMPLES / f"{name}.py")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=300, env=os.environ)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    assert SAYS[name] in done.stdout
