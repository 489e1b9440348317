"""Masks that hide what is above a diagonal: what is known of them, and schedules that skip what they hide."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_chain_numbers import online

import morello_mlir
from morello_mlir.chains import ChainSpec
from morello_mlir.chains.explain import steps
from morello_mlir.chains.masks import Mask, hides, mask_made_by
from morello_mlir.chains.online import Form
from morello_mlir.chains.online_search import counts
from morello_mlir.chains.schedule import parse, to_text
from morello_mlir.chains.search import ChainSearch, chain_search_for
from morello_mlir.chains.space import Point
from morello_mlir.errors import ScheduleError, SpecError
from morello_mlir.nests import NestSpec
from morello_mlir.search.solve import Search
from morello_mlir.targets import TARGETS

ROW = "(f32, GL, row_major)"


def lines(sizes: tuple[int, ...], mask: Mask, safe: bool = False, added: bool = False) -> list[str]:
    """The stages of masked attention of b, m, d, n, e, and what is known of the mask x2. added: -inf is added to half
    of the scores, instead of taking their place."""
    b, m, d, n, e = sizes
    t, row = (
        [s if z > 1 else 0 for s, z in zip(strides, (b, m, n), strict=True)] for strides in ((m * n, n, 1), (0, n, 1))
    )
    x = "0.0:f32" if added else "x1"
    shown = f"{x}, -inf:f32" if mask.value == 0 else f"-inf:f32, {x}"
    y = "select(cmp(oeq, m, -inf:f32), 0.0:f32, div(e, s))" if safe else "div(e, s)"
    masked = f"select(cmp(ne, x0, 0:i8), {shown})"
    masked = f"add(mul(x1, 0.5:f32), {masked})" if added else masked
    body = f"v = {masked}; m = max(v); e = exp(sub(v, m)); s = sum(e); y = {y}"
    return [
        f"t0 = Matmul([{b}, {m}, {d}, {n}], {ROW}, (f32, GL, [b, n, k]), {ROW}, serial) of x0, x1",
        f"t1 = {'Compose' if safe else 'Softmax'}([{b}, {m}, {n} scan], (i8, GL, {row}), (f32, GL, {t}), "
        f'(f32, GL, {t}), "{body}", serial) of x2, t0',
        f"y = Matmul([{b}, {m}, {n}, {e}], {ROW}, {ROW}, {ROW}, serial) of t1, x3",
        str(mask),
    ]


def chain(sizes: tuple[int, ...], above: int = 0, value: int = 0, threads: int = 1) -> ChainSpec:
    stages = lines(sizes, Mask("x2", value, above))
    return ChainSpec.of_lines(stages, threads == 1, threads if threads > 1 else 0)


# ---------------------------------------------------------------- what is known


@given(st.integers(-9, 9), st.sampled_from([0, 1]))
def test_text_round_trip(above: int, value: int) -> None:
    spec = chain((2, 5, 3, 7, 2), above, value)
    assert ChainSpec.parse(str(spec)) == spec and spec.mask == Mask("x2", value, above)
    assert f" of t1, x3 | x2 = {value} above {above}, serial)" in str(spec)


@pytest.mark.parametrize("line", ["x2 = 1 above 0", "x0 = 0 above 0", "x3 = 0 above 0", "x9 = 0 above 0"])
def test_what_hides_nothing(line: str) -> None:
    """The other value; what is no mask."""
    with pytest.raises(SpecError, match="hides nothing"):
        ChainSpec.of_lines([*lines((2, 5, 3, 7, 2), Mask("x2", 0, 0))[:-1], line])


@pytest.mark.parametrize("line", ["x2 = 2 above 0", "x2 above 0"])
def test_what_cannot_be_read(line: str) -> None:
    with pytest.raises(SpecError):
        ChainSpec.of_lines([*lines((2, 5, 3, 7, 2), Mask("x2", 0, 0))[:-1], line])


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("select(cmp(sle, index(1, i64), index(0, i64)), 1:i8, 0:i8)", (0, 0)),
        ("select(cmp(sle, sub(index(1, i64), index(0, i64)), 2:i64), 1:i8, 0:i8)", (0, 2)),
        ("select(cmp(sgt, index(1, i64), add(index(0, i64), -3:i64)), 1:i8, 0:i8)", (1, -3)),
        ("select(cmp(slt, index(1, i64), 4:i64), 1:i8, 0:i8)", (0, 3)),
        ("select(cmp(sge, index(1, i64), index(0, i64)), 1:i8, 0:i8)", (1, -1)),
        ("select(cmp(sge, index(0, i64), 3:i64), 1:i8, 0:i8)", (0, 5)),
    ],
)
def test_masks_of_positions(body: str, found: tuple[int, int]) -> None:
    nest = NestSpec.parse(f'Map([6, 9], (i8, L2, [9, 1]), "y = {body}", serial)')
    assert mask_made_by(nest, 6, 9) == found
    assert mask_made_by(nest, 9, 6) is None, "of other sizes"


def test_masks_of_data() -> None:
    nest = NestSpec.parse('Map([6, 9], (i8, L2, [9, 1]), (i8, L2, [9, 1]), "y = abs(x0)", serial)')
    assert mask_made_by(nest, 6, 9) is None


def test_what_a_body_hides() -> None:
    body = chain((2, 5, 3, 7, 2)).stages[1].goal.body
    at = next(i for i, v in enumerate(body.values) if v.op == "select")
    assert hides(body, 0, 0, at) and not hides(body, 0, 1, at) and not hides(body, 1, 0, at)


# ---------------------------------------------------------------- price


@given(
    st.integers(1, 40),
    st.integers(2, 40),
    st.integers(1, 12),
    st.integers(1, 40),
    st.integers(-5, 5),
    st.integers(1, 3),
)
def test_how_often_parts_are_done(m: int, n: int, rows: int, size: int, above: int, threads: int) -> None:
    """As the code does: for every tile of the thread that has most to do."""
    if size >= n or rows >= m:
        return
    spec = chain((1, m, 2, n, 2), above, threads=threads)
    loop = parse(f"{'parallel ' if threads > 1 else ''}tile m by {rows}:\n    ?\nrest:\n    ?")
    point, _ = Point.of(spec, TARGETS["avx2"]).tiled(loop)
    often, tiles = counts(Form(point.skip(), size, "GL", TARGETS["avx2"]))
    trips = -(-m // rows)
    first = min((threads - 1) * trips // threads, m // rows - 1)
    starts = [t * rows for t in range(first, m // rows)]
    assert tiles == len(starts)
    blocks = updates = rests = 0
    full = n - n % size
    for start in starts:
        seen = min(n, max(0, start + rows + above))
        updates += len(range(size, min(seen, full), size))
        blocks += 1 + len(range(size, min(seen, full), size))
        rests += bool(n % size) and seen > full
    assert often["scores", size] == often["weigh", size] == blocks and often["finish", size] == tiles
    assert often.get(("update", size), 0) == updates and often.get(("carry", size), 0) == updates + rests
    assert n % size == 0 or often.get(("weigh", n % size), 0) == rests


def test_the_search_skips_where_it_pays() -> None:
    search = chain_search_for(TARGETS["avx512"], "off")
    found = search.solve(chain((2, 256, 16, 256, 16)))
    text = to_text(found.schedule)
    assert "skip what is masked" in text and "online n by" in text
    assert search.price(Point.of(found.spec, TARGETS["avx512"]), parse(text)) == found.cost
    assert found.cost < search.solve(chain((2, 256, 16, 256, 16), 255)).cost
    explained = steps(found.spec, found.schedule, TARGETS["avx512"])
    assert any(step.label == "skip what is masked" and "x2 = 0 above 0" in step.note for step in explained.walk())


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("skip what is masked\n?", "tile b by 1 first"),
        ("tile b by 1:\n    skip what is masked\n    skip what is masked\n    ?", "skipped already"),
        (
            "tile b by 1:\n    skip what is masked\n    parallel tile m by 2:\n        ?\n    rest:\n        ?",
            "come before",
        ),
        ("skip what is masked", "must follow"),
    ],
)
def test_schedules_that_are_not_legal(text: str, why: str) -> None:
    with pytest.raises(ScheduleError, match=why):
        ChainSearch(Search(TARGETS["avx2"])).complete(chain((2, 5, 3, 7, 2), threads=2), parse(text))


def test_nothing_is_known() -> None:
    spec = ChainSpec.of_lines(lines((2, 5, 3, 7, 2), Mask("x2", 0, 0))[:-1])
    with pytest.raises(ScheduleError, match="no mask is known"):
        ChainSearch(Search(TARGETS["avx2"])).complete(spec, parse("tile b by 1:\n    skip what is masked\n    ?"))


# ---------------------------------------------------------------- numbers


def module(sizes: tuple[int, ...], mask: Mask, schedule: str, threads: int, safe: bool, added: bool = False) -> str:
    b, m, d, n, e = sizes
    stages = ", ".join('"' + s.replace('"', "\\22") + '"' for s in lines(sizes, mask, safe, added))
    steps_ = ", ".join('"' + line + '"' for line in schedule.splitlines())
    given = f", schedule = [{steps_}]" if schedule else ""
    q, k, w, v, o = (
        f"memref<{'x'.join(map(str, s))}xf32>" for s in ((b, m, d), (b, n, d), (m, n), (b, n, e), (b, m, e))
    )
    w = w.replace("f32", "i8")
    kt = f"memref<{b}x{d}x{n}xf32, strided<[{d * n}, 1, {d}]>>"
    wb = f"memref<{b}x{m}x{n}xi8, strided<[0, {n}, 1]>>"
    return f"""func.func @f(%q: {q}, %k: {k}, %w: {w}, %v: {v}, %o: {o}) {{
      %kt = memref.reinterpret_cast %k to offset: [0], sizes: [{b}, {d}, {n}], strides: [{d * n}, 1, {d}] : {k} to {kt}
      %wb = memref.reinterpret_cast %w to offset: [0], sizes: [{b}, {m}, {n}], strides: [0, {n}, 1] : {w} to {wb}
      "morello.chain5"(%q, %kt, %wb, %v, %o) {{function = "Chain", dims = array<i64: {b}, {m}>, stages = [{stages}],
        {f"threads = {threads} : i64" if threads > 1 else "serial"}{given}}} : ({q}, {kt}, {wb}, {v}, {o}) -> ()
      return
    }}"""


def run(
    sizes: tuple[int, ...],
    mask: Mask,
    schedule: str,
    *,
    threads: int = 1,
    safe: bool = False,
    added: bool = False,
    shown=None,
    values=None,
    inputs=None,
):  # type: ignore[no-untyped-def]
    """(ours, NumPy's). shown: what the mask's memory holds, where it is not what is known of it. values, inputs: change
    v; q and k."""
    b, m, d, n, e = sizes
    rng = np.random.default_rng(sum(sizes))
    q, k, v = (rng.standard_normal(s).astype("f4") for s in ((b, m, d), (b, n, d), (b, n, e)))
    if values is not None:
        values(v)
    if inputs is not None:
        inputs(q, k)
    i, j = np.ogrid[:m, :n]
    own = (j <= i + mask.above) if shown is None else shown
    out = np.full((b, m, e), 7, np.float32)
    compiled = morello_mlir.compile(
        module(sizes, mask, schedule, threads, safe, added), target="avx2", memo="off", threads=threads
    )
    compiled.f(q, k, np.ascontiguousarray(own == (mask.value == 0)).astype(np.int8), v, out)
    with np.errstate(all="ignore"):
        scores = q.astype("f8") @ k.transpose(0, 2, 1)
        if added:  # of f32, which overflow
            scores = 0.5 * scores.astype("f4").astype("f8") + np.where(own, 0, -np.inf)
        else:
            scores = np.where(own, scores, -np.inf)
        nothing = (scores == -np.inf).all(-1, keepdims=True) & safe
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        want = np.where(nothing, 0, scores / scores.sum(-1, keepdims=True)) @ v.astype("f8")
    return out, want, compiled


def skipping(size: int, rows: int, sizes: tuple[int, ...], home: str = "L2", parallel: bool = False) -> str:
    _, m, _, n, _ = sizes
    form = online(size, n % size > 0, " " * 8, home)
    rest = f"\n    rest:\n{online(size, n % size > 0, ' ' * 8, home)}" if m % rows else ""
    inner = f"    skip what is masked\n    tile m by {rows}:\n{form}{rest}"
    return f"{'parallel ' if parallel else ''}tile b by 1:\n{inner}"


@pytest.mark.parametrize(("above", "value"), [(0, 0), (3, 1), (-2, 0), (-100, 1), (100, 0)])
@pytest.mark.parametrize("sizes", [(2, 16, 5, 16, 6), (2, 13, 4, 21, 3), (2, 21, 4, 13, 3)])
def test_skipped(sizes: tuple[int, ...], value: int, above: int) -> None:
    """Also rows that see nothing: NaN."""
    out, want, _ = run(sizes, Mask("x2", value, above), skipping(4, 3, sizes))
    np.testing.assert_allclose(out, want, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("above", [0, -3])
def test_rows_that_see_nothing_may_be_zeros(above: int) -> None:
    out, want, _ = run((2, 13, 4, 21, 3), Mask("x2", 0, above), skipping(8, 3, (2, 13, 4, 21, 3)), safe=True)
    assert (want[:, : max(0, -above)] == 0).all()
    np.testing.assert_allclose(out, want, rtol=2e-5, atol=2e-5)


def test_blocks_are_skipped() -> None:
    """With a mask that shows everything, contrary to what is known of it: tiles see what their last row may see, in
    whole blocks, and the first one."""
    sizes = (2, 12, 5, 20, 6)
    i, j = np.ogrid[:12, :20]
    reached = (i // 3 + 1) * 3
    shown = j < np.maximum(4, -(-reached // 4) * 4)
    out, _, _ = run(sizes, Mask("x2", 0, 0), skipping(4, 3, sizes), shown=np.ones((12, 20), bool))
    _, want, _ = run(sizes, Mask("x2", 0, 0), skipping(4, 3, sizes), shown=shown)
    np.testing.assert_allclose(out, want, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nothing_is_skipped_beside_what_is_not_finite(bad: float) -> None:
    """0 times that is no number, as without skipping."""

    def values(v: np.ndarray) -> None:
        v[0, 15, 1] = bad

    sizes = (2, 16, 5, 16, 6)
    out, want, _ = run(sizes, Mask("x2", 0, 0), skipping(4, 3, sizes), values=values)
    assert np.isnan(want[0, :15, 1]).all() and np.isfinite(want[1]).all()
    np.testing.assert_allclose(out, want, rtol=2e-5, atol=2e-5)


# ---------------------------------------------------------------- masks that are added


@pytest.mark.parametrize(("above", "value"), [(0, 0), (-2, 1)])
@pytest.mark.parametrize("sizes", [(2, 13, 4, 21, 3), (2, 21, 4, 13, 3)])
def test_added(sizes: tuple[int, ...], above: int, value: int) -> None:
    """Blocks are skipped: with a mask that shows all, contrary to what is known, a tile sees what its last row may."""
    mask = Mask("x2", value, above)
    out, want, _ = run(sizes, mask, skipping(4, 3, sizes), added=True)
    np.testing.assert_allclose(out, want, rtol=2e-5, atol=2e-5)
    i, j = np.ogrid[: sizes[1], : sizes[3]]
    last = np.minimum(i // 3 * 3 + 3, sizes[1]) + above
    full = sizes[3] - sizes[3] % 4
    seen = j < np.where(last > full, sizes[3], np.minimum(np.maximum(4, -(-last // 4) * 4), full))
    everything = np.ones((sizes[1], sizes[3]), bool)
    out, _, _ = run(sizes, mask, skipping(4, 3, sizes), added=True, shown=everything)
    _, want, _ = run(sizes, mask, skipping(4, 3, sizes), added=True, shown=seen)
    np.testing.assert_allclose(out, want, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e30])
@pytest.mark.parametrize("where", ["q", "k"])
def test_nothing_is_skipped_beside_scores_that_are_not_finite(where: str, bad: float) -> None:
    """-inf is added to them: NaN shows, and infinity becomes NaN."""

    def inputs(q: np.ndarray, k: np.ndarray) -> None:
        q[0, 1], k[0, 14] = np.abs(q[0, 1]), np.abs(k[0, 14])
        (q[0, 1] if where == "q" else k[0, 14])[:] = bad
        if bad == 1e30:
            q[0, 1], k[0, 14] = bad, bad

    sizes = (2, 16, 5, 16, 6)
    out, want, _ = run(sizes, Mask("x2", 0, 0), skipping(4, 3, sizes), added=True, inputs=inputs)
    assert np.isfinite(want[1]).all() and (bad == -np.inf or np.isnan(want[0, 1]).all())
    np.testing.assert_allclose(out, want, rtol=2e-5, atol=2e-5)


def test_what_may_be_added_to() -> None:
    spec = ChainSpec.of_lines(lines((2, 5, 3, 7, 2), Mask("x2", 0, 0), added=True))
    assert spec.bound == 2.0**59 and chain((2, 5, 3, 7, 2)).bound is None
    other = [
        line.replace("mul(x1, 0.5:f32)", "exp(x1)") for line in lines((2, 5, 3, 7, 2), Mask("x2", 0, 0), added=True)
    ]
    with pytest.raises(SpecError, match="hides nothing"):
        ChainSpec.of_lines(other)


@pytest.mark.parametrize("parallel", ["b", "m"])
def test_on_threads(parallel: str) -> None:
    sizes = (2, 22, 5, 19, 6)
    if parallel == "b":
        schedule = skipping(4, 5, sizes, "GL", parallel=True)
    else:
        inner = "\n".join("    " + line for line in skipping(4, 3, (2, 8, 5, 19, 6)).splitlines())
        rest = "\n".join("    " + line for line in skipping(4, 3, (2, 6, 5, 19, 6)).splitlines())
        schedule = f"parallel tile m by 8:\n{inner}\nrest:\n{rest}"
    out, want, _ = run(sizes, Mask("x2", 0, 1), schedule, threads=2)
    np.testing.assert_allclose(out, want, rtol=2e-5, atol=2e-5)


@settings(max_examples=10, deadline=None)
@given(
    st.tuples(*[st.integers(1, 3), *[st.integers(4, 24)] * 4]), st.integers(-4, 6), st.integers(1, 3), st.integers(1, 3)
)
def test_any_sizes(sizes: tuple[int, ...], above: int, size: int, rows: int) -> None:
    if sizes[0] == 1:
        text = skipping(size, rows, sizes).split("\n", 1)[1]
        schedule = "\n".join(line[4:] for line in text.splitlines())
    else:
        schedule = skipping(size, rows, sizes)
    out, want, _ = run(sizes, Mask("x2", 0, above), schedule)
    np.testing.assert_allclose(out, want, rtol=2e-5, atol=2e-5)
