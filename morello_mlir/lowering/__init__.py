"""Lowering: what a schedule makes of a `morello.spec` op, as loops, copies and vector code (docs/lowering.md).

Importing this loads no MLIR; using it does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..dialect import SpecOp
    from ..search.schedule import Node
    from ..targets import Target

__all__ = ["apply", "apply_all"]


def apply(op: Any, node: Node, target: Target, stop_at: int | str | None = None) -> None:
    """Replaces the `morello.spec` op (an operation or a SpecOp) by what the schedule `node` makes of it.

    stop_at: a number of steps, or a kind of step (`pack`, `move`, `kernel`, ...) above the first of which to stop;
    smaller `morello.spec` ops with the remaining schedule stay then. A hole in the schedule stays as a Spec in any
    case. Raises ScheduleError, naming the step, where the schedule is not legal for the op's Spec.
    """
    apply_all([(op, node)], target, stop_at)


def apply_all(jobs: Sequence[tuple[SpecOp | Any, Node]], target: Target, stop_at: int | str | None = None) -> None:
    """`apply` for several ops at once: what their schedules have in common is emitted once a module.

    Nothing is changed where one of the schedules is not legal.
    """
    from .execute import execute, prepare

    execute([prepare(op, node, target, stop_at) for op, node in jobs], target)
