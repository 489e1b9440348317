"""What the machine can do, measured in turns with the libraries: multiply-adds in registers, and reading memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..native import loop
from ..workloads import Data, Workload, aligned
from .base import Built, Peer

#: Accumulators: enough to hide the latency of two multiply-adds a cycle.
CHAINS = 12
#: Vectors read by one turn of the loop.
STREAMS = 16


class _Roofline(Peer):
    module = "llvmlite"

    def __init__(self) -> None:
        self.lanes = 8

    def start(self, threads: int, isa: str) -> None:
        from morello_mlir.targets import get_target

        wide = isa == "avx512" or (isa == "native" and get_target("host").name.startswith("avx512"))
        self.lanes = 16 if wide else 8

    def about(self) -> str:
        return f"vectors of {self.lanes} f32, one thread"


class Fma(_Roofline):
    """Multiply-adds of f32 whose operands stay in registers. One run makes as many operations as the workload."""

    name = "FMA peak"

    def build(self, workload: Workload, data: Data) -> Built | None:
        vector = f"<{self.lanes} x float>"
        names = [f"%a{i}" for i in range(CHAINS)]
        phis = "\n".join(
            f"  {v} = phi {vector} [ {_splat(self.lanes, i)}, %entry ], [ {v}n, %loop ]" for i, v in enumerate(names)
        )
        kind, kinds = f"{vector} @llvm.fma.v{self.lanes}f32", ", ".join([vector] * 3)
        body = "\n".join(f"  {v}n = call {kind}({vector} {v}, {vector} %x, {vector} %y)" for v in names)
        constants = np.zeros((3, self.lanes), np.float32)
        constants[0], constants[1] = 0.9999, 1e-5
        x, y, sink = (f"ptr inttoptr (i64 {row.ctypes.data} to ptr), align 4" for row in constants)
        before = f"  %x = load volatile {vector}, {x}\n  %y = load volatile {vector}, {y}"
        after = "\n".join(f"  store volatile {vector} {v}n, {sink}" for v in names)
        run = loop(before, body, phis=phis, after=after, declare=f"declare {kind}({kinds})", keep=constants)
        turns = workload.operations / (2 * self.lanes * CHAINS)
        return Built(lambda times: run(max(1, round(times * turns))), lambda: None)


class Read(_Roofline):
    """Reading as many bytes as the workload touches, from one buffer of that size."""

    name = "read bandwidth"

    def build(self, workload: Workload, data: Data) -> Built | None:
        step = STREAMS * 4 * self.lanes
        size = max(step, workload.bytes // step * step)
        buffer = aligned((size // 4,), np.float32)
        buffer[:] = 1.0
        vector = f"<{self.lanes} x float>"
        head = "  %at = phi i64 [ 0, %entry ], [ %after, %loop ]\n"
        names = [f"%a{i}" for i in range(STREAMS)]
        phis = head + "\n".join(f"  {v} = phi {vector} [ zeroinitializer, %entry ], [ {v}n, %loop ]" for v in names)
        lines = []
        for i, v in enumerate(names):
            lines += [
                f"  {v}o = add i64 %at, {i * 4 * self.lanes}",
                f"  {v}p = getelementptr i8, ptr inttoptr (i64 {buffer.ctypes.data} to ptr), i64 {v}o",
                f"  {v}l = load {vector}, ptr {v}p, align 32",
                f"  {v}n = fadd {vector} {v}, {v}l",
            ]
        lines += [
            f"  %moved = add i64 %at, {step}",
            f"  %wraps = icmp uge i64 %moved, {size}",
            "  %after = select i1 %wraps, i64 0, i64 %moved",
        ]
        sink = np.zeros(self.lanes, np.float32)
        after = "\n".join(
            f"  store volatile {vector} {v}n, ptr inttoptr (i64 {sink.ctypes.data} to ptr), align 4" for v in names
        )
        run = loop("", "\n".join(lines), phis=phis, after=after, keep=(buffer, sink))
        turns = workload.bytes / step
        return Built(lambda times: run(max(1, round(times * turns))), lambda: None)


def _splat(lanes: int, i: int) -> str:
    return "<" + ", ".join(["float " + f"{i}.0"] * lanes) + ">"


PEERS: tuple[Any, ...] = (Fma(), Read())
