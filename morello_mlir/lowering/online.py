"""The online form of a chain in code: the first block of columns, the others in a loop, what is left, and the end."""

from __future__ import annotations

from collections.abc import Mapping

from ..chains.online import Form
from ..chains.online_search import overwriting
from ..chains.schedule import PARTS, REST, Online
from ..chains.space import RHS
from ..search.schedule import parse
from ..spec import Spec
from ..targets import LINE
from .builder import Builder, Index
from .goals import emit_goal
from .views import Arena, Operand, View, operand_in


def scratch_bytes(form: Form) -> int:
    """Bytes for a block of scores and what every row carries along, whole lines."""
    return form.lines * LINE


class OnlineEmitter:
    """operands: by name, inputs and output as the tile has them. packed: the panels of rhs, by stage."""

    def __init__(
        self, b: Builder, form: Form, node: Online, operands: Mapping[str, Operand], packed: Mapping[int, Operand]
    ):
        self.b, self.form, self.node = b, form, node
        self.packed = packed
        self.operands = {name: o.as_memref(b) for name, o in operands.items()}

    def emit(self, arena: Arena, seen: str = "") -> None:
        """seen: the SSA name of how many columns are looked at, the first block aside; all without it."""
        form, b = self.form, self.b
        self.operands |= self._rooms(arena)
        size, full = form.size, form.columns - form.rest
        texts = dict(zip(PARTS, self.node.schedules, strict=True))
        self._part("scores", texts, 0, size)
        self._part("start", texts, 0, size)
        self._part("weigh", texts, 0, size, first=True)
        rest = {**texts, **dict(zip(REST, self.node.rest, strict=False))}
        if full > size and seen:
            at, end = b.name(), b.value(f"arith.minui {seen}, {b.index(full)} : index")
            b.line(f"scf.for {at} = {b.index(size)} to {end} step {b.index(size)} {{")
            self._block(texts, at, size)
            b.line("}")
        elif full > size:
            with b.loop(size, full, size) as iv:
                self._block(texts, iv, size)
        if form.rest and seen:
            more = b.value(f"arith.cmpi ugt, {seen}, {b.index(full)} : index")
            b.line(f"scf.if {more} {{")
            self._block(rest, full, form.rest)
            b.line("}")
        elif form.rest:
            self._block(rest, full, form.rest)
        self._part("finish", texts, 0, size)

    def _block(self, texts: Mapping[str, str], at: Index, width: int) -> None:
        for part in ("scores", "update", "carry", "rescale", "weigh"):
            self._part(part, texts, at, width)

    def _part(self, part: str, texts: Mapping[str, str], at: Index, width: int, first: bool = False) -> None:
        goal = self.form.goal(part, width, first)
        tree = parse(texts[part])
        if first and isinstance(goal, Spec):
            tree = overwriting(tree)
        operands = [self._operand(part, name, at, width) for name in self.form.operands(part)]
        emit_goal(self.b, goal, tree, operands, self.form.target)

    def _operand(self, part: str, name: str, at: Index, width: int) -> Operand:
        """The block's part of an operand."""
        if name in ("t0", "t1"):
            return self.operands[name].tile(self.b, 2, 0, width)
        stages = self.form.point.spec.stages
        if part == "scores" and name != stages[0].reads[0]:
            source = self.packed.get(0) if name == stages[0].reads[RHS] else None
            return (source or self.operands[name]).tile(self.b, 2, at, width)
        if part in ("start", "update") and name in stages[1].reads:
            return self.operands[name].tile(self.b, 2, at, width)
        if part == "weigh" and name == stages[2].reads[RHS]:
            return (self.packed.get(2) or self.operands[name]).tile(self.b, 1, at, width)
        return self.operands[name]

    def _rooms(self, arena: Arena) -> dict[str, Operand]:
        """A block of scores, and what every row carries along."""
        out, start = {}, 0
        for name, room in self.form.rooms.items():
            view = View(room.dtype, (1, room.rows, room.columns), (room.rows * room.row, room.row, 1))
            out[name] = operand_in(self.b, arena, start, view, (1, room.rows, room.row))
            start += room.lines * LINE
        return out
