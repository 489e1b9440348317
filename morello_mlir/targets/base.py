"""Machine descriptions: memories, sizes, costs, vector widths and kernels.

A target is data plus its kernels; the compiler core asks it and never names one. Costs are in cycles of the core;
`fixed` turns them into the integers that the search compares (COST_UNITS per cycle), so that equal is equal.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from ..cached import cached_property
from ..spec import dtype_bytes
from .streams import AVX2_STREAMS, Streams

#: Integer cost units in one cycle.
COST_UNITS = 1000
#: The cost of what has no implementation. Tables hold costs as float64: integers up to MAX_COST are exact there, and
#: infinity behaves under sums and products as no integer does.
INFINITE = float("inf")
MAX_COST = 1 << 53
#: Bytes in a cache line.
LINE = 64
#: Row strides that are multiples of this many bytes use few sets of the caches; 4096, a page, is the largest class.
CROWDED = 512
PAGE = 4096


def fixed(cycles):  # type: ignore[no-untyped-def]
    """Cycles (a number or an array) as integer cost units."""
    if isinstance(cycles, (int, float)):
        return round(cycles * COST_UNITS)
    # Beyond MAX_COST nothing is exact, nor asked for; it must only stay an integer, and large.
    return np.minimum(np.rint(np.asarray(cycles) * COST_UNITS), float(1 << 62)).astype(np.int64)


def ceil_div(a, b):  # type: ignore[no-untyped-def]
    """Rounds up; right for ints and for integer arrays."""
    return -(-a // b)


@dataclass(frozen=True, slots=True)
class Cache:
    """A cache as the planner sees it.

    lines: how many lines schedules may count on (less than the hardware has, where other data shares it).
    sets: sets of the hardware cache, for conflicts. steps: into how many equal steps the search divides `lines`.
    """

    lines: int
    sets: int
    steps: int = 16

    @property
    def step(self) -> int:
        return max(1, self.lines // self.steps)


@dataclass(frozen=True, slots=True)
class LineCost:
    """Cycles per cache line moved: rows of 256 bytes or more, shorter rows, packed panels, and what a row stride that
    is a multiple of CROWDED bytes adds where the rows in use span more than `conflict_rows` pages: lines and pages fall
    into few sets of their caches. row: what each row adds that is in a page of its own. lone: what each row of a single
    line adds at strides of CROWDED bytes or more, where nothing foresees the next. panel: what each panel adds."""

    long_rows: float
    short_rows: float
    conflict: float = 0.0
    conflict_rows: int = 0
    packed: float = 0.0
    row: float = 0.0
    lone: float = 0.0
    panel: float = 0.0


@dataclass(frozen=True)
class Costs:
    """Coefficients of the cost model, cycles (docs/cost-model.md says how they were measured)."""

    l2_to_l1: LineCost
    l2_to_l1_out: LineCost
    #: An operand whose rows kernels read side by side: always short rows.
    l2_to_l1_across: LineCost
    gl_to_l2: LineCost
    gl_to_l2_out: LineCost
    #: The same where the goal's operands do not fit the last-level cache.
    far_to_l2: LineCost
    far_to_l2_out: LineCost
    #: An output that is written past the caches, per line.
    stream_out: LineCost
    #: Packing, per line written: rows copied as they lie, and transposed in registers.
    pack_copy: LineCost
    pack_transpose: LineCost
    #: An output vector to registers or back; `out_masked`: what a masked one adds.
    out_vector: float
    out_masked: float
    #: Entering and leaving a kernel.
    call: float
    #: Scales the kernel table (loop overhead, clock).
    kernel_scale: float
    #: A row of the streamed operand that is not aligned to a vector splits lines: factor on the kernel.
    unaligned: float
    #: Per element of the output, reducing a vector of partial sums.
    horizontal: float
    #: A scalar multiply-add.
    scalar_fma: float
    #: Latency of a fused multiply-add, and how many start per cycle; loads per cycle.
    fma_latency: float = 4.0
    fma_per_cycle: float = 2.0
    loads_per_cycle: float = 2.0
    #: Packing by scalar copies (neither dim has unit stride), per element.
    pack_gather: float = 1.5
    #: What each such vector adds to that.
    unaligned_vector: float = 0.0
    #: The least time between two lines that a kernel streams from L2: it hides them behind that much arithmetic only.
    l2_line: float = 0.0
    #: What each row adds to that, where rhs is read in place: `page_row` where rows are pages apart.
    #: Where they are half a page apart, so that every other one falls into the same sets of L1, a row takes no less
    #: than `half_page_row`, however short it is.
    row_line: float = 0.0
    page_row: float = 0.0
    half_page_row: float = 0.0
    #: The same as `l2_line` for an operand that is moved to L1, or to L2 from the last-level cache, beside the
    #: multiply-adds that are done with it there.
    l1_wait: float = 0.0
    l2_wait: float = 0.0
    #: The least time between two stores of a register tile of more than `few_stores` vectors, which come in bursts
    #: where few k steps lie between tiles.
    store_wait: float = 0.0
    few_stores: int = 16
    #: Giving a parallel loop to threads that still spin, and waiting for the last.
    fork_join: float = 6000.0
    #: A line of the sums of one of several threads, to where they are added up.
    sums_line: float = 12.0
    #: How many threads' streams DRAM serves at full speed; L3 serves all.
    far_streams: float = 2.0
    #: Rows that start at lines, read side by side, reach their ends together: what each line costs beyond those of
    #: `burst_rows` rows, which arrive beside the arithmetic.
    burst_line: float = 0.0
    burst_rows: int = 8
    #: The same for each line, where a kernel of one vector reads them: each multiply-add waits for a load of its own
    #: (not where they are no more than `burst_rows` rows, pages apart).
    lone_line: float = 0.0
    #: Tiles of one vector whose broadcasts are shuffles: what a k step takes beyond its multiply-adds.
    spread_step: float = 0.0
    #: What a line of lhs that a kernel of dot products reads from L2 costs beside its arithmetic.
    dot_line: float = 0.0
    #: What a line of rhs's panels in GL costs less than `packed` where one panel comes to L2 alone, which kernels ask
    #: for (see docs/lowering.md), and more where several come together.
    asked_line: float = 0.0
    unasked_line: float = 0.0
    #: Where GL is DRAM: what a line costs less of an operand of which a few long rows are read at once. Each is a
    #: stream of its own then (see docs/lowering.md).
    far_stream: float = 0.0
    #: Where GL is DRAM: what a line of a panel of lhs costs less that comes to L2 alone, while panels stay in the
    #: last-level cache. Kernels ask for the next one (see docs/lowering.md).
    far_asked: float = 0.0
    #: The same for one panel of rhs alone: it is a stream from end to end.
    far_panel: float = 0.0
    #: What a row of rhs in place, of elements that are widened, costs for each line beyond four that a kernel takes of
    #: it. Each line takes several loads then, and hardware foresees only so many.
    strip_line: float = 0.0
    #: Setting out to pack: room for the panels, loops over few rows and their tails.
    pack_start: float = 100.0
    #: Packing to GL: what a line costs beyond packing to L2.
    pack_away: float = 0.0


@dataclass(frozen=True, slots=True)
class Pairs:
    """A kernel whose instruction multiplies and adds groups of neighbours along k.

    per_cycle: how many of these start per cycle (with what they need besides). latency: of one, in cycles. features:
    what the CPU must have, as LLVM spells it; empty where the target has it in any case.
    """

    per_cycle: float
    latency: float
    features: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Tiles:
    """A kernel on tile registers (AMX): each holds 16 rows of 64 bytes. Costs are in cycles.

    row: a multiplication of two tiles, for each row of the first. load: a tile from L1. row_line, panel_line: a line of
    lhs, or of a panel of rhs, from L2, beside the arithmetic. sums: a tile of sums from memory and back. block: to fill
    and drain the pipeline for tiles of sums. shapes: to set shapes of tiles for fewer rows, and those of whole tiles
    again. features: what the CPU must have, as LLVM spells it.
    """

    row: float
    load: float
    row_line: float
    panel_line: float
    sums: float
    block: float
    shapes: float
    features: tuple[str, ...] = ()


@dataclass(frozen=True)
class Narrow:
    """What contractions of narrow element types cost beside those of one type, in cycles, and their own kernels.

    vector: to widen a vector as it is loaded. scalar: to widen an element that is broadcast. integer: a multiply-add of
    i32 vectors, in floating-point ones. round: to narrow a vector of the output. group: share by which bringing
    neighbours together makes packing dearer. pairs, tiles: kernels by name.
    """

    vector: float = 1.0
    scalar: float = 2.0
    integer: float = 3.0
    round: float = 3.0
    group: float = 0.3
    pairs: Mapping[str, Pairs] = field(default_factory=dict)
    tiles: Mapping[str, Tiles] = field(default_factory=dict)

    @property
    def features(self) -> list[str]:
        """What all of the kernels need of the CPU, as LLVM spells it."""
        each = [*(p.features for p in self.pairs.values()), *(t.features for t in self.tiles.values())]
        return list(dict.fromkeys(f for features in each for f in features))

    def on(self, flags: Collection[str]) -> Narrow:
        """Without the kernels that a CPU with `flags` (as Linux spells them) lacks the instructions for."""
        pairs = {n: p for n, p in self.pairs.items() if all(linux_flag(f) in flags for f in p.features)}
        tiles = {n: t for n, t in self.tiles.items() if all(linux_flag(f) in flags for f in t.features)}
        return replace(self, pairs=pairs, tiles=tiles)


_LINUX = {
    "avx512vnni": "avx512_vnni",
    "avx512bf16": "avx512_bf16",
    "avxvnni": "avx_vnni",
    "amx-tile": "amx_tile",
    "amx-bf16": "amx_bf16",
    "amx-int8": "amx_int8",
}


def linux_flag(feature: str) -> str:
    """A CPU feature of LLVM's as Linux spells it."""
    name = feature.lstrip("+")
    return _LINUX.get(name, name)


