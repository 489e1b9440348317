"""Beyond the optimum of the model: the cheapest schedules of a Spec, and the fastest of them on this machine.

Without measuring everything here is a function of Spec and target. With it, answers are this machine's: the winner is
kept in the memo under its kind and is only ever read by who asks for measuring.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from weakref import WeakKeyDictionary

from ..errors import CompileError, InputError, MorelloError, SpecError
from ..lowering.plan import Planner
from ..memo.store import Store
from ..memo.version import space_of
from ..memo.winners import Winner, Winners
from ..search.schedule import Node, to_text
from ..search.solve import Search, Solution
from ..search.then import then_cost
from ..spec import Spec
from ..targets import Target, refusal, this_host
from .kbest import KBest, way_of
from .measure import Measured, measure_schedules

#: Candidates of a measurement where nobody says how many.
DEFAULT_CANDIDATES = 8
#: More take hours to enumerate.
MOST_CANDIDATES = 1000

#: Decides which of several schedules is the fastest (see `measure_schedules`).
Measurer = Callable[[Spec, Sequence[Node], Target], Measured]


@dataclass(frozen=True)
class Tuned:
    """What was chosen, and from what.

    solution: its source is `measured` where a measurement, now or earlier, decided. candidates: the cheapest schedules
    by rising cost, the model's choice first; empty where an earlier measurement is remembered. measured: of the
    candidates, if they were measured now. winner: as the memo has it. problem: why nothing was measured though it was
    asked for.
    """

    solution: Solution
    candidates: tuple[Solution, ...] = ()
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


def cheapest(search: Search, spec: Spec, count: int) -> list[Solution]:
    """The `count` cheapest schedules of `spec` that differ in what a machine can tell (`kbest.Way`), by rising cost, no
    two with the same code; fewer where there are not that many. The first is the one that `search` chooses.

    Raises what `Search.solve` raises.
    """
    best = search.solve(spec)
    if count == 1:
        return [best]
    # Tables that are solved are used. Reading them from a memo takes longer than solving them, and it may not hold all.
    others = KBest(spec, search.target, search if best.source == "search" else None)
    return list(islice(_distinct(best, others, search.target), count))


def _distinct(best: Solution, others: Iterable[Solution], target: Target) -> Iterator[Solution]:
    """`best`, and those of `others` that neither go its way nor have the code of an earlier one."""
    planner, first = Planner(target), way_of(best.spec, best.schedule, target)
    plans = {planner.plan(best.spec, best.schedule)}
    yield best
    for other in others:
        plan = planner.plan(other.spec, other.schedule)
        if plan not in plans and way_of(other.spec, other.schedule, target) != first:
            plans.add(plan)
            yield other


class Tuner:
    """Chooses schedules for one search. count: of candidates. measure: whether to time them. measurer: how."""

    def __init__(self, search: Search, count: int, *, measure: bool = False, measurer: Measurer | None = None):
        self.search = search
        self.target = search.target
        self.count = count
        self.measure = measure
        self.measurer = measurer or measure_schedules
        self.winners = winners_of(search)

    def solve(self, spec: Spec) -> Tuned:
        """The schedule to take for `spec`. Raises what `Search.solve` raises."""
        start = time.perf_counter()
        spec = spec.canonical()
        if spec.then is not None:
            # What is done to the sums costs the same in all schedules, and takes the same time.
            return _with_then(self.solve(spec.plain), spec, then_cost(spec, self.target))
        found = self._remembered(spec) if self.measure else None
        if found is None:
            candidates = tuple(cheapest(self.search, spec, self.count))
            found = self._measured(spec, candidates) if self.measure else Tuned(candidates[0], candidates)
        return replace(found, solution=replace(found.solution, seconds=time.perf_counter() - start))

    def _key(self, spec: Spec) -> tuple[str, str, str]:
        return space_of(self.target), this_host().machine_key, str(spec)

    def _remembered(self, spec: Spec) -> Tuned | None:
        """What an earlier measurement of at least as many candidates found."""
        winner = self.winners.get(*self._key(spec))
        if winner is None or winner.considered < self.count:
            return None
        try:
            node = winner.legal(self.target)
            cost = self.search.price(spec, node)
        except MorelloError as error:
            self.winners.drop(*winner.key, str(error))
            return None
        return Tuned(Solution(spec, node, cost, "measured", 0.0), winner=winner)

    def _measured(self, spec: Spec, candidates: tuple[Solution, ...]) -> Tuned:
        best = candidates[0]
        if len(candidates) == 1:
            # There is nothing to compare, now or ever.
            return Tuned(best, candidates)
        try:
            measured = self.measurer(spec, [c.schedule for c in candidates], self.target)
        except (CompileError, SpecError) as error:
            return Tuned(best, candidates, problem=str(error))
        if not measured.seconds:
            return Tuned(best, candidates, measured)
        chosen = candidates[measured.winner]
        winner = Winner(
            *self._key(spec),
            self.target.name,
            to_text(chosen.schedule),
            measured.seconds[measured.winner],
            measured.seconds[0],
            self.count,
        )
        self.winners.put(winner)
        return Tuned(replace(chosen, source="measured"), candidates, measured, winner)


def _with_then(tuned: Tuned, spec: Spec, cost: int) -> Tuned:
    """What was chosen for `spec` without `then`, as schedules of `spec`, which cost so much more."""

    def own(plain: Solution) -> Solution:
        return replace(plain, spec=spec, cost=plain.cost + cost)

    return replace(tuned, solution=own(tuned.solution), candidates=tuple(map(own, tuned.candidates)))


_winners: WeakKeyDictionary[Search, Winners] = WeakKeyDictionary()


def winners_of(search: Search) -> Winners:
    """The winners in the memo file of `search`; without a file, those of this process."""
    if search not in _winners:
        user = search.memo.user if search.memo else None
        _winners[search] = Winners(user.store if user else Store(None))
    return _winners[search]


def check_measurable(target: Target) -> None:
    """Raises InputError where this machine cannot run code for `target`."""
    refused = refusal(target)
    if refused is not None:
        raise InputError(f"nothing can be measured: {refused}")
