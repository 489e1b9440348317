"""What is made once a process, and locks over forks."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import deque

import pytest
from thread_support import at_once

from morello_mlir import locks
from morello_mlir.locks import before_forks, forks_wait_for, lock, once


def test_threads_that_come_first_together_get_one() -> None:
    @once
    def make() -> object:
        time.sleep(0.05)
        return object()

    found = at_once([make] * 8)
    assert all(each is found[0] for each in found) and make() is found[0]


def test_what_fails_is_tried_again() -> None:
    calls = []

    @once
    def make() -> int:
        calls.append(1)
        if len(calls) == 1:
            raise ValueError("not yet")
        return len(calls)

    with pytest.raises(ValueError, match="not yet"):
        make()
    assert (make(), make()) == (2, 2)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_finds_locks_free() -> None:
    held = lock()

    def fork() -> int:
        child = os.fork()
        if child == 0:
            os._exit(0 if held.acquire(timeout=5) else 1)
        return child

    with held:
        (child,) = at_once([fork])
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_what_is_to_be_done_before_a_fork_is_done_while_others_are_kept_out(monkeypatch: pytest.MonkeyPatch) -> None:
    held, found = forks_wait_for(threading.RLock()), []
    monkeypatch.setattr(locks, "_before_forks", [])

    @before_forks
    def look() -> None:
        at_once([lambda: found.append(held.acquire(False))])

    child = os.fork()
    if child == 0:
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0 and found == [False]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_takes_the_locks_while_others_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    failed: list[object] = []
    kept: deque[object] = deque(maxlen=1000)
    done = threading.Event()
    monkeypatch.setattr(sys, "unraisablehook", failed.append)

    def make() -> None:
        while not done.is_set():
            kept.append(forks_wait_for(threading.RLock()))

    def fork() -> None:
        try:
            for _ in range(60):
                child = os.fork()
                if child == 0:
                    os._exit(0)
                os.waitpid(child, 0)
        finally:
            done.set()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        at_once([make, fork])
    finally:
        sys.setswitchinterval(interval)
    assert not failed