@dataclass(frozen=True)
class Target:
    """A machine.

    vector_bytes, registers: of the vector unit. pack_rows: panel widths tried for an operand that kernels broadcast;
    pack_vectors: panel widths, in vectors, for one that they stream. kernel_table: cycles per k step of the
    broadcast kernel for (rows, vectors), where measured; `kernel_cycles` fills the rest in. accumulators: dtypes in
    which its kernels add up. narrow: kernels for narrow element types. streams: what nests cost.
    cpu, features: what code generation is told ('' = the host's). shuffles: whether shuffles of vectors run beside
    multiply-adds, and take none of their places.
    """

    name: str
    summary: str
    vector_bytes: int
    registers: int
    l1: Cache
    l2: Cache
    l3_bytes: int
    pack_rows: tuple[int, ...]
    pack_vectors: tuple[int, ...]
    costs: Costs
    dtypes: tuple[str, ...] = ("f32", "f64")
    kernel_table: Mapping[tuple[int, int], float] = field(default_factory=dict)
    cpu: str = ""
    features: tuple[str, ...] = ()
    accumulators: tuple[str, ...] = ("f32", "f64", "i32", "i64")
    narrow: Narrow = field(default_factory=Narrow)
    streams: Streams = AVX2_STREAMS
    shuffles: bool = False

    def lanes(self, dtype: str) -> int:
        """Elements per vector register."""
        return self.vector_bytes // dtype_bytes(dtype)

    def cache(self, memory: str) -> Cache:
        return {"L1": self.l1, "L2": self.l2}[memory]

    @property
    def limits(self) -> dict[str, int]:
        """What a goal without limits of its own may use: registers, and lines in whole steps."""
        out = {"VRF": self.registers}
        for memory in ("L1", "L2"):
            c = self.cache(memory)
            out[memory] = c.lines // c.step * c.step
        return out

    @cached_property
    def kernel_cycles(self) -> np.ndarray:
        """Cycles per k step of a rows x vectors register tile, `[rows, vectors]`; +inf where it would spill.

        Measured entries, made monotone in both directions; between them the closed form of docs/cost-model.md.
        """
        c, regs = self.costs, self.registers
        table = np.full((regs + 1, regs + 1), np.inf)
        for rows in range(1, regs):
            for vectors in range(1, regs):
                if not self.spills(rows, vectors):
                    loads = (rows + vectors) / c.loads_per_cycle
                    table[rows, vectors] = max(c.fma_latency, rows * vectors / c.fma_per_cycle, loads)
        for (rows, vectors), cycles in self.kernel_table.items():
            if not self.spills(rows, vectors):
                table[rows, vectors] = cycles
        for axis in (0, 1):
            table[1:, 1:] = np.where(
                np.isinf(table[1:, 1:]),
                np.inf,
                np.maximum.accumulate(np.where(np.isinf(table), 0, table)[1:, 1:], axis),
            )
        return table

    @cached_property
    def pair_cycles(self) -> Mapping[str, np.ndarray]:
        """By kernel of `narrow.pairs`: cycles per group of k of a rows x vectors register tile, as `kernel_cycles`."""
        return {name: self._pair_table(pairs) for name, pairs in self.narrow.pairs.items()}

    def _pair_table(self, pairs: Pairs) -> np.ndarray:
        rows, vectors = np.ogrid[: self.registers + 1, : self.registers + 1]
        loads = (rows + vectors) / self.costs.loads_per_cycle
        # Where the latency and the rate bind alike, neither is reached.
        bound = ((rows * vectors / pairs.per_cycle) ** 5 + pairs.latency**5) ** 0.2
        cycles = np.maximum(bound, loads)
        fits = rows * vectors + vectors + 1 <= self.registers
        return np.where((rows > 0) & (vectors > 0) & fits, cycles, np.inf)

    def spills(self, rows: int, vectors: int) -> bool:
        """Accumulators, the streamed vectors and a broadcast one do not fit the registers."""
        return rows * vectors + vectors + 1 > self.registers

    @cached_property
    def fingerprint(self) -> str:
        """Changes with everything that changes an answer: memories, sizes, costs, kernels. What only answers for narrow
        element types depend on is in `narrow_fingerprint`."""
        parts = (
            self.vector_bytes,
            self.registers,
            self.l1,
            self.l2,
            self.l3_bytes,
            self.pack_rows,
            self.pack_vectors,
            self.costs,
            self.dtypes,
            sorted(self.kernel_table.items()),
            COST_UNITS,
            *(["shuffles"] if self.shuffles else []),
        )
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]

    @cached_property
    def narrow_fingerprint(self) -> str:
        """Changes with everything that only answers for narrow element types depend on: part of their table keys."""
        n = self.narrow
        own = (sorted(n.tiles.items()),) if n.tiles else ()
        parts = (n.vector, n.scalar, n.integer, n.round, n.group, sorted(n.pairs.items()), self.accumulators, *own)
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:8]
