"""A schedule of a nest explained: its tree with, at every step, how often it runs, what it costs and why."""

from __future__ import annotations

from collections.abc import Iterator

from ..search.nest_steps import NEST_STEPS, Rows, blocks
from ..search.schedule import Node, children, opens_block
from ..search.steps import Step
from ..targets import Target, fixed
from .actions import rewritten
from .cost import RowsModel
from .plan import rows_plan
from .search import NestSearch, ways
from .sharing import own_cost
from .spec import NestSpec
from .tour import Lines


def steps(spec: NestSpec, node: Node, target: Target, *, runs: int = 1, met: int = 1) -> Step:
    """The tree of a legal schedule without holes, priced. spec: with its operands where they are (`NestSearch.goal`).

    The first pass of a sweep has what the sweep costs; what it is bound by stands beside it. runs, met: as in
    `search.explain.steps`. Raises ScheduleError where the schedule is not legal.
    """
    return _steps(spec, node, NestSearch(target), runs, met)


def _steps(spec: NestSpec, node: Node, search: NestSearch, runs: int, met: int) -> Step:
    opens = opens_block(node)
    here = Step(node.label() + (":" if opens else ""), runs, note=_sizes(spec))
    if isinstance(node, Rows):
        here.below = [*_passes(spec, node, search.target, runs, met)]
        here.own = search.price(spec, node) * met - sum(step.own for step in here.below)
        return here.summed()
    here.own = own_cost(spec, node, search.target) * met
    words = [w for w, _ in blocks(node)] if isinstance(node, NEST_STEPS) else ["", "rest"]
    bodies, goals = children(node), rewritten(spec, node, search.target).children
    costs = [search.price(c.spec, body) for c, body in zip(goals, bodies, strict=True)]
    dearest = max(ways(spec, node, goals), key=lambda way: sum(n * cost for n, cost in zip(way, costs, strict=True)))
    for word, goal, body, often in zip(words, goals, bodies, dearest, strict=False):
        part = _steps(goal.spec, body, search, runs * goal.count, met * often)
        part.indent = int(opens and not word)
        here.below.append(part.under(word) if word else part)
    return here.summed()


def _passes(spec: NestSpec, node: Rows, target: Target, runs: int, met: int) -> Iterator[Step]:
    plan, model = rows_plan(spec, node, target), RowsModel(spec, target)
    layout = model.layout(plan)
    memory, moved = model.memory(plan, layout), model.moved(plan, layout)
    cost: dict[int, int] = {}
    notes: dict[int, str] = {}
    passed, spent = 0.0, 0
    for sweep in plan.sweeps:
        own = [plan.passes[j] for j, _ in sweep]
        busy, lines = model.sweep(own, layout, plan), [memory[j] for j, _ in sweep]
        first = min(j for j, _ in sweep)
        # Rounded so that all add up.
        passed += model.whole(sweep, own, lines, busy, layout, plan)
        cost[first] = (fixed(passed) - spent) * met
        spent = fixed(passed)
        notes[first] = f"{busy[0]:,.0f} cycles of instructions, {sum(lines, Lines()).total:,.0f} of lines"
        notes[first] += "" if len(sweep) == 1 else " (with the others of its sweep)"
    for j, p in enumerate(node.passes):
        bytes_moved = {way: amount * runs for way, amount in moved[j].items()}
        own_units = cost.get(j, 0)
        yield Step(p.label(), runs * layout.groups, own_units, own_units, bytes_moved, notes.get(j, ""), indent=1)


def _sizes(spec: NestSpec) -> str:
    sizes = zip(spec.dims, spec.scan, strict=True)
    return " ".join(f"d{d}={n}{' scan' if scan else ''}" for d, (n, scan) in enumerate(sizes))
