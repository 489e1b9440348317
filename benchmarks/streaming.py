"""Softmax, layer normalisation, reductions, elementwise chains beside numpy and every installed library, in turns.

All are called from Python; what a call costs is part of it for all. Inputs start at pages; outputs some lines behind
one, since a load waits for an earlier store whose address agrees in the last twelve bits.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import morello_mlir
from morello_mlir.aligned import PAGE, aligned
from morello_mlir.nests import NestSpec

Call = Callable[[], Any]

_SOFTMAX = "m = max(x0); e = exp(sub(x0, m)); s = sum(e); y = div(e, s)"
_NORM = (
    "a = div(sum(x0), {n}.0:f32); d = sub(x0, a); v = div(sum(mul(d, d)), {n}.0:f32);"
    "y = add(mul(mul(d, rsqrt(add(v, 1e-05:f32))), x1), x2)"
)
_GELU = "y = mul(mul(x0, 0.5:f32), add(erf(mul(x0, 0.70710677:f32)), 1.0:f32))"
_GELU_TANH = (
    "c = mul(x0, mul(x0, x0)); t = tanh(mul(add(x0, mul(c, 0.044715:f32)), 0.7978846:f32));"
    "y = mul(mul(x0, 0.5:f32), add(t, 1.0:f32))"
)


@dataclass(frozen=True)
class Workload:
    """f32, row-major. kind: softmax, layernorm, row_sum, column_sum, gelu, gelu_tanh, tanh (of rows x cols); middle_sum
    (over the second of three dims); max_pool (images x rows x cols; windows of 3 x 3, every second one, nothing
    padded)."""

    kind: str
    shape: tuple[int, ...]

    @property
    def label(self) -> str:
        return f"{self.kind} {'x'.join(map(str, self.shape))}"

    @property
    def out_shape(self) -> tuple[int, ...]:
        first, *rest = self.shape
        if self.kind == "max_pool":
            return (first, *((n - 3) // 2 + 1 for n in rest))
        return {"row_sum": (first,), "column_sum": tuple(rest), "middle_sum": (first, rest[-1])}.get(
            self.kind, self.shape
        )

    @property
    def bytes(self) -> int:
        """What has to be read or written at least."""
        return 4 * (math.prod(self.shape) + (0 if self.kind.endswith("sum") else math.prod(self.out_shape)))

    def spec(self, threads: int = 1) -> NestSpec:
        if self.kind == "max_pool":
            text = self._max_pool()
        elif self.kind == "middle_sum":
            text = self._middle_sum()
        else:
            text = self._of_rows()
        return NestSpec.parse(f"{text}, {f'parallel {threads}' if threads > 1 else 'serial'})")

    def _of_rows(self) -> str:
        rows, n = self.shape
        x, row, col = f"(f32, GL, [{n}, 1])", "(f32, GL, [1, 0])", "(f32, GL, [0, 1])"
        return {
            "softmax": f'Softmax([{rows}, {n} scan], {x}, {x}, "{_SOFTMAX}"',
            "layernorm": f'Compose([{rows}, {n} scan], {x}, {col}, {col}, {x}, "{_NORM.format(n=n)}"',
            "row_sum": f'Reduce([{rows}, {n} scan], {x}, {row}, "y = sum(x0)"',
            "column_sum": f'Reduce([{rows} scan, {n}], {x}, {col}, "y = sum(x0)"',
            "gelu": f'Map([{rows}, {n}], {x}, {x}, "{_GELU}"',
            "gelu_tanh": f'Map([{rows}, {n}], {x}, {x}, "{_GELU_TANH}"',
            "tanh": f'Map([{rows}, {n}], {x}, {x}, "y = tanh(x0)"',
        }[self.kind]

    def _middle_sum(self) -> str:
        a, b, c = self.shape
        x, y = f"(f32, GL, [{b * c}, {c}, 1])", f"(f32, GL, [{c}, 0, 1])"
        return f'Reduce([{a}, {b} scan, {c}], {x}, {y}, "y = sum(x0)"'

    def _max_pool(self) -> str:
        images, height, width = self.shape
        _, oh, ow = self.out_shape
        x = f"(f32, GL, [{height * width}, {2 * width}, 2, {width}, 1])"
        y = f"(f32, GL, [{oh * ow}, {ow}, 1, 0, 0])"
        return f'Reduce([{images}, {oh}, {ow}, 3 scan, 3 scan], {x}, {y}, "y = max(x0)"'


def _workloads() -> tuple[Workload, ...]:
    softmax = [(rows, cols) for cols in (512, 2048, 8192, 65536, 524288) for rows in (1, 8, 32)]
    others = [
        ("layernorm", (128, 768)),
        ("layernorm", (1024, 1024)),
        ("row_sum", (1024, 1024)),
        ("column_sum", (1024, 1024)),
        ("middle_sum", (64, 128, 256)),
        ("max_pool", (64, 114, 114)),
        ("gelu", (128, 3072)),
        ("gelu_tanh", (128, 3072)),
        ("tanh", (128, 3072)),
    ]
    return tuple(Workload(*w) for w in (*(("softmax", s) for s in softmax), ("softmax", (37, 1000)), *others))


WORKLOADS = _workloads()
LIBRARIES = ("ours", "numpy", "torch", "XNNPACK", "ONNX Runtime", "JAX")


def module(spec: NestSpec) -> str:
    """A module with one function, @run, of the operands of a nest as flat memrefs."""
    types = [f"memref<{o.span(spec.dims)}x{o.dtype}>" for o in spec.operands]
    names = [f"%a{i}" for i in range(len(types))]
    arguments = ", ".join(f"{n}: {t}" for n, t in zip(names, types, strict=True))
    scan = ": " + ", ".join(map(str, spec.scan_dims)) if spec.scan_dims else ""
    operands = ", ".join(f'"{o}"' for o in spec.operands)
    threading = "serial" if spec.serial else f"threads = {spec.threads} : i64"
    return f"""func.func @run({arguments}) {{
  "morello.nest{len(types)}"({", ".join(names)}) {{
    function = "{spec.function}", dims = array<i64: {", ".join(map(str, spec.dims))}>, scan = array<i64{scan}>,
    operands = [{operands}], body = "{spec.body}", {threading}
  }} : ({", ".join(types)}) -> ()
  return
}}"""


def array(*shape: int, behind: int = 0) -> np.ndarray:
    """An array `behind` bytes behind the start of a page."""
    size = 4 * math.prod(shape)
    return aligned(size + behind, PAGE)[behind:].view(np.float32).reshape(shape)


def build(w: Workload, library: str, threads: int, target: str) -> Call | None:
    """A call of a library (one of LIBRARIES), or None. Raises AssertionError where our result is wrong."""
    from .streaming_peers import PEERS, numpy_of

    x = array(*w.shape)
    x[:] = np.random.default_rng(0).normal(size=x.shape)
    g, h = np.full(w.shape[-1], 1.5, np.float32), np.full(w.shape[-1], 0.5, np.float32)
    if library == "numpy":
        return lambda: numpy_of(w, x, g, h)
    if library != "ours":
        return PEERS[library](w, x, g, h, threads)
    out = array(*w.out_shape, behind=1088)
    spec = w.spec(threads)
    compiled = morello_mlir.compile(module(spec), target=target, threads=threads)
    more = (g, h) if w.kind == "layernorm" else ()
    flat = [a.reshape(-1)[: o.span(spec.dims)] for a, o in zip((x, *more, out), spec.operands, strict=True)]
    compiled.run(*flat)
    terms = math.prod(w.shape) // math.prod(w.out_shape)
    np.testing.assert_allclose(out, numpy_of(w, x, g, h), rtol=1e-4, atol=1e-4 * terms)
    return lambda: compiled.run(*flat)


def labels() -> list[str]:
    """The names of the rows."""
    return [w.label for w in WORKLOADS]


def run(target: str, rounds: int, threads: int = 1, only: str = "") -> list[dict[str, Any]]:
    """Measures and prints the table. only: rows whose label contains it."""
    from .turns import measure

    out = []
    others = [name for name in LIBRARIES if name != "ours"]
    print(f"| {threads} thread{'s' * (threads > 1)} | us | GB/s | {' | '.join(others)} |")
    print(f"|---|---|---|{'---|' * len(others)}")
    rows = {w.label: w for w in WORKLOADS if only in w.label}
    for label, took in measure("streaming", list(rows), threads, target, rounds):
        if "ours" not in took:
            continue
        own, nbytes = took["ours"], rows[label].bytes
        cells = [f"{took[n] / own:.2f}x" if n in took else "" for n in others]
        print(f"| {label} | {1e6 * own:.2f} | {nbytes / own / 1e9:.1f} | {' | '.join(cells)} |", flush=True)
        out.append({"workload": label, "threads": threads, "seconds": took, "bytes": nbytes})
    _summary(out)
    return out


def _summary(rows: list[dict[str, Any]]) -> None:
    """Of softmax: the best library of each row, its time over ours."""
    found = []
    for row in (r for r in rows if r["workload"].startswith("softmax")):
        others = [s for n, s in row["seconds"].items() if n != "ours"]
        found.append((min(others) / row["seconds"]["ours"], row["workload"]))
    if found:
        mean = math.exp(statistics.fmean(math.log(ratio) for ratio, _ in found))
        worst, where = min(found)
        print(f"\nsoftmax beside the best library of each row: geometric mean {mean:.2f}, worst {worst:.2f} ({where})")
