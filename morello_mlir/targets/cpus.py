"""CPUs by LLVM's names: which base target each runs, and its caches. Sizes are public data sheets' figures."""

from __future__ import annotations

from dataclasses import dataclass

from .base import Target
from .zen5 import ZEN5


@dataclass(frozen=True, slots=True)
class Sold:
    """Which processors are of one kind, as Linux names them in /proc/cpuinfo: vendor, CPU family, and models (none: all
    of that family)."""

    vendor: str
    family: int
    models: tuple[range, ...] = ()

    def holds(self, identity: tuple[str, str, str, str]) -> bool:
        """Whether a processor of that vendor, family, model and stepping ('' where not told) is one of them."""
        vendor, family, model, _ = identity
        if (vendor, family) != (self.vendor, str(self.family)):
            return False
        return not self.models or (model.isdigit() and any(int(model) in r for r in self.models))


@dataclass(frozen=True, slots=True)
class Cpu:
    """base: the name of the target whose code it runs. own: that target with costs measured on this CPU, where they
    were. sold: how a host tells that it is one, where that matters. l1, l2: KiB of data cache a core, and their
    ways: schedules are planned for the sizes of the class (targets/geometry.py).

    fma_per_cycle: whole-vector multiply-adds that start per cycle. broadcast_slots: how many of these a broadcast load
    displaces that is an instruction of its own; one that is folded into a multiply-add is free. flags: what it has
    beyond the base target that kernels for narrow element types use, as Linux spells it. bf16_per_cycle: whole-vector
    dot products of bf16 pairs that start per cycle. Rates are the own target's where there is one.
    """

    base: str
    l1: int
    l2: int
    l1_ways: int = 8
    l2_ways: int = 8
    fma_per_cycle: float = 2.0
    broadcast_slots: float = 0.0
    flags: tuple[str, ...] = ()
    bf16_per_cycle: float = 0.5
    own: Target | None = None
    sold: Sold | None = None


_VNNI = ("avx512_vnni",)
_BF16 = ("avx512_vnni", "avx512_bf16")
_AMX = (*_BF16, "amx_tile", "amx_bf16", "amx_int8")

#: Zen 5 with vector units of 64 bytes: servers, desktops, large notebooks. In small ones they are half as wide.
_ZEN5 = Sold("AuthenticAMD", 26, (range(0x20), range(0x40, 0x50), range(0x70, 0x78)))

CPUS = {
    "haswell": Cpu("avx2", 32, 256),
    "broadwell": Cpu("avx2", 32, 256),
    "skylake": Cpu("avx2", 32, 256, l2_ways=4),
    "alderlake": Cpu("avx2", 48, 1280, l1_ways=12, l2_ways=10),
    "raptorlake": Cpu("avx2", 48, 2048, l1_ways=12, l2_ways=16),
    "meteorlake": Cpu("avx2", 48, 2048, l1_ways=12, l2_ways=16),
    "arrowlake": Cpu("avx2", 48, 3072, l1_ways=12, l2_ways=12),
    "znver1": Cpu("avx2", 32, 512),
    "znver2": Cpu("avx2", 32, 512),
    "znver3": Cpu("avx2", 32, 512),
    "znver4": Cpu(
        *("avx512", 32, 1024),
        fma_per_cycle=1.0,
        broadcast_slots=0.5,
        flags=_BF16,
        bf16_per_cycle=1.0,
        sold=Sold("AuthenticAMD", 25),
    ),
    "znver5": Cpu("avx512", 48, 1024, l1_ways=12, l2_ways=16, flags=_BF16, own=ZEN5, sold=_ZEN5),
    "skylake-avx512": Cpu("avx512", 32, 1024, l2_ways=16),
    "cascadelake": Cpu("avx512", 32, 1024, l2_ways=16, flags=_VNNI),
    "cooperlake": Cpu("avx512", 32, 1024, l2_ways=16, flags=_BF16),
    "icelake-client": Cpu("avx512", 48, 512, l1_ways=12, fma_per_cycle=1.0, flags=_VNNI),
    "icelake-server": Cpu("avx512", 48, 1280, l1_ways=12, l2_ways=20, flags=_VNNI),
    "tigerlake": Cpu("avx512", 48, 1280, l1_ways=12, l2_ways=20, fma_per_cycle=1.0, flags=_VNNI),
    "rocketlake": Cpu("avx512", 48, 512, l1_ways=12, fma_per_cycle=1.0, flags=_VNNI),
    "sapphirerapids": Cpu("avx512", 48, 2048, l1_ways=12, l2_ways=16, flags=_AMX),
    "emeraldrapids": Cpu("avx512", 48, 2048, l1_ways=12, l2_ways=16, flags=_AMX),
    "graniterapids": Cpu("avx512", 48, 2048, l1_ways=12, l2_ways=16, flags=_AMX),
}
