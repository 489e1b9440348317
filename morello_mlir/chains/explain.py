"""A schedule of a chain explained: its loops and packs, and below them the schedules of its stages."""

from __future__ import annotations

from collections.abc import Iterator

from ..actions.base import sum_of
from ..nests import NestSpec
from ..nests import explain as nests
from ..nests.ops import element_bytes
from ..search import explain as contractions
from ..search.schedule import parse
from ..search.steps import Step, bytes_text
from ..spec import Spec
from ..targets import LINE, Target, fixed
from .online import Form
from .online_search import counts
from .schedule import PARTS, REST, Loop, Node, Online, PackRhs, Skip, Stages, children
from .search import ChainSearch, chain_search_for, loop_ways
from .space import Point
from .spec import ChainSpec


def steps(spec: ChainSpec, node: Node, target: Target) -> Step:
    """The tree of a legal schedule without holes, priced. Raises ScheduleError where it is not legal."""
    explainer = _Explainer(chain_search_for(target, "off"))
    found = [*explainer.steps(Point.of(spec, target), node, 1, 1)]
    return found[0] if len(found) == 1 else Step("", 1, below=found).summed()


class _Explainer:
    def __init__(self, search: ChainSearch):
        self.search, self.target = search, search.target

    def steps(self, point: Point, node: Node, runs: int, met: int) -> Iterator[Step]:
        """The lines of a part. runs: how often all threads come by; met: how often the one that decides does."""
        if isinstance(node, Loop):
            yield self._loop(point, node, runs, met)
        elif isinstance(node, PackRhs):
            yield self._pack(point, node, runs, met)
        elif isinstance(node, Skip):
            yield self._skip(point, node, runs, met)
        elif isinstance(node, Online):
            yield self._online(point, node, runs, met)
        else:
            assert isinstance(node, Stages)
            yield from self._stages(point, node, runs, met)

    def _loop(self, point: Point, node: Loop, runs: int, met: int) -> Step:
        parts = [part for part in point.tiled(node) if part is not None]
        costs = [self.search.price(part, body) for part, body in zip(parts, children(node), strict=True)]
        often = max(loop_ways(point, node), key=lambda way: sum_of(way[: len(costs)], costs))
        trips = point.dims[0 if node.dim == "b" else 1] // node.size, 1
        own = fixed(self.target.costs.fork_join) * met if point.shares(node) > 1 else 0
        here = Step(node.label() + ":", runs, own, note=_sizes(point))
        for i, (part, body) in enumerate(zip(parts, children(node), strict=True)):
            below = [*self.steps(part, body, runs * trips[i], met * often[i])]
            for step in below:
                step.indent += 1
            here.below += [Step("rest:", runs, note=_sizes(part), below=below).summed()] if i else below
        return here.summed()

    def _pack(self, point: Point, node: PackRhs, runs: int, met: int) -> Step:
        key, dims = point.whole(node.stage, self.target)
        moved = point.move(node).traffic(key, dims, self.target)
        here = Step(node.label(), runs, int(self.search.pack_cost(point, node)) * met, note=_sizes(point))
        here.traffic = {way: int(amount) * runs for way, amount in moved.items()}
        here.below = [*self.steps(point.pack(node, self.target), node.body, runs, met)]
        return here.summed()

    def _skip(self, point: Point, node: Skip, runs: int, met: int) -> Step:
        note = f"{point.spec.mask}; where x of stage 3 is finite"
        note += f", and those of stage 1 are {point.spec.bound:.2g} at most" if point.spec.bound is not None else ""
        here = Step(node.label(), runs, int(self.search.skip_cost(point)) * met, note=note)
        lines = [-(-g.dims[0] * element_bytes(g.operands[0].dtype) // LINE) for _, g in point.checks()]
        here.traffic = {("GL", "L2"): sum(lines) * LINE * runs}
        here.below = [*self.steps(point.skip(), node.body, runs, met)]
        return here.summed()

    def _stages(self, point: Point, node: Stages, runs: int, met: int) -> Iterator[Step]:
        for t, home in enumerate(node.homes):
            where = "in" if home.startswith("t") else "to"
            note = "" if home.startswith("t") else f"a tile of {bytes_text(point.lines(t) * LINE)}"
            yield Step(f"bufferize t{t} {where} {home}", runs, note=note)
        for at, text in enumerate(node.schedules):
            yield self._part(point.goal(at, node.homes, self.target), text, runs, met).under(f"stage {at + 1}")

    def _online(self, point: Point, node: Online, runs: int, met: int) -> Step:
        form = Form(point, node.size, node.home, self.target)
        often, tiles = counts(form)

        def parts(names: tuple[str, ...], texts: tuple[str, ...], width: int) -> Iterator[Step]:
            for part, text in zip(names, texts, strict=False):
                times = often.get((part, width), 0)
                many, most = (-(-often_ * times // tiles) for often_ in (runs, met))
                step = self._part(form.goal(part, width), text, many, most).under(part)
                step.indent = 1
                yield step

        here = Step(node.label() + ":", runs, note=f"{_sizes(point)} n={form.columns}")
        room = bytes_text(form.rooms["t0"].lines * LINE)
        here.below = [Step(f"bufferize t0 to {node.home}", runs, note=f"a block of {room}", indent=1)]
        here.below += parts(PARTS, node.schedules, form.size)
        if node.rest:
            rest = [*parts(REST, node.rest, form.rest)]
            here.below.append(Step("rest:", runs, note=f"n={form.rest}", below=rest).summed())
        return here.summed()

    def _part(self, goal: Spec | NestSpec, text: str, runs: int, met: int) -> Step:
        node = parse(text)
        if isinstance(goal, Spec):
            return contractions.steps(goal.canonical(), node, self.target, runs=runs, met=met)
        # A schedule names the dims of the canonical form.
        goal = self.search.parts.nests.goal(goal.canonical())
        return nests.steps(goal, node, self.target, runs=runs, met=met)


def _sizes(point: Point) -> str:
    b, m = point.dims
    return f"b={b} m={m}" if b > 1 else f"m={m}"
