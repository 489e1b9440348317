"""Chains compiled and run, against NumPy: what the search chooses, and schedules by hand."""

from __future__ import annotations

import numpy as np
import pytest

import morello_mlir
from morello_mlir.errors import CompileError

ROW = "(f32, GL, row_major)"
SOFTMAX = "m = max(x0); e = exp(sub(x0, m)); s = sum(e); y = div(e, s)"
#: Rows of nothing but -inf are zeros.
SAFE = SOFTMAX.replace("y = div(e, s)", "y = select(cmp(oeq, m, -inf:f32), 0.0:f32, div(e, s))")


def module(
    b: int,
    m: int,
    d: int,
    n: int,
    e: int,
    *,
    then: str = "",
    threads: int = 1,
    schedule: str = "",
    softmax: str = SOFTMAX,
) -> str:
    """softmax(q @ k^T) @ v on memrefs, as one op."""
    strides = [s if z > 1 else 0 for s, z in zip((m * n, n, 1), (b, m, n), strict=True)]
    held = f"(f32, GL, {strides})"
    reads = "x0, x1" + (", x2" if then else "")
    last = "x3" if then else "x2"
    stages = [
        f"t0 = Matmul([{b}, {m}, {d}, {n}], {ROW}, (f32, GL, [b, n, k]), {ROW}, serial{then}) of {reads}",
        f't1 = {"Softmax" if softmax == SOFTMAX else "Compose"}([{b}, {m}, {n} scan], {held}, {held}, "{softmax}", '
        "serial) of t0",
        f"y = Matmul([{b}, {m}, {n}, {e}], {ROW}, {ROW}, {ROW}, serial) of t1, {last}",
    ]
    text = ", ".join('"' + s.replace('"', "\\22") + '"' for s in stages)
    lines = ", ".join('"' + line + '"' for line in schedule.splitlines())
    given = f", schedule = [{lines}]" if schedule else ""
    threading = f"threads = {threads} : i64" if threads > 1 else "serial"
    k = f"memref<{b}x{d}x{n}xf32, strided<[{d * n}, 1, {d}]>>"
    q, w, v, o = (f"memref<{b}x{m}x{d}xf32>", f"memref<{b}x{m}x{n}xf32, strided<[0, 0, 1]>>",
                  f"memref<{b}x{n}x{e}xf32>", f"memref<{b}x{m}x{e}xf32>")  # fmt: skip
    types = [q, k, *([w] if then else []), v, o]
    names = ["%q", "%kt", *(["%wb"] if then else []), "%v", "%o"]
    broadcast = (
        f"  %wb = memref.reinterpret_cast %w to offset: [0], sizes: [{b}, {m}, {n}], strides: [0, 0, 1]"
        f" : memref<{n}xf32> to {w}\n"
    )
    return (
        f"func.func @f(%q: {q}, %k: memref<{b}x{n}x{d}xf32>, %w: memref<{n}xf32>, %v: {v}, %o: {o}) {{\n"
        f"  %kt = memref.reinterpret_cast %k to offset: [0], sizes: [{b}, {d}, {n}], strides: [{d * n}, 1, {d}]"
        f" : memref<{b}x{n}x{d}xf32> to {k}\n"
        + (broadcast if then else "")
        + f'  "morello.chain{len(types)}"({", ".join(names)}) {{function = "Chain", dims = array<i64: {b}, {m}>, '
        f"stages = [{text}], {threading}{given}}} : ({', '.join(types)}) -> ()\n  return\n}}\n"
    )


