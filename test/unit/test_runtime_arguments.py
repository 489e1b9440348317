"""Marshalling: what callers pass becomes memory the program can use, and comes back."""

import sys

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from morello_mlir.errors import InputError
from morello_mlir.runtime.arguments import (
    allocate,
    array_slots,
    as_array,
    check_array,
    contiguous_strides,
    has_layout,
    memory_for,
    scalar_slots,
)
from morello_mlir.runtime.elements import element_of
from morello_mlir.runtime.objects import DATA_OFFSET, data_address
from morello_mlir.runtime.signature import Parameter, row_major_strides

F32 = element_of("f32")


def tensor(shape, element=F32):
    return Parameter(element, shape, row_major_strides(shape), row_major=True)


def memref(shape, strides, offset=0, written=True, element=F32):
    return Parameter(element, shape, strides, offset, memref=True, written=written)


@pytest.mark.parametrize(
    ("mlir", "accepted", "refused"),
    [
        ("f32", [np.float32], [np.float64, np.int32, np.float16]),
        ("f64", [np.float64], [np.float32]),
        ("f16", [np.float16], [np.uint16, np.float32]),
        ("bf16", [ml_dtypes.bfloat16, np.uint16], [np.float16, np.int16]),
        ("i1", [np.bool_, np.uint8], [np.int8]),
        ("i8", [np.int8, np.uint8], [np.int16, np.bool_]),
        ("ui8", [np.int8, np.uint8], [np.int16]),
        ("i32", [np.int32, np.uint32], [np.int64, np.float32]),
        ("index", [np.int64, np.uint64], [np.int32]),
        ("complex<f32>", [np.complex64], [np.complex128, np.float32]),
    ],
)
def test_dtypes(mlir, accepted, refused):
    parameter = tensor((2, 3), element_of(mlir))
    for dtype in accepted:
        check_array(np.zeros((2, 3), dtype), parameter, "x")
    for dtype in refused:
        with pytest.raises(InputError, match=r"x: expected dtype .* got"):
            check_array(np.zeros((2, 3), dtype), parameter, "x")


@pytest.mark.parametrize("mlir", ["vector<4xf32>", "memref<f32>", "i65", "i0", "!foo.bar", "tf32"])
def test_types_that_arrays_cannot_hold(mlir):
    assert element_of(mlir) is None


def test_shape_errors_name_both_shapes():
    with pytest.raises(InputError, match=r"argument 1: expected shape 2x\?x4, got 2x3x5"):
        check_array(np.zeros((2, 3, 5), np.float32), tensor((2, None, 4)), "argument 1")
    with pytest.raises(InputError, match=r"got \(\) \(rank 0\)"):
        check_array(np.zeros((), np.float32), tensor((1,)), "x")


def test_contiguous_arrays_are_not_copied():
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert memory_for(array, tensor((2, 3)), "x").view is array


def test_views_are_copied_for_tensors_and_not_written_back():
    array = np.arange(12, dtype=np.float32).reshape(3, 4)[:, ::2]
    memory = memory_for(array, tensor((3, 2)), "x")
    assert memory.view.flags.c_contiguous
    memory.view[...] = -1
    memory.write_back()
    assert array[0, 1] == 2


def test_memrefs_are_written_back():
    array = np.zeros((3, 4), np.float32)[:, ::2]
    memory = memory_for(array, Parameter(F32, (3, 2), (2, 1), 0, row_major=True, memref=True, written=True), "x")
    memory.view[...] = 7
    memory.write_back()
    assert (array == 7).all()


def test_read_only_memory():
    array = np.zeros((2, 2), np.float32)
    array.flags.writeable = False
    memory_for(array, memref((2, 2), (2, 1), written=False), "x")
    memory_for(array, tensor((2, 2)), "x")
    with pytest.raises(InputError, match="read-only"):
        memory_for(array, memref((2, 2), (2, 1)), "x")


def test_foreign_byte_order_and_misalignment_are_copied():
    raw = np.zeros(17, np.uint8)[1:].view(np.float32)
    assert not raw.flags.aligned
    assert memory_for(raw, tensor((4,)), "x").view.flags.aligned
    swapped = np.arange(4, dtype=">f4" if sys.byteorder == "little" else "<f4")
    check_array(swapped, tensor((4,)), "x")
    memory = memory_for(swapped, memref((4,), (1,)), "x")
    assert memory.view.dtype.isnative and np.array_equal(memory.view, swapped)
    memory.view += 1
    memory.write_back()
    assert np.array_equal(swapped, [1, 2, 3, 4])


dims = st.lists(st.integers(0, 4), min_size=0, max_size=4).map(tuple)


