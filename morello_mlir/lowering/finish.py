"""What is done to sums at the last step along k, before they are written: `Spec.then` on vectors and elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..nests.lowering.vector_math import FUNCTIONS
from ..spec import Then
from .builder import Builder, Index
from .bundle import Bundle
from .elementwise import emit
from .views import OUT, Flat, Operand

#: Instructions for the results of a register tile up to which there is no loop over its rows.
_STRAIGHT = 400
#: About how many a function of vectors is.
_FUNCTION = 15
#: A place of the output: batch, row, column.
Place = tuple[Index, Index, Index]


@dataclass(frozen=True, slots=True)
class Finish:
    """then: see Spec. last: whether this is the last step (an i1's SSA name, where run time knows). apart: sums are
    kept in another place than results, which is then the last operand.

    Operands are lhs, rhs, the sums, the extras of `then`, and the results where these are apart; all but the first two
    have the dims of the output.
    """

    then: Then
    last: bool | str = True
    apart: bool = False

    def result(self, operands: Sequence[Operand]) -> Operand:
        """Where results are written."""
        return operands[-1] if self.apart else operands[OUT]

    def extras(self, operands: Sequence[Operand]) -> Sequence[Operand]:
        return operands[OUT + 1 : OUT + 1 + len(self.then.extras)]

    def on(self, last: bool | str) -> Finish:
        return replace(self, last=last)

    # ---------------------------------------------------------------- vectors

    def room(self, b: Builder, vectors: int) -> Flat | None:
        """Memory for the `vectors` of a register tile, where a loop goes over its rows: bodies that are long would be
        very much code. None where none does. It belongs at the top of a function."""
        if self.last is False or vectors * sum(_size(v.op) for v in self.then.body.values) <= _STRAIGHT:
            return None
        kind = f"memref<{vectors * b.machine.lanes}x{b.machine.dtype}>"
        return Flat(b.value(f"memref.alloca() {{alignment = 64 : i64}} : {kind}"), kind, b.machine.dtype)

    def tile(self, b: Builder, operands: Sequence[Operand], tile: Bundle, room: Flat | None) -> None:
        """Writes the results for a register tile of sums. room: see there."""
        loads = _Vectors(b, self.extras(operands), tile)
        memory = self.result(operands).flat(b)
        if room is None:
            for row in range(tile.rows):
                self._row(b, operands, tile, loads, memory, row, tile.values[row * tile.vectors :])
            return
        lanes = b.machine.lanes
        for i, value in enumerate(tile.values):
            b.vstore(value, room, i * lanes, lanes)
        loads.shared()
        with b.loop(0, tile.rows, 1) as r:
            at = b.mul(r, tile.vectors * lanes)
            sums = [b.vload(room, b.add(at, v * lanes), lanes) for v in range(tile.vectors)]
            self._row(b, operands, tile, loads, memory, r, sums)

    def _row(
        self,
        b: Builder,
        operands: Sequence[Operand],
        tile: Bundle,
        loads: _Vectors,
        memory: Flat,
        r: Index,
        sums: Sequence[str],
    ) -> None:
        view, lanes = self.result(operands).view, b.machine.lanes
        row, lane = b.mul(r, view.stride(1)), view.stride(2)
        for v in range(tile.vectors):
            (y,) = emit(b, self.then.body, [sums[v], *loads.at(r, v)], lanes)
            width = tile.tail if v == tile.vectors - 1 else lanes
            b.vstore(y, memory, b.add(row, v * lanes * lane), width, lanes, stride=lane)

    # ---------------------------------------------------------------- elements

    def elements(self, b: Builder, operands: Sequence[Operand], places: Sequence[Place], sums: Sequence[str]) -> None:
        """Writes the results for single sums: as one vector, since functions of vectors are the fast ones."""
        lanes = 1 << (len(sums) - 1).bit_length()
        inputs = [_together(b, sums, self.then.sums, lanes)]
        for extra in self.extras(operands):
            memory = extra.flat(b)
            offsets = [_offset(b, extra, p) for p in places]
            loaded = {at: b.load(memory, at) for at in dict.fromkeys(offsets)}
            values = [loaded[at] for at in offsets]
            inputs.append(_together(b, values, extra.view.element, lanes))
        (y,) = emit(b, self.then.body, inputs, lanes)
        out = self.result(operands)
        memory, dtype = out.flat(b), self.then.dtype
        for i, place in enumerate(places):
            b.store(
                b.value(f"vector.extract {y}[{i}] : {dtype} from vector<{lanes}x{dtype}>"),
                memory,
                _offset(b, out, place),
            )


class _Vectors:
    """The vectors of the extras for a register tile; what rows or columns share is loaded once."""

    def __init__(self, b: Builder, extras: Sequence[Operand], tile: Bundle):
        self._b, self._extras, self._tile = b, extras, tile
        self._flats = [e.flat(b) for e in extras]
        self._known: dict[tuple[int, Index, int], str] = {}

    def shared(self) -> None:
        """Loads what all rows share."""
        for i, extra in enumerate(self._extras):
            if not _step(extra, 1):
                for v in range(self._tile.vectors):
                    self._one(i, extra, 0, v)

    def at(self, r: Index, v: int) -> list[str]:
        """For vector `v` of row `r`."""
        return [self._one(i, e, r, v) for i, e in enumerate(self._extras)]

    def _one(self, i: int, extra: Operand, r: Index, v: int) -> str:
        row, lane = (_step(extra, d) for d in (1, 2))
        key = (i, r if row else 0, v if lane else 0)
        if key not in self._known:
            self._known[key] = self._load(i, extra, self._b.mul(r, row), lane, v)
        return self._known[key]

    def _load(self, i: int, extra: Operand, start: Index, lane: int, v: int) -> str:
        b, lanes = self._b, self._b.machine.lanes
        if lane == 0:
            element = extra.view.element
            scalar = b.load(self._flats[i], start)
            return b.value(f"vector.broadcast {scalar} : {element} to vector<{lanes}x{element}>")
        width = self._tile.tail if v == self._tile.vectors - 1 else lanes
        return b.vload(self._flats[i], b.add(start, v * lanes * lane), width, lanes, stride=lane)


def _size(op: str) -> int:
    """About how many instructions an op is."""
    return _FUNCTION if op in FUNCTIONS else 1


def _step(operand: Operand, dim: int) -> int:
    """Elements from one place along `dim` to the next; 0 where there is but one."""
    return operand.view.stride(dim) if operand.view.sizes[dim] != 1 else 0


def _offset(b: Builder, operand: Operand, place: Place) -> Index:
    at: Index = 0
    for dim, i in enumerate(place):
        at = b.add(at, b.mul(i, _step(operand, dim)))
    return at


def _together(b: Builder, values: Sequence[str], dtype: str, lanes: int) -> str:
    padded = [*values, *[values[-1]] * (lanes - len(values))]
    return b.value(f"vector.from_elements {', '.join(padded)} : vector<{lanes}x{dtype}>")


def on_last(b: Builder, finish: Finish | None, results: Callable[[Finish], None], sums: Callable[[], None]) -> None:
    """Emits `results` for the last step and `sums` for others: one of them, or both in an `scf.if`."""
    if finish is None or finish.last is False:
        sums()
    elif finish.last is True:
        results(finish)
    else:
        b.line(f"scf.if {finish.last} {{")
        results(finish)
        b.line("} else {")
        sums()
        b.line("}")
