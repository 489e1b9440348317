"""A module's goals as text: what each takes of the whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ..search.steps import Traffic, added, traffic_text
from .explained import Explained


def whole_cycles(goals: Sequence[Explained]) -> float:
    """Of all goals in a call of the module that is not the first."""
    return sum(goal.cycles * goal.calls for goal in goals)


def whole_traffic(goals: Sequence[Explained]) -> Traffic:
    """Bytes of all goals in such a call, by (from, to) memory."""
    return added((goal.traffic, goal.calls) for goal in goals)


def by_share(goals: Sequence[Explained]) -> list[Explained]:
    """The goals that take most of the whole first."""
    return sorted(goals, key=lambda goal: -goal.cycles * goal.calls)


def shares_text(goals: Sequence[Explained], left: Counter[str]) -> str:
    """Each goal's share of the cycles, what the first call does besides, and what is left to upstream."""
    lines = ["nothing was lifted"]
    if goals:
        total = whole_cycles(goals)
        lines = [f"{total:,.0f} cycles predicted in all", f"traffic: {traffic_text(whole_traffic(goals))}"]
        for goal in by_share(goals):
            share = goal.cycles * goal.calls / total if total else 0.0
            for often, what in ((goal.calls, f"{share:.1%}"), (goal.once, "once")):
                if often:
                    lines.append(f"{what:>6}  {often:3} x {goal.cycles:14,.0f}  {goal.spec}")
    return "\n".join([*lines, *filter(None, [first_call_text(goals)]), left_text(left)])


def first_call_text(goals: Sequence[Explained]) -> str:
    """What the first call of the module does besides; empty where that is nothing."""
    said = []
    if cycles := sum(goal.cycles * goal.once for goal in goals):
        said.append(f"{cycles:,.0f} cycles predicted")
    if packed := sum(bool(goal.packed) for goal in goals):
        said.append(f"constants of {packed} goal{'s' * (packed > 1)} packed")
    return f"in the first call only: {', '.join(said)}" if said else ""


def left_text(left: Counter[str]) -> str:
    """What no goal covers."""
    listed = ", ".join(f"{count} {name}" for name, count in left.most_common())
    return f"left to upstream: {listed or 'nothing'}"
