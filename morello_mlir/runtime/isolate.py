"""Running something that may kill the process in a child of its own, by fork: a crash becomes an error message."""

from __future__ import annotations

import mmap
import os
import signal
import sys
import traceback
from collections.abc import Callable

_SIZE = 256


class Phase:
    """What the child is doing, readable by its parent even after a crash."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _SIZE)

    def set(self, text: str) -> None:
        """Say what comes next, in words that follow 'crashed while'."""
        data = text.encode()[: _SIZE - 1]
        self._memory[: len(data) + 1] = data + b"\0"

    def get(self) -> str:
        """What was said last."""
        return bytes(self._memory).partition(b"\0")[0].decode(errors="replace")


def run_isolated(work: Callable[[Phase], int], program: str) -> int:
    """Run `work(phase)` in a forked child and return its exit status.

    A child that dies by a signal gives status 1 and a message on stderr that begins with `program`; one that is
    interrupted gives 130. Where the system cannot fork, `work` runs in this process.
    """
    phase = Phase()
    if not hasattr(os, "fork"):
        return work(phase)
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = work(phase)
        except KeyboardInterrupt:
            status = 130
        except BaseException:
            # Nothing may leave the child by the way of the parent's code.
            traceback.print_exc()
        finally:
            _flush()
            os._exit(status)
    number = _wait(child)
    if number >= 0:
        return number
    if -number == signal.SIGINT:
        return 130
    name = signal.Signals(-number).name
    print(f"{program}: error: crashed ({name}) while {phase.get() or 'starting'}", file=sys.stderr)
    return 1


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            # Nobody reads any more; the status says the rest.
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _wait(child: int) -> int:
    """Exit status of the child, or the negative number of the signal that ended it."""
    while True:
        try:
            _, status = os.waitpid(child, 0)
        except KeyboardInterrupt:
            # The terminal sent it to the child as well: wait for it to end.
            continue
        return os.waitstatus_to_exitcode(status)
