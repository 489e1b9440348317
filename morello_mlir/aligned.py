"""Memory that starts where vectors, lines or pages do."""

from __future__ import annotations

import numpy as np

LINE = 64
PAGE = 4096


def aligned(size: int, alignment: int = LINE, beyond: int = 0) -> np.ndarray:
    """`size` zero bytes at a multiple of `alignment`; memory that is not touched costs nothing.

    beyond: bytes behind them that may be touched too.
    """
    room = np.zeros(size + alignment + beyond, np.uint8)
    start = -room.ctypes.data % alignment
    return room[start : start + size]
