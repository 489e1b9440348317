"""The steps of schedules of nests: text, legality, what they leave, the plans of leaves."""

import numpy as np
import pytest
from nest_support import columns, depthwise, layernorm, run, softmax, want

from morello_mlir.errors import ScheduleError
from morello_mlir.nests import NestSpec
from morello_mlir.nests.actions import check_tree, goal
from morello_mlir.nests.plan import goals, rows_plan
from morello_mlir.nests.search import default
from morello_mlir.search.schedule import has_hole, parse, to_text
from morello_mlir.targets import get_target

AVX2 = get_target("avx2")

EVERYTHING = """parallel tile d0 by 16:
    reciprocal
    rows vector d1 pipeline 1:
        pass m unroll d1 by 2
        pass s store e to y unroll d1 by 2
        pass y unroll d1 by 2 streaming
rest:
    stage m, s:
        partial d1 by 100:
            rows vector d1 by 4 tile d0 by 3 tile d2 by 4:
                pass m, s online by 1024 store e to scratch
        rest:
            ?
        combine:
            serial
            ?
    then:
        rows vector d1:
            pass y
            ?"""


def test_text_round_trip():
    tree = parse(EVERYTHING)
    assert to_text(tree) == EVERYTHING
    assert has_hole(tree)
    assert not has_hole(parse("rows vector d0:\n    pass y"))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("rows vector d0:", "an indented pass"),
        ("rows vector d0:\n    kernel foo", "rows have passes"),
        ("rows vector d0:\n    ?\n    pass y", "rows have passes"),
        ("rows vector d0 by 0:\n    pass y", "must be positive"),
        ("rows vector d0 frob d1:\n    pass y", "cannot read 'frob d1'"),
        ("rows vector d0:\n    pass y unroll d1 by 0", "must be positive"),
        ("rows vector d0:\n    pass y store e", "cannot read 'store e'"),
        ("rows vector d0:\n    pass y\n      pass z", "unexpected indentation"),
        ("stage m:\n    ?", "a 'then:' must follow"),
        ("partial d1 by 3:\n    ?\nrest:\n    ?", "a 'combine:' must follow"),
        ("reciprocal", "the block ends"),
        ("pass y", "unknown step"),
    ],
)
def test_bad_text(text, why):
    with pytest.raises(ScheduleError, match=why):
        parse(text)


SOFTMAX_PASSES = "    pass m\n    pass s store e to y\n    pass y"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("rows vector d2:\n" + SOFTMAX_PASSES, "there is no dim 'd2'"),
        ("rows vector d1 by 2:\n" + SOFTMAX_PASSES, "is a scan dim: passes unroll it"),
        ("rows vector d1 tile d1 by 2:\n" + SOFTMAX_PASSES, "not a parallel dim"),
        ("rows vector d1 tile d0 by 9:\n" + SOFTMAX_PASSES, "larger than d0=8"),
        ("rows vector d²:\n    ?", "there is no dim 'd²'"),
        ("rows vector d1 tile d00 by 4:\n    ?", "there is no dim 'd00'"),
        ("rows vector rhs:\n    ?", "there is no dim 'rhs'"),
        ("rows vector d1 by 2:\n    ?", "is a scan dim: passes unroll it"),
        ("rows vector d1 tile d9 by 4:\n    ?", "there is no dim 'd9'"),
        ("rows vector d1 tile d0 by 9:\n    ?", "larger than d0=8"),
        ("rows vector d1:\n    pass q\n    ?", "no value 'q'"),
        ("rows vector d1:\n    pass m\n    pass m\n    ?", "m is computed twice"),
        ("rows vector d1:\n    pass m\n    pass y", "y needs s, which no earlier pass computes"),
        ("rows vector d1:\n    pass m, s\n    pass y", "s needs m"),
        ("rows vector d1:\n    pass m", "no pass computes s, y"),
        ("rows vector d1:\n    pass m\n    pass m\n    pass y", "m is computed twice"),
        ("rows vector d1:\n    pass e\n    pass y", "'e' is neither a reduction nor an output"),
        ("rows vector d1:\n    pass q\n    pass y", "no value 'q'"),
        ("rows vector d1:\n    pass m store e to y\n    pass s\n    pass y", "is not computed in this pass"),
        ("rows vector d1:\n    pass m\n    pass s store e to z\n    pass y", "no output 'z'"),
        ("rows vector d1:\n    pass m\n    pass s store x0 to y\n    pass y", "needs no store"),
        ("rows vector d1:\n    pass m online\n    pass s\n    pass y", "online takes one maximum"),
        ("rows vector d1:\n    pass m, s online store e to y\n    pass y", "cannot be corrected later"),
        ("rows vector d1:\n    pass m\n    pass s unroll d0 by 2\n    pass y", "not a scan dim"),
        ("rows vector d1:\n    pass m\n    pass s unroll d1 by 999\n    pass y", "it has 250 steps"),
        ("rows vector d1:\n    pass m\n    pass s streaming\n    pass y", "streaming: there must be outputs"),
        ("rows vector d1 pipeline 4:\n" + SOFTMAX_PASSES, "there are 3 passes"),
        ("rows vector d0 pipeline 1:\n" + SOFTMAX_PASSES, "only rows whose vector dim is a scan dim"),
        ("rows vector d1 pipeline 1:\n" + SOFTMAX_PASSES + " unroll d1 by 2", "unroll alike"),
        ("rows vector d1 pipeline 1:\n    pass m, s online\n    pass y", "has a sweep of its own"),
        ("rows vector d1 tile d0 by 3 pipeline 1:\n" + SOFTMAX_PASSES, "must divide into groups"),
        ("tile d1 by 3:\n    ?", "d1 is a scan dim"),
        ("tile d0 by 8:\n    ?", "less than d0=8"),
        ("tile d0 by 3:\n    ?", "needs a 'rest:'"),
        ("tile d0 by 4:\n    ?\nrest:\n    ?", "there is no rest"),
        ("parallel tile d0 by 4:\n    ?", "the goal is serial"),
        ("serial\n?", "is serial already"),
        ("partial d1 by 100:\n    ?\ncombine:\n    ?", "stage its reductions first"),
        ("stage y:\n    ?\nthen:\n    ?", "need no stage"),
        ("stage x0:\n    ?\nthen:\n    ?", "need no stage"),
        ("kernel scalar", "not a step for nests"),
        ("split d1 by 4:\n    ?", "not a step for nests"),
    ],
)
def test_illegal_steps(text, why):
    with pytest.raises(ScheduleError, match=why):
        check_tree(softmax(8, 2000), parse(text), AVX2)


