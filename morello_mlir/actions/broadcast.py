"""`broadcast_fma`: register tiles of fused multiply-adds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..spec import dtype_bytes, is_float
from ..targets import LINE, PAGE, Target, ceil_div, fixed
from .base import Condition
from .edges import multiplied
from .kernel import CACHES, Form, KernelAction, streamed, vector_cycles
from .move import spreads_pairs
from .pairs import pair_kernel
from .state import Dims, TableKey, footprint, maximum

#: Register tiles of up to so many vectors have loops of four k steps, larger ones of two.
STEPS_OF_FOUR = 16
#: From so many rows on, tiles of one vector wait for loads, not for the latency of multiply-adds.
SPREAD_FROM = 8
#: Lines of a row of rhs that are foreseen however many loads each takes (see `Costs.strip_line`).
STRIP = 4


class BroadcastFma(KernelAction):
    """m x n register tile; every k step loads the vectors of a row of rhs and broadcasts m elements of lhs.

    With the roles of lhs and rhs exchanged it is the kernel that broadcasts rhs: that Spec has the same canonical form
    (docs/spec-language.md).
    """

    name = "broadcast_fma"
    summary = "register tile; loads rows of rhs, broadcasts elements of lhs, fused multiply-add"
    accepts = (CACHES, CACHES, ("VRF",))
    windows = True

    def requires(self, key: TableKey, target: Target) -> Sequence[Condition]:
        rhs = key.operands[1]
        # Panels of one column are columns: neighbours along n are far apart.
        rows = rhs.layout.innermost == 2 and rhs.unit and rhs.layout.pack_width(2) != 1
        return (*super().requires(key, target), (rows, "rhs needs unit stride along n (or panels)"))

    def panels(self, key: TableKey, operand: int, target: Target) -> Sequence[Form]:
        """Panels of the type of the sums; vectors of rhs may also be widened as they are loaded. What a kernel for
        groups does faster is left to it."""
        if any(o.layout.group > 1 for o in key.operands) or pair_kernel(key, target):
            return ()
        if not key.operands[operand].dtype:
            return ((1, None),)
        return ((1, key.dtype), (1, None)) if operand == 1 else ((1, key.dtype),)

    def conditions(self, key: TableKey, dims: Dims, left: Mapping[str, Any], target: Target) -> Sequence[Condition]:
        vectors = ceil_div(dims["n"], target.lanes(key.dtype))
        out = list(super().conditions(key, dims, left, target))
        out.append((vectors + 1 <= left["VRF"], lambda: f"needs {vectors + 1} more registers, {left['VRF']} are left"))
        cycles = self._cycles(key, dims, vectors, target)
        out.append((np.isfinite(cycles), lambda: f"a {dims['m']} x {vectors} register tile would spill"))
        return out

    @staticmethod
    def _cycles(key: TableKey, dims: Dims, vectors: Any, target: Target) -> Any:
        table = target.kernel_cycles
        top = target.registers
        cycles = table[np.minimum(dims["m"], top), np.minimum(vectors, top)]
        if spreads_pairs(key, target):
            # There are fewer loads than multiply-adds then.
            c = target.costs
            alone = maximum(c.fma_latency, dims["m"] / c.fma_per_cycle + c.spread_step)
            spread = is_spread(dims["m"], vectors) * (steps_together(key, dims, target) == 1)
            cycles = np.where(np.isfinite(cycles) & spread, alone, cycles)
        if not key.kernels:
            return cycles
        narrow, (lhs, rhs, _) = target.narrow, key.operands
        if not is_float(key.dtype):
            cycles = cycles * narrow.integer
        # One element a step is widened while its vectors come.
        elements = bool(lhs.dtype) * (dims["m"] - 1)
        return cycles + bool(rhs.dtype) * vectors * narrow.vector + elements * narrow.scalar

    def cost(self, key: TableKey, dims: Dims, target: Target) -> Any:
        c, lanes = target.costs, target.lanes(key.dtype)
        m, k, n = dims["m"], dims["k"], dims["n"]
        per_step = self._cycles(key, dims, ceil_div(n, lanes), target)
        rhs = key.operands[1]
        if rhs.stride is not None:
            if rhs.stride < target.vector_bytes:
                per_step = per_step * c.unaligned + ceil_div(n, lanes) * c.unaligned_vector
            per_step = per_step + (n % lanes > 0) * 0.5
        steps = ceil_div(k, steps_together(key, dims, target))
        work = np.where(np.isfinite(per_step), per_step, 0.0) * steps
        work = work * multiplied(key, dims, ceil_div(n, lanes), target)
        streams = streamed(key, 0, dims, target, m * k), streamed(key, 1, dims, target, k * ceil_div(n, lanes))
        cycles = vector_cycles(work, target, *streams) + c.call
        if rhs.dtype and rhs.stride is not None:
            lines = ceil_div(n * dtype_bytes(rhs.dtype), LINE)
            cycles = cycles + k * maximum(lines - STRIP, 0) * c.strip_line
        lhs = key.operands[0]
        if not lhs.layout.is_packed:
            # A few rows in pages of their own are streams that hardware foresees. What is in L1 is not told apart by
            # its stride (`TableKey.canonical`).
            far_apart = lhs.memory != "L1" and lhs.stride is not None and lhs.stride >= PAGE
            waits = (n <= lanes) * (m > c.burst_rows * far_apart)
            if spreads_pairs(key, target):
                waits = waits * (1 - is_spread(m, 1))
            cycles = cycles + waits * footprint(key, 0, dims).lines * c.lone_line
        return fixed(cycles)


def steps_together(key: TableKey, dims: Dims, target: Target) -> Any:
    """How many k steps `broadcast_fma` takes in one vector: several where the columns fill a part of it, both inputs
    lie in place along their rows, and shuffles are free (`morello_mlir/lowering/narrow.py`)."""
    lhs, rhs, _ = key.operands
    plain = not (lhs.layout.is_packed or rhs.layout.is_packed or lhs.window or rhs.window)
    if not (target.shuffles and plain and is_float(key.dtype)) or key.kernels or lhs.layout.innermost != 2:
        return 1
    lanes, n = target.lanes(key.dtype), dims["n"]
    several = (n > 1) * lhs.unit
    two, four = several * (2 * n <= lanes), several * (4 * n <= lanes) * (dims["m"] <= STEPS_OF_FOUR)
    return 1 + two + 2 * four


def is_spread(rows: Any, vectors: Any) -> Any:
    """Whether a register tile of that shape takes pairs of k steps where it can (`spreads_pairs`)."""
    return (rows >= SPREAD_FROM) * (vectors == 1)
