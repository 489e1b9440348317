"""The pass `morello-check-lowered`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .base import Pass, emit_error
from .symbols import all_ops

_REPORTED = 5


@dataclass(frozen=True)
class CheckLowered(Pass):
    """Refuse a module that is not entirely in the llvm dialect: its translation to LLVM IR would crash."""

    name: ClassVar[str] = "morello-check-lowered"
    summary: ClassVar[str] = "Report every op that no pass could lower to the llvm dialect"

    def run(self, op: Any) -> None:
        left = [each for each in all_ops(op) if not _is_lowered(each)]
        # A cast in between is the consequence of another op that stayed.
        causes = [each for each in left if each.name != "builtin.unrealized_conversion_cast"] or left
        for each in causes[:_REPORTED]:
            dialect = each.name.partition(".")[0]
            emit_error(each, f"cannot be lowered to LLVM: nothing here implements this op of the '{dialect}' dialect")
        if len(causes) > _REPORTED:
            emit_error(op, f"holds {len(causes) - _REPORTED} more ops that cannot be lowered")


def _is_lowered(op: Any) -> bool:
    if op.name == "builtin.module":
        return op.parent is None
    return op.name.startswith("llvm.")
