"""Cache sizes that schedules are planned with: a few classes for each target, so that few memos serve many machines.

A machine is of the largest class whose caches it has: what is promised is there (docs/decisions/0003-host.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from .base import LINE, Cache, Target


@dataclass(frozen=True, slots=True)
class Geometry:
    """l1, l2: KiB of data cache a core. l1_sets, l2_sets: of the hardware. l3: MiB that one core can count on; None: as
    the target has it."""

    l1: int
    l2: int
    l1_sets: int
    l2_sets: int
    l3: int | None = None

    def of(self, target: Target) -> Target:
        """`target` with these caches; itself, where it has them."""
        lines = self.l2 * 1024 // LINE
        l1 = Cache(self.l1 * 1024 // LINE, self.l1_sets, target.l1.steps)
        l2 = Cache(planned_l2(lines), self.l2_sets, target.l2.steps)
        l3_bytes = target.l3_bytes if self.l3 is None else self.l3 << 20
        same = (l1, l2, l3_bytes) == (target.l1, target.l2, target.l3_bytes)
        return target if same else replace(target, l1=l1, l2=l2, l3_bytes=l3_bytes)


#: By base target, from small to large.
CLASSES = {
    "avx2": (
        Geometry(32, 256, 64, 512, l3=8),  # Haswell to Skylake
        Geometry(32, 512, 64, 1024, l3=16),  # Zen 1 to 3
        Geometry(48, 1024, 64, 1024, l3=16),  # Alder Lake and later
    ),
    "avx512": (
        Geometry(32, 1024, 64, 1024, l3=32),  # Skylake-X, Cascade Lake; Zen 4
        Geometry(48, 1024, 64, 1024, l3=32),  # Ice Lake, Tiger Lake; Zen 5
        Geometry(48, 2048, 64, 2048, l3=32),  # Sapphire Rapids and later
    ),
}


def class_of(base: str, l1: int, l2: int) -> Geometry | None:
    """The largest class of the target `base` for caches of `l1` and `l2` KiB; None where they are smaller than any."""
    fitting = [g for g in CLASSES[base] if g.l1 <= l1 and g.l2 <= l2]
    return fitting[-1] if fitting else None


def planned_l2(lines: int) -> int:
    """How many of L2's lines schedules may count on: what streams through takes the rest."""
    return lines * 5 // 8 if lines >= 1 << 14 else lines // 2
