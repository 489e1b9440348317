"""Schedules: the tree of actions that implements a Spec, as data and as text that a person can read and edit.

    to_accum
    split k by 256:
        move rhs to L2 as [b, n/16, k, n%16]
        tile m by 96:
            move lhs to L2 as [b, m/6, k, m%6]
            tile n by 16:
                tile m by 6:
                    move out to VRF
                    kernel broadcast_fma
    rest:
        ?

`parallel tile` and `parallel split` share the trips of a loop among threads, `serial` says that one thread does the
rest. A loop's body is indented; `rest:` is what is done with the sizes that do not divide. `?` is a hole, which the
search fills. A subtree that occurs more than once may be given a name (`define #1:` ... `use #1`).
`//` starts a comment. Nests have further steps, which are in `nest_steps`.
The tree alone does not know sizes; `actions` says what each step makes of a Spec and whether it is legal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from ..errors import ScheduleError, excerpt
from ..hashed import Hashed
from . import nest_steps
from .nest_steps import NEST_STEPS, NestStep, Pass, Reciprocal, Rows

INDENT = "    "
#: Steps on the way from the top to a leaf: legal schedules need a third of that, and what walks them recurses.
DEEPEST = 200


@dataclass(frozen=True, slots=True)
class ToAccum(Hashed):
    """Turns a function that overwrites its output into the accumulating one, whose first reduction step stores."""

    body: Node

    def label(self) -> str:
        return "to_accum"


@dataclass(frozen=True, slots=True)
class Exchange(Hashed):
    """The transposed problem: rhs^T becomes lhs, lhs^T rhs, and the output is its own transpose."""

    body: Node

    def label(self) -> str:
        return "exchange"


@dataclass(frozen=True, slots=True)
class Tile(Hashed):
    """A loop over `dim` in steps of `size`; `rest` implements the remainder and is None where `size` divides."""

    dim: str
    size: int
    body: Node
    rest: Node | None = None

    def label(self) -> str:
        return f"tile {self.dim} by {self.size}"


@dataclass(frozen=True, slots=True)
class Split(Hashed):
    """As Tile, along the reduction dim: every step accumulates into the same output."""

    dim: str
    size: int
    body: Node
    rest: Node | None = None

    def label(self) -> str:
        return f"split {self.dim} by {self.size}"


@dataclass(frozen=True, slots=True)
class Parallel(Hashed):
    """As Tile, its trips shared among `threads` threads, or among all that the Spec has (0). adds: as Split; each
    thread has sums of its own, which are added up afterwards."""

    dim: str
    size: int
    body: Node
    rest: Node | None = None
    threads: int = 0
    adds: bool = False

    def label(self) -> str:
        over = f" over {self.threads}" if self.threads else ""
        return f"parallel {'split' if self.adds else 'tile'} {self.dim} by {self.size}{over}"


@dataclass(frozen=True, slots=True)
class Serial(Hashed):
    """One thread does the rest."""

    body: Node

    def label(self) -> str:
        return "serial"


@dataclass(frozen=True, slots=True)
class Move(Hashed):
    """Brings an operand into a memory; `layout` is its text where it is repacked, None where it keeps its layout."""

    operand: str
    memory: str
    layout: str | None
    body: Node

    def label(self) -> str:
        return f"move {self.operand} to {self.memory}" + (f" as {self.layout}" if self.layout else "")


@dataclass(frozen=True, slots=True)
class PackAhead(Hashed):
    """A constant operand lies packed in `layout` (its text): that is done once, before the first run."""

    operand: str
    layout: str
    body: Node

    def label(self) -> str:
        return f"pack_ahead {self.operand} as {self.layout}"


@dataclass(frozen=True, slots=True)
class Kernel(Hashed):
    """A leaf: the kernel called `name` of the target."""

    name: str

    def label(self) -> str:
        return f"kernel {self.name}"


@dataclass(frozen=True, slots=True)
class Hole(Hashed):
    """What the search is to fill in."""

    def label(self) -> str:
        return "?"


Loop: TypeAlias = Tile | Split | Parallel
Node: TypeAlias = ToAccum | Exchange | Loop | Serial | Move | PackAhead | Kernel | Hole | NestStep
#: The steps with an indented body, and perhaps a remainder.
LOOPS = (Tile, Split, Parallel)
#: The steps that another follows at the same indentation, but for those of nests.
LINKS = (ToAccum, Exchange, Serial, Move, PackAhead)
_WORDS: dict[str, Callable[[Node], Node]] = {
    "to_accum": ToAccum,
    "exchange": Exchange,
    "serial": Serial,
    "reciprocal": Reciprocal,
}


def children(node: Node) -> tuple[Node, ...]:
    """The subtrees of `node`, the remainder last."""
    if isinstance(node, LOOPS):
        return (node.body,) if node.rest is None else (node.body, node.rest)
    if isinstance(node, LINKS):
        return (node.body,)
    return nest_steps.children(node) if isinstance(node, NEST_STEPS) else ()


def walk(node: Node) -> Iterator[Node]:
    """Every distinct subtree of `node` once, parents first."""
    seen: set[Node] = set()
    stack = [node]
    while stack:
        n = stack.pop()
        if n not in seen:
            seen.add(n)
            yield n
            stack.extend(reversed(children(n)))


def opens_block(node: Node) -> bool:
    """Whether an indented block follows the step."""
    return isinstance(node, LOOPS) or (isinstance(node, NEST_STEPS) and not isinstance(node, Reciprocal))


def has_hole(node: Node) -> bool:
    """Whether the search is to fill in anything in a schedule."""
    return any(isinstance(n, Hole) or (isinstance(n, Rows) and Hole() in n.passes) for n in walk(node))


# ---------------------------------------------------------------- printing


def _shared(root: Node, least: int) -> list[Node]:
    """Subtrees of at least `least` nodes that more than one place refers to, smallest first."""
    refs: dict[Node, int] = {}
    size: dict[Node, int] = {}
    order: list[Node] = []

    def visit(n: Node) -> int:
        refs[n] = refs.get(n, 0) + 1
        if refs[n] == 1:
            size[n] = 1 + sum(visit(c) for c in children(n))
            order.append(n)
        return size[n]

    visit(root)
    return [n for n in order if refs[n] > 1 and size[n] >= least]


def to_text(root: Node, *, share: int = 4) -> str:
    """The schedule as text that `parse` reads back. Subtrees of `share` nodes or more that repeat are defined once (0:
    none are)."""
    names: dict[Node, str] = {}
    out: list[str] = []

    def emit(n: Node, depth: int, top: Node | None = None) -> None:
        pad = INDENT * depth
        if n in names and n is not top:
            out.append(f"{pad}use {names[n]}")
            return
        out.append(f"{pad}{n.label()}" + (":" if opens_block(n) else ""))
        if isinstance(n, LOOPS):
            emit(n.body, depth + 1)
            if n.rest is not None:
                out.append(f"{pad}rest:")
                emit(n.rest, depth + 1)
        elif isinstance(n, (*LINKS, Reciprocal)):
            emit(n.body, depth)
        elif isinstance(n, Rows):
            out.extend(f"{pad}{INDENT}{p.label()}" for p in n.passes)
        elif isinstance(n, NEST_STEPS):
            for word, body in nest_steps.blocks(n):
                out.extend([f"{pad}{word}:"] if word else [])
                emit(body, depth + 1)

    for n in _shared(root, share) if share else ():
        names[n] = f"#{len(names) + 1}"
        out.append(f"define {names[n]}:")
        emit(n, 1, top=n)
    emit(root, 0)
    return "\n".join(out)


# ---------------------------------------------------------------- parsing

_TILE = re.compile(r"(tile|split)\s+([A-Za-z_]\w*)\s+by\s+([0-9]{1,18})\s*:$")
_PARALLEL = re.compile(r"parallel\s+(tile|split)\s+([A-Za-z_]\w*)\s+by\s+([0-9]{1,18})(?:\s+over\s+([0-9]{1,9}))?\s*:$")
_MOVE = re.compile(r"move\s+([A-Za-z_]\w*)\s+to\s+(\w+)(?:\s+as\s+(\S.*))?$")
_AHEAD = re.compile(r"pack_ahead\s+([A-Za-z_]\w*)\s+as\s+(\S.*)$")
_KERNEL = re.compile(r"kernel\s+([A-Za-z_]\w*)$")
_USE = re.compile(r"use\s+(#\w+)$")
_DEFINE = re.compile(r"define\s+(#\w+)\s*:$")


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    indent: int
    text: str


def _lines(text: str) -> list[_Line]:
    out = []
    for i, raw in enumerate(text.splitlines(), 1):
        body = raw.split("//", 1)[0].rstrip().expandtabs(len(INDENT))
        if body.strip():
            out.append(_Line(i, len(body) - len(body.lstrip()), body.strip()))
    return out


class _Parser:
    def __init__(self, text: str):
        self.lines = _lines(text)
        self.at = 0
        self.names: dict[str, Node] = {}
        self.heights: dict[Node, int] = {}

    def fail(self, line: _Line | None, why: str, offset: int = 0) -> ScheduleError:
        if line is None:
            return ScheduleError(f"schedule: {why}")
        quoted = excerpt(line.text, offset)
        column = f", column {line.indent + offset + 1}" if quoted != line.text else ""
        return ScheduleError(f"schedule line {line.number}{column}: '{quoted}': {why}")

    def peek(self) -> _Line | None:
        return self.lines[self.at] if self.at < len(self.lines) else None

    def file(self) -> Node:
        while (line := self.peek()) and (m := _DEFINE.match(line.text)):
            if m[1] in self.names:
                raise self.fail(line, f"{excerpt(m[1])} is defined twice")
            self.at += 1
            self.names[m[1]] = self.nested(line)
        root = self.block(self.lines[self.at].indent if self.peek() else 0)
        if (line := self.peek()) is not None:
            raise self.fail(line, "nothing may follow here (a kernel, a loop or a hole ends a block)")
        return root

    def nested(self, opener: _Line) -> Node:
        """The indented block under `opener`."""
        line = self.peek()
        if line is None or line.indent <= opener.indent:
            raise self.fail(opener, "an indented body must follow")
        return self.block(line.indent)

    def block(self, indent: int) -> Node:
        """Steps of one block from here on, all at `indent`. A chain of steps is read without recursion."""
        wrap: list[Callable[[Node], Node]] = []
        while True:
            line = self.peek()
            if line is None or line.indent < indent:
                last = self.lines[self.at - 1] if self.at else None
                raise self.fail(last, "the block ends without a kernel, a loop or '?'")
            if line.indent > indent:
                raise self.fail(line, "unexpected indentation")
            self.at += 1
            end = self.step(line, wrap)
            if end is not None:
                for w in reversed(wrap):
                    end = self.grown(w(end), line)
                return end

    def grown(self, node: Node, line: _Line) -> Node:
        """`node`, whose subtrees have been read. (Bottom-up, so that hashing it does not recurse either.)"""
        height = 1 + max((self.heights[c] for c in children(node)), default=0)
        if height > DEEPEST:
            raise self.fail(line, f"nested too deeply (more than {DEEPEST} steps)")
        self.heights[node] = height
        return node

    def step(self, line: _Line, wrap: list[Callable[[Node], Node]]) -> Node | None:
        """Reads the step on `line`: appends to `wrap` where another must follow, else returns the node."""
        t = line.text
        if t in _WORDS:
            wrap.append(_WORDS[t])
            return None
        if m := _MOVE.match(t):
            operand, memory, layout = m[1], m[2], m[3]
            wrap.append(lambda body: Move(operand, memory, layout.strip() if layout else None, body))
            return None
        if m := _AHEAD.match(t):
            name, panels = m[1], m[2]
            wrap.append(lambda body: PackAhead(name, panels.strip(), body))
            return None
        if m := _TILE.match(t):
            return self.loop(line, Tile if m[1] == "tile" else Split, m[2], int(m[3]))
        if m := _PARALLEL.match(t):
            if m[4] and not int(m[4]):
                raise self.fail(line, "the number of threads must be positive")
            over, adds = int(m[4] or 0), m[1] == "split"
            return self.loop(line, lambda d, s, body, rest: Parallel(d, s, body, rest, over, adds), m[2], int(m[3]))
        if m := _KERNEL.match(t):
            return self.grown(Kernel(m[1]), line)
        if m := _USE.match(t):
            if m[1] not in self.names:
                raise self.fail(line, f"{excerpt(m[1])} is not defined above")
            return self.names[m[1]]
        if t == "?":
            return self.grown(Hole(), line)
        try:
            if (opener := nest_steps.opener(t)) is not None:
                return self.grown(opener[0](*self.blocks(line, *opener[1:])), line)
            if (rows := nest_steps.rows(t)) is not None:
                return self.grown(rows(self.passes(line)), line)
        except ScheduleError as error:
            raise error if str(error).startswith("schedule") else self.fail(line, str(error), error.offset) from None
        if t == "rest:":
            raise self.fail(line, "'rest:' must follow the body of a loop at the same indentation")
        known = "to_accum, exchange, pack_ahead, tile, split, parallel tile, parallel split, serial, move, kernel, "
        known += "use, ?; in nests: stage, partial, reciprocal, rows"
        raise self.fail(line, f"unknown step (have {known})")

    def blocks(self, line: _Line, must: tuple[str, ...], may: tuple[str, ...]) -> list[Node | None]:
        """The block under `line` and those under words of its indentation, optional ones (None: missing) first."""
        out: list[Node | None] = [self.nested(line)]
        for word in (*may, *must):
            after = self.peek()
            if after and after.text == f"{word}:" and after.indent == line.indent:
                self.at += 1
                out.append(self.nested(after))
            elif word in must:
                raise self.fail(line, f"a '{word}:' must follow at the same indentation")
            else:
                out.append(None)
        return out

    def passes(self, opener: _Line) -> list[Pass | Hole]:
        """The passes under `rows`: a hole ends them."""
        out: list[Pass | Hole] = []
        first = self.peek()
        while (line := self.peek()) and first and line.indent > opener.indent:
            if line.indent != first.indent:
                raise self.fail(line, "unexpected indentation")
            try:
                found = Hole() if line.text == "?" else nest_steps.read_pass(line.text)
            except ScheduleError as error:
                raise self.fail(line, str(error), error.offset) from None
            if found is None or (out and isinstance(out[-1], Hole)):
                raise self.fail(line, "rows have passes, and at the end a '?' for what is missing")
            self.at += 1
            out.append(found)
        if not out:
            raise self.fail(opener, "an indented pass, or '?', must follow")
        return out

    def loop(self, line: _Line, make: Callable[..., Node], dim: str, size: int) -> Node:
        if size < 1:
            raise self.fail(line, "the size must be positive")
        body = self.nested(line)
        rest = None
        nxt = self.peek()
        if nxt and nxt.text == "rest:" and nxt.indent == line.indent:
            self.at += 1
            rest = self.nested(nxt)
        return self.grown(make(dim, size, body, rest), line)


def parse(text: str) -> Node:
    """Reads a schedule. Raises ScheduleError naming the line and the reason. Whether it is legal for a Spec is not
    checked here."""
    if not _lines(text):
        raise ScheduleError("schedule: empty (write '?' to let the search choose)")
    try:
        return _Parser(text).file()
    except RecursionError:
        raise ScheduleError("schedule: nested too deeply") from None
