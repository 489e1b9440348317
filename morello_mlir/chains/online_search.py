"""The search among online forms of a tile: the columns in blocks of any power of two from SHORTEST, their scores in
L2. Sizes between them hardly differ, and shorter ones correct the output too often; schedules by hand may have any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..actions import scale
from ..errors import ScheduleError
from ..search.schedule import Kernel, Node, ToAccum
from ..search.then import then_cost
from ..spec import Spec
from ..targets import INFINITE
from .online import Form, softmax_of
from .parts import Parts, Place
from .schedule import PARTS, REST, Online
from .space import Point

SHORTEST = 64
#: The parts that are contractions, and whose stages they are.
CONTRACTIONS = {"scores": 0, "weigh": 2}


class OnlineSearch:
    """Solves online forms; `parts` solves their parts."""

    def __init__(self, parts: Parts):
        self.parts = parts
        self.target = parts.target

    def forms(self, point: Point) -> Iterator[tuple[float, Online]]:
        """Every online form of a tile and its cost, without its parts' schedules."""
        if softmax_of(point) is None:
            return
        for size in scale(point.spec.stages[0].shape[2]):
            form = Form(point, size, "L2", self.target)
            if size & (size - 1) or size < SHORTEST or not form.is_legal:
                continue
            cost = self.total(form, lambda part, width, form=form: self.cost(form, part, width))  # type: ignore[misc]
            yield cost, Online(size, "L2", ())

    def total(self, form: Form, cost: Callable[[str, int], float]) -> float:
        """What a form costs, given its parts."""
        often, tiles = counts(form)
        total = sum(count * cost(part, width) for (part, width), count in often.items())
        return total if tiles == 1 or total >= INFINITE else float(-(-int(total) // tiles))

    def cost(self, form: Form, part: str, width: int) -> float:
        """The optimal cost of a part of `width` columns."""
        place = self._place(form, part, width)
        if place is None:
            point = form.point
            name = (point.spec, point.dims, form.size, form.home, part, width)
            return self.parts.nest(name, lambda: form.nest(part, width))
        if part != "scores" or form.point.contraction(0).then is None:
            return self.parts.contraction(place)
        goal = form.goal(part, width)
        assert isinstance(goal, Spec)
        return self.parts.contraction(place) + then_cost(goal, self.target)

    def _place(self, form: Form, part: str, width: int) -> Place | None:
        """Where the tables have a part; None for nests."""
        if part not in CONTRACTIONS:
            return None
        return Place(form.point.whole(CONTRACTIONS[part], self.target), *form.contraction(part, width))

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
        try:
            return self.parts.schedule(form.goal(part, width), self._place(form, part, width), text)
        except ScheduleError as error:
            raise ScheduleError(f"{part}: {error}") from None

    def price(self, point: Point, node: Online) -> float:
        """The cost of a form without holes. Raises ScheduleError where a step is not legal."""
        form = Form(point, node.size, node.home, self.target)
        form.check()
        texts = {(p, form.size): text for p, text in zip(PARTS, node.schedules, strict=True)}
        texts |= {(p, form.rest): text for p, text in zip(REST, node.rest, strict=False)}

        def cost(part: str, width: int) -> float:
            return self.parts.price(form.goal(part, width), texts[part, width])

        return self.total(form, cost)


def counts(form: Form) -> tuple[dict[tuple[str, int], int], int]:
    """How often each part of so many columns is done, in so many tiles: the first block, the others, the remainder, and
    the end. Without what is skipped, one tile is like another."""
    seen = form.seen()
    tiles, rest = len(seen), form.rest
    others = sum(max(0, -(-min(columns, form.columns - rest) // form.size) - 1) for columns in seen)
    last = sum(columns > form.columns - rest for columns in seen)
    often = {"scores": others + tiles, "start": tiles, "update": others, "carry": others + last}
    often |= {"rescale": others + last, "weigh": others + tiles, "finish": tiles}
    found = {(part, form.size): count for part, count in often.items() if count}
    return found | ({(part, rest): last for part in REST} if last else {}), tiles


def overwriting(tree: Node) -> Node:
    """A schedule of a function that accumulates as one of the function that overwrites."""
    return tree if isinstance(tree, (ToAccum, Kernel)) else ToAccum(tree)
