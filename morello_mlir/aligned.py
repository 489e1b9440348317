"""Memory that starts where vectors, lines or pages do."""

from __future__ import annotations

import contextlib
import mmap

import numpy as np

LINE = 64
PAGE = 4096
HUGE_PAGE = 1 << 21


def aligned(size: int, alignment: int = LINE, beyond: int = 0) -> np.ndarray:
    """`size` zero bytes at a multiple of `alignment`; memory that is not touched costs nothing.

    beyond: bytes behind them that may be touched too.
    """
    room = np.zeros(size + alignment + beyond, np.uint8)
    start = -room.ctypes.data % alignment
    return room[start : start + size]


def lasting(size: int) -> np.ndarray:
    """`size` zero bytes for what stays as long as a program does: large ones in huge pages, where the system gives them
    to who asks (`madvise`).

    From memory they are read faster so. What lies past the last whole huge page takes no more room than it needs.
    """
    whole = size // HUGE_PAGE * HUGE_PAGE
    if not whole or not hasattr(mmap, "MADV_HUGEPAGE"):
        return aligned(size)
    block = mmap.mmap(-1, size + HUGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    room = np.frombuffer(block, np.uint8)
    start = -room.ctypes.data % HUGE_PAGE
    with contextlib.suppress(OSError):  # kernels without them
        block.madvise(mmap.MADV_HUGEPAGE, start, whole)
    return room[start : start + size]
