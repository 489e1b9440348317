"""The loops of a contraction, and which of them are one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import permutations


@dataclass(frozen=True)
class Loop:
    """One loop of a contraction: its role, trip count, and stride in elements per operand (None where absent): of
    the inputs, the output, and those of `then`.

    digits: where it is several loops that one input, `window`, steps through unevenly (see `windows.fold`): trips and
    elements of that input for a step of each but the innermost, whose stride is in `strides`.
    """

    role: str
    size: int
    strides: tuple[int | None, ...]
    digits: tuple[tuple[int, int], ...] = ()
    window: int | None = None

    @property
    def contiguous(self) -> bool:
        return 1 in self.strides[:3]


def merge_loops(loops: Sequence[Loop]) -> list[Loop]:
    """Drops loops of one trip and merges every two of one role that step through memory as a single loop would."""
    live = [loop for loop in loops if loop.size != 1]
    while True:
        for outer, inner in permutations(live, 2):
            if outer.role == inner.role and _continues(outer, inner):
                at = live.index(inner)
                live[at] = replace(inner, size=outer.size * inner.size)
                live.remove(outer)
                break
        else:
            return live


def _continues(outer: Loop, inner: Loop) -> bool:
    """Whether a step of `outer` is a whole run of `inner`, in every operand that has them."""
    pairs = zip(outer.strides, inner.strides, strict=True)
    return all(o is None or i is None or o == i * inner.size for o, i in pairs)
