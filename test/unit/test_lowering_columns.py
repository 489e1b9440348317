"""Panels of one column: a narrow operand brought to lie along k, and dot products of rows and columns."""

from __future__ import annotations

import numpy as np
import pytest

import morello_mlir
from morello_mlir.lowering.views import View
from morello_mlir.search.schedule import to_text
from morello_mlir.search.solve import search_for
from morello_mlir.spec import matmul_spec
from morello_mlir.targets import TARGETS


def _schedule(m: int, n: int) -> str:
    """A legal schedule for any size: tiles of 2 x 3 with their remainders."""

    kernel = "kernel dot_fma"
    columns = f"tile n by 3:\n    {kernel}" + (f"\nrest:\n    {kernel}" if n % 3 else "") if n > 3 else kernel
    rows = columns
    if m > 2:
        body = "\n".join("    " + line for line in columns.splitlines())
        rows = f"tile m by 2:\n{body}" + (f"\nrest:\n{body}" if m % 2 else "")
    return f"move rhs to L2 as [b, n/1, k, n%1]\nmove lhs to L2\nmove out to L2\n{rows}"


@pytest.mark.parametrize(("m", "k", "n"), [(5, 37, 4), (2, 16, 3), (1, 1, 1), (9, 100, 8), (3, 131, 2), (4, 7, 7)])
def test_dot_products_with_columns(m: int, k: int, n: int) -> None:
    lines = ", ".join(f'"{line}"' for line in _schedule(m, n).splitlines())
    types = f"memref<{m}x{k}xf32>", f"memref<{k}x{n}xf32>", f"memref<{m}x{n}xf32>"
    compiled = morello_mlir.compile(f"""
func.func @mm(%a: {types[0]}, %b: {types[1]}, %c: {types[2]}) {{
  linalg.matmul {{morello.schedule = [{lines}]}} ins(%a, %b : {types[0]}, {types[1]}) outs(%c : {types[2]})
  return
}}""", target="avx2")  # fmt: skip
    rng = np.random.default_rng(m * k * n)
    a, b, c = (rng.standard_normal(s).astype(np.float32) for s in ((m, k), (k, n), (m, n)))
    want = c + a.astype(np.float64) @ b
    compiled.mm(a, b, c)
    np.testing.assert_allclose(c, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("dtype", "k", "apart"), [("f32", 64, 80), ("f32", 65, 80), ("bf16", 64, 96), ("f64", 1, 8)])
def test_columns_begin_at_lines_and_not_in_one_set(dtype: str, k: int, apart: int) -> None:
    assert View.panels(dtype, (1, k, 3), 2, 1).strides[1] == apart
    assert View.panels(dtype, (1, k, 32), 2, 16).strides[1] == (k + 1) * 16


@pytest.mark.parametrize("target", ["avx2", "avx512"])
def test_the_search_finds_them_for_narrow_products(target: str) -> None:
    found = search_for(TARGETS[target]).solve(matmul_spec(192, 256, 4))
    text = to_text(found.schedule)
    assert "n%1" in text and "kernel dot_fma" in text
