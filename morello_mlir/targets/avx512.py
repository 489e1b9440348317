"""AVX-512: 32 registers of 64 bytes. Sizes and costs of Sapphire and Emerald Rapids; see docs/cost-model.md."""

from __future__ import annotations

from .base import Cache, Costs, LineCost, Target

AVX512 = Target(
    name="avx512",
    summary="x86-64 with AVX-512 F, VL, BW, DQ",
    vector_bytes=64,
    registers=32,
    l1=Cache(lines=768, sets=64),
    l2=Cache(lines=16384, sets=2048),
    l3_bytes=32 << 20,
    pack_rows=(8, 12),
    pack_vectors=(2, 3),
    costs=Costs(
        l2_to_l1=LineCost(0.2, 0.9, 3.9),
        l2_to_l1_out=LineCost(0.2, 1.06),
        gl_to_l2=LineCost(1.5, 2.5),
        gl_to_l2_out=LineCost(1.5, 4.0),
        far_to_l2=LineCost(6.0, 9.0),
        far_to_l2_out=LineCost(6.5, 10.0),
        pack_copy=LineCost(6.1, 6.1, 3.0),
        pack_transpose=LineCost(10.0, 10.0, 8.7),
        out_vector=1.69,
        out_masked=2.0,
        call=6.0,
        kernel_scale=1.05,
        unaligned=1.5,
        horizontal=8.0,
        scalar_fma=4.0,
    ),
    features=("+avx512f", "+avx512vl", "+avx512bw", "+avx512dq", "+avx512cd", "+avx2", "+fma", "+f16c", "+bmi2"),
)
