"""`kernel`: leaf implementations. Each states where it accepts its operands, what sizes it takes and what it costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from ..search.schedule import Kernel, Node
from ..spec import FUNCTIONS, is_float
from ..targets import LINE, PAGE, Target, ceil_div, fixed
from .base import Action, Condition
from .edges import multiplied
from .move import l1_cycles, spreads_pairs
from .state import Dims, Footprint, OperandState, TableKey, footprint, maximum

CACHES = ("L2", "L1")


#: Register tiles of up to so many vectors have loops of four k steps, larger ones of two.
STEPS_OF_FOUR = 16
#: From so many rows on, tiles of one vector wait for loads, not for the latency of multiply-adds.
SPREAD_FROM = 8
#: A form of panels: the size of the groups, and the dtype where that changes.
Form = tuple[int, str | None]


class KernelAction(Action):
    """A kernel of the accumulating matmul; `name` is what schedules call it, `summary` what it does."""

    name: ClassVar[str]
    summary: ClassVar[str]
    #: Memories accepted for lhs, rhs and out.
    accepts: ClassVar[tuple[tuple[str, ...], ...]]
    #: Sizes of groups (see `Layout.packed`) in which it takes inputs that are packed in groups.
    groups: ClassVar[tuple[int, ...]] = (1,)
    #: Whether it takes inputs whose reduction goes through a window (see `Window`).
    windows: ClassVar[bool] = False
    rank = 0

    def requires(self, key: TableKey, target: Target) -> Sequence[Condition]:
        out: list[Condition] = [
            (key.is_serial, "a kernel runs on one thread: put serial or a parallel tile above"),
            (FUNCTIONS[key.function].accumulates, f"{key.function} does not accumulate: put to_accum above"),
            (key.dtype in target.accumulators, f"{target.name} has no kernel for {key.dtype}"),
        ]
        for (name, _), state in zip(FUNCTIONS[key.function].operands, key.operands, strict=True):
            group = state.layout.group
            out.append((group in self.groups, f"{name} is packed in groups of {group}, which it does not read"))
        out += [(key.unit(d) == 1, f"it does not reach over several units of a window along {d}") for d in "mn"]
        out.append((self.windows or not key.units("k"), "it does not step through a window along k"))
        for (name, _), state, ok in zip(FUNCTIONS[key.function].operands, key.operands, self.accepts, strict=True):
            out.append((state.memory in ok, f"{name} must be in {' or '.join(ok)}, not {state.memory}"))
        return out

    def conditions(self, key: TableKey, dims: Dims, left: Mapping[str, Any], target: Target) -> Sequence[Condition]:
        """No kernel runs across panels, or over batches."""
        out: list[Condition] = [(dims["b"] == 1, "tile b by 1 first")]
        for dim in ("m", "k", "n"):
            width = key.panel_width(dim)
            if width > 1:
                out.append((dims[dim] <= width, _crosses(dim, dims[dim], width)))
        return out

    def panels(self, key: TableKey, operand: int, target: Target) -> Sequence[Form]:
        """The forms of panels that it wants of input `operand`, where it could still come to run below `key`."""
        return ()

    def traffic(self, key: TableKey, dims: Dims, target: Target) -> Mapping[tuple[str, str], Any]:
        """Operands that are still in L2 come to L1 as the kernel reads them."""
        inputs = [i for i in range(len(key.operands) - 1) if key.operands[i].memory == "L2"]
        return {("L2", "L1"): sum(footprint(key, i, dims).lines * LINE for i in inputs)} if inputs else {}

    def node(self, bodies: Sequence[Node]) -> Node:
        return Kernel(self.name)

    def label(self) -> str:
        return f"kernel {self.name}"


def _crosses(dim: str, size: Any, width: int) -> Callable[[], str]:
    return lambda: f"{dim}={size} reaches across a panel of {width}"


def streamed(key: TableKey, operand: int, dims: Dims, target: Target, touched: Any) -> tuple[Any, Any]:
    """An operand that is still in L2 comes to L1 as the kernel reads it: (cycles for which that lasts at least, cycles
    that it adds). `touched`: element accesses, which is how many lines are fetched where the tile's rows fight over the
    sets of L1."""
    state = key.operands[operand]
    if state.memory != "L2":
        return 0, 0.0
    fp: Footprint = footprint(key, operand, dims)
    lines = fp.lines
    if state.window is not None and operand == 0 and state.layout.innermost == 1:
        # The kernel goes from row to row.
        return lines, l1_cycles(key, operand, fp, target)
    if fp.stride is not None:
        # At a time it needs one line of every row.
        front = replace(fp, row_lines=1, lines=fp.rows)
        thrashes = front.occupied(target.l1.sets) > target.l1.lines
        lines = thrashes * touched + (1 - thrashes) * lines
        fp = replace(fp, row_lines=lines / fp.rows, lines=lines)
    least = lines * target.costs.l2_line
    if operand == 1 and fp.stride is not None:
        least = least + fp.rows * (target.costs.page_row if fp.stride >= PAGE else target.costs.row_line)
    return least, l1_cycles(key, operand, fp, target)


def vector_cycles(work: Any, target: Target, *streams: tuple[Any, Any]) -> Any:
    """Cycles of a vector kernel that computes for `work` cycles while operands are streamed to it: lines arrive beside
    the arithmetic, unless they take longer than it."""
    busy = maximum(work, sum(least for least, _ in streams)) * target.costs.kernel_scale
    return busy + sum(cycles for _, cycles in streams)


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
        if any(o.layout.group > 1 for o in key.operands) or _pair_kernel(key, target):
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
        return cycles + bool(rhs.dtype) * vectors * narrow.vector + bool(lhs.dtype) * dims["m"] * narrow.scalar

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
        lhs = key.operands[0]
        if not lhs.layout.is_packed:
            # A few rows in pages of their own are streams that hardware foresees.
            far_apart = lhs.stride is not None and lhs.stride >= PAGE
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
        cycles = vector_cycles(cycles, target, lhs, rhs)
        return fixed(cycles + m * n * (c.horizontal + 2 * chains) + c.call)


#: Instructions for groups that are under way at once: the longest takes six cycles, and two start in each.
PAIRS_IN_FLIGHT = 12


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


class PairKernel(KernelAction):
    """m x n register tile; every step takes a group of k, whose products one instruction adds up: it loads the vectors
    of a row of groups of rhs and broadcasts groups of lhs. What k lacks to whole groups counts as zeros.
    """

    #: Elements in a group, and the dtypes of the inputs (lhs, rhs) as the instruction takes them.
    group: ClassVar[int]
    inputs: ClassVar[tuple[tuple[str, str], ...]]
    accumulates: ClassVar[str]
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
        if self != _pair_kernel(key, target):
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
        out.append((dims["n"] <= width, _crosses("n", dims["n"], width)))
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
    groups = (1, 2)
    inputs = (("bf16", "bf16"),)
    accumulates = "f32"


class DpBusd(PairKernel):
    """i8 and u8 in i32, exact. Of two signed inputs lhs is taken as unsigned, 128 too large, and 128 times the sum of
    rhs is subtracted: a row more."""

    name = "dpbusd"
    summary = "register tile of 8-bit quads: loads rows of rhs quads, broadcasts quads of lhs, vpdpbusd"
    group = 4
    groups = (1, 4)
    inputs = (("u8", "i8"), ("i8", "u8"), ("i8", "i8"))
    accumulates = "i32"

    def more(self, key: TableKey) -> tuple[int, int]:
        return (1, 2) if key.dtype_of(0) == key.dtype_of(1) else (0, 0)


class MaddWd(PairKernel):
    """i16 in i32, wrapping around; exact for what was widened from 8 bits while it was packed."""

    name = "maddwd"
    summary = "register tile of i16 pairs: loads rows of rhs pairs, broadcasts pairs of lhs, vpmaddwd"
    group = 2
    groups = (1, 2)
    inputs = (("i16", "i16"),)
    accumulates = "i32"

    def wanted(self, key: TableKey, operand: int) -> tuple[str, ...]:
        return ("i16",) if key.dtype_of(operand) in ("i8", "u8", "i16") else ()

    def more(self, key: TableKey) -> tuple[int, int]:
        return 0, 1


#: In order of preference: the first that an operand's dtypes allow is the one that operands are packed for.
PAIR_KERNELS = (DpBf16(), DpBusd(), MaddWd())
DOT_KERNELS = (DotDpBf16(), DotDpBusd(), DotFma())


def _pair_kernel(key: TableKey, target: Target) -> PairKernel | None:
    """The kernel for groups that could come to run below `key`, if it is faster than multiply-adds of what is widened:
    other panels are not tried then, or else these are not."""
    return next((k for k in PAIR_KERNELS if k.runs_on(key, target) and k.pays(target)), None)


class Scalar(KernelAction):
    """Scalar multiply-adds, for whatever lies however."""

    name = "scalar"
    summary = "scalar multiply-add loops, any strides"
    accepts = (CACHES, CACHES, CACHES)
    groups = (1, 2, 4)
    windows = True

    def cost(self, key: TableKey, dims: Dims, target: Target) -> Any:
        m, k, n = dims["m"], dims["k"], dims["n"]
        # A float first: the product of three large sizes is no int64.
        cycles = target.costs.call + target.costs.scalar_fma * m * n * k
        cycles = cycles + streamed(key, 0, dims, target, m * k)[1]
        return fixed(cycles + streamed(key, 1, dims, target, k * n)[1])
