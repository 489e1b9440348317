"""Schedules of chains, as trees and as text.

    parallel tile b by 1:
        pack rhs of stage 1 to L2 as [b, n/64, k, n%64]
        tile m by 32:
            bufferize t0 to L2
            bufferize t1 in t0
            stage 1:
                (a schedule of a contraction)
            stage 2:
                (a schedule of a nest)
            stage 3:
                ...
        rest:
            ...

`tile` and `parallel tile` loop over tiles of b or m; all stages do their part of one before the next. `pack` packs an
operand that all tiles need once for all of them. `skip what is masked` leaves out blocks of columns of the online form
that a mask hides. `bufferize` says where the intermediate results of a tile live: to a memory, or in the place of
another. Every stage then has a schedule of its own kind, or `?`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ..errors import ScheduleError
from ..hashed import Hashed
from ..search.schedule import DEEPEST, INDENT, Hole

_TILE = re.compile(r"(parallel )?tile (b|m) by ([0-9]{1,12})(?: over ([0-9]{1,3}))?:")
_PACK = re.compile(r"pack rhs of stage ([0-9]{1,3}) to (GL|L2) as (.+)")
_BUFFERIZE = re.compile(r"bufferize t([0-9]{1,3}) (?:to (GL|L2)|in t([0-9]{1,3}))")
_ONLINE = re.compile(r"online n by ([0-9]{1,12}):")
_STAGE = re.compile(r"stage ([0-9]{1,3}):")


@dataclass(frozen=True, slots=True)
class Loop(Hashed):
    """Steps of `size` along `dim`, then `rest`. threads: among how many the steps are shared (0: it is serial; -1: all
    that the goal has)."""

    dim: str
    size: int
    body: Node
    rest: Node | None = None
    threads: int = 0

    def label(self) -> str:
        word = "parallel tile" if self.threads else "tile"
        return f"{word} {self.dim} by {self.size}" + (f" over {self.threads}" if self.threads > 0 else "")


@dataclass(frozen=True, slots=True)
class PackRhs(Hashed):
    """The rhs of stage number `stage` (from 0) is packed to `memory` as `form` (a layout, perhaps a dtype) for all of
    `body`."""

    stage: int
    memory: str
    form: str
    body: Node

    def label(self) -> str:
        return f"pack rhs of stage {self.stage + 1} to {self.memory} as {self.form}"


@dataclass(frozen=True, slots=True)
class Skip(Hashed):
    """Blocks of columns that the mask hides from all rows of a tile are left out in `body`, where all that the last
    stage would weigh is finite (what is not would be multiplied by 0)."""

    body: Node

    def label(self) -> str:
        return "skip what is masked"


@dataclass(frozen=True, slots=True)
class Stages(Hashed):
    """One tile: every stage once. homes: where each intermediate result lives, a memory or another one's name (`t0`).
    schedules: the text of the schedule of every stage."""

    homes: tuple[str, ...]
    schedules: tuple[str, ...]

    def label(self) -> str:
        return "stages"


@dataclass(frozen=True, slots=True)
class Online(Hashed):
    """One tile in the online form (see `online`), `size` columns at once. home: the memory of a block's scores.
    schedules: the texts of `PARTS`; rest: those of `REST` for the columns that are left over, or nothing."""

    size: int
    home: str
    schedules: tuple[str, ...]
    rest: tuple[str, ...] = ()

    def label(self) -> str:
        return f"online n by {self.size}"


Node: TypeAlias = Loop | PackRhs | Skip | Stages | Online | Hole
#: The parts of the online form, in the order of a schedule, and those that a remainder does in its own way.
PARTS = ("scores", "start", "update", "carry", "rescale", "weigh", "finish")
REST = ("scores", "update", "weigh")


def form_of(node: Node) -> tuple[object, ...]:
    """What tells schedules of a chain apart: loops, what is packed into which panels, what is skipped, the online form
    and its blocks. Not: in which memory panels and intermediate results are said to live, remainders, the schedules of
    stages."""
    if isinstance(node, Loop):
        return (node.label(), *form_of(node.body))
    if isinstance(node, PackRhs):
        return ((node.stage, node.form), *form_of(node.body))
    if isinstance(node, Skip):
        return (node.label(), *form_of(node.body))
    return (node.label(),)


def children(node: Node) -> tuple[Node, ...]:
    """The subtrees of `node`, the remainder last."""
    if isinstance(node, Loop):
        return (node.body,) if node.rest is None else (node.body, node.rest)
    return (node.body,) if isinstance(node, (PackRhs, Skip)) else ()


def has_hole(node: Node) -> bool:
    """Whether something is left to the search."""
    if isinstance(node, (Stages, Online)):
        texts = node.schedules if isinstance(node, Stages) else (*node.schedules, *node.rest)
        return any(line.strip() == "?" for text in texts for line in text.splitlines())
    return isinstance(node, Hole) or any(has_hole(c) for c in children(node))


def to_text(root: Node) -> str:
    """The schedule as `parse` reads it."""
    lines: list[str] = []

    def emit(node: Node, depth: int) -> None:
        pad = INDENT * depth
        if isinstance(node, Loop):
            lines.append(f"{pad}{node.label()}:")
            emit(node.body, depth + 1)
            if node.rest is not None:
                lines.append(f"{pad}rest:")
                emit(node.rest, depth + 1)
        elif isinstance(node, (PackRhs, Skip)):
            lines.append(pad + node.label())
            emit(node.body, depth)
        elif isinstance(node, Stages):
            for i, home in enumerate(node.homes):
                lines.append(f"{pad}bufferize t{i} {'in' if home.startswith('t') else 'to'} {home}")
            for i, text in enumerate(node.schedules):
                lines.append(f"{pad}stage {i + 1}:")
                lines.extend(pad + INDENT + line for line in text.splitlines())
        elif isinstance(node, Online):
            lines.append(f"{pad}{node.label()}:")
            lines.append(f"{pad + INDENT}bufferize t0 to {node.home}")
            parts(PARTS, node.schedules, pad + INDENT)
            if node.rest:
                lines.append(f"{pad}rest:")
                parts(REST, node.rest, pad + INDENT)
        else:
            lines.append(pad + "?")

    def parts(names: Sequence[str], schedules: Sequence[str], pad: str) -> None:
        for name, text in zip(names, schedules, strict=True):
            lines.append(f"{pad}{name}:")
            lines.extend(pad + INDENT + line for line in text.splitlines())

    emit(root, 0)
    return "\n".join(lines)


class _Parser:
    def __init__(self, text: str):
        kept = (line.split("//")[0].rstrip() for line in text.splitlines())
        self.lines = [(len(line) - len(line.lstrip(" ")), line.strip()) for line in kept if line.strip()]
        self.at = 0

    def fail(self, why: str) -> ScheduleError:
        at = min(self.at, len(self.lines) - 1)
        return ScheduleError(f"schedule, step {at + 1} '{self.lines[at][1]}': {why}")

    def next_is(self, indent: int) -> bool:
        return self.at < len(self.lines) and self.lines[self.at][0] == indent

    def block(self, depth: int) -> Node:
        """A block from the current line on, whose indentation is its own."""
        if depth > DEEPEST:
            raise self.fail("nested too deeply")
        if self.at >= len(self.lines):
            raise self.fail("a body must follow")
        indent, text = self.lines[self.at]
        if m := _TILE.fullmatch(text):
            return self.loop(m, indent, depth)
        if m := _PACK.fullmatch(text):
            self.at += 1
            if not self.next_is(indent):
                raise self.fail("what it is packed for must follow, at the same indentation")
            return PackRhs(int(m[1]) - 1, m[2], m[3].strip(), self.block(depth + 1))
        if text == "skip what is masked":
            self.at += 1
            if not self.next_is(indent):
                raise self.fail("where it is skipped must follow, at the same indentation")
            return Skip(self.block(depth + 1))
        if text == "?":
            self.at += 1
            return Hole()
        if m := _ONLINE.fullmatch(text):
            return self.online(int(m[1]), indent)
        if _BUFFERIZE.fullmatch(text) or _STAGE.fullmatch(text):
            return self.stages(indent)
        raise self.fail(
            "unknown step (have tile, parallel tile, pack rhs of stage, skip what is masked, online, "
            "bufferize, stage, ?)"
        )

    def loop(self, m: re.Match[str], indent: int, depth: int) -> Node:
        size = int(m[3])
        if size < 1:
            raise self.fail("the size must be positive")
        if m[4] and (not m[1] or not int(m[4])):
            raise self.fail("'over' says among how many threads a parallel tile is shared")
        self.at += 1
        body, rest = self.inner(indent, depth), None
        if self.next_is(indent) and self.lines[self.at][1] == "rest:":
            self.at += 1
            rest = self.inner(indent, depth)
        threads = (int(m[4]) if m[4] else -1) if m[1] else 0
        return Loop(m[2], size, body, rest, threads)

    def inner(self, indent: int, depth: int) -> Node:
        if self.at >= len(self.lines) or self.lines[self.at][0] <= indent:
            raise self.fail("a body must follow, indented")
        return self.block(depth + 1)

    def online(self, size: int, indent: int) -> Node:
        if size < 1:
            raise self.fail("the size must be positive")
        self.at += 1
        inner = self.lines[self.at][0] if self.at < len(self.lines) else indent
        m = _BUFFERIZE.fullmatch(self.lines[self.at][1]) if inner > indent else None
        if not m or m[1] != "0" or not m[2]:
            raise self.fail("'bufferize t0 to' a memory must follow, indented")
        self.at += 1
        schedules = self.parts(PARTS, inner)
        rest: tuple[str, ...] = ()
        if self.next_is(indent) and self.lines[self.at][1] == "rest:":
            self.at += 1
            rest = self.parts(REST, self.lines[self.at][0] if self.at < len(self.lines) else inner)
        return Online(size, m[2], schedules, rest)

    def parts(self, names: Sequence[str], indent: int) -> tuple[str, ...]:
        """The schedules of parts, each under its name."""
        found = []
        for name in names:
            if not self.next_is(indent) or self.lines[self.at][1] != f"{name}:":
                raise self.fail(f"'{name}:' must follow")
            self.at += 1
            found.append(self.own(indent))
        return tuple(found)

    def own(self, indent: int) -> str:
        """The text of the lines that follow, deeper than `indent`."""
        start = self.at
        while self.at < len(self.lines) and self.lines[self.at][0] > indent:
            self.at += 1
        own = self.lines[start : self.at]
        if not own:
            raise self.fail("its schedule must follow, indented")
        left = own[0][0]
        return "\n".join(" " * (i - left) + text for i, text in own)

    def stages(self, indent: int) -> Node:
        homes: list[str] = []
        schedules: list[str] = []
        while self.next_is(indent) and (m := _BUFFERIZE.fullmatch(self.lines[self.at][1])):
            if int(m[1]) != len(homes):
                raise self.fail(f"t{len(homes)} comes first")
            homes.append(m[2] or f"t{int(m[3])}")
            self.at += 1
        while self.next_is(indent) and (m := _STAGE.fullmatch(self.lines[self.at][1])):
            if int(m[1]) != len(schedules) + 1:
                raise self.fail(f"stage {len(schedules) + 1} comes first")
            self.at += 1
            schedules.append(self.own(indent))
        return Stages(tuple(homes), tuple(schedules))


def parse(text: str) -> Node:
    """Reads a schedule. Raises ScheduleError naming the step and the reason; whether it is legal is not checked here,
    nor are the schedules of the stages read."""
    parser = _Parser(text)
    if not parser.lines:
        raise ScheduleError("schedule: empty (write '?' to let the search choose)")
    node = parser.block(0)
    if parser.at < len(parser.lines):
        raise parser.fail("nothing may follow here")
    return node
