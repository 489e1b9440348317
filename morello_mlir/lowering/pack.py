"""Packing: copying an operand into zero-padded panels, each a run of rows of the panel's width.

Source and panels are addressed as lines of elements. Which dim has unit stride in the source decides how it is read:
the packed dim: rows are copied as they lie; the other one: blocks are transposed in registers; neither: element by
element.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..spec import dtype_bytes
from .builder import Builder, Index
from .machine import PACK_ROWS
from .transpose import BLOCK, transposed
from .views import Flat, Operand, View

#: Bytes of a row of a transposed block. Longer ones (AVX-512) are no faster, and take LLVM twice as long.
WIDEST_BLOCK = 32


@dataclass(frozen=True, slots=True)
class _Copy:
    """What is copied: `extent` x `depth` elements (packed dim x other dim), `along` and `across` apart in the source,
    to panels of `width` that are `panel` apart."""

    source: Flat
    target: Flat
    extent: int
    depth: int
    along: int
    across: int
    width: int
    panel: int

    @property
    def full(self) -> int:
        """How many panels are full."""
        return self.extent // self.width

    @property
    def tail(self) -> int:
        """What the last panel holds where it is not full."""
        return self.extent % self.width


def emit_pack(b: Builder, source: Operand, panels: Flat, view: View) -> None:
    """Copies `source` into `panels`, which are read as `view`."""
    assert view.packed is not None
    dim, width = view.packed
    other, batches = 3 - dim, view.sizes[0]
    along, across = source.view.stride(dim), source.view.stride(other)
    copy = _Copy(source.flat(b), panels, view.sizes[dim], view.sizes[other], along, across, width, view.strides[1])
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
    for low, high, rows in ((0, whole, PACK_ROWS), (whole, c.depth, 1)):
        if low == high:
            continue
        with b.loop(low, high, rows) as row:
            _copy_across(b, c, b.add(start, b.mul(row, c.across)), b.add(place, b.mul(row, c.width)), rows)


def _copy_across(b: Builder, c: _Copy, start: Index, place: Index, rows: int) -> None:
    if c.full:
        with b.loop(0, c.full, 1) as p:
            _copy_piece(b, c, b.add(start, b.mul(p, c.width)), b.add(place, b.mul(p, c.panel)), rows, c.width)
    if c.tail:
        _copy_piece(b, c, b.add(start, c.full * c.width), b.add(place, c.full * c.panel), rows, c.tail)


def _copy_piece(b: Builder, c: _Copy, start: Index, place: Index, rows: int, valid: int) -> None:
    """`rows` rows of one panel: `valid` elements and zeros up to the width."""
    lanes = b.machine.lanes
    for row in range(rows):
        for v in range(0, c.width, lanes):
            got, want = min(lanes, valid - v), min(lanes, c.width - v)
            x = b.vload(c.source, b.add(start, row * c.across + v), got) if got > 0 else b.zeros()
            b.vstore(x, c.target, b.add(place, row * c.width + v), want)


def _each_panel(b: Builder, c: _Copy, start: Index, place: Index, emit) -> None:  # type: ignore[no-untyped-def]
    """`emit` for every panel: a loop over the full ones, then the last."""
    if c.full:
        with b.loop(0, c.full, 1) as p:
            emit(b, c, b.add(start, b.mul(p, c.width * c.along)), b.add(place, b.mul(p, c.panel)), c.width)
    if c.tail:
        emit(b, c, b.add(start, c.full * c.width * c.along), b.add(place, c.full * c.panel), c.tail)


def _transpose_panel(b: Builder, c: _Copy, start: Index, place: Index, valid: int) -> None:
    """`valid` source rows, contiguous along the other dim, become the columns of the panel."""
    widest = min(b.machine.lanes, WIDEST_BLOCK // dtype_bytes(b.machine.dtype))
    for first in range(0, c.width, widest):
        want = min(widest, c.width - first)
        have = max(0, min(want, valid - first))
        lanes = _block_lanes(want, widest, b.machine.dtype)
        whole = c.depth - c.depth % lanes
        for low, high, depth in ((0, whole, lanes), (whole, c.depth, c.depth - whole)):
            if low == high:
                continue
            with b.loop(low, high, depth) as k:
                at = b.add(b.add(start, k), first * c.along)
                rows = [b.vload(c.source, b.add(at, r * c.along), depth, lanes) for r in range(have)]
                rows += [b.zeros(lanes)] * (lanes - have)
                out = b.add(b.add(place, b.mul(k, c.width)), first)
                for i, column in enumerate(transposed(b, rows, lanes)[:depth]):
                    b.vstore(column, c.target, b.add(out, i * c.width), want, lanes)


def _block_lanes(rows: int, widest: int, dtype: str) -> int:
    """The size of the transposed blocks: no larger than the rows need, at least 16 bytes."""
    size = BLOCK // dtype_bytes(dtype)
    while size < min(rows, widest):
        size *= 2
    return size


def _gather_panel(b: Builder, c: _Copy, start: Index, place: Index, valid: int) -> None:
    """Element by element: neither dim has unit stride."""
    with b.loop(0, c.depth, 1) as k:
        at, out = b.add(start, b.mul(k, c.across)), b.add(place, b.mul(k, c.width))
        for i in range(c.width):
            x = b.load(c.source, b.add(at, i * c.along)) if i < valid else b.zero()
            b.store(x, c.target, b.add(out, i))
