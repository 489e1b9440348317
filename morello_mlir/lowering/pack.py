"""Packing: copying an operand into zero-padded panels, each a run of rows of the panel's width.

Source and panels are addressed as lines of elements. Which dim has unit stride in the source decides how it is read:
the packed dim: rows are copied as they lie; the other one: blocks are transposed in registers; neither: element by
element. Elements may become wider on the way, and neighbours along the other dim (a group) may be brought together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from ..spec import Window, dtype_bytes, is_float
from ..targets import LINE
from .builder import Builder, Index
from .digits import place_of
from .machine import PACK_ROWS
from .transpose import BLOCK, transposed
from .views import Flat, Operand, View

#: Bytes of a row of a transposed block. Longer ones (AVX-512) are no faster, and take LLVM twice as long.
WIDEST_BLOCK = 32
#: Runs that are shorter are not worth a transposition, where the other dim steps over one element.
_SHORT = 8


#: Parts of rows that many bytes apart are asked for so many rows ahead. (Where rows are a page apart, 64x1024x1024
#: lost a per cent by it.)
_FAR_APART, _ROWS_AHEAD = 8192, 8


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
    #: Where the source has a window along the packed dim: (places, elements) of a step of each digit, slowest first.
    digits: tuple[tuple[int, int], ...] = ()

    @property
    def full(self) -> int:
        """How many panels are full."""
        return self.extent // self.width

    @property
    def tail(self) -> int:
        """What the last panel holds where it is not full."""
        return self.extent % self.width

    def load(self, b: Builder, at: Index, width: int, lanes: int) -> str:
        """`width` neighbours in the source as a vector of `lanes` of the panels' type."""
        return b.convert(b.vload(self.source, at, width, lanes), self.source.dtype, self.target.dtype, lanes)

    def load_along(self, b: Builder, start: Index, first: int, width: int, lanes: int) -> str:
        """The same of `width` elements along the packed dim from place `first` on, `start` being its place 0."""
        x, filled = "", 0
        for place, count in _pieces(first, width, self.digits[-2][0] if self.digits else 0):
            at = b.add(start, place_of(b, self.digits, place) if self.digits else place * self.along)
            y = _every(b, self.source, at, count, lanes, self.along)
            if x:
                # What follows comes from the next line of the window; lanes beyond are zero.
                picks = [*range(filled), *(lanes + min(i, count) for i in range(lanes - filled))]
                y = b.shuffle(x, y, picks, lanes, self.source.dtype)
            x, filled = y, filled + count
        return b.convert(x, self.source.dtype, self.target.dtype, lanes)

    def lanes(self, b: Builder) -> int:
        """Elements that a vector register holds in the wider of the two types."""
        return b.machine.vector_bytes // max(dtype_bytes(self.source.dtype), dtype_bytes(self.target.dtype))


def emit_pack(b: Builder, source: Operand, panels: Flat, view: View) -> None:
    """Copies `source` into `panels`, which are read as `view`."""
    assert view.packed is not None
    dim, width = view.packed
    other, batches = 3 - dim, view.sizes[0]
    along, across = source.view.stride(dim), source.view.stride(other)
    depth = next(iter(reversed(source.view.of(other))), view.sizes[other])
    digits = tuple(source.view.digits(dim)) if source.view.of(dim) else ()
    copy = _Copy(
        source.flat(b), panels, view.sizes[dim], depth, along, across, width, view.strides[1], view.group, digits
    )
    with ExitStack() as nest:
        batch = nest.enter_context(b.loop(0, batches, 1))
        start, place = b.mul(batch, source.view.stride(0)), b.mul(batch, view.strides[0])
        # What goes through a window along the other dim is copied run by run.
        for (unit, jump), count in zip(
            source.view.digits(other)[:-1], Window(source.view.units).counts(other, view.sizes[other]), strict=False
        ):
            step = nest.enter_context(b.loop(0, count, 1))
            start, place = b.add(start, b.mul(step, jump)), b.add(place, b.mul(step, unit * width))
        if source.view.has_unit(dim) or (along == 2 and (across != 1 or depth < _SHORT)):
            _copy_rows(b, copy, start, place)
        elif source.view.has_unit(other):
            _each_panel(b, copy, start, place, _transpose_panel)
        else:
            _each_panel(b, copy, start, place, _gather_panel)


def _pieces(first: int, width: int, unit: int) -> Iterator[tuple[int, int]]:
    """The parts of `width` places from `first` on that do not cross a multiple of `unit` (0: all): (first, count)."""
    end = first + width
    while first < end:
        count = min(end, first + unit - first % unit) - first if unit else width
        yield first, count
        first += count


