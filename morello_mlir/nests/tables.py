"""Operands that are tables: along some of their axes, the body says which place is read.

    y = gather(x1, x0)     of     (i64, GL, [1, 0]), (f32, GL, [0, 1], axes [768] of [30522]), (f32, GL, [768, 1])

copies rows of 768 elements: row number x0 of 30522. The strides are those of what does not depend on a number, as for
any other operand. Reading a place that is none is undefined: as with the ops that gathers are made from, memory at
that address is read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import SpecError
from ..spec.layout import NUMBER
from ..targets import LINE

_LIST = rf"\[\s*((?:{NUMBER}\s*,\s*)*{NUMBER})\s*\]"
_TEXT = re.compile(rf"axes\s+{_LIST}\s+of\s+{_LIST}")


@dataclass(frozen=True, slots=True)
class Axis:
    """stride: elements from a place to the next; extent: places that there are, from 0 on."""

    stride: int
    extent: int

    def __post_init__(self) -> None:
        if self.stride < 0 or self.extent < 1:
            raise SpecError(f"an axis has a stride that is not negative, and a place or more: {self}")


def to_text(axes: Sequence[Axis]) -> str:
    """As `parse` reads it."""
    return f"axes {[a.stride for a in axes]} of {[a.extent for a in axes]}"


def parse(text: str) -> tuple[Axis, ...]:
    """Reads what `to_text` printed; nothing where it is something else. Raises SpecError."""
    m = _TEXT.fullmatch(text.strip())
    if m is None:
        return ()
    strides, extents = ([int(x) for x in part.split(",")] for part in m.groups())
    if len(strides) != len(extents):
        raise SpecError(f"as many strides as extents: '{text.strip()}'")
    return tuple(Axis(s, n) for s, n in zip(strides, extents, strict=True))


def reach(axes: Sequence[Axis]) -> int:
    """Elements from the first to the last place."""
    return sum((a.extent - 1) * a.stride for a in axes)


def apart(
    strides: Sequence[int], axes: Sequence[Axis], dims: Sequence[int], along: frozenset[int], nbytes: int
) -> tuple[int, ...]:
    """The strides of a table as cache lines see it: each combination of positions `along`, the dims along which its
    places vary, counts as a row elsewhere, unless there are more of them than the table has rows.

    nbytes: of an element."""
    own = [0 if d in along else s for d, s in enumerate(strides)]
    run = sum((n - 1) * s for n, s in zip(dims, own, strict=True)) * nbytes
    # Rows with a line or more in between, whose starts do not crowd in few sets of a cache.
    step = (run // LINE + 2 | 1) * LINE // nbytes
    rows, met, out = math.prod(a.extent for a in axes), 1, list(own)
    for d in sorted(along, reverse=True):
        met *= dims[d]
        if met > rows:
            break
        out[d] = step
        step *= dims[d]
    return tuple(out)


def gathered(table: np.ndarray, places: Sequence[np.ndarray]) -> np.ndarray:
    """What a table holds at `places`. table: dims of the nest (size 1 where it does not vary), then its axes; places:
    one for each axis, over the dims of the nest. Raises SpecError where there is none."""
    rank = table.ndim - len(places)
    for axis, place in enumerate(places):
        if place.size and not (place.min() >= 0 and place.max() < table.shape[rank + axis]):
            raise SpecError(f"a place along axis {axis} of a table is none of its {table.shape[rank + axis]}")
    steps = [np.arange(n).reshape([-1 if d == e else 1 for e in range(rank)]) for d, n in enumerate(table.shape[:rank])]
    at = [np.minimum(s, table.shape[d] - 1) for d, s in enumerate(steps)]
    return np.asarray(table[(*at, *places)])
