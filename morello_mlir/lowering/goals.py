"""Goals of the parts of a chain as ops with their schedules, as text."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ..dialect import op_name
from ..dialect.goal_op import NEST
from ..nests import NestSpec
from ..nests.search import nest_search_for
from ..search import schedule
from ..spec import Spec
from ..targets import Target
from .builder import Builder
from .leftover import attributes
from .views import Operand


def emit_goal(
    b: Builder, goal: Spec | NestSpec, tree: schedule.Node, operands: Sequence[Operand], target: Target
) -> None:
    """A `morello.spec` or a nest with its schedule, which names the dims of a nest's canonical form."""
    if isinstance(goal, NestSpec):
        goal = nest_search_for(target).goal(goal.canonical())
    types = ", ".join(o.view.type for o in operands)
    names = ", ".join(o.name for o in operands)
    if isinstance(goal, Spec):
        name, text = op_name(len(operands)), attributes(goal, tree)
    else:
        name, text = f"{NEST}{len(operands)}", nest_attributes(goal, tree)
    b.line(f'"{name}"({names}) {text} : ({types}) -> ()')


def nest_attributes(goal: NestSpec, tree: schedule.Node) -> str:
    """The attribute dictionary of a nest, as text."""
    parts = [
        f'function = "{goal.function}"',
        f"dims = array<i64: {', '.join(map(str, goal.dims))}>",
        f"scan = array<i64{': ' if goal.scan_dims else ''}{', '.join(map(str, goal.scan_dims))}>",
        f"operands = [{', '.join(json.dumps(str(o)) for o in goal.operands)}]",
        f"body = {json.dumps(str(goal.body))}",
        f"schedule = [{', '.join(json.dumps(line) for line in schedule.to_text(tree).splitlines())}]",
    ]
    parts += [flag for flag in ("serial", "far") if getattr(goal, flag)]
    return "{" + ", ".join(parts) + "}"
