"""Lines that fall into few sets of a cache: those of rows whose stride shares a large power of two with it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from ..targets import LINE

#: Rows, at most, whose sets are counted one by one: those after them fall into the same.
MOST_ROWS = 4096


@lru_cache(maxsize=1 << 14)
def lines_a_set(apart: tuple[tuple[int, int], ...], span: int, sets: int) -> float:
    """How many lines there are in each set that has any, of a cache with `sets` sets; 0 where that is one, or all sets
    have some.

    apart: (stride in bytes, number) of rows, along each dim. span: bytes of a row.
    """
    each = max(1, -(-span // LINE))
    rows = math.prod(n for _, n in apart)
    if each >= sets or rows == 1:
        return 0.0
    whole, starts = sets * LINE, {0}
    for stride, n in apart:
        known = min(n, whole // math.gcd(whole, stride), max(1, MOST_ROWS // len(starts)))
        starts = {(at + i * stride) % whole for at in starts for i in range(known)}
    met = len({at // LINE for at in starts}) * each
    return 0.0 if met >= min(sets, rows * each) else rows * each / met


def occupied(lines: float, a_set: float, sets: int) -> float:
    """Lines' worth of a cache that `lines` take, of which there are `a_set` in each set that has any."""
    return max(lines, a_set * sets)


def apart_of(strides: Sequence[int], steps: Sequence[int], nbytes: int) -> tuple[tuple[tuple[int, int], ...], int]:
    """(rows, span): what steps along all dims touch of an operand whose elements have `nbytes`: rows of `span` bytes,
    so many of them at each stride in bytes."""
    span = nbytes
    apart: list[tuple[int, int]] = []
    for stride, n in sorted((s * nbytes, n) for s, n in zip(strides, steps, strict=True) if s and n > 1):
        if not apart and stride <= max(span, LINE):
            span += (n - 1) * stride
        elif apart and stride % apart[-1][0] == 0 and apart[-1][0] * apart[-1][1] >= stride:
            # Windows that overlap.
            step, have = apart[-1]
            apart[-1] = step, have + (n - 1) * (stride // step)
        else:
            apart.append((stride, n))
    return tuple(apart), span
