"""Operands with borders: around an image a nest reads one and the same value, without a copy that has it there.

A border is along one axis of the image: a point of the nest is at place `start` + the sum of steps * positions there,
and reads memory where that is one of the `extent` places of the axis. Where it is not, for any of an operand's borders,
the point reads the operand's `around`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..errors import SpecError
from ..spec.layout import NUMBER
from .ops import is_float

_TEXT = re.compile(rf"border\s+\[([^\]]*)\]\s+from\s+(-?{NUMBER})\s+of\s+({NUMBER})")


@dataclass(frozen=True, slots=True)
class Border:
    """steps: places that a step along each dim of the nest goes, none of them backwards; start: the place of the first
    point; extent: places that there are, from 0 on."""

    steps: tuple[int, ...]
    start: int
    extent: int

    def __post_init__(self) -> None:
        if any(s < 0 for s in self.steps):
            raise SpecError(f"a border's steps must not be negative: {list(self.steps)}")
        if self.extent < 1:
            raise SpecError(f"a border is of one place or more, not {self.extent}")

    def reach(self, dims: Sequence[int]) -> int:
        """How many places lie between the first point and the last."""
        return sum((n - 1) * s for n, s in zip(dims, self.steps, strict=True))

    def is_met(self, dims: Sequence[int]) -> bool:
        """Whether a nest of these sizes has points outside."""
        return self.start < 0 or self.start + self.reach(dims) >= self.extent

    def inside(self, d: int, dims: Sequence[int]) -> range:
        """The positions along dim `d` at which all points are inside, wherever they are along the other dims."""
        others = sum((n - 1) * s for e, (n, s) in enumerate(zip(dims, self.steps, strict=True)) if e != d)
        low = min(dims[d], -(self.start // self.steps[d]) if self.start < 0 else 0)
        high = (self.extent - 1 - self.start - others) // self.steps[d] + 1
        return range(low, max(low, min(high, dims[d])))

    def moved(self, d: int, by: int) -> Border:
        """As it is from position `by` along dim `d` on."""
        return replace(self, start=self.start + by * self.steps[d])

    def picked(self, kept: Sequence[int]) -> Border:
        """Of the dims `kept`, in that order; there is one step along the others."""
        return replace(self, steps=tuple(self.steps[d] for d in kept))

    def widened(self) -> Border:
        """With one more dim, along which nothing moves."""
        return replace(self, steps=(*self.steps, 0))

    def __str__(self) -> str:
        return f"border {list(self.steps)} from {self.start} of {self.extent}"

    @staticmethod
    def parse(text: str) -> Border | None:
        """Reads what `str` printed; None where it is something else. Raises SpecError."""
        m = _TEXT.fullmatch(text.strip())
        if m is None:
            return None
        steps = m[1].split(",") if m[1].strip() else []
        if not all(re.fullmatch(rf"\s*{NUMBER}\s*", s) for s in steps):
            raise SpecError(f"cannot read the steps of '{text.strip()}'")
        return Border(tuple(int(s) for s in steps), int(m[2]), int(m[3]))


def number_of(text: str, dtype: str) -> float | int:
    """The value of elements of `dtype` that `text` says. Raises SpecError."""
    try:
        return float(text) if is_float(dtype) else int(text)
    except ValueError:
        raise SpecError(f"cannot read '{text}' as {dtype}") from None
