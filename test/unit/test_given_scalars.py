"""Scalars that are arguments: compiled and run, against NumPy and upstream's passes."""

from __future__ import annotations

import numpy as np
import pytest

import morello_mlir

ALL, ONE = "affine_map<(i, j) -> (i, j)>", "affine_map<(i, j) -> ()>"
PARALLEL = 'iterator_types = ["parallel", "parallel"]'


def elementwise(kind: str, op: str) -> str:
    """x op s + t: s is an operand, t is read from outside of the body."""
    x = f"tensor<7x19x{kind}>"
    add = "arith.addf" if kind[0] != "i" else "arith.addi"
    return f"""func.func @f(%x: {x}, %s: {kind}, %t: {kind}) -> {x} {{
      %e = tensor.empty() : {x}
      %r = linalg.generic {{indexing_maps = [{ALL}, {ONE}, {ALL}], {PARALLEL}}}
        ins(%x, %s : {x}, {kind}) outs(%e : {x}) {{
      ^bb0(%a: {kind}, %b: {kind}, %c: {kind}):
        %m = {op} %a, %b : {kind}
        %n = {add} %m, %t : {kind}
        linalg.yield %n : {kind}
      }} -> {x}
      return %r : {x}
    }}"""


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize(("kind", "op"), [("f32", "arith.mulf"), ("f64", "arith.mulf"), ("i32", "arith.muli")])
def test_elementwise(kind: str, op: str, optimize: bool) -> None:
    dtype = {"f32": np.float32, "f64": np.float64, "i32": np.int32}[kind]
    x = (np.random.default_rng(3).standard_normal((7, 19)) * 9).astype(dtype)
    if kind != "i32":
        x[2, 3], x[4, 5] = np.nan, np.inf
    compiled = morello_mlir.compile(elementwise(kind, op), target="avx2", memo="off", threads=1, optimize=optimize)
    s, t = dtype(3), dtype(-5)
    np.testing.assert_allclose(compiled.f(x, s, t), x * s + t, rtol=1e-6)
    assert (compiled.lifted, compiled.left) == ((1, 0) if optimize else (0, 1))


@pytest.mark.parametrize("value", [2.5, np.nan, -np.inf, -0.0])
def test_fill(value: float) -> None:
    text = """func.func @f(%x: tensor<5x9xf32>, %s: f32) -> (tensor<5x9xf32>, tensor<3x4xf32>) {
      %part = tensor.extract_slice %x[1, 2] [3, 4] [1, 1] : tensor<5x9xf32> to tensor<3x4xf32>
      %filled = linalg.fill ins(%s : f32) outs(%part : tensor<3x4xf32>) -> tensor<3x4xf32>
      %r = tensor.insert_slice %filled into %x[1, 2] [3, 4] [1, 1] : tensor<3x4xf32> into tensor<5x9xf32>
      return %r, %filled : tensor<5x9xf32>, tensor<3x4xf32>
    }"""
    compiled = morello_mlir.compile(text, target="avx2", memo="off", threads=1)
    x = np.arange(45, dtype=np.float32).reshape(5, 9)
    want = x.copy()
    want[1:4, 2:6] = value
    whole, part = compiled.f(x, np.float32(value))
    np.testing.assert_array_equal(whole, want)
    np.testing.assert_array_equal(np.signbit(part), np.full((3, 4), np.signbit(value)))
    assert compiled.left == 0


def test_a_scale_is_part_of_the_product() -> None:
    text = f"""func.func @f(%a: tensor<5x7xf32>, %b: tensor<7x9xf32>, %s: f32) -> tensor<5x9xf32> {{
      %z = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<5x9xf32>
      %o = linalg.fill ins(%z : f32) outs(%e : tensor<5x9xf32>) -> tensor<5x9xf32>
      %p = linalg.matmul ins(%a, %b : tensor<5x7xf32>, tensor<7x9xf32>) outs(%o : tensor<5x9xf32>) -> tensor<5x9xf32>
      %r = linalg.generic {{indexing_maps = [{ALL}, {ALL}], {PARALLEL}}}
        ins(%p : tensor<5x9xf32>) outs(%e : tensor<5x9xf32>) {{
      ^bb0(%x: f32, %c: f32):
        %m = arith.mulf %x, %s : f32
        linalg.yield %m : f32
      }} -> tensor<5x9xf32>
      return %r : tensor<5x9xf32>
    }}"""
    compiled = morello_mlir.compile(text, target="avx2", memo="off", threads=1)
    (spec,) = [s["spec"] for s in compiled.specs]
    assert "mul(x0, x1)" in spec and compiled.left == 0
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal(s).astype(np.float32) for s in ((5, 7), (7, 9)))
    np.testing.assert_allclose(compiled.f(a, b, np.float32(0.25)), 0.25 * (a @ b), rtol=1e-5, atol=1e-6)
