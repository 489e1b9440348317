"""What a search answers, whatever kind of goal it is about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from ..targets import COST_UNITS

GoalT = TypeVar("GoalT")
TreeT = TypeVar("TreeT")


@dataclass(frozen=True, slots=True)
class Solved(Generic[GoalT, TreeT]):
    """A schedule and its predicted cost in integer units. spec: the goal that it is for, whose dims it names.

    source: `search`, `memo` (found before: by this process, or in the user's file), `shipped` (with the package),
    `measured` (see `tuning`) or `manual`. seconds: how long it took to find.
    """

    spec: GoalT
    schedule: TreeT
    cost: int
    source: str
    seconds: float

    @property
    def cycles(self) -> float:
        return self.cost / COST_UNITS
