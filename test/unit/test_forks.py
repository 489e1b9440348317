"""Processes that fork while others of their threads compile."""

from __future__ import annotations

import subprocess
import sys

import pytest

MATMUL = """
func.func @matmul(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>, %c: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %r = linalg.matmul ins(%a, %b : tensor<?x?xf32>, tensor<?x?xf32>) outs(%c : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}
"""

_FORKING = """
import os, sys, threading, time
import numpy as np
import morello_mlir
f = morello_mlir.compile(sys.argv[1], cache=False, threads=1).functions["matmul"]
square = lambda n: np.ones((n, n), np.float32)
for n in (3, 39):  # so that no module is being imported: Python itself forks badly then
    f(*[square(n)] * 3)
others = [threading.Thread(target=f, args=[square(n)] * 3) for n in (40, 41)]
for other in others:
    other.start()
time.sleep(float(sys.argv[2]))
child = os.fork()
if child == 0:
    found = f(square(7), square(7), square(7))
    os._exit(0 if (found == 8).all() else 1)
status = os.waitpid(child, 0)[1]
for other in others:
    other.join()
print(status)
"""


@pytest.mark.parametrize("moment", [0.05, 0.15])
def test_a_fork_while_others_compile(moment):
    """The child compiles the same function, though the threads that were about it are gone."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _FORKING, MATMUL, str(moment)],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == "0", done.stderr


_FORKING_IN_LLVM = """
import os, sys, threading, time
import numpy as np
import llvmlite.binding as llvm
import morello_mlir
f = morello_mlir.compile(sys.argv[1], cache=False, threads=1).functions["matmul"]
square = lambda n: np.ones((n, n), np.float32)
f(square(3), square(3), square(3))
inside = threading.Event()
def call():  # as a call of LLVM that takes a while
    with llvm.ffi.lib._lock:
        inside.set()
        time.sleep(0.3)
threading.Thread(target=call).start()
inside.wait()
child = os.fork()
if child == 0:
    os._exit(0 if (f(square(7), square(7), square(7)) == 8).all() else 1)
print(os.waitpid(child, 0)[1])
"""


def test_a_fork_while_llvm_compiles():
    """It waits until LLVM is done, whose lock no child could release."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _FORKING_IN_LLVM, MATMUL],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == "0", done.stderr
