"""Contractions of every shape class beside numpy, interleaved."""

from __future__ import annotations

from typing import Any

from morello_mlir.tools.bench import Row, Workload, measure, table

WORKLOADS = (
    *(Workload(n, n, n) for n in (16, 32, 64, 128, 256, 384, 512, 768, 1024, 2048)),
    *(Workload(*s) for s in ((1000, 1000, 1000), (197, 768, 768), (1001, 1024, 1001))),
    *(Workload(*s) for s in ((128, 768, 768), (16, 2048, 512), (49, 1024, 4096), (64, 1024, 1024), (1000, 37, 53))),
    *(Workload(*s) for s in ((1, 2048, 2048), (2048, 2048, 1), (1, 2048, 16384))),
    *(Workload(512, 512, 512, transposed=t) for t in (("lhs",), ("rhs",), ("lhs", "rhs"))),
    *(Workload(n, n, n, "f64") for n in (64, 512, 1000)),
)


#: Timed on several threads: those large enough for it, and one that must stay with one thread.
SHARED = tuple(Workload(*s) for s in (
    *((n, n, n) for n in (32, 64, 128, 256, 512, 1024, 2048)),
    *((1000, 1000, 1000), (197, 768, 768), (128, 768, 3072), (16, 2048, 512), (1, 2048, 16384)),
))  # fmt: skip


def run(target: str, rounds: int, threads: int = 1) -> list[dict[str, Any]]:
    rows: list[Row] = []
    for workload in WORKLOADS if threads == 1 else SHARED:
        rows.append(measure(workload, target=target, threads=threads, rounds=rounds))
        head, _, line = table(rows[-1:]).splitlines()
        print(line if len(rows) > 1 else f"{head}\n|---|---|---|---|---|\n{line}", flush=True)
    return [row.record() for row in rows]
