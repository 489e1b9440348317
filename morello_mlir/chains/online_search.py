"""The search among online forms of a tile: the columns in blocks of any power of two from SHORTEST, their scores in
L2. Sizes between them hardly differ, and shorter ones correct the output too often; schedules by hand may have any.
"""

from __future__ import annotations

from collections.abc import Callable

from ..actions import scale
from ..errors import ScheduleError
from ..nests import NestSpec
from ..nests.search import NestSearch
from ..search.schedule import Kernel, Node, ToAccum, parse, to_text
from ..search.solve import Search
from ..search.then import then_cost
from ..spec import Spec
from ..targets import INFINITE
from .online import Form, softmax_of
from .schedule import PARTS, REST, Online
from .space import Point, is_tabled

SHORTEST = 64
CONTRACTIONS = ("scores", "weigh")


class OnlineSearch:
    """Solves online forms; `search` solves their contractions, `nests` their nests."""

    def __init__(self, search: Search, nests: NestSearch):
        self.search = search
        self.nests = nests
        self.target = search.target
        self._costs: dict[object, float] = {}

    def best(self, point: Point) -> tuple[float, Online | None]:
        """The cheapest online form of a tile, without its parts' schedules; INFINITE, None where there is none."""
        best: tuple[float, Online | None] = (INFINITE, None)
        if softmax_of(point) is None:
            return best
        for size in scale(point.spec.stages[0].shape[2]):
            form = Form(point, size, "L2", self.target)
            if size & (size - 1) or size < SHORTEST or not form.is_legal:
                continue
            cost = self.total(form, lambda part, width, form=form: self.cost(form, part, width))  # type: ignore[misc]
            if cost < best[0]:
                best = (cost, Online(size, "L2", ()))
        return best

    def total(self, form: Form, cost: Callable[[str, int], float]) -> float:
        """What a form costs, given its parts: the first block, the others, the remainder, and the end."""
        blocks, rest = divmod(form.columns, form.size)
        between = cost("carry", form.size) + cost("rescale", form.size)
        out = (
            cost("scores", form.size) + cost("start", form.size) + cost("weigh", form.size) + cost("finish", form.size)
        )
        if blocks > 1:
            each = sum(cost(part, form.size) for part in REST)
            out += (blocks - 1) * (each + between)
        if rest:
            out += sum(cost(part, rest) for part in REST) + between
        return out

    def cost(self, form: Form, part: str, width: int) -> float:
        """The optimal cost of a part of `width` columns."""
        if part not in CONTRACTIONS:
            goal = form.goal(part, width)
            assert isinstance(goal, NestSpec)
            if goal not in self._costs:
                self._costs[goal] = self.nests.solve(goal).cost
            return self._costs[goal]
        key, dims, left = form.contraction(part, width)
        if not is_tabled(key, left, self.target):
            return INFINITE
        name = (key, *dims.values(), left["L2"])
        if name not in self._costs:
            at = 0 if part == "scores" else 2
            tables = self.search.tables_for(*form.point.whole(at, self.target), dims)
            self._costs[name] = self.search.value(tables, key, dims, left)
        spec = form.goal(part, width)
        assert isinstance(spec, Spec)
        return self._costs[name] + then_cost(spec, self.target)

    # ------------------------------------------------------------ schedules

    def filled(self, point: Point, node: Online) -> Online:
        """`node` with its holes filled, all parts where it has none. Raises ScheduleError where a step is not legal."""
        form = Form(point, node.size, node.home, self.target)
        form.check()
        if bool(node.rest) != bool(form.rest) and node.schedules:
            why = "needs a 'rest:'" if form.rest else "divides: there is no rest"
            raise ScheduleError(f"{node.label()}: n={form.columns} {why}")
        given = node.schedules or ("?",) * len(PARTS)
        rest = node.rest or (("?",) * len(REST) if form.rest else ())
        return Online(
            node.size,
            node.home,
            tuple(self._part(form, p, form.size, text) for p, text in zip(PARTS, given, strict=True)),
            tuple(self._part(form, p, form.rest, text) for p, text in zip(REST, rest, strict=False)),
        )

    def _part(self, form: Form, part: str, width: int, text: str) -> str:
        goal = form.goal(part, width)
        try:
            if isinstance(goal, NestSpec):
                if text.strip() == "?":
                    return to_text(self.nests.solve(goal).schedule)
                return to_text(self.nests.complete(goal.canonical(), parse(text)).schedule)
            if text.strip() != "?":
                return to_text(self.search.complete(goal, parse(text)).schedule)
            key, dims, left = form.contraction(part, width)
            if not is_tabled(key, left, self.target):
                return to_text(self.search.solve(goal).schedule)
            if self.cost(form, part, width) >= INFINITE:
                raise ScheduleError(f"no implementation fits the limits of {goal}")
            tables = self.search.tables_for(*form.point.whole(0 if part == "scores" else 2, self.target), dims)
            return to_text(self.search.tree(tables, key, dims, left))
        except ScheduleError as error:
            raise ScheduleError(f"{part}: {error}") from None

    def price(self, point: Point, node: Online) -> float:
        """The cost of a form without holes. Raises ScheduleError where a step is not legal."""
        form = Form(point, node.size, node.home, self.target)
        form.check()
        texts = {(p, form.size): text for p, text in zip(PARTS, node.schedules, strict=True)}
        texts |= {(p, form.rest): text for p, text in zip(REST, node.rest, strict=False)}

        def cost(part: str, width: int) -> float:
            goal, tree = form.goal(part, width), parse(texts[part, width])
            if isinstance(goal, NestSpec):
                return self.nests.complete(goal.canonical(), tree).cost
            return self.search.price(goal, tree)

        return self.total(form, cost)


def overwriting(tree: Node) -> Node:
    """A schedule of a function that accumulates as one of the function that overwrites."""
    return tree if isinstance(tree, (ToAccum, Kernel)) else ToAccum(tree)
