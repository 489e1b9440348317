"""What threads cost: a fork and a join, and how much more DRAM gives to two streams than to one."""

from __future__ import annotations

import ctypes
from dataclasses import replace

import numpy as np

from ..runtime import jit, pool
from ..targets import Costs, Target, available_cores
from .code import CHAIN, chain_function, compile_functions
from .kernel_table import FMA_LATENCY
from .timing import in_turns, sample

#: How many times as much as those of empty loops a fork and a join cost: threads do not arrive together, and find
#: their operands in the other core's caches. (Products of 64 to 96 cubed break even.)
ARRIVAL = 5.0
#: A cheaper fork than this is not believed.
LEAST_FORK = 2000.0

#: `forks` makes `times` empty loops of two threads; `reads` has `threads` threads read the `lines` cache lines from
#: `data`, each its part.
_PROGRAM = """
declare void @morello_parallel(ptr, ptr, i64)
define void @nothing(ptr %context, i64 %t) {
  ret void
}
define void @forks(i64 %times) {
  br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %next, %loop ]
  call void @morello_parallel(ptr @nothing, ptr null, i64 2)
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %times
  br i1 %more, label %loop, label %end
end:
  ret void
}
define void @part(ptr %context, i64 %t) {
  %data = load ptr, ptr %context
  %at = getelementptr i64, ptr %context, i64 1
  %lines = load i64, ptr %at
  %first = mul i64 %t, %lines
  %start = getelementptr [64 x i8], ptr %data, i64 %first
  br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %next, %loop ]
  %p = getelementptr [64 x i8], ptr %start, i64 %i
  %a = load volatile <8 x float>, ptr %p, align 32
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %lines
  br i1 %more, label %loop, label %end
end:
  ret void
}
define void @reads(ptr %data, i64 %lines, i64 %threads) {
  %context = alloca [2 x i64]
  store ptr %data, ptr %context
  %each = sdiv i64 %lines, %threads
  %at = getelementptr i64, ptr %context, i64 1
  store i64 %each, ptr %at
  call void @morello_parallel(ptr @part, ptr %context, i64 %threads)
  ret void
}
"""


def measure_threads(target: Target, costs: Costs, rounds: int = 15) -> Costs:
    """`costs` with what threads cost on this machine; as they are where it has one core for us."""
    if available_cores() < 2:
        return costs
    library = jit.load(_PROGRAM, ("forks", "reads"), jit.Options(vectorize=False), None, pool.symbols())
    forks = ctypes.CFUNCTYPE(None, ctypes.c_int64)(library.addresses["forks"])
    reads = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64])(library.addresses["reads"])
    chain = chain_function("chain", "f32", target)
    code = compile_functions([chain], target)
    room = np.zeros(64, np.float32)
    took = in_turns({"fork": forks, "chain": code.repeating("chain", [room.ctypes.data] * 3)}, rounds, 0.002)
    cycles = took["fork"] / took["chain"] * CHAIN * FMA_LATENCY
    return replace(costs, fork_join=max(LEAST_FORK, round(ARRIVAL * cycles)), far_streams=_streams(reads, target))


def _streams(reads, target: Target) -> float:  # type: ignore[no-untyped-def]
    """How many times as fast two threads read what no cache holds, between 1 and 2."""
    data = np.ones(4 * target.l3_bytes, np.int8)
    lines = len(data) // 64 - 1
    at = -data.ctypes.data % 64 + data.ctypes.data
    times = {n: min(sample(lambda _, n=n: reads(at, lines, n), 1) for _ in range(5)) for n in (1, 2)}  # type: ignore[misc]
    return round(min(2.0, max(1.0, times[1] / times[2])), 2)
