"""`pack_ahead`: a constant operand is packed once, before the first run, instead of in every one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..search.schedule import Node, PackAhead
from ..spec import FUNCTIONS, Layout
from ..targets import Target, fixed
from .base import Action, Child, Condition
from .move import MoveAction
from .state import Dims, TableKey

#: Cycles to see that the panels are there.
LOOK = 2.0


@dataclass(frozen=True)
class PackAheadAction(Action):
    """Constant operand `operand` (a number) is in GL in `layout` from the first run on.

    The panels are those of `move X to GL as L`; filling them is free, since it happens once. It stands above everything
    but `to_accum`, so that what is packed is the whole operand.
    """

    operand: int
    layout: Layout
    dtype: str | None = None
    rank = 1

    @property
    def _move(self) -> MoveAction:
        return MoveAction(self.operand, "GL", self.layout, self.dtype)

    def requires(self, key: TableKey, target: Target) -> Sequence[Condition]:
        name = FUNCTIONS[key.function].operands[self.operand][0]
        return (
            (key.operands[self.operand].const, f"{name} is not constant here"),
            *self._move.requires(key, target),
        )

    def children(self, key: TableKey, dims: Dims) -> Sequence[Child]:
        (child,) = self._move.children(key, dims)
        packed = child.key.operands[self.operand]
        return (replace(child, key=key.with_operand(self.operand, packed)),)

    def cost(self, key: TableKey, dims: Dims, target: Target) -> Any:
        return fixed(LOOK)

    def node(self, bodies: Sequence[Node]) -> Node:
        name, _ = FUNCTIONS["MatmulAccum"].operands[self.operand]
        return PackAhead(name, str(self._move.form), bodies[0])

    def label(self) -> str:
        name, _ = FUNCTIONS["MatmulAccum"].operands[self.operand]
        return f"pack_ahead {name} as {self._move.form}"


@dataclass(frozen=True)
class InPlaceAction(Action):
    """Constant operands are taken as they lie. It stands for whatever else may follow, and leaves no step."""

    rank = 0

    def requires(self, key: TableKey, target: Target) -> Sequence[Condition]:
        return ((key.has_const, "no operand is constant"),)

    def children(self, key: TableKey, dims: Dims) -> Sequence[Child]:
        return (Child(1, key.plain, dims),)

    def node(self, bodies: Sequence[Node]) -> Node:
        return bodies[0]

    def label(self) -> str:
        return "in place"
