"""Tables in nests: what they mean, how they are cut, and that their code reads what the reference does."""

# ruff: noqa: E501
from __future__ import annotations

import numpy as np
import pytest
from nest_support import run as simulate
from nest_support import want
from test_nest_lowering import compare, compiled, inputs_of, run

from morello_mlir.errors import SpecError
from morello_mlir.nests import NestSpec
from morello_mlir.nests.plan import lanes_of
from morello_mlir.nests.search import NestSearch
from morello_mlir.nests.tables import Axis, apart
from morello_mlir.search.schedule import parse
from morello_mlir.targets import TARGETS

ROWS = 30
SERIAL = "serial)"
BOTH = [TARGETS["avx2"], TARGETS["avx512"]]


def rows(count, width, dtype="f32", index="i64", body="y = gather(x1, x0)", stride=None):
    """Rows of a table, copied."""
    table = f"({dtype}, GL, [0, 1], axes [{stride or width}] of [{ROWS}])"
    return f'Map([{count}, {width}], ({index}, GL, [1, 0]), {table}, ({dtype}, GL, [{width}, 1]), "{body}", {SERIAL}'


def nest(text):
    return NestSpec.parse(text)


NORM = (
    f"Compose([9, 70 scan], (i64, GL, [1, 0]), (f32, GL, [0, 1], axes [70] of [{ROWS}]), (f32, GL, [70, 1]), (f32, GL, [70, 1]), "
    f'"v = add(gather(x1, x0), x2); a = div(sum(v), 70.0:f32); y = sub(v, a)", {SERIAL}'
)
BAG = (
    f"Reduce([9, 70, 33 scan], (i64, GL, [33, 0, 1]), (f32, GL, [0, 1, 0], axes [70] of [{ROWS}]), (f32, GL, [70, 1, 0]), "
    f'"y = sum(gather(x1, x0))", {SERIAL}'
)
EACH = f'Reduce([9, 33 scan], (i32, GL, [33, 1]), (f32, GL, [0, 0], axes [1] of [{ROWS}]), (f32, GL, [1, 0]), "y = sum(gather(x1, x0))", {SERIAL}'
TWO = f'Map([5, 37], (i64, GL, [1, 0]), (i32, GL, [0, 1]), (f32, GL, [0, 0], axes [40, 1] of [{ROWS}, 35]), (f32, GL, [37, 1]), "y = gather(x2, x0, x1)", {SERIAL}'
ACROSS = f'Map([5, 37], (i64, GL, [1, 0]), (f32, GL, [0, {ROWS}], axes [1] of [{ROWS}]), (f32, GL, [37, 1]), "y = gather(x1, x0)", {SERIAL}'
WRAP = rows(5, 37, body=f"y = gather(x1, select(cmp(slt, x0, 0:i64), add(x0, {ROWS}:i64), x0))")


def places_in(spec, arrays, low=0):
    """`arrays` with integers as places."""
    rng = np.random.default_rng(1)
    return [
        rng.integers(low, ROWS, len(a)).astype(a.dtype) if o.dtype in ("i32", "i64") and not o.axes else a
        for a, o in zip(arrays, spec.inputs, strict=True)
    ]


# ---------------------------------------------------------------- the goal


def test_text_and_canonical_form():
    spec = nest(rows(5, 7))
    assert nest(str(spec)) == spec and spec.function == "Map"
    assert [a.stride for a in spec.inputs[1].axes] == [7] and spec.inputs[1].span(spec.dims) == 7 * ROWS
    assert spec.varies[spec.body.outputs[0]] == {0, 1}
    # Indices of two dims are those of one.
    text = f'Map([4, 5, 7], (i64, GL, [5, 1, 0]), (f32, GL, [0, 0, 1], axes [7] of [{ROWS}]), (f32, GL, [35, 7, 1]), "y = gather(x1, x0)", {SERIAL}'
    assert nest(text).canonical() == nest(rows(20, 7)).canonical()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (rows(5, 7, body="y = gather(x1, x0, x0)"), "1 axes, and 2 places"),
        (rows(5, 7, body="y = x1"), "is a table"),
        (rows(5, 7, body="y = gather(x0, x1)"), "are i32 or i64"),
        (rows(5, 7, body="y = add(gather(x1, x0), gather(x1, add(x0, 1:i64)))"), "read at one place"),
        (rows(5, 7, body="y = gather(x1, 0.0:f32)"), "are i32 or i64"),
        (rows(5, 7, body="y = gather(x4, x0)"), "no input x4"),
        (rows(5, 7).replace("axes [7] of [30]", "axes [7] of [30, 2]"), "as many strides"),
        (rows(5, 7).replace("axes [7] of [30]", "axes [7] of [0]"), "a place or more"),
        (rows(5, 7).replace("(f32, GL, [7, 1])", "(f32, GL, [7, 1], axes [7] of [30])"), "an output is no table"),
        (rows(5, 7).replace("[0, 1], axes", "[7, 1], axes").replace("(f32, GL, [7, 1])", "(f32, GL, [7, 1], is x1)"), "output 0 is x1, a table"),
        (EACH.replace("Reduce", "Compose").replace("gather(x1, x0)", "gather(x1, max(x0))"), "depends on a reduction"),
    ],
)  # fmt: skip
def test_what_is_no_nest(text, why):
    with pytest.raises(SpecError, match=why):
        nest(text)


