"""Measures the micro-kernel table of a target: cycles per k step of `broadcast_fma` for every register tile that fits.

    python benchmarks/kernel_table.py [--target avx512] [--dtype f32] [--k 128 512] [--json]

The time of a k step is the slope between two depths, so that calls, loads and stores of the tile cancel out. The unit
is the latency of a fused multiply-add, four cycles on every core since Skylake and Zen 2, measured in the same run with
vectors of the same width: the clock may drift, and it depends on the width. Of many rounds a low quantile counts.

By default the depths are such that the panels stay in L1: what streaming from L2 adds is another term of the cost
model.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import time
from collections.abc import Callable

import numpy as np
from mlir import ir
from mlir.dialects import llvm as llvm_dialect
from mlir.passmanager import PassManager

from morello_mlir import dialect
from morello_mlir.lowering import apply_all
from morello_mlir.runtime import jit
from morello_mlir.search.schedule import Kernel, Move
from morello_mlir.spec import dense_strides
from morello_mlir.targets import LINE, Target, get_target

NUMPY = {"f32": np.float32, "f64": np.float64}
FMA_LATENCY = 4
CHAIN = 512
QUANTILE = 0.15
ROWS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 24, 28)

TO_LLVM = (
    "builtin.module(convert-vector-to-scf,expand-strided-metadata,lower-affine,convert-scf-to-cf,canonicalize,cse,"
    "convert-vector-to-llvm{enable-x86vector=true},convert-arith-to-llvm,convert-index-to-llvm,finalize-memref-to-llvm,"
    "convert-func-to-llvm{use-bare-ptr-memref-call-conv=true},convert-cf-to-llvm,reconcile-unrealized-casts,"
    "canonicalize,cse)"
)
Tile = tuple[int, int]


def tiles(target: Target) -> list[Tile]:
    """The (rows, vectors) that the registers hold."""
    return [(m, v) for v in range(1, target.registers) for m in ROWS if not target.spills(m, v)]


def fitting_depths(target: Target, tile: Tile, dtype: str) -> tuple[int, int]:
    """Two depths whose panels take at most half of L1."""
    row = (tile[0] + tile[1] * target.lanes(dtype)) * np.dtype(NUMPY[dtype]).itemsize
    high = min(256, target.l1.lines * LINE // 2 // row) // 8 * 8
    return high // 4 // 4 * 4, high


def kernel_text(name: str, rows: int, vectors: int, depth: int, dtype: str, lanes: int) -> str:
    """`@name(times, A, B, C)`: one register tile on packed panels, over and over."""
    columns = vectors * lanes
    shapes = ((1, 1, depth, rows), (1, 1, depth, columns), (1, rows, columns))
    types = [f"memref<{'x'.join(map(str, s))}x{dtype}, strided<{list(dense_strides(s))}>>" for s in shapes]
    tensors = [
        f"({dtype}, L1, [b, m/{rows}, k, m%{rows}])",
        f"({dtype}, L1, [b, n/{columns}, k, n%{columns}])",
        f"({dtype}, L1, row_major)",
    ]
    tensors_text = ", ".join(f'"{t}"' for t in tensors)
    listed = ", ".join(types)
    arguments = ", ".join(f"%{n}: {t}" for n, t in zip("abc", types, strict=True))
    return f"""
func.func private @{name}_body({arguments}) attributes {{passthrough = ["noinline"]}} {{
  "morello.spec"(%a, %b, %c) {{function = "MatmulAccum", dims = array<i64: 1, {rows}, {depth}, {columns}>,
    operands = [{tensors_text}], serial}} : ({listed}) -> ()
  return
}}
func.func @{name}(%times: index, {arguments}) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %i = %zero to %times step %one {{
    func.call @{name}_body(%a, %b, %c) : ({listed}) -> ()
  }}
  return
}}"""


def chain_text(dtype: str, lanes: int) -> str:
    """`@chain(times, A, B, C)`: CHAIN dependent fused multiply-adds, over and over."""
    vector, memory = f"vector<{lanes}x{dtype}>", f"memref<{lanes}x{dtype}>"
    steps = "\n".join(f"%v{i + 1} = vector.fma %v{i}, %x, %x : {vector}" for i in range(CHAIN))
    return f"""
