"""Kernels on tile registers (AMX): eight of them, each 16 rows of 64 bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..targets import Target, Tiles, ceil_div, fixed
from .base import Condition
from .kernel import CACHES, Form, GroupKernel
from .move import GROUP_BYTES
from .state import Dims, TableKey, footprint, maximum, minimum

#: Rows of a tile, and columns of one that holds sums.
SIDE = 16
#: Bytes in a row of a tile: of lhs, so many bytes along k.
ROW_BYTES = 64
#: Tiles of sums that are in use at once.
SUMS = 4


class TileKernel(GroupKernel):
    """m x n, of any m: four tiles of sums at a time (4 x 1, 2 x 2 or 1 x 4, as n is), for which it runs over all of k.

    It reads lhs as it lies, rhs in panels in groups, and adds to the output in memory: the tiles of sums are loaded
    and stored there. What k lacks to whole rows of tiles is copied, with zeros after it.
    """

    accepts = (CACHES, CACHES, CACHES)

    @property
    def depth(self) -> int:
        """Elements along k that a multiplication of tiles takes."""
        return ROW_BYTES // GROUP_BYTES * self.group

    def takes(self, key: TableKey, target: Target) -> bool:
        """Whether there is the instruction, and for inputs of these types."""
        types = (key.dtype_of(0), key.dtype_of(1))
        return self.name in target.narrow.tiles and types in self.inputs and key.dtype == self.accumulates

    def requires(self, key: TableKey, target: Target) -> Sequence[Condition]:
        lhs, rhs = key.operands[0], key.operands[1]
        types = " x ".join((key.dtype_of(0), key.dtype_of(1)))
        in_place = lhs.layout.innermost == 2 and lhs.unit and not lhs.layout.is_packed
        return (
            *super().requires(key, target),
            (self.name in target.narrow.tiles, f"{target.name} does not have the instruction"),
            (self.name not in target.narrow.tiles or self.takes(key, target), f"it does not take {types}"),
            (in_place, "lhs needs unit stride along k"),
            (
                rhs.layout.group == self.group and (rhs.layout.pack_width(2) or 0) % SIDE == 0,
                f"rhs needs panels of {SIDE}, or multiples, in groups of {self.group}",
            ),
        )

    def panels(self, key: TableKey, operand: int, target: Target) -> Sequence[Form]:
        lhs = key.operands[0]
        reads = lhs.layout.innermost == 2 and lhs.unit and not lhs.layout.is_packed
        return ((self.group, None),) if operand == 1 and reads and self.takes(key, target) else ()

    def conditions(self, key: TableKey, dims: Dims, left: Mapping[str, Any], target: Target) -> Sequence[Condition]:
        n, most = dims["n"], SIDE * SUMS
        return (
            *super().conditions(key, dims, left, target),
            (n <= most, lambda: f"takes no more than {most} columns, not {n}"),
        )

    def cost(self, key: TableKey, dims: Dims, target: Target) -> Any:
        t, c = target.narrow.tiles[self.name], target.costs
        m, k, n = dims["m"], dims["k"], dims["n"]
        across = ceil_div(n, SIDE)
        high = rows_at_once(across)
        full, rest = m // high, m % high
        steps = ceil_div(k, self.depth)
        work = steps * (full * _step(t, high, across) + (rest > 0) * _step(t, rest, across))
        cycles = maximum(work, self._streams(key, dims, high, target))
        # Tiles of sums from memory and back.
        out, tiles = key.operands[2], ceil_div(m, SIDE) * across
        cycles = cycles + tiles * t.sums
        cycles = cycles + (full + (rest > 0)) * t.block + (rest % SIDE > 0) * t.shapes
        # What is rounded, lies elsewhere or is no whole tile goes by way of a copy.
        row_major = out.unit and out.layout.innermost == 2
        copied = (n % SIDE > 0) if row_major and not out.dtype else across
        cycles = cycles + copied * m * (2 * c.out_vector + bool(out.dtype) * target.narrow.round)
        if not row_major:
            cycles = cycles + 2.0 * m * n * c.out_vector
        cycles = cycles + (k % self.depth > 0) * (m + SIDE * across)
        return fixed(cycles + c.call)

    def _streams(self, key: TableKey, dims: Dims, high: Any, target: Target) -> Any:
        """Cycles for lines of lhs and rhs from L2: those that are not in L1 yet; where a block of lhs and the panel do
        not fit there together, the panel for each block anew, and half of a lhs that was to be there."""
        t, lhs, rhs = target.narrow.tiles[self.name], key.operands[0], key.operands[1]
        rows, panel = footprint(key, 0, dims), footprint(key, 1, dims).lines
        blocks = ceil_div(dims["m"], high)
        # An eighth of L1 is the sums', and what else passes through.
        fits = minimum(dims["m"], high) * rows.row_lines + panel <= target.l1.lines * 7 // 8
        far = lhs.memory == "L2"
        once = far * rows.lines * t.row_line + (rhs.memory == "L2") * panel * t.panel_line
        again = (1 + far) * rows.lines * t.row_line / 2 + blocks * panel * t.panel_line
        return fits * once + (1 - fits) * again


def rows_at_once(across: Any) -> Any:
    """Rows for which four tiles of sums are enough, where `across` are side by side: 64, 32 or 16."""
    return (across == 1) * (4 * SIDE) + (across == 2) * (2 * SIDE) + (across > 2) * SIDE


def _step(t: Tiles, rows: Any, across: Any) -> Any:
    """Cycles of a step along k: of multiplications (of half a tile at least), or of loads."""
    tall = ceil_div(rows, SIDE)
    return maximum(maximum(rows, tall * SIDE // 2) * across * t.row, (tall + across) * t.load)


class AmxBf16(TileKernel):
    """bf16 x bf16 in f32. The instruction takes subnormal inputs, products and sums as zeros."""

    name = "amx_bf16"
    summary = "tile registers: 16 x 16 sums of bf16 pairs at a time, tdpbf16ps"
    group = 2
    inputs = (("bf16", "bf16"),)
    accumulates = "f32"


class AmxInt8(TileKernel):
    """i8 and u8 in i32, exact, whatever their signs."""

    name = "amx_int8"
    summary = "tile registers: 16 x 16 sums of 8-bit quads at a time, tdpbusd and the like"
    group = 4
    inputs = (("u8", "i8"), ("i8", "u8"), ("i8", "i8"), ("u8", "u8"))
    accumulates = "i32"


TILE_KERNELS = (AmxBf16(), AmxInt8())
