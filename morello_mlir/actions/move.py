"""`move`: bringing an operand inwards, with or without repacking it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..search.schedule import Move, Node
from ..spec import FUNCTIONS, Layout, Window, dtype_bytes
from ..targets import CROWDED, LINE, PAGE, Costs, LineCost, Target, ceil_div, fixed
from .base import Action, Child, Condition
from .state import Dims, Footprint, OperandState, TableKey, footprint, maximum, minimum

#: Where an operand goes from a memory without repacking; the output, in a function that overwrites it, also to WC.
INWARDS = {"GL": "L2", "L2": "L1", "L1": "VRF", "WC": "VRF"}
#: Bytes of a group of neighbours in a panel.
GROUP_BYTES = 4
#: What packing costs more where panels reach over several lines of a window, and where every second element is taken.
LINES_OF_WINDOW = 1.7
EVERY_SECOND = 2.0
#: Cycles for a vector of a block that is transposed in registers: four shuffles, and what waits for them (measured on
#: Zen 5: a 14 x 32 tile takes some 500 beyond its multiply-adds).
TRANSPOSE = 12.0
#: Elements after which panels must begin at a line of a window again.
LONGEST_PERIOD = 1 << 13
#: Most rows that are read at once as streams: where kernels take a strip of each in turn (caches have about so many
#: places for lines that lie a power of two apart), and where they walk down all of them side by side, which takes more
#: instructions a line.
STREAMS = (8, 2)
#: How deep panels of rhs are that are read again and again, in steps along k, as far as pays; and which part of the
#: last-level cache panels of lhs may take to stay there, beside all that comes by (see `_comes_back`): a fourth.
DEEP, STAYS = 512, 4
#: What packing may turn elements into: dtypes that hold every value.
WIDER = {
    "bf16": ("f32", "f64"),
    "f16": ("f32", "f64"),
    "f32": ("f64",),
    "i8": ("i16", "i32", "i64"),
    "u8": ("i16", "i32", "i64"),
    "i16": ("i32", "i64"),
    "i32": ("i64",),
}


def line_cycles(cost: LineCost, long_rows: Any, stride: int | None, rows: Any = None) -> Any:
    """Cycles per line for rows of that kind, at that row stride class (None: packed). rows: how many are in use (None:
    many)."""
    if stride is None:
        return cost.packed
    cycles = long_rows * cost.long_rows + (1 - long_rows) * cost.short_rows
    if stride < (PAGE if rows is None else CROWDED):
        return cycles
    many = 1 if rows is None else rows * stride > cost.conflict_rows * PAGE
    return cycles + cost.conflict * many


def row_cycles(cost: LineCost, fp: Footprint, stride: int | None) -> Any:
    """Cycles that rows add to their lines, at that row stride class (None: packed, where panels do)."""
    if stride is None:
        return fp.rows * cost.panel
    if stride < CROWDED:
        return 0
    return fp.rows * ((stride >= PAGE) * cost.row + (fp.row_lines <= 1) * cost.lone)


def l1_cycles(key: TableKey, operand: int, fp: Footprint, target: Target) -> Any:
    """Cycles for the lines of an operand from L2 to L1, or of the output one way, in the order in which kernels read
    them: along rows, or across rows where these lie along the reduction."""
    c = target.costs
    state, names = key.operands[operand], key.names(operand)
    if operand == len(key.operands) - 1:
        return _fetched(c.l2_to_l1_out, fp, state.stride)
    across = not state.layout.is_packed and names[state.layout.innermost] in FUNCTIONS[key.function].reduction
    if not across or not state.unit:
        return _fetched(c.l2_to_l1, fp, state.stride)
    cycles = _fetched(c.l2_to_l1_across, replace(fp, long_rows=False), state.stride)
    if key.operands[1].layout.pack_width(2) == 1:
        # Beside single columns come dot products.
        cycles = cycles + fp.lines * c.dot_line
    if state.stride is None or state.stride < target.vector_bytes:
        return cycles
    if key.operands[1].layout.pack_width(2) == target.lanes(key.dtype) and spreads_pairs(key, target):
        # Kernels of one vector: their loads of pairs leave slots for what misses.
        return cycles
    late = maximum(fp.rows - c.burst_rows, 0)
    return cycles + late * fp.row_lines * c.burst_line


def spreads_pairs(key: TableKey, target: Target) -> bool:
    """Whether `broadcast_fma` loads elements of lhs in pairs along k, which shuffles spread, in tall tiles of one
    vector: loads do not bind it then (`morello_mlir/lowering/narrow.py`)."""
    lhs, rhs = key.operands[0], key.operands[1]
    along_k = lhs.layout.innermost == 2 and lhs.unit and not lhs.layout.is_packed
    return target.shuffles and key.dtype == "f32" and not (lhs.dtype or rhs.dtype) and along_k


def _fetched(cost: LineCost, fp: Footprint, stride: int | None) -> Any:
    """Cycles for the lines of a tile, with what its rows add."""
    return fp.lines * line_cycles(cost, fp.long_rows, stride, fp.rows) + row_cycles(cost, fp, stride)


def _too_much(memory: str, amount: Any, left: Any) -> Callable[[], str]:
    return lambda: f"needs {amount} of {memory}, which has {left} left"


@dataclass(frozen=True)
class MoveAction(Action):
    """Operand `operand` (a number) enters `memory`, repacked to `layout` and elements of `dtype` unless these are None.

    Moves are level-synchronous: a cache is entered from the memory just outside it, and L1 only when no operand is left
    in GL. Packing reads from GL and lands in L2, or in GL again. The output goes to registers only straight above a
    kernel.
    """

    operand: int
    memory: str
    layout: Layout | None = None
    dtype: str | None = None
    rank = 1

    def _name(self, key: TableKey) -> str:
        return FUNCTIONS[key.function].operands[self.operand][0]

    def _is_output(self, key: TableKey) -> bool:
        return self.operand == len(key.operands) - 1

    def requires(self, key: TableKey, target: Target) -> Sequence[Condition]:
        state = key.operands[self.operand]
        name, out = self._name(key), self._is_output(key)
        mems = key.memories
        packing = self.layout is not None
        conditions: list[Condition] = [
            (not key.forked, "threads are under way: only a parallel loop may follow"),
            (
                key.is_serial or (packing and self.memory == "GL") or self.memory == "WC",
                "threads have caches of their own: what they share is packed to GL; "
                "for the rest put serial or a parallel tile above",
            ),
            ("VRF" not in mems, "the output is in registers: only a kernel may follow"),
            (not packing or not out, "the output is not repacked"),
            (not packing or not state.layout.is_packed, f"{name} is packed already"),
            (
                not packing or (state.memory == "GL" and self.memory in ("GL", "L2")),
                "packing reads from GL and lands in GL or L2",
            ),
            (
                packing or self.memory in (INWARDS.get(state.memory), "WC"),
                f"{name} is in {state.memory}; without repacking it can only move one memory inwards",
            ),
            (self.memory != "L1" or "GL" not in mems, "L1 is entered only when no operand is left in GL"),
        ]
        if self.memory == "VRF":
            conditions += [
                (out, "only the output is moved to registers (kernels load the others)"),
                ("GL" not in mems, "the output moves to registers only when all operands are in caches"),
                (
                    FUNCTIONS[key.function].accumulates or key.streams,
                    f"{key.function} does not accumulate: put to_accum above",
                ),
            ]
        if self.memory == "WC":
            conditions += self._writes_once(key, target)
        if self.memory == "VRF":
            conditions += [(key.unit(d) == 1, f"{d} goes through several lines of a window") for d in "mn"]
        if packing and state.window is not None:
            conditions.append((key.is_serial, f"{name} has a window, which one thread packs: put serial above"))
            conditions.append(self._keeps_groups(state.window, key))
            conditions.append(self._repeats(state, key))
        if packing:
            conditions += [self._packs_one_matrix_dim(key), self._widens(key), self._groups(key)]
        return conditions

    def _writes_once(self, key: TableKey, target: Target) -> list[Condition]:
        """Rows begin at lines, and nothing is read."""
        state = key.operands[self.operand]
        return [
            (self._is_output(key), "only the output is written past the caches"),
            (
                not FUNCTIONS[key.function].accumulates,
                f"{key.function} adds to its output, which must be read for that",
            ),
            (state.memory == "GL", f"it is in {state.memory}, not in GL"),
            (
                state.unit and state.layout.innermost == 2 and (state.stride or 0) >= LINE and state.window is None,
                "its rows do not begin at lines",
            ),
            (state.dtype is None, f"it is rounded to {state.dtype}"),
        ]

    def _groups(self, key: TableKey) -> Condition:
        """Groups are what one lane of a kernel takes."""
        group = self.layout.group if self.layout else 1
        size = dtype_bytes(self.dtype or key.dtype_of(self.operand)) * group
        return (group == 1 or size == GROUP_BYTES, f"groups have {GROUP_BYTES} bytes, not {size}")

    def _widens(self, key: TableKey) -> Condition:
        """Elements change to a type that holds all of their values."""
        here = key.dtype_of(self.operand)
        ok = self.dtype in (None, here) or self.dtype in WIDER.get(here, ())
        return (ok, f"{self._name(key)} is {here}, whose values {self.dtype} does not hold")

    def _keeps_groups(self, window: Window, key: TableKey) -> Condition:
        """Neighbours in a group are neighbours in memory: they lie in one run of the window."""
        group = self.layout.group if self.layout else 1
        reduction = next(i for i, n in enumerate(key.names(self.operand)) if n in FUNCTIONS[key.function].reduction)
        return (
            all(unit % group == 0 for unit in window.of(reduction)),
            f"{self._name(key)} has a window whose runs are not made of groups of {group}",
        )

    def _repeats(self, state: OperandState, key: TableKey) -> Condition:
        """Where rows are copied as they lie, what panels take of the lines of a window soon repeats: each way is code
        of its own."""
        assert self.layout is not None and state.window is not None
        inner = self.layout.innermost
        width = self.layout.pack_width(inner) or 1
        units = state.window.of(inner) if state.layout.innermost == inner else ()
        ok = all(math.lcm(unit, width) <= LONGEST_PERIOD for unit in units[:1])
        return (ok, f"panels of {width} of {self._name(key)} begin at too many places of its lines")

    def _packs_one_matrix_dim(self, key: TableKey) -> Condition:
        """Only panels along the parallel dim, batch slowest."""
        assert self.layout is not None
        names = key.names(self.operand)
        parallel = next(i for i in (1, 2) if names[i] not in FUNCTIONS[key.function].reduction)
        panels = self.layout.panels
        ok = panels is not None and panels[0] == parallel
        other = next(n for i, n in enumerate(names) if i and i != parallel)
        want = f"[b, {names[parallel]}/p, {other}, {names[parallel]}%p]"
        return (ok, f"{self._name(key)} can be packed as {want} only")

    def conditions(self, key: TableKey, dims: Dims, left: Mapping[str, Any], target: Target) -> Sequence[Condition]:
        out: list[Condition] = [((dims["b"] == 1) | (self.memory == "WC"), "tile b by 1 first")]
        for memory, amount in self.uses(key, dims, target).items():
            out.append((amount <= left[memory], _too_much(memory, amount, left[memory])))
        return out

    def children(self, key: TableKey, dims: Dims) -> Sequence[Child]:
        key = key if self.memory == "WC" else key.plain
        if self.memory == "VRF" and key.streams:
            key = replace(key, function=key.function + "Accum")
        return (Child(1, key.with_operand(self.operand, self.moved(key)), dims),)

    def moved(self, key: TableKey) -> OperandState:
        """Where the operand is afterwards."""
        state = key.operands[self.operand]
        if self.layout is None:
            return replace(state, memory=self.memory)
        dtype = self.dtype or key.dtype_of(self.operand)
        return OperandState(self.memory, self.layout, dtype=None if dtype == key.dtype else dtype)

    def _vectors(self, key: TableKey, dims: Dims, target: Target) -> Any:
        return dims["m"] * ceil_div(dims["n"], target.lanes(key.dtype))

    def uses(self, key: TableKey, dims: Dims, target: Target) -> Mapping[str, Any]:
        if self.memory == "VRF":
            return {"VRF": self._vectors(key, dims, target)}
        if self.memory in ("GL", "WC"):
            return {}
        print_ = footprint(key, self.operand, dims, self.layout, self.dtype)
        return {self.memory: print_.occupied(target.cache(self.memory).sets)}

    def cost(self, key: TableKey, dims: Dims, target: Target) -> Any:
        c = target.costs
        state = key.operands[self.operand]
        if self.memory == "WC":
            return 0
        if self.memory == "VRF":
            return self._streamed_cost(key, dims, target) if key.streams else self._registers_cost(key, dims, target)
        if self.layout is not None:
            fork = 0 if key.is_serial else fixed(c.fork_join)
            return self._pack_cost(key, self.share(key, dims), target) + self._comes_back(key, dims, target) + fork
        out = self._is_output(key)
        fp = footprint(key, self.operand, dims)
        waits = 0 if out else self._waits(key, dims, fp.lines, target)
        if self.memory == "L1":
            return fixed(l1_cycles(key, self.operand, fp, target) * (2 if out else 1) + waits)
        if key.far:
            cost = c.far_to_l2_out if out else c.far_to_l2
        else:
            cost = c.gl_to_l2_out if out else c.gl_to_l2
        cycles = _fetched(cost, fp, state.stride) + waits
        if key.far and not out and state.stride is not None:
            cycles = cycles - self._are_streams(key, dims, fp) * fp.lines * c.far_stream
        if key.far and self.operand == 0 and state.layout.is_packed:
            # Kernels along n ask for the next panel of lhs where one comes alone (docs/lowering.md).
            cycles = cycles - (fp.rows <= 1) * fp.lines * c.far_asked
        if self.operand == 1 and (state.layout.pack_width(2) or 1) > 1:
            together = fp.rows > 1
            asked = (1 - together) * (dims["m"] > max(target.pack_rows))
            stream = (1 - together) * c.far_panel if key.far else 0.0
            cycles = cycles + fp.lines * (together * c.unasked_line - asked * c.asked_line - stream)
        return fixed(cycles * (2 if out else 1))

    def _are_streams(self, key: TableKey, dims: Dims, fp: Footprint) -> Any:
        """Whether the rows of an operand in place are few enough to be streams (see `STREAMS`), and long ones, without
        gaps as far as their stride class tells. Beside panels along the same dim rows are neighbours."""
        state, names = key.operands[self.operand], key.names(self.operand)
        inner = names[state.layout.innermost]
        across = next(n for n in names[1:] if n != inner)
        if any(o.layout.is_packed and across in key.names(i) for i, o in enumerate(key.operands)):
            return 0
        along_k = inner in FUNCTIONS[key.function].reduction
        row = dims[inner] * dtype_bytes(key.dtype_of(self.operand))
        few = (fp.rows > 1) * (fp.rows <= STREAMS[along_k])
        if along_k:
            # Each line meets every row of the other operand: beside several it is waited for as any other.
            few = few * (dims["n" if self.operand == 0 else "m"] <= 1)
        return few * (row >= max(PAGE, state.stride or 0)) * state.unit

    def _waits(self, key: TableKey, dims: Dims, lines: Any, target: Target) -> Any:
        """Cycles for which the multiply-adds wait that are done with an operand of that many lines where it goes: lines
        arrive beside them, but not faster than one in so many cycles."""
        c = target.costs
        line = c.l1_wait if self.memory == "L1" else 0.0 if key.far else c.l2_wait
        if not line:
            return 0
        return maximum(line * lines - self._work(key, dims, target), 0) * c.kernel_scale

    @staticmethod
    def _work(key: TableKey, dims: Dims, target: Target) -> Any:
        """Cycles of the multiply-adds at `dims`."""
        # A float first: the product of three large sizes is no int64.
        return 1.0 * dims["m"] * dims["k"] * dims["n"] / (target.lanes(key.dtype) * target.costs.fma_per_cycle)

    def traffic(self, key: TableKey, dims: Dims, target: Target) -> Mapping[tuple[str, str], Any]:
        source = key.operands[self.operand].memory
        if self.memory == "WC":
            return {}
        if key.streams and self.memory == "VRF":
            return {("VRF", "GL"): footprint(key, self.operand, dims).lines * LINE}
        if self.memory == "VRF":
            amount = self._vectors(key, dims, target) * target.vector_bytes
        else:
            amount = footprint(key, self.operand, dims, self.layout, self.dtype).lines * LINE
        back = {(self.memory, source): amount} if self._is_output(key) else {}
        return {(source, self.memory): amount, **back}

    def share(self, key: TableKey, dims: Dims) -> Dims:
        """What the busiest of the threads packs: whole panels."""
        panels = self.layout.panels if self.layout else None
        if key.is_serial or panels is None:
            return dims
        dim, width, _ = panels
        name = key.names(self.operand)[dim]
        mine = ceil_div(ceil_div(dims[name], width), key.threads) * width
        return {**dims, name: minimum(dims[name], mine)}

    def _registers_cost(self, key: TableKey, dims: Dims, target: Target) -> Any:
        """Loads and stores of the tile; a tail vector is masked, an output without unit stride goes by elements."""
        c, lanes = target.costs, target.lanes(key.dtype)
        state = key.operands[self.operand]
        if not state.unit:
            return fixed(2.0 * dims["m"] * dims["n"] * c.out_vector)
        if state.layout.innermost != 2:
            return self._transposed_cost(dims, lanes, c)
        masked = (dims["n"] % lanes > 0) * dims["m"] * c.out_masked
        vectors = self._vectors(key, dims, target)
        rounded = vectors * target.narrow.round if key.operands[self.operand].dtype else 0
        burst = maximum((vectors > c.few_stores) * vectors * c.store_wait - self._work(key, dims, target), 0)
        return fixed(2 * vectors * c.out_vector + masked + rounded + burst)

    def _streamed_cost(self, key: TableKey, dims: Dims, target: Target) -> Any:
        """Stores of the tile past the caches: nothing is read, and nothing comes back, but for a part of a line."""
        c, fp = target.costs, footprint(key, self.operand, dims)
        parts = (dims["n"] % (LINE // dtype_bytes(key.dtype)) > 0) * fp.rows
        vectors = self._vectors(key, dims, target)
        cycles = vectors * c.out_vector + parts * (c.out_masked + 2 * c.far_to_l2_out.short_rows)
        return fixed(cycles + _fetched(c.stream_out, fp, fp.stride))

    @staticmethod
    def _transposed_cost(dims: Dims, lanes: int, c: Costs) -> Any:
        """As `_registers_cost`, of an output whose neighbours along m are neighbours in memory."""
        m, n = dims["m"], dims["n"]
        vectors = n * ceil_div(m, lanes)
        shuffles = lanes * ceil_div(m, lanes) * ceil_div(n, lanes) * TRANSPOSE
        return fixed(2 * vectors * c.out_vector + shuffles + (m % lanes > 0) * n * c.out_masked)

    def _pack_cost(self, key: TableKey, dims: Dims, target: Target) -> Any:
        """Per line written, or per line's worth of elements read where panels are narrow; and once for setting out."""
        c = target.costs
        state = key.operands[self.operand]
        names = key.names(self.operand)
        elements = dims[names[1]] * dims[names[2]]
        assert self.layout is not None
        if (not state.unit and state.window is None) or self.layout.pack_width(self.layout.innermost) == 1:
            return fixed(elements * c.pack_gather + c.pack_start)
        copies = state.layout.innermost == self.layout.innermost
        cost = c.pack_copy if copies else c.pack_transpose
        rows = row_cycles(cost, footprint(key, self.operand, dims), state.stride) if state.window is None else 0
        written = footprint(key, self.operand, dims, self.layout, self.dtype).lines
        far = c.far_to_l2.long_rows - c.gl_to_l2.long_rows if key.far else 0.0
        # Panels that do not stay in L2 are written back.
        away = c.pack_away if self.memory == "GL" else 0.0
        here = key.dtype_of(self.operand)
        if self.layout.group == 1 and self.dtype in (None, here):
            lines = maximum(written, elements / (LINE // dtype_bytes(here))) * self._pieces(state)
            return fixed(lines * (line_cycles(cost, True, state.stride) + far + away) + rows + c.pack_start)
        # Beside the lines that are written: what is read is converted, and neighbours are brought together.
        read = elements / (LINE // dtype_bytes(here))
        shuffled = 1 + (self.layout.group > 1) * target.narrow.group
        cycles = written * (line_cycles(cost, True, state.stride) * shuffled + away) + read * far
        return fixed(cycles + rows + c.pack_start)

    def _comes_back(self, key: TableKey, dims: Dims, target: Target) -> Any:
        """What panels of lhs in GL cost that do not stay in the last-level cache, where GL is DRAM: asking for them in
        time is of no use then. Each is read at least once for every panel of rhs that fits L2, `DEEP` deep."""
        if self.memory != "GL" or self.operand != 0 or not key.far:
            return 0
        size = dtype_bytes(key.dtype_of(1))
        passes = ceil_div(dims["n"], max(1, target.l2.lines * LINE // (DEEP * size)))
        whole = footprint(key, 0, dims, self.layout, self.dtype).lines
        mine = footprint(key, 0, self.share(key, dims), self.layout, self.dtype).lines
        return fixed((STAYS * whole * LINE > target.l3_bytes) * passes * mine * target.costs.far_asked)

    def _pieces(self, state: OperandState) -> float:
        """How much more than a line of a plain operand one costs that is put together from lines of a window, or from
        every second element."""
        assert self.layout is not None
        if state.window is None:
            return 1.0
        along = state.window.of(self.layout.innermost)
        return (LINES_OF_WINDOW if along else 1.0) * (1.0 if state.unit else EVERY_SECOND)

    def node(self, bodies: Sequence[Node]) -> Node:
        names = FUNCTIONS["MatmulAccum"].operands[self.operand]
        return Move(names[0], self.memory, self.form, bodies[0])

    @property
    def form(self) -> str | None:
        """The layout, and the dtype where that changes, as a schedule says it."""
        if self.layout is None:
            return None
        _, dims = FUNCTIONS["MatmulAccum"].operands[self.operand]
        return self.layout.text(dims) + (f" {self.dtype}" if self.dtype else "")

    def label(self) -> str:
        name, _ = FUNCTIONS["MatmulAccum"].operands[self.operand]
        return f"move {name} to {self.memory}" + (f" as {self.form}" if self.layout else "")


def form_of(text: str, names: Sequence[str]) -> tuple[Layout, str | None]:
    """The layout and, where it says one, the dtype of a schedule's `as`. Raises SpecError."""
    layout, bracket, dtype = text.rpartition("]")
    if not bracket:
        layout, _, dtype = text.partition(" ")
    dtype = dtype.strip()
    if dtype:
        dtype_bytes(dtype)
    return Layout.parse(layout + bracket, names), dtype or None
