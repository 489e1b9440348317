"""`out=`: what goes in natively, what takes the general way, and that both mean the same."""

from __future__ import annotations

import contextlib
import gc
import sys
import weakref
from collections import namedtuple
from functools import partial

import numpy as np
import pytest
from thread_support import at_once

import morello_mlir
from morello_mlir.errors import InputError, MorelloError
from morello_mlir.runtime import fastcall, program

ADD = """
func.func @add(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %e = tensor.empty() : tensor<2x3xf32>
  %s = linalg.add ins(%a, %b : tensor<2x3xf32>, tensor<2x3xf32>) outs(%e : tensor<2x3xf32>) -> tensor<2x3xf32>
  return %s : tensor<2x3xf32>
}
"""

TWO = """
func.func @two(%a: tensor<3xf32>, %b: tensor<3xi32>) -> (tensor<3xi32>, tensor<3xf32>) {
  %e = tensor.empty() : tensor<3xf32>
  %n = linalg.negf ins(%a : tensor<3xf32>) outs(%e : tensor<3xf32>) -> tensor<3xf32>
  %f = tensor.empty() : tensor<3xi32>
  %d = linalg.add ins(%b, %b : tensor<3xi32>, tensor<3xi32>) outs(%f : tensor<3xi32>) -> tensor<3xi32>
  return %d, %n : tensor<3xi32>, tensor<3xf32>
}
"""

# The memref is read and written beside the result.
UPDATE = """
func.func @update(%a: tensor<3xf32>, %m: memref<3xf32>) -> tensor<3xf32> {
  %zero = arith.constant 0 : index
  %x = memref.load %m[%zero] : memref<3xf32>
  %y = arith.addf %x, %x : f32
  memref.store %y, %m[%zero] : memref<3xf32>
  %e = tensor.empty() : tensor<3xf32>
  %n = linalg.negf ins(%a : tensor<3xf32>) outs(%e : tensor<3xf32>) -> tensor<3xf32>
  return %n : tensor<3xf32>
}
"""

ASSERTS = """
func.func @checked(%a: tensor<3xf32>) -> tensor<3xf32> {
  %zero = arith.constant 0 : index
  %limit = arith.constant 0.0 : f32
  %x = tensor.extract %a[%zero] : tensor<3xf32>
  %good = arith.cmpf ogt, %x, %limit : f32
  cf.assert %good, "not positive"
  %e = tensor.empty() : tensor<3xf32>
  %n = linalg.negf ins(%a : tensor<3xf32>) outs(%e : tensor<3xf32>) -> tensor<3xf32>
  return %n : tensor<3xf32>
}
"""

native = pytest.mark.skipif(fastcall.FIELDS is None, reason="array objects of another layout")
Pair = namedtuple("Pair", "first second")


def block(start=0.0):
    return np.arange(start, start + 6, dtype=np.float32).reshape(2, 3)


def room():
    return np.full((2, 3), np.nan, np.float32)


@pytest.fixture
def general(monkeypatch):
    """The calls that take the general way, of programs made from here on."""
    calls = []
    run = program.Program._into
    monkeypatch.setattr(program.Program, "_into", lambda self, *args: calls.append(args) or run(self, *args))
    return calls


@pytest.fixture
def add(general):
    return morello_mlir.compile(ADD).add


@pytest.fixture
def two(general):
    return morello_mlir.compile(TWO).two


@native
@pytest.mark.parametrize("wrap", [lambda o: o, lambda o: (o,), lambda o: [o]], ids=["array", "tuple", "list"])
def test_plain_arrays_go_in_natively(add, general, wrap):
    out = room()
    assert type(add.program().into) is type(len)
    assert add(block(), block(1), out=wrap(out)) is out
    assert (out == block() + block(1)).all() and not general


@native
def test_arrays_that_are_only_read_may_be_read_only(add, general):
    a, out = block(), room()
    a.flags.writeable = False
    assert add(a, a, out=out) is out and (out == 2 * a).all() and not general


@native
def test_several_results_go_in_natively(two, general):
    a, b = np.array([1, 2, 3], np.float32), np.array([4, 5, 6], np.int32)
    for kind, sequence in ((np.int32, tuple), (np.uint32, list)):
        out = np.zeros(3, kind), np.zeros(3, np.float32)
        got = two(a, b, out=sequence(out))
        assert type(got) is tuple and got[0] is out[0] and got[1] is out[1]
        assert out[0].tolist() == [8, 10, 12] and out[1].tolist() == [-1, -2, -3]
    assert not general


