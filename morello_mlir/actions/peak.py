"""How fast a target can multiply and add at best, for elements of given types."""

from __future__ import annotations

from ..spec import is_float
from ..targets import Target
from .amx import SIDE, TILE_KERNELS
from .pairs import PAIR_KERNELS
from .state import TableKey


def multiply_adds(key: TableKey, target: Target) -> float:
    """Multiplications with an addition that one core does in a cycle, with the fastest instruction for the inputs and
    the sums of `key`: on vectors, on groups along k, or on tiles."""
    slower = 1.0 if is_float(key.dtype) else target.narrow.integer
    groups = [k.group * target.narrow.pairs[k.name].per_cycle for k in PAIR_KERNELS if k.runs_on(key, target)]
    vectors = target.lanes(key.dtype) * max(target.costs.fma_per_cycle / slower, *groups, 0.0)
    tiles = [SIDE * k.depth / target.narrow.tiles[k.name].row for k in TILE_KERNELS if k.takes(key, target)]
    return max(vectors, *tiles, 0.0)
