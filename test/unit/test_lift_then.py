"""Contractions with elementwise ops around them: what becomes one Spec, and that results are right in any case."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from lift_support import Run

import morello_mlir

NUMPY = {"f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16, "i32": np.int32, "i8": np.int8}
Arrays = Sequence[np.ndarray]


def tensor(shape: Sequence[int], dtype: str = "f32") -> str:
    return f"tensor<{'x'.join(map(str, [*shape, dtype]))}>"


class Program:
    """A function on tensors, written op by op. Values are (name, shape, dtype)."""

    def __init__(self, *arguments: tuple[Sequence[int], str]):
        self.lines: list[str] = []
        self.arguments = [(f"%a{i}", tuple(shape), dtype) for i, (shape, dtype) in enumerate(arguments)]
        self._count = 0

    def value(self, shape: Sequence[int], dtype: str, text: str) -> Any:
        self._count += 1
        name = f"%v{self._count}"
        self.lines.append(f"{name} = {text}")
        return (name, tuple(shape), dtype)

    def empty(self, shape: Sequence[int], dtype: str) -> Any:
        return self.value(shape, dtype, f"tensor.empty() : {tensor(shape, dtype)}")

    def zeros(self, shape: Sequence[int], dtype: str = "f32") -> Any:
        zero = self.value((), dtype, f"arith.constant {'0' if dtype[0] == 'i' else '0.0'} : {dtype}")
        empty = self.empty(shape, dtype)
        kind = tensor(shape, dtype)
        return self.value(shape, dtype, f"linalg.fill ins({zero[0]} : {dtype}) outs({empty[0]} : {kind}) -> {kind}")

    def matmul(self, a: Any, b: Any, out: Any, op: str = "matmul") -> Any:
        ins = f"ins({a[0]}, {b[0]} : {tensor(*a[1:])}, {tensor(*b[1:])})"
        kind = tensor(*out[1:])
        return self.value(*out[1:], f"linalg.{op} {ins} outs({out[0]} : {kind}) -> {kind}")

    def each(
        self, shape: Sequence[int], dtype: str, inputs: Sequence[tuple[Any, str]], body: str, out: Any = None
    ) -> Any:
        """An elementwise op over `shape`. inputs: values and the dims that index them (`d0, d1`). body: ops on %x0, ...
        that end with %y."""
        loops = [f"d{i}" for i in range(len(shape))]
        maps = [f"affine_map<({', '.join(loops)}) -> ({dims})>" for dims in (*(d for _, d in inputs), ", ".join(loops))]
        out = out or self.empty(shape, dtype)
        kinds = ", ".join(['"parallel"'] * len(shape))
        types = ", ".join(tensor(*v[1:]) for v, _ in inputs)
        names = ", ".join(v[0] for v, _ in inputs)
        args = ", ".join([*(f"%x{i}: {v[2]}" for i, (v, _) in enumerate(inputs)), f"%o: {dtype}"])
        kind = tensor(shape, dtype)
        text = f"linalg.generic {{indexing_maps = [{', '.join(maps)}], iterator_types = [{kinds}]}} "
        text += f"ins({names} : {types}) outs({out[0]} : {kind}) {{\n^bb0({args}):\n{body}\n"
        return self.value(shape, dtype, text + f"linalg.yield %y : {dtype}\n}} -> {kind}")

    def text(self, *results: Any) -> str:
        args = ", ".join(f"{name}: {tensor(shape, dtype)}" for name, shape, dtype in self.arguments)
        types = ", ".join(tensor(*r[1:]) for r in results)
        body = "\n".join(self.lines)
        names = ", ".join(r[0] for r in results)
        return f"func.func @f({args}) -> ({types}) {{\n{body}\nreturn {names} : {types}\n}}"

    def inputs(self, seed: int = 0) -> list[np.ndarray]:
        rng = np.random.default_rng(seed)
        out = []
        for _, shape, dtype in self.arguments:
            if dtype.startswith("i"):
                out.append(rng.integers(-50, 50, shape).astype(NUMPY[dtype]))
            else:
                out.append(rng.standard_normal(shape).astype(NUMPY[dtype]))
        return out


BIAS = "%y = arith.addf %x0, %x1 : f32"
RELU = "%zero = arith.constant 0.0 : f32\n%y = arith.maximumf %x0, %zero : f32"


def specs(text: str) -> list[str]:
    return Run(text, "morello-group,morello-bufferize,morello-lift").specs


def left(text: str) -> list[str]:
    """The linalg ops that no Spec stands for."""
    run = Run(text, "morello-group,morello-bufferize,morello-lift")
    return re.findall(r"linalg\.(\w+)[ {]", re.sub(r"linalg\.yield", "", str(run.module)))


def results(text: str, arrays: Arrays, threads: int = 1) -> list[np.ndarray]:
    compiled = morello_mlir.compile(text, memo="off", threads=threads)
    out = compiled.f(*arrays)
    return list(out) if isinstance(out, (list, tuple)) else [out]


def check(program: Program, result: Any, want: Callable[..., np.ndarray], then: str, threads: int = 1) -> None:
    """One Spec with that `then`, no op left, and the results of `want`."""
    text = program.text(result)
    (spec,) = specs(text)
    assert f"then {then}" in spec, spec
    assert left(text) == []
    arrays = program.inputs()
    (got,) = results(text, arrays, threads)
    expected = want(*arrays)
    if expected.dtype.kind in "iu":
        np.testing.assert_array_equal(got, expected)
    else:
        rough = 2e-2 if result[2] == "bf16" else 1e-4
        np.testing.assert_allclose(got.astype(float), expected.astype(float), rtol=rough, atol=rough)


@pytest.mark.parametrize("threads", [1, 2])
def test_bias_and_relu(threads: int) -> None:
    p = Program(((13, 17), "f32"), ((17, 37), "f32"), ((37,), "f32"))
    x, w, bias = p.arguments
    h = p.matmul(x, w, p.zeros((13, 37)))
    h = p.each((13, 37), "f32", [(h, "d0, d1"), (bias, "d1")], BIAS)
    h = p.each((13, 37), "f32", [(h, "d0, d1")], RELU)
    check(p, h, lambda x, w, b: np.maximum(x @ w + b, 0), '"y = max(add(x0, x1), 0.0:f32)" [f32, (f32, [n])]', threads)


def test_bias_along_rows_and_in_place() -> None:
    p = Program(((5, 9), "f32"), ((9, 21), "f32"), ((5,), "f32"))
    x, w, bias = p.arguments
    h = p.matmul(x, w, p.zeros((5, 21)))
    h = p.each((5, 21), "f32", [(bias, "d0")], "%y = arith.mulf %o, %x0 : f32", out=h)
    check(p, h, lambda x, w, b: (x @ w) * b[:, None], '"y = mul(x0, x1)" [f32, (f32, [m])]')


def test_a_transposed_result_and_residual() -> None:
    """The output is column-major: the Spec is the transposed one, and what was along m is along n."""
    p = Program(((6, 11), "f32"), ((11, 19), "f32"), ((19,), "f32"), ((19, 6), "f32"))
    x, w, bias, residual = p.arguments
    h = p.matmul(x, w, p.zeros((6, 19)))
    h = p.each((6, 19), "f32", [(h, "d0, d1"), (bias, "d1")], BIAS)
    out = p.empty((19, 6), "f32")
    kind = tensor((19, 6))
    h = p.value(
        (19, 6),
        "f32",
        f"linalg.transpose ins({h[0]} : {tensor((6, 19))}) outs({out[0]} : {kind}) permutation = [1, 0]",
    )
    h = p.each((19, 6), "f32", [(h, "d0, d1"), (residual, "d0, d1")], BIAS)
    check(
        p,
        h,
        lambda x, w, b, r: (x @ w + b).T + r,
        '"y = add(add(x0, x1), x2)" [f32, (f32, [m]), (f32, [m, n])]',
    )


def test_through_reshapes() -> None:
    p = Program(((6, 7), "f32"), ((7, 20), "f32"), ((4, 5), "f32"))
    x, w, bias = p.arguments
    h = p.matmul(x, w, p.zeros((6, 20)))
    kind = tensor((2, 3, 4, 5))
    text = f"tensor.expand_shape {h[0]} [[0, 1], [2, 3]] output_shape [2, 3, 4, 5] : {tensor((6, 20))} into {kind}"
    h = p.value((2, 3, 4, 5), "f32", text)
    h = p.each((2, 3, 4, 5), "f32", [(h, "d0, d1, d2, d3"), (bias, "d2, d3")], BIAS)
    check(
        p,
        h,
        lambda x, w, b: (x @ w + b.ravel()).reshape(2, 3, 4, 5),
        '"y = add(x0, x1)" [f32, (f32, [n])]',
    )


def test_several_users_within() -> None:
    """silu: the sums are read twice."""
    p = Program(((9, 8), "f32"), ((8, 12), "f32"))
    x, w = p.arguments
    h = p.matmul(x, w, p.zeros((9, 12)))
    body = """%one = arith.constant 1.0 : f32
    %n = arith.negf %x0 : f32
    %e = math.exp %n : f32
    %d = arith.addf %e, %one : f32
    %y = arith.divf %one, %d : f32"""
    s = p.each((9, 12), "f32", [(h, "d0, d1")], body)
    h = p.each((9, 12), "f32", [(h, "d0, d1"), (s, "d0, d1")], "%y = arith.mulf %x0, %x1 : f32")
    check(p, h, lambda x, w: (x @ w) / (1 + np.exp(-(x @ w))), '"y = ')


def test_what_somebody_else_needs_is_written() -> None:
    p = Program(((9, 8), "f32"), ((8, 12), "f32"))
    x, w = p.arguments
    h = p.matmul(x, w, p.zeros((9, 12)))
    r = p.each((9, 12), "f32", [(h, "d0, d1")], RELU)
    text = p.text(h, r)
    (spec,) = specs(text)
    assert "then" not in spec
    arrays = p.inputs()
    got = results(text, arrays)
    want = arrays[0] @ arrays[1]
    np.testing.assert_allclose(got[0], want, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(got[1], np.maximum(want, 0), rtol=1e-4, atol=1e-4)


def test_what_somebody_else_needs_ends_the_chain() -> None:
    p = Program(((9, 8), "f32"), ((8, 12), "f32"), ((12,), "f32"))
    x, w, bias = p.arguments
    h = p.matmul(x, w, p.zeros((9, 12)))
    h = p.each((9, 12), "f32", [(h, "d0, d1"), (bias, "d1")], BIAS)
    r = p.each((9, 12), "f32", [(h, "d0, d1")], RELU)
    text = p.text(h, r)
    (spec,) = specs(text)
    assert 'then "y = add(x0, x1)"' in spec
    arrays = p.inputs()
    got = results(text, arrays)
    want = arrays[0] @ arrays[1] + arrays[2]
    np.testing.assert_allclose(got[0], want, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(got[1], np.maximum(want, 0), rtol=1e-4, atol=1e-4)


def test_two_copies_in_one_buffer_are_both_written() -> None:
    """What is concatenated with itself is copied into two parts of one buffer: a chain that takes both has one."""
    p = Program(((4, 8), "f32"), ((8, 14), "f32"))
    x, w = p.arguments
    h = p.each((4, 14), "f32", [(p.matmul(x, w, p.zeros((4, 14))), "d0, d1")], RELU)
    kind = tensor((4, 14))
    twice = p.value((8, 14), "f32", f"tensor.concat dim(0) {h[0]}, {h[0]} : ({kind}, {kind}) -> {tensor((8, 14))}")
    last = p.each((8, 14), "f32", [(twice, "d0, d1")], "%y = math.absf %x0 : f32")
    text = p.text(twice, last)
    a, b = p.inputs()
    want = np.tile(np.maximum(a @ b, 0), (2, 1))
    for got in results(text, [a, b]):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_results_in_two_parts_of_one_buffer_are_both_written() -> None:
    half = "memref<6x10xf32, strided<[20, 1]{}>>"
    text = f"""
    func.func @f(%x: memref<6x8xf32>, %w: memref<8x10xf32>, %both: memref<6x20xf32>) {{
      %l = memref.subview %both[0, 0] [6, 10] [1, 1] : memref<6x20xf32> to {half.format("")}
      %r = memref.subview %both[0, 10] [6, 10] [1, 1] : memref<6x20xf32> to {half.format(", offset: 10")}
      linalg.matmul ins(%x, %w : memref<6x8xf32>, memref<8x10xf32>) outs(%l : {half.format("")})
      linalg.exp ins(%l : {half.format("")}) outs(%r : {half.format(", offset: 10")})
      return
    }}"""
    x, w = (np.random.default_rng(0).random(shape, np.float32) for shape in ((6, 8), (8, 10)))
    both = np.ones((6, 20), np.float32)
    morello_mlir.compile(text, threads=1, memo="off").f(x, w, both)
    sums = 1 + x @ w
    np.testing.assert_allclose(both, np.concatenate([sums, np.exp(sums)], 1), rtol=1e-4)


def test_on_top_of_another_tensor() -> None:
    p = Program(((9, 8), "f32"), ((8, 12), "f32"), ((9, 12), "f32"))
    x, w, c = p.arguments
    h = p.each((9, 12), "f32", [(p.matmul(x, w, c), "d0, d1")], RELU)
    text = p.text(h)
    (spec,) = specs(text)
    assert "then" in spec
    arrays = p.inputs()
    kept = arrays[2].copy()
    (got,) = results(text, arrays)
    np.testing.assert_allclose(got, np.maximum(arrays[0] @ arrays[1] + arrays[2], 0), rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(arrays[2], kept)


def test_on_top_of_a_broadcast() -> None:
    p = Program(((9, 8), "f32"), ((8, 12), "f32"), ((12,), "f32"))
    x, w, bias = p.arguments
    out = p.empty((9, 12), "f32")
    kind = tensor((9, 12))
    init = p.value(
        (9, 12), "f32", f"linalg.broadcast ins({bias[0]} : tensor<12xf32>) outs({out[0]} : {kind}) dimensions = [0]"
    )
    h = p.matmul(x, w, init)
    check(p, h, lambda x, w, b: x @ w + b, '"y = add(x0, x1)" [f32, (f32, [n])]')


def test_batches() -> None:
    p = Program(((3, 5, 8), "f32"), ((3, 8, 12), "f32"), ((3, 12), "f32"))
    x, w, bias = p.arguments
    h = p.matmul(x, w, p.zeros((3, 5, 12)), "batch_matmul")
    h = p.each((3, 5, 12), "f32", [(h, "d0, d1, d2"), (bias, "d0, d2")], BIAS)
    check(p, h, lambda x, w, b: x @ w + b[:, None], '"y = add(x0, x1)" [f32, (f32, [b, n])]')


def test_bf16() -> None:
    p = Program(((7, 16), "bf16"), ((16, 24), "bf16"), ((24,), "f32"))
    x, w, bias = p.arguments
    h = p.matmul(x, w, p.zeros((7, 24), "f32"))
    body = "%s = arith.addf %x0, %x1 : f32\n%y = arith.truncf %s : f32 to bf16"
    h = p.each((7, 24), "bf16", [(h, "d0, d1"), (bias, "d1")], body)
    h = p.each((7, 24), "bf16", [(h, "d0, d1")], RELU.replace("f32", "bf16"))
    check(
        p,
        h,
        lambda x, w, b: np.maximum(x.astype(np.float32) @ w.astype(np.float32) + b, 0),
        '"y = max(cast(add(x0, x1), bf16), 0.0:bf16)" [f32, (f32, [n])]',
    )


@pytest.mark.parametrize("shape", [(9, 33, 21), (1, 40, 19)])
def test_requantised(shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    p = Program(((m, k), "i8"), ((k, n), "i8"), ((n,), "i32"), ((n,), "f32"))
    x, w, bias, scale = p.arguments
    zeros = p.zeros((m, n), "i32")
    h = p.matmul(x, w, zeros)
    h = p.each((m, n), "i32", [(h, "d0, d1"), (bias, "d1")], "%y = arith.addi %x0, %x1 : i32")
    body = """%low = arith.constant -128.0 : f32
    %high = arith.constant 127.0 : f32
    %f = arith.sitofp %x0 : i32 to f32
    %s = arith.mulf %f, %x1 : f32
    %r = math.roundeven %s : f32
    %l = arith.maximumf %r, %low : f32
    %h = arith.minimumf %l, %high : f32
    %y = arith.fptosi %h : f32 to i8"""
    h = p.each((m, n), "i8", [(h, "d0, d1"), (scale, "d1")], body)

    def want(x: Any, w: Any, b: Any, s: Any) -> Any:
        sums = (x.astype(np.int32) @ w.astype(np.int32) + b).astype(np.float32)
        return np.clip(np.rint(sums * s), -128, 127).astype(np.int8)

    check(p, h, want, '"y = cast(min(max(round(')


def test_nan_and_the_sign_of_zero() -> None:
    """A relu by maximumf keeps NaN, one by comparison does as it is written."""
    for body, nan in ((RELU, True), ("%c = arith.cmpf ogt, %x0, %z : f32\n%y = arith.select %c, %x0, %z : f32", False)):
        p = Program(((3, 4), "f32"), ((4, 9), "f32"))
        x, w = p.arguments
        h = p.matmul(x, w, p.zeros((3, 9)))
        p.lines.append("%z = arith.constant 0.0 : f32")
        h = p.each((3, 9), "f32", [(h, "d0, d1")], body)
        text = p.text(h)
        assert "then" in specs(text)[0]
        a, b = p.inputs()
        a[1, 2] = np.nan
        (got,) = results(text, [a, b])
        assert np.isnan(got[1]).all() if nan else (got[1] == 0).all()
        np.testing.assert_allclose(got[0], np.maximum(a[0] @ b, 0), rtol=1e-4, atol=1e-4)


def test_operands_that_are_broadcast_or_constant_tensors() -> None:
    p = Program(((9, 8), "f32"), ((8, 12), "f32"), ((9,), "f32"))
    x, w, bias = p.arguments
    kind = tensor((9, 12))
    h = p.matmul(x, w, p.zeros((9, 12)))
    out = p.empty((9, 12), "f32")
    wide = p.value(
        (9, 12), "f32", f"linalg.broadcast ins({bias[0]} : tensor<9xf32>) outs({out[0]} : {kind}) dimensions = [1]"
    )
    zeros = p.value((9, 12), "f32", f"arith.constant dense<0.0> : {kind}")
    six = p.value((), "f32", "arith.constant 6.0 : f32")
    filled = p.value((9, 12), "f32", f"linalg.fill ins({six[0]} : f32) outs({out[0]} : {kind}) -> {kind}")
    for name, other in (("add", wide), ("max", zeros), ("min", filled)):
        ins = f"ins({h[0]}, {other[0]} : {kind}, {kind})"
        h = p.value((9, 12), "f32", f"linalg.{name} {ins} outs({out[0]} : {kind}) -> {kind}")
    check(
        p,
        h,
        lambda x, w, b: np.clip(x @ w + b[:, None], 0, 6),
        '"y = min(max(add(x0, x1), 0.0:f32), 6.0:f32)" [f32, (f32, [m])]',
    )


@pytest.mark.parametrize("layout", ["nchw_fchw", "nhwc_hwcf"])
def test_convolution_with_batch_norm_and_residual(layout: str) -> None:
    """The channels are a dim of the Spec; scale and shift go along them."""
    first = layout == "nchw_fchw"
    images, filters = ((2, 3, 7, 8), (5, 3, 3, 3)) if first else ((2, 7, 8, 3), (3, 3, 3, 5))
    shape = (2, 5, 5, 6) if first else (2, 5, 6, 5)
    p = Program((images, "f32"), (filters, "f32"), ((5,), "f32"), ((5,), "f32"), (shape, "f32"))
    x, w, scale, shift, residual = p.arguments
    h = p.matmul(x, w, p.zeros(shape), f"conv_2d_{layout}")
    every, channel = "d0, d1, d2, d3", "d1" if first else "d3"
    body = "%s = arith.mulf %x0, %x1 : f32\n%y = arith.addf %s, %x2 : f32"
    h = p.each(shape, "f32", [(h, every), (scale, channel), (shift, channel)], body)
    h = p.each(shape, "f32", [(h, every), (residual, every)], BIAS)
    h = p.each(shape, "f32", [(h, every)], RELU)

    def want(x: Any, w: Any, scale: Any, shift: Any, residual: Any) -> Any:
        if not first:
            x, w, residual = x.transpose(0, 3, 1, 2), w.transpose(3, 2, 0, 1), residual.transpose(0, 3, 1, 2)
        windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))
        sums = np.einsum("nchwij,fcij->nfhw", windows, w)
        out = np.maximum(sums * scale[:, None, None] + shift[:, None, None] + residual, 0)
        return out if first else out.transpose(0, 2, 3, 1)

    check(p, h, want, '"y = max(add(add(mul(x0, x1), x2), x3), 0.0:f32)"')


def test_a_schedule_by_hand() -> None:
    """It is that of the contraction; what is done to the sums has no step."""
    p = Program(((12, 64), "f32"), ((64, 16), "f32"), ((16,), "f32"))
    x, w, bias = p.arguments
    h = p.matmul(x, w, p.zeros((12, 16)))
    p.lines[-1] = p.lines[-1].replace("linalg.matmul", 'linalg.matmul {morello.schedule = "split k by 16:\\n    ?"}')
    p.lines[-1] = p.lines[-1].replace('"split', '"to_accum\\nsplit')
    h = p.each((12, 16), "f32", [(h, "d0, d1"), (bias, "d1")], BIAS)
    text = p.text(h)
    compiled = morello_mlir.compile(text, memo="off", threads=1)
    assert compiled.specs[0]["schedule"].startswith("to_accum\nsplit k by 16:")
    arrays = p.inputs()
    np.testing.assert_allclose(compiled.f(*arrays), arrays[0] @ arrays[1] + arrays[2], rtol=1e-4, atol=1e-4)


def test_what_is_in_the_way_ends_the_chain() -> None:
    """A sum along rows, and what depends on it, follow as they are."""
    p = Program(((6, 8), "f32"), ((8, 10), "f32"), ((10,), "f32"))
    x, w, bias = p.arguments
    h = p.matmul(x, w, p.zeros((6, 10)))
    h = p.each((6, 10), "f32", [(h, "d0, d1"), (bias, "d1")], BIAS)
    zeros = p.zeros((6,))
    text = (
        f"linalg.reduce {{ arith.addf }} ins({h[0]} : {tensor((6, 10))}) outs({zeros[0]} : {tensor((6,))}) "
        "dimensions = [1]"
    )
    total = p.value((6,), "f32", text)
    h = p.each((6, 10), "f32", [(h, "d0, d1"), (total, "d0")], "%y = arith.divf %x0, %x1 : f32")
    text = p.text(h)
    (spec,) = specs(text)
    assert 'then "y = add(x0, x1)"' in spec
    arrays = p.inputs()
    sums = arrays[0] @ arrays[1] + arrays[2]
    (got,) = results(text, arrays)
    np.testing.assert_allclose(got, sums / sums.sum(1, keepdims=True), rtol=1e-3, atol=1e-3)


def contraction(p: Program, a: Any, b: Any, out: Any, maps: Sequence[str], loops: int) -> Any:
    """`a` times `b` into `out`; maps: the dims that index them, of `loops` in all."""
    dims = ", ".join(f"d{i}" for i in range(loops))
    texts = ", ".join(f"affine_map<({dims}) -> ({m})>" for m in maps)
    kept = maps[2].split(", ")
    kinds = ", ".join('"parallel"' if f"d{i}" in kept else '"reduction"' for i in range(loops))
    kind, element = tensor(*out[1:]), out[2]
    text = f"linalg.generic {{indexing_maps = [{texts}], iterator_types = [{kinds}]}} "
    text += f"ins({a[0]}, {b[0]} : {tensor(*a[1:])}, {tensor(*b[1:])}) outs({out[0]} : {kind}) {{\n"
    text += f"^bb0(%x: {element}, %w: {element}, %o: {element}):\n%t = arith.mulf %x, %w : {element}\n"
    text += f"%y = arith.addf %o, %t : {element}\nlinalg.yield %y : {element}\n}} -> {kind}"
    return p.value(*out[1:], text)


def test_loops_around_the_spec_that_add_up() -> None:
    """Two dims are summed over that are no single one: only the last trip of the outer is the last step."""
    p = Program(((2, 3, 5, 4), "f32"), ((3, 4, 9), "f32"), ((9,), "f32"), ((2, 5, 9), "f32"))
    x, w, bias, residual = p.arguments
    out = p.zeros((2, 5, 9))
    h = contraction(p, x, w, out, ("d0, d3, d1, d4", "d3, d4, d2", "d0, d1, d2"), 5)
    room = (p.lines[1].split(" = ")[0], (2, 5, 9), "f32")
    h = p.each((2, 5, 9), "f32", [(h, "d0, d1, d2"), (bias, "d2")], BIAS, out=room)
    h = p.each((2, 5, 9), "f32", [(h, "d0, d1, d2"), (residual, "d0, d1, d2")], BIAS, out=room)
    h = p.each((2, 5, 9), "f32", [(h, "d0, d1, d2")], RELU, out=room)
    text = p.text(h)
    for found in (specs(text), Run(text, "morello-bufferize,morello-lift").specs):
        assert len(found) == 2 and "then" in found[0] and found[1] == found[0].partition(", then")[0] + ")"
    arrays = p.inputs()
    x_, w_, b_, r_ = arrays
    want = np.maximum(np.einsum("bhsd,hde->bse", x_, w_) + b_ + r_, 0)
    (got,) = results(text, arrays)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_parallel_loops_around_the_spec() -> None:
    p = Program(((3, 4, 2, 5), "f32"), ((2, 3, 5, 7), "f32"), ((3, 7), "f32"))
    x, w, bias = p.arguments
    h = contraction(p, x, w, p.zeros((2, 3, 4, 7)), ("d1, d2, d0, d4", "d0, d1, d4, d3", "d0, d1, d2, d3"), 5)
    h = p.each((2, 3, 4, 7), "f32", [(h, "d0, d1, d2, d3"), (bias, "d1, d3")], BIAS)
    text = p.text(h)
    (spec,) = specs(text)
    assert 'then "y = add(x0, x1)"' in spec
    arrays = p.inputs()
    x_, w_, b_ = arrays
    (got,) = results(text, arrays)
    np.testing.assert_allclose(got, np.einsum("bsad,abde->abse", x_, w_) + b_[:, None], rtol=1e-4, atol=1e-4)
