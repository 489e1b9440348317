"""morello-outline: makes private functions of the nests that `morello-fuse` found, once they are on memrefs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from morello_mlir.lifting.nests import outline, regions

from .base import Pass
from .symbols import symbol_name


@dataclass(frozen=True)
class MorelloOutline(Pass):
    """Make a private function of each region that `morello-fuse` made and bufferization has turned into memrefs.

    The function has the ops as they are; its arguments are the memrefs that they read and write, of the strides that
    these have. The attribute `morello.nest` says what it computes, for `morello-lift`.
    """

    name: ClassVar[str] = "morello-outline"
    summary: ClassVar[str] = "Make private functions of the regions of morello-fuse, on memrefs"

    def run(self, op: Any) -> None:
        taken = {symbol_name(each) for each in op.operation.regions[0].blocks[0]}
        number = 0
        for region, root in regions(op):
            while f"morello_nest_{number}" in taken:
                number += 1
            outline(region, root, f"morello_nest_{number}")
            number += 1
