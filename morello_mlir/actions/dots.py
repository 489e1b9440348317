"""Kernels that sum along k in vectors: dot products, of elements and of groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from ..spec import is_float
from ..targets import Target, ceil_div, fixed
from .base import Condition
from .kernel import CACHES, KernelAction, streamed, vector_cycles
from .pairs import PAIR_KERNELS, PairKernel
from .state import Dims, OperandState, TableKey, footprint, maximum

#: Instructions for groups that are under way at once: the longest takes six cycles, and two start in each.
PAIRS_IN_FLIGHT = 12


def runs_along_k(rhs: OperandState) -> bool:
    """Whether neighbours along k are neighbours in memory, as they are in panels of one column too."""
    return (rhs.layout.innermost == 1 and rhs.unit) or rhs.layout.pack_width(2) == 1


def in_flight(target: Target) -> int:
    """Fused multiply-adds that must be under way at once to cover the latency of one."""
    return int(target.costs.fma_latency * target.costs.fma_per_cycle)


class DotFma(KernelAction):
    """m x n dot products along k, each with as many vector accumulators as the latency asks for; summed at the end."""

    name = "dot_fma"
    summary = "dot products: loads vectors of lhs and rhs along k, several accumulators, horizontal sum"
    accepts = (CACHES, CACHES, CACHES)

    def requires(self, key: TableKey, target: Target) -> Sequence[Condition]:
        lhs, rhs = key.operands[0], key.operands[1]
        return (
            *super().requires(key, target),
            (lhs.layout.innermost == 2 and lhs.unit, "lhs needs unit stride along k"),
            (runs_along_k(rhs), "rhs needs unit stride along k"),
        )

    @staticmethod
    def accumulators(m: Any, n: Any, registers: int, in_flight: int) -> Any:
        """Vector accumulators per dot product: enough to have `in_flight` multiply-adds under way, while registers
        last."""
        room = maximum((registers - np.minimum(m, n) - 1) // (m * n), 1)
        return np.minimum(ceil_div(in_flight, m * n), room)

    def in_flight(self, target: Target) -> int:
        """Multiply-adds that are to be under way at once."""
        return in_flight(target)

    def more(self, key: TableKey) -> int:
        """Rows of accumulators that it takes beyond those of the output."""
        return 0

    def conditions(self, key: TableKey, dims: Dims, left: Mapping[str, Any], target: Target) -> Sequence[Condition]:
        m, n = dims["m"] + self.more(key), dims["n"]
        needed = m * n + np.minimum(m, n) + 1
        return (
            *super().conditions(key, dims, left, target),
            (needed <= left["VRF"], lambda: f"needs {needed} registers, {left['VRF']} are left"),
        )

    def lanes(self, key: TableKey, target: Target) -> int:
        """Elements of an input that a vector takes."""
        return target.lanes(key.dtype)

    def step(self, key: TableKey, m: Any, n: Any, chains: Any, target: Target) -> Any:
        """Cycles of a vector along k of each row and column, `chains` accumulators for each product."""
        c = target.costs
        work = maximum(m * n / c.fma_per_cycle, (m + n) / c.loads_per_cycle)
        if key.kernels:
            if not is_float(key.dtype):
                work = work * target.narrow.integer
            work = work + target.narrow.vector * (bool(key.operands[0].dtype) * m + bool(key.operands[1].dtype) * n)
        return maximum(work, c.fma_latency / chains)

    def cost(self, key: TableKey, dims: Dims, target: Target) -> Any:
        c, lanes = target.costs, self.lanes(key, target)
        m, k, n = dims["m"], dims["k"], dims["n"]
        chains = self.accumulators(m + self.more(key), n, target.registers, self.in_flight(target))
        cycles = ceil_div(k, lanes) * self.step(key, m, n, chains, target)
        lhs = streamed(key, 0, dims, target, m * ceil_div(k, lanes))
        rhs = streamed(key, 1, dims, target, n * ceil_div(k, lanes))
        cycles = vector_cycles(cycles, target, lhs, rhs, (self._driven_out(key, dims, target), 0.0))
        return fixed(cycles + m * n * (c.horizontal + 2 * chains) + c.call)

    @staticmethod
    def _driven_out(key: TableKey, dims: Dims, target: Target) -> Any:
        """Cycles for lines that come from L2 once more, though they were moved to L1: where what is there does not fit
        beside what streams past it, and what is fetched for the next kernel, nothing of it is left for that."""
        lines = [footprint(key, i, dims).lines for i in (0, 1)]
        held = sum(n for n, o in zip(lines, key.operands, strict=False) if o.memory == "L1")
        return held * (2 * sum(lines) - held > target.l1.lines) * target.costs.l2_line


class PairDots(DotFma):
    """The same with the instruction of a kernel for groups, which takes groups of both inputs as they lie."""

    #: The kernel (`Target.narrow.pairs`).
    pairs: ClassVar[str]

    @property
    def kernel(self) -> PairKernel:
        return next(k for k in PAIR_KERNELS if k.name == self.pairs)

    def requires(self, key: TableKey, target: Target) -> Sequence[Condition]:
        types = key.dtype_of(0), key.dtype_of(1)
        takes = types in self.kernel.inputs and key.dtype == self.kernel.accumulates
        return (
            *super().requires(key, target),
            (self.pairs in target.narrow.pairs, f"{target.name} does not have the instruction"),
            (takes, f"it does not take {' x '.join(types)}"),
        )

    def in_flight(self, target: Target) -> int:
        return PAIRS_IN_FLIGHT

    def more(self, key: TableKey) -> int:
        return self.kernel.more(key)[0]

    def lanes(self, key: TableKey, target: Target) -> int:
        return super().lanes(key, target) * self.kernel.group

    def step(self, key: TableKey, m: Any, n: Any, chains: Any, target: Target) -> Any:
        pairs = target.narrow.pairs[self.pairs]
        work = maximum((m + self.more(key)) * n / pairs.per_cycle, (m + n) / target.costs.loads_per_cycle)
        return maximum(work, pairs.latency / chains)


class DotDpBf16(PairDots):
    """bf16 x bf16 in f32. The instruction takes subnormal inputs, products and sums as zeros."""

    name = "dot_dpbf16"
    summary = "dot products of bf16 pairs along k: loads vectors of lhs and rhs, vdpbf16ps, horizontal sum"
    pairs = "dpbf16"


class DotDpBusd(PairDots):
    """i8 and u8 in i32, exact (see `DpBusd`)."""

    name = "dot_dpbusd"
    summary = "dot products of 8-bit quads along k: loads vectors of lhs and rhs, vpdpbusd, horizontal sum"
    pairs = "dpbusd"


DOT_KERNELS = (DotDpBf16(), DotDpBusd(), DotFma())
