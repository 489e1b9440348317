"""For tests of what several threads do at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def at_once(works: list[Callable[[], Any]], seconds: float = 60) -> list[Any]:
    """What each of `works` returns, in a thread of its own, from the same moment on. Raises what one of them raises,
    and TimeoutError where one does not end."""
    ready = threading.Barrier(len(works))

    def run(work: Callable[[], Any]) -> Any:
        ready.wait()
        return work()

    pool = ThreadPoolExecutor(len(works))
    running = [pool.submit(run, work) for work in works]
    pool.shutdown(wait=False)
    return [each.result(seconds) for each in running]