func.func @chain(%times: index, %a: {memory}, %b: {memory}, %c: {memory}) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %x = vector.load %a[%zero] : {memory}, {vector}
  %start = vector.load %b[%zero] : {memory}, {vector}
  %end = scf.for %i = %zero to %times step %one iter_args(%v0 = %start) -> ({vector}) {{
    {steps}
    scf.yield %v{CHAIN} : {vector}
  }}
  vector.store %end, %c[%zero] : {memory}, {vector}
  return
}}"""


def compile_all(texts: dict[str, str], target: Target) -> jit.Library:
    context = ir.Context()
    dialect.load(context)
    module = ir.Module.parse("\n".join(texts.values()), context)
    schedule = Move("out", "VRF", None, Kernel("broadcast_fma"))
    apply_all([(op, schedule) for op in dialect.spec_ops(module.operation)], target)
    with context, ir.Location.unknown():
        PassManager.parse(TO_LLVM).run(module.operation)
    text = llvm_dialect.translate_module_to_llvmir(module.operation)
    return jit.load(text, tuple(texts), jit.Options(vectorize=False), None)


def aligned(count: int, dtype: str) -> np.ndarray:
    """Zeros at the start of a page."""
    size = np.dtype(NUMPY[dtype]).itemsize
    raw = np.zeros(count * size + 4096, np.uint8)
    start = -raw.ctypes.data % 4096
    return raw[start : start + count * size].view(NUMPY[dtype])


def measure(functions: dict[str, Callable[[int], None]], rounds: int, seconds: float) -> dict[str, float]:
    """Seconds per call, all functions interleaved."""
    repeats, samples = {}, {name: [] for name in functions}
    for name, call in functions.items():
        call(20)
        start = time.perf_counter()
        call(20)
        repeats[name] = max(1, int(seconds * 20 / (time.perf_counter() - start)))
    for _ in range(rounds):
        for name, call in functions.items():
            start = time.perf_counter()
            call(repeats[name])
            samples[name].append((time.perf_counter() - start) / repeats[name])
    return {name: float(np.quantile(values, QUANTILE)) for name, values in samples.items()}


def table(target: Target, dtype: str, depths: tuple[int, int] | None, rounds: int, seconds: float) -> dict[Tile, float]:
    """Cycles per k step by (rows, vectors)."""
    lanes = target.lanes(dtype)
    slopes = {t: depths or fitting_depths(target, t, dtype) for t in tiles(target)}
    texts = {"chain": chain_text(dtype, lanes)}
    for (m, v), pair in slopes.items():
        for depth in pair:
            texts[f"k{m}_{v}_{depth}"] = kernel_text(f"k{m}_{v}_{depth}", m, v, depth, dtype, lanes)
    library = compile_all(texts, target)
    deepest = max(high for _, high in slopes.values())
    sizes = (deepest * target.registers, deepest * target.registers * lanes, target.registers**2 * lanes)
    panels = [aligned(n, dtype) for n in sizes]
    pointers = [p.ctypes.data for p in panels]
    functions = {}
    for name in texts:
        raw = ctypes.CFUNCTYPE(None, ctypes.c_long, *[ctypes.c_void_p] * 3)(library.addresses[name])
        functions[name] = lambda times, raw=raw: raw(times, *pointers)
    took = measure(functions, rounds, seconds)
    cycle = took["chain"] / CHAIN / FMA_LATENCY
    return {
        (m, v): (took[f"k{m}_{v}_{high}"] - took[f"k{m}_{v}_{low}"]) / (high - low) / cycle
        for (m, v), (low, high) in slopes.items()
    }


def show(cycles: dict[Tile, float]) -> str:
    rows = sorted({m for m, _ in cycles})
    lines = ["vectors \\ rows " + "".join(f"{m:7d}" for m in rows)]
    for v in sorted({v for _, v in cycles}):
        cells = (f"{cycles[m, v]:7.2f}" if (m, v) in cycles else "       " for m in rows)
        lines.append(f"{v:14d} " + "".join(cells))
    return "\n".join(lines)


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
    cycles = table(target, options.dtype, tuple(options.k) if options.k else None, options.rounds, options.seconds)
    if options.json:
        print(json.dumps({f"{m},{v}": round(c, 3) for (m, v), c in cycles.items()}))
    else:
        depths = f"slope {options.k[0]} -> {options.k[1]}" if options.k else "panels in L1"
        print(f"{target.name} {options.dtype}, cycles per k step, {depths}")
        print(show(cycles))


if __name__ == "__main__":
    main()
