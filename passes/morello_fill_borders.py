"""The pass `morello-fill-borders`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from morello_mlir.lifting.borders import fill_only_borders, padding_of

from .base import Pass
from .symbols import all_ops


@dataclass(frozen=True)
class FillBorders(Pass):
    """Fill only what is not overwritten right away, as padding needs it.

    Bufferization makes of `tensor.pad` a buffer that is filled as a whole, and a copy into its interior. Where nothing
    reads the buffer in between, the fill becomes one of each border. Meaning is preserved.
    `morello-lift` does the same to buffers that are not read by nests alone.
    """

    name: ClassVar[str] = "morello-fill-borders"
    summary: ClassVar[str] = "Fill only the borders of buffers whose interior is copied from elsewhere"

    def run(self, op: Any) -> None:
        # A list: fills and copies are erased on the way.
        buffers = [o.results[0] for o in all_ops(op) if o.name == "memref.alloc"]
        for buffer in buffers:
            if (found := padding_of(buffer)) is not None:
                fill_only_borders(found)