@pytest.mark.parametrize("argument", [
    np.asfortranarray(block()),
    np.repeat(block(), 2, axis=1)[:, ::2],
    block()[::-1][::-1].astype(">f4"),
    memoryview(block()),
    np.frombuffer(block().tobytes(), np.float32).reshape(2, 3),
], ids=["columns", "strided", "swapped", "buffer", "read-only"])  # fmt: skip
def test_arguments_of_any_kind(add, argument):
    out = room()
    assert add(argument, block(), out=out) is out
    assert (out == 2 * block()).all()


def test_a_tuple_of_another_type_is_a_sequence_too(two):
    a, b = np.array([1, 2, 3], np.float32), np.array([4, 5, 6], np.int32)
    out = Pair(np.zeros(3, np.int32), np.zeros(3, np.float32))
    assert type(two(a, b, out=out)) is tuple
    assert out.first.tolist() == [8, 10, 12] and out.second.tolist() == [-1, -2, -3]


def test_keywords_in_any_place(add):
    a, out = block(), room()
    assert add(*(a, a), out=out) is out and add(out=out, *(a, a)) is out  # noqa: B026
    assert add(a, a, out=None) is not out
    with pytest.raises(TypeError):
        add(a, b=a, out=out)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_the_number_of_arguments(add, count):
    with pytest.raises(InputError, match=f"@add: expected 2 arguments, got {count}"):
        add(*[block()] * count, out=room())


@pytest.mark.parametrize(("out", "why"), [
    ((), "out: expected 1 arrays, got 0"),
    ((room(), room()), "out: expected 1 arrays, got 2"),
    ([room(), room()], "out: expected 1 arrays, got 2"),
    (([[0.0]],), "out: expected a numpy array, got a list"),
    (room().tolist(), "out: expected 1 arrays, got 2"),
    (memoryview(room()), "out: expected a numpy array, got a memoryview"),
    (room().astype(np.float64), "out: expected dtype float32 for f32, got float64"),
    (room().view(np.int32), "out: expected dtype float32 for f32, got int32"),
    (np.zeros((3, 2), np.float32), "out: expected shape 2x3, got 3x2"),
    (np.zeros((1, 2, 3), np.float32), "out: expected shape 2x3, got 1x2x3"),
    (np.asfortranarray(room()), "this one is not row-major"),
    (np.zeros((2, 6), np.float32)[:, ::2], "this one is not row-major"),
    (np.zeros((2, 3), np.float32)[::-1], "this one is not row-major"),
    (np.frombuffer(bytes(24), np.float32).reshape(2, 3), "this one is read-only"),
    (room().astype(room().dtype.newbyteorder()), "this one is in another byte order"),
])  # fmt: skip
@pytest.mark.parametrize("wrap", [False, True])
def test_what_cannot_take_the_result_is_refused(add, out, why, wrap):
    with pytest.raises(InputError, match=why):
        add(block(), block(), out=(out,) if wrap and isinstance(out, np.ndarray) else out)


@pytest.mark.parametrize("which", [0, 1])
def test_an_argument_is_no_room_for_a_result(add, which):
    arguments = [block(), block(1)]
    with pytest.raises(InputError, match=r"out: shares memory with an argument or another result \(2x3\)"):
        add(*arguments, out=arguments[which])
    assert (arguments[which] == block(which)).all()


@pytest.mark.parametrize("at", [-5, -1, 1, 5])
def test_an_element_in_common_is_refused(add, at):
    memory = np.zeros(18, np.float32)
    a, out = (memory[start : start + 6].reshape(2, 3) for start in (6, 6 + at))
    with pytest.raises(InputError, match="out: shares memory"):
        add(a, block(), out=out)
    with pytest.raises(InputError, match="out: shares memory"):
        add(block(), a, out=out)


@pytest.mark.parametrize("at", [-6, 6])
def test_neighbours_in_memory_share_nothing(add, at):
    memory = np.ones(18, np.float32)
    a, out = (memory[start : start + 6].reshape(2, 3) for start in (6, 6 + at))
    assert add(a, block(), out=out) is out
    assert (out == block() + 1).all() and (a == 1).all() and memory.sum() == 12 + out.sum()


def test_results_share_nothing_with_each_other(two):
    a, b = np.ones(3, np.float32), np.ones(3, np.int32)
    memory = np.zeros(6, np.int32)
    with pytest.raises(InputError, match="out 1: shares memory"):
        two(a, b, out=(memory[:3], memory[2:5].view(np.float32)))
    two(a, b, out=(memory[:3], memory[3:].view(np.float32)))
    assert memory[:3].tolist() == [2, 2, 2] and memory[3:].view(np.float32).tolist() == [-1, -1, -1]


