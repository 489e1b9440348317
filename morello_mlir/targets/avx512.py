"""AVX-512: 32 registers of 64 bytes. Fitted on Emerald Rapids (48 KiB L1, 2 MiB L2); see docs/cost-model.md."""

from __future__ import annotations

from .base import Cache, Costs, LineCost, Narrow, Pairs, Target, Tiles
from .streams import AVX512_STREAMS

_REGISTERS = 32
#: Cycles that a k step takes beyond its multiply-adds (two start per cycle): a share of the loop. What measurements
#: differ by from one large tile to the next is noise, and would only make the search mix tiles.
_STEP = 0.6
#: What tiles of few accumulators take, which the latency of the multiply-add binds, by how many they are; 4.4 beyond.
_LATENCY_BOUND = {1: 3.9, 2: 4.0, 3: 4.2, 4: 4.3}
#: Loads start two per cycle. Measured alone, a tall tile reaches that; beside cache misses, which take the slots of
#: loads again, it does not: 24 x 1 vectors made 197x768x768 and 128x768x768 25 % slower than 6 x 4.
_LOADS = 1.0
#: Tiles that measure apart from that rule.
_MEASURED = (
    {(8, 1): 4.9, (4, 2): 4.8, (5, 2): 5.4, (2, 3): 4.4, (3, 3): 5.1, (2, 4): 4.7}
    | {(5, 5): 12.9, (3, 6): 9.4, (4, 6): 12.5, (3, 7): 10.8, (2, 8): 8.5, (2, 9): 9.5, (2, 10): 10.8}
    | {(1, 7): 4.8, (1, 8): 5.3, (1, 9): 5.8, (1, 10): 6.5, (1, 11): 7.2, (1, 12): 8.1, (1, 13): 9.0}
    | {(1, 14): 9.6, (1, 15): 10.9}
)

#: Tile registers of Emerald Rapids. A multiplication takes 16 cycles of a clock that it lowers, by a fifth.
_TILES = {
    "row": 1.2,
    "load": 16.0,
    "row_line": 1.8,
    "panel_line": 1.6,
    "sums": 130.0,
    "block": 110.0,
    "shapes": 420.0,
}


def _kernel_table() -> dict[tuple[int, int], float]:
    """Cycles per k step of every register tile that fits."""
    tiles = [(m, v) for v in range(1, _REGISTERS) for m in range(1, _REGISTERS) if m * v + v < _REGISTERS]
    table = {(m, v): max(m * v / 2 + _STEP, _LATENCY_BOUND.get(m * v, 4.4)) for m, v in tiles} | _MEASURED
    return {(m, v): max(cycles, (m + v) / 2 * _LOADS) for (m, v), cycles in table.items()}


AVX512 = Target(
    name="avx512",
    summary="x86-64 with AVX-512 F, VL, BW, DQ",
    vector_bytes=64,
    registers=_REGISTERS,
    l1=Cache(lines=768, sets=64),
    # Five eighths of 2 MiB: half made schedules stream from L3 what L2 holds, three quarters promised what it does not.
    l2=Cache(lines=20480, sets=2048),
    l3_bytes=32 << 20,
    # Register tiles of 6 x 4 and 12 x 2 vectors: both fill the registers; which fits better is up to the sizes.
    pack_rows=(6, 12),
    pack_vectors=(2, 4),
    costs=Costs(
        l2_to_l1=LineCost(0.17, 0.2, 0.05, conflict_rows=48, packed=0.1),
        l2_to_l1_out=LineCost(0.15, 0.4),
        l2_to_l1_across=LineCost(0.03, 0.03, 2.0, conflict_rows=12),
        gl_to_l2=LineCost(2.0, 3.0, 1.6, packed=1.0),
        gl_to_l2_out=LineCost(1.2, 2.6, 0.4),
        far_to_l2=LineCost(7.0, 10.0, packed=6.0),
        far_to_l2_out=LineCost(6.5, 10.0),
        # Half of what a line takes that comes, and goes back.
        stream_out=LineCost(6.5, 6.5, row=3.0, lone=12.0),
        pack_copy=LineCost(6.0, 6.0, 2.0),
        pack_transpose=LineCost(7.8, 7.8, 3.1),
        out_vector=0.55,
        out_masked=2.0,
        call=1.7,
        kernel_scale=1.0,
        # Vectors that straddle lines cost loads, of which tall tiles have to spare.
        unaligned=1.1,
        horizontal=3.0,
        scalar_fma=4.0,
        l2_line=1.75,
        burst_line=2.4,
        lone_line=1.0,
        dot_line=0.75,
        asked_line=0.5,
        unasked_line=1.0,
        pack_away=8.0,
    ),
    kernel_table=_kernel_table(),
    # Measured on Emerald Rapids: vdpbf16ps starts every second cycle, so that f32 multiply-adds of widened bf16 are
    # twice as fast; vpdpbusd starts twice a cycle, and reaches three quarters of that in tiles.
    narrow=Narrow(
        vector=1.0,
        scalar=2.0,
        integer=4.0,
        round=7.0,
        pairs={
            "dpbf16": Pairs(0.5, 8.0, ("+avx512bf16",)),
            "dpbusd": Pairs(1.5, 5.0, ("+avx512vnni",)),
            "maddwd": Pairs(1.0, 6.0),
        },
        tiles={
            "amx_bf16": Tiles(**_TILES, features=("+amx-tile", "+amx-bf16")),
            "amx_int8": Tiles(**_TILES, features=("+amx-tile", "+amx-int8")),
        },
    ),
    streams=AVX512_STREAMS,
    features=("+avx512f", "+avx512vl", "+avx512bw", "+avx512dq", "+avx512cd", "+avx2", "+fma", "+f16c", "+bmi2"),
)
