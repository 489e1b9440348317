"""Targets: machine descriptions, by name, by CPU, or as the host's. Imports no MLIR."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import replace
from functools import lru_cache

from ..errors import InputError
from . import calibration
from .avx2 import AVX2
from .avx512 import AVX512
from .base import (
    COST_UNITS,
    CROWDED,
    INFINITE,
    LINE,
    MAX_COST,
    PAGE,
    Cache,
    Costs,
    LineCost,
    Target,
    Tiles,
    ceil_div,
    fixed,
    linux_flag,
)
from .cpus import CPUS, Cpu
from .geometry import CLASSES, Geometry, class_of
from .host import CacheSize, Host, this_host
from .threads import available_cores, thread_count

TARGETS = {t.name: t for t in (AVX2, AVX512)}
#: The caches that these are planned for.
HOME = {name: next(g for g in CLASSES[name] if g.of(t) is t) for name, t in TARGETS.items()}


def host_target() -> Target:
    """The widest target that this machine runs, with this machine's calibration where there is one."""
    host = this_host()
    base = uncalibrated(host)
    found = calibration.load(host.machine_key, base)
    return base if found is None else found.applied(base)


def uncalibrated(host: Host) -> Target:
    """What `host` is before it is calibrated: the target of its CPU, where that has one of its own, else the widest;
    with caches of the largest class that it has, so that a shipped memo answers (docs/decisions/0003-host.md)."""
    target, usual = _costs_of(host)
    here = class_of(target.name, *_sizes(host, usual))
    if here is None:
        return exact(host)
    return target if (here.l1, here.l2) == (usual.l1, usual.l2) else here.of(target)


def exact(host: Host) -> Target:
    """The same with the caches as the system tells them: what is calibrated, and `host-exact`."""
    target, usual = _costs_of(host)
    sizes = _sizes(host, usual)
    if sizes == (usual.l1, usual.l2):
        return target
    told = host.caches.get(1), host.caches.get(2)
    sets = (_sets(t, default) for t, default in zip(told, (usual.l1_sets, usual.l2_sets), strict=True))
    return Geometry(*sizes, *sets).of(target)


def _costs_of(host: Host) -> tuple[Target, Geometry]:
    """The target with the costs, kernels and flags of `host`, and the caches that it is planned for."""
    cpu = cpu_of(host)
    if cpu is None:
        target = widest(host)
        return _with_flags(target, host.flags), HOME[target.name]
    return _with_flags(_own_target(cpu), host.flags), geometry_of(cpu)


def _sizes(host: Host, usual: Geometry) -> tuple[int, int]:
    """KiB of L1 and L2: the host's, or the usual ones where it does not tell."""
    l1, l2 = host.caches.get(1), host.caches.get(2)
    return (l1.size >> 10 if l1 else usual.l1), (l2.size >> 10 if l2 else usual.l2)


def _sets(told: CacheSize | None, usual: int) -> int:
    """Sets that are no power of two are not believed."""
    return told.sets if told and told.sets and told.sets & (told.sets - 1) == 0 else usual


def _with_flags(target: Target, flags: Collection[str]) -> Target:
    """`target` with those kernels for narrow element types that a CPU with `flags` has the instructions for."""
    narrow = target.narrow.on(flags)
    return target if narrow == target.narrow else replace(target, narrow=narrow)


def cpu_of(host: Host) -> Cpu | None:
    """The CPU of `host`, where its kernels or costs are other than the base target's: Zen 4 and 5."""
    base = widest(host).name
    return next((c for c in CPUS.values() if c.sold and c.sold.holds(host.identity) and c.base == base), None)


def widest(host: Host) -> Target:
    """The target with the widest vectors that `host` has the instructions for."""
    runnable = [t for t in TARGETS.values() if not missing_features(t, host)]
    return max(runnable or [AVX2], key=lambda t: t.vector_bytes)


def missing_features(target: Target, host: Host | None = None) -> list[str]:
    """Instruction sets that `target` needs and `host` (None: this machine) lacks; empty where it does not say."""
    flags = (host or this_host()).flags
    # A CPU by name has the kernels of that CPU; other targets those of the host.
    needed = (*target.features, *(target.narrow.features if target.cpu else ()))
    return [f for f in map(linux_flag, needed) if flags and f not in flags]


def host_runs(target: Target) -> bool:
    """True where this machine has every instruction of `target` (or does not say)."""
    return not missing_features(target)


def refusal(name: str | Target) -> InputError | None:
    """Why code for that target cannot run on this machine; None where it can."""
    target = get_target(name)
    missing = missing_features(target)
    if not missing:
        return None
    called = target.cpu or target.name
    return InputError(f"this machine cannot run code for target '{called}': its CPU has no {', '.join(missing)}")


def code_for(name: str | Target) -> tuple[str, str]:
    """CPU and features that code generation is told, as LLVM spells them; ('', '') for this machine's own.

    A target without a CPU of its own gets this machine's, tuned for it, if it is one that can run the target.
    """
    target = get_target(name)
    if target.cpu:
        return target.cpu, ""
    return ("", "") if host_runs(target) else ("x86-64", ",".join((*target.features, *target.narrow.features)))


