"""Reading operands with borders: which lanes of a vector are inside, and loads of these alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from ...lowering.builder import Builder, Index
from ..borders import Border
from ..ops import is_float
from .values import computed
from .vectors import float_bits

if TYPE_CHECKING:
    from .memory import Place, Tile

#: A border, and by how many places it has been moved: who knows to be inside of it, knows it of all operands.
Edge: TypeAlias = tuple[Border, Index]


@dataclass(frozen=True, slots=True)
class Inside:
    """lanes: by lane, whether it is inside as far as is known now; tests: what run time must look at as well, as
    (place of the first lane, places from lane to lane, extent)."""

    lanes: tuple[bool, ...]
    tests: tuple[tuple[str, int, int], ...] = ()

    @property
    def everywhere(self) -> bool:
        return all(self.lanes) and not self.tests

    @property
    def nowhere(self) -> bool:
        return not any(self.lanes)


def edges(place: Place) -> list[Edge]:
    """The borders of an operand."""
    return list(zip(place.borders, place.shifts, strict=True))


def unknown(place: Place) -> list[Edge]:
    """Those of its borders that a loop around the nest does not keep it inside of."""
    return [edge for number, edge in enumerate(edges(place)) if number not in place.inside]


def shifted(place: Place, d: int, by: Index, b: Builder) -> tuple[Index, ...]:
    """The operand's shifts where it begins at position `by` along dim `d`."""
    return tuple(b.add(s, b.mul(by, border.steps[d])) for border, s in edges(place))


def places(b: Builder, place: Place, tile: Tile) -> tuple[Index, ...]:
    """Along each border, the place of the tile's first point."""
    key = (place.memory, place.strides, place.offset, place.borders, "places")
    if key not in tile.known:
        found = []
        for border, shift in edges(place):
            at = b.add(shift, border.start)
            for position, step in zip(tile.at, border.steps, strict=True):
                at = b.add(at, b.mul(position, step))
            found.append(at)
        tile.known[key] = tuple(found)
    return tile.known[key]  # type: ignore[return-value]


def inside(b: Builder, place: Place, tile: Tile, more: Sequence[int], vector: int, lanes: int) -> Inside:
    """Which lanes of a vector are inside. more: by border, places from the tile's first point to the vector's."""
    own, tests = [True] * lanes, []
    for number, (edge, first, beyond) in enumerate(zip(edges(place), places(b, place, tile), more, strict=True)):
        border, at, step = edge[0], b.add(first, beyond), edge[0].steps[vector]
        if edge in tile.inside or number in place.inside:
            continue
        if isinstance(at, int):
            own = [x and 0 <= at + i * step < border.extent for i, x in enumerate(own)]
        else:
            tests.append((at, step, border.extent))
    live = tile.live if isinstance(tile.live, int) else lanes
    # Lanes that do not count are like the last one that does.
    own = [own[min(i, live - 1)] for i in range(lanes)]
    return Inside(tuple(own), tuple(tests) if any(own) else ())


def mask_of(b: Builder, found: Inside, live: str | int | None) -> str:
    """The lanes that are read, as a vector of i1."""
    lanes = len(found.lanes)
    kind, wide = f"vector<{lanes}xi1>", f"vector<{lanes}xi32>"
    counted = [x and (not isinstance(live, int) or i < live) for i, x in enumerate(found.lanes)]
    masks = [] if all(counted) else [b.constant(f"dense<[{', '.join(str(x).lower() for x in counted)}]>", kind)]
    if isinstance(live, str):
        masks.append(b.value(f"vector.create_mask {live} : {kind}"))
    for at, step, extent in found.tests:
        if step:
            first = b.value(f"arith.index_cast {at} : index to i32")
            spread = b.value(f"vector.broadcast {first} : i32 to {wide}")
            numbers = b.constant(f"dense<[{', '.join(str(i * step) for i in range(lanes))}]>", wide)
            own = b.value(f"arith.addi {spread}, {numbers} : {wide}")
            # What is before the first place is huge without a sign.
            masks.append(b.value(f"arith.cmpi ult, {own}, {b.constant(f'dense<{extent}>', wide)} : {wide}"))
        else:
            masks.append(b.value(f"vector.broadcast {_is_inside(b, at, extent)} : i1 to {kind}"))
    mask, *others = masks or [b.constant("dense<true>", kind)]
    for other in others:
        mask = b.value(f"arith.andi {mask}, {other} : {kind}")
    return mask


