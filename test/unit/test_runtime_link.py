"""Linking where free memory is in pieces that lie far apart."""

from __future__ import annotations

import subprocess
import sys

import pytest

#: Leaves holes of one page above 64 GiB that nothing fits into, so that a small section of an object and a large one
#: cannot be neighbours unless they are mapped together.
_SCATTERED = """
import ctypes, mmap
import numpy as np
import morello_mlir

TEXT = '''func.func @f(%a: tensor<100x300xf32>, %b: tensor<300x50xf32>) -> tensor<100x50xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<100x50xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<100x50xf32>) -> tensor<100x50xf32>
  %c = linalg.matmul ins(%a, %b : tensor<100x300xf32>, tensor<300x50xf32>)
                     outs(%init : tensor<100x50xf32>) -> tensor<100x50xf32>
  return %c : tensor<100x50xf32>
}'''
# What the compiler itself keeps is there before the holes are.
morello_mlir.compile("func.func @g() { return }")

libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
private_anonymous_noreserve = 0x4022

def reserve(size):
    return libc.mmap(None, size, 0, private_anonymous_noreserve, -1, 0)

total, page = 64 << 30, mmap.PAGESIZE
start = reserve(total)
size = 1 << 24
while size >= page:
    while reserve(size) > start:
        pass
    size //= 2
for i in range(1, 64):
    assert libc.munmap(start + total - 2 * i * page, page) == 0

f = morello_mlir.compile(TEXT, cache=False, memo="off", threads=1)
c = f(np.ones((100, 300), np.float32), np.ones((300, 50), np.float32))
assert (c == 300).all()
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="maps memory as Linux does")
def test_sections_stay_together():
    done = subprocess.run([sys.executable, "-c", _SCATTERED], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
