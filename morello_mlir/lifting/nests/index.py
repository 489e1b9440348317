"""Where an operand of a nest is read: linear expressions in the dims of an iteration space. No MLIR here.

Reshapes take an index apart; where a dim would have to be two for that, `Split` says so, and whoever builds the nest
starts again with the dim split.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


class Split(Exception):
    """Dim number `dim` must become two: the inner one of size `inner`."""

    def __init__(self, dim: int, inner: int):
        super().__init__(f"dim {dim} by {inner}")
        self.dim, self.inner = dim, inner


class NotLinear(Exception):
    """An index that no linear expression says; the text is the reason."""


@dataclass(frozen=True)
class Index:
    """`base` + the sum of coefficient * dim over `terms`, which are sorted by dim and have no zeros."""

    base: int = 0
    terms: tuple[tuple[int, int], ...] = ()

    @staticmethod
    def of(base: int, terms: Mapping[int, int]) -> Index:
        return Index(base, tuple(sorted((d, c) for d, c in terms.items() if c)))

    @staticmethod
    def dim(number: int) -> Index:
        return Index(0, ((number, 1),))

    @property
    def dims(self) -> frozenset[int]:
        return frozenset(d for d, _ in self.terms)

    def __add__(self, other: Index) -> Index:
        terms = dict(self.terms)
        for d, c in other.terms:
            terms[d] = terms.get(d, 0) + c
        return Index.of(self.base + other.base, terms)

    def times(self, factor: int) -> Index:
        return Index.of(self.base * factor, {d: c * factor for d, c in self.terms})

    def substitute(self, values: Sequence[Index]) -> Index:
        """The expression where every dim d is `values[d]`."""
        total = Index(self.base)
        for d, c in self.terms:
            total += values[d].times(c)
        return total

    def largest(self, sizes: Sequence[int]) -> int:
        """The largest value, for coefficients that are not negative."""
        return self.base + sum(c * (sizes[d] - 1) for d, c in self.terms)

    def __str__(self) -> str:
        """`d0 * 2 + d1 + 3`"""
        parts = [f"d{d}" if c == 1 else f"d{d} * {c}" for d, c in self.terms]
        return " + ".join([*parts, *([str(self.base)] if self.base or not parts else [])])

    @staticmethod
    def parse(text: str) -> Index:
        """Reads what `str` prints. Raises ValueError."""
        base, terms = 0, {}
        for part in text.split("+"):
            name, _, factor = part.strip().partition(" * ")
            if name.startswith("d"):
                terms[int(name[1:])] = int(factor or 1)
            else:
                base = int(name)
        return Index.of(base, terms)


def delinearize(index: Index, shape: Sequence[int], sizes: Sequence[int]) -> tuple[Index, ...]:
    """The indices along dims of `shape`, row-major, of one linear index. sizes: of the dims of the iteration space.

    Raises Split, or NotLinear where no splitting helps.
    """
    out = []
    for size in reversed(shape[1:]):
        index, inner = _divide(index, size, sizes)
        out.append(inner)
    return (index, *reversed(out)) if shape else ()


def _divide(index: Index, size: int, sizes: Sequence[int]) -> tuple[Index, Index]:
    """(quotient, remainder) by `size`."""
    quotient, remainder = {}, {}
    for d, c in index.terms:
        if c % size == 0:
            quotient[d] = c // size
            continue
        if c * sizes[d] > size:
            _split(d, c, size, sizes[d])
        remainder[d] = c
    high, low = divmod(index.base, size)
    rest = Index.of(low, remainder)
    if rest.largest(sizes) >= size:
        raise NotLinear("a reshape takes an index apart that wraps around")
    return Index.of(high, quotient), rest


def _split(dim: int, coefficient: int, size: int, extent: int) -> None:
    inner = size // coefficient
    if coefficient < 0 or size % coefficient or extent % inner or inner in (1, extent):
        raise NotLinear("a reshape takes an index apart at a place where no dim ends")
    raise Split(dim, inner)


def linearize(indices: Sequence[Index], shape: Sequence[int]) -> Index:
    """One row-major index over `shape`."""
    total = Index()
    for index, size in zip(indices, shape, strict=True):
        total = total.times(size) + index
    return total


def dims_of(indices: Iterable[Index]) -> frozenset[int]:
    """The dims on which any of the indices depends."""
    return frozenset(d for index in indices for d in index.dims)


def covers(indices: Sequence[Index], shape: Sequence[int], sizes: Sequence[int]) -> bool:
    """Whether the points of the dims that occur are, one to one, the elements of a tensor of `shape`."""
    seen: set[int] = set()
    for index, size in zip(indices, shape, strict=True):
        run = 1
        for d, c in sorted(index.terms, key=lambda term: term[1]):
            if d in seen or c != run:
                return False
            seen.add(d)
            run *= sizes[d]
        if index.base or run != size:
            return False
    return True


def points(dims: Iterable[int], sizes: Sequence[int]) -> int:
    """How many points there are along `dims`; sizes: of all dims."""
    return math.prod(sizes[d] for d in dims)
