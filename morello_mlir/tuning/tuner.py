"""Beyond the optimum of the model: the cheapest schedules of a goal, and the fastest of them on this machine.

Without measuring everything here is a function of goal and target. With it, answers are this machine's: the winner is
kept in the memo under its kind and is only ever read by who asks for measuring.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from ..errors import CompileError, InputError, MorelloError, SpecError
from ..memo.store import Store
from ..memo.winners import Winner, Winners
from ..search.solve import Search
from ..search.then import then_cost
from ..spec import Spec
from ..targets import Target, refusal, this_host
from . import progress
from .kinds import AnySolved, Goal, Kind, kind_of, schedule_text
from .measure import Measured, measure_schedules

#: Candidates of a measurement where nobody says how many.
DEFAULT_CANDIDATES = 8
#: More take hours to enumerate.
MOST_CANDIDATES = 1000


class Measurer(Protocol):
    """Decides which of several schedules is the fastest (see `measure_schedules`)."""

    def __call__(self, goal: Goal, schedules: Sequence[Any], target: Target, function: str) -> Measured: ...


@dataclass(frozen=True)
class Tuned:
    """What was chosen, and from what.

    solution: its source is `measured` where a measurement, now or earlier, decided. candidates: the cheapest schedules
    by rising cost, the model's choice first; empty where an earlier measurement is remembered. measured: of the
    candidates, if they were measured now. winner: as the memo has it. problem: why nothing was measured though it was
    asked for.
    """

    solution: AnySolved
    candidates: tuple[AnySolved, ...] = ()
    measured: Measured | None = None
    winner: Winner | None = None
    problem: str = ""

    def describe(self) -> str:
        """What was measured, in a sentence. Only where there is a winner."""
        assert self.winner is not None
        took, model, among = self.winner.seconds, self.winner.model_seconds, f"of {self.winner.considered}"
        when = f"; to win, a schedule has to be {self.measured.margin:.1%} faster" if self.measured else " (remembered)"
        if took == model:
            return f"measured: the model's choice stays, {1e6 * took:,.2f} us{when}"
        which = f"schedule {self.measured.winner + 1} {among}" if self.measured else f"the best {among}"
        return f"measured: {which} takes {1e6 * took:,.2f} us, the model's choice {1e6 * model:,.2f} us{when}"


def candidate_count(top_k: int | None, measure: bool) -> int:
    """How many schedules to look at. Raises InputError for less than one, too many, and for what is no integer."""
    if top_k is None:
        return DEFAULT_CANDIDATES if measure else 1
    if isinstance(top_k, bool) or not hasattr(top_k, "__index__"):
        raise InputError(f"top-k must be an integer, not {top_k!r}")
    if top_k < 1:
        raise InputError(f"top-k must be at least 1, not {top_k}")
    if top_k > MOST_CANDIDATES:
        raise InputError(f"top-k must be at most {MOST_CANDIDATES}, not {top_k}: every schedule is made and compared")
    return top_k


def cheapest(search: Search, goal: Goal, count: int) -> list[AnySolved]:
    """The `count` cheapest schedules of `goal` that differ in what a machine can tell (docs/tuning.md), by rising cost;
    fewer where there are not that many. The first is the one that the search chooses.

    Raises what the search does.
    """
    kind = kind_of(goal, search)
    best = kind.solve(goal)
    if count == 1:
        return [best]
    same = _sameness(best, search.target)
    others = (s for s in kind.cheapest(best, count) if not same(s))
    return [best, *islice(others, count - 1)]


def _sameness(best: AnySolved, target: Target) -> Callable[[AnySolved], bool]:
    """Whether a machine cannot tell a schedule from `best`."""
    if not isinstance(best.spec, Spec):
        return lambda other: bool(other.schedule == best.schedule)
    from ..lowering.plan import Planner
    from .kbest import way_of

    planner, way = Planner(target), way_of(best.spec, best.schedule, target)
    plan = planner.plan(best.spec, best.schedule)
    return lambda o: way_of(o.spec, o.schedule, target) == way or planner.plan(o.spec, o.schedule) == plan


class Tuner:
    """Chooses schedules of goals for one search, and for those of nests and chains beside it. count: of candidates.
    measure: whether to time them. measurer: how."""

    def __init__(self, search: Search, count: int, *, measure: bool = False, measurer: Measurer | None = None):
        self.search = search
        self.target = search.target
        self.count = count
        self.measure = measure
        self.measurer = measurer or measure_schedules
        self.winners = winners_of(search)

    def solve(self, goal: Goal, function: str = "") -> Tuned:
        """The schedule to take for `goal`. function: the text of the function that lifting made for it, if there is
        one. Raises what the search does."""
        start = time.perf_counter()
        kind = kind_of(goal, self.search)
        goal = kind.goal(goal)
        if isinstance(goal, Spec) and goal.then is not None:
            # What is done to the sums costs the same in all schedules, and takes the same time.
            return _with_then(self.solve(goal.plain, function), goal, then_cost(goal, self.target))
        found = self._remembered(goal, kind) if self.measure else None
        if found is None and self.measure:
            with progress.reporting(str(goal)):
                candidates = tuple(cheapest(self.search, goal, self.count))
                found = self._measured(goal, kind, candidates, function)
        elif found is None:
            candidates = tuple(cheapest(self.search, goal, self.count))
            found = Tuned(candidates[0], candidates)
        return replace(found, solution=replace(found.solution, seconds=time.perf_counter() - start))

    def complete(self, goal: Goal, text: str) -> Tuned:
        """The schedule `text` of `goal`, its holes filled. Raises ScheduleError, SpecError."""
        kind = kind_of(goal, self.search)
        return Tuned(kind.complete(goal, kind.read(text)))

    def _key(self, goal: Goal, kind: Kind) -> tuple[str, str, str]:
        return kind.space, this_host().machine_key, str(goal)

    def _remembered(self, goal: Goal, kind: Kind) -> Tuned | None:
        """What an earlier measurement of at least as many candidates found."""
        winner = self.winners.get(*self._key(goal, kind))
        if winner is None or winner.considered < self.count:
            return None
        try:
            found = kind.legal(goal, winner.schedule)
        except MorelloError as error:
            self.winners.drop(*winner.key, str(error))
            return None
        return Tuned(replace(found, source="measured"), winner=winner)

    def _measured(self, goal: Goal, kind: Kind, candidates: tuple[AnySolved, ...], function: str) -> Tuned:
        best = candidates[0]
        if len(candidates) == 1:
            # There is nothing to compare, now or ever.
            return Tuned(best, candidates)
        try:
            measured = self.measurer(goal, [c.schedule for c in candidates], self.target, function)
        except (CompileError, SpecError) as error:
            return Tuned(best, candidates, problem=str(error))
        if not measured.seconds:
            return Tuned(best, candidates, measured)
        chosen = candidates[measured.winner]
        winner = Winner(
            *self._key(goal, kind),
            self.target.name,
            schedule_text(goal, chosen.schedule),
            measured.seconds[measured.winner],
            measured.seconds[0],
            self.count,
        )
        self.winners.put(winner)
        return Tuned(replace(chosen, source="measured"), candidates, measured, winner)


def _with_then(tuned: Tuned, spec: Spec, cost: int) -> Tuned:
    """What was chosen for `spec` without `then`, as schedules of `spec`, which cost so much more."""

    def own(plain: AnySolved) -> AnySolved:
        return replace(plain, spec=spec, cost=plain.cost + cost)

    return replace(tuned, solution=own(tuned.solution), candidates=tuple(map(own, tuned.candidates)))


_winners: WeakKeyDictionary[Search, Winners] = WeakKeyDictionary()


def winners_of(search: Search) -> Winners:
    """The winners in the memo file of `search`; without a file, those of this process."""
    if search not in _winners:
        memo = search.memo
        kept = Winners(memo.user.store, memo.searched) if memo and memo.user else Winners(Store(None))
        _winners[search] = kept
    return _winners[search]


def check_measurable(target: Target) -> None:
    """Raises InputError where this machine cannot run code for `target`."""
    refused = refusal(target)
    if refused is not None:
        raise InputError(f"nothing can be measured: {refused}")
