"""Processes that fork while others of their threads compile."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from morello_mlir import locks

MATMUL = """
func.func @matmul(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>, %c: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %r = linalg.matmul ins(%a, %b : tensor<?x?xf32>, tensor<?x?xf32>) outs(%c : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}
"""

_FORKING = """
import json, os, sys, threading, time
import numpy as np
import morello_mlir
f = morello_mlir.compile(sys.argv[1], cache=False, threads=1).functions["matmul"]
square = lambda n: np.ones((n, n), np.float32)
for n in json.loads(sys.argv[3]):
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


@pytest.mark.parametrize(("moment", "before"), [(0.0, [3]), (0.002, [3]), (0.05, [3]), (0.15, [3]), (0.1, [])])
def test_a_fork_while_others_compile(moment, before):
    """The child compiles the same function, though the threads that were about it are gone. Without sizes that were
    compiled `before`, these are importing modules."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _FORKING, MATMUL, str(moment), str(before)],
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


_FORKING_AT_ENDS = """
import os, sys, threading
import numpy as np
import morello_mlir
f = morello_mlir.compile(sys.argv[1], cache=False, threads=1).functions["matmul"]
square = lambda n: np.ones((n, n), np.float32)
os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])  # so that ends take a while
def call(n):
    f(*[square(n)] * 3)
    over.set()
found = set()
for n in range(20, 32):
    over = threading.Event()
    threading.Thread(target=call, args=[n]).start()
    over.wait()
    children = []
    for _ in range(3):
        children.append(os.fork())
        if children[-1] == 0:
            os._exit(0 if (f(square(7), square(7), square(7)) == 8).all() else 1)
    found |= {os.waitpid(child, 0)[1] for child in children}
print(found)
"""


def test_a_fork_while_threads_end_that_have_compiled():
    """They are in MLIR once more then, when Python knows them no longer."""
    assert run(_FORKING_AT_ENDS, MATMUL) == "{0}"


def test_a_thread_that_has_left_python_and_lives_on_is_waited_for_once(monkeypatch):
    been = locks.Ending()
    monkeypatch.setattr(been, "LOOKS", 3)
    waits: list[float] = []
    monkeypatch.setattr(locks.time, "sleep", waits.append)
    been.here()
    been.wait()
    assert not waits
    # One of a library, say: the system knows it, and Python does not.
    been._been = {os.getpid(): 0, 2**30: 0}
    been.wait()
    assert len(waits) == 3 and not been._been
    been.wait()
    assert len(waits) == 3


def run(code: str, *arguments: str) -> str:
    call = [sys.executable, "-W", "ignore", "-c", code, *arguments]
    done = subprocess.run(call, capture_output=True, text=True, timeout=120, check=False)
    return done.stdout.strip() or done.stderr


_FORKING_WHILE_HELD = """
import os, threading, time
from morello_mlir import locks
locked = {made}
inside, over = threading.Event(), []
def hold():
    with locked:
        inside.set()
        time.sleep(0.3)
        over.append(True)
threading.Thread(target=hold).start()
inside.wait()
child = os.fork()
if child == 0:
    done = threading.Thread(target=locked.{taken}, daemon=True)  # in a thread, as this one's own locks let it in
    done.start()
    done.join(10)
    os._exit(bool(over) * 2 + done.is_alive())
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.parametrize(
    ("made", "taken", "code"),
    [
        ("locks.lock()", "acquire", 0),
        ("locks.forks_wait_for(threading.RLock())", "acquire", 2),
        ("locks.forks_wait_for(locks.Unfinished())", "acquire", 2),
    ],
)
def test_what_a_child_finds_of_a_lock_that_a_thread_held(made, taken, code):
    """It can take it; the fork waited only where it had to."""
    assert run(_FORKING_WHILE_HELD.format(made=made, taken=taken)) == str(code)


def test_a_lock_of_the_thread_that_forks_is_the_childs():
    assert (
        run("""
import os
from morello_mlir import locks
locked, waited = locks.lock(), locks.forks_wait_for(locks.Unfinished())
with locked, waited:
    child = os.fork()
if child == 0:
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
""")
        == "0"
    )


def test_who_is_waited_for_can_take_the_locks_that_python_takes_for_forks():
    """Those of logging and of executors: what imports modules, or compiles, needs them."""
    assert (
        run("""
import os, threading, time
from morello_mlir import locks
inside = threading.Event()
def hold():
    with locks.IMPORTING:
        inside.set()
        time.sleep(0.1)
        import logging
        from concurrent.futures import ThreadPoolExecutor
        logging.getLogger("one")
        with ThreadPoolExecutor(1) as executor:
            executor.submit(int).result()
threading.Thread(target=hold).start()
inside.wait()
start = time.monotonic()
child = os.fork()
if child == 0:
    os._exit(0)
print(os.waitpid(child, 0)[1], time.monotonic() - start < 25)
""")
        == "0 True"
    )


def test_a_child_finds_the_memos_kernels_whole():
    """Its parent forked while a thread was importing them, numba first."""
    assert (
        run("""
import os, sys, threading, time
from morello_mlir.memo.native import kernels
threading.Thread(target=kernels, args=["policy"]).start()
while "numba" not in sys.modules:
    time.sleep(0.0001)
child = os.fork()
if child == 0:
    os._exit(0 if hasattr(kernels("policy"), "choose_move") else 1)
print(os.waitpid(child, 0)[1])
""")
        == "0"
    )


def test_who_is_forked_at_the_first_tables_keeps_tables():
    """The writer's thread imports what compresses tables, and that more when it is first called."""
    assert (
        run(
            """
import os, sys, tempfile, time
import numpy as np
os.environ["MORELLO_MEMO"] = os.path.join(tempfile.mkdtemp(), "memo")
import morello_mlir
f = morello_mlir.compile(sys.argv[1], cache=False, threads=1).functions["matmul"]
square = lambda n: np.ones((n, n), np.float32)
from morello_mlir.memo import memo
lost = []
memo.log.warning = lambda *said: lost.append(said)
f(*[square(20)] * 3)
wrong = 0
for moment in (0, 0.001, 0.01, 0.1):
    time.sleep(moment)
    child = os.fork()
    if child == 0:
        f(*[square(90)] * 3)
        for each in memo._memos:
            each.flush()
        os._exit(len(lost) > 0)
    wrong += os.waitpid(child, 0)[1] != 0
print(wrong)
""",
            MATMUL,
        )
        == "0"
    )


def test_looking_at_our_ops_imports_nothing():
    """MLIR's bindings look for a module of an op's dialect until they find one, under a lock of Python's."""
    found = run("""
import sys
from morello_mlir.runtime.context import parse_text
goal = 'function = "Matmul", dims = array<i64: 1, 2, 2, 2>, operands = ["", "", ""], serial'
module = parse_text(
    'func.func @f(%a: memref<2x2xf32>) {'
    f'"morello.spec"(%a, %a, %a) {{{goal}}} : (memref<2x2xf32>, memref<2x2xf32>, memref<2x2xf32>) -> ()\\n return}}'
)
class Finder:
    find_spec = staticmethod(lambda name, path=None, target=None: print("looked for", name))
sys.meta_path.insert(0, Finder)
print([op.operation.name for op in module.body.operations[0].body.blocks[0].operations])
""")
    assert found == "['morello.spec', 'func.return']"
