"""Reductions over nothing: what was there before."""

from __future__ import annotations

import numpy as np
import pytest

import morello_mlir

ROWS = """indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
          iterator_types = ["parallel", "reduction"]"""


def reduced(inner: str, size: str) -> str:
    """A reduction of each row, then one is added to what it gives."""
    return f"""
      func.func @f(%x: tensor<5x{size}xf32>, %o: tensor<5xf32>) -> tensor<5xf32> {{
        %one = arith.constant 1.0 : f32
        %r = linalg.generic {{{ROWS}}} ins(%x : tensor<5x{size}xf32>) outs(%o : tensor<5xf32>) {{
        ^bb0(%p: f32, %q: f32):
          {inner}
          linalg.yield %s : f32
        }} -> tensor<5xf32>
        %e = tensor.empty() : tensor<5xf32>
        %y = linalg.map ins(%r : tensor<5xf32>) outs(%e : tensor<5xf32>) (%p: f32, %init: f32) {{
          %t = arith.addf %p, %one : f32
          linalg.yield %t : f32
        }}
        return %y : tensor<5xf32>
      }}"""


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("size", ["0", "?"])
@pytest.mark.parametrize(
    ("inner", "start"),
    [
        ("%s = arith.addf %p, %q : f32", 0.0),
        ("%s = arith.mulf %p, %q : f32", 1.0),
        ("%s = arith.maximumf %p, %q : f32", -np.inf),
        ("%s = arith.minimumf %p, %q : f32", np.inf),
        ("%s = arith.constant 7.0 : f32", 3.0),
    ],
)
def test_a_reduction_over_nothing_is_what_its_output_was(inner, start, size, optimize):
    module = morello_mlir.compile(reduced(inner, size), optimize=optimize)
    start = np.full(5, start, np.float32)
    assert np.array_equal(module(np.zeros((5, 0), np.float32), start), start + 1)


def test_a_constant_for_every_row_is_one_where_there_is_something():
    module = morello_mlir.compile(reduced("%s = arith.constant 7.0 : f32", "3"))
    assert np.array_equal(module(np.zeros((5, 3), np.float32), np.zeros(5, np.float32)), np.full(5, 8.0))


@pytest.mark.parametrize("dynamic", [True, False])
@pytest.mark.parametrize(("m", "k", "n"), [(4, 0, 6), (0, 3, 5), (4, 3, 0)])
def test_products_of_nothing_leave_their_output_alone(m, k, n, dynamic):
    a, b, c = (f"{'?' if dynamic else i}x{'?' if dynamic else j}" for i, j in ((m, k), (k, n), (m, n)))
    module = morello_mlir.compile(f"""
      func.func @f(%a: tensor<{a}xf32>, %b: tensor<{b}xf32>, %c: tensor<{c}xf32>) -> tensor<{c}xf32> {{
        %r = linalg.matmul ins(%a, %b : tensor<{a}xf32>, tensor<{b}xf32>) outs(%c : tensor<{c}xf32>) -> tensor<{c}xf32>
        return %r : tensor<{c}xf32>
      }}""")
    out = np.arange(m * n, dtype=np.float32).reshape(m, n)
    assert np.array_equal(module(np.ones((m, k), np.float32), np.ones((k, n), np.float32), out), out)
