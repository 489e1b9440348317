"""Chains: text, legality, and that the search finds the cheapest of what it declares."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_target import CHEAP_FORKS, SMALL

from morello_mlir.actions import scale
from morello_mlir.chains import ChainSpec, is_chain
from morello_mlir.chains.schedule import Hole, Loop, Node, PackRhs, Skip, Stages, form_of, has_hole, parse, to_text
from morello_mlir.chains.search import ChainSearch
from morello_mlir.chains.space import Point
from morello_mlir.errors import ScheduleError, SpecError
from morello_mlir.search.solve import Search

ROW = "(f32, GL, row_major)"
SOFTMAX = '"m = max(x0); e = exp(sub(x0, m)); s = sum(e); y = div(e, s)"'


def attention(b: int, m: int, d: int, n: int, e: int, threading: str = "serial") -> ChainSpec:
    """softmax(q @ k^T) @ v."""
    strides = [s if z > 1 else 0 for s, z in zip((m * n, n, 1), (b, m, n), strict=True)]
    held = f"(f32, GL, {strides})"
    return ChainSpec.parse(
        f"Chain(t0 = Matmul([{b}, {m}, {d}, {n}], {ROW}, (f32, GL, [b, n, k]), {ROW}, serial) of x0, x1 | "
        f"t1 = Softmax([{b}, {m}, {n} scan], {held}, {held}, {SOFTMAX}, serial) of t0 | "
        f"y = Matmul([{b}, {m}, {n}, {e}], {ROW}, {ROW}, {ROW}, serial) of t1, x2, {threading})"
    )


def narrow(b: int, m: int, d: int, n: int, e: int, threading: str = "serial") -> ChainSpec:
    """The same in bf16, which scores and weights are rounded to."""
    strides = [s if z > 1 else 0 for s, z in zip((m * n, n, 1), (b, m, n), strict=True)]
    text = str(attention(b, m, d, n, e, threading)).replace("f32", "bf16").replace("Softmax", "Compose")
    text = text.replace("serial) of x0", 'serial, then "y = cast(x0, bf16)" [f32]) of x0')
    text = text.replace("serial) of t1", 'serial, then "y = cast(x0, bf16)" [f32]) of t1')
    assert f"(bf16, GL, {strides})" in text
    body = (
        SOFTMAX.replace("x0", "w").replace('"m', '"w = cast(x0, f32); m').replace("div(e, s)", "cast(div(e, s), bf16)")
    )
    return ChainSpec.parse(text.replace(SOFTMAX, body))


def masked(b: int, m: int, d: int, n: int, e: int, threading: str = "serial") -> ChainSpec:
    """Attention with a mask that hides what is above the diagonal, x2."""
    text = str(attention(b, m, d, n, e, threading))
    row = [s if z > 1 else 0 for s, z in zip((0, n, 1), (b, m, n), strict=True)]
    body = SOFTMAX.replace("x0", "v").replace('"m', '"v = select(cmp(ne, x0, 0:i8), x1, -inf:f32); m')
    text = text.replace("of t1, x2", "of t1, x3 | x2 = 0 above 0").replace("of t0 |", "of x2, t0 |")
    text = text.replace("scan], (f32", f"scan], (i8, GL, {row}), (f32").replace(SOFTMAX, body)
    return ChainSpec.parse(text) if m > 1 and n > 1 else attention(b, m, d, n, e, threading)


def per_sequence(b: int, m: int, d: int, n: int, e: int, threading: str = "serial") -> ChainSpec:
    """Attention of two sequences with b heads each; what is added to their scores is the same for all heads."""
    if b == 1:
        return attention(2, m, d, n, e, threading)
    text = str(attention(2 * b, m, d, n, e, threading))
    held = str([s if z > 1 else 0 for s, z in zip((m * n, n, 1), (2 * b, m, n), strict=True)])
    split = f"[{b * m * n}, {held[1:]}"
    body = SOFTMAX.replace("x0", "v").replace('"m', '"v = add(x0, x1); m')
    text = text.replace(f"Softmax([{2 * b}, ", f"Softmax([2, {b}, ").replace("of t1, x2", "of t1, x3")
    text = text.replace(
        f"scan], (f32, GL, {held}), (f32, GL, {held})",
        f"scan], (f32, GL, [{n}, 0, 0, {int(n > 1)}]), (f32, GL, {split}), (f32, GL, {split})",
    )
    return ChainSpec.parse(text.replace("of t0 |", "of x2, t0 |").replace(SOFTMAX, body))


def products(b: int, m: int, k: int, n: int, e: int, threading: str = "serial") -> ChainSpec:
    """(x0 @ x1) @ x2."""
    return ChainSpec.parse(
        f"Chain(t0 = Matmul([{b}, {m}, {k}, {n}], {ROW}, {ROW}, {ROW}, serial) of x0, x1 | "
        f"y = Matmul([{b}, {m}, {n}, {e}], {ROW}, {ROW}, {ROW}, serial) of t0, x2, {threading})"
    )


SIZES = st.integers(1, 9)
CHAINS = st.builds(
    lambda make, sizes, threading: make(*sizes, threading),
    st.sampled_from([attention, products, narrow, masked, per_sequence]),
    st.tuples(SIZES, SIZES, SIZES, SIZES, SIZES),
    st.sampled_from(["serial", "parallel 2", "parallel 3", "parallel"]),
)


@given(CHAINS)
def test_text_round_trip(chain: ChainSpec) -> None:
    assert is_chain(str(chain))
    assert ChainSpec.parse(str(chain)) == chain
    assert ChainSpec.of_lines(chain.lines(), chain.serial, chain.threads) == chain


def test_what_a_chain_is_made_of() -> None:
    chain = attention(12, 128, 64, 96, 32)
    assert (chain.dims, chain.inputs, chain.names) == ((12, 128), 3, ("x0", "x1", "x2", "y"))
    assert chain.in_place(1) == 0, "softmax overwrites what it reads"
    assert chain.flops == 2 * 12 * 128 * 96 * (64 + 32)
    assert chain.bytes == 4 * 12 * (128 * 64 + 96 * 64 + 96 * 32 + 128 * 32)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("of t0 |", "of t1 |", "t1 is not made by a stage before it"),
        ("of t1, x2", "of x3, x2", "t1 is made and not used"),
        ("of t1, x2", "of x2, t1", "t1 can only be lhs"),
        ("of t1, x2", "of t1, x3", "without a gap"),
        ("of t1, x2", "of t1", "it reads 2 operands, not 1"),
        ("y = Matmul([3, 4, 6, 7]", "y = Matmul([3, 4, 5, 7]", "t1 is a dense [3, 4, 6]"),
        ("y = Matmul([3, 4, 6, 7]", "y = Matmul([2, 4, 6, 7]", "b and m are [2, 4], and [3, 4]"),
        ("y = Matmul(", "y = MatmulAccum(", "overwrites its output"),
        ("t1 = Softmax", "t2 = Softmax", "expected 't1 = "),
        ("[24, 6, 1]", "[48, 6, 1]", "t0 has the strides [24, 6, 1]"),
        (", parallel 2)", ", parallel 999)", "999 threads"),
        (", parallel 2)", ")", "expected Chain("),
    ],
)
def test_what_is_no_chain(old: str, new: str, why: str) -> None:
    text = str(attention(3, 4, 5, 6, 7, "parallel 2"))
    assert old in text
    with pytest.raises(SpecError) as error:
        ChainSpec.parse(text.replace(old, new))
    assert why in str(error.value)


# ---------------------------------------------------------------- schedules

BY_HAND = """
parallel tile b by 1:
    pack rhs of stage 1 to L2 as [b, n/8, k, n%8]  // once for all tiles
    tile m by 2:
        bufferize t0 to L2
        bufferize t1 in t0
        stage 1:
            ?
        stage 2:
            ?
        stage 3:
            to_accum
            ?
    rest:
        ?
