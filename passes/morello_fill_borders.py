"""The pass `morello-fill-borders`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import mlir.ir as ir
from mlir.dialects import linalg, memref

from morello_mlir.lifting.aliases import ancestor_in

from .base import Pass
from .symbols import all_ops
from .types import DYNAMIC


@dataclass(frozen=True)
class FillBorders(Pass):
    """Fill only what is not overwritten right away, as padding needs it.

    Bufferization makes of `tensor.pad` a buffer that is filled as a whole, and a copy into its interior. Where nothing
    reads the buffer in between, the fill becomes one of each border. Meaning is preserved.
    """

    name: ClassVar[str] = "morello-fill-borders"
    summary: ClassVar[str] = "Fill only the borders of buffers whose interior is copied from elsewhere"

    def run(self, op: Any) -> None:
        # A list: fills and copies are erased on the way.
        buffers = [o.results[0] for o in all_ops(op) if o.name == "memref.alloc"]
        for buffer in buffers:
            if buffer.type.has_static_shape and (found := _padding(buffer)) is not None:
                _rewrite(*found)


def _padding(buffer: Any) -> tuple[Any, Any, Any] | None:
    """(fill, constant, subview) where the first uses of `buffer` are a fill and a copy into a part of it."""
    block = buffer.owner.operation.block
    users = {ancestor_in(block, use.owner.operation) for use in buffer.uses}
    if None in users:
        return None
    first = [o.operation for o in block.operations if o.operation in users][:2]
    if len(first) < 2:
        return None
    fill, view = first
    constant = _filled_with(fill, buffer)
    if constant is None or view.name != "memref.subview" or any(s != 1 for s in view.attributes["static_strides"]):
        return None
    if any(n == DYNAMIC for name in ("static_offsets", "static_sizes") for n in view.attributes[name]):
        return None
    if len(view.attributes["static_sizes"]) != view.results[0].type.rank:
        return None
    copies = [use.owner.operation for use in view.results[0].uses]
    if len(copies) != 1 or copies[0].name != "memref.copy" or copies[0].operands[1] != view.results[0]:
        return None
    copy = copies[0]
    # Nothing may look at the buffer before the copy, not even through a view of it.
    later = [user for user in users if user != fill]
    if copy.block != fill.block or any(o != view and o.is_before_in_block(copy) for o in later):
        return None
    return fill, constant, view


def _filled_with(op: Any, buffer: Any) -> Any:
    """The value that `op` sets all of `buffer` to, as the `linalg.map` or `linalg.fill` that it is; else None."""
    if op.name not in ("linalg.map", "linalg.fill") or op.operands[len(op.operands) - 1] != buffer:
        return None
    if op.name == "linalg.fill":
        return op.operands[0]
    if len(op.operands) > 1:
        return None
    block = op.regions[0].blocks[0]
    value = list(block.operations)[-1].operation.operands[0]
    home = value.owner if isinstance(value.owner, ir.Block) else value.owner.operation.block
    return None if home == block else value


def _rewrite(fill: Any, constant: Any, view: Any) -> None:
    buffer = view.operands[0]
    shape = list(buffer.type.shape)
    offsets, sizes = (list(view.attributes[f"static_{name}"]) for name in ("offsets", "sizes"))
    with ir.InsertionPoint(fill), fill.location:
        for dim, (offset, size) in enumerate(zip(offsets, sizes, strict=True)):
            # Dims before this one are within the interior: their borders have been filled.
            inner = offsets[:dim], sizes[:dim]
            for first, count in ((0, offset), (offset + size, shape[dim] - offset - size)):
                if count:
                    rest = len(shape) - dim - 1
                    at, extent = [*inner[0], first, *[0] * rest], [*inner[1], count, *shape[dim + 1 :]]
                    linalg.fill(constant, outs=[_part(buffer, at, extent)])
    fill.erase()


def _part(buffer: Any, offsets: list[int], sizes: list[int]) -> Any:
    """A subview of a dense buffer."""
    strides, _ = buffer.type.get_strides_and_offset()
    start = sum(o * s for o, s in zip(offsets, strides, strict=True))
    kind = ir.MemRefType.get(sizes, buffer.type.element_type, ir.StridedLayoutAttr.get(start, list(strides)))
    ones = [1] * len(sizes)
    return memref.SubViewOp(kind, buffer, [], [], [], offsets, sizes, ones).result
