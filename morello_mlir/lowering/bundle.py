"""Register tiles as kernels see them: the vectors, how k is cut into iterations, and what is asked for on the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..actions import PAIR_KERNELS, STEPS_OF_FOUR
from .builder import Index

#: How many neighbours along k the kernels for groups take at once.
GROUPS = {k.name: k.group for k in PAIR_KERNELS}
#: Multiply-adds up to which the k loop is unrolled as a whole: its addresses are constants then, which costs a
#: multiply-add from memory one micro-operation less, and there is no loop to get out of.
_STRAIGHT = 320


@dataclass(frozen=True, slots=True)
class Ask:
    """What a kernel asks for on the way.

    `broadcast_fma`: the panel that comes after its own. All of the `trips` kernels that read one panel of rhs ask for a
    part of the next, from element `at` of rhs on; or, where `lines` says how many an iteration, of the next panel of
    lhs, from element `at` of lhs on; or, where `steps` says how many k steps ahead, the rows of its own panel; or
    the rows of rhs that it reads, `along` elements further, for the tiles that come after it along n.
    `dot_fma`: the rows of the next tile, from element `at` of lhs on.
    """

    at: Index
    trips: int = 1
    lines: int = 0
    steps: int = 0
    along: int = 0

    @property
    def own(self) -> bool:
        """Whether it goes by what the kernel itself reads: `at` says nothing."""
        return bool(self.steps or self.along)


#: Whether the first step stores (True), all accumulate (False), or an i1 says so at run time (its SSA name).
First = bool | str


@dataclass(frozen=True, slots=True)
class Bundle:
    """An m x n output tile in registers: `rows` x `vectors` of SSA vectors, row by row, along n; the last vector of a
    row has `tail` live lanes."""

    rows: int
    vectors: int
    tail: int
    values: Sequence[str]

    @staticmethod
    def shape(m: int, n: int, lanes: int) -> tuple[int, int, int]:
        """Rows, vectors in a row, and live lanes of the last one."""
        vectors = -(-n // lanes)
        return m, vectors, n - (vectors - 1) * lanes

    def with_values(self, values: Sequence[str]) -> Bundle:
        return Bundle(self.rows, self.vectors, self.tail, values)


def unroll(rows: int, vectors: int, kernel: str = "") -> int:
    """K steps in one iteration of the loop: enough to hide its own instructions, no more than pays for compiling."""
    return (4 if rows * vectors <= STEPS_OF_FOUR else 2) * GROUPS.get(kernel, 1)


def is_straight(rows: int, vectors: int, depth: int) -> bool:
    """Whether a register tile of `depth` k steps has no loop."""
    return rows * vectors * depth <= _STRAIGHT
