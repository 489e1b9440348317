"""Iteration spaces, and the nests over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from morello_mlir.nests import Body

from ..tables import operand_of
from .index import Index, dims_of
from .structured import Structured


@dataclass(frozen=True)
class Space:
    """An iteration space: sizes of dims, which are scanned, and the root's loops in them."""

    sizes: tuple[int, ...]
    scan: tuple[bool, ...]
    root: tuple[Index, ...]

    @staticmethod
    def of(op: Structured) -> Space:
        live = [d for d, n in enumerate(op.sizes) if n != 1]
        at = {d: i for i, d in enumerate(live)}
        root = tuple(Index.dim(at[d]) if d in at else Index() for d in range(len(op.sizes)))
        return Space(tuple(op.sizes[d] for d in live), tuple(d in op.reduced for d in live), root)

    @property
    def scanned(self) -> tuple[int, ...]:
        return tuple(d for d, s in enumerate(self.scan) if s)

    @property
    def parallel(self) -> frozenset[int]:
        return frozenset(d for d, s in enumerate(self.scan) if not s)

    def split(self, dim: int, inner: int) -> Space:
        """Dim `dim` made two, the second of size `inner`."""
        new = [Index.dim(d + (d > dim)) for d in range(len(self.sizes))]
        new[dim] = Index.of(0, {dim: inner, dim + 1: 1})
        sizes = (*self.sizes[:dim], self.sizes[dim] // inner, inner, *self.sizes[dim + 1 :])
        scan = (*self.scan[: dim + 1], *self.scan[dim:])
        return Space(sizes, scan, tuple(i.substitute(new) for i in self.root))

    def scanning(self, dims: frozenset[int]) -> Space:
        return replace(self, scan=tuple(s or d in dims for d, s in enumerate(self.scan)))

    def with_scan(self, sizes: Sequence[int]) -> Space:
        """With new dims that are scanned."""
        return replace(self, sizes=(*self.sizes, *sizes), scan=(*self.scan, *(True for _ in sizes)))


@dataclass(frozen=True)
class Read:
    """An input of a nest: operand number `operand` of `op` (see `tables`), at `indices`, one for each of its dims: None
    where the body says the place."""

    op: Any
    operand: int
    indices: tuple[Index | None, ...]

    @property
    def value(self) -> Any:
        return operand_of(self.op, self.operand)


@dataclass(frozen=True)
class Written:
    """An output of a nest: result number `result` of `op`, at `indices`."""

    op: Any
    result: int
    indices: tuple[Index, ...]


@dataclass(frozen=True)
class Nest:
    """A nest over `space`. inputs, outputs: the body's, in order. members: the ops that it stands for; copies: those
    that it computes as well, and that stay for others."""

    space: Space
    body: Body
    inputs: tuple[Read, ...]
    outputs: tuple[Written, ...]
    members: tuple[Any, ...]
    copies: tuple[Any, ...] = ()

    @property
    def repeated_reduction(self) -> Any:
        """The op of the first output that is a reduction, where it is one at every point along scan dims: no nest
        writes that, as the reduction has no other name. Else None."""
        first = dict(zip(reversed(self.body.outputs), reversed(self.outputs), strict=True))
        for value, written in first.items():
            if self.body.values[value].reduces and not dims_of(written.indices).isdisjoint(self.space.scanned):
                return written.op
        return None
