"""The kinds of goals: how each is searched, and its schedules read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from ..actions import key_of
from ..chains import ChainSpec, is_chain
from ..errors import ScheduleError
from ..memo.answers import answer_space
from ..memo.locate import OFF
from ..memo.version import space_of
from ..memo.winners import Winner
from ..nests import NestSpec, is_nest
from ..search.schedule import has_hole, parse, to_text
from ..search.solution import Solved
from ..search.solve import Search, search_for
from ..spec import Spec
from ..targets import Target, thread_count

if TYPE_CHECKING:
    from ..chains.search import ChainSearch
    from ..nests.search import NestSearch

Goal: TypeAlias = Spec | NestSpec | ChainSpec
#: A schedule of any kind of goal.
AnySolved: TypeAlias = Solved[Any, Any]


@dataclass(frozen=True)
class Kind:
    """What can be done with goals of one kind.

    goal: one in the form in which it is searched and remembered. solve: its cheapest schedule. cheapest: given that,
    so many that differ in what a machine can tell, by rising cost. complete: a schedule with its holes filled. space:
    the name under which answers are kept. read: a schedule from its text. has_hole: whether one has holes.
    """

    goal: Callable[[Any], Any]
    solve: Callable[[Any], AnySolved]
    cheapest: Callable[[Any, int], Iterable[AnySolved]]
    complete: Callable[[Any, Any], AnySolved]
    space: str
    read: Callable[[str], Any] = parse
    has_hole: Callable[[Any], bool] = has_hole

    def legal(self, goal: Goal, text: str) -> AnySolved:
        """A schedule without holes, checked and priced. Raises ScheduleError, SpecError."""
        node = self.read(text)
        if self.has_hole(node):
            raise ScheduleError("schedule: it has holes")
        return self.complete(goal, node)


def kind_of(goal: Goal, search: Search) -> Kind:
    """The kind of `goal`. search: for contractions; nests and chains are solved for its target, with its memo."""
    # Most programs need one of them, and each takes milliseconds to import.
    if isinstance(goal, ChainSpec):
        from ..chains import schedule as chain
        from ..chains.search import chain_search_of

        return _kept_whole(chain_search_of(search), ChainSpec.canonical, chain.parse, chain.has_hole)
    if isinstance(goal, NestSpec):
        from ..nests.search import nest_search_of

        nests = nest_search_of(search)
        return _kept_whole(nests, lambda spec: nests.goal(spec.canonical()))
    return _contractions(search, goal)


def _contractions(search: Search, goal: Spec) -> Kind:
    def cheapest(best: AnySolved, count: int) -> Iterable[AnySolved]:
        from .kbest import cheapest

        return cheapest(search, best)

    # Those with windows are kept as a whole, as nests are.
    windows = any(t.window for t in goal.operands)
    space = answer_space(search.target) if windows else space_of(search.target)
    return Kind(Spec.canonical, search.solve, cheapest, search.complete, space)


def _kept_whole(search: NestSearch | ChainSearch, goal: Callable[[Any], Any], *text: Callable[[Any], Any]) -> Kind:
    """A kind whose answers are kept as a whole. text: what reads its schedules and finds holes, where not as usual."""

    def cheapest(best: AnySolved, count: int) -> Iterable[AnySolved]:
        return search.cheapest(best.spec, count)

    return Kind(goal, search.solve, cheapest, search.complete, answer_space(search.target), *text)


def parse_goal(text: str) -> Goal:
    """A goal from its text. Raises SpecError."""
    kind = ChainSpec if is_chain(text) else NestSpec if is_nest(text) else Spec
    return kind.parse(text)


def schedule_text(goal: Goal, node: Any) -> str:
    """A schedule of `goal` as text."""
    if not isinstance(goal, ChainSpec):
        return to_text(node)
    from ..chains.schedule import to_text as chain_text

    return chain_text(node)


def threads_of(goal: Goal, target: Target) -> int:
    """How many threads work on `goal`."""
    if isinstance(goal, ChainSpec):
        from ..chains.space import Point

        return Point.of(goal, target).threads
    if isinstance(goal, NestSpec):
        return 1 if goal.serial else goal.threads or thread_count()
    return key_of(goal.plain, target).threads


def check_winner(winner: Winner, target: Target) -> None:
    """Checks the schedule of a winner of any kind of goal. Raises ScheduleError, SpecError."""
    goal = parse_goal(winner.spec)
    kind_of(goal, search_for(target, OFF)).legal(goal, winner.schedule)
