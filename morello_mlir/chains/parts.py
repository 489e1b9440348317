"""What parts of chains cost, and their schedules: contractions read off the tables of whole stages, and nests."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass

from ..actions import TableKey
from ..errors import ScheduleError
from ..nests import NestSpec
from ..nests.search import NestSearch
from ..search.schedule import parse, to_text
from ..search.solve import Search
from ..search.tables import Tables
from ..spec import Spec
from ..targets import INFINITE
from .space import is_tabled


@dataclass(frozen=True, slots=True)
class Place:
    """Where the tables have the optimum of a contraction: those of the whole stage, at `key`, `dims`, with `left` of
    each memory."""

    whole: tuple[TableKey, Mapping[str, int]]
    key: TableKey
    dims: dict[str, int]
    left: dict[str, int]


class Parts:
    """Solves parts of chains; `search` solves contractions, `nests` nests. What they cost is kept."""

    def __init__(self, search: Search, nests: NestSearch):
        self.search = search
        self.nests = nests
        self.target = search.target
        self._costs: dict[object, float] = {}

    def nest(self, name: Hashable, goal: Callable[[], NestSpec]) -> float:
        """The optimal cost of a nest. name: what the goal follows from, of one kind of chain part."""
        if name not in self._costs:
            nest = goal()
            if nest not in self._costs:
                self._costs[nest] = self.nests.solve(nest).cost
            self._costs[name] = self._costs[nest]
        return self._costs[name]

    def contraction(self, place: Place) -> float:
        """The optimal cost of a contraction without what is done to its sums; INFINITE where nothing fits, or no table
        has it."""
        if not is_tabled(place.key, place.left, self.target):
            return INFINITE
        name = (place.key, *place.dims.values(), place.left["L2"])
        if name not in self._costs:
            self._costs[name] = self.search.value(self._tables(place), place.key, place.dims, place.left)
        return self._costs[name]

    def _tables(self, place: Place) -> Tables:
        """The tables of a whole stage hold all of its tiles on the scale."""
        return self.search.tables_for(*place.whole, place.dims)

    def schedule(self, goal: Spec | NestSpec, place: Place | None, text: str = "?") -> str:
        """The schedule `text` of a part with its holes filled. Raises ScheduleError where a step is not legal."""
        hole = text.strip() == "?"
        if isinstance(goal, NestSpec):
            # A schedule names the dims of the canonical form.
            solution = self.nests.solve(goal) if hole else self.nests.complete(goal.canonical(), parse(text))
            return to_text(solution.schedule)
        assert place is not None
        if not hole:
            return to_text(self.search.complete(goal, parse(text)).schedule)
        if not is_tabled(place.key, place.left, self.target):
            return to_text(self.search.solve(goal).schedule)
        if self.contraction(place) >= INFINITE:
            raise ScheduleError(f"no implementation fits the limits of {goal}")
        return to_text(self.search.tree(self._tables(place), place.key, place.dims, place.left))

    def price(self, goal: Spec | NestSpec, text: str) -> float:
        """The cost of a part by a schedule without holes. Raises ScheduleError where a step is not legal."""
        if isinstance(goal, NestSpec):
            return self.nests.complete(goal.canonical(), parse(text)).cost
        return self.search.price(goal, parse(text))
