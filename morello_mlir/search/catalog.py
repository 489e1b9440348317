"""What follows from table keys alone: for one target, worked out once for all goals."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ..actions import Action, TableKey, kernels, moves
from ..targets import Target

#: How many keys are kept. One goal has some 200.
_MOST = 20_000

_Legal: TypeAlias = Callable[[TableKey, Target], list[Action]]


class Catalog:
    """The kernels and moves that are legal at table keys, for one target."""

    def __init__(self, target: Target):
        self.target = target
        self._moves: dict[TableKey, list[Action]] = {}
        self._kernels: dict[TableKey, list[Action]] = {}

    def moves(self, key: TableKey) -> list[Action]:
        """Every legal move at `key`."""
        return self._found(self._moves, moves, key)

    def kernels(self, key: TableKey) -> list[Action]:
        """Every legal kernel at `key`."""
        return self._found(self._kernels, kernels, key)

    def _found(self, known: dict[TableKey, list[Action]], legal: _Legal, key: TableKey) -> list[Action]:
        found = known.get(key)
        if found is None:
            if len(known) >= _MOST:
                known.clear()
            found = known[key] = legal(key, self.target)
        return found
