"""Specs and integer coordinates: a bijection."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from search_support import with_limits
from small_target import SMALL

from morello_mlir.actions import OperandState, TableKey, key_of, scale
from morello_mlir.errors import SpecError
from morello_mlir.memo.coordinates import (
    coordinate,
    free_limits,
    key_text,
    memo_key,
    on_scale,
    parse_key,
    size_at,
    size_coordinate,
    spec_at,
    specs_at_a_point,
)
from morello_mlir.search.solve import Search
from morello_mlir.spec import Layout, Spec, TensorSpec, matmul_spec
from morello_mlir.targets import TARGETS

AVX2 = TARGETS["avx2"]
LAYOUTS = st.sampled_from([Layout.row_major(3), Layout.col_major(3), Layout.packed(3, 1, 4), Layout.packed(3, 2, 16)])
STATES = st.builds(
    OperandState,
    st.sampled_from(["GL", "L2", "L1"]),
    LAYOUTS,
    st.none() | st.integers(0, 17).map(lambda x: 1 << x),
    st.booleans(),
    dtype=st.sampled_from([None, "bf16", "u8"]),
)
KEYS = st.builds(
    TableKey,
    st.just("MatmulAccum"),
    st.sampled_from(["f32", "f64"]),
    st.tuples(STATES, STATES, STATES),
    st.sampled_from([1, 2, 16]),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["", "0123abcd"]),
)


@given(st.integers(1, 1 << 40))
def test_sizes_have_coordinates_and_back(size):
    assert size_at(size_coordinate(size)) == size
    assert on_scale(size) == (size_coordinate(size) >= 0)


@given(st.integers(-1000, 100))
def test_coordinates_have_sizes_and_back(at):
    if at >= 0 or not on_scale(-at):
        assert size_coordinate(size_at(at)) == at


def test_the_scale_is_numbered_in_order():
    assert [size_coordinate(s) for s in scale(5000)] == list(range(len(scale(5000))))
    with pytest.raises(ValueError, match="not positive"):
        size_coordinate(0)


@given(KEYS)
def test_keys_read_back(key):
    assert parse_key(key_text(key)) == key
    assert memo_key(memo_key(key, AVX2), AVX2) == memo_key(key, AVX2)


@given(KEYS, KEYS)
def test_different_keys_have_different_texts(key, other):
    assert (key_text(key) == key_text(other)) == (key == other)


@pytest.mark.parametrize("text", ["", "Matmul", "MatmulAccum; f32; GL row_major; serial", "Add; f32; GL row_major"])
def test_what_is_no_key_is_refused(text):
    with pytest.raises(SpecError, match="not a table key"):
        parse_key(text)


def _operand(memory, stride, layout=None, dtype="f32"):
    layout = layout or Layout.row_major(3)
    return TensorSpec(dtype, memory, layout, None if layout.is_packed else stride)


def _packed(packs, dims):
    """Layouts of lhs, rhs and output: those packed that are to be and whose block is no larger than its dim."""
    blocks = ((1, 4, 0), (2, 16, 2))
    for i, (axis, block, dim) in enumerate(blocks):
        yield Layout.packed(3, axis, block) if packs[i] and dims[dim] >= block else Layout.row_major(3)
    yield Layout.row_major(3)


SPECS = st.builds(
    lambda m, k, n, mems, strides, steps, far, packs, types: Spec(
        "MatmulAccum",
        (1, m, k, n),
        tuple(map(_operand, mems, strides, _packed(packs, (m, k, n)), types)),
        True,
        (("L1" if "L1" in mems else "L2", steps * AVX2.cache("L1" if "L1" in mems else "L2").step),),
        far,
    ).canonical(),
    st.integers(1, 70),
    st.integers(1, 70),
    st.integers(1, 70),
    st.sampled_from([("GL", "L2", "L2"), ("L2", "GL", "GL"), ("L1", "L2", "L2"), ("L2", "L2", "L1")]),
    st.tuples(*[st.none() | st.sampled_from([4, 32, 64, 256, 4096])] * 3),
    st.integers(0, 15),
    st.booleans(),
    st.tuples(st.booleans(), st.booleans()),
    st.sampled_from([("f32", "f32", "f32"), ("f64", "f64", "f64"), ("bf16", "bf16", "f32"), ("f32", "bf16", "f32")]),
)


@settings(max_examples=300)
@given(SPECS)
def test_specs_have_coordinates_and_back(spec):
    key, point = coordinate(spec, AVX2)
    there = spec_at(key, point, AVX2)
    assert coordinate(there, AVX2) == (key, point)
    # The canonical Spec of a coordinate is one fixed point.
    assert spec_at(*coordinate(there, AVX2), AVX2) == there
    assert there.dims == spec.dims and there.far == (spec.far and "GL" in key.memories)
    for a, b in zip(there.operands, spec.operands, strict=True):
        assert (a.memory, a.layout, a.dtype) == (b.memory, b.layout, b.dtype)


def test_specs_that_share_a_coordinate_cost_the_same():
    search = Search(SMALL)
    for memories in (("L1", "L2", "L2"), ("L2", "L2", "L1")):
        spec = with_limits(Spec("MatmulAccum", (1, 4, 6, 8), tuple(_operand(m, None) for m in memories)), L1=5)
        assert search.cost(spec) == search.cost(spec_at(*coordinate(spec, SMALL), SMALL))


def test_what_no_table_answers_has_no_coordinate():
    for spec in (matmul_spec(4, 4, 4), matmul_spec(4, 4, 4, b=2, accumulate=True)):
        assert coordinate(spec, AVX2) is None
    assert coordinate(with_limits(matmul_spec(4, 4, 4, accumulate=True), L1=64), AVX2) is None
    assert coordinate(matmul_spec(4, 4, 4, accumulate=True), AVX2) is not None


def test_limits_that_cannot_matter_are_free():
    key = key_of(matmul_spec(8, 8, 8, accumulate=True), AVX2)
    inner = replace(key, operands=tuple(replace(o, memory="L1") for o in key.operands))
    half = inner.with_operand(0, replace(inner.operands[0], memory="L2"))
    assert (free_limits(key, AVX2), free_limits(half, AVX2), free_limits(inner, AVX2)) == (1, 17, 289)


def test_how_many_specs_a_point_answers():
    """Counted one by one: far or not, every row stride class, every limit of L2 in whole steps."""
    spec = with_limits(Spec("MatmulAccum", (1, 4, 6, 8), tuple(_operand(m, 4) for m in ("L1", "L2", "L2"))), L1=4)
    at = coordinate(spec, SMALL)
    strides = [1 << x for x in range(2, 18)]
    found = {
        candidate
        for far in (False, True)
        for a in strides
        for b in strides
        for c in strides[:8]
        for step in range(5)
        if coordinate(
            candidate := with_limits(
                replace(
                    spec,
                    far=far,
                    operands=tuple(_operand(m, s) for m, s in zip(("L1", "L2", "L2"), (a, b, c), strict=True)),
                ),
                L1=4,
                L2=6 * step,
            ),
            SMALL,
        )
        == at
    }
    assert specs_at_a_point(at[0], SMALL) == 2 * len(found)
