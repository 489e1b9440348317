"""The planning of loops: pure arithmetic, checked against enumeration."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from morello_mlir.lifting.loops import Loop, merge_loops
from morello_mlir.lifting.plan import make_plan, physical_order
from morello_mlir.lifting.views import View, box_in, boxes_disjoint

M, K, N = 6, 5, 4
F32 = ("f32",) * 3


def _matmul(lhs: tuple[int, int] = (K, 1), rhs: tuple[int, int] = (N, 1), out: tuple[int, int] = (N, 1)) -> list[Loop]:
    """The loops of an M x K by K x N product with the given strides."""
    return [
        Loop("m", M, (lhs[0], None, out[0])),
        Loop("k", K, (lhs[1], rhs[0], None)),
        Loop("n", N, (None, rhs[1], out[1])),
    ]


def test_plain_matmul() -> None:
    plan = make_plan(_matmul(), F32, accumulate=False)
    assert str(plan.spec) == (
        "Matmul([1, 6, 5, 4], (f32, GL, row_major), (f32, GL, row_major), (f32, GL, row_major), serial)"
    )
    assert [o.source for o in plan.operands] == [0, 1, 2]
    assert plan.outer == ()


def test_output_column_major_swaps_the_inputs() -> None:
    plan = make_plan(_matmul(out=(1, M)), F32, accumulate=True)
    assert plan.spec.dims == (1, N, K, M)
    assert [o.source for o in plan.operands] == [1, 0, 2]
    assert [o.layout.text() for o in plan.spec.operands] == ["col_major", "col_major", "row_major"]


def test_equal_specs_whatever_the_stride_of_a_dim_of_one() -> None:
    plain = make_plan(_matmul(), F32, accumulate=False)
    padded = make_plan([Loop("b", 1, (1000, 7, 3)), *_matmul()], F32, accumulate=False)
    assert plain == padded


def test_reduction_around_the_spec_keeps_the_fill() -> None:
    plan = make_plan([*_matmul(), Loop("k", 3, (1000, 2000, None))], F32, accumulate=False)
    assert plan.keeps_fill and plan.spec.function == "MatmulAccum"
    assert [(o.size, o.strides, o.reduction) for o in plan.outer] == [(3, (1000, 2000, 0), True)]


def test_reductions_are_innermost_of_the_outer_loops() -> None:
    loops = [Loop("k", 3, (1000, 2000, None)), Loop("b", 2, (2, 2, 2)), *_matmul((20, 4), (20, 4), (20, 4))]
    assert [o.reduction for o in make_plan(loops, F32, accumulate=True).outer] == [False, True]


def test_gaps_and_row_strides_are_in_the_spec() -> None:
    plan = make_plan(_matmul(lhs=(16, 2), rhs=(32, 1)), F32, accumulate=False)
    assert [o.text() for o in plan.spec.operands] == [
        "(f32, GL, row_major, s64, gapped)",
        "(f32, GL, row_major, s128)",
        "(f32, GL, row_major)",
    ]


def test_merging_needs_one_order_in_every_operand() -> None:
    together = [Loop("m", 2, (12, None, 12)), Loop("m", 3, (4, None, 4))]
    apart = [Loop("m", 2, (12, None, 4)), Loop("m", 3, (4, None, 8))]
    assert merge_loops(together) == [Loop("m", 6, (4, None, 4))]
    assert merge_loops(apart) == apart


def test_longest_runs_stay_in_the_spec() -> None:
    long = Loop("m", 64, (10000, None, 10000))
    run = Loop("m", 16, (1, None, 100))
    plan = make_plan([long, run, Loop("k", 8, (16, 4, None)), Loop("n", 4, (None, 1, 1))], F32, accumulate=False)
    assert plan.spec.size("m") == 16 and plan.spec.size("b") == 64


@given(st.lists(st.one_of(st.none(), st.integers(0, 5)), min_size=3, max_size=3))
def test_physical_order_falls_and_prefers_row_major(strides: list[int | None]) -> None:
    order = physical_order(strides)
    live = [strides[d] or 99 for d in order if strides[d] is not None]
    assert live == sorted(live, reverse=True)
    if len(set(live)) <= 1:
        assert order == (0, 1, 2)


def _elements(view: View) -> set[int]:
    indices = itertools.product(*(range(n) for n in view.sizes))
    return {(view.offset or 0) + sum(i * s for i, s in zip(index, view.strides, strict=True)) for index in indices}


@st.composite
def views(draw: st.DrawFn, size: int) -> View:
    """Views of a dense buffer of `size` elements."""
    sizes = tuple(draw(st.lists(st.integers(1, 3), min_size=0, max_size=2)))
    strides = tuple(draw(st.integers(0, 9)) for _ in sizes)
    span = View("f32", sizes, strides, 0).span
    return View("f32", sizes, strides, draw(st.integers(0, max(0, size - span))))


@settings(max_examples=500, deadline=None)
@given(views(24), views(24), st.sampled_from([(24,), (4, 6), (6, 4), (2, 3, 4), (1, 24), (3, 1, 8)]))
def test_disjoint_boxes_share_no_element(a: View, b: View, shape: tuple[int, ...]) -> None:
    box_a, box_b = box_in(a, shape), box_in(b, shape)
    if box_a is not None and box_b is not None and boxes_disjoint(box_a, box_b):
        assert not _elements(a) & _elements(b)


@given(views(24))
def test_injective_views_have_as_many_places_as_elements(view: View) -> None:
    if view.injective:
        assert len(_elements(view)) == len(list(itertools.product(*(range(n) for n in view.sizes))))


def test_a_single_column_lies_along_k() -> None:
    dot = [Loop("k", 100, (1, 1, None))]
    spec = make_plan(dot, F32, accumulate=False).spec
    assert spec.dims == (1, 1, 100, 1)
    assert [o.layout.text() for o in spec.operands] == ["row_major", "col_major", "row_major"]
    gapped = make_plan([Loop("k", 100, (1, 7, None))], F32, accumulate=False).spec
    assert [o.unit for o in gapped.operands] == [True, False, True]
    # With a column of the output that is not contiguous, the problem is not transposed and has one column, too.
    rows = [Loop("m", 6, (100, None, 3)), Loop("k", 100, (1, 1, None))]
    assert [o.layout.text() for o in make_plan(rows, F32, accumulate=False).spec.operands][1] == "col_major"
    batched = make_plan([Loop("b", 5, (100, 100, 1)), *dot], F32, accumulate=False).spec
    assert batched.operands[1].layout.text() == "col_major" and batched.operands[1].unit
