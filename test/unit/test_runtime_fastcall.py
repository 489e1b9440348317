"""The direct way in: what it takes, what it hands on, and that nothing leaks."""

from __future__ import annotations

import gc
import sys
import weakref

import numpy as np
import pytest
from thread_support import at_once

import morello_mlir
from morello_mlir.errors import InputError
from morello_mlir.runtime import fastcall
from morello_mlir.runtime.program import AssertionFailed, Program

ADD = """
func.func @add(%a: memref<2x3xf32>, %b: memref<2x3xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                  iterator_types = ["parallel", "parallel"]} ins(%a : memref<2x3xf32>) outs(%b : memref<2x3xf32>) {
  ^bb0(%x: f32, %y: f32):
    %s = arith.addf %x, %y : f32
    linalg.yield %s : f32
  }
  return
}
"""

TWO = """
func.func @two(%a: tensor<3xf32>, %b: tensor<2xi32>) -> (tensor<2xi32>, tensor<3xf32>) {
  %e = tensor.empty() : tensor<3xf32>
  %n = linalg.negf ins(%a : tensor<3xf32>) outs(%e : tensor<3xf32>) -> tensor<3xf32>
  %f = tensor.empty() : tensor<2xi32>
  %d = linalg.add ins(%b, %b : tensor<2xi32>, tensor<2xi32>) outs(%f : tensor<2xi32>) -> tensor<2xi32>
  return %d, %n : tensor<2xi32>, tensor<3xf32>
}
"""

POSITIVE = """
func.func @positive(%a: tensor<3xi32>) -> tensor<3xi32> {
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<3xi32>
  %d = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%a : tensor<3xi32>) outs(%e : tensor<3xi32>) {
  ^bb0(%x: i32, %y: i32):
    %good = arith.cmpi sgt, %x, %zero : i32
    cf.assert %good, "not positive"
    %s = arith.addi %x, %x : i32
    linalg.yield %s : i32
  } -> tensor<3xi32>
  return %d : tensor<3xi32>
}
"""

pytestmark = pytest.mark.skipif(fastcall.FIELDS is None, reason="array objects of another layout")


def ones():
    return np.ones((2, 3), np.float32)


@pytest.fixture(scope="module")
def add():
    function = morello_mlir.compile(ADD).add
    function(ones(), ones())
    return function


def test_it_is_what_a_static_function_is_called_by(add):
    program = add.program()
    assert type(program.call) is type(len) and program.call.__name__ == "add"


def test_it_outlives_the_module():
    call = morello_mlir.compile(ADD).add.program().call
    gc.collect()
    b = ones()
    assert call(ones(), b) is None and (b == 2).all()
    del call
    gc.collect()


def test_it_computes_in_place(add):
    b = ones()
    assert add(ones(), b) is None and (b == 2).all()


@pytest.mark.parametrize(
    "make",
    [
        lambda: np.ones((3, 2), np.float32).T,
        lambda: np.ones((2, 6), np.float32)[:, ::2],
        lambda: np.ones((2, 3), np.float32).view(np.matrix),
        lambda: memoryview(np.ones((2, 3), np.float32)),
    ],
    ids=["transposed", "strided", "subclass", "buffer"],
)
@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_what_it_does_not_serve_goes_the_general_way(add, make):
    b = ones()
    add(make(), b)
    assert (b == 2).all()


