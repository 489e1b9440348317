"""What nests cost on a machine, in cycles of the core: elementwise ops, loops, and streams by level of memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

#: Levels of memory, innermost first.
LEVELS = ("L1", "L2", "L3", "DRAM")

#: Instructions that keep a unit for arithmetic busy, by op, where it is not one.
OP_COUNTS: Mapping[str, float] = {
    "exp": 9,
    "exp2": 8,
    "expm1": 13,
    "log": 15,
    "log2": 15,
    "log10": 15,
    "log1p": 18,
    "tanh": 16,
    "erf": 20,
    "sin": 18,
    "cos": 18,
    "tan": 26,
    "atan": 18,
    "atan2": 26,
    "pow": 28,
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

    def at(self, level: str) -> float:
        return {"L1": self.l1, "L2": self.l2, "L3": self.l3, "DRAM": self.dram}[level]


@dataclass(frozen=True)
class Streams:
    """Coefficients of the cost of nests (docs/nests.md).

    read: of a line last touched at a level. allocate: a store to a line that was not read before; touched: to one that
    was; past: a store past the caches, by where the line is. overlap: of compute and memory, the share of the smaller
    that the larger does not hide. arithmetic, loads, stores: cycles per vector instruction. issue: instructions that
    start per cycle. op: cycles per vector of ops that have units of their own, f32 (f64 take `double` times as long).
    latency: of an addition; online: of a step of a running maximum with its sums. loop: of an iteration. sweep: of
    setting out on one and leaving it. lanes: of combining the lanes of a reduction. step: of a value computed once per
    row. far_op: the same for those with units of their own. gather, scatter: of an element. spill: of a register too
    many, per iteration. run: lines that lie apart are not foreseen: what each run of neighbours costs, by level. block:
    of a block of an online pass, beside a sweep. ramp: of pipelined passes at the ends of a loop, per group under way.
    """

    read: PerLine
    allocate: PerLine
    touched: PerLine
    past: PerLine
    run: PerLine
    op: Mapping[str, float]
    overlap: float = 0.37
    arithmetic: float = 0.5
    loads: float = 0.5
    stores: float = 1.0
    issue: float = 5.0
    double: float = 2.0
    latency: float = 4.0
    online: float = 14.0
    loop: float = 1.0
    sweep: float = 12.0
    lanes: float = 10.0
    step: float = 2.0
    far_op: float = 8.0
    gather: float = 1.0
    scatter: float = 1.5
    spill: float = 1.0
    block: float = 30.0
    ramp: float = 20.0
    counts: Mapping[str, float] = field(default_factory=lambda: OP_COUNTS)


#: Zen 3, 32 bytes a vector. Two vectors make a line.
AVX2_STREAMS = Streams(
    read=PerLine(0.0, 1.06, 1.06, 8.8),
    allocate=PerLine(0.0, 0.28, 5.6, 14.4),
    touched=PerLine(0.0, 0.4, 0.4, 1.6),
    past=PerLine(18.0, 3.0, 7.8, 6.4),
    run=PerLine(0.0, 0.5, 4.0, 20.0),
    op={"div": 5.0, "sqrt": 6.0, "rsqrt": 9.0},
)
#: Emerald Rapids, 64 bytes a vector.
AVX512_STREAMS = Streams(
    read=PerLine(0.0, 1.6, 5.0, 8.0),
    allocate=PerLine(0.0, 1.0, 7.0, 14.0),
    touched=PerLine(0.0, 0.6, 1.6, 4.0),
    past=PerLine(16.0, 8.0, 8.0, 8.0),
    run=PerLine(0.0, 1.0, 10.0, 30.0),
    op={"div": 10.0, "sqrt": 12.0, "rsqrt": 20.0},
    sweep=15.0,
    lanes=16.0,
)
