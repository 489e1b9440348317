"""Bound functions and `out=`: what is checked, what is shared, what lives how long."""

from __future__ import annotations

import gc
import sys
import weakref
from functools import partial

import numpy as np
import pytest
from thread_support import at_once

import morello_mlir
from morello_mlir.errors import InputError, MorelloError
from morello_mlir.runtime import bind, fastcall

MATMUL = """
func.func @matmul(%a: tensor<4x6xf32>, %b: tensor<6x5xf32>) -> tensor<4x5xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x5xf32>) -> tensor<4x5xf32>
  %r = linalg.matmul ins(%a, %b : tensor<4x6xf32>, tensor<6x5xf32>) outs(%f : tensor<4x5xf32>) -> tensor<4x5xf32>
  return %r : tensor<4x5xf32>
}
"""

SCALE = """
func.func @scale(%s: f32, %a: memref<6xf32>, %b: memref<6xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%a : memref<6xf32>) outs(%b : memref<6xf32>) {
  ^bb0(%x: f32, %y: f32):
    %p = arith.mulf %x, %s : f32
    linalg.yield %p : f32
  }
  return
}
"""

TWO = """
func.func @two(%a: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %e = tensor.empty() : tensor<3xf32>
  %n = linalg.negf ins(%a : tensor<3xf32>) outs(%e : tensor<3xf32>) -> tensor<3xf32>
  %q = linalg.square ins(%a : tensor<3xf32>) outs(%e : tensor<3xf32>) -> tensor<3xf32>
  return %n, %q : tensor<3xf32>, tensor<3xf32>
}
"""

SUM = """
func.func @sum(%a: memref<3xf32>) -> f32 {
  %zero = arith.constant 0 : index
  %x = memref.load %a[%zero] : memref<3xf32>
  return %x : f32
}
"""

ASSERTS = """
func.func @positive(%a: memref<3xf32>) {
  %zero = arith.constant 0 : index
  %limit = arith.constant 0.0 : f32
  %x = memref.load %a[%zero] : memref<3xf32>
  %good = arith.cmpf ogt, %x, %limit : f32
  cf.assert %good, "not positive"
  return
}
"""

DYNAMIC = MATMUL.replace("4x6", "?x6").replace("4x5", "?x5").replace(
    "%e = tensor.empty()", "%c0 = arith.constant 0 : index\n  %m = tensor.dim %a, %c0 : tensor<?x6xf32>\n"
    "  %e = tensor.empty(%m)"
)  # fmt: skip


@pytest.fixture(scope="module")
def matmul():
    return morello_mlir.compile(MATMUL).matmul


@pytest.fixture(scope="module")
def scale():
    return morello_mlir.compile(SCALE).scale


def _operands(seed=0):
    rng = np.random.default_rng(seed)
    return rng.random((4, 6), np.float32), rng.random((6, 5), np.float32)


def test_a_bound_function_reads_what_its_arrays_hold_when_called(matmul):
    a, b = _operands()
    run = matmul.bind(a, b)
    first = run()
    np.testing.assert_allclose(first, a @ b, rtol=1e-5)
    a += 1
    assert run() is first
    np.testing.assert_allclose(first, a @ b, rtol=1e-5)


def test_a_module_with_one_function_binds_it(scale):
    a, b = _operands()
    np.testing.assert_allclose(morello_mlir.compile(MATMUL).bind(a, b)(), a @ b, rtol=1e-5)


@pytest.mark.skipif(fastcall.FIELDS is None, reason="array objects of another layout")
def test_it_is_native(matmul):
    assert type(matmul.bind(*_operands())) is type(len)


def test_without_knowledge_of_array_objects_it_is_python(matmul, monkeypatch):
    monkeypatch.setattr(bind.fastcall, "FIELDS", None)
    a, b = _operands()
    run = matmul.bind(a, b)
    assert type(run) is not type(len)
    np.testing.assert_allclose(run(), a @ b, rtol=1e-5)