def get_target(name: str | Target = "host") -> Target:
    """The target called `name`: `host`, `avx2`, `avx512`, or a CPU by LLVM's name. Raises InputError for others.

    `host-exact` is the host with the caches just as the system tells them, and not calibrated: no memo is shipped for
    it where they are not those of a class.

    The named targets have those kernels for narrow element types that this machine has the instructions for.

    `host` is what `MORELLO_TARGET` says, if that is set, else the target of this machine.
    """
    if isinstance(name, Target):
        return name
    if name == "host":
        name = os.environ.get("MORELLO_TARGET") or "host"
    if name == "host":
        return host_target()
    if name == "host-exact":
        return exact(this_host())
    if name in TARGETS:
        target = TARGETS[name]
        return _with_flags(target, this_host().flags if host_runs(target) else ())
    if name in CPUS:
        return cpu_target(name, CPUS[name])
    raise InputError(
        f"unknown target '{name}' (have host, host-exact, {', '.join(TARGETS)}, and CPUs: {', '.join(CPUS)})"
    )


@lru_cache(maxsize=1)
def _cpus_by_costs() -> dict[tuple[str, str], str]:
    """The first CPU of each kind that is planned for alike, kernels for narrow element types included."""
    found: dict[tuple[str, str], str] = {}
    for name, cpu in CPUS.items():
        target = cpu_target(name, cpu)
        found.setdefault((target.fingerprint, target.narrow_fingerprint), name)
    return found


def called(target: Target) -> str:
    """What to call a target: as it was asked for, or (of a host) the CPU that it is planned for like."""
    base = TARGETS.get(target.name)
    if target.cpu or (base is not None and base.fingerprint == target.fingerprint):
        return target.cpu or target.name
    return _cpus_by_costs().get((target.fingerprint, target.narrow_fingerprint), target.name)


def cpu_target(name: str, cpu: Cpu) -> Target:
    """The target of a CPU, with its kernels and caches as a host of that kind has them, and its name for code
    generation."""
    target = _with_flags(_own_target(cpu), cpu.flags)
    return replace(target, summary=f"{name}: {TARGETS[cpu.base].summary}", cpu=name)


def _own_target(cpu: Cpu) -> Target:
    """What was measured on a CPU, or else the target whose code it runs with the CPU's kernels; with its caches."""
    target = geometry_of(cpu).of(cpu.own or TARGETS[cpu.base])
    if cpu.own is not None:
        return target
    target = _with_bf16(target, cpu)
    return target if cpu.fma_per_cycle == target.costs.fma_per_cycle else _slower(target, cpu)


def geometry_of(cpu: Cpu) -> Geometry:
    """The caches of a CPU: the sizes of its class, where there is one, and sets of its own."""
    found = class_of(cpu.base, cpu.l1, cpu.l2)
    if found is not None and cpu.sold is None:
        return found
    l1, l2, l3 = (cpu.l1, cpu.l2, None) if found is None else (found.l1, found.l2, found.l3)
    return Geometry(l1, l2, l1 * 1024 // LINE // cpu.l1_ways, l2 * 1024 // LINE // cpu.l2_ways, l3)


def _with_bf16(target: Target, cpu: Cpu) -> Target:
    """`target` with the CPU's own dot products of bf16."""
    pairs = dict(target.narrow.pairs)
    if "dpbf16" not in pairs or pairs["dpbf16"].per_cycle == cpu.bf16_per_cycle:
        return target
    pairs["dpbf16"] = replace(pairs["dpbf16"], per_cycle=cpu.bf16_per_cycle)
    return replace(target, narrow=replace(target.narrow, pairs=pairs))


def _slower(target: Target, cpu: Cpu) -> Target:
    """`target` where fewer multiply-adds start per cycle. If broadcasts compete with them, tiles of one vector pay:
    each broadcast has a single use there, and LLVM folds it into the multiply-add."""
    costs = replace(target.costs, fma_per_cycle=cpu.fma_per_cycle)
    tiles = [(m, v) for v in range(1, target.registers) for m in range(1, target.registers) if not target.spills(m, v)]
    # A tenth of the latency and a fifth of a cycle are what loops measure beyond the rule on other cores.
    least, step = 1.1 * costs.fma_latency, 0.2
    table = {(m, v): max(m * v / cpu.fma_per_cycle + (v > 1) * m * cpu.broadcast_slots + step, least) for m, v in tiles}
    if cpu.broadcast_slots:
        return replace(target, costs=costs, kernel_table=table, pack_rows=(12, 24), pack_vectors=(1, 2))
    return replace(target, costs=costs, kernel_table=table)


def planned_l2(lines: int) -> int:
    """How many of L2's lines schedules may count on: what streams through takes the rest."""
    return lines * 5 // 8 if lines >= 1 << 14 else lines // 2


__all__ = [
    "COST_UNITS",
    "CPUS",
    "CROWDED",
    "INFINITE",
    "LINE",
    "MAX_COST",
    "PAGE",
    "TARGETS",
    "Cache",
    "Costs",
    "Cpu",
    "LineCost",
    "Target",
    "Tiles",
    "available_cores",
    "called",
    "ceil_div",
    "code_for",
    "cpu_of",
    "cpu_target",
    "exact",
    "fixed",
    "get_target",
    "host_runs",
    "host_target",
    "missing_features",
    "refusal",
    "this_host",
    "thread_count",
    "uncalibrated",
    "widest",
]
