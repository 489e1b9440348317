"""What forks do to locks. A child has the locks as they are at that moment, and none of the threads that hold them.

`lock` is for what a child may find half done, since Python shows it whole: the child finds it free. Where other code is
in the middle of something, with locks of its own, a fork waits (`forks_wait_for`). And what is made once a process.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

_T = TypeVar("_T")

_free_in_children: weakref.WeakSet[Any] = weakref.WeakSet()
_waited_for: weakref.WeakSet[Any] = weakref.WeakSet()
_before_forks: list[Callable[[], None]] = []
#: Held over a fork: one fork at a time, and what it holds.
_forking = threading.RLock()
_held: list[Any] = []
#: Seconds after which a fork looks again, and how often it does: what it holds then (other libraries have locks of
#: theirs) may be what is needed to go on. Not by the clock, which goes on while the process is stopped.
_PAUSE, _TRIES = 0.0005, 50_000


def lock() -> Any:
    """A reentrant lock that a forked child finds free."""
    made = threading.RLock()
    _free_in_children.add(made)
    return made


def once(make: Callable[[], _T]) -> Callable[[], _T]:
    """`make`, called once in a process: threads that ask for its result while it is being made wait for it.

    `lru_cache` lets each of them make one, all but the last of which go: machine code that runs, or is being linked to,
    must not.
    """
    guard, made = lock(), list[_T]()

    @wraps(make)
    def get() -> _T:
        if not made:
            with guard:
                if not made:
                    made.append(make())
        return made[0]

    return get


def forks_wait_for(lock: Any) -> Any:
    """`lock`, a reentrant lock that no other thread holds when the process forks. (Or what has its `acquire` and
    `release`; it must be held shortly, and not for good.)"""
    _waited_for.add(lock)
    return lock


def before_forks(do: Callable[[], None]) -> Callable[[], None]:
    """Has `do` called before every fork, when all that forks wait for is held (or was waited for in vain)."""
    _before_forks.append(do)
    return do


class Unfinished:
    """Something that forks in other threads wait for. Those that do it, in a `with`, do not wait for one another."""

    def __init__(self) -> None:
        self._mutex = threading.RLock()
        self._inside: list[int] = []

    def __enter__(self) -> None:
        with self._mutex:
            self._inside.append(threading.get_ident())

    def __exit__(self, *error: object) -> None:
        with self._mutex:
            self._inside.remove(threading.get_ident())

    def acquire(self, blocking: bool = False) -> bool:
        """Keeps others out, if no other thread is inside."""
        if not self._mutex.acquire(blocking):
            return False
        if any(thread != threading.get_ident() for thread in self._inside):
            self._mutex.release()
            return False
        return True

    def release(self) -> None:
        """Lets others in."""
        self._mutex.release()


#: Around imports, whose locks are Python's own.
IMPORTING = forks_wait_for(Unfinished())


class FirstTimes:
    """Work of one kind, each in a `with` of its own, that imports what it needs: forks wait for it until it has once
    imported nothing."""

    def __init__(self) -> None:
        self._all_there = False

    @contextmanager
    def __call__(self) -> Iterator[None]:
        if self._all_there:
            yield
            return
        with IMPORTING:
            before = len(sys.modules)
            yield
            self._all_there = len(sys.modules) == before


#: Around compilations.
compiling = FirstTimes()


class Ending:
    """Threads that have been in MLIR. It takes locks of its caches once more as they end, when Python knows them no
    longer: a child that is forked at that moment would wait for these for ever."""

    #: How often a fork looks (`_PAUSE`). A thread of somebody else's may have left Python and live on.
    LOOKS = 2_000

    def __init__(self) -> None:
        #: By the number that the system knows it by, the one that Python does.
        self._been: dict[int, int] = {}

    def here(self) -> None:
        """This thread is going there."""
        self._been[threading.get_native_id()] = threading.get_ident()

    def wait(self) -> None:
        """Until those that have left Python are gone. They are seen on Linux alone."""
        for _ in range(self.LOOKS):
            in_python = sys._current_frames()
            left = [each for each, ident in self._been.copy().items() if ident not in in_python]
            ending = [each for each in left if Path(f"/proc/self/task/{each}").exists()]
            for each in set(left).difference(ending):
                self._been.pop(each, None)
            if not ending:
                return
            time.sleep(_PAUSE)
        for each in ending:
            self._been.pop(each, None)


in_mlir = Ending()


# These have forks take locks of theirs, which those who are waited for here may need. The last to register comes first.
for _name in ("logging", "concurrent.futures.thread"):
    importlib.import_module(_name)


def _before_fork() -> None:
    """Takes all locks that forks wait for at once. None is held while another is waited for, so their order does not
    matter."""
    _forking.acquire()
    for _ in range(_TRIES):
        try:
            locks = list(_waited_for)
        except RuntimeError:
            # Another thread has made one meanwhile.
            continue
        if _take_all(locks):
            break
        time.sleep(_PAUSE)
    for do in _before_forks:
        do()
    in_mlir.wait()


def _take_all(locks: list[Any]) -> bool:
    for each in locks:
        if not each.acquire(False):
            _release_all()
            return False
        _held.append(each)
    return True


def _release_all() -> None:
    while _held:
        _held.pop().release()


def _after_fork() -> None:
    _release_all()
    _forking.release()


def _in_child() -> None:
    _after_fork()
    for each in _free_in_children:
        if not each._is_owned():
            each._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)
