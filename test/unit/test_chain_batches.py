"""Chains whose nests have b in several dims: a mask for every sequence, or for every head."""

from __future__ import annotations

import numpy as np
import pytest
from test_chain_numbers import ROW, SHARED, TILED, online

import morello_mlir
from morello_mlir.chains import ChainSpec
from morello_mlir.chains.refine import as_stage
from morello_mlir.errors import SpecError
from morello_mlir.nests import NestSpec

BODY = "v = add(x1, x0); m = max(v); e = exp(sub(v, m)); s = sum(e); y = div(e, s)"
#: Elements from one (sequence, head, row, column) of a mask to the next, for 5 rows and 16 columns.
MASKS = {"sequence": (16, 0, 0, 1), "head": (0, 80, 16, 1), "rows": (80, 0, 16, 1), "turned": (80, 160, 16, 1)}
SIZES = (2, 3, 5, 4, 16, 6)


def stages(mask: tuple[int, ...], sizes: tuple[int, ...] = SIZES) -> list[str]:
    """Attention with a mask x2 that is added, of (b0, b1, m, d, n, e)."""
    b0, b1, m, d, n, e = sizes
    t = f"(f32, GL, {[b1 * m * n, m * n, n, 1]})"
    return [
        f"t0 = Matmul([{b0 * b1}, {m}, {d}, {n}], {ROW}, (f32, GL, [b, n, k]), {ROW}, serial) of x0, x1",
        f't1 = Softmax([{b0}, {b1}, {m}, {n} scan], (f32, GL, {[*mask]}), {t}, {t}, "{BODY}", serial) of x2, t0',
        f"y = Matmul([{b0 * b1}, {m}, {n}, {e}], {ROW}, {ROW}, {ROW}, serial) of t1, x3",
    ]


def test_text_and_sizes() -> None:
    chain = ChainSpec.of_lines(stages(MASKS["sequence"]))
    assert chain.dims == (6, 5) and chain.stages[1].shape == (6, 5, 16) and chain.in_place(1) == 0
    assert ChainSpec.parse(str(chain)) == chain


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("[240, 80, 16, 1]", "[480, 80, 16, 1]", "t0 has the strides [240, 80, 16, 1], not others"),
        ("[2, 3, 5, 16 scan]", "[1, 6, 5, 16 scan]", "each has more than one element"),
        ("[2, 3, 5, 16 scan]", "[3, 3, 5, 16 scan]", "b and m are [9, 5]"),
    ],
)
def test_what_is_no_chain(old: str, new: str, why: str) -> None:
    with pytest.raises(SpecError) as error:
        ChainSpec.of_lines([line.replace(old, new) for line in stages(MASKS["sequence"])])
    assert why in str(error.value)


@pytest.mark.parametrize(
    ("nest", "found"),
    [
        ("[2, 3, 5, 16], (f32, GL, [240, 80, 16, 1]), (f32, GL, [16, 0, 0, 1])", "[2, 3, 5, 16]"),
        ("[3, 2, 5, 16], (f32, GL, [80, 240, 16, 1]), (f32, GL, [0, 16, 0, 1])", "[2, 3, 5, 16]"),
        ("[2, 15, 16], (f32, GL, [240, 16, 1]), (f32, GL, [16, 0, 1])", "[2, 3, 5, 16]"),
        ("[6, 80], (f32, GL, [80, 1]), (f32, GL, [0, 1])", "[6, 5, 16]"),
        ("[2, 3, 5, 16], (f32, GL, [241, 80, 16, 1]), (f32, GL, [16, 0, 0, 1])", None),
        ("[3, 5, 16], (f32, GL, [80, 16, 1]), (f32, GL, [16, 0, 1])", None),
    ],
)
def test_dims_of_a_nest(nest: str, found: str | None) -> None:
    """Those of a nest that reads a tensor of 6 x 5 x 16, in any order, split or joined; with a gap; not all of it."""
    dims, operands = nest.split(", (f32", 1)
    strides = operands.split("(f32, GL, ")[0]
    out = "(f32" + strides.split("), ")[0] + ")"
    made = as_stage(NestSpec.parse(f'Map({dims}, (f32{operands}, {out}, "y = add(x0, x1)", serial)'), (6, 5, 16), 0)
    assert (None if made is None else str([*made.dims])) == found
    assert made is None or made.operands[0].strides[-3:] == (80, 16, 1)


def module(mask: str, threads: int, schedule: str) -> str:
    """One op, on memrefs."""
    b0, b1, m, d, n, e = SIZES
    b = b0 * b1
    text = ", ".join('"' + s.replace('"', "\\22") + '"' for s in stages(MASKS[mask]))
    lines = ", ".join('"' + line + '"' for line in schedule.splitlines())
    given = f", schedule = [{lines}]" if schedule else ""
    threading = f"threads = {threads} : i64" if threads > 1 else "serial"
    q, v, o = (f"memref<{b}x{x}x{y}xf32>" for x, y in ((m, d), (n, e), (m, e)))
    k = f"memref<{b}x{d}x{n}xf32, strided<[{d * n}, 1, {d}]>>"
    w = f"memref<{b0}x{b1}x{m}x{n}xf32, strided<{[*MASKS[mask]]}>>"
    return f"""func.func @f(%q: {q}, %k: memref<{b}x{n}x{d}xf32>, %w: memref<480xf32>, %v: {v}, %o: {o}) {{
      %kt = memref.reinterpret_cast %k to offset: [0], sizes: [{b}, {d}, {n}], strides: [{d * n}, 1, {d}]
        : memref<{b}x{n}x{d}xf32> to {k}
      %wb = memref.reinterpret_cast %w to offset: [0], sizes: {[b0, b1, m, n]}, strides: {[*MASKS[mask]]}
        : memref<480xf32> to {w}
      "morello.chain5"(%q, %kt, %wb, %v, %o) {{function = "Chain", dims = array<i64: {b}, {m}>, stages = [{text}],
        {threading}{given}}} : ({q}, {k}, {w}, {v}, {o}) -> ()
      return
    }}"""


ONLINE = f"tile b by 1:\n    tile m by 3:\n{online(8, False, ' ' * 8)}\n    rest:\n        ?"


@pytest.mark.parametrize("mask", [*MASKS])
@pytest.mark.parametrize(
    ("schedule", "threads", "ours"),
    [("", 1, True), ("", 2, True), (TILED, 1, True), (SHARED, 2, True), (ONLINE, 1, True), ("", 1, False)],
)
def test_numbers(mask: str, schedule: str, threads: int, ours: bool) -> None:
    """ours: by our passes; else what `--check` compares with."""
    rng = np.random.default_rng(len(mask) + threads)
    b0, b1, m, d, n, e = SIZES
    q, k, v = (rng.standard_normal(s).astype(np.float32) for s in ((b0 * b1, m, d), (b0 * b1, n, d), (b0 * b1, n, e)))
    w = rng.standard_normal(480).astype(np.float32)
    w[::7] = -np.inf
    out = np.full((b0 * b1, m, e), np.nan, np.float32)
    compiled = morello_mlir.compile(
        module(mask, threads, schedule), target="avx2", memo="off", threads=threads, optimize=ours
    )
    compiled.f(q, k, w, v, out)
    given = np.lib.stride_tricks.as_strided(w, (b0, b1, m, n), [4 * s for s in MASKS[mask]])
    scores = q.astype(np.float64) @ k.astype(np.float64).transpose(0, 2, 1) + given.reshape(b0 * b1, m, n)
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    np.testing.assert_allclose(out, scores / scores.sum(-1, keepdims=True) @ v, rtol=2e-5, atol=2e-5)
