"""What follows from table keys alone: for one target, worked out once for all goals."""

from __future__ import annotations

from ..actions import Action, TableKey, kernels, moves
from ..targets import Target

#: How many keys are kept. One goal has some 200.
_MOST = 20_000


class Catalog:
    """The kernels and moves that are legal at table keys, for one target."""

    def __init__(self, target: Target):
        self.target = target
        self._moves: dict[TableKey, list[Action]] = {}
        self._kernels: dict[TableKey, list[Action]] = {}

    def moves(self, key: TableKey) -> list[Action]:
        """Every legal move at `key`."""
        found = self._moves.get(key)
        if found is None:
            if len(self._moves) >= _MOST:
                self._moves.clear()
            found = self._moves[key] = moves(key, self.target)
        return found

    def kernels(self, key: TableKey) -> list[Action]:
        """Every legal kernel at `key`."""
        found = self._kernels.get(key)
        if found is None:
            if len(self._kernels) >= _MOST:
                self._kernels.clear()
            found = self._kernels[key] = kernels(key, self.target)
        return found
