"""What nests cost on a machine, in cycles of the core: elementwise ops, loops, and streams by level of memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

#: Levels of memory, innermost first.
LEVELS = ("L1", "L2", "L3", "DRAM")

#: Ops of floats that are calls of a library, element by element.
LIBRARY = ("tan", "atan", "atan2", "rem")
#: Instructions that keep a unit for arithmetic busy, by op, where it is not one.
OP_COUNTS: Mapping[str, float] = {
    "exp": 9,
    "exp2": 9,
    "expm1": 17,
    "log": 29,
    "log2": 34,
    "log10": 34,
    "log1p": 41,
    "tanh": 26,
    "erf": 31,
    "sin": 41,
    "cos": 43,
    "tan": 650,
    "atan": 650,
    "atan2": 650,
    "pow": 128,
    "rem": 650,
    "floor": 2,
    "ceil": 2,
    "round": 2,
    "trunc": 2,
    "roundaway": 5,
    "copysign": 2,
    "max": 2,
    "min": 2,
    "cast": 1,
    "ucast": 1,
    "bitcast": 0,
    "neg": 1,
    "abs": 1,
}


@dataclass(frozen=True, slots=True)
class PerLine:
    """Cycles per cache line, by level."""

    l1: float
    l2: float
    l3: float
    dram: float

    def __iter__(self) -> Iterator[float]:
        return iter((self.l1, self.l2, self.l3, self.dram))

    def at(self, level: str) -> float:
        return {"L1": self.l1, "L2": self.l2, "L3": self.l3, "DRAM": self.dram}[level]


def scaled(table: PerLine, by: float) -> PerLine:
    """`table` with all its figures so many times as large."""
    return PerLine(table.l1 * by, table.l2 * by, table.l3 * by, table.dram * by)


@dataclass(frozen=True)
class Streams:
    """Coefficients of the cost of nests (docs/nests.md), cycles unless said otherwise.

    Per line, by level: read: of a line last touched there; allocate: a store to a line that was not read before;
    touched: to one that was; past: a store past the caches, by where the line is; run: lines that lie apart are not
    foreseen, so this is what each run of neighbours costs; short_run: the same where groups have no sweep. crowd: a
    line of two rows side by side that are pages apart (twice that of four). read_crowded, write_crowded: what a line
    waits for others in its set of L1, for each time that those under way at once fill the set, beyond a share;
    read_again, write_again: the same of lines met again.
    overlap: of compute and memory, the share of the smaller that the larger does not hide; online_overlap: the same in
    online passes, window_overlap in windows of a few lines. past_beside: the share of what is written past the caches
    that takes place beside all else.

    Per vector: arithmetic, loads, stores: an instruction; fma: one of a sum of products; shuffle: one of a square that
    is transposed, or that picks every second element; op: ops that have units of their own, of f32 (f64 takes `double`
    times as long); counts: instructions of the others; tables: registers that tables and constants take of those that
    look numbers up. issue: instructions that start per cycle.

    Per iteration: loop; spill: for each register too many (live: registers for each vector that is computed beside
    others); latency: of an addition to an accumulator; online: of a running maximum with its sums.

    Per group of rows: sweep: setting out on one and leaving it; straight: the same, by vector, where it is no loop;
    ramp: pipelined passes at the ends of a loop, for each group under way; lanes: combining those of a reduction; step:
    a value computed once per row; far_op: one of an op that takes long; block: of an online pass, beside a sweep.
    page: of a page that is not among the last `pages` that were met, in nests that copy whole runs.
    fence: at the end, until what is written past the caches has arrived. Per element: gather, scatter. Per run of an
    output, of half a page or more, that a thread writes beside another's: beside.
    """

    read: PerLine
    allocate: PerLine
    touched: PerLine
    past: PerLine
    run: PerLine
    op: Mapping[str, float]
    crowd: float = 0.0
    short_run: PerLine = PerLine(0.0, 0.0, 0.25, 5.0)
    read_crowded: PerLine = PerLine(0.0, 2.4, 0.86, 1.9)
    read_again: PerLine = PerLine(0.0, 2.5, 3.8, 5.5)
    write_crowded: PerLine = PerLine(0.0, 2.0, 7.0, 12.0)
    write_again: PerLine = PerLine(0.0, 12.5, 12.5, 12.5)
    overlap: float = 0.37
    online_overlap: float = 1.0
    window_overlap: float = 0.37
    past_beside: float = 0.0
    arithmetic: float = 0.5
    fma: float = 0.5
    loads: float = 0.5
    stores: float = 1.0
    shuffle: float = 0.5
    issue: float = 5.0
    double: float = 2.0
    latency: float = 4.0
    online: float = 14.0
    loop: float = 1.0
    sweep: float = 12.0
    straight: float = 4.0
    lanes: float = 10.0
    step: float = 2.0
    far_op: float = 8.0
    gather: float = 1.0
    scatter: float = 1.5
    spill: float = 1.0
    live: float = 1.5
    block: float = 30.0
    ramp: float = 20.0
    fence: float = 450.0
    beside: float = 0.0
    page: float = 0.0
    pages: int = 64
    counts: Mapping[str, float] = field(default_factory=lambda: OP_COUNTS)
    tables: Mapping[str, int] = field(default_factory=dict)


#: Zen 3, 32 bytes a vector. Two vectors make a line.
AVX2_STREAMS = Streams(
    read=PerLine(0.0, 1.06, 1.06, 8.8),
    allocate=PerLine(0.0, 0.28, 5.6, 14.4),
    touched=PerLine(0.0, 0.4, 0.4, 1.6),
    past=PerLine(18.0, 3.0, 7.8, 6.4),
    run=PerLine(0.0, 0.5, 4.0, 20.0),
    op={"div": 5.0, "sqrt": 6.0, "rsqrt": 9.0},
)
#: Emerald Rapids, 64 bytes a vector. Fitted to schedules of softmax (docs/nests.md).
AVX512_STREAMS = Streams(
    read=PerLine(0.0, 2.0, 6.2, 6.2),
    allocate=PerLine(0.04, 3.2, 11.8, 24.0),
    touched=PerLine(0.8, 2.3, 8.8, 16.7),
    past=PerLine(17.0, 12.0, 3.9, 7.4),
    run=PerLine(0.0, 1.0, 10.0, 30.0),
    op={"div": 10.0, "sqrt": 12.0, "rsqrt": 20.0},
    crowd=0.12,
    overlap=0.21,
    window_overlap=0.21,
    arithmetic=0.67,
    fma=0.67,
    loads=0.6,
    stores=1.1,
    shuffle=1.0,
    issue=6.0,
    latency=3.0,
    loop=1.2,
    sweep=8.4,
    lanes=3.9,
    step=0.6,
    far_op=2.3,
    spill=0.43,
    live=2.2,
    ramp=180.0,
    counts={**OP_COUNTS, "exp": 10.6, "max": 1.4, "min": 1.4, "erf": 17} | dict.fromkeys(LIBRARY, 1300),
    tables={"erf": 18},
)
#: Zen 5 with 64-byte units. Fitted to schedules of softmax and layer normalisation (docs/nests.md).
ZEN5_STREAMS = Streams(
    read=PerLine(0.0, 0.986, 1.37, 3.47),
    allocate=PerLine(0.0, 1.61, 3.7, 11.4),
    touched=PerLine(0.0, 0.241, 0.963, 8),
    past=PerLine(7.0, 6.3, 6.6, 10.6),
    run=PerLine(0.0, 1.0, 10.0, 30.0),
    op={"div": 5.0, "sqrt": 7.0, "rsqrt": 12.0},
    crowd=0.12,
    overlap=0.199,
    window_overlap=1.0,
    online_overlap=0.17,
    past_beside=0.74,
    arithmetic=0.224,
    loads=0.546,
    stores=1.34,
    gather=0.68,
    scatter=1.2,
    issue=8.0,
    latency=2.5,
    loop=1.34,
    sweep=32.8,
    lanes=5.43,
    step=0.5,
    far_op=1,
    spill=3.82,
    live=1.13,
    ramp=1,
    online=14,
    block=1,
    beside=300,
    page=4.5,
    counts={**OP_COUNTS, "exp": 14.3, "max": 1.4, "min": 1.4, "erf": 17} | dict.fromkeys(LIBRARY, 1300),
    tables={"erf": 18},
)
