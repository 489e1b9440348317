"""The thread pool, and compiled code on it: right whoever calls, from wherever, and the same bits every time."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from thread_support import at_once

import morello_mlir
from morello_mlir.errors import InputError
from morello_mlir.runtime import jit, pool
from morello_mlir.targets import available_cores, thread_count

#: Adds 1 to word t of the context; `many` does so `times` times, each with a fork and a join. `nested` forks inside.
PROGRAM = """
declare void @morello_parallel(ptr, ptr, i64)
declare void @llvm.x86.sse.stmxcsr(ptr)
define void @body(ptr %words, i64 %t) {
  %p = getelementptr i64, ptr %words, i64 %t
  %old = load i64, ptr %p
  %new = add i64 %old, 1
  store i64 %new, ptr %p
  ret void
}
define void @modes(ptr %words, i64 %t) {
  %p = getelementptr i64, ptr %words, i64 %t
  call void @llvm.x86.sse.stmxcsr(ptr %p)
  ret void
}
define void @outer(ptr %words, i64 %t) {
  %from = mul i64 %t, 5
  %p = getelementptr i64, ptr %words, i64 %from
  call void @morello_parallel(ptr @body, ptr %p, i64 5)
  ret void
}
define void @many(ptr %words, i64 %count, i64 %times) {
  br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %next, %loop ]
  call void @morello_parallel(ptr @body, ptr %words, i64 %count)
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %times
  br i1 %more, label %loop, label %end
end:
  ret void
}
define void @nested(ptr %words, i64 %count, i64 %times) {
  call void @morello_parallel(ptr @outer, ptr %words, i64 %count)
  ret void
}
define void @states(ptr %words, i64 %count, i64 %times) {
  call void @morello_parallel(ptr @modes, ptr %words, i64 %count)
  ret void
}
"""


@pytest.fixture(scope="module")
def run() -> Callable[..., list[int]]:
    """Calls `many`, `nested` or `states` with room for `room` words; returns the words."""
    names = ("many", "nested", "states")
    library = jit.load(PROGRAM, names, jit.Options(vectorize=False), None, pool.symbols())
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    functions = {name: kind(library.addresses[name]) for name in names}

    def call(name: str, count: int, times: int = 1, room: int = 0) -> list[int]:
        words = (ctypes.c_int64 * max(room, count, 1))()
        functions[name](words, count, times)
        return list(words)

    call.library = library  # type: ignore[attr-defined]
    return call


@pytest.mark.parametrize("count", [0, 1, 2, 3, 5, 8])
def test_every_call_is_made_once(run, count):
    times = 3000 if count <= 2 else 200
    assert run("many", count, times)[:count] == [times] * count


def test_every_call_is_made_once_where_helpers_fall_asleep_and_wake(run):
    """Whoever is first makes the calls of a helper that has not begun; the other leaves them."""
    for i in range(300):
        time.sleep((i % 7) * 1e-4)
        assert run("many", 3, 1 + i % 3)[:3] == [1 + i % 3] * 3


def test_more_calls_than_the_pool_has_threads(run):
    assert run("many", 1000, 3) == [3] * 1000
    assert pool.helpers() <= 252


def test_loops_inside_of_loops(run):
    assert run("nested", 6, room=30) == [1] * 30


def test_callers_from_many_threads(run):
    assert at_once([lambda: run("many", 3, 500)] * 8) == [[500] * 3] * 8


def test_helpers_round_as_the_caller_does(run):
    libm = ctypes.CDLL(None)
    upwards = 0x800
    before = libm.fegetround()
    try:
        libm.fesetround(upwards)
        modes = [w & 0x6000 for w in run("states", 3)]
    finally:
        libm.fesetround(before)
    assert len(set(modes)) == 1 and modes[0] == 0x4000


@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_a_forked_child_makes_its_own_helpers(run):
    run("many", 3)
    before = pool.helpers()
    child = os.fork()
    if child == 0:
        ok = pool.helpers() == 0 and run("many", 3, 100)[:3] == [100] * 3 and pool.helpers() == 2
        os._exit(0 if ok else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert pool.helpers() == before >= 2 and run("many", 3, 100)[:3] == [100] * 3


def test_processes_end_while_helpers_spin():
    text = f"""
import ctypes
from morello_mlir.runtime import jit, pool
library = jit.load({PROGRAM!r}, ("many",), jit.Options(vectorize=False), None, pool.symbols())
many = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(library.addresses["many"])
many((ctypes.c_int64 * 4)(), 4, 100)
"""
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=100, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# ---------------------------------------------------------------- how many


def test_thread_counts(monkeypatch):
    monkeypatch.setenv("MORELLO_NUM_THREADS", "3")
    assert thread_count() == 3 and thread_count(5) == 5 and thread_count(10**6) == 253
    monkeypatch.delenv("MORELLO_NUM_THREADS")
    assert thread_count() == available_cores() == len(os.sched_getaffinity(0))
    for bad in (0, -1, "two", "1.5", ""):
        with pytest.raises(InputError, match="positive integer"):
            thread_count(bad)
    monkeypatch.setenv("MORELLO_NUM_THREADS", "many")
    with pytest.raises(InputError, match="positive integer, not 'many'"):
        thread_count()


# ---------------------------------------------------------------- compiled code


def product(m: int, k: int, n: int, schedule: str = "") -> str:
    given = f" {{morello.schedule = [{', '.join(repr(line) for line in schedule.splitlines())}]}}".replace("'", '"')
    return f"""