"""


def test_schedule_text_round_trip() -> None:
    node = parse(BY_HAND)
    assert isinstance(node, Loop) and isinstance(node.body, PackRhs) and has_hole(node)
    assert parse(to_text(node)) == node


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"),
        ("tile b by 1:", "a body must follow"),
        ("tile k by 2:\n    ?", "unknown step"),
        ("tile m by 0:\n    ?", "must be positive"),
        ("tile m by 2 over 2:\n    ?", "parallel"),
        ("?\n?", "nothing may follow"),
        ("pack rhs of stage 1 to L1 as [b]\n?", "unknown step"),
        ("pack rhs of stage 1 to L2 as [b]", "must follow"),
        ("bufferize t1 to L2\nstage 1:\n    ?", "t0 comes first"),
        ("stage 2:\n    ?", "stage 1 comes first"),
        ("stage 1:\nstage 2:\n    ?", "must follow, indented"),
        ("online n by 0:\n    ?", "must be positive"),
        ("online n by 4:\n    ?", "bufferize t0 to"),
        ("online n by 4:\n    bufferize t0 to L2\n    start:\n        ?", "'scores:' must follow"),
    ],
)
def test_schedules_that_cannot_be_read(text: str, why: str) -> None:
    with pytest.raises(ScheduleError, match=why):
        parse(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("tile b by 2:\n    ?\nrest:\n    ?", "b is tiled by 1"),
        ("tile m by 9:\n    ?", "less than m=5"),
        ("tile m by 2:\n    ?", "needs a 'rest:'"),
        ("tile b by 1:\n    ?\nrest:\n    ?", "divides"),
        ("parallel tile b by 1:\n    parallel tile m by 1:\n        ?", "one thread"),
        ("parallel tile b by 1 over 3:\n    ?", "2 threads work on it"),
        ("pack rhs of stage 1 to L2 as [b, n/8, k, n%8]\n?", "tile b by 1 first"),
        ("tile b by 1:\n    pack rhs of stage 2 to L2 as [b, n/8, k, n%8]\n    ?", "no such contraction"),
        ("tile b by 1:\n    pack rhs of stage 1 to L2 as [b, k/8, n, k%8]\n    ?", "can be packed as"),
        ("tile b by 1:\n    bufferize t0 to L2\n    stage 1:\n        ?", "3 stages"),
        ("bufferize t0 to L2\nbufferize t1 to L2\nstage 1:\n    ?\nstage 2:\n    ?\nstage 3:\n    ?", "tile b by 1"),
        (
            "tile b by 1:\n    bufferize t0 in t0\n    bufferize t1 to L2\n"
            "    stage 1:\n        ?\n    stage 2:\n        ?\n    stage 3:\n        ?",
            "cannot take the place",
        ),
        (
            "tile b by 1:\n    bufferize t0 to L2\n    bufferize t1 to L2\n"
            "    stage 1:\n        kernel nothing\n    stage 2:\n        ?\n    stage 3:\n        ?",
            "stage 1: kernel nothing",
        ),
    ],
)
def test_schedules_that_are_not_legal(text: str, why: str) -> None:
    search = ChainSearch(Search(SMALL))
    with pytest.raises(ScheduleError, match=why):
        search.complete(attention(3, 5, 4, 8, 4, "parallel 2"), parse(text))


def test_holes_are_filled_and_what_is_given_is_kept() -> None:
    search = ChainSearch(Search(SMALL))
    chain = attention(3, 5, 4, 8, 4, "parallel 2")
    found = search.complete(chain, parse(BY_HAND))
    assert found.source == "manual" and not has_hole(found.schedule)
    assert to_text(found.schedule).splitlines()[1].strip() == "pack rhs of stage 1 to L2 as [b, n/8, k, n%8]"
    assert found.cost >= search.solve(chain).cost
    assert search.complete(chain, Hole()).cost == search.solve(chain).cost


# ---------------------------------------------------------------- search


@settings(max_examples=5, deadline=None)
@given(CHAINS, st.sampled_from([SMALL, CHEAP_FORKS]), st.data())
def test_nothing_that_is_declared_is_cheaper(chain: ChainSpec, target, data) -> None:  # type: ignore[no-untyped-def]
    search = ChainSearch(Search(target))
    best = search.solve(chain)
    point = Point.of(best.spec, target)
    assert search.price(point, best.schedule) == best.cost
    assert parse(to_text(best.schedule)) == best.schedule
    try:
        other = search.complete(best.spec, _random(point, target, data))
    except ScheduleError as error:
        assert "no implementation fits" in str(error)
    else:
        assert other.cost >= best.cost


@settings(max_examples=5, deadline=None)
@given(CHAINS, st.sampled_from([SMALL, CHEAP_FORKS]), st.data())
def test_nothing_is_missing_among_the_cheapest(chain: ChainSpec, target, data) -> None:  # type: ignore[no-untyped-def]
    search, count = ChainSearch(Search(target)), 9
    found, best = search.cheapest(chain, count), search.solve(chain)
    assert (found[0].schedule, found[0].cost) == (best.schedule, best.cost)
    point, forms = Point.of(best.spec, target), [form_of(f.schedule) for f in found]
    assert len(set(forms)) == len(forms) <= count
    assert [f.cost for f in found] == sorted(search.price(point, f.schedule) for f in found)
    try:
        other = search.complete(best.spec, _random(point, target, data))
    except ScheduleError as error:
        assert "no implementation fits" in str(error)
        return
    if form_of(other.schedule) in forms:
        assert found[forms.index(form_of(other.schedule))].cost <= other.cost
    else:
        assert len(found) == count and found[-1].cost <= other.cost


def _random(point: Point, target, data) -> Node:  # type: ignore[no-untyped-def]
    """A schedule of the declared space."""

    def loop(at: Point, step: Loop, inside) -> Loop:  # type: ignore[no-untyped-def]
        body, rest = at.tiled(step)
        return replace(step, body=inside(body), rest=inside(rest) if rest else None)

    def start(at: Point) -> Node:
        b, m = at.dims
        if at.threads > 1 and data.draw(st.booleans()):
            if b > 1 and data.draw(st.booleans()):
                return loop(at, Loop("b", 1, Hole(), threads=-1), rows)
            if m > 1:
                return loop(at, Loop("m", data.draw(st.sampled_from(scale(m))), Hole(), threads=-1), batches)
        return batches(replace(at, threads=1))

    def batches(at: Point) -> Node:
        return loop(at, Loop("b", 1, Hole()), rows) if at.dims[0] > 1 else rows(at)

    def rows(at: Point) -> Node:
        for stage, each in enumerate(at.spec.stages):
            if each.is_contraction and data.draw(st.booleans()):
                step = data.draw(st.sampled_from(at.forms(stage, target)))
                try:
                    below = at.pack(step, target)
                except ScheduleError:
                    continue
                return replace(step, body=tiles(below))
        if at.spec.mask is not None and data.draw(st.booleans()):
            return Skip(tiles(at.skip()))
        return tiles(at)

    def tiles(at: Point) -> Node:
        if at.dims[1] > 1 and data.draw(st.booleans()):
            return loop(at, Loop("m", data.draw(st.sampled_from(scale(at.dims[1]))), Hole()), stages)
        return stages(at)

    def stages(at: Point) -> Node:
        homes = data.draw(st.sampled_from([h for h in at.homes() if at.l2_left(h) >= 0]))
        return Stages(homes, ())

    return start(point)


def test_the_same_every_time() -> None:
    chain = attention(2, 7, 4, 8, 4, "parallel 2")
    texts = {to_text(ChainSearch(Search(SMALL)).solve(chain).schedule) for _ in range(2)}
    assert len(texts) == 1


def test_nothing_to_search() -> None:
    with pytest.raises(SpecError, match="a size is 0"):
        ChainSearch(Search(SMALL)).solve(products(1, 0, 2, 3, 4))


def test_what_is_kept_while_a_chain_is_searched_is_let_go() -> None:
    search, goal = ChainSearch(Search(SMALL)), products(1, 8, 4, 8, 4)
    search.solve(goal)
    assert not search._stages_of
    assert search.complete(goal, parse("tile m by 4:\n    ?")).source == "manual" and not search._stages_of
