"""Zen 5 with 64-byte vector units: `avx512` with costs measured on an EPYC of family 26, model 2 (48 KiB L1, 1 MiB L2).

What is not replaced here is what `avx512` says. See docs/cost-model.md.
"""

from __future__ import annotations

from dataclasses import replace

from .avx512 import AVX512
from .base import Narrow, Pairs
from .streams import ZEN5_STREAMS

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

ZEN5 = replace(
    AVX512,
    # A fork and a join take 0.2 us while the pool's threads spin.
    costs=replace(AVX512.costs, far_stream=1.7, fork_join=1500.0),
    kernel_table=dict(AVX512.kernel_table),
    narrow=_NARROW,
    streams=ZEN5_STREAMS,
    shuffles=True,
)
