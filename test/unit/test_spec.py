"""Specs and layouts: text, offsets, canonical forms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from morello_mlir.errors import SpecError
from morello_mlir.spec import (
    FUNCTIONS,
    Layout,
    Spec,
    TensorSpec,
    dense_strides,
    is_dense,
    matmul_spec,
    stride_class,
)

NAMES = ("b", "m", "k")


@st.composite
def layouts(draw):
    order = draw(st.permutations(range(3)))
    if draw(st.booleans()):
        return Layout.permutation(order)
    return Layout.packed(3, draw(st.sampled_from((1, 2))), draw(st.integers(1, 9)))


@given(layouts())
def test_layout_text_round_trip(layout):
    assert Layout.parse(layout.text(NAMES), NAMES) == layout


@given(layouts(), st.tuples(*[st.integers(1, 5)] * 3))
def test_layout_offsets_are_distinct_and_inside(layout, shape):
    offsets = [layout.offset(index, shape) for index in np.ndindex(*shape)]
    assert len(set(offsets)) == len(offsets)
    assert max(offsets) < layout.volume(shape)


@given(st.permutations(range(3)), st.tuples(*[st.integers(1, 5)] * 3))
def test_permuted_layout_is_numpys_transposition(order, shape):
    layout = Layout.permutation(order)
    place = np.arange(np.prod(shape)).reshape([shape[d] for d in order]).transpose(np.argsort(order))
    assert all(layout.offset(i, shape) == place[i] for i in np.ndindex(*shape))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("diagonal", "expected row_major"),
        ("[b, m]", "2 dimensions, expected 3|0\\.\\."),
        ("[b, m, m]", "occur once"),
        ("[b, m, q]", "unknown dimension 'q'"),
        ("[b, m/4, k]", "must occur as m/p"),
        ("[b, m%4, k, m/4]", "must occur as m/p"),
        ("[b, m/4, k, m%8]", "occur once"),
        ("[b, m/0, k, m%0]", "not positive"),
        ("[b, m//4, k]", "cannot read"),
        ("[b, m/9999999999999999999, k, m%9999999999999999999]", "cannot read"),
    ],
)
def test_bad_layouts_are_refused(text, why):
    with pytest.raises(SpecError, match=why):
        Layout.parse(text, NAMES)


def test_the_text_form_of_the_design():
    text = "Matmul([1, 512, 512, 512], (f32, GL, row_major), (f32, GL, row_major), (f32, GL, row_major), serial)"
    assert str(matmul_spec(512, 512, 512)) == text
    assert Spec.parse(text) == matmul_spec(512, 512, 512)


@st.composite
def specs(draw):
    f = draw(st.sampled_from(sorted(FUNCTIONS)))
    ops = []
    for _, names in FUNCTIONS[f].operands:
        packed = st.integers(1, 8).map(lambda w: Layout.packed(3, 2, w))
        lay = draw(st.one_of(st.permutations(range(3)).map(Layout.permutation), packed))
        stride = draw(st.sampled_from((None, 4, 2048, 1 << 17))) if not lay.is_packed else None
        memory = draw(st.sampled_from(("GL", "L2", "L1", "VRF")))
        const = memory == "GL" and len(ops) < 2 and draw(st.booleans())
        ops.append(TensorSpec(draw(st.sampled_from(("f32", "f64"))), memory, lay, stride, draw(st.booleans()), const))
        assert len(names) == 3
    dims = draw(st.tuples(*[st.integers(0, 4096)] * 4))
    limits = draw(st.dictionaries(st.sampled_from(("VRF", "L1", "L2")), st.integers(0, 999)))
    return Spec(f, dims, tuple(ops), draw(st.booleans()), tuple(limits.items()), draw(st.booleans()))


@given(specs())
def test_spec_text_round_trip(spec):
    assert Spec.parse(str(spec)) == spec
    assert spec.canonical().canonical() == spec.canonical()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Matmul", "cannot read the Spec"),
        ("Conv([1])", "unknown function 'Conv'"),
        ("Matmul([1, 2, 3, 4], serial)", "takes \\[sizes\\]"),
        ("Matmul([1, 2, 3], (f32, GL, row_major), (f32, GL, row_major), (f32, GL, row_major), serial)", "has 4 dims"),
        ("Matmul([1, x, 3, 4], (f32, GL, row_major), (f32, GL, row_major), (f32, GL, row_major), serial)", "the sizes"),
        (
            "Matmul([1 2, 3, 4, 5], (f32, GL, row_major), (f32, GL, row_major), (f32, GL, row_major), serial)",
            "the sizes",
        ),
        ("Matmul([], (f32, GL, row_major), (f32, GL, row_major), (f32, GL, row_major), serial)", "the sizes"),
        ("Matmul([1, 2, 3, 4], (f99, GL, row_major), (f32, GL, row_major), (f32, GL, row_major), serial)", "dtype"),
        ("Matmul([1, 2, 3, 4], (f32, L9, row_major), (f32, GL, row_major), (f32, GL, row_major), serial)", "memory"),
        ("Matmul([1, 2, 3, 4], (f32, GL), (f32, GL, row_major), (f32, GL, row_major), serial)", "tensor spec"),
        ("Matmul([1, 2, 3, 4], (f32, GL, row_major, s3), (f32, GL, row_major), (f32, GL, row_major), serial)", "power"),
        ("Matmul([1, 2, 3, 4], (f32, GL, row_major), (f32, GL, row_major), (f32, GL, row_major), fast)", "serial or"),
        (
            "Matmul([1, 2, 3, 4], (f32, GL, row_major), (f32, GL, row_major), (f32, GL, row_major), serial, [X])",
            "limits",
        ),
        (
            "Matmul([1, 2, 3, 4], (f32, GL, row_major), (f32, GL, row_major), (f32, GL, row_major), serial, [])",
            "limits",
        ),
        (
            "Matmul([1, 2, 3, 4], (f32, L2, row_major), (f32, L2, row_major), (f32, L2, row_major),serial,[L1=1,L1=2])",
            "two limits of one memory",
        ),
        (
            "Matmul([1, 2, 3, 4], (f32, GL, row_major), (f32, GL, row_major), (f32, GL, row_major), serial, [GL=1])",
            "limit",
        ),
        ("Matmul([1, 2, 3, 4], (f32, GL, row_major), (f32, GL, row_major), (f32, GL, row_major, serial)", "unbalanced"),
        (
            "Matmul([1, 2, 3, 4], (f32, GL, row_major), (f32, L2, row_major, const), (f32, GL, row_major), serial)",
            "a constant operand is in GL, not L2",
        ),
        (
            "Matmul([1, 2, 3, 4], (f32, GL, row_major), (f32, GL, row_major), (f32, GL, row_major, const), serial)",
            "out is written, so that it cannot be constant",
        ),
    ],
)
def test_bad_specs_are_refused(text, why):
    with pytest.raises(SpecError, match=why):
        Spec.parse(text)


def test_canonical_drops_the_class_of_its_own_row_length():
    base = "Matmul([1, 8, 512, 16], (f32, GL, row_major{}), (f32, GL, row_major), (f32, GL, row_major), serial)"
    assert Spec.parse(base.format(", s2048")).canonical() == Spec.parse(base.format(""))
    assert Spec.parse(base.format(", s4096")).canonical() != Spec.parse(base.format(""))


def test_stride_class_is_the_power_of_two():
    assert [stride_class(x) for x in (4, 12, 4096, 2000, 3 << 20)] == [4, 4, 4096, 16, 1 << 17]


@given(st.lists(st.integers(1, 6), min_size=1, max_size=4))
def test_dense_strides(sizes):
    assert is_dense(sizes, dense_strides(sizes))
    assert not is_dense([2, 2], [3, 1])
