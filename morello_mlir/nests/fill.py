"""Schedules of nests with their holes filled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace

from ..search.nest_steps import Rows
from ..search.schedule import Hole, Node, children
from ..targets import Target
from .actions import rewritten
from .spec import NestSpec


def with_children(node: Node, bodies: list[Node]) -> Node:
    """`node` with other subtrees, in the order of `children`."""
    left = iter(bodies)
    old = children(node)
    new = {f.name: next(left) for f in fields(node) if any(getattr(node, f.name) is c for c in old)}
    return replace(node, **new)  # type: ignore[arg-type]


def fill(spec: NestSpec, node: Node, target: Target, solve: Callable[[NestSpec, Rows | None], Node]) -> Node:
    """`node` with every hole replaced by `solve` of its goal; for the missing passes of `rows`, these are given too.

    Raises ScheduleError where a step is not legal.
    """
    if isinstance(node, Hole):
        return solve(spec, None)
    step = rewritten(spec, node, target)
    if isinstance(node, Rows):
        return solve(spec, node) if isinstance(node.passes[-1], Hole) else node
    bodies = [fill(c.spec, b, target, solve) for c, b in zip(step.children, children(node), strict=True)]
    return with_children(node, bodies)
