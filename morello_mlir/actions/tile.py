"""`tile` (parallel dims), `split` (the reduction dim), `to_accum` and `exchange`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..search.schedule import Exchange, Node, Split, Tile, ToAccum
from ..spec import FUNCTIONS, is_float
from ..targets import Target
from .base import Action, Child, Condition
from .state import Dims, TableKey


@dataclass(frozen=True)
class TileAction(Action):
    """A loop over `dim` in steps of `size`; sizes that do not divide leave a smaller remainder Spec."""

    dim: str
    size: int
    rank = 2

    @property
    def word(self) -> str:
        return "split" if self.dim in FUNCTIONS["MatmulAccum"].reduction else "tile"

    def requires(self, key: TableKey, target: Target) -> Sequence[Condition]:
        info = FUNCTIONS[key.function]
        width = key.pack_width(self.dim)
        is_batch = self.dim == "b"
        return (
            (self.dim in info.dims, f"{key.function} has no dim '{self.dim}' (have {', '.join(info.dims)})"),
            (
                self.dim not in info.reduction or info.accumulates,
                f"only an accumulating function can be split along {self.dim}: put to_accum above",
            ),
            (self.size % width == 0, lambda: width_reason(key, self.dim)),
            ("VRF" not in key.memories, "the output is in registers: only a kernel may follow"),
            (not key.forked, "threads are under way: only a parallel loop may follow"),
            (
                self.dim not in info.reduction or not key.operands[-1].dtype or not is_float(key.dtype),
                f"the output is rounded to {key.dtype_of(-1)}: only a kernel may add up along {self.dim}",
            ),
            (not is_batch or self.size == 1, "the batch dim is tiled by 1"),
        )

    def conditions(self, key: TableKey, dims: Dims, left: Mapping[str, Any], target: Target) -> Sequence[Condition]:
        return ((dims[self.dim] > self.size, lambda: f"the size must be less than {self.dim}={dims[self.dim]}"),)

    def children(self, key: TableKey, dims: Dims) -> Sequence[Child]:
        size = dims[self.dim]
        rest = size % self.size
        key = key.plain
        return (
            Child(size // self.size, key, {**dims, self.dim: self.size}),
            Child(rest > 0, key, {**dims, self.dim: rest}),
        )

    def node(self, bodies: Sequence[Node]) -> Node:
        kind = Split if self.word == "split" else Tile
        return kind(self.dim, self.size, bodies[0], bodies[1] if len(bodies) > 1 else None)

    def label(self) -> str:
        return f"{self.word} {self.dim} by {self.size}"


def width_reason(key: TableKey, dim: str) -> str:
    """Why tiles of `dim` have to be multiples of `TableKey.pack_width`."""
    width = key.pack_width(dim)
    if key.units(dim):
        return f"{dim} goes through a window in steps of {width}: the size must be a multiple of it"
    return f"{dim} is packed in panels of {width}: the size must be a multiple of it"


@dataclass(frozen=True)
class WithinAction(Action):
    """Sizes that reach over one unit of a window along `dim` (or less): there the operand is as any other. It leaves no
    step."""

    dim: str
    rank = -1

    def requires(self, key: TableKey, target: Target) -> Sequence[Condition]:
        return ((bool(key.units(self.dim)), f"no operand has a window along {self.dim}"),)

    def conditions(self, key: TableKey, dims: Dims, left: Mapping[str, Any], target: Target) -> Sequence[Condition]:
        unit = key.unit(self.dim)
        return ((dims[self.dim] <= unit, f"{self.dim} reaches over more than {unit}"),)

    def children(self, key: TableKey, dims: Dims) -> Sequence[Child]:
        return (Child(1, key.within(self.dim), dims),)

    def node(self, bodies: Sequence[Node]) -> Node:
        return bodies[0]

    def label(self) -> str:
        return f"within {self.dim}"


@dataclass(frozen=True)
class ToAccumAction(Action):
    """The accumulating function, whose first step along the reduction stores: its output need not be cleared.

    It costs nothing: the accumulating Spec is charged for reading its output whether or not the first step skips that.
    """

    def requires(self, key: TableKey, target: Target) -> Sequence[Condition]:
        return (
            (not FUNCTIONS[key.function].accumulates, f"{key.function} already accumulates"),
            (not key.streams, "the output is written once, past the caches"),
            (not key.forked, "threads are under way: only a parallel loop may follow"),
            ("VRF" not in key.memories, f"{key.function} cannot have its output in registers: nothing is in them yet"),
        )

    def children(self, key: TableKey, dims: Dims) -> Sequence[Child]:
        return (Child(1, replace(key, function=key.function + "Accum"), dims),)

    def node(self, bodies: Sequence[Node]) -> Node:
        return ToAccum(bodies[0])

    def label(self) -> str:
        return "to_accum"


@dataclass(frozen=True)
class ExchangeAction(Action):
    """The transposed problem: out^T = rhs^T lhs^T, whose output is column-major. Free.

    Kernels load vectors of rhs and broadcast elements of lhs: exchanged, they broadcast the image of a convolution that
    has its channels first, which need not be packed for that, and the output is transposed in registers.
    """

    def requires(self, key: TableKey, target: Target) -> Sequence[Condition]:
        out = key.operands[-1]
        return (
            (set(key.memories) == {"GL"}, "operands are exchanged while all of them are in GL"),
            (not any(o.layout.is_packed for o in key.operands), "operands are exchanged before any is packed"),
            (not key.forked, "threads are under way: only a parallel loop may follow"),
            (out.layout.innermost == 2, "the output is column-major: lhs and rhs have been exchanged"),
        )

    def children(self, key: TableKey, dims: Dims) -> Sequence[Child]:
        return (Child(1, key.exchanged(), {**dims, "m": dims["n"], "n": dims["m"]}),)

    def node(self, bodies: Sequence[Node]) -> Node:
        return Exchange(bodies[0])

    def label(self) -> str:
        return "exchange"
