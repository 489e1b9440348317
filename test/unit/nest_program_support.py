"""For tests of nests: programs of linalg ops on tensors as text, what is lifted of them, and what they compute."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from mlir import ir

from morello_mlir import compile as compile_module
from morello_mlir import diagnostics, dialect
from morello_mlir.passes.pipeline import run_pipeline

LIFT = "morello-return-to-argument,morello-group,morello-fuse,morello-bufferize,morello-lift{nests=true}"
NUMPY = {"f64": "f8", "f32": "f4", "f16": "f2", "i64": "i8", "i32": "i4", "i16": "i2", "i8": "i1", "i1": "?"}
TOLERANCE = {"f64": 1e-12, "f32": 2e-5, "f16": 4e-3, "bf16": 3e-2}
_CONTEXT = ir.Context()
dialect.load(_CONTEXT)


@dataclass(frozen=True)
class Tensor:
    """A value of a program."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def type(self) -> str:
        return f"tensor<{''.join(f'{n}x' for n in self.shape)}{self.dtype}>"


class Program:
    """A function, op by op."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._arguments: list[Tensor] = []
        self._count = 0

    def _value(self, shape: Sequence[int], dtype: str) -> Tensor:
        self._count += 1
        return Tensor(f"%v{self._count}", tuple(shape), dtype)

    def argument(self, *shape: int, dtype: str = "f32") -> Tensor:
        self._arguments.append(self._value(shape, dtype))
        return self._arguments[-1]

    def line(self, text: str) -> None:
        self._lines.append(text)

    def empty(self, shape: Sequence[int], dtype: str) -> Tensor:
        out = self._value(shape, dtype)
        self.line(f"{out.name} = tensor.empty() : {out.type}")
        return out

    def constant(self, text: str, dtype: str) -> str:
        name = self._value((), dtype).name
        self.line(f"{name} = arith.constant {text} : {dtype}")
        return name

    def fill(self, shape: Sequence[int], dtype: str, value: str) -> Tensor:
        number, start, out = self.constant(value, dtype), self.empty(shape, dtype), self._value(shape, dtype)
        self.line(f"{out.name} = linalg.fill ins({number} : {dtype}) outs({start.name} : {out.type}) -> {out.type}")
        return out

    def map(
        self,
        body: str,
        *inputs: Tensor,
        shape: Sequence[int],
        dtype: str = "f32",
        maps: Sequence[str] = (),
        out: str = "",
    ) -> Tensor:
        """An elementwise op over `shape`. body: the scalar ops, on %a, %b, ..., that end in %y. maps: of inputs (and
        the output) that are not the identity."""
        return self.combine(body, inputs, self.empty(shape, dtype), ["parallel"] * len(shape), maps, out)

    def reduce(self, body: str, x: Tensor, dims: Sequence[int], init: str, keep: bool = False) -> Tensor:
        """A reduction along `dims`. body: ops on %a and %o that end in %y. keep: with dims of size one."""
        kept = [d for d in range(len(x.shape)) if d not in dims]
        start = self.fill([1 if d in dims else n for d, n in enumerate(x.shape) if keep or d in kept], x.dtype, init)
        kinds = ["reduction" if d in dims else "parallel" for d in range(len(x.shape))]
        out = ", ".join(f"d{d}" if d in kept else "0" for d in range(len(x.shape)) if keep or d in kept)
        return self.combine(body, [x], start, kinds, out=f"({out})")

    def combine(
        self,
        body: str,
        inputs: Sequence[Tensor],
        start: Tensor,
        kinds: Sequence[str],
        maps: Sequence[str] = (),
        out: str = "",
    ) -> Tensor:
        """A generic with loops of these kinds; the rest as in `map`."""
        loops = [f"d{d}" for d in range(len(kinds))]
        result = self._value(start.shape, start.dtype)
        whole = ", ".join(loops)
        texts = [
            *(maps[i] if i < len(maps) and maps[i] else f"({whole})" for i in range(len(inputs))),
            out or f"({whole})",
        ]
        affine = ", ".join(f"affine_map<({whole}) -> {t}>" for t in texts)
        names = ", ".join(t.name for t in inputs)
        types = ", ".join(t.type for t in inputs)
        ins = f"ins({names} : {types}) " if inputs else ""
        scalars = ", ".join(f"%{chr(97 + i)}: {t.dtype}" for i, t in enumerate(inputs))
        arguments = ", ".join(filter(None, [scalars, f"%o: {start.dtype}"]))
        iterators = ", ".join(f'"{k}"' for k in kinds)
        self.line(
            f"{result.name} = linalg.generic {{indexing_maps = [{affine}], iterator_types = [{iterators}]}} {ins}"
            f"outs({start.name} : {start.type}) {{\n^bb0({arguments}):\n{body}\nlinalg.yield %y : {start.dtype}\n"
            f"}} -> {result.type}"
        )
        return result

    def op(self, name: str, *inputs: Tensor, shape: Sequence[int], dtype: str = "f32", more: str = "") -> Tensor:
        """A named op with one output."""
        start, out = self.empty(shape, dtype), self._value(shape, dtype)
        names, types = ", ".join(t.name for t in inputs), ", ".join(t.type for t in inputs)
        self.line(f"{out.name} = {name} ins({names} : {types}) outs({start.name} : {start.type}) -> {out.type}")
        return out

    def reshaped(self, x: Tensor, groups: Sequence[Sequence[int]], shape: Sequence[int]) -> Tensor:
        """`x` with the dims of each group made one."""
        out = self._value(shape, x.dtype)
        listed = [list(g) for g in groups]
        self.line(f"{out.name} = tensor.collapse_shape {x.name} {listed} : {x.type} into {out.type}")
        return out

    def text(self, *results: Tensor) -> str:
        arguments = ", ".join(f"{a.name}: {a.type}" for a in self._arguments)
        types = ", ".join(r.type for r in results)
        names = ", ".join(r.name for r in results)
        body = "\n".join(self._lines)
        return f"func.func @f({arguments}) -> ({types}) {{\n{body}\nreturn {names} : {types}\n}}"


def lift(text: str, pipeline: str = LIFT) -> tuple[list[str], list[str], str]:
    """(the nests, the remarks, the module) after a pipeline of ours."""
    with _CONTEXT, ir.Location.unknown(), diagnostics.capture(_CONTEXT) as sink:
        module = ir.Module.parse(text)
        said = run_pipeline(module.operation, f"builtin.module({pipeline})")
        assert dialect.verify_specs(module.operation), sink.diagnostics
        nests = [str(n.spec) for n in dialect.nest_ops(module.operation)]
        return nests, [d.message for d in said if d.severity == diagnostics.REMARK], str(module)


def softmax(p: Program, x: Tensor, dim: int) -> Tensor:
    """As frontends write it, op by op."""
    rest = ", ".join("0" if d == dim else f"d{d}" for d in range(len(x.shape)))
    t = x.dtype
    low = {"f16": "0xFC00", "bf16": "0xFF80", "f32": "0xFF800000", "f64": "0xFFF0000000000000"}[t]
    m = p.reduce(f"%y = arith.maximumf %a, %o : {t}", x, [dim], low, keep=True)
    shifted = p.map(f"%y = arith.subf %a, %b : {t}", x, m, shape=x.shape, dtype=t, maps=["", f"({rest})"])
    e = p.map(f"%y = math.exp %a : {t}", shifted, shape=x.shape, dtype=t)
    s = p.reduce(f"%y = arith.addf %a, %o : {t}", e, [dim], "0.0", keep=True)
    return p.map(f"%y = arith.divf %a, %b : {t}", e, s, shape=x.shape, dtype=t, maps=["", f"({rest})"])


def layernorm(p: Program, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Over the last dim, in two passes, as torch-mlir writes it."""
    rows, n = x.shape
    row, last = ["", "(d0, 0)"], ["", "(d1)"]
    count, eps = p.constant(f"{float(n)}", "f32"), p.constant("1.0e-05", "f32")
    total = p.reduce("%y = arith.addf %a, %o : f32", x, [1], "0.0", keep=True)
    mean = p.map(f"%y = arith.divf %a, {count} : f32", total, shape=(rows, 1))
    centred = p.map("%y = arith.subf %a, %b : f32", x, mean, shape=x.shape, maps=row)
    squares = p.map("%y = arith.mulf %a, %a : f32", centred, shape=x.shape)
    sums = p.reduce("%y = arith.addf %a, %o : f32", squares, [1], "0.0", keep=True)
    variance = p.map(f"%y = arith.divf %a, {count} : f32", sums, shape=(rows, 1))
    shifted = p.map(f"%y = arith.addf %a, {eps} : f32", variance, shape=(rows, 1))
    scale = p.map("%y = math.rsqrt %a : f32", shifted, shape=(rows, 1))
    normal = p.map("%y = arith.mulf %a, %b : f32", centred, scale, shape=x.shape, maps=row)
    weighted = p.map("%y = arith.mulf %a, %b : f32", normal, weight, shape=x.shape, maps=last)
    return p.map("%y = arith.addf %a, %b : f32", weighted, bias, shape=x.shape, maps=last)


def numbers(shape: Sequence[int], dtype: str = "f32", seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if dtype.startswith("i"):
        high = 2 if dtype == "i1" else 50
        return rng.integers(0 if dtype == "i1" else -50, high, shape).astype(NUMPY[dtype])
    return rng.standard_normal(shape).astype(NUMPY[dtype])


def compiled(p: Program, *results: Tensor, threads: int = 1) -> Callable[..., Any]:
    """The program's function, all of which is lifted."""
    module = compile_module(p.text(*results), memo="off", threads=threads)
    assert module.left == 0 and module.lifted > 0
    return module.f


def check(got: np.ndarray, expected: np.ndarray, dtype: str = "f32") -> None:
    """Raises AssertionError where numbers differ by more than a sum of `dtype` may."""
    assert got.shape == expected.shape
    if dtype in TOLERANCE:
        np.testing.assert_allclose(
            got.astype("f8"), expected.astype("f8"), rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] / 10
        )
    else:
        np.testing.assert_array_equal(got, expected)
