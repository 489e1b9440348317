"""Zen 5 with 64-byte vector units: `avx512` with costs measured on an EPYC of family 26, model 2 (48 KiB L1, 1 MiB L2).

What is not replaced here is what `avx512` says. See docs/cost-model.md.
"""

from __future__ import annotations

from dataclasses import replace

from .avx512 import AVX512
from .base import Narrow, Pairs

# vdpbf16ps starts every cycle: twice as often as on the machine that `avx512` was measured on.
_PAIRS = {**AVX512.narrow.pairs, "dpbf16": Pairs(1.0, 8.0, ("+avx512bf16",))}

#: No AMX.
_NARROW: Narrow = replace(AVX512.narrow, pairs=_PAIRS, tiles={})

ZEN5 = replace(
    AVX512,
    costs=replace(AVX512.costs),
    kernel_table=dict(AVX512.kernel_table),
    narrow=_NARROW,
    streams=replace(AVX512.streams),
    shuffles=True,
)
