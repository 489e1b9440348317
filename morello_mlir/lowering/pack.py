"""Packing: copying an operand into zero-padded panels, each a run of rows of the panel's width.

Source and panels are addressed as lines of elements. Which dim has unit stride in the source decides how it is read:
the packed dim: rows are copied as they lie; the other one: blocks are transposed in registers; neither: element by
element. Elements may become wider on the way, and neighbours along the other dim (a group) may be brought together.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..spec import dtype_bytes
from .builder import Builder, Index
from .machine import PACK_ROWS
from .transpose import BLOCK, interleaved, transposed
from .views import Flat, Operand, View

#: Bytes of a row of a transposed block. Longer ones (AVX-512) are no faster, and take LLVM twice as long.
WIDEST_BLOCK = 32


@dataclass(frozen=True, slots=True)
class _Copy:
    """What is copied: `extent` x `depth` elements (packed dim x other dim), `along` and `across` apart in the source,
    to panels of `width` that are `panel` apart. A panel's row holds a group of `group` neighbours along the other dim
    for each place."""

    source: Flat
    target: Flat
    extent: int
    depth: int
    along: int
    across: int
    width: int
    panel: int
    group: int

    @property
    def full(self) -> int:
        """How many panels are full."""
        return self.extent // self.width

    @property
    def tail(self) -> int:
        """What the last panel holds where it is not full."""
        return self.extent % self.width

    def load(self, b: Builder, at: Index, width: int, lanes: int) -> str:
        """`width` elements of the source as a vector of `lanes` of the panels' type."""
        return b.convert(b.vload(self.source, at, width, lanes), self.source.dtype, self.target.dtype, lanes)

    def lanes(self, b: Builder) -> int:
        """Elements that a vector register holds in the wider of the two types."""
        return b.machine.vector_bytes // max(dtype_bytes(self.source.dtype), dtype_bytes(self.target.dtype))


def emit_pack(b: Builder, source: Operand, panels: Flat, view: View) -> None:
    """Copies `source` into `panels`, which are read as `view`."""
    assert view.packed is not None
    dim, width = view.packed
    other, batches = 3 - dim, view.sizes[0]
    along, across = source.view.stride(dim), source.view.stride(other)
    extent, depth = view.sizes[dim], view.sizes[other]
    copy = _Copy(source.flat(b), panels, extent, depth, along, across, width, view.strides[1], view.group)
    with b.loop(0, batches, 1) as batch:
        start, place = b.mul(batch, source.view.stride(0)), b.mul(batch, view.strides[0])
        if source.view.has_unit(dim):
            _copy_rows(b, copy, start, place)
        elif source.view.has_unit(other):
            _each_panel(b, copy, start, place, _transpose_panel)
        else:
            _each_panel(b, copy, start, place, _gather_panel)


def _copy_rows(b: Builder, c: _Copy, start: Index, place: Index) -> None:
    """Rows outermost, a few at once across all panels: the source is read in long runs (column order costs up to five
    times as much)."""
    whole = c.depth - c.depth % PACK_ROWS
    groups = c.depth - c.depth % c.group
    for low, high, rows in ((0, whole, PACK_ROWS), (whole, groups, c.group), (groups, c.depth, c.depth - groups)):
        if low == high:
            continue
        with b.loop(low, high, rows) as row:
            to = b.add(place, b.mul(b.div(row, c.group), c.width * c.group))
            _copy_across(b, c, b.add(start, b.mul(row, c.across)), to, rows)


def _copy_across(b: Builder, c: _Copy, start: Index, place: Index, rows: int) -> None:
    piece = _copy_piece if c.group == 1 else _copy_groups
    if c.full:
        with b.loop(0, c.full, 1) as p:
            piece(b, c, b.add(start, b.mul(p, c.width)), b.add(place, b.mul(p, c.panel)), rows, c.width)
    if c.tail:
        piece(b, c, b.add(start, c.full * c.width), b.add(place, c.full * c.panel), rows, c.tail)


def _copy_piece(b: Builder, c: _Copy, start: Index, place: Index, rows: int, valid: int) -> None:
    """`rows` rows of one panel: `valid` elements and zeros up to the width."""
    lanes = c.lanes(b)
    for row in range(rows):
        for v in range(0, c.width, lanes):
            got, want = min(lanes, valid - v), min(lanes, c.width - v)
            at = b.add(start, row * c.across + v)
            x = c.load(b, at, got, lanes) if got > 0 else b.zeros(lanes, c.target.dtype)
            b.vstore(x, c.target, b.add(place, row * c.width + v), want, lanes)


