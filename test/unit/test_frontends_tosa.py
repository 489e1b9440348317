"""TOSA modules, compiled like any other."""

from __future__ import annotations

import numpy as np
import pytest

import morello_mlir

MODULE = """
func.func @pool(%x: tensor<1x7x9x3xf32>) -> (tensor<1x3x4x3xf32>, tensor<1x3x4x3xf32>) {
  %zero = "tosa.const"() {values = dense<0.0> : tensor<1xf32>} : () -> tensor<1xf32>
  %0 = tosa.avg_pool2d %x, %zero, %zero {acc_type = f32, kernel = array<i64: 3, 3>, pad = array<i64: 0, 0, 0, 0>,
    stride = array<i64: 2, 2>} : (tensor<1x7x9x3xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x3x4x3xf32>
  %1 = tosa.max_pool2d %x {kernel = array<i64: 3, 3>, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 2, 2>}
    : (tensor<1x7x9x3xf32>) -> tensor<1x3x4x3xf32>
  return %0, %1 : tensor<1x3x4x3xf32>, tensor<1x3x4x3xf32>
}
func.func @layer(%x: tensor<?x6xf32>, %w: tensor<1x6x5xf32>) -> tensor<?x5xf32> {
  %zero = "tosa.const"() {values = dense<0.0> : tensor<1xf32>} : () -> tensor<1xf32>
  %in = tosa.const_shape {values = dense<[1, -1, 6]> : tensor<3xindex>} : () -> !tosa.shape<3>
  %out = tosa.const_shape {values = dense<[-1, 5]> : tensor<2xindex>} : () -> !tosa.shape<2>
  %0 = tosa.reshape %x, %in : (tensor<?x6xf32>, !tosa.shape<3>) -> tensor<1x?x6xf32>
  %1 = tosa.matmul %0, %w, %zero, %zero
    : (tensor<1x?x6xf32>, tensor<1x6x5xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x?x5xf32>
  %2 = tosa.reshape %1, %out : (tensor<1x?x5xf32>, !tosa.shape<2>) -> tensor<?x5xf32>
  %3 = tosa.tanh %2 : (tensor<?x5xf32>) -> tensor<?x5xf32>
  return %3 : tensor<?x5xf32>
}
"""


def test_pools_are_lifted() -> None:
    compiled = morello_mlir.compile(MODULE, entry="pool", memo="off", threads=1)
    x = np.random.default_rng(0).standard_normal((1, 7, 9, 3), np.float32)
    mean, most = compiled.pool(x)
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(1, 2))[:, ::2, ::2]
    np.testing.assert_allclose(mean, windows.mean((-2, -1)), rtol=1e-5)
    np.testing.assert_array_equal(most, windows.max((-2, -1)))
    assert (compiled.lifted > 0, compiled.left) == (True, 0)


@pytest.mark.parametrize("rows", [1, 7])
def test_sizes_may_be_open(rows: int) -> None:
    compiled = morello_mlir.compile(MODULE, memo="off", threads=1)
    rng = np.random.default_rng(rows)
    x, w = rng.standard_normal((rows, 6), np.float32), rng.standard_normal((1, 6, 5), np.float32)
    np.testing.assert_allclose(compiled.layer(x, w), np.tanh(x @ w[0]), rtol=1e-5, atol=1e-6)
