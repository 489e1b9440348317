"""Memory between ops: large blocks are kept, small and very large ones are not, and nobody gets one twice."""

from __future__ import annotations

import ctypes
import itertools
from functools import partial

import numpy as np
import pytest
from thread_support import at_once

import morello_mlir
from morello_mlir.runtime import allocator


@pytest.fixture(scope="module")
def calls():
    found = allocator.symbols()
    allocate = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)(found["malloc"])
    release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(found["free"])
    return allocate, release


@pytest.mark.parametrize("size", [(1 << 16) + 1, 100_000, 1 << 17, (1 << 17) + 1, 5_000_000, 1 << 26, 120 << 20])
def test_a_block_comes_back(calls, size):
    allocate, release = calls
    block = allocate(size)
    ctypes.memset(block, 1, 64)
    release(block)
    assert allocate(size) == block
    ctypes.memset(block + size - 64, 1, 64)
    release(block)


@pytest.mark.parametrize("size", [0, 1, 1000, 1 << 16, 128 << 20, (128 << 20) + 1])
def test_other_blocks_are_mallocs(calls, size):
    allocate, release = calls
    block = allocate(size)
    assert block or not size
    if size:
        ctypes.memset(block + size - 1, 1, 1)
    release(block)
    release(None)


def test_blocks_that_are_held_are_different(calls):
    allocate, release = calls
    sizes = [70_000 + 1000 * i for i in range(60)]
    blocks = [allocate(size) for size in sizes]
    spans = sorted(zip(blocks, sizes, strict=True))
    assert all(a + n <= b for (a, n), (b, _) in itertools.pairwise(spans))
    for block in blocks:
        release(block)


def test_threads_get_blocks_of_their_own(calls):
    allocate, release = calls

    def work(mark):
        for _ in range(2000):
            blocks = [allocate(100_000) for _ in range(3)]
            for block in blocks:
                ctypes.c_int64.from_address(block).value = mark
            assert all(ctypes.c_int64.from_address(b).value == mark for b in blocks)
            for block in blocks:
                release(block)

    at_once([partial(work, mark) for mark in range(4)])


MODULE = """
func.func @f(%x: tensor<300x300xf32>) -> tensor<300x300xf32> {
  %e = tensor.empty() : tensor<300x300xf32>
  %z = arith.constant 0.0 : f32
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<300x300xf32>) -> tensor<300x300xf32>
  %y = linalg.matmul ins(%x, %x : tensor<300x300xf32>, tensor<300x300xf32>) outs(%i : tensor<300x300xf32>)
    -> tensor<300x300xf32>
  %r = linalg.matmul ins(%y, %x : tensor<300x300xf32>, tensor<300x300xf32>) outs(%i : tensor<300x300xf32>)
    -> tensor<300x300xf32>
  return %r : tensor<300x300xf32>
}
"""


@pytest.mark.parametrize("keep", ["on", "off"])
def test_programs_are_right_with_and_without(monkeypatch, keep):
    monkeypatch.setenv(allocator.KEEP, keep)
    assert bool(allocator.symbols()) == (keep == "on")
    module = morello_mlir.compile(MODULE, optimize=False)
    x = np.random.default_rng(0).standard_normal((300, 300)).astype(np.float32)
    for _ in range(3):
        np.testing.assert_allclose(module.f(x), x @ x @ x, rtol=1e-2, atol=1e-2)
