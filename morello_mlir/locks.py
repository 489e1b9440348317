"""Locks that a forked child finds free: of the threads that held them it has none."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

_locks: weakref.WeakSet[Any] = weakref.WeakSet()


def lock() -> Any:
    """A reentrant lock."""
    made = threading.RLock()
    _locks.add(made)
    return made


def _after_fork() -> None:
    for each in _locks:
        each._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
