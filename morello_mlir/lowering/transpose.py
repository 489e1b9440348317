"""Transposing a block in registers: rows become lanes."""

from __future__ import annotations

from collections.abc import Sequence

from ..spec import dtype_bytes
from .builder import Builder

#: Bytes within which shuffles are cheapest.
BLOCK = 16


def transposed(b: Builder, rows: Sequence[str], lanes: int, dtype: str) -> list[str]:
    """The transpose of `lanes` vectors of `lanes` elements of `dtype` each (a power of two).

    First within 16-byte blocks (unpack instructions), then of the blocks themselves; each step is one shuffle with an
    immediate.
    """
    block = min(lanes, BLOCK // dtype_bytes(dtype))
    groups = [_within_blocks(b, rows[i : i + block], lanes, block, dtype) for i in range(0, lanes, block)]
    out: list[str] = [""] * lanes
    for i in range(block):
        column = [g[i] for g in groups]
        for j, vector in enumerate(_of_blocks(b, column, lanes, block, dtype)):
            out[j * block + i] = vector
    return out


def _within_blocks(b: Builder, rows: Sequence[str], lanes: int, block: int, dtype: str) -> list[str]:
    """`block` rows: lane i of every block of the j-th result is the j-th lane of that block of row i."""
    if block == 1:
        return list(rows)
    if block == 4:
        pairs = [[interleaved(b, rows[i], rows[i + 1], lanes, block, 1, h, dtype) for h in (0, 1)] for i in (0, 2)]
        return [interleaved(b, pairs[0][i], pairs[1][i], lanes, block, 2, h, dtype) for i in (0, 1) for h in (0, 1)]
    # As often as the block halves: rows i and i + block/2 interleaved become rows 2i and 2i + 1.
    half, vectors = block // 2, list(rows)
    for _ in range(block.bit_length() - 1):
        vectors = [
            interleaved(b, vectors[i], vectors[i + half], lanes, block, 1, h, dtype)
            for i in range(half)
            for h in (0, 1)
        ]
    return vectors


def interleaved(b: Builder, x: str, y: str, lanes: int, block: int, unit: int, half: int, dtype: str) -> str:
    """Unpack: in every block, runs of `unit` lanes from the lower (`half` 0) or upper halves of x and y in turn."""
    picks = []
    for start in range(0, lanes, block):
        for run in range(start + half * block // 2, start + (half + 1) * block // 2, unit):
            own = list(range(run, run + unit))
            picks += own + [lanes + p for p in own]
    return b.shuffle(x, y, picks, lanes, dtype)


def _of_blocks(b: Builder, vectors: list[str], lanes: int, block: int, dtype: str) -> list[str]:
    """Vectors of `len(vectors)` blocks each: block i of the j-th result is block j of vector i."""
    count = len(vectors)
    if count == 1:
        return vectors
    even: list[str] = []
    odd: list[str] = []
    for i in range(0, count, 2):
        for phase, out in ((0, even), (1, odd)):
            blocks = range(phase, count, 2)
            picks = [q * block + lane for q in blocks for lane in range(block)]
            picks += [lanes + p for p in picks]
            out.append(b.shuffle(vectors[i], vectors[i + 1], picks, lanes, dtype))
    # Each half now holds every second block of all vectors: the same problem with half as many vectors, on blocks that
    # lie side by side.
    if count == 2:
        return [even[0], odd[0]]
    results: list[str] = [""] * count
    for phase, half in ((0, even), (1, odd)):
        for j, vector in enumerate(_gathered(b, half, lanes, block, dtype)):
            results[2 * j + phase] = vector
    return results


def _gathered(b: Builder, halves: list[str], lanes: int, block: int, dtype: str) -> list[str]:
    """The second and last step for four blocks: of two vectors (a0 a2 b0 b2), (c0 c2 d0 d2), the vectors (a0 b0 c0 d0)
    and (a2 b2 c2 d2)."""
    first, second = halves
    out = []
    for phase in (0, 1):
        picks = [q * block + lane for q in (phase, phase + 2) for lane in range(block)]
        out.append(b.shuffle(first, second, [*picks, *(lanes + p for p in picks)], lanes, dtype))
    return out
