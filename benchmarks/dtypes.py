"""Contractions of several element types: operations a second beside the same size in f32, and bytes beside reading."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

import morello_mlir

from .peers.adapters.roofline import Read
from .peers.workloads import Workload, aligned, dtype_of

_BF16, _MIXED = ("bf16", "bf16", "f32"), ("f32", "bf16", "f32")
#: (types, m, k, n, rhs is n x k in memory)
ROWS = (
    *((_BF16, n, n, n, False) for n in (256, 512, 1024)),
    *((("u8", "i8", "i32"), n, n, n, False) for n in (128, 256, 512, 1024)),
    *(
        (types, 512, 512, 512, False)
        for types in (
            ("i8", "i8", "i32"),
            ("u8", "i8", "i16"),
            ("i16", "i16", "i32"),
            ("i32", "i32", "i32"),
            ("f16", "f16", "f32"),
            ("bf16", "bf16", "bf16"),
            ("f64", "f64", "f64"),
        )
    ),
    *((types, 1, 2048, 16384, turned) for types in (_BF16, _MIXED, ("f16", "f16", "f32")) for turned in (False, True)),
    *((("u8", "i8", "i32"), 1, 4096, 16384, turned) for turned in (False, True)),
    *((_BF16, 4, 2048, 16384, turned) for turned in (False, True)),
)
#: Seconds of one sample.
SAMPLE = 0.02


def program(types: tuple[str, str, str], m: int, k: int, n: int, turned: bool) -> str:
    """out = lhs @ rhs on memrefs; bytes are widened by the signs of `types`."""
    a, b, c = ("i8" if t == "u8" else t for t in types)
    rhs = f"memref<{n}x{k}x{b}>" if turned else f"memref<{k}x{n}x{b}>"
    real = not c.startswith("i")

    def widen(name: str, type_: str, element: str) -> str:
        op = "extf" if real else "extui" if type_ == "u8" else "extsi"
        return f"%{name}w = arith.{op} %{name} : {element} to {c}"

    def factor(name: str, element: str) -> str:
        return f"%{name}" if element == c else f"%{name}w"

    widened = [widen(x, t, e) for x, t, e in (("x", types[0], a), ("y", types[1], b)) if e != c]
    mul, add = ("mulf", "addf") if real else ("muli", "addi")
    return f"""
    func.func @f(%a: memref<{m}x{k}x{a}>, %b: {rhs}, %c: memref<{m}x{n}x{c}>) {{
      %zero = arith.constant {"0.0" if real else "0"} : {c}
      linalg.fill ins(%zero : {c}) outs(%c : memref<{m}x{n}x{c}>)
      linalg.generic {{
        indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> ({"n, k" if turned else "k, n"})>,
                         affine_map<(m, n, k) -> (m, n)>],
        iterator_types = ["parallel", "parallel", "reduction"]
      }} ins(%a, %b : memref<{m}x{k}x{a}>, {rhs}) outs(%c : memref<{m}x{n}x{c}>) {{
      ^bb0(%x: {a}, %y: {b}, %acc: {c}):
        {chr(10).join(widened)}
        %p = arith.{mul} {factor("x", a)}, {factor("y", b)} : {c}
        %q = arith.{add} %acc, %p : {c}
        linalg.yield %q : {c}
      }}
      return
    }}"""


@dataclass(frozen=True)
class Row:
    types: tuple[str, str, str]
    sizes: tuple[int, int, int]
    turned: bool

    @property
    def label(self) -> str:
        return f"{'x'.join(map(str, self.sizes))} {' x '.join(self.types[:2])} -> {self.types[2]}" + (
            " NxK" if self.turned else ""
        )

    def calls(self, target: str) -> dict[str, Callable[[], Any]]:
        """What is timed in turns: ours, ours of f32, and reading as many bytes."""
        m, k, n = self.sizes
        plain = ("f32", "f32", "f32")
        found = {"ours": _call(self.types, self.sizes, self.turned, target)}
        if m > 1:
            found["f32"] = _call(plain, self.sizes, self.turned, target)
        workload = Workload("dtypes", m, k, n, types=self.types)
        reader = Read()
        reader.start(1, "native")
        built = reader.build(workload, None)  # type: ignore[arg-type]
        assert built is not None
        found["read"] = lambda: built.run(1)
        return found


def _call(types: tuple[str, str, str], sizes: tuple[int, int, int], turned: bool, target: str) -> Callable[[], Any]:
    """A call of our code, checked once against numpy."""
    m, k, n = sizes
    compiled = morello_mlir.compile(program(types, m, k, n, turned), target=target, threads=1)
    rng = np.random.default_rng(0)
    arrays = [
        aligned(s, dtype_of(t)) for s, t in zip(((m, k), (n, k) if turned else (k, n), (m, n)), types, strict=True)
    ]
    for array in arrays[:2]:
        whole = np.iinfo(array.dtype) if array.dtype.kind in "iu" else None
        array[...] = rng.integers(whole.min, whole.max + 1, array.shape) if whole else rng.uniform(-1, 1, array.shape)
    a, b, c = arrays
    compiled.f(a, b, c)
    exact = c.dtype.kind in "iu"
    wide = np.int64 if exact else np.float64
    want = (a[:8].astype(wide) @ (b.T if turned else b).astype(wide)).astype(c.dtype if exact else wide)
    near = 1e-3 if c.dtype.itemsize > 2 else 1e-2
    assert (c[:8] == want).all() if exact else np.allclose(c[:8], want, rtol=near, atol=near * k**0.5), types
    return lambda: compiled.f(a, b, c)


def samples(calls: dict[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    """Seconds a call, sampled in turns."""
    counts = {}
    for name, call in calls.items():
        call()
        start = time.perf_counter()
        call()
        counts[name] = max(1, round(SAMPLE / max(time.perf_counter() - start, 1e-7)))
    found: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            for _ in range(counts[name]):
                call()
            found[name].append((time.perf_counter() - start) / counts[name])
    return found


def measured(target: str, rounds: int, alone: Callable[[], AbstractContextManager[Any]] = nullcontext) -> Iterator[Any]:
    """Every row's figures. alone: a context in which nothing else disturbs."""
    for types, m, k, n, turned in ROWS:
        row = Row(types, (m, k, n), turned)
        calls = row.calls(target)
        with alone():
            times = samples(calls, rounds)
        best = {name: median(t) for name, t in times.items()}
        gops = 2e-9 * m * k * n / best["ours"]
        share = median(r / o for o, r in zip(times["ours"], times["read"], strict=True))
        against = median(f / o for o, f in zip(times["ours"], times["f32"], strict=True)) if "f32" in times else None
        yield {"row": row.label, "us": 1e6 * best["ours"], "gops": gops, "against_f32": against, "share_of_read": share}


def run(target: str, rounds: int) -> list[dict[str, Any]]:
    found = []
    print("| row | us | Gop/s | f32 / ours | share of read bandwidth |\n|---|---|---|---|---|")
    for record in measured(target, rounds):
        against = f"{record['against_f32']:.2f}" if record["against_f32"] else ""
        figures = f"{record['us']:.0f} | {record['gops']:.0f} | {against} | {record['share_of_read']:.2f}"
        print(f"| {record['row']} | {figures} |", flush=True)
        found.append(record)
    return found
