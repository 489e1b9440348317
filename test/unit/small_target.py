"""A machine so small that limits bite on tiny Specs, for tests that enumerate whole spaces."""

from __future__ import annotations

from dataclasses import replace

from morello_mlir.targets import TARGETS, Cache

SMALL = replace(
    TARGETS["avx2"],
    name="small",
    l1=Cache(lines=8, sets=2, steps=4),
    l2=Cache(lines=24, sets=8, steps=4),
    l3_bytes=1 << 12,
    pack_rows=(2,),
    pack_vectors=(1,),
    registers=8,
    kernel_table={},
)

#: The same with threads that pay on tiny Specs.
CHEAP_FORKS = replace(SMALL, name="cheap forks", costs=replace(SMALL.costs, fork_join=10.0))
