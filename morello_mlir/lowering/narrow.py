"""Outputs of few columns under `broadcast_fma`: vectors that hold several k steps, and broadcasts without loads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..actions import is_spread
from ..spec import is_float
from .builder import Builder, Index
from .views import Flat, Operand

#: Of a tile of one vector, whose multiply-adds each take a load of their own, so many rows are loaded in pairs of k
#: steps, which shuffles spread: with the vector of rhs there are then fewer loads than multiply-adds. (Two rows would
#: do; measured, 16^3 has 245 GFLOP/s with two, 260 with three and 264 with six.)
_SPREAD = 6


@dataclass(frozen=True, slots=True)
class Together:
    """`group` k steps of rows of `columns` elements: one vector of rhs, and as many partial sums for each element of
    the output. Each step has `slot` lanes: as many as there are columns where rows of rhs have no gaps between them,
    and a vector is loaded at once."""

    columns: int
    group: int
    slot: int

    @staticmethod
    def of(b: Builder, sizes: Sequence[int], lhs: Operand, rhs: Operand, step: int) -> Together | None:
        """What a register tile of `sizes` (b, m, k, n) can take together, in straight code of `step` k steps; None:
        nothing. Rows of lhs must lie along k; where rows of rhs have gaps, shuffles bring their parts together."""
        n, lanes = sizes[3], b.machine.lanes
        same = lhs.view.dtype == rhs.view.dtype == b.machine.dtype and is_float(b.machine.dtype)
        plain = rhs.view.packed is None and lhs.view.packed is None
        units = rhs.view.has_unit(2) and lhs.view.has_unit(2)
        if not (same and plain and units) or n == 1 or 2 * n > lanes:
            return None
        dense = rhs.view.stride(1) == n
        if not dense and not b.machine.shuffles:
            return None
        slot = n if dense else _power_from(n)
        group = min(lanes // slot, step)
        if step % group or not dense:
            # Loops go in powers of two, and so do parts of vectors.
            group = 1 << (group.bit_length() - 1)
        return Together(n, group, slot) if group > 1 else None

    def steps(
        self,
        b: Builder,
        inputs: tuple[Flat, Flat],
        at: tuple[Index, Index],
        strides: tuple[int, int],
        values: Sequence[str],
        count: int,
    ) -> list[str]:
        """`count` k steps from `at` (offsets in lhs and rhs), without a loop. strides: elements from one row of lhs to
        the next, and of rhs. values: partial sums, a vector a row."""
        (a, w), out = inputs, list(values)
        small = _power_from(self.group)
        picks = [min(lane // self.slot, self.group - 1) for lane in range(b.machine.lanes)]
        for first in range(0, count, self.group):
            width = min(self.group, count - first)
            row = self._rows(b, w, b.add(at[1], first * strides[1]), width, strides[1])
            for r, acc in enumerate(out):
                x = b.vload(a, b.add(at[0], first + r * strides[0]), width, small)
                out[r] = b.fma(b.shuffle(x, x, picks, small, b.machine.dtype), row, acc)
        return out

    def _rows(self, b: Builder, w: Flat, at: Index, count: int, stride: int) -> str:
        """The rows of rhs of `count` k steps from `at`, a slot each; zeros behind them."""
        if stride == self.slot == self.columns:
            return b.vload(w, at, count * self.columns)
        parts = [b.vload(w, b.add(at, i * stride), self.columns, self.slot) for i in range(count)]
        parts += [b.zeros(self.slot)] * (b.machine.lanes // self.slot - count)
        lanes = self.slot
        while len(parts) > 1:
            pairs = zip(parts[::2], parts[1::2], strict=True)
            parts = [b.shuffle(x, y, range(2 * lanes), lanes, b.machine.dtype) for x, y in pairs]
            lanes *= 2
        return parts[0]

    def summed(self, b: Builder, values: Sequence[str], start: Sequence[str]) -> list[str]:
        """`start` and the partial sums of every row, in the first lanes."""
        out = []
        for value, before in zip(values, start, strict=True):
            x, left = _whole(b, value), self.group
            if left & (left - 1) == 0:
                while left > 1:
                    left //= 2
                    x = b.add_vectors(x, self._later(b, x, left))
            else:
                for part in [self._later(b, x, j) for j in range(1, left)]:
                    x = b.add_vectors(x, part)
            out.append(x if before == b.zeros() else b.add_vectors(before, x))
        return out

    def _later(self, b: Builder, x: str, steps: int) -> str:
        """A vector of partial sums with those of `steps` later first."""
        lanes = b.machine.lanes
        picks = [(lane + steps * self.slot) % lanes for lane in range(lanes)]
        return b.shuffle(x, x, picks, lanes, b.machine.dtype)


def _power_from(n: int) -> int:
    """The least power of two that is no less than `n`."""
    return 1 << (n - 1).bit_length()


def _whole(b: Builder, x: str) -> str:
    """`x`, for LLVM something else: it would compute the lanes that a sum of lanes takes first by themselves, in
    multiply-adds of their own."""
    t = b.machine.vector()
    return b.value(f'llvm.call_intrinsic "llvm.arithmetic.fence"({x}) : ({t}) -> {t}')


def spreads(b: Builder, rows: int, vectors: int, lhs_step: int, dtype: str) -> int:
    """Of how many rows of a register tile pairs of elements are loaded and spread; lhs has that stride along k."""
    pairs = dtype == b.machine.dtype == "f32" and lhs_step == 1 and b.machine.shuffles
    # A pair waits in a register for the second step, beside the sums, the vector of rhs and what is spread just now.
    room = max(b.machine.registers - rows - 2, 0)
    return min(_SPREAD, room) if pairs and is_spread(rows, vectors) else 0


def pair(b: Builder, a: Flat, at: Index) -> tuple[str, str]:
    """Two neighbours from `at`, each in all lanes."""
    lanes = b.machine.lanes
    two = b.bitcast(b.vload(a, at, 2, 2), 2, "f32", 1, "f64")
    both = b.value(f"vector.broadcast {two} : vector<1xf64> to {b.machine.vector(lanes // 2, 'f64')}")
    x = b.bitcast(both, lanes // 2, "f64", lanes, "f32")
    low, high = (b.shuffle(x, x, [lane // 2 * 2 + odd for lane in range(lanes)], lanes, "f32") for odd in (0, 1))
    return low, high