@pytest.mark.parametrize(("out", "why"), [
    (np.zeros(3, np.int32), "out: expected 2 arrays, got 1"),
    ((np.zeros(3, np.int32),), "out: expected 2 arrays, got 1"),
    ((np.zeros(3, np.float32), np.zeros(3, np.int32)), "out 0: expected dtype .*int32.* for i32, got float32"),
    ((np.zeros(3, np.int32), None), "out 1: expected a numpy array, got a NoneType"),
])  # fmt: skip
def test_each_of_several_is_checked(two, out, why):
    with pytest.raises(InputError, match=why):
        two(np.ones(3, np.float32), np.ones(3, np.int32), out=out)


def test_memrefs_are_written_beside_results():
    update = morello_mlir.compile(UPDATE).update
    a, m, out = np.ones(3, np.float32), np.ones(3, np.float32), np.zeros(3, np.float32)
    assert update(a, m, out=out) is out
    assert m.tolist() == [2, 1, 1] and out.tolist() == [-1, -1, -1]
    with pytest.raises(InputError, match="out: shares memory"):
        update(a, m, out=m)
    m.flags.writeable = False
    with pytest.raises(InputError, match="argument 1: the program writes to this memref, but the array is read-only"):
        update(a, m, out=out)


def test_a_function_without_results_has_no_room_to_ask_for():
    source = "func.func @none(%m: memref<3xf32>) {\n  return\n}"
    none = morello_mlir.compile(source).none
    with pytest.raises(InputError, match="out: expected 0 arrays, got 1"):
        none(np.ones(3, np.float32), out=np.ones(3, np.float32))


@pytest.mark.parametrize("shape", ["", "0x3x"])
def test_numbers_of_elements_that_are_odd(shape):
    type_ = f"tensor<{shape}f32>"
    source = ADD.replace("tensor<2x3xf32>", type_)
    one = np.ones((0, 3) if shape else (), np.float32)
    out = np.zeros_like(one)
    assert morello_mlir.compile(source).add(one, one, out=out) is out
    assert (out == 2).all()


def test_assertions_are_looked_at():
    checked = morello_mlir.compile(ASSERTS).checked
    out = np.zeros(3, np.float32)
    assert checked(np.ones(3, np.float32), out=out) is out and out.tolist() == [-1, -1, -1]
    with pytest.raises(MorelloError, match="not positive"):
        checked(np.zeros(3, np.float32), out=out)


def test_without_knowledge_of_array_objects_it_is_python(monkeypatch):
    monkeypatch.setattr(fastcall, "FIELDS", None)
    add, out = morello_mlir.compile(ADD).add, room()
    assert type(add.program().into) is not type(len)
    assert add(block(), block(), out=(out,)) is out and (out == 2 * block()).all()


def test_no_reference_is_lost_or_kept():
    two, add = morello_mlir.compile(TWO).two, morello_mlir.compile(ADD).add
    a, b = np.ones(3, np.float32), np.ones(3, np.int32)
    pair = np.zeros(3, np.int32), np.zeros(3, np.float32)
    x, out = block(), room()
    watched = [a, b, *pair, pair, x, out, np.ndarray]
    two(a, b, out=pair)
    add(x, x, out=out)
    gc.collect()
    before = [sys.getrefcount(each) for each in watched]
    for _ in range(1000):
        two(a, b, out=pair)
        add(x, x, out=out)
        add(x, x, out=(out,))
        with contextlib.suppress(InputError):
            add(x, x, out=x)
    gc.collect()
    assert [sys.getrefcount(each) for each in watched] == before


def test_it_outlives_the_module_and_lets_go():
    module = morello_mlir.compile(ADD)
    into, alive = module.add.program().into, weakref.ref(module.add.program())
    del module
    gc.collect()
    out = room()
    assert into(block(), block(), out) is out and (out == 2 * block()).all() and alive() is not None
    del into
    gc.collect()
    assert alive() is None


def test_threads_may_ask_for_it_at_once():
    add = morello_mlir.compile(ADD).add
    outs = [room() for _ in range(8)]

    def work(out, start):
        for _ in range(200):
            add(block(start), block(), out=out)

    at_once([partial(work, out, i) for i, out in enumerate(outs)])
    assert all((out == block(i) + block()).all() for i, out in enumerate(outs))
