"""Tables among the inputs of a nest: what bodies of linalg ops read at places of their own (see `lifting.tables`)."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mlir import ir

from morello_mlir.nests import Body, BodyBuilder
from morello_mlir.nests.body import READS

from .index import Index
from .linear import is_in, linear
from .structured import VIEWS


@dataclass
class Tables:
    """The tables of one nest. A table is an input for each place at which it is read: known by what it is, the indices
    that are known, and the values that say the others."""

    _numbers: dict[Any, int] = field(default_factory=dict)

    def number(self, table: Any, indices: tuple[Index | None, ...], places: Sequence[int], new: int) -> int:
        """The number of the input; new: that of the next one."""
        return self._numbers.setdefault((table, indices, tuple(places)), new)

    def made_in(self, members: Container[Any]) -> Any:
        """An op among `members` of whose result a table is made: that must be there before. None: there is none."""
        for table, _, _ in self._numbers:
            while not isinstance(table.owner, ir.Block):
                owner = table.owner.operation
                if owner in members:
                    return owner
                if owner.name not in VIEWS:
                    break
                table = owner.operands[0]
        return None


def indices_of(
    b: BodyBuilder, places: Sequence[int], shape: Sequence[int], sizes: Sequence[int]
) -> tuple[Index | None, ...]:
    """Places along the dims of a table of `shape` as indices; None for what only the body can say. sizes: of the dims
    of the nest."""
    found = (linear(b, place, sizes) for place in places)
    return tuple(i if i is not None and is_in(i, n, sizes) else None for i, n in zip(found, shape, strict=True))


def narrowed(b: BodyBuilder, places: Sequence[int]) -> list[int]:
    """Places as the values that they were before they were widened, if so."""
    values = [b.value(place) for place in places]
    return [
        v.args[0] if v.op == "cast" and b.dtype(v.args[0]) == "i32" else place
        for v, place in zip(values, places, strict=True)
    ]


def renumbered(body: Body, number: dict[int, int]) -> Body:
    """`body` with other numbers for its inputs, tables among them."""
    b = BodyBuilder()
    made: list[int] = []
    for value in body.values:
        if value.op not in READS:
            made.append(b.add(value, [made[a] for a in value.args]))
        elif value.attr in number:
            new = replace(value, attr=number[int(value.attr)])
            made.append(b.add(new, [made[a] for a in value.args]))
        else:
            made.append(-1)
    return b.build([made[v] for v in body.outputs])