@st.composite
def strided_views(draw):
    """An array of random rank, steps, direction and permutation, and its contents."""
    shape = draw(dims)
    steps = tuple(draw(st.sampled_from([1, 2, 3, -1, -2])) for _ in shape)
    base = np.arange(np.prod([max(n, 1) * abs(s) for n, s in zip(shape, steps, strict=True)], dtype=int))
    base = base.astype(np.float32).reshape([max(n, 1) * abs(s) for n, s in zip(shape, steps, strict=True)])
    view = base[(..., *(slice(None, None, s) for s in steps))][(..., *(slice(0, n) for n in shape))]
    return view.transpose(draw(st.permutations(range(len(shape)))))


@settings(max_examples=150, deadline=None)
@given(strided_views(), st.data())
def test_any_view_reaches_any_layout(view, data):
    """Whatever the strides of the array and of the parameter, the program sees the same values, and writes arrive."""
    padding = [data.draw(st.integers(0, 3)) for _ in view.shape]
    strides, step = [], 1
    for size, pad in zip(reversed(view.shape), padding, strict=True):
        strides.append(step)
        step *= max(size, 1) + pad
    known = tuple(s if data.draw(st.booleans()) else None for s in reversed(strides))
    parameter = memref(view.shape, known)
    memory = memory_for(view, parameter, "x")
    assert has_layout(memory.view, parameter)
    assert np.array_equal(memory.view, view)
    pointer, *dynamic = array_slots(memory, parameter)
    assert pointer == memory.view.ctypes.data
    assert len(dynamic) == known.count(None)
    wanted = np.random.default_rng(0).random(view.shape, np.float32)
    memory.view[...] = wanted
    memory.write_back()
    assert np.array_equal(view, wanted)


@settings(max_examples=100, deadline=None)
@given(dims)
def test_contiguous_strides_are_numpys(shape):
    array = np.zeros(shape, np.float32)
    if array.size:
        assert tuple(s // 4 for s in array.strides) == contiguous_strides(shape)
    assert allocate(shape, np.dtype(np.float32), (None,) * len(shape)).flags.c_contiguous


def test_offset_is_taken_off_the_pointer():
    array = np.zeros((2, 2), np.float32)
    (pointer,) = array_slots(memory_for(array, memref((2, 2), (2, 1), 8), "x"), memref((2, 2), (2, 1), 8))
    assert pointer == array.ctypes.data - 32


@pytest.mark.parametrize(
    ("value", "mlir", "bits"),
    [
        (1.0, "f32", 0x3F800000),
        (1, "f64", 0x3FF0000000000000),
        (1.0, "bf16", 0x3F80),
        (True, "i1", 1),
        (-1, "i8", 0xFF),
        (255, "i8", 0xFF),
        (-1, "index", -1),
        (np.int32(5), "i32", 5),
        (np.array(2.0, np.float16), "f16", 0x4000),
        (np.array(0x3F80, np.uint16), "bf16", 0x3F80),
    ],
)
def test_scalars(value, mlir, bits):
    assert scalar_slots(value, element_of(mlir), "x") == [bits]


def test_complex_scalars_take_their_slots():
    assert len(scalar_slots(1j, element_of("complex<f64>"), "x")) == 2
    assert len(scalar_slots(1j, element_of("complex<f32>"), "x")) == 1


@pytest.mark.parametrize(
    ("value", "mlir"),
    [(1.5, "i32"), (256, "i8"), (-129, "i8"), (2, "i1"), (1j, "f32"), (np.float64(1), "f32"), (np.zeros(1), "f64")],
)
def test_scalars_that_do_not_fit(value, mlir):
    with pytest.raises(InputError, match="x: "):
        scalar_slots(value, element_of(mlir), "x")


def test_array_likes():
    data = bytearray(16)
    assert as_array(memoryview(data).cast("f"), "x").shape == (4,)
    assert as_array(np.float32(3), "x").shape == ()

    class Dlpack:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **kwargs):
            return self.array.__dlpack__(**kwargs)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    array = np.arange(6.0).reshape(2, 3)
    taken = as_array(Dlpack(array), "x")
    assert taken.ctypes.data == array.ctypes.data
    for bad in ([1, 2], "abc", None, object(), {}):
        with pytest.raises(InputError, match="x: expected an array"):
            as_array(bad, "x")


def test_torch_tensors_share_memory():
    torch = pytest.importorskip("torch")
    value = torch.arange(6, dtype=torch.float32).reshape(2, 3).T.requires_grad_()
    assert as_array(value, "x").ctypes.data == value.data_ptr()
    bits = as_array(torch.ones(3, dtype=torch.bfloat16), "x")
    assert bits.dtype == np.uint16
    assert (bits == 0x3F80).all()
    with pytest.raises(InputError, match="CPU"):
        as_array(torch.ones(3, device="meta"), "x")


def test_data_pointer_of_objects():
    array = np.zeros((4, 5))[1:, 2:]
    assert DATA_OFFSET is not None
    assert data_address(array) == array.ctypes.data
