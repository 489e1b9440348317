"""Squares of elements: where the vector dim goes across memory, and another dim of a group along it, vectors are
loaded or stored along the latter and transposed in registers, instead of element by element."""

from __future__ import annotations

from collections.abc import Sequence

#: The fewest rows of a square.
SQUARE = 4


def square(strides: Sequence[int], vector: int, counts: Sequence[int], lanes: int) -> tuple[int, int] | None:
    """(dim, width) of the squares of an operand: the dim, not that of the vectors, along which its elements are
    neighbours, and how many at a time; None where there are none, or those along the vector dim are neighbours.

    counts: steps of a group, or of unrolled scan dims, along every dim (vectors along `vector`).
    """
    if strides[vector] < 2:
        return None
    for d, count in enumerate(counts):
        width = min(count & -count, lanes)
        if strides[d] == 1 and d != vector and width >= SQUARE:
            return d, width
    return None


def shuffles(width: int, lanes: int) -> int:
    """Of each vector of `lanes` elements: those of its squares of `width`, and of joining or parting them."""
    squares = lanes // width
    return squares * (width.bit_length() - 1) + squares - 1
