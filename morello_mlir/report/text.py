"""A module's goals as text: what each takes of the whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ..search.steps import Traffic, added, traffic_text
from .explained import Explained


def whole_cycles(goals: Sequence[Explained]) -> float:
    """Of all calls of all goals."""
    return sum(goal.cycles * goal.calls for goal in goals)


def whole_traffic(goals: Sequence[Explained]) -> Traffic:
    """Bytes of all calls of all goals, by (from, to) memory."""
    return added((goal.traffic, goal.calls) for goal in goals)


def by_share(goals: Sequence[Explained]) -> list[Explained]:
    """The goals that take most of the whole first."""
    return sorted(goals, key=lambda goal: -goal.cycles * goal.calls)


def shares_text(goals: Sequence[Explained], left: Counter[str]) -> str:
    """Each goal's share of the cycles, and what is left to upstream."""
    lines = ["nothing was lifted"]
    if goals:
        total = whole_cycles(goals)
        lines = [f"{total:,.0f} cycles predicted in all", f"traffic: {traffic_text(whole_traffic(goals))}"]
        for goal in by_share(goals):
            share = goal.cycles * goal.calls / total if total else 0.0
            lines.append(f"{share:6.1%}  {goal.calls:3} x {goal.cycles:14,.0f}  {goal.spec}")
    return "\n".join([*lines, left_text(left)])


def left_text(left: Counter[str]) -> str:
    """What no goal covers."""
    listed = ", ".join(f"{count} {name}" for name, count in left.most_common())
    return f"left to upstream: {listed or 'nothing'}"
