"""Results that begin in one tensor get memory of their own, also where everything is left to upstream's passes."""

from __future__ import annotations

import numpy as np
import pytest

import morello_mlir

HEAD = """
!t = tensor<3x4xf32>
func.func @f(%a: !t, %b: tensor<4x4xf32>, %flag: i1) -> (!t, !t) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : !t
  %start = linalg.fill ins(%zero : f32) outs(%empty : !t) -> !t
"""
MATMUL = "linalg.matmul ins(%a, %b : !t, tensor<4x4xf32>) outs({0} : !t) -> !t"
OPS = {
    "matmul": (MATMUL, lambda a, b: a @ b),
    "add": ("linalg.add ins(%a, %a : !t, !t) outs({0} : !t) -> !t", lambda a, b: a + a),
    "softmax": (
        "linalg.softmax dimension(1) ins(%a : !t) outs({0} : !t) -> !t",
        lambda a, b: np.exp(a) / np.exp(a).sum(1, keepdims=True),
    ),
    "if": (
        f"scf.if %flag -> !t {{{{ %p = {MATMUL} scf.yield %p : !t }}}} else {{{{ scf.yield {{0}} : !t }}}}",
        lambda a, b: a @ b,
    ),
    "slice": (
        """tensor.insert_slice %row into {0}[1, 0] [1, 4] [1, 1] : tensor<1x4xf32> into !t""",
        lambda a, b: np.stack([0 * a[0], a[2], 0 * a[0]]),
    ),
}


def check(first: str, second: str, start: str, swapped: bool, optimize: bool) -> None:
    order = "%y, %x" if swapped else "%x, %y"
    source = f"""{HEAD}
  %row = tensor.extract_slice %a[2, 0] [1, 4] [1, 1] : !t to tensor<1x4xf32>
  %x = {OPS[first][0].format(start)}
  %y = {OPS[second][0].format(start)}
  return {order} : !t, !t
}}"""
    generator = np.random.default_rng(0)
    a, b = (generator.standard_normal(shape).astype(np.float32) for shape in ((3, 4), (4, 4)))
    results = morello_mlir.compile(source, optimize=optimize, threads=1).f(a, b, True)
    x, y = reversed(results) if swapped else results
    np.testing.assert_allclose(x, OPS[first][1](a, b), atol=1e-5)
    np.testing.assert_allclose(y, OPS[second][1](a, b), atol=1e-5)


@pytest.mark.parametrize("second", OPS)
@pytest.mark.parametrize("first", OPS)
def test_two_results_that_begin_in_one_fill(first: str, second: str) -> None:
    check(first, second, "%start", swapped=first < second, optimize=False)


@pytest.mark.parametrize("optimize", [False, True])
@pytest.mark.parametrize("swapped", [False, True])
def test_two_results_that_begin_in_one_empty_tensor(swapped: bool, optimize: bool) -> None:
    check("add", "softmax", "%empty", swapped, optimize)


def test_two_results_of_one_op() -> None:
    source = """
#map = affine_map<(i) -> (i)>
func.func @f(%a: tensor<5xf32>) -> (tensor<5xf32>, tensor<5xf32>) {
  %e = tensor.empty() : tensor<5xf32>
  %r:2 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel"]}
      ins(%a : tensor<5xf32>) outs(%e, %e : tensor<5xf32>, tensor<5xf32>) {
  ^bb0(%x: f32, %o: f32, %p: f32):
    %s = arith.addf %x, %x : f32
    %n = arith.negf %x : f32
    linalg.yield %s, %n : f32, f32
  } -> (tensor<5xf32>, tensor<5xf32>)
  return %r#0, %r#1 : tensor<5xf32>, tensor<5xf32>
}"""
    a = np.arange(5, dtype=np.float32)
    for optimize in (False, True):
        twice, minus = morello_mlir.compile(source, optimize=optimize).f(a)
        np.testing.assert_array_equal(twice, 2 * a)
        np.testing.assert_array_equal(minus, -a)
