"""morello-fuse: finds the linalg ops on tensors that one nest can compute together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from morello_mlir.lifting import nested_ops
from morello_mlir.lifting.nests import (
    Chooser,
    enclose,
    has_assertion,
    is_others,
    take_apart,
    take_out_assertions,
    tidy,
)

from .base import Pass
from .morello_group import GROUP
from .morello_legalize_tensor import softmax_on_tensors as on_tensors


@dataclass(frozen=True)
class MorelloFuse(Pass):
    """Put elementwise ops, reductions and chains of them on tensors, which one nest can compute together, into one
    `scf.execute_region` each.

    Contractions are left alone: those that `morello-group` has tagged, and those that it would tag. `linalg.softmax` is
    taken apart for the purpose, and what a body asserts is looked at by itself, before it. Meaning is preserved.
    `morello-outline` makes functions of the regions, after bufferization, and `morello-lift` Specs of these.
    """

    name: ClassVar[str] = "morello-fuse"
    summary: ClassVar[str] = "Put linalg ops on tensors that one nest computes together into a region each"
    anchor: ClassVar[str | None] = None

    def run(self, op: Any) -> None:
        for each in [o for o in nested_ops(op) if o.name == "linalg.softmax" and GROUP not in o.attributes]:
            take_apart(on_tensors(each))
        for each in [o for o in nested_ops(op) if has_assertion(o)]:
            take_out_assertions(each)
        chooser = Chooser(_is_not_ours)
        regions = [enclose(nest) for nest in chooser.nests(op)]
        for region in regions:
            tidy(region)


def _is_not_ours(op: Any) -> bool:
    return GROUP in op.attributes or is_others(op)
