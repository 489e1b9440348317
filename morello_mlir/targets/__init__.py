"""Targets: machine descriptions, by name or as the host's. Imports no MLIR."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from ..errors import InputError
from .avx2 import AVX2
from .avx512 import AVX512
from .base import COST_UNITS, INFINITE, LINE, MAX_COST, Cache, Costs, LineCost, Target, ceil_div, fixed

TARGETS = {t.name: t for t in (AVX2, AVX512)}


@lru_cache(maxsize=1)
def _host_flags() -> frozenset[str]:
    """CPU flags as Linux reports them; empty where it does not."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return frozenset()
    flags = (line.split(":", 1)[1].split() for line in text.splitlines() if line.startswith("flags"))
    return frozenset(next(flags, ()))


def host_target() -> Target:
    """The widest target that this machine runs."""
    flags = _host_flags()
    return AVX512 if {"avx512f", "avx512vl", "avx512bw", "avx512dq"} <= flags else AVX2


def host_runs(target: Target) -> bool:
    """True where this machine has every instruction of `target` (or does not say)."""
    flags = _host_flags()
    return not flags or all(f.lstrip("+") in flags for f in target.features)


def get_target(name: str | Target = "host") -> Target:
    """The target called `name` (`host`, `avx2`, `avx512`). Raises InputError for an unknown one."""
    if isinstance(name, Target):
        return name
    if name == "host":
        return host_target()
    try:
        return TARGETS[name]
    except KeyError:
        raise InputError(f"unknown target '{name}' (have host, {', '.join(TARGETS)})") from None


__all__ = [
    "COST_UNITS",
    "INFINITE",
    "LINE",
    "MAX_COST",
    "TARGETS",
    "Cache",
    "Costs",
    "LineCost",
    "Target",
    "ceil_div",
    "fixed",
    "get_target",
    "host_runs",
    "host_target",
]