def _is_inside(b: Builder, at: Index, extent: int) -> str:
    return b.value(f"arith.cmpi ult, {b.index(at)}, {b.index(extent)} : index")


def all_inside(b: Builder, found: Sequence[tuple[Edge, Index, int]]) -> str:
    """An i1: whether all points of a group are inside. found: for each border, with the place of the group's first
    point, and how far its last one is from that."""
    ok = _all_of(b, [(p, border.extent) for (border, _), at, reach in found for p in (at, b.add(at, reach))])
    assert ok is not None
    return ok


def literal(x: float | int, dtype: str) -> str:
    """A number as an element of `dtype`, as MLIR has constants."""
    if not is_float(dtype):
        return str(int(x))
    if math.isfinite(x) and computed(dtype) != dtype:
        return repr(float(x))
    infinite = {"f16": "7C00", "bf16": "7F80"}.get(dtype)
    if infinite is not None:
        return f"0x{int(infinite, 16) | (0x8000 if x < 0 else 0):04X}"
    return float_bits(float(x), dtype)


def read(b: Builder, place: Place, tile: Tile, at: Index, vector: int, found: Inside) -> str:
    """A vector of elements as they lie, with `around` in the lanes that are outside (of those that count)."""
    stride, dtype, lanes = place.strides[vector], place.dtype, len(found.lanes)
    t = f"vector<{lanes}x{dtype}>"
    outside = b.constant(f"dense<{literal(place.around, dtype)}>", t)
    if found.nowhere:
        return outside
    if stride == 0:
        return _same(b, place, at, found)
    mask = mask_of(b, found, tile.live)
    at = _mapped(b, at, found)
    if stride == 1:
        types = f"{place.type}, vector<{lanes}xi1>, {t} into {t}"
        return b.value(f"vector.maskedload {place.memory}[{b.index(at)}], {mask}, {outside} : {types}")
    wide = f"vector<{lanes}xi32>"
    numbers = b.constant(f"dense<[{', '.join(str(i * stride) for i in range(lanes))}]>", wide)
    types = f"{place.type}, {wide}, vector<{lanes}xi1>, {t} into {t}"
    return b.value(f"vector.gather {place.memory}[{b.index(at)}] [{numbers}], {mask}, {outside} : {types}")


def _mapped(b: Builder, at: Index, found: Inside) -> Index:
    """Where a vector is read of which no lane may be: at the memory's first element. Processors take hundreds of cycles
    for a load without a lane where no page is, or none that has ever been written, as beside an image."""
    ok = _all_of(b, [(position, extent) for position, step, extent in found.tests if step == 0])
    return at if ok is None else b.value(f"arith.select {ok}, {b.index(at)}, {b.index(0)} : index")


def _all_of(b: Builder, tests: Sequence[tuple[Index, int]]) -> str | None:
    """An i1: whether all of these places are inside of these extents; None where there are none."""
    ok: str | None = None
    for at, extent in tests:
        test = _is_inside(b, at, extent)
        ok = test if ok is None else b.value(f"arith.andi {ok}, {test} : i1")
    return ok


def _same(b: Builder, place: Place, at: Index, found: Inside) -> str:
    """One element in all lanes; where it is outside, what is around."""
    dtype = place.dtype
    ok = _all_of(b, [(position, extent) for position, _, extent in found.tests])
    assert ok is not None, "an element that is known to be inside is loaded as any other"
    other, scalar, loaded = b.constant(literal(place.around, dtype), dtype), b.name(), b.name()
    b.line(f"{scalar} = scf.if {ok} -> ({dtype}) {{")
    b.line(f"{loaded} = memref.load {place.memory}[{b.index(at)}] : {place.type}")
    b.line(f"scf.yield {loaded} : {dtype}")
    b.line("} else {")
    b.line(f"scf.yield {other} : {dtype}")
    b.line("}")
    return b.value(f"vector.broadcast {scalar} : {dtype} to vector<{len(found.lanes)}x{dtype}>")
