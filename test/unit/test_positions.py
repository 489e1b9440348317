"""Masks computed in the body that scales the scores: read from a tensor instead, so that attention is a chain."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import morello_mlir

#: Bodies, given %a (a score), %i and %j (row and column), %none, %zero and %scale; %y is yielded.
SELECT = """
%p = arith.mulf %a, %scale : f32
%c = arith.constant {above} : index
%last = arith.addi %i, %c : index
%seen = arith.cmpi sge, %last, %j : index
%y = arith.select %seen, %p, %none : f32"""
HIDDEN = """
%i32 = arith.index_cast %i : index to i32
%j32 = arith.index_cast %j : index to i32
%c = arith.constant {above} : i32
%d = arith.subi %j32, %i32 : i32
%hidden = arith.cmpi sgt, %d, %c : i32
%p = arith.mulf %a, %scale : f32
%y = arith.select %hidden, %none, %p : f32"""
ADDED = """
%c = arith.constant {above} : index
%last = arith.addi %i, %c : index
%seen = arith.cmpi sle, %j, %last : index
%more = arith.select %seen, %zero, %none : f32
%p = arith.mulf %a, %scale : f32
%y = arith.addf %p, %more : f32"""
#: Nearer columns weigh more.
SLOPE = """
%d = arith.subi %j, %i : index
%d32 = arith.index_cast %d : index to i32
%f = arith.sitofp %d32 : i32 to f32
%p = arith.mulf %f, %scale : f32
%y = arith.addf %a, %p : f32"""


def attention(sizes: tuple[int, ...], body: str, above: int = 0) -> str:
    b, m, d, n, e = sizes
    q, k, v, s, o = (
        f"tensor<{'x'.join(map(str, z))}xf32>" for z in ((b, m, d), (b, d, n), (b, n, e), (b, m, n), (b, m, e))
    )
    same = "affine_map<(b, i, j) -> (b, i, j)>"
    return f"""func.func @f(%q: {q}, %k: {k}, %v: {v}) -> {o} {{
      %zero = arith.constant 0.0 : f32
      %none = arith.constant 0xFF800000 : f32
      %scale = arith.constant 0.25 : f32
      %se = tensor.empty() : {s}
      %sz = linalg.fill ins(%zero : f32) outs(%se : {s}) -> {s}
      %s = linalg.batch_matmul ins(%q, %k : {q}, {k}) outs(%sz : {s}) -> {s}
      %x = linalg.generic {{indexing_maps = [{same}, {same}], iterator_types = ["parallel", "parallel", "parallel"]}}
          ins(%s : {s}) outs(%se : {s}) {{
        ^bb0(%a: f32, %out: f32):
          %h = linalg.index 0 : index
          %i = linalg.index 1 : index
          %j = linalg.index 2 : index
          {body.format(above=above)}
          linalg.yield %y : f32
        }} -> {s}
      %w = linalg.softmax dimension(2) ins(%x : {s}) outs(%se : {s}) -> {s}
      %oe = tensor.empty() : {o}
      %oz = linalg.fill ins(%zero : f32) outs(%oe : {o}) -> {o}
      %o = linalg.batch_matmul ins(%w, %v : {s}, {v}) outs(%oz : {o}) -> {o}
      return %o : {o}
    }}"""


def arrays(sizes: tuple[int, ...]) -> list[np.ndarray]:
    b, m, d, n, e = sizes
    rng = np.random.default_rng(sum(sizes))
    return [rng.standard_normal(s).astype(np.float32) for s in ((b, m, d), (b, d, n), (b, n, e))]


def expected(sizes: tuple[int, ...], given: list[np.ndarray], body: str, above: int) -> np.ndarray:
    q, k, v = (a.astype(np.float64) for a in given)
    i, j = np.ogrid[: sizes[1], : sizes[3]]
    with np.errstate(all="ignore"):
        scores = q @ k
        if body == SLOPE:
            scores = scores + 0.25 * (j - i)
        elif body == ADDED:
            scores = 0.25 * scores + np.where(j <= i + above, 0, -np.inf)
        else:
            scores = np.where(j <= i + above, 0.25 * scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return weights / weights.sum(-1, keepdims=True) @ v


def run(text: str, given: list[np.ndarray], threads: int = 1):  # type: ignore[no-untyped-def]
    compiled = morello_mlir.compile(text, target="avx2", memo="off", threads=threads)
    return compiled.f(*given), [str(s["spec"]) for s in compiled.specs]


@pytest.mark.parametrize("above", [0, -2, 50])
@pytest.mark.parametrize("body", [SELECT, HIDDEN, ADDED, SLOPE])
@pytest.mark.parametrize("sizes", [(2, 13, 4, 21, 3), (3, 21, 5, 13, 6), (1, 9, 4, 9, 5)])
def test_masks_in_bodies(sizes: tuple[int, ...], body: str, above: int) -> None:
    """Also rows that see nothing: NaN."""
    given = arrays(sizes)
    out, specs = run(attention(sizes, body, above), given)
    np.testing.assert_allclose(out, expected(sizes, given, body, above), rtol=2e-5, atol=2e-5)
    if not (body == SLOPE and sizes[0] == 1):
        assert any(s.startswith("Chain(") for s in specs)
    if body != SLOPE and 0 <= above < sizes[3] - 1:
        assert any(f" = {int(body == HIDDEN)} above {above}" in s for s in specs)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", [0, 1, 2])
@pytest.mark.parametrize("body", [SELECT, ADDED])
def test_what_is_no_number(body: str, where: int, bad: float) -> None:
    """In queries, keys and values, some of which are masked; in rows of their own, or for all that they weigh."""
    sizes = (2, 11, 4, 14, 3)
    given = arrays(sizes)
    given[where][(0, 7, 1) if where != 1 else (0, 1, 7)] = bad
    out, _ = run(attention(sizes, body, 0), given)
    np.testing.assert_allclose(out, expected(sizes, given, body, 0), rtol=2e-5, atol=2e-5)


@settings(max_examples=8, deadline=None)
@given(
    st.tuples(st.integers(1, 3), *[st.integers(2, 20)] * 4),
    st.integers(-3, 5),
    st.sampled_from([SELECT, HIDDEN, ADDED]),
    st.integers(1, 2),
)
def test_any_sizes(sizes: tuple[int, ...], above: int, body: str, threads: int) -> None:
    given_ = arrays(sizes)
    out, _ = run(attention(sizes, body, above), given_, threads)
    np.testing.assert_allclose(out, expected(sizes, given_, body, above), rtol=2e-5, atol=2e-5)


def test_masks_of_heads() -> None:
    """One that is another for every head is as large as the scores: it stays where it is, and is right."""
    body = SELECT.replace("sge, %last, %j", "sge, %last, %hj").replace(
        "%last =", "%hj = arith.addi %h, %j : index\n%last ="
    )
    sizes = (2, 7, 4, 9, 3)
    given = arrays(sizes)
    out, _ = run(attention(sizes, body, 0), given)
    want = np.stack([expected((1, *sizes[1:]), [a[h : h + 1] for a in given], SELECT, -h)[0] for h in range(sizes[0])])
    np.testing.assert_allclose(out, want, rtol=2e-5, atol=2e-5)
