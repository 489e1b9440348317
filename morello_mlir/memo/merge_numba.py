"""The kernels of boxes, compiled. Same contract as merge_numpy, which tests compare it with."""

from __future__ import annotations

import math

import numba
import numpy as np


@numba.njit(cache=True, nogil=True)
def _merge(start, extent, value, stride, size, axis, last):  # type: ignore[no-untyped-def]
    count, dims = extent.shape
    out = 0
    for i in range(count):
        s = start[i]
        p = last[s - stride] if (s // stride) % size > 0 else -1
        # `last` may be left over from an earlier merge: the box itself is asked.
        joins = p >= 0 and p < out and value[p] == value[i] and start[p] + extent[p, axis] * stride == s
        if joins:
            for d in range(dims):
                if d != axis and extent[p, d] != extent[i, d]:
                    joins = False
        if joins:
            extent[p, axis] += extent[i, axis]
        else:
            p = out
            start[p] = s
            value[p] = value[i]
            for d in range(dims):
                extent[p, d] = extent[i, d]
            out += 1
        last[start[p] + (extent[p, axis] - 1) * stride] = p
    return out


@numba.njit(cache=True, nogil=True)
def _paint(grid, start, extent, stride, value):  # type: ignore[no-untyped-def]
    count, dims = extent.shape
    at = np.zeros(dims, np.int64)
    for i in range(count):
        at[:] = 0
        cell = start[i]
        while True:
            for x in range(extent[i, dims - 1]):
                grid[cell + x] = value[i]
            # The next row of the box, as an odometer counts.
            d = dims - 2
            while d >= 0:
                at[d] += 1
                cell += stride[d]
                if at[d] < extent[i, d]:
                    break
                cell -= at[d] * stride[d]
                at[d] = 0
                d -= 1
            if d < 0:
                break


def paint(grid: np.ndarray, lo: np.ndarray, hi: np.ndarray, value: np.ndarray) -> None:
    """See merge_numpy.paint."""
    stride = np.array(grid.strides, np.int64) // grid.itemsize
    _paint(grid.reshape(-1), lo @ stride, hi.astype(np.int64) - lo + 1, stride, value)


def merge_axis(
    start: np.ndarray, extent: np.ndarray, value: np.ndarray, shape: tuple[int, ...], axis: int, last: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """See merge_numpy.merge_axis. last: scratch of one int32 a cell, any content."""
    start, extent, value = start.copy(), extent.copy(), value.copy()
    n = _merge(start, extent, value, math.prod(shape[axis + 1 :]), shape[axis], axis, last)
    return start[:n].copy(), extent[:n].copy(), value[:n].copy()
