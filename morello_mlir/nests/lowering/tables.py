"""Reading tables: whole vectors of the row that a number says, or an element for each lane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...lowering.builder import Builder, Index
from ..ops import is_float
from .memory import Memory, Place, Tile, cells
from .vectors import Bundle

#: Elements that there are instructions for: of a vector, each at a place of its own.
INSTRUCTIONS = ("f32", "f64", "i32", "i64")


@dataclass(frozen=True, slots=True)
class Places:
    """Places along one axis of a table, by vector that is read. names: vectors of `dtype`, of one lane each where the
    place is the `same` for a whole vector."""

    names: Bundle
    dtype: str
    same: bool

    def name(self, i: int) -> str:
        return self.names[i] if len(self.names) > 1 else self.names[0]


def gathered(memory: Memory, place: Place, tile: Tile, shape: Sequence[int], places: Sequence[Places]) -> Bundle:
    """The values of a table in the tile, as they are held. places: by axis, bundles of `shape`."""
    out: list[str] = []
    numbers: dict[str, Index] = {}
    for i, cell in enumerate(cells(shape)):
        at, apart = memory.at(place, tile, cell), []
        for axis, stride in zip(places, place.axes, strict=True):
            name = axis.name(i)
            if axis.same and name not in numbers:
                numbers[name] = memory.b.mul(_number(memory.b, name, axis.dtype), stride)
            if axis.same:
                at = memory.b.add(at, numbers[name])
            else:
                apart.append((name, axis.dtype, stride))
        out += _each_lane(memory, place, tile, at, apart) if apart else memory.load(place, tile, at)
    return tuple(out)


def _number(b: Builder, name: str, dtype: str) -> str:
    """The element of a vector of one lane, as an index."""
    scalar = b.value(f"vector.extract {name}[0] : {dtype} from vector<1x{dtype}>")
    return b.value(f"arith.index_cast {scalar} : {dtype} to index")


def _each_lane(memory: Memory, place: Place, tile: Tile, at: Index, apart: Sequence[tuple[str, str, int]]) -> Bundle:
    """A vector of elements, that of each lane where its places say. Of lanes that do not count nothing is read."""
    b, lanes, dtype = memory.b, memory.lanes, place.dtype
    t, wide = f"vector<{lanes}x{dtype}>", f"vector<{lanes}xi64>"
    steps = ", ".join(str(i * place.strides[memory.vector]) for i in range(lanes))
    offsets = b.constant(f"dense<[{steps}]>", wide)
    for name, kind, stride in apart:
        own = name if kind == "i64" else b.value(f"arith.extsi {name} : vector<{lanes}x{kind}> to {wide}")
        own = b.value(f"arith.muli {own}, {b.constant(f'dense<{stride}>', wide)} : {wide}")
        offsets = b.value(f"arith.addi {offsets}, {own} : {wide}")
    if dtype in INSTRUCTIONS:
        kind = f"vector<{lanes}xi1>"
        mask = next(iter(memory.mask(tile) or ()), None) or b.constant("dense<true>", kind)
        zero = b.constant("dense<0.0>" if is_float(dtype) else "dense<0>", t)
        types = f"{place.type}, {wide}, {kind}, {t} into {t}"
        line = f"vector.gather {place.memory}[{b.index(at)}] [{offsets}], {mask}, {zero} : {types}"
        return memory.values.loaded((b.value(line),), dtype)
    live = lanes if tile.live is None else tile.live
    assert isinstance(live, int), "lanes that only run time knows are of unit stride"
    parts = []
    for i in range(live):
        offset = b.value(f"vector.extract {offsets}[{i}] : i64 from {wide}")
        number = b.value(f"arith.index_cast {offset} : i64 to index")
        parts.append(memory.scalar(place, b.add(at, number)))
    parts += parts[:1] * (lanes - live)
    return memory.values.loaded((b.value(f"vector.from_elements {', '.join(parts)} : {t}"),), dtype)
