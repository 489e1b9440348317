"""Padded buffers, as bufferization makes them of `tensor.pad`: filled as a whole, then copied into."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mlir import ir
from mlir.dialects import linalg, memref

from .aliases import SAME_BASE, ancestor_in
from .windows import Pad

#: Ops that copy their first operand into the second.
COPIES = ("memref.copy", "linalg.copy")
#: On the allocation of a padded buffer: by dim, where the image begins and where it ends. All around it are zeros.
BORDER = "morello.border"


@dataclass(frozen=True)
class Padding:
    """buffer: dense, of static shape; `fill` sets all of it to `constant`, then `copy` writes its interior, `view`."""

    buffer: Any
    fill: Any
    constant: Any
    view: Any
    copy: Any

    @property
    def source(self) -> Any:
        """What the interior is copied from."""
        return self.copy.operands[0]

    @property
    def offsets(self) -> list[int]:
        """Where the interior begins, by dim."""
        return list(self.view.attributes["static_offsets"])

    @property
    def sizes(self) -> list[int]:
        """The sizes of the interior."""
        return list(self.view.attributes["static_sizes"])

    def readers(self) -> list[Any]:
        """The ops of its block that use the buffer besides these, or in which it is used; those that free it are none
        of them."""
        block = self.buffer.owner.operation.block
        found = dict.fromkeys(ancestor_in(block, use.owner.operation) for use in self.buffer.uses)
        own = (self.fill, self.view, self.copy)
        return [o for o in found if o not in own and (o is None or o.name != "memref.dealloc")]


def padding_of(buffer: Any) -> Padding | None:
    """What is known of `buffer` where its first uses are a fill and a copy into a part of it."""
    if not buffer.type.has_static_shape:
        return None
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
    dynamic = (ir.ShapedType.get_dynamic_size(), ir.ShapedType.get_dynamic_stride_or_offset())
    if any(n in dynamic for name in ("static_offsets", "static_sizes") for n in view.attributes[name]):
        return None
    if len(view.attributes["static_sizes"]) != view.results[0].type.rank:
        return None
    copies = [use.owner.operation for use in view.results[0].uses]
    if len(copies) != 1 or copies[0].name not in COPIES or copies[0].operands[1] != view.results[0]:
        return None
    copy = copies[0]
    # Nothing may look at the buffer before the copy, not even through a view of it.
    later = [user for user in users if user != fill]
    if copy.block != fill.block or any(o != view and o.is_before_in_block(copy) for o in later):
        return None
    return Padding(buffer, fill, constant, view, copy)


def pads_of(value: Any) -> tuple[Pad, ...]:
    """The padded dims of the buffer that `value`, a memref, is all of, in whatever shape."""
    while not isinstance(value.owner, ir.Block) and value.owner.operation.name in SAME_BASE:
        if value.type.get_strides_and_offset()[1] != 0:
            return ()
        value = value.owner.operation.operands[0]
    if isinstance(value.owner, ir.Block) or BORDER not in value.owner.attributes:
        return ()
    ends = list(ir.DenseI64ArrayAttr(value.owner.attributes[BORDER]))
    shape, (strides, offset) = list(value.type.shape), value.type.get_strides_and_offset()
    if offset != 0:
        return ()
    lows, highs = ends[: len(shape)], ends[len(shape) :]
    every = map(Pad, strides, shape, lows, highs)
    return tuple(pad for pad in every if (pad.low, pad.high) != (0, pad.extent))


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


def fill_only_borders(padding: Padding) -> None:
    """Makes of the fill one of each border."""
    with ir.InsertionPoint(padding.fill), padding.fill.location:
        fill_around(padding.buffer, padding.constant, padding.offsets, padding.sizes)
    padding.fill.erase()


def fill_around(buffer: Any, constant: Any, offsets: Sequence[int], sizes: Sequence[int]) -> None:
    """Sets what is around the part of a dense `buffer` at `offsets` to `constant`."""
    shape = list(buffer.type.shape)
    for dim, (offset, size) in enumerate(zip(offsets, sizes, strict=True)):
        # Dims before this one are within the interior: their borders have been filled.
        inner = offsets[:dim], sizes[:dim]
        for first, count in ((0, offset), (offset + size, shape[dim] - offset - size)):
            if count:
                rest = len(shape) - dim - 1
                at, extent = [*inner[0], first, *[0] * rest], [*inner[1], count, *shape[dim + 1 :]]
                linalg.fill(constant, outs=[part_of(buffer, at, extent)])


def part_of(buffer: Any, offsets: Sequence[int], sizes: Sequence[int]) -> Any:
    """A subview of a memref with static strides and offset."""
    strides, begin = buffer.type.get_strides_and_offset()
    start = begin + sum(o * s for o, s in zip(offsets, strides, strict=True))
    kind = ir.MemRefType.get(list(sizes), buffer.type.element_type, ir.StridedLayoutAttr.get(start, list(strides)))
    ones = [1] * len(sizes)
    return memref.SubViewOp(kind, buffer, [], [], [], list(offsets), list(sizes), ones).result
