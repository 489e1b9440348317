"""Reductions on vectors: accumulators, one step, and what is left of them at the end.

A reduction has `state`: one bundle or several. sum, prod, and, or, the integer extremes and the `num` kinds have one
accumulator. max and min of floats are one instruction a step, which loses NaN: a second bundle of integers remembers
where there was one. argmax and its like carry values and positions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..ops import ELEMENT_BYTES, is_float
from .values import Values, computed
from .vectors import Bundle

#: Bundles that make up the state, each with an entry per accumulator.
State = list[Bundle]

_COMBINE = {
    "sum": ("addf", "addi"),
    "prod": ("mulf", "muli"),
    "and": ("", "andi"),
    "or": ("", "ori"),
    "xor": ("", "xori"),
    "max": ("", "maxsi"),
    "min": ("", "minsi"),
    "umax": ("", "maxui"),
    "umin": ("", "minui"),
}


@dataclass(frozen=True, slots=True)
class Reduction:
    """name: of REDUCTIONS. dtype: of what is compared or added; payload: of the positions, for argmax and its like.

    quiet: nobody sees whether the maximum of NaN is NaN. ascending: positions come in ascending order, so that the
    first of equals is the one that is there already.
    """

    name: str
    dtype: str
    payload: str = ""
    quiet: bool = False
    ascending: bool = False

    @property
    def is_arg(self) -> bool:
        return self.name.startswith("arg")

    @property
    def _largest(self) -> bool:
        return "max" in self.name

    @property
    def _remembers(self) -> bool:
        """Whether there is a bundle that knows of NaN."""
        return self.name in ("max", "min") and is_float(self.dtype) and not self.quiet

    @property
    def types(self) -> list[str]:
        """The dtypes of the bundles of the state."""
        if self.is_arg:
            return [self.dtype, self.payload]
        return [self.dtype, self._flag] if self._remembers else [self.dtype]

    @property
    def _flag(self) -> str:
        """Integers as wide as the floats: what a comparison gives without conversion."""
        return f"i{8 * ELEMENT_BYTES[computed(self.dtype)]}"

    @property
    def is_sum(self) -> bool:
        """Whether rounding grows with the number of steps."""
        return self.name == "sum" and is_float(self.dtype)

    def neutral(self) -> float | int:
        """What changes nothing, and is the result of no elements."""
        if self.name in ("sum", "prod", "or", "xor"):
            return int(self.name == "prod")
        bits = 8 * ELEMENT_BYTES[self.dtype]
        if is_float(self.dtype):
            return -math.inf if self._largest else math.inf
        if self.dtype == "i1":
            # As i1 has no sign here, true is the larger one.
            return int(not self._largest)
        if self.name in ("umax", "umin", "and"):
            return 0 if self.name == "umax" else -1
        return -(1 << (bits - 1)) if self._largest else (1 << (bits - 1)) - 1

    def start(self, v: Values, count: int) -> State:
        """`count` accumulators that have seen nothing."""
        first = v.number(self.neutral(), self.dtype) * count
        if self.is_arg:
            return [first, v.number(_top(self.payload), self.payload) * count]
        return [first, v.number(0, self._flag) * count] if self._remembers else [first]

    # ---------------------------------------------------------------- a step

    def step(self, v: Values, state: State, args: Sequence[Bundle], live: Bundle | None, row: int) -> State:
        """The accumulators after one element each; `row` neighbours belong to one row. live: a mask of the lanes that
        count."""
        x = args[0]
        if live is not None:
            x = v.select(live, x, v.number(self.neutral(), self.dtype), self.dtype)
        if self.is_arg:
            place = args[1]
            if live is not None:
                # A neutral value must not win among equals.
                place = v.select(live, place, v.number(_top(self.payload), self.payload), self.payload)
            return self._arg_step(v, state, (x, place))
        if self._remembers:
            # The maximum keeps the accumulator where x is NaN; what has become NaN stays so.
            f = v.floats(self.dtype)
            pick = f.larger if self._largest else f.smaller
            return [pick(x, state[0]), self._remembered(v, state[1], x, row)]
        return [self.combine(v, x, state[0])]

    def _remembered(self, v: Values, flags: Bundle, x: Bundle, row: int) -> Bundle:
        """The flags with those of x: two vectors of a row are looked at in one comparison."""
        f = v.floats(self.dtype)
        out = list(flags)
        for i in (first + k for first in range(0, len(x), row) for k in range(0, row, 2)):
            nan = f.compare("uno", (x[i],), (x[i + 1 if i % row + 1 < row else i],))
            wide = v.each(f"arith.extsi {{}} : {v.type('i1')} to {v.type(self._flag)}", nan)
            (out[i],) = v.each(f"arith.ori {{}}, {{}} : {v.type(self._flag)}", (out[i],), wide)
        return tuple(out)

    def combine(self, v: Values, x: Bundle, y: Bundle) -> Bundle:
        """x with the accumulators y, of reductions without a second bundle."""
        if is_float(self.dtype) and self.name in ("max", "min", "maxnum", "minnum"):
            f = v.floats(self.dtype)
            return (f.larger if self._largest else f.smaller)(x, y)
        op, type_ = _COMBINE[self.name][not is_float(self.dtype)], v.type(self.dtype)
        if self.dtype == "i1" and self.name in ("max", "min", "umax", "umin", "prod", "sum"):
            op = {"max": "ori", "umax": "ori", "sum": "xori"}.get(self.name, "andi")
        return v.each(f"arith.{op} {{}}, {{}} : {type_}", x, y)

    def _arg_step(self, v: Values, state: State, new: tuple[Bundle, Bundle]) -> State:
        (best, place), (x, p) = state, new
        better = self._better(v, x, best)
        if not self.ascending:
            better = self._or(
                v, better, self._and(v, self._equal(v, x, best), v.compare("slt", p, place, self.payload))
            )
        return [v.select(better, x, best, self.dtype), v.select(better, p, place, self.payload)]

    def _better(self, v: Values, x: Bundle, best: Bundle) -> Bundle:
        """Whether x is larger (smaller) than the best so far; NaN is, but for the `num` kinds."""
        if not is_float(self.dtype):
            return v.compare("sgt" if self._largest else "slt", x, best, self.dtype)
        if self.name.endswith("num"):
            return v.compare("ogt" if self._largest else "olt", x, best, self.dtype)
        beyond = v.compare("ugt" if self._largest else "ult", x, best, self.dtype)
        return self._and(v, beyond, v.compare("ord", best, best, self.dtype))

    def _equal(self, v: Values, x: Bundle, best: Bundle) -> Bundle:
        if not is_float(self.dtype):
            return v.compare("eq", x, best, self.dtype)
        same = v.compare("oeq", x, best, self.dtype)
        if self.name.endswith("num"):
            return same
        both = self._and(v, v.compare("uno", x, x, self.dtype), v.compare("uno", best, best, self.dtype))
        return self._or(v, same, both)

    @staticmethod
    def _and(v: Values, x: Bundle, y: Bundle) -> Bundle:
        return v.each(f"arith.andi {{}}, {{}} : {v.type('i1')}", x, y)

    @staticmethod
    def _or(v: Values, x: Bundle, y: Bundle) -> Bundle:
        return v.each(f"arith.ori {{}}, {{}} : {v.type('i1')}", x, y)

    # ---------------------------------------------------------------- the end

    def settle(self, v: Values, state: State) -> State:
        """The state without flags: NaN where there was one."""
        if not self._remembers:
            return state
        clear = v.compare("eq", state[1], v.number(0, self._flag), self._flag)
        return [v.select(clear, state[0], v.number(math.nan, self.dtype), self.dtype)]

    def merge(self, v: Values, x: State, y: State) -> State:
        """Two settled states as one."""
        if self.is_arg:
            full = Reduction(self.name, self.dtype, self.payload)
            return full._arg_step(v, x, (y[0], y[1]))
        if self.name in ("max", "min") and is_float(self.dtype) and not self.quiet:
            return [v.extreme(self.name, x[0], y[0], self.dtype)]
        return [self.combine(v, x[0], y[0])]

    def across(self, v: Values, state: State) -> State:
        """A settled state with all lanes combined, the result in every lane."""
        span = v.lanes // 2
        while span:
            state = self.merge(
                v, state, [_rotated(v, x, t, span) for x, t in zip(state, self.settled_types, strict=True)]
            )
            span //= 2
        return state

    @property
    def settled_types(self) -> list[str]:
        return [self.dtype, self.payload] if self.is_arg else [self.dtype]

    def result(self, v: Values, state: State) -> Bundle:
        """The value of a settled state."""
        if not self.is_arg:
            return state[0]
        best, place = state
        none = v.number(_top(self.payload), self.payload)
        unseen = v.compare("eq", place, none, self.payload)
        if self.name.endswith("num"):
            lowest = v.compare("oeq", best, v.number(self.neutral(), self.dtype), self.dtype)
            unseen = self._or(v, unseen, lowest)
        return v.select(unseen, v.number(0, self.payload), place, self.payload)


def _top(dtype: str) -> int:
    return (1 << (8 * ELEMENT_BYTES[dtype] - 1)) - 1


def _rotated(v: Values, x: Bundle, dtype: str, by: int) -> Bundle:
    """Every vector with its lanes exchanged, `by` apart."""
    t = v.type(dtype)
    picks = ", ".join(str(i ^ by) for i in range(v.lanes))
    return v.each(f"vector.shuffle {{}}, {{}} [{picks}] : {t}, {t}", x, x)
