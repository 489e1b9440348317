"""The optimum of a chain: an exhaustive choice of what is packed, tile sizes and homes, above the optima of its stages.

The declared space: threads share b (one each) or tiles of m, or one does it all; b is tiled by 1; the rhs of any
contraction may be packed for all tiles; what a known mask hides may be skipped; m is tiled by any size of the scale, or
not; each intermediate result lives in L2 or GL, or in the place of another that it may overwrite. A remainder has the
homes that are best for it. (Homes that leave a stage with all operands in GL and less than all of L2 are not tried: no
table has such states.) A tile of attention may also have its online form (see `online_search`).
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ..actions import scale
from ..actions.base import sum_of
from ..errors import ScheduleError, SpecError
from ..locks import lock
from ..memo.answers import Answer, answer_space
from ..nests.search import nest_search_for
from ..search.solution import Solved
from ..search.solve import Search, search_for
from ..search.then import then_cost
from ..spec import Spec
from ..targets import COST_UNITS, INFINITE, MAX_COST, Target, fixed
from .online_search import OnlineSearch
from .parts import Parts, Place
from .schedule import Hole, Loop, Node, Online, PackRhs, Skip, Stages, form_of, has_hole
from .schedule import parse as parse_chain
from .schedule import to_text as chain_text
from .space import Point
from .spec import ChainSpec


@dataclass(frozen=True, slots=True)
class ChainSolution(Solved[ChainSpec, Node]):
    """Of a chain."""


@dataclass(frozen=True, slots=True)
class _Found:
    cost: float
    node: Node


#: What was found of a goal, the cheapest first.
_Options = list[_Found]


class ChainSearch:
    """Solves chains for the target of `search`, which solves their contractions. Solved goals are kept. Thread-safe."""

    def __init__(self, search: Search):
        self.search = search
        self.target = search.target
        # Without the memo: hundreds of nests are tried, and one of them is kept, in the answer.
        self.parts = Parts(search, nest_search_for(search.target))
        self.online = OnlineSearch(self.parts)
        self._solved: dict[ChainSpec, _Found] = {}
        self._stages_of: dict[object, _Options] = {}
        #: How many of the cheapest are kept of every part.
        self._keep = 1
        self._lock = lock()
        self._answers = search.memo.answers if search.memo else None
        self._space = answer_space(search.target)

    def solve(self, spec: ChainSpec) -> ChainSolution:
        """The cheapest implementation of `spec`. Raises SpecError where a size is 0 or a stage has no kernels,
        ScheduleError where none fits."""
        start = time.perf_counter()
        goal = spec.canonical()
        with self._lock:
            known = goal in self._solved
            remembered = None if known else self._remembered(goal)
            if not known:
                self._solved[goal] = remembered or self._searched(Point.of(goal, self.target))[0]
            found = self._solved[goal]
            if not known and not remembered and self._answers:
                self._answers.put(Answer(self._space, str(goal), chain_text(found.node), int(found.cost)))
        source = "memo" if known or remembered else "search"
        return ChainSolution(goal, found.node, int(found.cost), source, time.perf_counter() - start)

    def _remembered(self, goal: ChainSpec) -> _Found | None:
        """What the memo has, checked step by step and priced anew."""

        def read(schedule: str) -> tuple[Node, float]:
            node = parse_chain(schedule)
            if has_hole(node):
                raise ScheduleError("its schedule has holes")
            return node, self.price(Point.of(goal, self.target), node)

        found = self._answers.checked(self._space, str(goal), read) if self._answers else None
        return None if found is None else _Found(found[1], found[0])

    def cheapest(self, spec: ChainSpec, count: int) -> list[ChainSolution]:
        """The `count` cheapest implementations of `spec`, of each form the cheapest (`schedule.form_of`); fewer
        where there are not that many. The first is what `solve` finds, whose errors it raises."""
        start = time.perf_counter()
        goal = spec.canonical()
        with self._lock:
            self._keep = count
            try:
                found = self._searched(Point.of(goal, self.target))
            finally:
                self._keep = 1
        took = time.perf_counter() - start
        return [ChainSolution(goal, f.node, int(f.cost), "search", took) for f in found]

    def _searched(self, point: Point) -> _Options:
        """The cheapest, filled."""
        try:
            found = self._root(point)
        finally:
            # Thousands for one goal, and none of another's.
            self._stages_of.clear()
        if not found:
            raise ScheduleError(f"no implementation fits the limits of {point.spec}")
        if found[0].cost >= MAX_COST:
            raise SpecError(f"too large: costs beyond {MAX_COST // COST_UNITS:,} cycles are not exact, in {point.spec}")
        return [replace(f, node=self._filled(point, f.node)) for f in found if f.cost < MAX_COST]

    def _best(self, options: Iterable[_Found]) -> _Options:
        """The cheapest of `options`, of equal ones the first; of those of one form the cheapest."""
        out: dict[object, _Found] = {}
        for found in sorted((f for f in options if f.cost < INFINITE), key=lambda f: f.cost):
            if len(out) == self._keep:
                break
            out.setdefault(form_of(found.node), found)
        return list(out.values())

    # ------------------------------------------------------------ the space

    def _root(self, point: Point) -> _Options:
        options = [self._batches(replace(point, threads=1))]
        if point.threads > 1:
            b, m = point.dims
            if b > 1:
                options.append(self._loop(point, Loop("b", 1, Hole(), threads=-1), self._rows))
            options += [self._loop(point, Loop("m", s, Hole(), threads=-1), self._batches) for s in scale(m)]
        return self._best(itertools.chain(*options))

    def _batches(self, point: Point) -> _Options:
        """Every batch by itself."""
        return self._loop(point, Loop("b", 1, Hole()), self._rows) if point.dims[0] > 1 else self._rows(point)

    def _rows(self, point: Point) -> _Options:
        """One batch: what is packed, and into which tiles m is cut."""
        best: _Options = []
        for packs in itertools.product(*self._pack_choices(point)):
            chosen = [p for p in packs if p is not None]
            try:
                below, cost = self._packed(point, chosen)
            except ScheduleError:
                continue
            if len(best) < self._keep or cost < best[-1].cost:
                found = [*self._tiles(below), *self._skipping(below)]
                best = self._best([*best, *(_under(chosen, f, cost) for f in found)])
        return best

    def _skipping(self, point: Point) -> _Options:
        """Without what the mask hides."""
        if point.spec.mask is None:
            return []
        try:
            below = point.skip()
        except ScheduleError:
            return []
        return [_Found(f.cost + self.skip_cost(point), Skip(f.node)) for f in self._tiles(below)]

    def skip_cost(self, point: Point) -> float:
        """What it costs to see whether what is masked may be skipped."""
        costs = [
            self.parts.nest((point.spec, point.dims, "check", i), lambda goal=goal: goal)  # type: ignore[misc]
            for i, (_, goal) in enumerate(point.checks())
        ]
        return sum(costs)

    def _pack_choices(self, point: Point) -> list[list[PackRhs | None]]:
        """By contraction: not packed for all tiles, or in one of the forms that its kernels read."""
        out: list[list[PackRhs | None]] = []
        for at, stage in enumerate(point.spec.stages):
            if stage.is_contraction:
                out.append([None, *point.forms(at, self.target)])
        return out

    def _packed(self, point: Point, steps: list[PackRhs]) -> tuple[Point, float]:
        cost = 0.0
        for step in steps:
            below = point.pack(step, self.target)
            cost += self.pack_cost(point, step)
            point = below
        return point, cost

    def pack_cost(self, point: Point, step: PackRhs) -> float:
        """What a pack costs, without what follows."""
        key, dims = point.whole(step.stage, self.target)
        return float(point.move(step).cost(key, dims, self.target))

    def _tiles(self, point: Point) -> _Options:
        """m in tiles of any size, or as it is."""
        options = [self._stages(point)]
        options += [self._loop(point, Loop("m", s, Hole()), self._stages) for s in scale(point.dims[1])]
        return self._best(itertools.chain(*options))

    def _loop(self, point: Point, loop: Loop, inside: Callable[[Point], _Options]) -> _Options:
        body, rest = point.tiled(loop)
        found = inside(body)
        left = inside(rest)[:1] if rest is not None else []
        if rest is not None and not left:
            return []
        last, least = (left[0].node, left[0].cost) if left else (None, None)
        return [
            _Found(self.loop_cost(point, loop, f.cost, least), replace(loop, body=f.node, rest=last)) for f in found
        ]

    def loop_cost(self, point: Point, loop: Loop, body: float, rest: float | None) -> float:
        """What the thread with the most to do takes."""
        most = max(sum_of(way, (body, rest or 0)) for way in loop_ways(point, loop))
        return most + (float(fixed(self.target.costs.fork_join)) if point.shares(loop) > 1 else 0.0)

    def _stages(self, point: Point) -> _Options:
        """One tile, every stage once, with the best homes. Loops of many sizes leave the same tiles."""
        name = (point.spec, point.dims, point.l2, point.packed, point.skips and point.rows)
        if name not in self._stages_of:
            self._stages_of[name] = self._best(self._forms(point))
        return self._stages_of[name]

    def _forms(self, point: Point) -> Iterator[_Found]:
        """Every choice of homes, and every online form."""
        for homes in point.homes():
            if point.l2_left(homes) >= 0:
                stages = range(len(point.spec.stages))
                yield _Found(sum(self.stage_cost(point, at, homes) for at in stages), Stages(homes, ()))
        for cost, online in self.online.forms(point):
            yield _Found(cost, online)

    # ------------------------------------------------------------ stages

    def stage_cost(self, point: Point, at: int, homes: tuple[str, ...]) -> float:
        """The optimal cost of a stage of a tile."""
        place = self._place(point, at, homes)
        if place is None:
            return self.parts.nest((point.spec, point.dims, at, homes), lambda: point.nest(at, homes))
        if point.contraction(at).then is None:
            return self.parts.contraction(place)
        goal = point.goal(at, homes, self.target)
        assert isinstance(goal, Spec)
        return self.parts.contraction(place) + then_cost(goal, self.target)

    def _place(self, point: Point, at: int, homes: tuple[str, ...]) -> Place | None:
        """Where the tables have a stage of a tile; None for nests."""
        if not point.spec.stages[at].is_contraction:
            return None
        return Place(point.whole(at, self.target), *point.table_point(at, homes, self.target))

    def _filled(self, point: Point, node: Node) -> Node:
        """`node` with the optima of its stages."""
        if isinstance(node, Loop):
            body, rest = point.tiled(node)
            left = None if rest is None or node.rest is None else self._filled(rest, node.rest)
            return replace(node, body=self._filled(body, node.body), rest=left)
        if isinstance(node, PackRhs):
            return replace(node, body=self._filled(point.pack(node, self.target), node.body))
        if isinstance(node, Skip):
            return replace(node, body=self._filled(point.skip(), node.body))
        if isinstance(node, Online):
            return self.online.filled(point, node)
        assert isinstance(node, Stages)
        count = len(point.spec.stages)
        return replace(node, schedules=tuple(self._schedule(point, at, node.homes) for at in range(count)))

    def _schedule(self, point: Point, at: int, homes: tuple[str, ...], text: str = "?") -> str:
        goal = point.goal(at, homes, self.target)
        return self.parts.schedule(goal, self._place(point, at, homes), text)

    # ------------------------------------------------------------ schedules given by hand

    def complete(self, spec: ChainSpec, node: Node) -> ChainSolution:
        """`node` with its holes filled. Raises ScheduleError naming the step and the reason where one is not legal."""
        start = time.perf_counter()
        goal = spec.canonical()
        if isinstance(node, Hole):
            return self.solve(goal)
        point = Point.of(goal, self.target)
        with self._lock:
            try:
                full = self._complete(point, node)
                cost = int(self.price(point, full))
            finally:
                self._stages_of.clear()
        return ChainSolution(goal, full, cost, "manual", time.perf_counter() - start)

    def _complete(self, point: Point, node: Node) -> Node:
        if isinstance(node, Hole):
            best = self._tiles(point) if point.packed or point.skips else self._root(point)
            if not best:
                raise ScheduleError(f"?: no implementation fits what is left of {point.spec}")
            return self._filled(point, best[0].node)
        if isinstance(node, Loop):
            body, rest = point.tiled(node)
            if (rest is None) != (node.rest is None):
                why = "divides: there is no rest" if rest is None else "needs a 'rest:'"
                raise ScheduleError(f"{node.label()}: {node.dim}={point.dims[node.dim == 'm']} {why}")
            left = None if rest is None or node.rest is None else self._complete(rest, node.rest)
            return replace(node, body=self._complete(body, node.body), rest=left)
        if isinstance(node, PackRhs):
            return replace(node, body=self._complete(point.pack(node, self.target), node.body))
        if isinstance(node, Skip):
            return replace(node, body=self._complete(point.skip(), node.body))
        if isinstance(node, Online):
            return self.online.filled(point, node)
        point.check_homes(node)
        count = len(point.spec.stages)
        given = node.schedules or ("?",) * count
        return replace(node, schedules=tuple(self._stage_by_hand(point, at, node, given[at]) for at in range(count)))

    def _stage_by_hand(self, point: Point, at: int, node: Stages, text: str) -> str:
        try:
            return self._schedule(point, at, node.homes, text)
        except ScheduleError as error:
            raise ScheduleError(f"stage {at + 1}: {error}") from None

    def price(self, point: Point, node: Node) -> float:
        """The cost of a schedule without holes. Raises ScheduleError where it is not legal."""
        if isinstance(node, Loop):
            body, rest = point.tiled(node)
            left = None if rest is None or node.rest is None else self.price(rest, node.rest)
            return self.loop_cost(point, node, self.price(body, node.body), left)
        if isinstance(node, PackRhs):
            return self.pack_cost(point, node) + self.price(point.pack(node, self.target), node.body)
        if isinstance(node, Skip):
            return self.skip_cost(point) + self.price(point.skip(), node.body)
        if isinstance(node, Online):
            return self.online.price(point, node)
        assert isinstance(node, Stages)
        point.check_homes(node)
        return sum(
            self.parts.price(point.goal(at, node.homes, self.target), text) for at, text in enumerate(node.schedules)
        )


def _under(packs: Sequence[PackRhs], found: _Found, cost: float) -> _Found:
    """What was found below packs that cost so much, with them."""
    node = found.node
    for step in reversed(packs):
        node = replace(step, body=node)
    return _Found(found.cost + cost, node)


def loop_ways(point: Point, loop: Loop) -> list[tuple[int, int]]:
    """How many bodies and remainders each thread does: they take consecutive trips; the remainder is the last one."""
    full, rest = divmod(point.dims[0 if loop.dim == "b" else 1], loop.size)
    threads, trips = point.shares(loop), full + bool(rest)
    cuts = [t * trips // threads for t in range(threads + 1)]
    shares = [(high - low, int(bool(rest) and high == trips)) for low, high in itertools.pairwise(cuts)]
    return sorted({(many - last, last) for many, last in shares if many})


_searches: dict[Search, ChainSearch] = {}
_searches_lock = lock()


def chain_search_for(target: Target, memo: str | os.PathLike[str] | None = None) -> ChainSearch:
    """The process's search for chains on `target`; memo: see `search_for`."""
    return chain_search_of(search_for(target, memo))


def chain_search_of(search: Search) -> ChainSearch:
    """The search for chains beside `search`, with its target and its memo."""
    with _searches_lock:
        if search not in _searches:
            _searches[search] = ChainSearch(search)
        return _searches[search]
