"""The rule behind `online`: a sum of values that scale with exp(-m) can be kept against any m, and corrected later.

A value *shifts* by c when it is w - c * m with w free of m; it *scales* when it is w * exp(-c * m). exp of what shifts
scales; so do products of what scales with anything free of m, and sums over the scan dims of what scales. When the
maximum grows from m to m', sums and stored values that scale are multiplied by exp(c * (m - m')).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from .body import Body

MAXIMA = ("reduce_max", "reduce_maxnum")
_EXPONENTIALS = ("exp", "exp2")


@dataclass(frozen=True, slots=True)
class Scaling:
    """How a value scales: by `exponential` of (old - new) * factor. factor: a value that does not vary along scan dims;
    None: 1."""

    exponential: str
    factor: int | None = None


def scalings(body: Body, m: int, row: Collection[int]) -> dict[int, Scaling]:
    """The values that scale with the maximum `m`, and how. row: the values that do not vary along scan dims."""
    tainted = {m}
    shifts: dict[int, int | None] = {}
    out: dict[int, Scaling] = {}
    for at, value in enumerate(body.values):
        if at <= m or not tainted.intersection(value.args):
            continue
        tainted.add(at)
        free = [a for a in value.args if a not in tainted]
        if value.op == "sub" and value.args[1] == m and free:
            shifts[at] = None
        elif value.op in ("add", "sub") and value.args[0] in shifts and free:
            shifts[at] = shifts[value.args[0]]
        elif value.op == "add" and value.args[1] in shifts and free:
            shifts[at] = shifts[value.args[1]]
        elif value.op == "mul" and free and free[0] in row:
            other = next(a for a in value.args if a not in free)
            if shifts.get(other, m) is None:
                shifts[at] = free[0]
            elif other in out:
                out[at] = out[other]
        elif value.op in _EXPONENTIALS and value.args[0] in shifts:
            out[at] = Scaling(value.op, shifts[value.args[0]])
        elif value.op in ("mul", "div", "neg", "cast", "reduce_sum"):
            first = value.args[0]
            other = first if first in out else value.args[-1]
            alone = len(value.args) == 1 or len(free) == 1
            if other in out and alone and not (value.op == "div" and other != first):
                out[at] = out[other]
    return out