def _every(b: Builder, source: Flat, at: Index, width: int, lanes: int, along: int) -> str:
    """`width` elements that are `along` apart, in a vector of `lanes`; the other lanes are zero."""
    if along != 2 or width == 1:
        return b.vload(source, at, width, lanes, stride=along)
    span = 2 * width - 1
    x = b.vload(source, at, min(span, lanes), lanes)
    y = b.vload(source, b.add(at, lanes), span - lanes, lanes) if span > lanes else b.zeros(lanes, source.dtype)
    return b.shuffle(x, y, range(0, 2 * lanes, 2), lanes, source.dtype)


def _copy_rows(b: Builder, c: _Copy, start: Index, place: Index) -> None:
    """Rows outermost, a few at once across all panels: the source is read in long runs (column order costs up to five
    times as much)."""
    at_once = PACK_ROWS if not c.digits else max(c.group, 1)
    whole = c.depth - c.depth % at_once
    groups = c.depth - c.depth % c.group
    for low, high, rows in ((0, whole, at_once), (whole, groups, c.group), (groups, c.depth, c.depth - groups)):
        if low == high:
            continue
        with b.loop(low, high, rows) as row:
            to = b.add(place, b.mul(b.div(row, c.group), c.width * c.group))
            _copy_across(b, c, b.add(start, b.mul(row, c.across)), to, rows, _later(b, c, start, row, rows))


def _later(b: Builder, c: _Copy, start: Index, row: Index, rows: int) -> Index | None:
    """Where the rows begin that are asked for while those from `row` on are copied; None: none are. Parts of long rows
    lie in other pages each, which hardware does not foresee."""
    size = dtype_bytes(c.source.dtype)
    parts = c.along == 1 and not c.digits and c.group == 1 and c.across > c.extent
    if not parts or c.across * size < _FAR_APART or c.depth <= _ROWS_AHEAD:
        return None
    return b.add(start, b.mul(b.least(b.add(row, _ROWS_AHEAD), c.depth - rows), c.across))


