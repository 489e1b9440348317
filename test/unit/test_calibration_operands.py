"""Operands made for a Spec: strides of the right class, and schedules that compute the right thing on them."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from morello_mlir.calibration.measure import measure_schedules
from morello_mlir.calibration.operands import expected, is_close, make_operands, memref_types, operand_strides
from morello_mlir.errors import CompileError, SpecError
from morello_mlir.spec import Layout, Spec, TensorSpec, matmul_spec, row_stride, stride_class
from morello_mlir.spec.spec import MAX_STRIDE_CLASS
from morello_mlir.targets import get_target
from morello_mlir.tuning.kbest import KBest


def spec_of(text: str) -> Spec:
    return Spec.parse(text)


@given(
    st.lists(st.integers(1, 40), min_size=4, max_size=4),
    st.sampled_from(["row_major", "col_major"]),
    st.none() | st.integers(2, 17).map(lambda x: 1 << x),
    st.booleans(),
)
def test_strides_have_the_class_and_no_elements_overlap(dims, layout, stride, unit):
    plain = TensorSpec("f32", "GL", Layout.row_major(3))
    lhs = TensorSpec("f32", "GL", Layout.parse(layout, ("b", "m", "k")), stride, unit)
    spec = Spec("Matmul", tuple(dims), (lhs, plain, plain))
    strides, shape = operand_strides(spec, 0), spec.operand_shape(0)
    inner = lhs.layout.innermost
    assert strides[inner] == (1 if unit else 2)
    rows = row_stride(lhs.layout, strides)
    assert rows >= shape[inner]
    if stride is not None:
        assert stride_class(4 * rows) == stride
    spots = {sum(i * s for i, s in zip(index, strides, strict=True)) for index in np.ndindex(shape)}
    assert len(spots) == np.prod(shape)


def test_the_longest_class_takes_any_multiple():
    spec = spec_of(f"Matmul([1, 2, 2, 2], (f32, GL, row_major, s{MAX_STRIDE_CLASS}), (f32, GL, row_major), "
                   "(f32, GL, row_major), serial)")  # fmt: skip
    assert operand_strides(spec, 0)[1] * 4 == MAX_STRIDE_CLASS


@pytest.mark.parametrize(
    "operand, message",
    [
        ("(f32, L2, row_major)", "only unpacked operands in GL"),
        ("(f32, GL, [b, m/4, k, m%4])", "only unpacked operands in GL"),
        ("(f32, GL, row_major, s2)", "no row stride of f32 elements has the class s2"),
    ],
)
def test_what_no_operand_can_be_made_for(operand, message):
    spec = spec_of(f"Matmul([1, 8, 8, 8], {operand}, (f32, GL, row_major), (f32, GL, row_major), serial)")
    with pytest.raises(SpecError, match=message):
        memref_types(spec)


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16", "i8", "u8", "i32"])
def test_outputs_are_compared_by_their_dtype(dtype):
    spec = matmul_spec(5, 7, 3, dtype=dtype, accumulate=True)
    lhs, rhs, out = (o.array for o in make_operands(spec))
    want = expected(spec, [lhs, rhs, out])
    got = want.astype(out.dtype)
    assert is_close(spec, got, want)
    got[0, 4, 2] += got.dtype.type(3)
    assert not is_close(spec, got, want)
    if got.dtype.kind not in "iu":
        got[0, 4, 2] = np.nan
        assert not is_close(spec, got, want)


SPECS = [
    "Matmul([2, 5, 7, 3], (f32, GL, row_major, s32), (f32, GL, col_major, s16), (f32, GL, row_major, s64), serial)",
    "MatmulAccum([3, 7, 1, 33], (f64, GL, col_major), (f64, GL, row_major, s4096), (f64, GL, row_major), serial)",
    "MatmulAccum([1, 1, 1, 1], (f32, GL, row_major), (f32, GL, row_major), (f32, GL, row_major), serial, far)",
    "Matmul([1, 9, 8, 24], (f32, GL, row_major), (f32, GL, row_major), (f32, GL, row_major), serial, [L2=10000])",
    "Matmul([1, 40, 9, 32], (f32, GL, row_major), (f32, GL, row_major), (f32, GL, row_major), parallel 2)",
]


@pytest.mark.parametrize("text", SPECS)
def test_schedules_are_right_on_these_operands(text):
    """`measure_schedules` checks what every schedule computes."""
    spec, target = spec_of(text).canonical(), get_target("host")
    found = [s.schedule for s in islice(KBest(spec, target), 3)]
    cycles = measure_schedules(spec, found[0], found[1:], target, rounds=1)
    assert len(cycles) == len(found) and min(cycles) > 0


def test_a_schedule_that_computes_something_else_is_found(monkeypatch):
    from morello_mlir.calibration import measure

    spec, target = matmul_spec(4, 4, 16), get_target("host")
    found = [s.schedule for s in islice(KBest(spec, target), 2)]
    another = replace(spec, function="MatmulAccum")
    monkeypatch.setattr(measure, "expected", lambda _, operands: expected(another, operands))
    with pytest.raises(CompileError, match="computes something else"):
        measure_schedules(spec, found[0], found[1:], target, rounds=1)
