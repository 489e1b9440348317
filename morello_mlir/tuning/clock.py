"""The clock by which predicted cycles are seconds, and which machine predictions and measurements are of."""

from __future__ import annotations

from dataclasses import dataclass

from ..targets import Target, host_runs, host_target, this_host

#: Where nothing is known of the machine of a target, in Hz.
ASSUMED = 3e9


@dataclass(frozen=True)
class Clock:
    """hertz; source: where that is from, as words in a sentence; notes: what a reader of predictions must know."""

    hertz: float
    source: str
    notes: tuple[str, ...] = ()


def clock_of(target: Target, gigahertz: float | None = None) -> Clock:
    """The clock for `target`: as given, in GHz; or measured, where this machine is one of its; or assumed."""
    notes = tuple(_notes(target))
    if gigahertz is not None:
        return Clock(gigahertz * 1e9, "as given", notes)
    if not host_runs(target):
        return Clock(ASSUMED, "which is assumed (--clock says another)", notes)
    return Clock(measured_hertz(target), f"at which this machine ({cpu_name()}) runs now", notes)


def _notes(target: Target) -> list[str]:
    """Whether predictions are of this machine."""
    host = host_target()
    # How much of its caches is planned with is another matter.
    if (target.costs, target.kernel_table, target.streams) == (host.costs, host.kernel_table, host.streams):
        return []
    called = target.cpu or target.name
    return [f"Cycles are predicted for {called}; this machine ({cpu_name()}) is another target: here they mean little."]


def cpu_name() -> str:
    """What this machine's CPU is called."""
    return this_host().name or "an unknown CPU"


def measured_hertz(target: Target) -> float:
    """Cycles in a second of this machine, which runs code for `target`, while it multiplies and adds whole vectors."""
    import numpy as np

    from ..calibration.code import CHAIN, chain_function, compile_functions
    from ..calibration.kernel_table import FMA_LATENCY
    from ..calibration.timing import in_turns

    room = np.zeros(4 * target.vector_bytes, np.uint8)
    code = compile_functions([chain_function("chain", "f32", target)], target)
    seconds = in_turns({"chain": code.repeating("chain", [room.ctypes.data] * 3)}, 9, 0.002)["chain"]
    return CHAIN * FMA_LATENCY / seconds
