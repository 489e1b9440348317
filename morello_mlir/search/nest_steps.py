"""The steps of schedules of nests (docs/nests.md), as data; `schedule` reads and prints them with the others.

    parallel tile d0 by 16:
        reciprocal
        rows vector d1 pipeline 1:
            pass m unroll d1 by 2
            pass s store e to y unroll d1 by 2
            pass y unroll d1 by 2 streaming

A nest's dims are called d0, d1, ..., in the order of its Spec; values by the names in the text of its body.
`nests.plan` says what each step makes of a nest; `nests.actions` whether it is legal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import ScheduleError, excerpt
from ..hashed import Hashed

if TYPE_CHECKING:
    from .schedule import Hole, Node

#: Where `store` puts a value that no output has room for: a row of scratch.
SCRATCH = "scratch"


@dataclass(frozen=True, slots=True)
class Pass(Hashed):
    """One sweep over the scan dims of the rows at hand, which computes the reductions and writes the outputs `values`
    (names). Whatever they need is computed on the way, from the inputs, from what earlier passes left in registers
    (reductions and values made of them), and from what they stored.

    stores: (value, place) pairs: values that are also kept for later passes, in the room of an output (its name, `y`
    or `y0`), or in `scratch`. unroll: (dim, count) pairs: how many steps of a scan dim are side by side in the body of
    the loop: vectors along the vector dim, elements along others; 1 where it is not mentioned. online: a maximum and
    sums of exp(x - maximum) in one sweep, though the sums need the maximum: against the maximum so far, in blocks of so
    many elements of the innermost scan dim (0: of one unrolled step, every lane by itself); None: not so. streaming:
    outputs are written past the caches.
    """

    values: tuple[str, ...]
    stores: tuple[tuple[str, str], ...] = ()
    unroll: tuple[tuple[str, int], ...] = ()
    online: int | None = None
    streaming: bool = False

    def label(self) -> str:
        words = [f"pass {', '.join(self.values)}"]
        if self.online is not None:
            words.append(f"online by {self.online}" if self.online else "online")
        words += [f"store {v} to {place}" for v, place in self.stores]
        words += [f"unroll {d} by {n}" for d, n in self.unroll]
        words += ["streaming"] if self.streaming else []
        return " ".join(words)


@dataclass(frozen=True, slots=True)
class Rows(Hashed):
    """A leaf: loops over all parallel dims, outermost first, and for each group of points (rows) the passes in order.

    vector: the dim whose steps are the lanes of vectors, `vectors` of them side by side where it is parallel. tile:
    (dim, size) pairs of other parallel dims: how many points a group has along them; 1 where one is not mentioned.
    pipeline: each group's passes run in so many sweeps in turn (pass j in sweep j mod pipeline), and what falls into
    one sweep, of successive groups along the innermost loop, is one loop; 0: every pass is a sweep of its own. The last
    of the passes may be a hole, for those that are missing.
    """

    vector: str
    vectors: int
    tile: tuple[tuple[str, int], ...]
    pipeline: int
    passes: tuple[Pass | Hole, ...]

    def label(self) -> str:
        words = ["rows", f"vector {self.vector}" + (f" by {self.vectors}" if self.vectors > 1 else "")]
        words += [f"tile {d} by {n}" for d, n in self.tile]
        words += [f"pipeline {self.pipeline}"] if self.pipeline else []
        return " ".join(words)


@dataclass(frozen=True, slots=True)
class Stage(Hashed):
    """Computes `values` for the whole nest first, into memory, by a nest of their own, and then the rest, for which
    they are inputs (the last ones, in this order)."""

    values: tuple[str, ...]
    body: Node
    then: Node

    def label(self) -> str:
        return f"stage {', '.join(self.values)}"


@dataclass(frozen=True, slots=True)
class Partial(Hashed):
    """Cuts the scan dim `dim` into parts of `size`, reduces each by itself, into memory (`body`: a nest with one more
    parallel dim, the last of all dims; `rest`: what is left over, one more part), and combines the parts (`combine`: a
    nest that reduces over them)."""

    dim: str
    size: int
    body: Node
    rest: Node | None
    combine: Node

    def label(self) -> str:
        return f"partial {self.dim} by {self.size}"


@dataclass(frozen=True, slots=True)
class Reciprocal(Hashed):
    """Divisions by values that are the same along scan dims become multiplications by the reciprocal."""

    body: Node

    def label(self) -> str:
        return "reciprocal"


NestStep = Rows | Stage | Partial | Reciprocal
#: Types of NestStep.
NEST_STEPS = (Rows, Stage, Partial, Reciprocal)


def children(node: NestStep) -> tuple[Node, ...]:
    """The subtrees of `node`, in order."""
    return tuple(body for _, body in blocks(node))


def blocks(node: NestStep) -> tuple[tuple[str, Node], ...]:
    """The subtrees of `node` and the word over each (empty: the step itself)."""
    if isinstance(node, Stage):
        return ("", node.body), ("then", node.then)
    if isinstance(node, Partial):
        rest = () if node.rest is None else (("rest", node.rest),)
        return ("", node.body), *rest, ("combine", node.combine)
    return (("", node.body),) if isinstance(node, Reciprocal) else ()


# ---------------------------------------------------------------- parsing

_NAMES = r"[A-Za-z_]\w*(?:\s*,\s*[A-Za-z_]\w*)*"
_NUMBER = r"[0-9]{1,18}"
_STAGE = re.compile(rf"stage\s+({_NAMES})\s*:$")
_PARTIAL = re.compile(rf"partial\s+(\w+)\s+by\s+({_NUMBER})\s*:$")
_ROWS = re.compile(rf"rows\s+vector\s+(\w+)(?:\s+by\s+({_NUMBER}))?((?:\s+\w+)*?)(?:\s+pipeline\s+({_NUMBER}))?\s*:$")
_TILES = re.compile(rf"\s+tile\s+(\w+)\s+by\s+({_NUMBER})")
_PASS = re.compile(rf"pass\s+({_NAMES}?)((?:\s+(?:online|store|unroll|streaming)\b.*)?)$")
_OPTION = re.compile(
    rf"\s+(?:(?P<online>online)(?:\s+by\s+(?P<block>{_NUMBER}))?"
    rf"|store\s+(?P<value>\w+)\s+to\s+(?P<place>\w+)|unroll\s+(?P<dim>\w+)\s+by\s+(?P<count>{_NUMBER})"
    r"|(?P<streaming>streaming))"
)

#: Makes the step from its blocks; the words of those that must and those that may follow the first.
Opener = tuple[Callable[..., "Node"], tuple[str, ...], tuple[str, ...]]


def opener(text: str) -> Opener | None:
    """What a line that opens blocks begins; None where it is no such line. Raises ScheduleError."""
    if m := _STAGE.match(text):
        values = _split(m[1])
        return lambda body, then: Stage(values, body, then), ("then",), ()
    if m := _PARTIAL.match(text):
        dim, size = m[1], _positive(m[2], "the size")
        return lambda body, rest, combine: Partial(dim, size, body, rest, combine), ("combine",), ("rest",)
    return None


def rows(text: str) -> Callable[[Sequence[Pass | Hole]], Rows] | None:
    """Makes `rows` from its passes; None where the line is another step. Raises ScheduleError."""
    m = _ROWS.match(text)
    if not m:
        return None
    tile, end = [], 0
    for t in _TILES.finditer(m[3]):
        if t.start() != end:
            break
        tile.append((t[1], _positive(t[2], "the size")))
        end = t.end()
    if end != len(m[3]):
        bad, at = m[3][end:].strip(), m.start(3) + end + 1
        raise ScheduleError(f"cannot read '{excerpt(bad)}' (have vector, tile, pipeline)", at)
    vectors = _positive(m[2] or "1", "the number of vectors")
    pipeline = _positive(m[4], "the number of sweeps") if m[4] else 0
    return lambda passes: Rows(m[1], vectors, tuple(tile), pipeline, tuple(passes))


def read_pass(text: str) -> Pass | None:
    """The pass on a line; None where it is another step. Raises ScheduleError."""
    m = _PASS.match(text)
    if not m:
        return None
    stores, unroll, at = [], [], 0
    online: int | None = None
    streaming = False
    while at < len(m[2]):
        o = _OPTION.match(m[2], at)
        if not o:
            bad = excerpt(m[2][at:].strip())
            raise ScheduleError(f"cannot read '{bad}' (have online, store, unroll, streaming)", m.start(2) + at + 1)
        at = o.end()
        if o["online"]:
            online = int(o["block"] or 0)
        elif o["value"]:
            stores.append((o["value"], o["place"]))
        elif o["dim"]:
            unroll.append((o["dim"], _positive(o["count"], "the count")))
        else:
            streaming = True
    return Pass(_split(m[1]), tuple(stores), tuple(unroll), online, streaming)


def _split(names: str) -> tuple[str, ...]:
    return tuple(n.strip() for n in names.split(","))


def _positive(digits: str, what: str) -> int:
    if not int(digits):
        raise ScheduleError(f"{what} must be positive")
    return int(digits)
