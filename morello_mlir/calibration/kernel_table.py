"""The kernel table: cycles per k step of every register tile of `broadcast_fma`.

The time of a k step is the slope between two depths, so that calls, loads and stores of the tile cancel out. The unit
is the latency of a fused multiply-add, four cycles on every core since Skylake and Zen 2, measured in the same run with
vectors of the same width: the clock may drift, and it depends on the width.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..aligned import PAGE, aligned
from ..targets import Target
from .code import CHAIN, NUMPY, chain_function, compile_functions, panel_bytes, tile_function
from .timing import in_turns

FMA_LATENCY = 4
#: Rows that are measured; between them the table is filled in by its closed form and made monotone.
ROWS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 24, 28)
Tile = tuple[int, int]


def tiles(target: Target, rows: Sequence[int] = ROWS) -> list[Tile]:
    """The (rows, vectors) that the registers hold."""
    return [(m, v) for v in range(1, target.registers) for m in rows if not target.spills(m, v)]


def fitting_depths(target: Target, tile: Tile, dtype: str) -> tuple[int, int]:
    """Two depths whose panels stay in L1: what streaming from L2 adds is another term of the cost model."""
    row = (tile[0] + tile[1] * target.lanes(dtype)) * np.dtype(NUMPY[dtype]).itemsize
    high = min(256, panel_bytes(target) // row) // 8 * 8
    return high // 4 // 4 * 4, high


def measure_table(
    target: Target,
    dtype: str = "f32",
    *,
    rows: Sequence[int] = ROWS,
    depths: tuple[int, int] | None = None,
    rounds: int = 15,
    seconds: float = 0.002,
) -> dict[Tile, float]:
    """Cycles per k step by (rows, vectors). depths: the two, or None for those that fit L1."""
    slopes = {t: depths or fitting_depths(target, t, dtype) for t in tiles(target, rows)}
    functions = [chain_function("chain", dtype, target)]
    for (m, v), pair in slopes.items():
        functions += [tile_function(f"k{m}_{v}_{depth}", m, v, depth, dtype, target) for depth in pair]
    code = compile_functions(functions, target)
    deepest, lanes = max(high for _, high in slopes.values()), target.lanes(dtype)
    sizes = (deepest * target.registers, deepest * target.registers * lanes, target.registers**2 * lanes)
    panels = [aligned(n * np.dtype(NUMPY[dtype]).itemsize, PAGE).view(NUMPY[dtype]) for n in sizes]
    pointers = [p.ctypes.data for p in panels]
    took = in_turns({f.name: code.repeating(f.name, pointers) for f in functions}, rounds, seconds)
    cycle = took["chain"] / CHAIN / FMA_LATENCY
    return {
        (m, v): (took[f"k{m}_{v}_{high}"] - took[f"k{m}_{v}_{low}"]) / (high - low) / cycle
        for (m, v), (low, high) in slopes.items()
    }


def table_text(cycles: dict[Tile, float]) -> str:
    """The table with a column for every number of rows."""
    rows = sorted({m for m, _ in cycles})
    lines = ["vectors \\ rows " + "".join(f"{m:7d}" for m in rows)]
    for v in sorted({v for _, v in cycles}):
        cells = (f"{cycles[m, v]:7.2f}" if (m, v) in cycles else "       " for m in rows)
        lines.append(f"{v:14d} " + "".join(cells))
    return "\n".join(lines)
