"""Operands: how a tensor lies in memory (static), and the SSA values that stand for it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from ..spec import FUNCTIONS, Edge, Side, Window, dense_strides, dtype_bytes, element_type
from ..targets import LINE
from .builder import Builder, Index

#: Of a window, for each of the last two dims (see `Window.units`).
Units: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]

#: Dims of lhs, rhs and out, in logical order: the same for Matmul and MatmulAccum.
OPERAND_DIMS = tuple(dims for _, dims in FUNCTIONS["Matmul"].operands)
LHS, RHS, OUT = range(3)
#: A memref without dims, as memory's lowering to LLVM has it.
_DESCRIPTOR = "!llvm.struct<(ptr, ptr, i64)>"


@dataclass(frozen=True, slots=True)
class View:
    """A rank-3 tensor in memory: logical `[b, x, y]`.

    strides: in elements, of the three dims; where packed, of `[b, panel, other dim, place in the panel]`.
    packed: (dim number, panel width) or None. The last panel is padded with zeros. group: so many neighbours along the
    other dim lie together (`Layout.packed`); the other dim then counts groups, and the place in one comes last.
    ahead: it was packed ahead, and comes from memory. units: of a window (see `Window`), for the last two dims: the
    memref then has a dim for every digit. edges: beyond which it holds zeros.
    """

    dtype: str
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    packed: tuple[int, int] | None = None
    group: int = 1
    ahead: bool = False
    units: Units = ((), ())
    edges: tuple[Edge, ...] = ()

    @property
    def element(self) -> str:
        """The MLIR type of an element."""
        return element_type(self.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the memref, panel by panel where packed."""
        if self.packed is None:
            return Window(self.units).shape(self.sizes)
        dim, width = self.packed
        panels, rows = -(-self.sizes[dim] // width), -(-self.sizes[3 - dim] // self.group)
        return (self.sizes[0], panels, rows, width, *([self.group] if self.group > 1 else []))

    @property
    def shape_with_padding(self) -> tuple[int, ...]:
        """`shape` of panels, with the row that pads them; single columns, of which kernels read vectors along their
        rows, to a line's start."""
        batches, count, rows, *row = self.shape
        line = LINE // dtype_bytes(self.dtype) if math.prod(row) == 1 else 1
        return (batches, count, (rows // line + 1) * line, *row)

    @property
    def type(self) -> str:
        """The memref type, with an offset that only run time knows."""
        shape = "x".join(map(str, self.shape))
        strides = ", ".join(map(str, self.strides))
        return f"memref<{shape}x{self.element}, strided<[{strides}], offset: ?>>"

    @property
    def static_type(self) -> str:
        """The memref type at offset zero."""
        return self.type.replace(", offset: ?", "")

    @property
    def metadata_types(self) -> str:
        """Result types of `memref.extract_strided_metadata`."""
        return ", ".join([f"memref<{self.element}>", *["index"] * (1 + 2 * len(self.shape))])

    def axis(self, dim: int) -> int:
        """The memref's dim for the slowest digit of logical dim `dim`, where the view is not packed."""
        return dim if dim < 2 else dim + len(self.units[0])

    def of(self, dim: int) -> tuple[int, ...]:
        """The units of logical dim `dim`."""
        return self.units[dim - 1] if dim else ()

    def digits(self, dim: int) -> list[tuple[int, int]]:
        """(places, elements of memory) of a step of every digit of `dim`, slowest first; at last (1, stride)."""
        first = self.axis(dim)
        return list(zip((*self.of(dim), 1), self.strides[first : first + len(self.of(dim)) + 1], strict=True))

    def stride(self, dim: int) -> int:
        """Elements from one place along `dim` to the next, within a panel; of a dim in groups, to the next group.
        Panels of width one may be crossed. Of a dim in digits: of the fastest one."""
        if self.packed is None:
            return self.strides[self.axis(dim) + len(self.of(dim))]
        if dim == 0:
            return self.strides[0]
        if dim != self.packed[0]:
            return self.strides[2]
        return self.strides[3] if self.packed[1] > 1 else self.strides[1]

    def has_unit(self, dim: int) -> bool:
        """Whether neighbours along `dim` (within a panel) are neighbours in memory; true of a single element."""
        return self.stride(dim) == 1 or self.sizes[dim] == 1

    @property
    def span(self) -> int:
        """Elements from the first to the last, both included. Strides are never negative."""
        return 1 + sum((size - 1) * stride for size, stride in zip(self.shape, self.strides, strict=True) if size > 0)

    def with_size(self, dim: int, size: int) -> View:
        sizes, units, strides = list(self.sizes), list(self.units), self.strides
        sizes[dim] = size
        while dim and units[dim - 1] and size <= units[dim - 1][0]:
            # The slowest digit has but one step.
            strides = (*strides[: self.axis(dim)], *strides[self.axis(dim) + 1 :])
            units[dim - 1] = units[dim - 1][1:]
        edges = tuple(e for e in self.edges if _is_known(e, dim, size))
        return replace(self, sizes=tuple(sizes), units=(units[0], units[1]), strides=strides, edges=edges)

    def exchanged(self) -> View:
        """The same memory with the last two dims in each other's role; not packed."""
        batch, first, second = self.sizes
        cut = self.axis(2)
        strides = (self.strides[0], *self.strides[cut:], *self.strides[1:cut])
        edges = tuple(edge.exchanged() for edge in self.edges)
        return replace(self, sizes=(batch, second, first), strides=strides, units=self.units[::-1], edges=edges)

    def canonical(self) -> View:
        """The same memory with the strides of dims of one element set to 1, so that more tiles look alike; not that to
        the next panel, where it is asked for."""
        panel = 1 if self.ahead else None
        strides = tuple(
            1 if size == 1 and i != panel else st
            for i, (size, st) in enumerate(zip(self.shape, self.strides, strict=True))
        )
        return replace(self, strides=strides)

    @staticmethod
    def panels(dtype: str, sizes: tuple[int, ...], dim: int, width: int, group: int = 1) -> View:
        """The packed copy of a tensor of `sizes`, its panels one row longer than needed: with a power of two between
        panels the same row of all of them would fall into one cache set."""
        view = View(dtype, sizes, (), (dim, width), group)
        return replace(view, strides=dense_strides(view.shape_with_padding))


def _is_known(edge: Edge, dim: int, size: int) -> bool:
    """Whether parts of `size` places along `dim` can still use an edge."""
    if dim == 3 - edge.along:
        return bool(edge.steps(size))
    return dim != edge.along or edge.moves or size >= edge.position.count


@dataclass(frozen=True, slots=True)
class Flat:
    """A view as the line of elements that it spans: index = offset in elements from the view's first one."""

    name: str
    type: str
    dtype: str
    #: Whether whole vectors are stored past the caches: they, and what is stored beside them, start at lines then.
    streams: bool = False


@dataclass(frozen=True, slots=True)
class Arena:
    """Scratch memory: a memref of `size` bytes, aligned to a cache line. Nothing of it is used where `size` is 0."""

    name: str = ""
    size: int = 0

    @property
    def type(self) -> str:
        return f"memref<{self.size}xi8>"

    def part(self, b: Builder, start: int, type_: str) -> str:
        """A memref of the static type `type_` at byte `start`."""
        return b.value(f"memref.view {self.name}[{b.index(start)}][] : {self.type} to {type_}")

    def slice(self, b: Builder, number: str, size: int) -> Arena:
        """Part `number` of the arena cut into parts of `size` bytes."""
        if size == 0:
            return NO_ARENA
        start = b.index(b.mul(number, size))
        return Arena(b.value(f"memref.view {self.name}[{start}][] : {self.type} to memref<{size}xi8>"), size)

    def base(self, b: Builder) -> str:
        """A rank-0 memref at the start, to be passed to a function that needs less: see `of_scratch`."""
        names = [b.name() for _ in range(4)]
        b.line(
            f"{', '.join(names)} = memref.extract_strided_metadata {self.name} : {self.type} -> "
            f"memref<i8>, index, index, index"
        )
        return names[0]

    @staticmethod
    def of_scratch(b: Builder, size: int) -> Arena:
        """The first `size` bytes of the function's scratch, its argument `%scratch`."""
        name = b.value(
            f"memref.reinterpret_cast %scratch to offset: [0], sizes: [{size}], strides: [1] : "
            f"memref<i8> to memref<{size}xi8>"
        )
        return Arena(name, size)


NO_ARENA = Arena()


def operand_in(b: Builder, arena: Arena, start: int, view: View, room: tuple[int, ...]) -> Operand:
    """The operand `view` at byte `start` of an arena, in a dense memref of the sizes `room`, of which it is the first
    part along every dim."""
    whole = f"memref<{'x'.join(map(str, room))}x{view.element}>"
    zeros, sizes, ones = (", ".join(map(str, x)) for x in ([0] * len(room), view.shape, [1] * len(room)))
    place = arena.part(b, start, whole)
    part = b.value(f"memref.subview {place}[{zeros}] [{sizes}] [{ones}] : {whole} to {view.static_type}")
    return Operand(view, b.value(f"memref.cast {part} : {view.static_type} to {view.type}"))


def begun(b: Builder, view: View, name: str, type_: Any) -> Operand:
    """An operand of `view` that begins where the memref `name`, which may have another shape, does."""
    rank, base, offset = len(type_.shape), b.name(), b.name()
    more = "".join(f", {b.name()}:{rank}" for _ in range(2)) if rank else ""
    results = ", ".join([f"memref<{view.element}>", *["index"] * (1 + 2 * rank)])
    b.line(f"{base}, {offset}{more} = memref.extract_strided_metadata {name} : {type_} -> {results}")
    return Operand(view, base=base, offset=offset)


@dataclass(frozen=True, slots=True)
class Operand:
    """A view in the program: a memref of the view's type, or (at function entry) the rank-0 base and offset of one.

    streams: see `Flat`. begins: at which step of the positions and of the taps of each edge it begins; () says that all
    begin at the first.
    """

    view: View
    name: str = ""
    base: str = ""
    offset: str = ""
    streams: bool = False
    begins: tuple[tuple[Index, Index], ...] = ()

    def as_memref(self, b: Builder) -> Operand:
        """The operand as a memref of its view's type."""
        if self.name:
            return self
        v = self.view
        sizes, strides = (", ".join(map(str, x)) for x in (v.shape, v.strides))
        name = b.value(
            f"memref.reinterpret_cast {self.base} to offset: [{self.offset}], sizes: [{sizes}], strides: [{strides}] : "
            f"memref<{v.element}> to {v.type}"
        )
        return Operand(v, name, begins=self.begins)

    def exchanged(self, b: Builder) -> Operand:
        """The same with the last two dims in each other's role."""
        base, offset = self.parts(b)
        return Operand(self.view.exchanged(), base=base, offset=offset, begins=self.begins)

    def begin(self, edge: Edge) -> tuple[Index, Index]:
        """At which step of the positions, and of the taps, of `edge` it begins."""
        return self.begins[self.view.edges.index(edge)] if self.begins else (0, 0)

    def with_edges(self, edges: Sequence[Edge]) -> Operand:
        """The same, of whose edges these alone are known."""
        begins = tuple(self.begin(edge) for edge in edges)
        return replace(self, view=replace(self.view, edges=tuple(edges)), begins=begins)

    def _further(self, b: Builder, dim: int, at: Index, edges: Sequence[Edge]) -> tuple[tuple[Index, Index], ...]:
        """Where, at `edges`, the part from `at` on along `dim` begins."""

        def step(begin: Index, side: Side, own: bool) -> Index:
            # What reaches over more than all steps is cut where they start anew.
            within = own and side.unit < self.view.sizes[dim] <= side.unit * side.count
            return b.add(begin, b.div(at, side.unit)) if within else begin

        begins = []
        for edge in edges:
            position, tap = self.begin(edge)
            along = dim == edge.along
            begins.append((step(position, edge.position, along), step(tap, edge.taps, dim != 0 and not along)))
        return tuple(begins)

    def parts(self, b: Builder) -> tuple[str, str]:
        """The rank-0 base and the offset: what survives a call by bare pointer."""
        if not self.name:
            return self.base, self.offset
        base, offset, sizes, strides = b.name(), b.name(), b.name(), b.name()
        rank = len(self.view.shape)
        b.line(
            f"{base}, {offset}, {sizes}:{rank}, {strides}:{rank} = memref.extract_strided_metadata {self.name} : "
            f"{self.view.type} -> {self.view.metadata_types}"
        )
        return base, offset

    def pointer(self, b: Builder) -> str:
        """The address of the first element."""
        base, offset = self.parts(b)
        whole = b.value(f"builtin.unrealized_conversion_cast {base} : memref<{self.view.element}> to {_DESCRIPTOR}")
        start = b.value(f"llvm.extractvalue {whole}[1] : {_DESCRIPTOR}")
        if offset == b.index(0):
            return start
        at = b.value(f"arith.index_cast {offset} : index to i64")
        return b.value(f"llvm.getelementptr {start}[{at}] : (!llvm.ptr, i64) -> !llvm.ptr, {self.view.element}")

    @staticmethod
    def at(b: Builder, view: View, pointer: str, begins: tuple[tuple[Index, Index], ...] = ()) -> Operand:
        """The operand whose first element is at an address."""
        whole = b.value(f"llvm.mlir.poison : {_DESCRIPTOR}")
        for i in (0, 1):
            whole = b.value(f"llvm.insertvalue {pointer}, {whole}[{i}] : {_DESCRIPTOR}")
        whole = b.value(f"llvm.insertvalue {b.constant('0', 'i64')}, {whole}[2] : {_DESCRIPTOR}")
        base = b.value(f"builtin.unrealized_conversion_cast {whole} : {_DESCRIPTOR} to memref<{view.element}>")
        return Operand(view, base=base, offset=b.index(0), begins=begins)

    def flat(self, b: Builder, more: Index = 0) -> Flat:
        """The line of elements under the operand, and `more` elements."""
        base, offset = self.parts(b)
        v = self.view
        size = b.add(more, v.span)
        known = size if isinstance(size, int) else "?"
        type_ = f"memref<{known}x{v.element}, strided<[1], offset: ?>>"
        name = b.value(
            f"memref.reinterpret_cast {base} to offset: [{offset}], sizes: [{size}], strides: [1] : "
            f"memref<{v.element}> to {type_}"
        )
        return Flat(name, type_, v.dtype, self.streams)

    def comb(self, b: Builder, dim: int, at: Index, size: int, apart: int) -> Operand:
        """`size` places along `dim` that are `apart`, from `at` on. Not of panels, nor along a window."""
        sizes, strides = list(self.view.sizes), list(self.view.strides)
        axis = self.view.axis(dim)
        sizes[dim], strides[axis] = size, strides[axis] * apart
        part = replace(self.view, sizes=tuple(sizes), strides=tuple(strides))
        offsets, steps = (
            [value if i == axis else other for i in range(len(strides))] for value, other in ((at, 0), (apart, 1))
        )
        where, extent, by = (", ".join(map(str, x)) for x in (offsets, part.shape, steps))
        name = b.value(f"memref.subview {self.name}[{where}] [{extent}] [{by}] : {self.view.type} to {part.type}")
        return Operand(part, name)

    def tile(self, b: Builder, dim: int, at: Index, size: int) -> Operand:
        """The part `at`, `at + size` along `dim`; in a packed dim it starts at a panel, in one in groups at a group."""
        part = self.view.with_size(dim, size)
        offsets: list[Index] = [0] * len(self.view.shape)
        shape = list(part.shape)
        if self.view.packed is None:
            axis, units = self.view.axis(dim), self.view.of(dim)
            offsets[axis] = b.div(at, units[0]) if units else at
            # Digits of one step have no dim.
            shape[axis:axis] = [1] * (len(units) - len(part.of(dim)))
        else:
            packed, width = self.view.packed
            if dim == packed:
                offsets[1] = b.div(at, width)
            else:
                offsets[2 if dim else 0] = b.div(at, self.view.group) if dim else at
        begins = self._further(b, dim, at, part.edges)
        if offsets == [0] * len(offsets) and part.shape == self.view.shape:
            return replace(self, view=part, begins=begins)
        where, extent, ones = (", ".join(map(str, x)) for x in (offsets, shape, [1] * len(shape)))
        if part.shape != tuple(shape) and self._is_ambiguous(shape, part):
            base, start = self.parts(b)
            moved: Index = start
            for index, stride in zip(offsets, self.view.strides, strict=True):
                moved = b.add(moved, b.mul(index, stride))
            return Operand(part, base=base, offset=b.index(moved), begins=begins).as_memref(b)
        name = b.value(f"memref.subview {self.name}[{where}] [{extent}] [{ones}] : {self.view.type} to {part.type}")
        return Operand(part, name, begins=begins)

    def _is_ambiguous(self, shape: Sequence[int], part: View) -> bool:
        """Whether `shape` has several dims of one step and of the same stride, and `part` only some of them: the type
        of a subview does not say which, and MLIR drops the first."""
        unit = [s for n, s in zip(shape, self.view.strides, strict=True) if n == 1]
        return any(n == 1 and unit.count(s) > 1 for n, s in zip(part.shape, part.strides, strict=True))
