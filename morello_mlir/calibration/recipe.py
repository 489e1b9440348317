"""Recipes: schedules reduced to what shows in the code, and the cheapest schedule that yields it.

A recipe says in which order to tile and to pack, and with which sizes; it is the same for the main part and for all
remainders. Moves into caches emit nothing: the code's cost is that of the cheapest way to place them, which is how the
search places them too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ..actions import KERNELS, Action, MoveAction, TableKey, TileAction, ToAccumAction, key_of, limits_of, remaining
from ..actions.space import holds
from ..search.schedule import Node
from ..spec import FUNCTIONS, Layout, Spec
from ..targets import INFINITE, Target


@dataclass(frozen=True, slots=True)
class Block:
    """A loop over `dim` in steps of `size`; none where the dim is no larger."""

    dim: str
    size: int


@dataclass(frozen=True, slots=True)
class Pack:
    """Operand `operand` (0 or 1) is copied into panels of `width`."""

    operand: int
    width: int

    @property
    def layout(self) -> Layout:
        return Layout.packed(3, self.operand + 1, self.width)


#: Steps from the outside in; the kernel `broadcast_fma` follows the last one.
Recipe: TypeAlias = Sequence[Block | Pack]

_OUT = 2


def cheapest(spec: Spec, recipe: Recipe, target: Target) -> tuple[Node, int] | None:
    """The cheapest schedule of `spec` that does what `recipe` says, and its cost; None where there is none."""
    spec = spec.canonical()
    dims = dict(zip(spec.info.dims, spec.dims, strict=True))
    placed = _Placer(tuple(recipe), target).best(key_of(spec, target), dims, limits_of(spec, target), 0)
    return None if placed is None else (placed[1], placed[0])


class _Placer:
    """A dynamic program over (where the operands are, which step of the recipe is next)."""

    def __init__(self, recipe: tuple[Block | Pack, ...], target: Target):
        self.recipe = recipe
        self.target = target
        self._known: dict[object, tuple[int, Node] | None] = {}

    def best(self, key: TableKey, dims: Mapping[str, int], left: Mapping[str, int], at: int) -> tuple[int, Node] | None:
        """(cost, schedule) from step `at` on, or None."""
        point = (key, tuple(dims.values()), tuple(left.values()), at)
        if point not in self._known:
            options = [self._taken(a, key, dims, left, n) for a, n in self._actions(key, dims, at)]
            self._known[point] = min((o for o in options if o), key=lambda o: o[0], default=None)
        return self._known[point]

    def _taken(
        self, action: Action, key: TableKey, dims: Mapping[str, int], left: Mapping[str, int], after: int
    ) -> tuple[int, Node] | None:
        """The best schedule that begins with `action`; `after`: the step that comes next."""
        legal = holds(action.requires(key, self.target)) and holds(action.conditions(key, dims, left, self.target))
        if not legal:
            return None
        rest = remaining(action, key, dims, left, self.target)
        total, bodies = int(action.cost(key, dims, self.target)), []
        for child in action.children(key, dims):
            if child.count:
                found = self.best(child.key, child.dims, rest, after)
                if found is None:
                    return None
                total += int(child.count) * found[0]
                bodies.append(found[1])
        return (total, action.node(bodies)) if total < INFINITE else None

    def _actions(self, key: TableKey, dims: Mapping[str, int], at: int) -> list[tuple[Action, int]]:
        """What may come next, with the step of the recipe that follows it."""
        if not FUNCTIONS[key.function].accumulates:
            return [(ToAccumAction(), at)]
        if dims["b"] > 1:
            return [(TileAction("b", 1), at)]
        if key.operands[_OUT].memory == "VRF":
            kernel = KERNELS["broadcast_fma"]
            assert kernel is not None
            return [(kernel, at)]
        while at < len(self.recipe) and self._is_idle(self.recipe[at], dims):
            at += 1
        moves = [(MoveAction(i, m), at) for i in range(len(key.operands)) for m in self._inwards(key, i)]
        if at == len(self.recipe):
            return [*moves, (MoveAction(_OUT, "VRF"), at)]
        step = self.recipe[at]
        if isinstance(step, Block):
            return [*moves, (TileAction(step.dim, step.size), at + 1)]
        return [*moves, *((MoveAction(step.operand, m, step.layout), at + 1) for m in ("L2", "GL"))]

    @staticmethod
    def _is_idle(step: Block | Pack, dims: Mapping[str, int]) -> bool:
        return isinstance(step, Block) and dims[step.dim] <= step.size

    @staticmethod
    def _inwards(key: TableKey, operand: int) -> tuple[str, ...]:
        """The cache that `operand` may enter next."""
        return {"GL": ("L2",), "L2": ("L1",)}.get(key.operands[operand].memory, ())


def text(recipe: Recipe) -> str:
    """In a line, outside in: `k384 B48 m6 n48` blocks k, packs rhs in panels of 48, and tiles."""
    return " ".join(f"{s.dim}{s.size}" if isinstance(s, Block) else f"{'AB'[s.operand]}{s.width}" for s in recipe)