def _copy_groups(b: Builder, c: _Copy, start: Index, place: Index, rows: int, valid: int) -> None:
    """As `_copy_piece`, rows of groups: the elements of `group` source rows in turn, 16 bytes of each at a time."""
    dtype = c.target.dtype
    lanes = BLOCK // dtype_bytes(dtype)
    for first in range(0, rows, c.group):
        for v in range(0, c.width, lanes):
            got, want = min(lanes, valid - v), min(lanes, c.width - v)
            pieces = [
                c.load(b, b.add(start, row * c.across + v), got, lanes)
                if got > 0 and row < rows
                else b.zeros(lanes, dtype)
                for row in range(first, first + c.group)
            ]
            to = b.add(place, (first // c.group * c.width + v) * c.group)
            for i, x in enumerate(_taken_in_turn(b, pieces, lanes, dtype)):
                if i * lanes < want * c.group:
                    b.vstore(x, c.target, b.add(to, i * lanes), min(lanes, want * c.group - i * lanes), lanes)


def _taken_in_turn(b: Builder, vectors: list[str], lanes: int, dtype: str) -> list[str]:
    """Vectors (two or four) that hold lane 0 of each of `vectors`, then lane 1 of each, and so on."""
    if len(vectors) == 4:
        # Pairs of the first and third, and of the second and fourth; then of these.
        low, high = (
            [interleaved(b, vectors[i], vectors[i + 2], lanes, lanes, 1, h, dtype) for i in (0, 1)] for h in (0, 1)
        )
        return [interleaved(b, x, y, lanes, lanes, 1, h, dtype) for x, y in (low, high) for h in (0, 1)]
    x, y = vectors
    return [interleaved(b, x, y, lanes, lanes, 1, h, dtype) for h in (0, 1)]


def _each_panel(b: Builder, c: _Copy, start: Index, place: Index, emit) -> None:  # type: ignore[no-untyped-def]
    """`emit` for every panel: a loop over the full ones, then the last."""
    if c.full:
        with b.loop(0, c.full, 1) as p:
            emit(b, c, b.add(start, b.mul(p, c.width * c.along)), b.add(place, b.mul(p, c.panel)), c.width)
    if c.tail:
        emit(b, c, b.add(start, c.full * c.width * c.along), b.add(place, c.full * c.panel), c.tail)


def _transpose_panel(b: Builder, c: _Copy, start: Index, place: Index, valid: int) -> None:
    """`valid` source rows, contiguous along the other dim, become the columns of the panel; groups move as a whole."""
    dtype, group = c.target.dtype, c.group
    unit, unit_bytes = (dtype, dtype_bytes(dtype)) if group == 1 else ("i32", 4)
    widest = min(b.machine.vector_bytes, WIDEST_BLOCK) // unit_bytes
    for first in range(0, c.width, widest):
        want = min(widest, c.width - first)
        have = max(0, min(want, valid - first))
        lanes = _block_lanes(want, widest, unit_bytes)
        block = lanes * group
        whole = c.depth - c.depth % block
        for low, high, depth in ((0, whole, block), (whole, c.depth, c.depth - whole)):
            if low == high:
                continue
            with b.loop(low, high, depth) as k:
                at = b.add(b.add(start, k), first * c.along)
                rows = [c.load(b, b.add(at, r * c.along), depth, block) for r in range(have)]
                rows = [b.bitcast(x, block, dtype, lanes, unit) for x in rows]
                rows += [b.zeros(lanes, unit)] * (lanes - have)
                out = b.add(b.add(place, b.mul(k, c.width)), first * group)
                for i, column in enumerate(transposed(b, rows, lanes, unit)[: -(-depth // group)]):
                    x = b.bitcast(column, lanes, unit, block, dtype)
                    b.vstore(x, c.target, b.add(out, i * c.width * group), want * group, block)


def _block_lanes(rows: int, widest: int, unit_bytes: int) -> int:
    """The size of the transposed blocks: no larger than the rows need, at least 16 bytes."""
    size = BLOCK // unit_bytes
    while size < min(rows, widest):
        size *= 2
    return size


def _gather_panel(b: Builder, c: _Copy, start: Index, place: Index, valid: int) -> None:
    """Element by element: neither dim has unit stride."""
    whole = c.depth - c.depth % c.group
    for low, high, depth in ((0, whole, c.group), (whole, c.depth, c.depth - whole)):
        if low == high:
            continue
        with b.loop(low, high, depth) as k:
            at, out = b.add(start, b.mul(k, c.across)), b.add(place, b.mul(k, c.width))
            for i in range(c.width):
                for j in range(c.group):
                    x = b.zero(c.target.dtype)
                    if i < valid and j < depth:
                        x = b.load(c.source, b.add(at, i * c.along + j * c.across))
                        x = b.convert(x, c.source.dtype, c.target.dtype)
                    b.store(x, c.target, b.add(out, i * c.group + j))