def test_memrefs_are_written_in_place_and_scalars_are_kept(scale):
    a, b = np.arange(6, dtype=np.float32), np.zeros(6, np.float32)
    run = scale.bind(2.0, a, b)
    assert run() is None and b.tolist() == [0, 2, 4, 6, 8, 10]


def test_results_go_where_the_caller_says(matmul):
    a, b = _operands()
    out = np.full((4, 5), np.nan, np.float32)
    assert matmul(a, b, out=out) is out
    np.testing.assert_allclose(out, a @ b, rtol=1e-5)
    out[:] = np.nan
    run = matmul.bind(a, b, out=out)
    assert np.isnan(out).all()
    assert run() is out
    np.testing.assert_allclose(out, a @ b, rtol=1e-5)


def test_several_results():
    two = morello_mlir.compile(TWO).two
    a = np.array([1, 2, 3], np.float32)
    out = (np.empty(3, np.float32), np.empty(3, np.float32))
    for got in (two.bind(a)(), two.bind(a, out=out)(), two(a, out=out)):
        assert [g.tolist() for g in got] == [[-1, -2, -3], [1, 4, 9]]
    assert out[1].tolist() == [1, 4, 9]
    with pytest.raises(InputError, match="out: expected 2 arrays, got 1"):
        two.bind(a, out=out[0])
    with pytest.raises(InputError, match="out 1: shares memory"):
        two(a, out=(out[0], out[0]))


def test_dynamic_sizes_are_fixed_by_the_arguments():
    matmul = morello_mlir.compile(DYNAMIC).matmul
    for m in (1, 3):
        a, b = np.ones((m, 6), np.float32), np.ones((6, 5), np.float32)
        assert (matmul.bind(a, b)() == 6).all()
        out = np.empty((m, 5), np.float32)
        assert matmul(a, b, out=out) is out and (out == 6).all()
    with pytest.raises(InputError, match="out: expected shape 3x5, got 1x5"):
        matmul(np.ones((3, 6), np.float32), np.ones((6, 5), np.float32), out=np.empty((1, 5), np.float32))


def test_results_are_in_this_machines_byte_order():
    out = np.empty((4, 5), np.dtype(np.float32).newbyteorder())
    matmul = morello_mlir.compile(DYNAMIC).matmul
    for call in (matmul, matmul.bind):
        with pytest.raises(InputError, match=r"out: .* this one is in another byte order"):
            call(np.ones((4, 6), np.float32), np.ones((6, 5), np.float32), out=out)


def test_what_the_program_returns_itself_is_returned():
    a = np.array([3, 4, 5], np.float32)
    run = morello_mlir.compile(SUM).sum.bind(a)
    assert run() == 3
    a[0] = 7
    assert run() == 7
    with pytest.raises(InputError, match="out: some results are made by the program"):
        morello_mlir.compile(SUM).sum(a, out=a)


def test_assertions_are_looked_at():
    a = np.ones(3, np.float32)
    run = morello_mlir.compile(ASSERTS).positive.bind(a)
    assert run() is None
    a[0] = -1
    with pytest.raises(MorelloError, match="not positive"):
        run()


@pytest.mark.parametrize(("a", "b", "why"), [
    (np.ones((4, 6)), None, "argument 0: expected dtype float32"),
    (np.ones((6, 4), np.float32), None, "argument 0: expected shape 4x6, got 6x4"),
    (np.ones((6, 4), np.float32).T, None, "argument 0: a bound array is used where it lies"),
    (np.ones((4, 12), np.float32)[:, ::2], None, "argument 0: .*bind a copy"),
    (np.ones((4, 6), ">f4"), None, "argument 0: .*bind a copy"),
    (None, [[1.0]], "argument 1: expected an array, got a list"),
])  # fmt: skip
def test_what_cannot_be_bound_is_refused(matmul, a, b, why):
    good = _operands()
    with pytest.raises(InputError, match=why):
        matmul.bind(good[0] if a is None else a, good[1] if b is None else b)


