"""Targets: machine descriptions, by name, by CPU, or as the host's. Imports no MLIR."""

from __future__ import annotations

import os
from dataclasses import replace

from ..errors import InputError
from . import calibration
from .avx2 import AVX2
from .avx512 import AVX512
from .base import COST_UNITS, INFINITE, LINE, MAX_COST, Cache, Costs, LineCost, Target, ceil_div, fixed
from .cpus import CPUS, Cpu
from .host import Host, this_host

TARGETS = {t.name: t for t in (AVX2, AVX512)}

#: What target `host` means, where it is not this machine's own: a name, as in `get_target`.
VARIABLE = "MORELLO_TARGET"


def host_target() -> Target:
    """The widest target that this machine runs, with this machine's calibration where there is one.

    Without a calibration it is the named target as it stands, whatever the caches are: its memo is shipped, and the
    geometry alone is worth less than that (docs/decisions/host-target.md).
    """
    chosen = os.environ.get(VARIABLE, "host")
    if chosen not in ("", "host"):
        return get_target(chosen)
    host = this_host()
    base = widest(host)
    found = calibration.load(host.machine_key, base)
    return base if found is None else found.applied(base)


def widest(host: Host) -> Target:
    """The target with the widest vectors that `host` has the instructions for."""
    runnable = [t for t in TARGETS.values() if not missing_features(t, host)]
    return max(runnable or [AVX2], key=lambda t: t.vector_bytes)


def missing_features(target: Target, host: Host | None = None) -> list[str]:
    """Instruction sets that `target` needs and `host` (None: this machine) lacks; empty where it does not say."""
    flags = (host or this_host()).flags
    return [f for f in (f.lstrip("+") for f in target.features) if flags and f not in flags]


def host_runs(target: Target) -> bool:
    """True where this machine has every instruction of `target` (or does not say)."""
    return not missing_features(target)


def check_runs(target: Target) -> None:
    """Raises InputError where code for `target` cannot run on this machine."""
    missing = missing_features(target)
    if missing:
        name = target.cpu or target.name
        raise InputError(f"this machine cannot run code for target '{name}': its CPU has no {', '.join(missing)}")


def get_target(name: str | Target = "host") -> Target:
    """The target called `name`: `host`, `avx2`, `avx512`, or a CPU by LLVM's name. Raises InputError for others."""
    if isinstance(name, Target):
        return name
    if name == "host":
        return host_target()
    if name in TARGETS:
        return TARGETS[name]
    if name in CPUS:
        return cpu_target(name, CPUS[name])
    raise InputError(f"unknown target '{name}' (have host, {', '.join(TARGETS)}, and CPUs: {', '.join(CPUS)})")


def cpu_target(name: str, cpu: Cpu) -> Target:
    """The base target of a CPU with the CPU's own caches, and its name for code generation."""
    base = TARGETS[cpu.base]
    l1, l2 = cpu.l1 * 1024 // LINE, cpu.l2 * 1024 // LINE
    return replace(
        base,
        summary=f"{name}: {base.summary}",
        l1=Cache(l1, l1 // cpu.l1_ways),
        l2=Cache(planned_l2(l2), l2 // cpu.l2_ways),
        l3_bytes=cpu.l3 << 20,
        cpu=name,
    )


def planned_l2(lines: int) -> int:
    """How many of L2's lines schedules may count on: what streams through takes the rest."""
    return lines * 5 // 8 if lines >= 1 << 14 else lines // 2


__all__ = [
    "COST_UNITS",
    "CPUS",
    "INFINITE",
    "LINE",
    "MAX_COST",
    "TARGETS",
    "Cache",
    "Costs",
    "Cpu",
    "LineCost",
    "Target",
    "ceil_div",
    "check_runs",
    "cpu_target",
    "fixed",
    "get_target",
    "host_runs",
    "host_target",
    "missing_features",
    "widest",
]
