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
    """See `morello_mlir.lowering.execute.apply`."""
    from .execute import apply as run

    run(op, node, target, stop_at)


def apply_all(jobs: Sequence[tuple[SpecOp, Node]], target: Target, stop_at: int | str | None = None) -> None:
    """See `morello_mlir.lowering.execute.apply_all`."""
    from .execute import apply_all as run

    run(jobs, target, stop_at)
