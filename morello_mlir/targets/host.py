"""The machine this runs on, as far as the operating system tells: its CPU and its caches. Never fails."""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")
CACHES = Path("/sys/devices/system/cpu/cpu0/cache")

#: What is believed of a cache, in bytes: beyond it the system (or the hypervisor under it) talks nonsense.
_SANE = {1: (8 << 10, 256 << 10), 2: (128 << 10, 16 << 20), 3: (1 << 20, 1 << 30)}
_LINE = 64
#: glibc's numbers for sysconf; Python knows their names only where they were there when it was built.
_SYSCONF = {1: "SC_LEVEL1_DCACHE_SIZE", 2: "SC_LEVEL2_CACHE_SIZE", 3: "SC_LEVEL3_CACHE_SIZE"}


@dataclass(frozen=True, slots=True)
class CacheSize:
    """A cache of the hardware: bytes, and sets where they are known."""

    size: int
    sets: int | None = None


@dataclass(frozen=True)
class Host:
    """flags: CPU features as Linux spells them. vendor, family, model, stepping, name: of the CPU, '' where not told.
    caches: by level, data or unified; levels that are not told or not believable are missing."""

    flags: frozenset[str]
    identity: tuple[str, str, str, str]
    name: str
    caches: Mapping[int, CacheSize]

    @property
    def machine_key(self) -> str:
        """Tells machines apart that may behave differently: CPU family, model, stepping, and cache geometry."""
        cpu = "-".join(part.lower() or "unknown" for part in self.identity)
        sizes = [f"l{level}={c.size >> 10}k" for level, c in sorted(self.caches.items())]
        return "_".join([platform.machine() or "unknown", cpu, *sizes])


@lru_cache(maxsize=1)
def this_host() -> Host:
    """The host, asked once; its flags are those that this process may use."""
    host = read_host(CPUINFO, CACHES)
    if TILES not in host.flags or tiles_permitted():
        return host
    return replace(host, flags=frozenset(f for f in host.flags if not f.startswith("amx")))


#: The CPU feature that the system has to permit.
TILES = "amx_tile"
#: Linux's numbers for x86-64: the call `arch_prctl`, its request for an extended state, and the state of the tiles.
_ARCH_PRCTL, _REQUEST, _TILE_DATA = 158, 0x1023, 18


@lru_cache(maxsize=1)
def tiles_permitted() -> bool:
    """Whether this process may use tile registers (AMX): asks Linux, which has to make room for them wherever it saves
    registers. The answer holds for all threads and for forked children."""
    if platform.machine() != "x86_64" or platform.system() != "Linux":
        return False
    try:
        call = ctypes.CDLL(None).syscall
    except (OSError, AttributeError):
        return False
    call.restype = ctypes.c_long
    return bool(call(*(ctypes.c_long(n) for n in (_ARCH_PRCTL, _REQUEST, _TILE_DATA))) == 0)


def read_host(cpuinfo: Path, caches: Path) -> Host:
    """A host from the files in which Linux describes it; sizes that these do not tell come from sysconf."""
    fields = _cpu_fields(cpuinfo)
    identity = tuple(fields.get(k, "") for k in ("vendor_id", "cpu family", "model", "stepping"))
    assert len(identity) == 4
    told = _cache_files(caches) or _cache_sysconf()
    sane = {level: c for level, c in told.items() if _SANE[level][0] <= c.size <= _SANE[level][1]}
    return Host(frozenset(fields.get("flags", "").split()), identity, fields.get("model name", ""), sane)


def _cpu_fields(path: Path) -> dict[str, str]:
    """The first processor's fields."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    pairs = (line.split(":", 1) for line in text.split("\n\n", 1)[0].splitlines() if ":" in line)
    return {key.strip(): value.strip() for key, value in pairs}


def _cache_files(folder: Path) -> dict[int, CacheSize]:
    out = {}
    for index in sorted(folder.glob("index*")):
        level, kind = _number(index / "level"), _word(index / "type")
        size = _number(index / "size")
        if level in _SANE and kind in ("Data", "Unified") and size:
            out[level] = CacheSize(size, _number(index / "number_of_sets"))
    return out


def _cache_sysconf() -> dict[int, CacheSize]:
    out = {}
    for level, name in _SYSCONF.items():
        try:
            size = os.sysconf(name)
        except (ValueError, OSError, AttributeError):
            continue
        if size > 0:
            out[level] = CacheSize(size)
    return out


def _word(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _number(path: Path) -> int | None:
    """A number, perhaps with K or M behind it; None where there is none, or it is not positive."""
    text = _word(path)
    unit = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1:], 1)
    digits = text[:-1] if unit > 1 else text
    return int(digits) * unit if digits.isdigit() and int(digits) > 0 else None
