"""The axes of a contraction's output, and how elementwise loops over the same elements step along them.

Pure arithmetic on sizes and strides; no MLIR here.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

from .outcome import NotLifted


@dataclass(frozen=True)
class Axis:
    """One parallel loop of a contraction: its trip count, its role, and its stride in elements in everything that has
    it, by name. What is not named stands still along it."""

    size: int
    role: str
    strides: Mapping[Hashable, int]

    def split(self, inner: int) -> tuple[Axis, Axis]:
        """The axis as two: the steps within runs of `inner`, and those from run to run."""
        outer = {name: stride * inner for name, stride in self.strides.items()}
        return replace(self, size=inner), replace(self, size=self.size // inner, strides=outer)

    def along(self, name: Hashable) -> int:
        return self.strides.get(name, 0)


@dataclass(frozen=True)
class Steps:
    """One loop of an elementwise op: its trip count, and its stride in each of the op's operands."""

    size: int
    strides: tuple[int, ...]

    def split(self, inner: int) -> tuple[Steps, Steps]:
        outer = tuple(stride * inner for stride in self.strides)
        return replace(self, size=inner), Steps(self.size // inner, outer)


def refine(axes: Sequence[Axis], name: Hashable, loops: Sequence[Steps], operand: int) -> list[tuple[Axis, Steps]]:
    """`axes` and `loops` split so that they are the same, where `loops` go through all elements of what is called
    `name`, their operand `operand`. Raises NotLifted where they do not."""
    left = sorted((a for a in axes if a.size != 1), key=lambda a: a.along(name), reverse=True)
    right = sorted((s for s in loops if s.size != 1), key=lambda s: s.strides[operand], reverse=True)
    pairs = []
    while left and right:
        axis, steps = left.pop(), right.pop()
        if axis.along(name) != steps.strides[operand]:
            break
        if axis.size > steps.size and axis.size % steps.size == 0:
            axis, outer = axis.split(steps.size)
            left.append(outer)
        elif steps.size > axis.size and steps.size % axis.size == 0:
            steps, rest = steps.split(axis.size)
            right.append(rest)
        elif axis.size != steps.size:
            break
        pairs.append((axis, steps))
    else:
        if not left and not right:
            return pairs
    raise NotLifted("its loops are not those of the contraction")
