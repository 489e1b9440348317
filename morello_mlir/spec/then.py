"""What a contraction does to its sums before it writes them: a body of elementwise ops, and its further operands.

    then "y = max(add(x0, x1), 0.0:f32)" [f32, (f32, [n])]

x0 is a sum, in the type that stands first in the brackets; x1, x2, ... are elements of further operands, each with the
dims that it has, slowest first: along the others it is broadcast.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..errors import SpecError

if TYPE_CHECKING:
    from ..nests.body import Body

#: The dims of the output, which further operands may have.
OUT_DIMS = ("b", "m", "n")


@dataclass(frozen=True, slots=True)
class Extra:
    """A further operand: its element type, and its dims from slowest to fastest."""

    dtype: str
    dims: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(set(self.dims)) != len(self.dims) or not set(self.dims) <= set(OUT_DIMS):
            raise SpecError(
                f"then: the dims of an operand are some of {', '.join(OUT_DIMS)}, not [{', '.join(self.dims)}]"
            )

    def __str__(self) -> str:
        return f"({self.dtype}, [{', '.join(self.dims)}])"

    @staticmethod
    def parse(text: str) -> Extra:
        """Reads what `str` printed. Raises SpecError."""
        m = re.fullmatch(r"\(\s*(\w+)\s*,\s*\[([\w\s,]*)\]\s*\)", text.strip())
        if not m:
            raise SpecError(f"then: cannot read the operand '{text.strip()}': expected (dtype, [dims])")
        return Extra(m[1], tuple(d.strip() for d in m[2].split(",")) if m[2].strip() else ())


@dataclass(frozen=True, slots=True)
class Then:
    """body: of one output, without reductions and positions. sums: the type of x0; extras: x1, x2, ...

    Raises SpecError where these do not fit one another.
    """

    body: Body
    sums: str
    extras: tuple[Extra, ...] = ()

    def __post_init__(self) -> None:
        types = (self.sums, *(e.dtype for e in self.extras))
        if len(self.body.outputs) != 1:
            raise SpecError(f"then: the body has one output, not {len(self.body.outputs)}")
        used = set()
        for value in self.body.values:
            if value.reduces or value.op == "index":
                raise SpecError(f"then: the body is elementwise: no {value.op.removeprefix('reduce_')}")
            if value.op == "input":
                k = int(value.attr or 0)
                used.add(k)
                if k >= len(types) or types[k] != value.dtype:
                    raise SpecError(f"then: there is no input x{k} of type {value.dtype}")
        if 0 not in used:
            raise SpecError("then: the body does not use x0, the sum")
        for dtype in (*types, self.dtype):
            if dtype == "i1":
                raise SpecError("then: i1 is no type of operands")

    @property
    def dtype(self) -> str:
        """The type of the result."""
        return self.body.values[self.body.outputs[0]].dtype

    @property
    def operations(self) -> int:
        """How many values are worked out per element."""
        return sum(not v.is_leaf for v in self.body.values)

    @property
    def inputs(self) -> str:
        """The types of the inputs: what stands in the brackets."""
        return ", ".join([self.sums, *map(str, self.extras)])

    def canonical(self, sizes: Mapping[str, int]) -> Then:
        """The body in its canonical form, extras without dims of one element."""
        extras = tuple(replace(e, dims=tuple(d for d in e.dims if sizes[d] != 1)) for e in self.extras)
        return Then(self.body.canonical(), self.sums, extras)

    def exchanged(self) -> Then:
        """The same for an output whose dims m and n are exchanged."""
        other = {"m": "n", "n": "m"}
        extras = tuple(replace(e, dims=tuple(other.get(d, d) for d in e.dims)) for e in self.extras)
        return replace(self, extras=extras)

    def after(self) -> Then:
        """The same where x0 is only the last part of the sum: what was summed up before is the last of the extras."""
        from ..nests.body import BodyBuilder

        b = BodyBuilder()
        last = 1 + len(self.extras)
        made: list[int] = []
        for value in self.body.values:
            if value.op == "input" and value.attr == 0:
                made.append(b.op("add", b.input(0, self.sums), b.input(last, self.sums)))
            else:
                made.append(b.add(value, [made[a] for a in value.args]))
        body: Body = b.build([made[self.body.outputs[0]]])
        return Then(body, self.sums, (*self.extras, Extra(self.sums, OUT_DIMS)))

    def __str__(self) -> str:
        return f'then "{self.body}" [{self.inputs}]'

    @staticmethod
    def make(body: str, inputs: Sequence[str]) -> Then:
        """From the text of a body and those of its inputs: the type of the sums, then one for each extra. Raises
        SpecError."""
        from ..nests.body import Body

        if not inputs:
            raise SpecError("then: the type of the sums is missing")
        extras = tuple(Extra.parse(text) for text in inputs[1:])
        return Then(Body.parse(body, [inputs[0], *(e.dtype for e in extras)]), inputs[0], extras)

    @staticmethod
    def parse(text: str) -> Then:
        """Reads what `str` printed. Raises SpecError."""
        from .spec import split_top

        m = re.fullmatch(r'then\s*"([^"]*)"\s*\[(.*)\]', text.strip(), re.S)
        if not m:
            raise SpecError(
                f"cannot read '{text.strip()}': expected then \"BODY\" [type of the sums, (dtype, [dims]), ...]"
            )
        return Then.make(m[1], split_top(m[2]))
