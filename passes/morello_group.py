"""morello-group: tags the linalg ops that one Spec can cover, before bufferization hides how tensors flow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from mlir import ir

from morello_mlir import lifting
from morello_mlir.lifting import Covered, Lifted, Rejected
from morello_mlir.lifting.emit import SCHEDULE

from .base import Pass, option, remark
from .siblings import OWN_COPY

#: The tag: ops with the same number belong together.
GROUP = "morello.group"


@dataclass(frozen=True)
class MorelloGroup(Pass):
    """Tag every contraction that can be lifted, the fill that zeroes its accumulator, and the elementwise ops that its
    Spec can do as well, with one `morello.group`.

    On tensors, prepare for it what bufferization would make costly: a contraction gets a zero fill of its own
    instead of a shared one or a constant, and reads transposed and broadcast inputs where they come from, as the
    elementwise ops do; scalars that are no constants become operands. Where there are any of these, another tensor that
    the contraction adds to is added by such an op. Without a schedule of its own a contraction has its batch outermost,
    and makes its result as its only reader, a copy, has it; one of bytes has the channels of constant filters
    innermost. Meaning is preserved. The tags survive bufferization; ops without one are left as they are.
    """

    name: ClassVar[str] = "morello-group"
    summary: ClassVar[str] = "Tag linalg ops that one Spec can cover with morello.group"
    anchor: ClassVar[str | None] = None

    prepare: bool = option(True, help="rewrite shared zero fills and copied inputs of contractions on tensors")
    explain: bool = option(False, help="emit a remark at every linalg op (morello-lift does it anyway, later)")

    def run(self, op: Any) -> None:
        if self.prepare:
            lifting.reshape_first(op)
            lifting.masks_apart(op)
            lifting.own_empties(op)
            # Zero points are scalars, too, and are to be found as such.
            lifting.without_zero_points(op)
            lifting.scalars_as_operands(op)
            for each, outcome in lifting.survey(op, followers=False):
                if isinstance(outcome, Lifted) and outcome.on_tensors:
                    each = lifting.read_through_copies(each)
                    if SCHEDULE not in each.attributes:  # else it was written for this order
                        each = lifting.result_as_copied(lifting.batch_outermost(each))
                        each = lifting.channels_innermost(each)
                    lifting.own_zero_fill(each)
            for each, outcome in lifting.survey(op):
                if isinstance(outcome, Lifted) and outcome.on_tensors and outcome.members:
                    _prepare_members(each, outcome)
            lifting.join_empties(op)
            lifting.erase_unused(op)
        clear_tags(op)
        number = 0
        for each, outcome in lifting.survey(op):
            if isinstance(outcome, Lifted):
                for member in (each, outcome.zeroed, *outcome.members):
                    if member is not None:
                        member.attributes[GROUP] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)
                number += 1
            if self.explain:
                report(each, outcome)


def _prepare_members(op: Any, lifted: Lifted) -> None:
    """What makes the elementwise ops around a contraction cheap operands of its Spec."""
    for member in lifted.members:
        lifting.read_operands_through(member)
    adds = lifted.zeroed is None and lifted.spec.info.accumulates
    if adds and str(op.results[0].type.element_type) == lifted.spec.sums:
        lifting.add_afterwards(op)


def clear_tags(op: Any) -> None:
    """Remove all tags under an op."""
    for each in lifting.nested_ops(op):
        if GROUP in each.attributes:
            del each.attributes[GROUP]


def report(op: Any, outcome: Lifted | Covered | Rejected) -> None:
    """The remark that says what becomes of a linalg op; an op that is covered by another is reported there, and nobody
    asks about copies of our own making."""
    if isinstance(outcome, Lifted):
        remark(op, f"{op.name} lifted: {outcome.spec}")
    elif isinstance(outcome, Rejected) and OWN_COPY not in op.attributes:
        remark(op, f"{op.name} not lifted: {outcome.reason}")
