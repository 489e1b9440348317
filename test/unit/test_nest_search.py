"""The search for nests: it finds the cheapest of the declared space, prices what it finds, and fills holes."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from nest_support import columns, depthwise, layernorm, run, softmax, want

from morello_mlir.errors import ScheduleError, SpecError
from morello_mlir.nests import NestSpec
from morello_mlir.nests.actions import check_tree, rewritten
from morello_mlir.nests.cost import RowsModel
from morello_mlir.nests.leaf import LeafSearch
from morello_mlir.nests.plan import lanes_of, rows_plan
from morello_mlir.nests.search import NestSearch
from morello_mlir.nests.space import Structures, layouts, unrolls
from morello_mlir.report import explained
from morello_mlir.search.nest_steps import Pass, Rows
from morello_mlir.search.schedule import children, has_hole, parse, to_text, walk
from morello_mlir.targets import get_target

AVX2, AVX512 = get_target("avx2"), get_target("avx512")


def nest(text, threading="serial"):
    return NestSpec.parse(text.replace("serial", threading))


SHARE = 'Compose([3, 20 scan], (f32, GL, [20, 1]), (f32, GL, [20, 1]), "y = div(x0, sum(x0))", serial)'
TRANSPOSE = 'Map([64, 48], (f32, GL, [1, 64]), (f32, GL, [48, 1]), "y = x0", serial)'
ARGMAX = 'Reduce([5, 33 scan], (f32, GL, [33, 1]), (i64, GL, [1, 0]), "y = argmax(x0, index(1, i64))", serial)'
GATHER = (
    "Map([20, 70], (i64, GL, [1, 0]), (f32, GL, [0, 1], axes [70] of [30]), (f32, GL, [70, 1]), "
    '"y = gather(x1, x0)", serial)'
)
NESTS = [
    softmax(8, 2048),
    softmax(37, 1000, "parallel 3"),
    softmax(1, 65536, "parallel 2"),
    layernorm(16, 768),
    columns(100, 64),
    columns(100, 1, "parallel 4"),
    depthwise(8, 9, 20),
    nest(SHARE),
    nest(TRANSPOSE),
    nest(TRANSPOSE, "parallel 2"),
    nest(ARGMAX),
    nest('Map([1], (f32, GL, [1]), (f32, GL, [1]), "y = exp(x0)", serial)'),
    nest('Map([7], (i32, GL, [1]), "y = index(0, i32)", parallel)'),
    nest(GATHER),
    nest(GATHER, "parallel 2"),
    nest('Map([7], (bf16, GL, [2]), (f64, GL, [3]), "y = cast(x0, f64)", serial)'),
]


@pytest.mark.parametrize("spec", NESTS, ids=lambda s: f"{s.function}-{'x'.join(map(str, s.dims))}-{s.threading}")
@pytest.mark.parametrize("target", [AVX2, AVX512], ids=lambda t: t.name)
def test_finds_a_legal_schedule_and_its_price(spec, target):
    found = NestSearch(target).solve(spec)
    assert not has_hole(found.schedule)
    check_tree(found.spec, found.schedule, target)
    assert NestSearch(target).price(found.spec, found.schedule) == found.cost > 0
    assert parse(to_text(found.schedule)) == found.schedule
    again = NestSearch(target).complete(found.spec, found.schedule)
    assert (again.schedule, again.cost, again.source) == (found.schedule, found.cost, "manual")
    assert NestSearch(target).solve(spec).schedule == found.schedule


@pytest.mark.parametrize("spec", NESTS[:9], ids=lambda s: f"{s.function}-{'x'.join(map(str, s.dims))}-{s.threading}")
def test_what_it_finds_computes_the_same(spec):
    if np.prod(spec.dims) > 40000:
        pytest.skip("long in Python")
    found = NestSearch(AVX2).solve(spec)
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=o.span(found.spec.dims)).astype("f4") for o in found.spec.inputs]
    for got, expected in zip(run(found.spec, found.schedule, AVX2, arrays), want(found.spec, arrays), strict=True):
        np.testing.assert_allclose(got, expected, rtol=3e-5, atol=1e-6)


def every_rows(spec, target):
    """All `rows` of the declared space, found without the search: every choice of everything."""
    lanes = lanes_of(spec, target)
    for structure in Structures(spec, target).plans():
        steps = [p.step for p in structure.passes]
        for vector, vectors, tile in layouts(spec, target):
            tiles = tuple((f"d{d}", n) for d, n in enumerate(tile) if n > 1)
            for choice in product(unrolls(spec, vector, lanes), repeat=len(steps)):
                for past in product((False, True), repeat=len(steps)):
                    passes = [replace(p, unroll=u, streaming=s) for p, u, s in zip(steps, choice, past, strict=True)]
                    for pipeline in range(len(steps)):
                        yield Rows(f"d{vector}", vectors, tiles, pipeline, tuple(passes))


@pytest.mark.parametrize(
    ("spec", "target"),
    [
        (nest(SHARE), AVX2),
        (nest(SHARE.replace("3,", "8,")), AVX512),
        (softmax(2, 20), AVX512),
        (columns(6, 40), AVX2),
        (depthwise(2, 3, 8, 2), AVX2),
        (nest(TRANSPOSE), AVX512),
        (nest(GATHER), AVX512),
    ],
    ids=lambda x: getattr(x, "name", ""),
)
def test_rows_are_the_cheapest_of_all(spec, target):
    model = RowsModel(spec, target)
    costs = []
    for node in every_rows(spec, target):
        try:
            costs.append(model.cost(rows_plan(spec, node, target)))
        except ScheduleError:
            continue
    found = LeafSearch(spec, target).best()
    assert found is not None
    assert found[0] == min(costs)
    assert len(costs) > 10


@pytest.mark.parametrize(
    "spec", [nest(SHARE, "parallel 2"), columns(12, 8, "parallel 4"), columns(12, 1, "parallel 2")]
)
def test_trees_are_the_cheapest_of_all(spec):
    """Against a recursion of its own, without a memo."""
    search = NestSearch(AVX2)
    goal = search.goal(spec.canonical())

    def least(s, cut):
        costs = [LeafSearch(s, AVX2).best()[0]] if s.serial else []
        for step in search.steps(s, cut):
            try:
                below = rewritten(s, step, AVX2).children
            except ScheduleError:
                continue
            inside = cut | {-1} if step.label().startswith("partial") else cut
            costs.append(search.total(s, step, below, [least(c.spec, inside) for c in below]))
        return min(costs)

    assert search.solve(spec).cost == least(goal, frozenset())


def test_fills_holes():
    spec = softmax(8, 2048)
    whole = NestSearch(AVX2).solve(spec)
    for text in ("?", "reciprocal\n?", "rows vector d1:\n    ?", "rows vector d1:\n    pass m unroll d1 by 2\n    ?"):
        found = NestSearch(AVX2).complete(whole.spec, parse(text))
        assert not has_hole(found.schedule)
        assert found.cost >= whole.cost
        if "pass m" in text:
            (rows,) = [n for n in walk(found.schedule) if isinstance(n, Rows)]
            assert rows.passes[0] == Pass(("m",), (), (("d1", 2),))
    with pytest.raises(ScheduleError, match="nothing fills rows vector d1"):
        NestSearch(AVX2).complete(spec, parse("rows vector d1 pipeline 7:\n    ?"))


def test_nothing_to_search():
    with pytest.raises(SpecError, match="a size is 0"):
        NestSearch(AVX2).solve(softmax(0, 8))


def test_threads_share_what_pays():
    few = NestSearch(AVX2).solve(softmax(4, 64, "parallel 2"))
    assert to_text(few.schedule).splitlines()[1 if "reciprocal" in to_text(few.schedule) else 0] == "serial"
    many = to_text(NestSearch(AVX2).solve(softmax(512, 4096, "parallel 2")).schedule)
    assert "parallel tile d0 by" in many
    one = to_text(NestSearch(AVX512).solve(softmax(1, 1 << 22, "parallel 2")).schedule)
    assert "stage m, s:" in one
    assert "partial d0 by" in one
    assert "combine:" in one


@pytest.mark.parametrize("target", [AVX2, AVX512], ids=lambda t: t.name)
def test_windows_are_straight_code(target):
    """A window of a few pixels is no loop, and what it needs at once fits the registers."""
    found = NestSearch(target).solve(depthwise(28, 28, 96))
    (rows, *_) = [n for n in walk(found.schedule) if isinstance(n, Rows)]
    assert rows_plan(found.spec, replace(rows), target).is_straight
    model = RowsModel(found.spec, target)
    loop = replace(rows, passes=(replace(rows.passes[0], unroll=(("d4", 3),)),))
    assert model.cost(rows_plan(found.spec, rows, target)) < model.cost(rows_plan(found.spec, loop, target))


def test_steps_are_never_below_themselves():
    """Every leaf has what it needs: no step but a hole is without children."""
    found = NestSearch(AVX512).solve(softmax(1, 1 << 22, "parallel 2"))
    assert all(isinstance(n, Rows) or children(n) for n in walk(found.schedule))


@pytest.mark.parametrize("spec", NESTS[:4], ids=lambda s: f"{s.function}-{'x'.join(map(str, s.dims))}-{s.threading}")
def test_explains_what_it_finds(spec):
    found = NestSearch(AVX512).solve(spec)
    text = explained(found.spec, found.schedule, AVX512).text(least=0)
    goal, summary, *_ = text.splitlines()
    assert goal == str(found.spec)
    assert summary == f"target avx512: {found.cycles:,.0f} cycles predicted"
    assert parse(text.partition("\n\n")[2]) == found.schedule
