"""The main job on one module: the chosen schedule, the check against the naive lowering, the speed beside numpy's.

Run by `make demo`; `python examples/demo.py [FILE.mlir]` takes another module, without the comparison with numpy.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import morello_mlir
from morello_mlir.tools.bench import interleave, numpy_blas

LINEAR = Path(__file__).with_name("linear.mlir")


def tool(*arguments: str) -> None:
    """Run one of the command lines, shown as a user would type it."""
    print(f"\n$ {' '.join(arguments)}", flush=True)
    subprocess.run([str(Path(sys.executable).with_name(arguments[0])), *arguments[1:]], check=True)


def beside_numpy() -> None:
    from threadpoolctl import threadpool_limits

    rng = np.random.default_rng(0)
    x, w, b = (rng.uniform(-1, 1, s).astype(np.float32) for s in ((197, 768), (768, 768), (768,)))
    start = time.perf_counter()
    linear = morello_mlir.compile(LINEAR, threads=1).linear  # numpy gets one, too
    print(f"\ncompiled in {time.perf_counter() - start:.2f} s; both on one thread, numpy with {numpy_blas()}")
    with threadpool_limits(1):
        assert np.allclose(linear(x, w, b), np.maximum(x @ w + b, 0), rtol=1e-4, atol=1e-4)
        times = interleave({"ours": lambda: linear(x, w, b), "numpy": lambda: np.maximum(x @ w + b, 0)}, 20)
    flops = 2 * x.shape[0] * w.size
    for name, samples in times.items():
        print(f"{name:6} {1e6 * np.median(samples):8.0f} us a call, {flops / np.median(samples) / 1e9:6.1f} GFLOP/s")
    print(f"numpy / ours: {np.median(np.divide(times['numpy'], times['ours'])):.2f}")


def main() -> None:
    file = sys.argv[1] if len(sys.argv) > 1 else str(LINEAR)
    tool("morello", "explain", file)
    tool("morello-run", file, "--check")
    if file == str(LINEAR):
        beside_numpy()


if __name__ == "__main__":
    main()
