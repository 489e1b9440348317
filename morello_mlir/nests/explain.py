"""A schedule of a nest explained: its tree with, at every step, how often it runs, what it costs and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..search.explain import table
from ..search.nest_steps import NEST_STEPS, Rows, blocks
from ..search.schedule import INDENT, Node, Parallel, children, opens_block
from ..targets import COST_UNITS, Target
from .actions import rewritten
from .cost import RowsModel
from .plan import rows_plan
from .search import NestSearch
from .spec import NestSpec

_Row = tuple[str, Mapping[str, str]]


def explain(spec: NestSpec, node: Node, target: Target) -> str:
    """The schedule as annotated text: it parses as a schedule. Raises ScheduleError where it is not legal.

    The share of a pass is that of its sweep, if it has one of its own; what it is bound by stands beside it.
    """
    search = NestSearch(target)
    cost = search.price(spec, node)
    lines = [f"{spec}", f"target {target.name}: {cost / COST_UNITS:,.0f} cycles predicted", ""]
    return "\n".join([*lines, *table([*_rows(spec, node, search, 1, 1, cost, 0)])])


def _rows(
    spec: NestSpec, node: Node, search: NestSearch, runs: int, met: int, whole: int, depth: int
) -> Iterator[_Row]:
    """runs: how often all threads come by; met: how often the one with most to do does."""
    pad = INDENT * depth
    sizes = " ".join(
        f"d{d}={n}{' scan' if s else ''}" for d, (n, s) in enumerate(zip(spec.dims, spec.scan, strict=True))
    )
    own = search.price(spec, node) if isinstance(node, Rows) else 0
    cells = {"runs": f"{runs:,}", "share": f"{own * met / whole:.1%}" if own and whole else "", "sizes": sizes}
    yield f"{pad}{node.label()}{':' if opens_block(node) else ''}", cells
    if isinstance(node, Rows):
        yield from _passes(spec, node, search.target, met, whole, depth + 1)
        return
    words = [w for w, _ in blocks(node)] if isinstance(node, NEST_STEPS) else ["", "rest"]
    deeper = depth + (1 if opens_block(node) else 0)
    for word, child, body in zip(words, rewritten(spec, node, search.target).children, children(node), strict=False):
        if word:
            yield f"{pad}{word}:", {}
        shared = -(-child.count // spec.threads) if isinstance(node, Parallel) else child.count
        yield from _rows(child.spec, body, search, runs * child.count, met * shared, whole, deeper)


def _passes(spec: NestSpec, node: Rows, target: Target, met: int, whole: int, depth: int) -> Iterator[_Row]:
    """Each pass; in the first of a sweep, what the sweep costs."""
    plan, model = rows_plan(spec, node, target), RowsModel(spec, target)
    layout = model.layout(plan)
    memory = model.memory(plan, layout)
    shown: dict[int, tuple[str, str]] = {}
    for sweep in plan.sweeps:
        own = [plan.passes[j] for j, _ in sweep]
        busy = model.compute(own, layout, plan)
        lines = sum(memory[j] for j, _ in sweep)
        cycles = model.combined(own, busy, lines)
        beside = f"{busy:,.0f} cycles of instructions, {lines:,.0f} of lines"
        beside += "" if len(sweep) == 1 else " (with the others of its sweep)"
        shown[min(j for j, _ in sweep)] = f"{cycles * COST_UNITS * met / whole:.1%}" if whole else "", beside
    for j, p in enumerate(node.passes):
        share, beside = shown.get(j, ("", ""))
        yield f"{INDENT * depth}{p.label()}", {"share": share, "sizes": beside}
