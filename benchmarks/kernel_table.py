"""Measures the micro-kernel table of a target: cycles per k step of `broadcast_fma` for every register tile that fits.

    python -m benchmarks.kernel_table [--target avx512] [--dtype f32] [--k 128 512] [--json]

How: `morello_mlir/calibration/kernel_table.py`. By default the depths are such that the panels stay in L1.
"""

from __future__ import annotations

import argparse
import json

from morello_mlir.calibration.code import NUMPY
from morello_mlir.calibration.kernel_table import measure_table, table_text
from morello_mlir.targets import get_target


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="host")
    parser.add_argument("--dtype", default="f32", choices=sorted(NUMPY))
    parser.add_argument("--k", type=int, nargs=2, metavar=("LOW", "HIGH"), help="depths (default: fit L1)")
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--seconds", type=float, default=0.002, help="length of a sample")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    target = get_target(options.target)
    depths = tuple(options.k) if options.k else None
    cycles = measure_table(
        target, options.dtype, depths=depths, rounds=options.rounds, seconds=options.seconds
    )  # fmt: skip
    if options.json:
        print(json.dumps({f"{m},{v}": round(c, 3) for (m, v), c in cycles.items()}))
    else:
        how = f"slope {options.k[0]} -> {options.k[1]}" if options.k else "panels in L1"
        print(f"{target.name} {options.dtype}, cycles per k step, {how}")
        print(table_text(cycles))


if __name__ == "__main__":
    main()
