"""torch-mlir's pipelines in a process of their own: a few of its passes end the process on modules they do not expect.

The worker is started on first use (or ahead, by `prepare`) and kept. It is one that this process alone talks to: a
forked child starts its own. It ends when its socket is closed, by whatever ends this process.
"""

from __future__ import annotations

import atexit
import io
import os
import signal
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from morello_mlir.locks import forks_wait_for, lock

from . import pipelines as worker_side
from .pipelines import Outcome

#: What a worker runs.
PROGRAM = "from morello_mlir.frontends.pipelines import main; main()"
#: Without a word for so long, what was started is no worker: importing torch-mlir takes a fraction of it.
START_SECONDS = 30.0
#: A process that closed its socket has so long to end.
_END_SECONDS = 10.0
#: What crashes write up to here, if it is as short as this, is for the user; LLVM's and Python's stacks are not.
_LINES_OF_STACKS = ("PLEASE submit", "Stack dump", "Fatal Python error", " #0 ")
_SHORT = 1000

#: One request at a time.
_LOCK = lock()
#: Held while a child of another thread's would keep the worker's end of the socket open.
_STARTING = forks_wait_for(threading.RLock())
_idle: list[_Worker] = []
_all: weakref.WeakSet[_Worker] = weakref.WeakSet()
_impossible = False


class _NotTaken(Exception):
    """The worker had ended before it had the request."""


class _Worker:
    def __init__(self) -> None:
        """Raises OSError: no process can be started."""
        self._ready = False
        with _STARTING:
            self._channel, theirs = socket.socketpair()
            self._log = os.fdopen(os.memfd_create("torch-mlir"), "rb", buffering=0)
            try:
                self._process = _started(theirs, self._log)
            except BaseException:
                self._close()
                raise
            finally:
                theirs.close()
            _all.add(self)

    def ask(self, bytecode: bytes, pipelines: Sequence[str]) -> Outcome:
        """Raises _NotTaken."""
        try:
            if not self._ready:
                self._channel.settimeout(START_SECONDS)
                worker_side.receive(self._channel)
                self._channel.settimeout(None)
                self._ready = True
            worker_side.send(self._channel, {"pipelines": list(pipelines)}, bytecode)
            worker_side.receive(self._channel)
        except (EOFError, OSError) as error:
            raise _NotTaken from error
        try:
            header, text = worker_side.receive(self._channel)
        except (EOFError, OSError):
            return Outcome(error=self._how_it_ended(), said=self._last_words())
        return Outcome(text.decode(), header["error"], tuple(header["said"]))

    def runs(self) -> bool:
        return self._process.poll() is None

    def _how_it_ended(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_SECONDS)
        status = self._process.returncode
        if status is None:
            return "it does not answer any more"
        with suppress(ValueError):
            if status < 0:
                return f"it ended with signal {signal.Signals(-status).name}"
        return f"it ended with status {status}"

    def _last_words(self) -> tuple[str, ...]:
        lines = os.pread(self._log.fileno(), 2 * _SHORT, 0).decode(errors="replace").splitlines()
        stack = next((i for i, line in enumerate(lines) if line.startswith(_LINES_OF_STACKS)), len(lines))
        words = tuple(line for line in lines[:stack] if line.strip())
        return words if sum(map(len, words)) <= _SHORT else ()

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        self._close()

    def leave(self) -> None:
        """Of a child that was forked: the worker is its parent's."""
        self._process.returncode = 0
        self._close()

    def _close(self) -> None:
        self._channel.close()
        self._log.close()


def _started(channel: socket.socket, log: Any) -> subprocess.Popen[bytes]:
    # Nothing that is run there has threads.
    quiet = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    code = f"import sys; sys.path[:] = {[str(each) for each in sys.path]!r}; {PROGRAM}"
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=channel.fileno(),
        stdout=log,
        stderr=log,
        env={**os.environ, **quiet},
        # ^C is ours to handle.
        start_new_session=True,
    )


def lower(module: Any, pipelines: Sequence[str]) -> Outcome:
    """Run pipelines on a module of torch-mlir's; that they end the worker is an error like others.

    Where no worker can be started (a program that embeds Python), they run here, and change the module.
    """
    written = io.BytesIO()
    module.operation.write_bytecode(written)
    with _LOCK:
        # A worker may have ended while it was idle: then another one gets the request.
        for _ in range(2):
            worker = _taken()
            if worker is None:
                break
            try:
                outcome = worker.ask(written.getvalue(), pipelines)
            except _NotTaken:
                worker.end()
                continue
            except BaseException:
                worker.end()
                raise
            if worker.runs():
                _idle.append(worker)
            else:
                worker.end()
            return outcome
        else:
            _give_up()
    return worker_side.lower(lambda: module, pipelines)


def prepare() -> None:
    """Start a worker, if there is none, without waiting for it."""
    if not _LOCK.acquire(blocking=False):
        return
    try:
        worker = _taken()
        if worker is not None:
            _idle.append(worker)
    finally:
        _LOCK.release()


def _taken() -> _Worker | None:
    """A worker that nobody else has until it is put back, which one that failed is not; None: there can be none."""
    while _idle:
        worker = _idle.pop()
        if worker.runs():
            return worker
        worker.end()
    if _impossible or not sys.executable:
        return None
    try:
        return _Worker()
    except OSError:
        _give_up()
        return None


def _give_up() -> None:
    global _impossible
    _impossible = True


@atexit.register
def _end_all() -> None:
    while _idle:
        _idle.pop().end()


def _in_child() -> None:
    _idle.clear()
    for worker in list(_all):
        worker.leave()
    _all.clear()


os.register_at_fork(after_in_child=_in_child)
