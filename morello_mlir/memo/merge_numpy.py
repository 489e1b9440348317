"""The kernels of boxes in plain NumPy: the reference that tests hold the compiled ones against."""

from __future__ import annotations

import numpy as np


def paint(grid: np.ndarray, lo: np.ndarray, hi: np.ndarray, value: np.ndarray) -> None:
    """Puts value[n] into every cell of the boxes with inclusive corners lo[n, d] and hi[n, d]."""
    for a, b, v in zip(lo.tolist(), hi.tolist(), value.tolist(), strict=True):
        grid[tuple(slice(x, y + 1) for x, y in zip(a, b, strict=True))] = v


def merge_axis(
    start: np.ndarray, extent: np.ndarray, value: np.ndarray, shape: tuple[int, ...], axis: int, last: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Joins every run of boxes that touch along `axis`, with equal values and equal faces.

    start: flat index (in `shape`) of the lowest corner, ascending; extent[n, d]: cells along each dim; value[n].
    Returns the same of what is left. last: scratch of the compiled kernel.
    """
    if not len(start):
        return start, extent, value
    corner = np.stack(np.unravel_index(start, shape), 1)
    others = [d for d in range(len(shape)) if d != axis]
    columns = [*(corner[:, d] for d in others), *(extent[:, d] for d in others), value]
    order = np.lexsort((corner[:, axis], *columns))
    same = np.all([c[order][1:] == c[order][:-1] for c in columns], axis=0)
    low, size = corner[order, axis], extent[order, axis]
    first = np.concatenate([[True], ~(same & (low[1:] == low[:-1] + size[:-1]))])
    joined = extent[order][first]
    joined[:, axis] = np.add.reduceat(size, np.nonzero(first)[0])
    kept = order[first]
    back = np.argsort(start[kept], kind="stable")
    return start[kept][back], joined[back], value[kept][back]
