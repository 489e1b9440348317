"""Operands of a nest in memory: reading and writing the tiles of the iteration space.

A tile is what the innermost code works on at once: `counts` steps along every dim, where a step of the vector dim is a
whole vector. A value of a tile is a bundle with an entry for every combination of steps along the dims along which it
varies, the last dim fastest.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

from ...lowering.builder import Builder, Index
from ...lowering.machine import Machine
from ...lowering.transpose import transposed
from ..borders import Border
from ..instructions import INTERLEAVED
from ..ops import element_bytes, is_float
from ..squares import square
from . import edges
from .edges import Edge, Inside
from .picks import Picks
from .values import Values
from .vectors import Bundle


@dataclass(frozen=True, slots=True)
class Place:
    """An operand: a line of elements, of which the nest's first is number `offset`. strides: elements, by dim. local:
    the dims along which it has room for one group of points only, which begins at 0. borders, around: as operands have
    them; shifts: by how many places the loops around the nest have moved each border; inside: the numbers of those
    that no point is beyond, as the loops around know; axes: of a table, elements from a place to the next."""

    memory: str
    dtype: str
    strides: tuple[int, ...]
    offset: Index = 0
    local: tuple[int, ...] = ()
    borders: tuple[Border, ...] = ()
    around: float | int = 0
    shifts: tuple[Index, ...] = ()
    inside: frozenset[int] = frozenset()
    axes: tuple[int, ...] = ()

    @property
    def type(self) -> str:
        return f"memref<?x{self.dtype}, strided<[1], offset: ?>>"


@dataclass(frozen=True, slots=True)
class Tile:
    """at: the position of its first point along every dim. counts: steps along every dim. live: how many lanes count,
    in its only vector; None: all. known: offsets of places that have been computed, and what was read there. inside:
    borders that no point of it is beyond."""

    at: tuple[Index, ...]
    counts: tuple[int, ...]
    live: int | str | None = None
    known: dict[object, object] = field(default_factory=dict)
    inside: frozenset[Edge] = frozenset()

    def shape(self, dims: frozenset[int]) -> tuple[int, ...]:
        """The shape of the bundle of a value that varies along `dims`."""
        return tuple(n if d in dims else 1 for d, n in enumerate(self.counts))


def cells(shape: Sequence[int]) -> list[tuple[int, ...]]:
    """All index tuples of a bundle of this shape, in its order."""
    return list(itertools.product(*(range(n) for n in shape)))


def spread(bundle: Bundle, shape: Sequence[int], wide: Sequence[int]) -> Bundle:
    """A bundle of `shape` as one of the shape `wide`, which is larger where `shape` is 1."""
    if len(bundle) == 1 or tuple(shape) == tuple(wide):
        return bundle
    steps, size = [], 1
    for n in reversed(shape):
        steps.append(size if n > 1 else 0)
        size *= n
    steps.reverse()
    return tuple(bundle[sum(i * s for i, s in zip(cell, steps, strict=True))] for cell in cells(wide))


class Memory:
    """Reads and writes bundles. vector: the dim along which vectors lie."""

    def __init__(self, b: Builder, machine: Machine, values: Values, vector: int):
        self.b = b
        self.machine = machine
        self.values = values
        self.vector = vector

    @property
    def lanes(self) -> int:
        return self.values.lanes

    def mask(self, tile: Tile) -> Bundle | None:
        """The lanes of `tile` that count; None: all."""
        if tile.live is None:
            return None
        if isinstance(tile.live, int):
            return (self.b.mask(tile.live, self.lanes),)
        return (self.b.value(f"vector.create_mask {tile.live} : vector<{self.lanes}xi1>"),)

    def _start(self, place: Place, tile: Tile) -> Index:
        """The number of the element where the tile begins."""
        key = (place.memory, place.strides, place.offset, "start")
        if key not in tile.known:
            at: Index = place.offset
            for d, (position, stride) in enumerate(zip(tile.at, place.strides, strict=True)):
                if d not in place.local:
                    at = self.b.add(at, self.b.mul(position, stride))
            tile.known[key] = at
        return tile.known[key]  # type: ignore[return-value]

    def _step(self, place: Place, dim: int) -> int:
        return place.strides[dim] * (self.lanes if dim == self.vector else 1)

    def _offset(self, place: Place, cell: Sequence[int]) -> int:
        return sum(i * self._step(place, d) for d, i in enumerate(cell))

    def at(self, place: Place, tile: Tile, cell: Sequence[int]) -> Index:
        """The number of the element where a vector of the tile begins; of a table, at the places 0."""
        return self.b.add(self._start(place, tile), self._offset(place, cell))

    # ---------------------------------------------------------------- reading

    def read(self, place: Place, tile: Tile, shape: Sequence[int]) -> Bundle:
        """The values of a place in the tile, as they are held."""
        start = self._start(place, tile)
        across = self._across(place, tile, shape)
        if across is not None:
            return self._transposed(place, start, shape, *across)
        if 1 < place.strides[self.vector] <= INTERLEAVED and place.dtype != "i1" and not isinstance(tile.live, str):
            return self._picked(place, tile, start, shape)
        return tuple(self._read_at(place, tile, start, cell) for cell in cells(shape))

    def _across(self, place: Place, tile: Tile, shape: Sequence[int]) -> tuple[int, int] | None:
        """The squares by which a place is read or written (`square`); None where there are none."""
        if tile.live is not None or place.dtype == "i1" or not tile.inside.issuperset(edges.unknown(place)):
            return None
        return square(place.strides, self.vector, shape, self.lanes)

    def _transposed(self, place: Place, start: Index, shape: Sequence[int], dim: int, width: int) -> Bundle:
        """As `read`: rows of `width` elements along `dim`, transposed in registers."""
        out: dict[tuple[int, ...], str] = {}
        stride, small = place.strides[self.vector], f"vector<{width}x{place.dtype}>"
        for cell in cells(shape):
            if cell[dim] % width:
                continue
            first = self.b.add(start, self._offset(place, cell))
            squares = []
            for lane in range(0, self.lanes, width):
                places = [self.b.index(self.b.add(first, (lane + r) * stride)) for r in range(width)]
                rows = [self.b.value(f"vector.load {place.memory}[{i}] : {place.type}, {small}") for i in places]
                squares.append(transposed(self.b, rows, width, place.dtype))
            for j in range(width):
                own = (*cell[:dim], cell[dim] + j, *cell[dim + 1 :])
                out[own] = self._joined([s[j] for s in squares], width, place.dtype)
        return self.values.loaded(tuple(out[cell] for cell in cells(shape)), place.dtype)

    def _joined(self, parts: list[str], width: int, dtype: str) -> str:
        """Vectors of `width` elements one after the other, as one."""
        while len(parts) > 1:
            picks, t = ", ".join(map(str, range(2 * width))), f"vector<{width}x{dtype}>"
            parts = [
                self.b.value(f"vector.shuffle {x}, {y} [{picks}] : {t}, {t}")
                for x, y in zip(parts[::2], parts[1::2], strict=True)
            ]
            width *= 2
        return parts[0]

    def _key(self, place: Place, cell: Sequence[int]) -> tuple[object, int, tuple[int, ...]]:
        """(by what a vector is known, how many elements after the tile's first it begins, how many places along each
        border). Beyond a border there is nothing at an address where there may be something of the next row."""
        more, dims = self._offset(place, cell), range(len(cell))
        beyond = tuple(
            sum(
                i * s * (self.lanes if d == self.vector else 1)
                for d, i, s in zip(dims, cell, border.steps, strict=True)
            )
            for border in place.borders
        )
        return (place.memory, place.strides, place.offset, more, beyond), more, beyond

    def _read_at(self, place: Place, tile: Tile, start: Index, cell: Sequence[int]) -> str:
        """One vector. Neighbours in a tile may want the same: it is read once."""
        key, more, beyond = self._key(place, cell)
        if key not in tile.known:
            at, found = self.b.add(start, more), None
            if place.borders:
                found = edges.inside(self.b, place, tile, beyond, self.vector, self.lanes)
            (tile.known[key],) = self.load(place, tile, at, None if found and found.everywhere else found)
        return tile.known[key]  # type: ignore[return-value]

    def load(self, place: Place, tile: Tile, at: Index, found: Inside | None = None) -> Bundle:
        """The vector from element number `at` on. found: which lanes are inside, where some are not."""
        stride, dtype = place.strides[self.vector], place.dtype
        if found is not None:
            return self.values.loaded((edges.read(self.b, place, tile, at, self.vector, found),), dtype)
        if stride == 0:
            return self.values.loaded(self._splat(self.scalar(place, at), dtype), dtype)
        if stride != 1 or (tile.live is not None and dtype == "i1"):
            return self.values.loaded(self._gather(place, tile, at, stride), dtype)
        if isinstance(tile.live, str):
            (mask,) = self.mask(tile) or ("",)
            x = self._masked(place, at, mask)
        else:
            x = self._first(place, at, self.lanes if tile.live is None else tile.live)
        return self.values.loaded((x,), dtype)

    def _picked(self, place: Place, tile: Tile, start: Index, shape: Sequence[int]) -> Bundle:
        """The vectors of a place whose elements are a few apart, row by row (`picks`)."""
        rows: dict[tuple[int, tuple[int, ...]], dict[int, tuple[object, Inside | None]]] = {}
        for cell in cells(shape):
            key, more, beyond = self._key(place, cell)
            if key in tile.known:
                continue
            found = edges.inside(self.b, place, tile, beyond, self.vector, self.lanes) if place.borders else None
            if found is not None and (found.tests or found.nowhere):
                tile.known[key] = self.values.loaded(
                    (edges.read(self.b, place, tile, self.b.add(start, more), self.vector, found),), place.dtype
                )[0]
                continue
            far = [0 if self._is_near(place, d) else i for d, i in enumerate(cell)]
            row = rows.setdefault(self._key(place, far)[1:], {})
            row[more] = key, None if found is None or found.everywhere else found
        for (far_at, _), row in rows.items():
            self._pick_row(place, tile, start, far_at, row)
        return tuple(tile.known[self._key(place, cell)[0]] for cell in cells(shape))  # type: ignore[misc]

    def _is_near(self, place: Place, d: int) -> bool:
        """Whether steps along `d` lead to elements that a vector has between its first and its last."""
        return d == self.vector or 0 < place.strides[d] < self.lanes * place.strides[self.vector]

    def _pick_row(
        self, place: Place, tile: Tile, start: Index, far: int, row: dict[int, tuple[object, Inside | None]]
    ) -> None:
        """The vectors of a row, by how many elements after the tile's first they begin; not all of their lanes are
        inside where that is said. far: the same of the row's first point."""
        live = self.lanes if tile.live is None else tile.live
        assert isinstance(live, int), "lanes that only run time knows are of unit stride"
        stride, t = place.strides[self.vector], f"vector<{self.lanes}x{place.dtype}>"
        wanted = {
            more: [i < live and (found is None or found.lanes[i]) for i in range(self.lanes)]
            for more, (_, found) in row.items()
        }
        before = sum(
            border.start * (stride // border.steps[self.vector])
            for border in place.borders
            if border.steps[self.vector]
        )

        def shuffle(x: str, y: str, choice: Sequence[int]) -> str:
            return self.b.value(f"vector.shuffle {x}, {y} [{', '.join(map(str, choice))}] : {t}, {t}")

        def load(first: int, count: int) -> str:
            return self._first(place, self.b.add(start, first), count)

        for more, name in Picks(wanted, stride, far - before, load, shuffle).all().items():
            key, found = row[more]
            if found is not None:
                outside = self.b.constant(f"dense<{edges.literal(place.around, place.dtype)}>", t)
                mask = edges.mask_of(self.b, found, None)
                name = self.b.value(f"arith.select {mask}, {name}, {outside} : vector<{self.lanes}xi1>, {t}")
            (tile.known[key],) = self.values.loaded((name,), place.dtype)

    def _first(self, place: Place, at: Index, count: int) -> str:
        """A vector with the first `count` elements from `at` on."""
        if count < self.lanes:
            return self._masked(place, at, self.b.mask(count, self.lanes))
        t, i = f"vector<{self.lanes}x{place.dtype}>", self.b.index(at)
        return self.b.value(f"vector.load {place.memory}[{i}] : {place.type}, {t}")

    def _masked(self, place: Place, at: Index, mask: str) -> str:
        """The lanes of `mask` of a vector from `at` on, zero in the others."""
        t, i = f"vector<{self.lanes}x{place.dtype}>", self.b.index(at)
        zero = self.b.constant("dense<0.0>" if is_float(place.dtype) else "dense<0>", t)
        types = f"{place.type}, vector<{self.lanes}xi1>, {t} into {t}"
        return self.b.value(f"vector.maskedload {place.memory}[{i}], {mask}, {zero} : {types}")

    def scalar(self, place: Place, at: Index) -> str:
        """Element number `at`."""
        return self.b.value(f"memref.load {place.memory}[{self.b.index(at)}] : {place.type}")

    def _splat(self, scalar: str, dtype: str) -> Bundle:
        return (self.b.value(f"vector.broadcast {scalar} : {dtype} to vector<{self.lanes}x{dtype}>"),)

    def _gather(self, place: Place, tile: Tile, at: Index, stride: int) -> Bundle:
        """A vector of elements that are no neighbours, one load each."""
        t = f"vector<{self.lanes}x{place.dtype}>"
        live = self.lanes if tile.live is None else tile.live
        assert isinstance(live, int), "lanes that only run time knows are of unit stride"
        parts = [self.scalar(place, self.b.add(at, i * stride)) for i in range(live)]
        parts += parts[:1] * (self.lanes - live)
        return (self.b.value(f"vector.from_elements {', '.join(parts)} : {t}"),)

    # ---------------------------------------------------------------- writing

    def write(self, place: Place, tile: Tile, shape: Sequence[int], bundle: Bundle, streaming: bool = False) -> None:
        """Stores a value of the tile, of this shape."""
        start = self._start(place, tile)
        bundle = self.values.stored(bundle, place.dtype)
        across = self._across(place, tile, shape)
        if across is not None and len(bundle) > 1:
            self._store_transposed(place, start, shape, bundle, *across)
            return
        for i, cell in enumerate(cells(shape)):
            x = bundle[i] if len(bundle) > 1 else bundle[0]
            self._store(place, tile, self.b.add(start, self._offset(place, cell)), x, streaming)

    def _store_transposed(
        self, place: Place, start: Index, shape: Sequence[int], bundle: Bundle, dim: int, width: int
    ) -> None:
        """As `write`: rows of `width` elements along `dim`, transposed in registers."""
        there = dict(zip(cells(shape), bundle, strict=True))
        stride, small = place.strides[self.vector], f"vector<{width}x{place.dtype}>"
        for cell in there:
            if cell[dim] % width:
                continue
            first = self.b.add(start, self._offset(place, cell))
            vectors = [there[(*cell[:dim], cell[dim] + j, *cell[dim + 1 :])] for j in range(width)]
            for lane in range(0, self.lanes, width):
                rows = [self._slice(x, lane, width, place.dtype) for x in vectors]
                for r, row in enumerate(transposed(self.b, rows, width, place.dtype)):
                    i = self.b.index(self.b.add(first, (lane + r) * stride))
                    self.b.line(f"vector.store {row}, {place.memory}[{i}] : {place.type}, {small}")

    def _slice(self, x: str, start: int, size: int, dtype: str) -> str:
        """`size` lanes of a vector, from `start` on."""
        if size == self.lanes:
            return x
        part = f"{{offsets = [{start}], sizes = [{size}], strides = [1]}}"
        types = f"vector<{self.lanes}x{dtype}> to vector<{size}x{dtype}>"
        return self.b.value(f"vector.extract_strided_slice {x} {part} : {types}")

    def _store(self, place: Place, tile: Tile, at: Index, x: str, streaming: bool) -> None:
        stride, t = place.strides[self.vector], f"vector<{self.lanes}x{place.dtype}>"
        if stride == 0 or tile.live == 1:
            # One lane is no masked store: LLVM 22 makes a scalar store of what the lane was truncated from of it, which
            # writes over its neighbours.
            self._store_lane(place, at, x, 0)
        elif stride != 1 or (tile.live is not None and place.dtype == "i1"):
            live = self.lanes if tile.live is None else tile.live
            assert isinstance(live, int), "lanes that only run time knows are of unit stride"
            for i in range(live):
                self._store_lane(place, self.b.add(at, i * stride), x, i)
        elif tile.live is None:
            # Streaming stores trap where memory is not aligned: who asks for them has seen to it.
            note = f" {{nontemporal = true, alignment = {self.vector_bytes(place)} : i64}}" if streaming else ""
            self.b.line(f"vector.store {x}, {place.memory}[{self.b.index(at)}]{note} : {place.type}, {t}")
        elif self.machine.masks or isinstance(tile.live, str):
            (mask,) = self.mask(tile) or ("",)
            types = f"{place.type}, vector<{self.lanes}xi1>, {t}"
            self.b.line(f"vector.maskedstore {place.memory}[{self.b.index(at)}], {mask}, {x} : {types}")
        else:
            self._store_pieces(place, at, x, tile.live)

    def vector_bytes(self, place: Place) -> int:
        return self.lanes * element_bytes(place.dtype)

    def _store_lane(self, place: Place, at: Index, x: str, lane: int) -> None:
        t = f"vector<{self.lanes}x{place.dtype}>"
        scalar = self.b.value(f"vector.extract {x}[{lane}] : {place.dtype} from {t}")
        self.b.line(f"memref.store {scalar}, {place.memory}[{self.b.index(at)}] : {place.type}")

    def _store_pieces(self, place: Place, at: Index, x: str, live: int) -> None:
        """The first lanes in pieces: masked stores are slow on some cores with AVX2."""
        for start, size in Machine.split(live, self.lanes):
            if size == 1:
                self._store_lane(place, self.b.add(at, start), x, start)
                continue
            small, piece = f"vector<{size}x{place.dtype}>", self._slice(x, start, size, place.dtype)
            self.b.line(
                f"vector.store {piece}, {place.memory}[{self.b.index(self.b.add(at, start))}] : {place.type}, {small}"
            )

    def prefetch(self, place: Place, tile: Tile, shape: Sequence[int], ahead: int) -> None:
        """Asks for the lines that lie `ahead` elements after those of the tile."""
        start, line = self._start(place, tile), 64 // element_bytes(place.dtype)
        asked: set[int] = set()
        for cell in cells(shape):
            first = self._offset(place, cell)
            for more in range(first, first + self.lanes, line):
                if more // line not in asked:
                    asked.add(more // line)
                    i = self.b.index(self.b.add(start, more + ahead))
                    self.b.line(f"memref.prefetch {place.memory}[{i}], read, locality<3>, data : {place.type}")