def test_read_only_arrays_where_nothing_is_written(monkeypatch):
    general = []
    run = Program._call
    monkeypatch.setattr(Program, "_call", lambda self, *args: general.append(args) or run(self, *args))
    add, fixed, b = morello_mlir.compile(ADD).add, ones(), ones()
    fixed.flags.writeable = False
    add(fixed, b)
    assert (b == 2).all() and not general
    with pytest.raises(InputError, match="argument 1: the program writes to this memref, but the array is read-only"):
        add(b, fixed)
    assert (fixed == 1).all() and len(general) == 1


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ((), "expected 2 arguments, got 0"),
        ((1, 2), "expected an array|memoryview"),
        ((np.ones((2, 3)), np.ones((2, 3), np.float32)), "expected dtype float32"),
        ((np.ones((2, 4), np.float32), np.ones((2, 3), np.float32)), "expected shape 2x3, got 2x4"),
        ((np.ones(6, np.float32), np.ones((2, 3), np.float32)), "expected shape 2x3, got 6"),
        ((np.ones((2, 3), ">f4"), np.ones((2, 3), np.int32)), "expected dtype float32"),
    ],
)
def test_what_does_not_fit_is_refused(add, arguments, why):
    with pytest.raises(InputError, match=why):
        add(*arguments)


def test_results_are_new_arrays_in_order():
    two = morello_mlir.compile(TWO).two
    a, b = np.array([1, 2, 3], np.float32), np.array([4, 5], np.int32)
    for _ in range(2):
        d, n = two(a, b)
        assert d.tolist() == [8, 10] and n.tolist() == [-1, -2, -3]
        assert d.flags.owndata and n.flags.owndata


def test_no_reference_is_lost_or_kept():
    two = morello_mlir.compile(TWO).two
    a, b = np.array([1, 2, 3], np.float32), np.array([4, 5], np.int32)
    two(a, b)
    before = [sys.getrefcount(x) for x in (a, b, np.ndarray, a.dtype)]
    for _ in range(1000):
        two(a, b)
    results = two(a, b)
    assert [sys.getrefcount(x) for x in (a, b, np.ndarray)] == before[:3]
    assert abs(sys.getrefcount(a.dtype) - before[3]) <= 2
    assert sys.getrefcount(results) == 2 and all(sys.getrefcount(r) == 3 for r in results)


def test_the_function_object_keeps_the_code_alive_and_lets_go():
    module = morello_mlir.compile(ADD)
    call = module.add.program().call
    alive = weakref.ref(module.add.program())
    del module
    gc.collect()
    b = ones()
    call(ones(), b)
    assert (b == 2).all() and alive() is not None
    del call
    gc.collect()
    assert alive() is None


def test_threads_run_it_at_once(add):
    outs = [ones() for _ in range(8)]
    at_once([lambda o=o: [add(ones(), o) for _ in range(100)] for o in outs])
    assert all((o == 101).all() for o in outs)


def test_an_assertion_that_fails():
    """The general path says which; nothing is left behind."""
    function = morello_mlir.compile(POSITIVE).positive
    good, bad, out = np.array([1, 2, 3], np.int32), np.array([1, 0, 3], np.int32), np.zeros(3, np.int32)
    assert type(function.program().call) is type(len)
    assert function(good).tolist() == function(good, out=out).tolist() == [2, 4, 6]
    before = [sys.getrefcount(x) for x in (good, bad, out, np.ndarray, good.dtype)]
    for _ in range(100):
        for more in ({}, {"out": out}):
            with pytest.raises(AssertionFailed, match="not positive"):
                function(bad, **more)
            function(good, **more)
    del more
    after = [sys.getrefcount(x) for x in (good, bad, out, np.ndarray, good.dtype)]
    assert after[:3] == before[:3] and all(abs(x - y) < 50 for x, y in zip(after[3:], before[3:], strict=True))


def test_what_is_written_is_not_run_twice():
    check = '  %z = arith.constant 0 : index\n  %i = memref.load %t[%z] : memref<1xi1>\n  cf.assert %i, "no"\n'
    written = ADD.replace("func.func @add(", "func.func @add(%t: memref<1xi1>, ")
    written = written.replace("  linalg.generic", f"{check}  linalg.generic", 1)
    add = morello_mlir.compile(written).add
    b = ones()
    assert add(np.array([True]), ones(), b) is None and (b == 2).all()
    with pytest.raises(AssertionFailed, match="no"):
        add(np.array([False]), ones(), b)
    assert type(add.program().call) is not type(len) and (b == 2).all()
