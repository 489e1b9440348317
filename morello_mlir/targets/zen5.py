"""Zen 5 with 64-byte vector units: `avx512` with costs measured on an EPYC of family 26, model 2 (48 KiB L1, 1 MiB L2).

What is not replaced here is what `avx512` says. See docs/cost-model.md.
"""

from __future__ import annotations

from dataclasses import replace

from .avx512 import AVX512
from .base import LineCost, Narrow, Pairs
from .streams import ZEN5_STREAMS

_REGISTERS = 32
#: Tiles of one vector load once for each multiply-add; beside cache misses, which take slots of loads again, that is
#: slower than alone, the more so the taller they are.
_LONE_LOADS, _TALL, _TALL_LOADS = 1.09, 16, 1.1


def _kernel_table() -> dict[tuple[int, int], float]:
    """Cycles per k step of every register tile that fits: two multiply-adds start in a cycle, and two loads. Measured
    tiles lie within 0.1 of that rule but for those of few accumulators, which the latency binds."""
    tiles = [(m, v) for v in range(1, _REGISTERS) for m in range(1, _REGISTERS) if m * v + v < _REGISTERS]
    slower = {(m, 1): _TALL_LOADS if m >= _TALL else _LONE_LOADS for m in range(1, _REGISTERS)}
    loads = {(m, v): (m + v) / 2 * slower.get((m, v), 1.0) + 0.1 for m, v in tiles}
    return {(m, v): round(max(4.0, m * v / 2 + 0.08, loads[m, v]), 2) for m, v in tiles}


# Measured in register tiles whose panels are in L1. All of these instructions start twice a cycle, as multiply-adds of
# f32 do, and so do multiplications of i32 and i64; vectors and elements are widened beside the multiply-adds.
#: No AMX.
_NARROW = Narrow(
    vector=0.15,
    scalar=0.3,
    integer=1.17,
    round=2.0,
    pairs={
        "dpbf16": Pairs(2.0, 6.0, ("+avx512bf16",)),
        "dpbusd": Pairs(2.0, 4.0, ("+avx512vnni",)),
        "maddwd": Pairs(2.0, 4.0),
    },
)

# Fitted to a thousand random schedules of f32 products at eleven sizes (docs/cost-model.md). Lines from L2 and L3
# arrive beside the arithmetic, and are waited for where they do not come fast enough: hence little for each line.
_COSTS = replace(
    AVX512.costs,
    l2_to_l1=LineCost(0.02, 0.1, packed=0.02),
    l2_to_l1_out=LineCost(0.15, 0.25, row=0.5, lone=1.7),
    l2_to_l1_across=LineCost(0.2, 0.2, packed=0.07, row=0.4),
    gl_to_l2=LineCost(0.15, 0.15, packed=0.075, row=1.0, panel=45.0),
    gl_to_l2_out=LineCost(0.35, 0.5, row=0.5, lone=3.0),
    stream_out=LineCost(6.3, 6.3, row=3.0, lone=12.0),
    pack_copy=LineCost(3.8, 3.8, 0.2, row=4.0),
    pack_transpose=LineCost(6.5, 6.5, 0.5, row=4.5),
    pack_away=2.8,
    pack_start=10.0,
    out_vector=0.2,
    call=2.0,
    horizontal=0.0,
    unaligned=1.0,
    unaligned_vector=0.3,
    l2_line=1.55,
    row_line=3.0,
    page_row=9.0,
    half_page_row=8.5,
    l1_wait=1.55,
    l2_wait=2.2,
    store_wait=2.3,
    burst_line=0.8,
    lone_line=0.1,
    spread_step=0.5,
    asked_line=0.05,
    unasked_line=0.1,
    far_stream=1.7,
    far_asked=5.0,
    far_panel=1.5,
    strip_line=5.0,
    # A fork and a join take 0.2 us while the pool's threads spin.
    fork_join=1500.0,
)

ZEN5 = replace(
    AVX512,
    costs=_COSTS,
    kernel_table=_kernel_table(),
    narrow=_NARROW,
    streams=ZEN5_STREAMS,
    shuffles=True,
)
