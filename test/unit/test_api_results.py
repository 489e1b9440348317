"""Results that are computed from one another must not end up in one another's memory. Checked against numpy: upstream's
passes alone get their memory for results in the same way."""

import numpy as np
import pytest

import morello_mlir

BODY = """
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : T
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : T) -> T
  %x = linalg.matmul ins(%a, %b : T, T) outs(%zeros : T) -> T
  %y = linalg.matmul ins(%a, %b : T, T) outs(%x : T) -> T
"""


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize(
    ("end", "wanted"),
    [
        ("return %y, %x : T, T", "yx"),
        ("return %x, %y : T, T", "xy"),
        ("return %y, %x, %y, %a : T, T, T, T", "yxya"),
        ("cf.br ^end\n^end:\n return %y, %x : T, T", "yx"),
        ("%d = tensor.cast %x : T to D\n return %y, %d : T, D", "yx"),
        ("%d = bufferization.to_buffer %x : T to M\n return %y, %d : T, M", "yx"),
    ],
)
def test_results_computed_from_one_another(end, wanted, optimize):
    types = end.rpartition(":")[2]
    text = f"func.func @f(%a: T, %b: T) -> ({types}) {{{BODY}  {end}\n}}"
    for short, long in (("T", "tensor<4x4xf32>"), ("D", "tensor<?x4xf32>"), ("M", "memref<4x4xf32>")):
        text = text.replace(short, long)
    a, b = np.random.default_rng(0).uniform(-1, 1, (2, 4, 4)).astype(np.float32)
    right = {"a": a, "x": a @ b, "y": 2 * (a @ b)}
    results = morello_mlir.compile(text, optimize=optimize, cache=False).f(a, b)
    for got, name in zip(results, wanted, strict=True):
        np.testing.assert_allclose(got, right[name], rtol=1e-5, atol=1e-6)
