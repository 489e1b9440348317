"""What is known of a mask: that it hides, in every row, all columns beyond the row's own number and some more.

    x2 = 0 above 0

says of an input with m rows and n columns that x2[b, i, j] is 0 wherever j > i + 0; `= 1`, that it is not 0 there. A
softmax that puts -inf where x2 says so then gives nothing to these columns, and `skip what is masked` leaves them out.
So does one that adds -inf there, as long as scores are finite.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..errors import SpecError
from ..nests import NestSpec
from ..nests.body import Body

#: Masks of more elements are not looked at.
LARGEST = 1 << 24
_MASK = re.compile(r"\s*(x[0-9]{1,3})\s*=\s*([01])\s+above\s+(-?[0-9]{1,9})\s*")


@dataclass(frozen=True, slots=True)
class Mask:
    """name: of the input; value: 0, or 1 for what is not 0, wherever the column is more than `above` beyond the row."""

    name: str
    value: int
    above: int

    def __str__(self) -> str:
        return f"{self.name} = {self.value} above {self.above}"

    @staticmethod
    def is_text(line: str) -> bool:
        return _MASK.fullmatch(line) is not None

    @staticmethod
    def parse(line: str) -> Mask:
        m = _MASK.fullmatch(line)
        if m is None:
            raise SpecError(f"cannot read the mask '{line.strip()}': expected x2 = 0 above 0")
        return Mask(m[1], int(m[2]), int(m[3]))

    def columns(self, last_row: int, columns: int) -> int:
        """How many columns, from the first on, the rows up to `last_row` may see."""
        return min(columns, max(0, last_row + self.above + 1))


def hides(body: Body, k: int, value: int, at: int) -> bool:
    """Whether value number `at` is -inf wherever input k is 0 (value 0), or is not (value 1)."""
    v = body.values
    while v[at].op == "cast":
        at = v[at].args[0]
    if v[at].op != "select":
        return False
    condition, kept, other = v[at].args
    test = v[condition]
    if test.op != "cmp" or test.attr not in ("ne", "eq"):
        return False
    x, zero = (v[a] for a in test.args)
    if (x.op, x.attr) != ("input", k) or zero.op != "const" or zero.number != 0:
        return False
    hidden = kept if (test.attr == "ne") == bool(value) else other
    return v[hidden].op == "const" and v[hidden].attr == "-inf"


def hides_by_adding(body: Body, k: int, value: int, at: int, score: int) -> float | None:
    """As `hides`, where value number `at` is a multiple of input `score`, in f32, and what is 0 or -inf by input k: the
    largest factor on the way to that multiple, 1 at least. None of anything else."""
    added = body.values[at]
    if added.op != "add" or added.dtype != "f32":
        return None
    for x, more in (added.args, added.args[::-1]):
        if hides(body, k, value, more) and _shown(body, more):
            return factor(body, x, score)
    return None


def _shown(body: Body, at: int) -> bool:
    """Whether one of the two values that a selection chooses from is 0."""
    return any(body.values[a].op == "const" and body.values[a].number == 0 for a in body.values[at].args[1:])


def factor(body: Body, at: int, score: int) -> float | None:
    """The largest factor, 1 at least, of input `score` in f32 on the way to value number `at`, a multiple of it by
    constants; None of others."""
    v, scale, largest = body.values, 1.0, 1.0
    steps: list[float] = []
    while v[at].op in ("mul", "div") and v[at].dtype == "f32":
        a, b = v[at].args
        if v[a].op == "const" and v[at].op == "mul":
            a, b = b, a
        if v[b].op != "const" or v[b].number == 0:
            return None
        number = abs(float(v[b].number))
        steps.append(number if v[at].op == "mul" else 1 / number)
        at = a
    if (v[at].op, v[at].attr, v[at].dtype) != ("input", score, "f32"):
        return None
    for step in reversed(steps):
        scale *= step
        largest = max(largest, scale)
    return largest


@lru_cache(maxsize=64)
def mask_made_by(nest: NestSpec, rows: int, columns: int) -> tuple[int, int] | None:
    """(value, above) of a mask, rows x columns, that a nest makes of positions alone; None of others."""
    if nest.inputs or len(nest.body.outputs) != 1 or any(nest.scan) or rows * columns > LARGEST:
        return None
    if nest.dims != (rows, columns) or nest.operands[0].strides != (columns, 1) or nest.operands[0].dtype != "i8":
        return None
    (made,) = nest.evaluate([])
    return None if made.shape != (rows, columns) else _above(made != 0)


def _above(mask: np.ndarray) -> tuple[int, int] | None:
    best: tuple[int, int] | None = None
    for value in (0, 1):
        i, j = np.nonzero(mask != bool(value))
        above = int((j - i).max()) if len(i) else -mask.shape[0]
        if above < mask.shape[1] - 1 and (best is None or above < best[1]):
            best = (value, above)
    return best
