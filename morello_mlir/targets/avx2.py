"""AVX2 with FMA: 16 registers of 32 bytes. Fitted on Zen 3 (32 KiB L1, 512 KiB L2); see docs/cost-model.md."""

from __future__ import annotations

from .base import Cache, Costs, LineCost, Narrow, Pairs, Target

AVX2 = Target(
    name="avx2",
    summary="x86-64 with AVX2 and FMA",
    vector_bytes=32,
    registers=16,
    l1=Cache(lines=512, sets=64),
    l2=Cache(lines=4096, sets=1024),
    l3_bytes=16 << 20,
    pack_rows=(4, 6),
    pack_vectors=(2, 3),
    costs=Costs(
        l2_to_l1=LineCost(0.02, 0.64, 3.9, packed=0.02),
        l2_to_l1_out=LineCost(0.0, 1.06),
        l2_to_l1_across=LineCost(0.0, 0.64, 3.9),
        gl_to_l2=LineCost(0.64, 0.80, packed=0.64),
        gl_to_l2_out=LineCost(0.69, 2.3),
        far_to_l2=LineCost(5.0, 8.0, packed=5.0),
        far_to_l2_out=LineCost(5.5, 9.0),
        # Half of what a line takes that comes, and goes back.
        stream_out=LineCost(5.5, 5.5, row=3.0, lone=12.0),
        pack_copy=LineCost(6.1, 6.1, 3.0),
        pack_transpose=LineCost(10.0, 10.0, 8.7),
        out_vector=1.69,
        out_masked=2.0,
        call=4.0,
        kernel_scale=1.07,
        unaligned=1.2,
        horizontal=6.0,
        scalar_fma=4.0,
        far_streams=1.2,
    ),
    kernel_table={
        (1, 1): 3.89,
        (4, 1): 4.33,
        (8, 1): 5.00,
        (12, 1): 9.13,
        (1, 2): 3.97,
        (2, 2): 3.98,
        (3, 2): 3.99,
        (4, 2): 4.04,
        (5, 2): 5.01,
        (6, 2): 6.00,
        (1, 3): 3.97,
        (2, 3): 4.12,
        (3, 3): 4.80,
        (4, 3): 5.96,
        (1, 4): 4.30,
        (2, 4): 4.36,
    },
    narrow=Narrow(vector=1.0, scalar=1.5, integer=2.0, round=7.0, pairs={"maddwd": Pairs(1.5, 6.0)}),
    features=("+avx2", "+fma", "+f16c", "+bmi2"),
)
