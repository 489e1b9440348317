"""Locks that a forked child finds free (of the threads that held them it has none), and what is made once a process."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

_T = TypeVar("_T")

_locks: weakref.WeakSet[Any] = weakref.WeakSet()


def lock() -> Any:
    """A reentrant lock."""
    made = threading.RLock()
    _locks.add(made)
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


def _after_fork() -> None:
    for each in _locks:
        each._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
