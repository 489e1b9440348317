"""Attention in bf16 and f16 compiled and run, against NumPy in double precision: what the search chooses, schedules by
hand, and the online form."""

from __future__ import annotations

import numpy as np
import pytest
from test_chain_numbers import TILED, online

import morello_mlir

#: By type: a unit in the last place of 1, and conversions to and from what programs take.
_ULP = {"f16": 2**-10, "bf16": 2**-7}


def to_bits(x: np.ndarray, dtype: str) -> np.ndarray:
    if dtype == "f16":
        return x.astype(np.float16)
    bits = x.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def from_bits(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float64) if x.dtype == np.float16 else (x.astype(np.uint32) << 16).view(np.float32).astype("f8")


def module(sizes: tuple[int, ...], dtype: str, *, scores: str = "f32", schedule: str = "", safe: bool = False) -> str:
    """softmax(q @ k^T) @ v of b, m, d, n, e. scores: what they are kept in."""
    b, m, d, n, e = sizes
    row, strides = (
        f"({dtype}, GL, row_major)",
        [s if z > 1 else 0 for s, z in zip((m * n, n, 1), (b, m, n), strict=True)],
    )
    x = "x0" if scores == "f32" else "w"
    y = "select(cmp(oeq, m, -inf:f32), 0.0:f32, div(e, s))" if safe else "div(e, s)"
    body = f"m = max({x}); e = exp(sub({x}, m)); s = sum(e); y = cast({y}, {dtype})"
    body = body if scores == "f32" else f"w = cast(x0, f32); {body}"
    first = "" if scores == "f32" else f', then "y = cast(x0, {dtype})" [f32]'
    stages = [
        f"t0 = Matmul([{b}, {m}, {d}, {n}], {row}, ({dtype}, GL, [b, n, k]), ({scores}, GL, row_major), serial{first})"
        " of x0, x1",
        f't1 = Compose([{b}, {m}, {n} scan], ({scores}, GL, {strides}), ({dtype}, GL, {strides}), "{body}", serial)'
        " of t0",
        f'y = Matmul([{b}, {m}, {n}, {e}], {row}, {row}, {row}, serial, then "y = cast(x0, {dtype})" [f32]) of t1, x2',
    ]
    text = ", ".join('"' + s.replace('"', "\\22") + '"' for s in stages)
    lines = ", ".join('"' + line + '"' for line in schedule.splitlines())
    given = f", schedule = [{lines}]" if schedule else ""
    shapes = {"q": (b, m, d), "k": (b, n, d), "v": (b, n, e), "o": (b, m, e)}
    q, k, v, o = (f"memref<{'x'.join(map(str, shapes[name]))}x{dtype}>" for name in "qkvo")
    kt = f"memref<{b}x{d}x{n}x{dtype}, strided<[{d * n}, 1, {d}]>>"
    return f"""func.func @f(%q: {q}, %k: {k}, %v: {v}, %o: {o}) {{
      %kt = memref.reinterpret_cast %k to offset: [0], sizes: [{b}, {d}, {n}], strides: [{d * n}, 1, {d}] : {k} to {kt}
      "morello.chain4"(%q, %kt, %v, %o) {{function = "Chain", dims = array<i64: {b}, {m}>, stages = [{text}],
        serial{given}}} : ({q}, {kt}, {v}, {o}) -> ()
      return
    }}"""


def run(
    sizes: tuple[int, ...], dtype: str, inputs: list[np.ndarray], target: str = "host", ours: bool = True, **options
):  # type: ignore[no-untyped-def]
    """(ours, in double precision) of inputs in double precision."""
    b, m, *_, e = sizes
    given = [to_bits(x, dtype) for x in inputs]
    out = np.full((b, m, e), 0x7E00, given[0].dtype)
    text = module(sizes, dtype, **options)
    morello_mlir.compile(text, target=target, memo="off", threads=1, optimize=ours).f(*given, out)
    q, k, v = (from_bits(x) for x in given)
    with np.errstate(invalid="ignore"):
        scores = q @ k.transpose(0, 2, 1)
        nothing = (scores == -np.inf).all(-1, keepdims=True) & options.get("safe", False)
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        want = np.where(nothing, 0, scores / scores.sum(-1, keepdims=True)) @ v
    return from_bits(out), want


def check(sizes: tuple[int, ...], dtype: str, **options) -> None:  # type: ignore[no-untyped-def]
    b, m, d, n, e = sizes
    rng = np.random.default_rng(sum(sizes))
    inputs = [rng.standard_normal(shape) for shape in ((b, m, d), (b, n, d), (b, n, e))]
    got, want = run(sizes, dtype, inputs, **options)
    # One rounding each of scores (which are some units), weights and the output.
    ulps = 8 if options.get("scores", "f32") != "f32" else 2
    np.testing.assert_allclose(got, want, rtol=_ULP[dtype], atol=ulps * _ULP[dtype])


#: Scores are f32 and weights narrow: they have no place in common.
APART = TILED.replace("bufferize t1 in t0", "bufferize t1 to L2")


@pytest.mark.parametrize(("dtype", "scores"), [("bf16", False), ("f16", True)])
@pytest.mark.parametrize(
    ("sizes", "schedule", "target"),
    [
        ((1, 1, 1, 1, 1), "", "host"),
        ((2, 7, 5, 13, 3), "", "host"),
        ((1, 33, 20, 70, 17), "", "host"),
        ((2, 11, 4, 8, 17), "", "avx2"),
        ((2, 10, 5, 16, 6), APART, "avx2"),
    ],
)
def test_attention(sizes: tuple[int, ...], dtype: str, scores: bool, schedule: str, target: str) -> None:
    check(sizes, dtype, schedule=schedule, target=target, scores=dtype if scores else "f32")


@pytest.mark.parametrize(("dtype", "scores"), [("bf16", False), ("bf16", True), ("f16", False)])
@pytest.mark.parametrize(("n", "size", "home"), [(32, 16, "L2"), (21, 8, "L2"), (9, 8, "GL"), (13, 1, "L2")])
def test_online(n: int, size: int, home: str, dtype: str, scores: bool) -> None:
    form = online(size, n % size > 0, "        ", home)
    schedule = f"tile b by 1:\n    tile m by 4:\n{form}\n    rest:\n        ?"
    check((2, 7, 5, n, 6), dtype, schedule=schedule, scores=dtype if scores else "f32", target="avx2")


def test_the_reference_of_a_check() -> None:
    check((2, 7, 5, 13, 3), "f16", ours=False, schedule="tile b by 99:\n    ?")


@pytest.mark.parametrize("safe", [False, True], ids=["plain", "safe"])
@pytest.mark.parametrize("form", ["?", online(4, True, "")], ids=["chosen", "online"])
def test_rows_of_infinities(form: str, safe: bool) -> None:
    """What is -inf everywhere in a block, or in a row, and what is infinite or no number: as NumPy has it."""
    b, m, d, n, e = sizes = (1, 6, 1, 10, 2)
    q, k = np.ones((b, m, d)), np.zeros((b, n, d))
    k[0, :4] = -np.inf
    k[0, 7] = 3.0
    q[0, 1], q[0, 2] = np.nan, -1.0
    if safe:
        k[0, 4:] = -np.inf
    v = np.random.default_rng(0).standard_normal((b, n, e))
    got, want = run(sizes, "bf16", [q, k, v], schedule=form, safe=safe)
    np.testing.assert_allclose(got, want, rtol=_ULP["bf16"], atol=2 * _ULP["bf16"])
