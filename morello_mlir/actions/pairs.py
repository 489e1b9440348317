"""Kernels on register tiles that take groups of k: pairs of 16 bits, quads of 8."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..spec import is_float
from ..targets import Target, ceil_div, fixed
from .base import Condition
from .kernel import CACHES, Form, GroupKernel, crosses, streamed, vector_cycles
from .state import Dims, TableKey


class PairKernel(GroupKernel):
    """m x n register tile; every step takes a group of k, whose products one instruction adds up: it loads the vectors
    of a row of groups of rhs and broadcasts groups of lhs. What k lacks to whole groups counts as zeros.
    """

    accepts = (CACHES, CACHES, ("VRF",))

    def wanted(self, key: TableKey, operand: int) -> tuple[str, ...]:
        """The dtypes that panels of input `operand` may have."""
        return (key.dtype_of(operand),)

    def runs_on(self, key: TableKey, target: Target) -> bool:
        """Whether it could come to run below `key`: the inputs can still be brought into its form."""
        if self.name not in target.narrow.pairs or key.dtype != self.accumulates:
            return False
        for i in (0, 1):
            layout = key.operands[i].layout
            if layout.is_packed and layout.group != self.group:
                return False
        return any((a, b) in self.inputs for a in self.wanted(key, 0) for b in self.wanted(key, 1))

    def pays(self, target: Target) -> bool:
        """Whether it multiplies more elements a cycle than vectors of the type of the sums do."""
        slower = 1.0 if is_float(self.accumulates) else target.narrow.integer
        return self.group * target.narrow.pairs[self.name].per_cycle > target.costs.fma_per_cycle / slower

    def requires(self, key: TableKey, target: Target) -> Sequence[Condition]:
        lhs, rhs = key.operands[0], key.operands[1]
        pair = key.dtype_of(0), key.dtype_of(1)
        in_place = lhs.layout.innermost == 2 and lhs.unit and not lhs.layout.is_packed
        return (
            *super().requires(key, target),
            (self.name in target.narrow.pairs, f"{target.name} does not have the instruction"),
            (pair in self.inputs and key.dtype == self.accumulates, f"it does not take {' x '.join(pair)}"),
            (in_place or lhs.layout.group == self.group, f"lhs needs unit stride along k, or groups of {self.group}"),
            (rhs.layout.group == self.group, f"rhs needs panels in groups of {self.group}"),
        )

    def panels(self, key: TableKey, operand: int, target: Target) -> Sequence[Form]:
        if self != pair_kernel(key, target):
            return ()
        here = key.dtype_of(operand)
        return tuple((self.group, None if d == here else d) for d in self.wanted(key, operand))

    def more(self, key: TableKey) -> tuple[int, int]:
        """(rows, registers) that it takes beyond the tile's."""
        return 0, 0

    def conditions(self, key: TableKey, dims: Dims, left: Mapping[str, Any], target: Target) -> Sequence[Condition]:
        vectors = ceil_div(dims["n"], target.lanes(key.dtype))
        rows, registers = self.more(key)
        needed = (rows + 1) * vectors + registers + 1
        out = list(super().conditions(key, dims, left, target))
        width = key.operands[1].layout.pack_width(2) or 1
        out.append((dims["n"] <= width, crosses("n", dims["n"], width)))
        out.append((needed <= left["VRF"], lambda: f"needs {needed} more registers, {left['VRF']} are left"))
        cycles = self._cycles(key, dims, vectors, target)
        out.append((np.isfinite(cycles), lambda: f"a {dims['m']} x {vectors} register tile would spill"))
        return out

    def _cycles(self, key: TableKey, dims: Dims, vectors: Any, target: Target) -> Any:
        table, top = target.pair_cycles[self.name], target.registers
        return table[np.minimum(dims["m"] + self.more(key)[0], top), np.minimum(vectors, top)]

    def cost(self, key: TableKey, dims: Dims, target: Target) -> Any:
        m, k, n = dims["m"], dims["k"], dims["n"]
        vectors, steps = ceil_div(n, target.lanes(key.dtype)), ceil_div(k, self.group)
        per_step = self._cycles(key, dims, vectors, target)
        work = np.where(np.isfinite(per_step), per_step, 0.0) * steps
        streams = streamed(key, 0, dims, target, m * steps), streamed(key, 1, dims, target, vectors * steps)
        return fixed(vector_cycles(work, target, *streams) + target.costs.call)


class DpBf16(PairKernel):
    """bf16 x bf16 in f32. The instruction takes subnormal inputs, products and sums as zeros."""

    name = "dpbf16"
    summary = "register tile of bf16 pairs: loads rows of rhs pairs, broadcasts pairs of lhs, vdpbf16ps"
    group = 2
    inputs = (("bf16", "bf16"),)
    accumulates = "f32"


class DpBusd(PairKernel):
    """i8 and u8 in i32, exact. Of two signed inputs lhs is taken as unsigned, 128 too large, and 128 times the sum of
    rhs is subtracted: a row more."""

    name = "dpbusd"
    summary = "register tile of 8-bit quads: loads rows of rhs quads, broadcasts quads of lhs, vpdpbusd"
    group = 4
    inputs = (("u8", "i8"), ("i8", "u8"), ("i8", "i8"))
    accumulates = "i32"

    def more(self, key: TableKey) -> tuple[int, int]:
        return (1, 2) if key.dtype_of(0) == key.dtype_of(1) else (0, 0)


class MaddWd(PairKernel):
    """i16 in i32, wrapping around; exact for what was widened from 8 bits while it was packed."""

    name = "maddwd"
    summary = "register tile of i16 pairs: loads rows of rhs pairs, broadcasts pairs of lhs, vpmaddwd"
    group = 2
    inputs = (("i16", "i16"),)
    accumulates = "i32"

    def wanted(self, key: TableKey, operand: int) -> tuple[str, ...]:
        return ("i16",) if key.dtype_of(operand) in ("i8", "u8", "i16") else ()

    def more(self, key: TableKey) -> tuple[int, int]:
        return 0, 1


#: In order of preference: the first that an operand's dtypes allow is the one that operands are packed for.
PAIR_KERNELS = (DpBf16(), DpBusd(), MaddWd())


def pair_kernel(key: TableKey, target: Target) -> PairKernel | None:
    """The kernel for groups that could come to run below `key`, if it is faster than multiply-adds of what is widened:
    other panels are not tried then, or else these are not."""
    return next((k for k in PAIR_KERNELS if k.runs_on(key, target) and k.pays(target)), None)
