"""torch-mlir's pipelines run in a process of their own, whose end is an error like others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from morello_mlir.errors import CompileError

pytest.importorskip("torch_mlir")

from torch_mlir.dialects import torch as torch_dialect
from torch_mlir.ir import Context, Module

from morello_mlir.frontends import importer, isolated

RELU = """
func.func @main(%a: !torch.vtensor<[4],f32>) -> !torch.vtensor<[4],f32> {
  %0 = torch.aten.relu %a : !torch.vtensor<[4],f32> -> !torch.vtensor<[4],f32>
  return %0 : !torch.vtensor<[4],f32>
}"""
#: A product of bytes, which torch-mlir takes for quantised numbers.
CRASHES = """
func.func @main(%a: !torch.vtensor<[4,4],si8>) -> !torch.vtensor<[4,4],si8> {
  %0 = torch.aten.mm %a, %a : !torch.vtensor<[4,4],si8>, !torch.vtensor<[4,4],si8> -> !torch.vtensor<[4,4],si8>
  return %0 : !torch.vtensor<[4,4],si8>
}"""
UNKNOWN = """
func.func @main(%a: !torch.vtensor<[4],f32>) -> !torch.vtensor<[4],f32> {
  %0 = torch.operator "mine.unheard"(%a) : (!torch.vtensor<[4],f32>) -> !torch.vtensor<[4],f32>
  return %0 : !torch.vtensor<[4],f32>
}"""
#: Workers for `PROGRAM`: one whose pipelines never end (nor let Python run), and one that dies on every request.
HANGS = """
import ctypes
from morello_mlir.frontends import pipelines
pipelines.lower = lambda *_: ctypes.PyDLL(None).sleep(1000)
pipelines.main()"""
DIES = """
import os, sys
from morello_mlir.frontends import pipelines
pipelines.lower = lambda *_: (print("assertion failed: x", file=sys.stderr, flush=True), os.abort())
pipelines.main()"""


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    isolated._end_all()
    monkeypatch.setattr(isolated, "_impossible", False)
    yield
    isolated._end_all()


def lowered(text: str) -> str:
    context = Context()
    torch_dialect.register_dialect(context)
    return importer.run(Module.parse(text, context), importer.FROM_TORCH, "the graph")


def worker() -> int:
    """The process of the one that is idle."""
    (found,) = isolated._idle
    return found._process.pid


def is_gone(pid: int) -> bool:
    """Whether a process has ended within ten seconds; perhaps nobody has asked for its status."""
    for _ in range(200):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


def test_one_worker_for_all():
    assert "linalg.generic" in lowered(RELU)
    first = worker()
    assert first != os.getpid()
    lowered(RELU)
    assert worker() == first


def test_errors_are_those_of_the_pipelines(monkeypatch):
    found = []
    for program in (sys.executable, ""):
        isolated._end_all()
        monkeypatch.setattr(sys, "executable", program)
        with pytest.raises(CompileError, match=r"torch-mlir cannot lower the graph: .*unheard") as raised:
            lowered(UNKNOWN)
        found.append((str(raised.value), raised.value.diagnostics))
    assert found[0] == found[1]


def test_a_crash_is_an_error_and_the_next_one_works(capfd):
    with pytest.raises(CompileError, match=r"^torch-mlir cannot lower the graph: it ended with signal SIG\w+$"):
        lowered(CRASHES)
    assert capfd.readouterr() == ("", "")
    assert "linalg" in lowered(RELU)


def test_what_a_crash_says(monkeypatch):
    monkeypatch.setattr(isolated, "PROGRAM", DIES)
    with pytest.raises(CompileError, match="signal SIGABRT") as raised:
        lowered(RELU)
    assert raised.value.diagnostics == ("assertion failed: x",)


def test_graphs_that_crash_run_in_torch(monkeypatch):
    torch = pytest.importorskip("torch")
    from morello_mlir.frontends import EagerFallback

    monkeypatch.setattr(isolated, "PROGRAM", DIES)
    torch._dynamo.reset()
    x = torch.ones(3)
    with torch.inference_mode(), pytest.warns(EagerFallback, match="it ended with signal SIGABRT"):
        assert torch.compile(lambda x: x + 1, backend="morello")(x).tolist() == [2.0] * 3


def test_a_worker_that_died_while_idle():
    lowered(RELU)
    first = worker()
    os.kill(first, signal.SIGKILL)
    assert "linalg" in lowered(RELU)
    assert worker() != first


@pytest.mark.parametrize(
    "name, value", [("executable", ""), ("executable", None), ("executable", "/nowhere/python"), ("path", [])]
)
def test_without_workers_they_run_here(monkeypatch, name, value):
    if name == "path":
        # A Python that finds nothing to import.
        monkeypatch.setattr(isolated, "PROGRAM", "import nothing_like_this")
    else:
        monkeypatch.setattr(sys, name, value)
    assert "linalg" in lowered(RELU)
    assert not isolated._idle


def test_started_ahead():
    isolated.prepare()
    first = worker()
    isolated.prepare()
    lowered(RELU)
    assert worker() == first


def test_threads_take_turns():
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(lowered(RELU))) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(120)
    assert len(found) == 4 and len(set(found)) == 1
    assert worker()


def test_a_forked_child_has_a_worker_of_its_own():
    lowered(RELU)
    first = worker()
    child = os.fork()
    if not child:
        try:
            os._exit(0 if "linalg" in lowered(RELU) and worker() != first else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert "linalg" in lowered(RELU)
    assert worker() == first


_SCRIPT = f"""
import os, sys, threading, time
from torch_mlir.dialects import torch as torch_dialect
from torch_mlir.ir import Context, Module
from morello_mlir.frontends import importer, isolated

isolated.PROGRAM = {HANGS!r}
context = Context()
torch_dialect.register_dialect(context)
isolated.prepare()
child = os.fork()
if not child:
    time.sleep(60)
    os._exit(0)

def tell(worker=isolated._idle[0]):
    while not worker._ready:
        time.sleep(0.01)
    time.sleep(0.3)
    print(worker._process.pid, child, flush=True)

threading.Thread(target=tell, daemon=True).start()
importer.run(Module.parse({RELU!r}, context), importer.FROM_TORCH, "the graph")
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_worker_is_left_behind(number):
    """Whatever ends the process, and though a pipeline that does not end is running, and a child lives on."""
    with subprocess.Popen(
        [sys.executable, "-c", _SCRIPT],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        pid, child = map(int, process.stdout.readline().split())
        try:
            assert Path(f"/proc/{pid}").exists()
            process.send_signal(number)
            process.wait(60)
            assert is_gone(pid)
        finally:
            os.kill(child, signal.SIGKILL)
        if number == signal.SIGINT:
            assert "KeyboardInterrupt" in process.stderr.read()