def check(
    b: int, m: int, d: int, n: int, e: int, *, then: str = "", threads: int = 1, schedule: str = "", ours: bool = True
) -> None:
    """ours: by our passes; else what `--check` compares with, which does not look at the schedule."""
    rng = np.random.default_rng(b + m + d + n + e)
    shapes = ((b, m, d), (b, n, d), (n,), (b, n, e))
    q, k, w, v = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    out = np.full((b, m, e), np.nan, np.float32)
    text = module(b, m, d, n, e, then=then, threads=threads, schedule=schedule)
    compiled = morello_mlir.compile(text, target="avx2", memo="off", threads=threads, optimize=ours)
    compiled.f(q, k, w, v, out)
    scores = q.astype(np.float64) @ k.astype(np.float64).transpose(0, 2, 1)
    scores = scores * w if then else scores
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    want = scores / scores.sum(-1, keepdims=True) @ v
    np.testing.assert_allclose(out, want, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(
    ("sizes", "threads"),
    [
        ((1, 1, 1, 1, 1), 1),
        ((2, 7, 5, 13, 3), 1),
        ((3, 11, 4, 8, 17), 2),
        ((1, 13, 3, 31, 5), 2),
    ],
)
def test_what_the_search_chooses(sizes: tuple[int, int, int, int, int], threads: int) -> None:
    check(*sizes, threads=threads)


SCALE = ', then "y = mul(x0, x1)" [f32, (f32, [n])]'
TILED = """tile b by 1:
    pack rhs of stage 1 to GL as [b, n/8, k, n%8]
    tile m by 3:
        bufferize t0 to L2
        bufferize t1 in t0
        stage 1:
            ?
        stage 2:
            ?
        stage 3:
            ?
    rest:
        bufferize t0 to GL
        bufferize t1 to L2
        stage 1:
            ?
        stage 2:
            ?
        stage 3:
            ?"""
OFF_SCALE = TILED.replace("m by 3", "m by 7")
SHARED = "parallel tile m by 4:\n    tile b by 1:\n        ?\nrest:\n    ?"


@pytest.mark.parametrize(("schedule", "threads"), [(TILED, 1), (SHARED, 2), (OFF_SCALE, 1)])
@pytest.mark.parametrize("then", ["", SCALE])
def test_schedules_by_hand(schedule: str, threads: int, then: str) -> None:
    check(2, 10, 5, 16, 6, then=then, threads=threads, schedule=schedule)


@pytest.mark.parametrize("sizes", [(1, 1, 1, 1, 1), (2, 7, 5, 13, 3), (1, 4, 3, 1, 2)])
@pytest.mark.parametrize("then", ["", SCALE])
def test_the_reference_of_a_check(sizes: tuple[int, int, int, int, int], then: str) -> None:
    check(*sizes, then=then, ours=False, schedule="tile b by 99:\n    ?")


def test_an_illegal_schedule_is_an_error() -> None:
    """And not code by other passes: it says what is wrong with it."""
    text = module(2, 10, 5, 16, 6, schedule="tile m by 99:\n    ?")
    with pytest.raises(CompileError, match=r"tile m by 99: the size must be less than m=10"):
        morello_mlir.compile(text, target="avx2", memo="off", threads=1)


def test_constants_of_the_module_stay() -> None:
    text = """func.func @f(%x: tensor<8x16xf32>, %w: tensor<16x16xf32>, %v: tensor<16x8xf32>) -> tensor<8x8xf32> {
      %b = arith.constant dense<[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]> : tensor<8xf32>
      %z = arith.constant 0.0 : f32
      %e0 = tensor.empty() : tensor<8x16xf32>
      %e1 = tensor.empty() : tensor<8x8xf32>
      %f0 = linalg.fill ins(%z : f32) outs(%e0 : tensor<8x16xf32>) -> tensor<8x16xf32>
      %f1 = linalg.fill ins(%z : f32) outs(%e1 : tensor<8x8xf32>) -> tensor<8x8xf32>
      %t = linalg.matmul ins(%x, %w : tensor<8x16xf32>, tensor<16x16xf32>)
          outs(%f0 : tensor<8x16xf32>) -> tensor<8x16xf32>
      %u = linalg.matmul ins(%t, %v : tensor<8x16xf32>, tensor<16x8xf32>) outs(%f1 : tensor<8x8xf32>) -> tensor<8x8xf32>
      %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>,
          affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
          ins(%u, %b : tensor<8x8xf32>, tensor<8xf32>) outs(%e1 : tensor<8x8xf32>) {
      ^bb0(%p: f32, %q: f32, %o: f32):
        %s = arith.addf %p, %q : f32
        linalg.yield %s : f32
      } -> tensor<8x8xf32>
      return %r : tensor<8x8xf32>
    }"""
    module = morello_mlir.compile(text, memo="off")
    rng = np.random.default_rng(0)
    x, w, v = (rng.standard_normal(s).astype("f4") for s in ((8, 16), (16, 16), (16, 8)))
    assert module.left == 0
    np.testing.assert_allclose(module.f(x, w, v), x @ w @ v + np.arange(8, dtype="f4"), rtol=1e-4, atol=1e-4)


PARTS = ("scores", "start", "update", "carry", "rescale", "weigh", "finish")


def online(size: int, rest: bool, indent: str, home: str = "L2") -> str:
    lines = [f"online n by {size}:", f"    bufferize t0 to {home}"]
    lines += [line for part in PARTS for line in (f"    {part}:", "        ?")]
    if rest:
        lines += ["rest:", *(line for part in ("scores", "update", "weigh") for line in (f"    {part}:", "        ?"))]
    return "\n".join(indent + line for line in lines)


@pytest.mark.parametrize(("n", "size"), [(16, 8), (21, 8), (9, 8), (13, 1), (24, 4)])
@pytest.mark.parametrize("then", ["", SCALE])
def test_online(n: int, size: int, then: str) -> None:
    schedule = f"tile b by 1:\n    tile m by 4:\n{online(size, n % size > 0, '        ')}\n    rest:\n        ?"
    check(2, 7, 5, n, 6, then=then, schedule=schedule)


def test_online_with_packs_and_threads() -> None:
    inner = online(8, True, " " * 8, "GL")
    packs = "    pack rhs of stage 1 to L2 as [b, n/8, k, n%8]\n    pack rhs of stage 3 to GL as [b, n/8, k, n%8]\n"
    check(3, 6, 5, 20, 9, threads=2, schedule=f"parallel tile b by 1:\n{packs}    tile m by 3:\n{inner}")


@pytest.mark.parametrize("softmax", [SOFTMAX, SAFE], ids=["plain", "safe"])
@pytest.mark.parametrize("form", ["?", online(4, True, "")], ids=["chosen", "online"])
def test_rows_of_infinities(form: str, softmax: str) -> None:
    """What is -inf everywhere in a block, or in a row, and what is infinite or no number: as NumPy has it."""
    b, m, d, n, e = 1, 6, 1, 10, 2
    q = np.ones((b, m, d), np.float32)
    k = np.zeros((b, n, d), np.float32)
    k[0, :4] = -np.inf
    k[0, 7] = 3.0
    q[0, 1], q[0, 2] = np.nan, -1.0
    if softmax == SAFE:
        k[0, 4:] = -np.inf
    v = np.random.default_rng(0).standard_normal((b, n, e)).astype(np.float32)
    out = np.zeros((b, m, e), np.float32)
    text = module(b, m, d, n, e, schedule=form, softmax=softmax)
    morello_mlir.compile(text, target="avx2", memo="off", threads=1).f(q, k, np.zeros(n, np.float32), v, out)
    with np.errstate(invalid="ignore"):
        scores = q @ k.transpose(0, 2, 1)
        nothing = (scores == -np.inf).all(-1, keepdims=True) & (softmax == SAFE)
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        want = np.where(nothing, 0, scores / scores.sum(-1, keepdims=True)) @ v
    assert nothing.any() == (softmax == SAFE)
    np.testing.assert_allclose(out, want, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("between", ["", "%s = linalg.add ins(%p, %t : T, T) outs(%e : T) -> T"])
def test_what_is_read_twice_is_stored(between: str) -> None:
    """The square of a product; with a sum of it and its transpose in between."""
    text = f"""func.func @f(%a: T, %b: T) -> T {{
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : T
      %z = linalg.fill ins(%zero : f32) outs(%e : T) -> T
      %p = linalg.matmul ins(%a, %b : T, T) outs(%z : T) -> T
      %t = linalg.transpose ins(%p : T) outs(%e : T) permutation = [1, 0]
      {between or "%s = linalg.add ins(%p, %p : T, T) outs(%e : T) -> T"}
      %r = linalg.matmul ins(%s, %s : T, T) outs(%z : T) -> T
      return %r : T
    }}""".replace("T", "tensor<7x7xf32>")
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((7, 7)).astype(np.float32) for _ in range(2))
    p = a @ b
    s = p + p.T if between else p + p
    np.testing.assert_allclose(morello_mlir.compile(text, memo="off", threads=1).f(a, b), s @ s, rtol=1e-4, atol=1e-4)
