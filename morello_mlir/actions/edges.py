"""What is left of a kernel's work where zeros around an image are not multiplied (see `Edge`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..spec import Edge
from ..targets import Target
from .state import Dims, TableKey


def multiplied(key: TableKey, dims: Dims, vectors: Any, target: Target) -> Any:
    """The share of the work of a register tile with so many vectors in a row that is left where zeros beyond the edges
    of lhs are not multiplied: on the average of all positions."""
    window = key.operands[0].window
    share: Any = 1.0
    for edge in window.edges if window is not None else ():
        known = edge.fits(dims["m"]) * edge.steps(dims["k"])
        left = edge.share if edge.moves else _rows_left(edge, vectors, target)
        share = np.where(known, share * left, share)
    return share


def _rows_left(edge: Edge, vectors: Any, target: Target) -> Any:
    """What is left of the work of a tile whose rows are all positions of `edge`: steps that some of them do not find
    are those of a smaller tile."""
    table, vectors = target.kernel_cycles, np.minimum(vectors, target.registers)
    whole = table[min(edge.position.count, target.registers), vectors]
    sizes = ((after - first, min(beyond - row, target.registers)) for first, after, row, beyond in edge.runs())
    steps = sum(count * table[rows, vectors] for count, rows in sizes)
    return np.where(np.isfinite(whole), steps / (edge.taps.count * np.where(np.isfinite(whole), whole, 1.0)), 1.0)
