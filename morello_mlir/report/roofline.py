"""The limits that the cost model puts on a machine: multiply-adds, and bytes from every level of memory."""

from __future__ import annotations

from dataclasses import dataclass

from ..targets import LINE, Target
from ..targets.streams import LEVELS


@dataclass(frozen=True)
class Roofline:
    """peak: operations a cycle, of all threads in multiply-adds of `dtype`. rates: bytes a cycle by level, nearest
    first; levels of one rate together (`L2, L3`)."""

    peak: float
    dtype: str
    rates: dict[str, float]

    def ridge(self, level: str) -> float:
        """Operations a byte from which on the multiply-adds are the limit."""
        return self.peak / self.rates[level]


def roofline(target: Target, threads: int, dtype: str = "f32", peak: float | None = None) -> Roofline:
    """Of so many threads: every one has caches of its own, and L3 serves all; DRAM as many as the model says.

    peak: operations a cycle of one of them in multiply-adds of `dtype`; None: on vectors of it.
    """
    each = target.costs.fma_per_cycle * target.lanes(dtype) * 2 if peak is None else peak
    shared = min(float(threads), target.costs.far_streams)
    rates: dict[str, float] = {}
    for level in LEVELS:
        rate = _rate(target, level) * (shared if level == "DRAM" else threads)
        same = next((name for name, other in rates.items() if abs(rate - other) < 1e-3 * rate), None)
        if same is None:
            rates[level] = rate
        else:
            rates = {f"{name}, {level}" if name == same else name: value for name, value in rates.items()}
    return Roofline(threads * each, dtype, rates)


def _rate(target: Target, level: str) -> float:
    """Bytes a cycle that one thread reads from a level: loads start so often, and lines take so long."""
    loads = LINE / target.vector_bytes * target.streams.loads
    return LINE / max(loads, target.streams.read.at(level))