def test_names_the_step_and_the_goal():
    with pytest.raises(ScheduleError, match=r"^pass y: y needs s, .*, in Softmax\(\[8, 2000 scan\]"):
        check_tree(softmax(8, 2000), parse("rows vector d1:\n    pass m\n    pass y"), AVX2)


def plan_of(spec, text, target=AVX2):
    return rows_plan(spec, parse(text), target)


def test_plan_of_softmax():
    spec = softmax(8, 2000)
    names = spec.body.names
    plan = plan_of(spec, "rows vector d1 pipeline 1:\n" + SOFTMAX_PASSES)
    assert goals(spec) == ("m", "s", "y")
    assert plan.lanes == 8
    assert plan.sweeps == (((2, 2), (1, 1), (0, 0)),)
    loads = [[names[v] for v in p.loads] for p in plan.passes]
    assert loads == [["x0"], ["x0"], ["e"]]
    assert [names[v] for v in plan.passes[2].rows] == ["s"]
    assert plan.pipelined
    two = plan_of(spec, "rows vector d1 pipeline 2:\n" + SOFTMAX_PASSES)
    assert two.sweeps == (((2, 1), (0, 0)), ((1, 0),))


def test_plan_of_row_outputs():
    spec = NestSpec.parse(
        "Compose([4, 100 scan], (f32, GL, [100, 1]), (f32, GL, [1, 0]), (f32, GL, [1, 0]),"
        '"m = max(x0); y = add(x1, log(sum(exp(sub(x0, m)))))", serial)'
    )
    plan = plan_of(spec, "rows vector d1:\n    pass m, s online\n")
    (only,) = plan.passes
    assert only.writes_after == (0,)
    assert [spec.body.values[v].op for v in only.after] == ["log", "add"]
    assert [spec.body.values[v].op for v in plan.before] == ["input"]