def test_the_reference_looks_where_it_reads():
    spec = nest(rows(5, 7))
    table = np.arange(7 * ROWS, dtype="f4")
    (got,) = spec.evaluate([np.array([3, 0, 29, 3, 7]), table])
    np.testing.assert_array_equal(got, table.reshape(ROWS, 7)[[3, 0, 29, 3, 7]])
    for beyond in (-1, ROWS):
        with pytest.raises(SpecError, match="none of its 30"):
            spec.evaluate([np.array([3, 0, beyond, 3, 7]), table])


def test_places_do_not_make_vectors_shorter():
    assert [lanes_of(nest(rows(5, 37, "bf16")), t) for t in BOTH] == [16, 32]
    assert lanes_of(nest(rows(5, 37, "f32", body="y = add(gather(x1, x0), cast(x0, f32))")), BOTH[1]) == 8


def test_rows_count_as_elsewhere():
    axes = (Axis(64, 1000),)
    strides = apart((0, 1), axes, (5, 64), frozenset({0}), 4)
    assert strides[1] == 1 and strides[0] > 64 and strides[0] * 4 % 4096
    # There are no more rows than the table has.
    assert apart((0, 1), (Axis(64, 2),), (5, 64), frozenset({0}), 4) == (0, 1)
    assert nest(rows(5, 64)).bytes == 5 * 8 + 2 * 5 * 64 * 4
    plain = nest('Map([4], (f32, GL, [1]), (f32, GL, [1]), "y = x0", serial)')
    assert plain.met is plain.operands


# ---------------------------------------------------------------- schedules


@pytest.mark.parametrize(
    ("text", "schedule"),
    [
        (rows(20, 7), "tile d0 by 6:\n    rows vector d1:\n        pass y\nrest:\n    rows vector d1:\n        pass y"),
        (rows(20, 7), "tile d1 by 4:\n    rows vector d1:\n        pass y\nrest:\n    rows vector d0:\n        pass y"),
        (BAG, "partial d2 by 10:\n    rows vector d1:\n        pass y\nrest:\n    rows vector d1:\n        pass y\ncombine:\n    ?"),
        (NORM, "stage s:\n    rows vector d1:\n        pass y\nthen:\n    ?"),
    ],
)  # fmt: skip
def test_steps_leave_tables_as_they_are(text, schedule):
    spec = nest(text)
    full = NestSearch(BOTH[0]).complete(spec, parse(schedule)).schedule
    arrays = places_in(spec, inputs_of(spec, np.random.default_rng(0)))
    for got, expected in zip(simulate(spec, full, BOTH[0], arrays), want(spec, arrays), strict=True):
        np.testing.assert_allclose(got, expected, rtol=3e-5, atol=1e-5)


def check(texts, target, special=False, low=0):
    """What the search finds computes what the reference does."""
    jobs = [NestSearch(target).solve(nest(t)) for t in texts]
    library = compiled([(j.spec, j.schedule) for j in jobs], target)
    for i, job in enumerate(jobs):
        inputs = places_in(job.spec, inputs_of(job.spec, np.random.default_rng(i), special), low)
        compare(job.spec, run(library, i, job.spec, inputs), inputs)


@pytest.mark.parametrize("target", BOTH, ids=lambda t: t.name)
@pytest.mark.parametrize("dtype", ["f64", "f32", "f16", "bf16", "i64", "i16", "i8", "i1"])
def test_rows_of_all_types(dtype, target):
    each = f'Map([37], (i64, GL, [1]), ({dtype}, GL, [0], axes [1] of [{ROWS}]), ({dtype}, GL, [1]), "y = gather(x1, x0)", {SERIAL}'
    check(
        [rows(5, 37, dtype), rows(5, 37, dtype, "i32", stride=40), rows(3, 1, dtype), rows(1, 64, dtype), each], target
    )


@pytest.mark.parametrize("target", BOTH, ids=lambda t: t.name)
def test_bodies_around_tables(target):
    check([NORM, BAG, EACH, TWO, ACROSS], target)
    check([WRAP], target, low=-ROWS)
    check([rows(5, 37, body="y = mul(gather(x1, x0), 2.0:f32)"), NORM], target, special=True)


@pytest.mark.parametrize("target", BOTH, ids=lambda t: t.name)
def test_schedules_by_hand(target):
    """Every vector dim, and groups of several rows."""
    cases = [
        (rows(11, 70), "rows vector d1 by 2 tile d0 by 3:\n    pass y"),
        (rows(11, 70), "rows vector d0 tile d1 by 4:\n    pass y"),
        (ACROSS, "rows vector d1 tile d0 by 4:\n    pass y"),
        (BAG, "rows vector d2 tile d1 by 2:\n    pass y unroll d2 by 2"),
        (BAG, "rows vector d0:\n    pass y"),
        (NORM, "rows vector d1 tile d0 by 3 pipeline 1:\n    pass s unroll d1 by 2\n    pass y unroll d1 by 2"),
        (NORM, "rows vector d0:\n    pass s store v to y\n    pass y"),
    ]
    jobs = [(s := nest(text), NestSearch(target).complete(s, parse(schedule)).schedule) for text, schedule in cases]
    library = compiled(jobs, target)
    for i, (spec, _) in enumerate(jobs):
        inputs = places_in(spec, inputs_of(spec, np.random.default_rng(i)))
        compare(spec, run(library, i, spec, inputs), inputs)
