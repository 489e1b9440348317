"""How many threads compiled code uses."""

from __future__ import annotations

import os

from ..errors import InputError
from ..spec import MAX_THREADS


def thread_count(threads: int | str | None = None) -> int:
    """How many threads to compile for: `threads`, else `MORELLO_NUM_THREADS`, else the cores that this process may use.

    Raises InputError where that is not a positive integer. More than MAX_THREADS are not used.
    """
    text = (os.environ.get("MORELLO_NUM_THREADS", "") if threads is None else str(threads)).strip()
    if not text and threads is None:
        return min(available_cores(), MAX_THREADS)
    count = int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else 0
    if count < 1:
        raise InputError(f"the number of threads must be a positive integer, not '{text}'")
    return min(count, MAX_THREADS)


def available_cores() -> int:
    """The cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