func.func @product(%a: tensor<{m}x{k}xf32>, %b: tensor<{k}x{n}xf32>) -> tensor<{m}x{n}xf32> {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<{m}x{n}xf32>
  %clear = linalg.fill ins(%zero : f32) outs(%empty : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>
  %0 = linalg.matmul{given if schedule else ""} ins(%a, %b : tensor<{m}x{k}xf32>, tensor<{k}x{n}xf32>)
                     outs(%clear : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>
  return %0 : tensor<{m}x{n}xf32>
}}"""


SHARED = """to_accum
split k by 20:
    move rhs to GL as [b, n/16, k, n%16]
    parallel tile m by 10:
        ?
    rest:
        ?
rest:
    parallel tile n by 16:
        ?
    rest:
        ?"""
GROUPS = """parallel tile m by 20 over 2:
    parallel tile n by 16:
        ?
    rest:
        ?
rest:
    parallel tile n by 48:
        ?
    rest:
        ?"""


@pytest.fixture(autouse=True)
def _strict(monkeypatch):
    monkeypatch.setenv("MORELLO_STRICT", "1")


@pytest.mark.parametrize(("threads", "schedule"), [(2, SHARED), (3, SHARED), (4, GROUPS), (6, GROUPS)])
def test_products_on_threads(threads, schedule):
    m, k, n = 53, 37, 61
    compiled = morello_mlir.compile(product(m, k, n, schedule), target="avx2", threads=threads)
    assert compiled.specs[0]["spec"].endswith(f"parallel {threads})")
    assert compiled.specs[0]["schedule"].count("parallel tile") >= 2
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
    first = compiled(a, b)
    np.testing.assert_allclose(first, a @ b, rtol=1e-4, atol=1e-4)
    assert all((compiled(a, b) == first).all() for _ in range(50))


def test_callers_at_once_get_the_same_bits():
    compiled = morello_mlir.compile(product(53, 37, 61, SHARED), target="avx2", threads=2)
    rng = np.random.default_rng(1)
    pairs = [(rng.standard_normal((53, 37), np.float32), rng.standard_normal((37, 61), np.float32)) for _ in range(6)]
    want = [compiled(*pair) for pair in pairs]

    def caller(i: int) -> None:
        for _ in range(60):
            assert (compiled(*pairs[i]) == want[i]).all()

    at_once([partial(caller, i) for i in range(6)])


def test_a_schedule_of_one_thread_stays_one():
    serial = "to_accum\nsplit k by 20:\n    ?\nrest:\n    ?"
    compiled = morello_mlir.compile(product(53, 37, 61, serial), target="avx2", threads=2)
    assert compiled.specs[0]["spec"].endswith("serial)")


def test_what_is_searched_for_threads():
    """The optimum of a large enough goal is parallel; that of a small one needs no pool."""
    large = morello_mlir.compile(product(96, 96, 96), target="avx2", threads=2)
    assert "parallel tile" in large.specs[0]["schedule"]
    a, b = (np.random.default_rng(i).standard_normal((96, 96), np.float32) for i in range(2))
    np.testing.assert_allclose(large(a, b), a @ b, rtol=1e-4, atol=1e-4)
    small = morello_mlir.compile(product(16, 16, 16), target="avx2", threads=2)
    assert "parallel tile" not in small.specs[0]["schedule"]
    assert pool.ENTRY not in str(small.emit("llvm"))


@pytest.mark.parametrize("form", ["[b, n/16, k/4, n%16, k%4]", "[b, n/16, k/2, n%16, k%2] i16"])
def test_threads_pack_other_elements(form):
    """Groups along k, and elements that widen, a share of the panels for each thread."""
    schedule = f"to_accum\nmove rhs to GL as {form}\nparallel tile m by 24:\n    ?\nrest:\n    ?"
    lines = ", ".join(f'"{line}"' for line in schedule.splitlines())
    compiled = morello_mlir.compile(
        f"""
func.func @product(%a: memref<53x51xi8>, %b: memref<51x70xi8>, %c: memref<53x70xi32>) {{
  %zero = arith.constant 0 : i32
  linalg.fill ins(%zero : i32) outs(%c : memref<53x70xi32>)
  linalg.matmul {{morello.schedule = [{lines}]}} ins(%a, %b : memref<53x51xi8>, memref<51x70xi8>)
                outs(%c : memref<53x70xi32>)
  return
}}""",
        target="avx2",
        threads=3,
    )
    rng = np.random.default_rng(2)
    a, b = rng.integers(-128, 128, (53, 51), np.int8), rng.integers(-128, 128, (51, 70), np.int8)
    out = np.zeros((53, 70), np.int32)
    compiled(a, b, out)
    np.testing.assert_array_equal(out, a.astype(np.int32) @ b.astype(np.int32))