def test_the_number_of_arguments_is_checked(matmul):
    with pytest.raises(InputError, match="expected 2 arguments, got 1"):
        matmul.bind(np.ones((4, 6), np.float32))
    with pytest.raises(InputError, match="expected 2 arguments, got 3"):
        matmul(*_operands(), np.ones((4, 5), np.float32), out=np.ones((4, 5), np.float32))


def test_read_only_arrays_are_bound_where_nothing_is_written(matmul, scale):
    a, b = _operands()
    a.flags.writeable = False
    np.testing.assert_allclose(matmul.bind(a, b)(), a @ b, rtol=1e-5)
    fixed = np.ones(6, np.float32)
    fixed.flags.writeable = False
    assert scale.bind(1.0, fixed, np.ones(6, np.float32))() is None
    with pytest.raises(InputError, match="argument 2: the program writes"):
        scale.bind(1.0, np.ones(6, np.float32), fixed)


@pytest.mark.parametrize(("make", "why"), [
    (lambda a: np.empty((4, 5)), "out: expected dtype float32"),
    (lambda a: np.empty((5, 4), np.float32), "out: expected shape 4x5, got 5x4"),
    (lambda a: np.empty((5, 4), np.float32).T, "this one is not row-major"),
    (lambda a: np.frombuffer(bytes(80), np.float32).reshape(4, 5), "this one is read-only"),
    (lambda a: a.reshape(-1)[:20].reshape(4, 5), "shares memory with an argument"),
    (lambda a: [1, 2], "expected 1 arrays, got 2"),
    (lambda a: 5, "expected a numpy array, got a int"),
])  # fmt: skip
@pytest.mark.parametrize("how", ["call", "bind"])
def test_arrays_that_cannot_take_results_are_refused(matmul, make, why, how):
    a, b = _operands()
    with pytest.raises(InputError, match=why):
        (matmul if how == "call" else matmul.bind)(a, b, out=make(a))


def test_memrefs_that_overlap_are_bound_to_careful_code(scale):
    memory = np.arange(7, dtype=np.float32)
    want = memory.copy()
    for i in range(6):
        want[i + 1] = 2 * want[i]
    scale.bind(2.0, memory[:6], memory[1:])()
    plain = np.arange(7, dtype=np.float32)
    scale(2.0, plain[:6], plain[1:])
    assert (memory == plain).all() and (memory == want).all()


def test_everything_lives_as_long_as_the_function():
    run = morello_mlir.compile(MATMUL).matmul.bind(*(np.ones(s, np.float32) for s in ((4, 6), (6, 5))))
    gc.collect()
    np.zeros((100, 100))
    assert (run() == 6).all()


def test_everything_goes_with_the_function(matmul):
    a, b = _operands()
    out = np.empty((4, 5), np.float32)
    run = matmul.bind(a, b, out=out)
    before = sys.getrefcount(out)
    for _ in range(100):
        run()
    assert sys.getrefcount(out) == before
    watched = weakref.ref(out)
    del run, out
    gc.collect()
    assert watched() is None


def test_threads_may_bind_and_run_at_once(matmul):
    def work(seed):
        x, y = _operands(seed)
        run = matmul.bind(x, y)
        for _ in range(200):
            assert np.allclose(run(), x @ y, rtol=1e-4)

    at_once([partial(work, seed) for seed in range(4)])


def test_code_for_another_machine_is_refused():
    compiled = morello_mlir.compile(MATMUL)
    program = compiled.matmul.program()
    program.refuse(InputError("for another machine"))
    for call in (compiled.matmul.bind, lambda *a: compiled.matmul(*a, out=np.empty((4, 5), np.float32))):
        with pytest.raises(InputError, match="for another machine"):
            call(*_operands())


def test_binding_again_keeps_no_more_definitions():
    module = morello_mlir.compile(MATMUL, optimize=False)
    a, b = np.ones((4, 6), np.float32), np.ones((6, 5), np.float32)
    first = module.bind(a, b)
    before = len(fastcall._definitions)
    assert all((module.bind(a, b)() == first()).all() for _ in range(3))
    assert len(fastcall._definitions) == before