def _copy_across(b: Builder, c: _Copy, start: Index, place: Index, rows: int, later: Index | None = None) -> None:
    # How many panels it takes until lines of a window begin where panels do again.
    period = math.lcm(c.digits[0][0], c.width) // c.width if c.digits else 1
    jump = _distance(c, period * c.width)
    if periods := c.full // period:
        with b.loop(0, periods, 1) as p:
            at, to = b.add(start, b.mul(p, jump)), b.add(place, b.mul(p, period * c.panel))
            if later is not None:
                _ask(b, c, b.add(later, b.mul(p, jump)), rows)
            for panel in range(period):
                _copy_piece(b, c, at, b.add(to, panel * c.panel), rows, (panel * c.width, c.width))
    at = b.add(start, periods * jump)
    for panel in range(periods * period, -(-c.extent // c.width)):
        first = panel * c.width
        part = first - periods * period * c.width, min(c.width, c.extent - first)
        _copy_piece(b, c, at, b.add(place, panel * c.panel), rows, part)


def _ask(b: Builder, c: _Copy, start: Index, rows: int) -> None:
    """Asks for the lines of `rows` rows of a panel."""
    for row in range(rows):
        for at in range(0, c.width, LINE // dtype_bytes(c.source.dtype)):
            b.prefetch(c.source, b.add(start, row * c.across + at))


def _distance(c: _Copy, places: int) -> int:
    """Elements from one place along the packed dim to that `places` further on, a line's beginning of its window."""
    return places // c.digits[0][0] * c.digits[0][1] if c.digits else places * c.along


def _copy_piece(b: Builder, c: _Copy, start: Index, place: Index, rows: int, part: tuple[int, int]) -> None:
    """`rows` rows of one panel. part: its first place along the packed dim and how many elements it has; zeros follow
    up to the width."""
    if c.group > 1:
        _copy_groups(b, c, start, place, rows, part)
        return
    lanes, (first, valid) = c.lanes(b), part
    for row in range(rows):
        for v in range(0, c.width, lanes):
            got, want = min(lanes, valid - v), min(lanes, c.width - v)
            at = b.add(start, row * c.across)
            x = c.load_along(b, at, first + v, got, lanes) if got > 0 else b.zeros(lanes, c.target.dtype)
            b.vstore(x, c.target, b.add(place, row * c.width + v), want, lanes)


def _copy_groups(b: Builder, c: _Copy, start: Index, place: Index, rows: int, part: tuple[int, int]) -> None:
    """As `_copy_piece`, rows of groups: the elements of `group` source rows in turn, a register of groups at a time."""
    dtype, (begin, valid) = c.target.dtype, part
    lanes = b.machine.vector_bytes // (dtype_bytes(dtype) * c.group)
    for first in range(0, rows, c.group):
        for v in range(0, c.width, lanes):
            got, want = min(lanes, valid - v), min(lanes, c.width - v)
            pieces = [
                c.load_along(b, b.add(start, row * c.across), begin + v, got, lanes)
                for row in range(first, min(first + c.group, rows))
                if got > 0
            ]
            to = b.add(place, (first // c.group * c.width + v) * c.group)
            b.vstore(_in_groups(b, pieces, c.group, lanes, dtype), c.target, to, want * c.group, lanes * c.group)


def _in_groups(b: Builder, vectors: list[str], group: int, lanes: int, dtype: str) -> str:
    """A vector of groups, four bytes each: lane 0 of each of `vectors`, then lane 1 of each, and so on; zeros for those
    that are missing. Widened, moved up and put together, they keep fewer ports busy than shuffles do."""
    size = dtype_bytes(dtype)
    narrow, wide = f"vector<{lanes}xi{8 * size}>", f"vector<{lanes}xi32>"
    total = b.constant("dense<0>", wide)
    for place, x in enumerate(vectors):
        bits = (
            x if not is_float(dtype) else b.value(f"arith.bitcast {x} : {b.machine.vector(lanes, dtype)} to {narrow}")
        )
        x = b.value(f"arith.extui {bits} : {narrow} to {wide}")
        if place:
            by = b.constant(f"dense<{8 * size * place}>", wide)
            x = b.value(f"arith.ori {total}, {b.value(f'arith.shli {x}, {by} : {wide}')} : {wide}")
        total = x
    return b.bitcast(total, lanes, "i32", lanes * group, dtype)


def _each_panel(b: Builder, c: _Copy, start: Index, place: Index, emit) -> None:  # type: ignore[no-untyped-def]
    """`emit` for every panel: a loop over the full ones, then the last."""
    if c.full:
        with b.loop(0, c.full, 1) as p:
            emit(b, c, _row_starts(b, c, start, b.mul(p, c.width), c.width), b.add(place, b.mul(p, c.panel)))
    if c.tail:
        emit(b, c, _row_starts(b, c, start, c.full * c.width, c.tail), b.add(place, c.full * c.panel))


def _row_starts(b: Builder, c: _Copy, start: Index, first: Index, count: int) -> list[Index]:
    """Where `count` rows (columns of the panel) begin, from row `first` on."""
    if c.digits:
        return [b.add(start, place_of(b, c.digits, b.add(first, r))) for r in range(count)]
    at = b.add(start, b.mul(first, c.along))
    return [b.add(at, r * c.along) for r in range(count)]


def _transpose_panel(b: Builder, c: _Copy, starts: Sequence[Index], place: Index) -> None:
    """Source rows, contiguous along the other dim, become the columns of the panel; groups move as a whole."""
    dtype, group = c.target.dtype, c.group
    unit, unit_bytes = (dtype, dtype_bytes(dtype)) if group == 1 else ("i32", 4)
    widest = min(b.machine.vector_bytes, WIDEST_BLOCK) // unit_bytes
    for first in range(0, c.width, widest):
        want = min(widest, c.width - first)
        have = max(0, min(want, len(starts) - first))
        lanes = _block_lanes(want, widest, unit_bytes)
        block = lanes * group
        whole = c.depth - c.depth % block
        for low, high, depth in ((0, whole, block), (whole, c.depth, c.depth - whole)):
            if low == high:
                continue
            with b.loop(low, high, depth) as k:
                rows = [c.load(b, b.add(at, k), depth, block) for at in starts[first : first + have]]
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


def _gather_panel(b: Builder, c: _Copy, starts: Sequence[Index], place: Index) -> None:
    """Element by element: neither dim has unit stride."""
    whole = c.depth - c.depth % c.group
    for low, high, depth in ((0, whole, c.group), (whole, c.depth, c.depth - whole)):
        if low == high:
            continue
        with b.loop(low, high, depth) as k:
            at, out = b.mul(k, c.across), b.add(place, b.mul(k, c.width))
            for i in range(c.width):
                for j in range(c.group):
                    x = b.zero(c.target.dtype)
                    if i < len(starts) and j < depth:
                        x = b.load(c.source, b.add(b.add(starts[i], at), j * c.across))
                        x = b.convert(x, c.source.dtype, c.target.dtype)
                    b.store(x, c.target, b.add(out, i * c.group + j))
