"""The k cheapest schedules of a nest.

Leaves differ in what `LeafSearch.cheapest` says; above them every step of the space is tried. What is left over of a
loop, and what combines parts, is done in the cheapest way.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING

from ..errors import ScheduleError
from ..search.nest_steps import Stage
from ..search.schedule import Node
from .actions import rewritten
from .fill import with_children
from .rewrite import reciprocal_body
from .spec import NestSpec

if TYPE_CHECKING:
    from .search import NestSearch

#: (cost, schedule)
Option = tuple[int, Node]


class NestKBest:
    """The `count` cheapest of goals that `search` solves."""

    def __init__(self, search: NestSearch, count: int):
        self.search = search
        self.count = count
        self._found: dict[tuple[NestSpec, frozenset[int]], list[Option]] = {}

    def best(self, spec: NestSpec, cut: frozenset[int] = frozenset()) -> list[Option]:
        """By rising cost, ties in the order of the search. cut: see `NestSearch.best`."""
        key = spec, cut
        if key not in self._found:
            self._found[key] = heapq.nsmallest(self.count, self._options(spec, cut), key=lambda option: option[0])
        return self._found[key]

    def _options(self, spec: NestSpec, cut: frozenset[int]) -> Iterator[Option]:
        if spec.serial and reciprocal_body(spec) is None:
            yield from self.search.leaf_search(spec).cheapest(self.count)
        for step in self.search.steps(spec, cut):
            yield from self._with(spec, step, cut)

    def _with(self, spec: NestSpec, step: Node, cut: frozenset[int]) -> Iterator[Option]:
        """The schedules that begin with `step`."""
        try:
            below = rewritten(spec, step, self.search.target).children
        except ScheduleError:
            return
        cut = self.search.cut_by(step, cut)
        # Both parts of a stage are wholes of their own.
        kept = 2 if isinstance(step, Stage) else 1
        found = [self.best(c.spec, cut)[: self.count if i < kept else 1] for i, c in enumerate(below)]
        for chosen in product(*found):
            cost = self.search.total(spec, step, below, [c for c, _ in chosen])
            yield cost, with_children(step, [node for _, node in chosen])