def test_online_follows_the_algebra():
    """Sums of exp(x - max) times anything free of the maximum, as in attention."""
    text = 'Compose([4, 100 scan], (f32, GL, [100, 1]), (f32, GL, [0, 1]), (f32, GL, [1, 0]),"{}", serial)'
    for body in (
        "m = max(x0); y = sum(mul(exp(sub(x0, m)), x1))",
        "v = mul(x0, 2.0:f32); m = max(v); y = div(sum(mul(exp(sub(v, m)), x1)), sum(exp(sub(v, m))))",
        "m = maxnum(x0); y = sum(exp2(mul(sub(x0, m), 1.5:f32)))",
    ):
        spec = NestSpec.parse(text.format(body)) if "y = sum" not in body or "m = " in body else None
        passes = ", ".join(goals(spec))
        assert plan_of(spec, f"rows vector d1:\n    pass {passes} online").passes[0].maximum is not None
    for body in ("m = max(x0); y = sum(mul(x0, m))", "m = max(x0); y = sum(exp(mul(x0, m)))"):
        spec = NestSpec.parse(text.format(body))
        with pytest.raises(ScheduleError, match="is no sum of exp"):
            plan_of(spec, f"rows vector d1:\n    pass {', '.join(goals(spec))} online")


def test_aliases():
    text = 'Softmax([4, 8 scan], (f32, GL, [8, 1]), (f32, GL, [8, 1], is x0), "{}", serial)'
    spec = NestSpec.parse(text.format("m = max(x0); e = exp(sub(x0, m)); s = sum(e); y = div(e, s)"))
    plan_of(spec, "rows vector d1:\n" + SOFTMAX_PASSES)
    plan_of(spec, "rows vector d1:\n    pass m\n    pass s\n    pass y")
    text = 'Compose([4, 8 scan], (f32, GL, [8, 1]), (f32, GL, [8, 1], is x0), (f32, GL, [8, 1]), "{}", serial)'
    two = NestSpec.parse(text.format("s = sum(x0); y0 = div(x0, s); y1 = mul(x0, s)"))
    plan_of(two, "rows vector d1:\n    pass s\n    pass y1\n    pass y0")
    plan_of(two, "rows vector d1:\n    pass s\n    pass y0, y1")
    with pytest.raises(ScheduleError, match="x0 is read after output 0"):
        plan_of(two, "rows vector d1:\n    pass s\n    pass y0\n    pass y1")


TREES = [
    (softmax(6, 20), "tile d0 by 4:\n    rows vector d1:\n        ?\nrest:\n    ?"),
    (softmax(6, 20), "stage m, s:\n    ?\nthen:\n    ?"),
    (softmax(6, 20), "stage m:\n    ?\nthen:\n    stage e:\n        ?\n    then:\n        ?"),
    (softmax(6, 20), "reciprocal\n?"),
    (softmax(6, 20, "parallel 2"), "parallel tile d0 by 3:\n    reciprocal\n    ?"),
    (
        softmax(2, 20),
        "stage m, s:\n    partial d1 by 6:\n        tile d2 by 2:\n            ?\n        rest:\n            ?\n"
        "    rest:\n        ?\n    combine:\n        ?\nthen:\n    tile d1 by 5:\n        ?",
    ),
    (layernorm(5, 12), "stage v:\n    ?\nthen:\n    ?"),
    (layernorm(5, 12), "tile d0 by 2:\n    stage s0:\n        ?\n    then:\n        ?\nrest:\n    ?"),
    (columns(12, 9), "partial d1 by 4:\n    ?\ncombine:\n    ?"),
    (
        columns(13, 9),
        "tile d0 by 4:\n    partial d1 by 4:\n        ?\n    rest:\n        ?\n    combine:\n        ?\nrest:\n    ?",
    ),
    (depthwise(4, 5, 3), "tile d0 by 2:\n    tile d1 by 2:\n        ?\n    rest:\n        ?"),
    (depthwise(4, 5, 3), "partial d3 by 2:\n    ?\nrest:\n    ?\ncombine:\n    ?"),
]


@pytest.mark.parametrize(("spec", "text"), TREES)
def test_rewrites_compute_the_same(spec, text):
    node = parse(text)
    check_tree(spec, node, AVX2)
    full = fill(spec, node)
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=o.span(spec.dims)).astype("f4") for o in spec.inputs]
    for got, expected in zip(run(spec, full, AVX2, arrays), want(spec, arrays), strict=True):
        np.testing.assert_allclose(got, expected, rtol=2e-5, atol=1e-6)


def fill(spec, node):
    """`node` with its holes filled by default schedules."""
    from morello_mlir.nests.fill import fill as filled

    return filled(spec, node, AVX2, lambda s, _: default(s, AVX2))


def test_goal_says_where_operands_are():
    assert {o.memory for o in goal(softmax(2, 100), AVX2).operands} == {"L1"}
    assert {o.memory for o in goal(softmax(20, 1000), AVX2).operands} == {"L2"}
    assert not goal(softmax(200, 1000), AVX2).far
    assert goal(softmax(20000, 1000), AVX2).far
