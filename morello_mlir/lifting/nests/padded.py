"""Nests that read a large padded buffer: it is made in parts, each read while it is in L2, instead of as a whole.

A part is what so many steps along one parallel dim of the nest read: all parts have the same shape but the last, and
lie in the same memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from mlir import ir
from mlir.dialects import arith, linalg, memref

from morello_mlir.nests import NestSpec
from morello_mlir.nests.ops import element_bytes
from morello_mlir.nests.spec import Operand
from morello_mlir.spec import dense_strides

from ..aliases import VIEWS, Aliases, is_memref
from ..borders import Padding, fill_around, part_of
from ..emit import metadata
from ..private import strided_view
from .lift import LiftedNest

#: Bytes of a part: the rest of L2 is the output's.
PART = 384 << 10
#: The most parts, each of which is code of its own.
MOST = 24


@dataclass(frozen=True)
class _Block:
    """Neighbouring axes of the buffer that are padded together (one axis), or not at all. stride, source: elements from
    one place to the next, in the buffer and in what is copied into it; before: places of the border; inside: places
    that are copied; extent: all of them."""

    stride: int
    source: int
    before: int
    inside: int
    extent: int


@dataclass(frozen=True)
class Parts:
    """How operand number `operand` of a nest, a padded buffer, is made in parts: `size` steps along dim `dim` each.

    steps: for each dim of the nest (block, places of it that a step goes), None where it does not move. start: where
    the operand begins, by block.
    """

    lifted: LiftedNest
    padding: Padding
    operand: int
    blocks: tuple[_Block, ...]
    steps: tuple[tuple[int, int] | None, ...]
    start: tuple[int, ...]
    dim: int
    size: int

    @staticmethod
    def of(lifted: LiftedNest, padding: Padding) -> Parts | None:
        """None where it is made as a whole: it does not come apart, or in too many parts."""
        spec, found = lifted.spec, [i for i, v in enumerate(lifted.values) if v == padding.buffer]
        blocks = _blocks(padding)
        if len(found) != 1 or blocks is None or any(o.alias == found[0] for o in spec.operands):
            return None
        operand = spec.operands[found[0]]
        place = _steps(spec, operand, lifted.starts[found[0]], blocks)
        if place is None or any(v.op == "index" for v in spec.body.values):
            return None
        parallel = [d for d, step in enumerate(place[0]) if step and not spec.scan[d]]
        dim = max(parallel, key=lambda d: operand.strides[d], default=None)
        if dim is None:
            return None
        parts = Parts(lifted, padding, found[0], blocks, *place, dim, 1)
        size = parts._steps_at_once()
        return None if size is None else replace(parts, size=size)

    @property
    def _cut(self) -> tuple[int, int]:
        """The block that the parts are cut along, and places of it for each step."""
        step = self.steps[self.dim]
        assert step is not None
        return step

    def shape(self, steps: int) -> tuple[int, ...]:
        """Of a part of so many steps, by block."""
        cut, reach = self._cut[0], 1
        for d, step in enumerate(self.steps):
            if step and step[0] == cut:
                reach += ((steps if d == self.dim else self.lifted.spec.dims[d]) - 1) * step[1]
        return tuple(reach if i == cut else block.extent for i, block in enumerate(self.blocks))

    def _steps_at_once(self) -> int | None:
        extent, each = self.lifted.spec.dims[self.dim], element_bytes(self.lifted.spec.operands[self.operand].dtype)
        fits = [n for n in range(1, extent) if math.prod(self.shape(n)) * each <= PART]
        if not fits:
            return None
        count = -(-extent // fits[-1])
        return -(-extent // count) if count <= MOST else None

    def emit(self, call: Callable[[LiftedNest], None], copy: Callable[[Any, Any], None]) -> None:
        """The parts one after the other, at the insertion point, and a call for each. copy: one memref to another."""
        extent = self.lifted.spec.dims[self.dim]
        kind = ir.MemRefType.get(list(self.shape(self.size)), self.padding.buffer.type.element_type)
        line = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 64)
        room = memref.AllocOp(kind, [], [], alignment=line).result
        base, _ = metadata(room)
        values = [metadata(room if v == self.padding.buffer else v) for v in self.lifted.values]
        for first in range(0, extent, self.size):
            steps = min(self.size, extent - first)
            shape = self.shape(steps)
            part = room
            if steps < self.size:
                part = strided_view(base, 0, shape, dense_strides(shape), dense=True)
            self._fill(part, first, steps, copy)
            call(self._nest(part, values, first, steps))
        memref.DeallocOp(room)

    def _fill(self, part: Any, first: int, steps: int, copy: Callable[[Any, Any], None]) -> None:
        """Writes what the buffer holds where `steps` steps from `first` on read."""
        cut, each = self._cut
        begin = [self.start[cut] + first * each if i == cut else 0 for i in range(len(self.blocks))]
        ends = [at + n for at, n in zip(begin, self.shape(steps), strict=True)]
        low = [max(b.before, at) for b, at in zip(self.blocks, begin, strict=True)]
        high = [min(b.before + b.inside, end) for b, end in zip(self.blocks, ends, strict=True)]
        sizes = [b - a for a, b in zip(low, high, strict=True)]
        if min(sizes) <= 0:
            linalg.fill(self.padding.constant, outs=[part])
            return
        offsets = [a - at for a, at in zip(low, begin, strict=True)]
        fill_around(part, self.padding.constant, offsets, sizes)
        base, _ = metadata(self.padding.source)
        start = self.padding.source.type.get_strides_and_offset()[1]
        start += sum((a - b.before) * b.source for a, b in zip(low, self.blocks, strict=True))
        source = strided_view(base, start, sizes, [b.source for b in self.blocks])
        target = part_of(part, offsets, sizes)
        copy(source, target)

    def _nest(self, part: Any, values: Sequence[tuple[Any, Any]], first: int, steps: int) -> LiftedNest:
        """The nest on a part: other operands begin where step `first` does."""
        spec, strides = self.lifted.spec, dense_strides(self.shape(steps))
        own = tuple(0 if step is None else step[1] * strides[step[0]] for step in self.steps)
        operands, starts = list(spec.operands), list(self.lifted.starts)
        operands[self.operand] = replace(operands[self.operand], strides=own)
        views = [_shifted(*v, o.strides[self.dim] * first) for v, o in zip(values, spec.operands, strict=True)]
        views[self.operand] = part
        begin = zip(self.start, strides, strict=True)
        starts[self.operand] = sum(a * s for i, (a, s) in enumerate(begin) if i != self._cut[0])
        dims = tuple(steps if d == self.dim else n for d, n in enumerate(spec.dims))
        goal = replace(spec, dims=dims, operands=tuple(operands))
        return replace(self.lifted, spec=goal, values=tuple(views), starts=tuple(starts))


def _shifted(base: Any, offset: Any, more: int) -> Any:
    """A memref that begins `more` elements behind an offset."""
    at = arith.addi(offset, arith.constant(ir.IndexType.get(), more)) if more else offset
    return strided_view(base, at, [1], [1])


def _blocks(padding: Padding) -> tuple[_Block, ...] | None:
    """The blocks of the buffer, slowest first; None where what is copied into one does not lie evenly."""
    shape, sizes, offsets = list(padding.buffer.type.shape), padding.sizes, padding.offsets
    strides, start = padding.buffer.type.get_strides_and_offset()
    try:
        source, begin = padding.source.type.get_strides_and_offset()
    except RuntimeError:
        return None
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    if tuple(strides) != dense_strides(shape) or start != 0 or begin == dynamic or dynamic in source:
        return None
    groups: list[list[int]] = []
    for axis, (extent, inside) in enumerate(zip(shape, sizes, strict=True)):
        if extent != inside or not groups or shape[groups[-1][-1]] != sizes[groups[-1][-1]]:
            groups.append([axis])
        else:
            groups[-1].append(axis)
    out = []
    for axes in groups:
        if any(shape[a] > 1 and source[a] != source[b] * shape[b] for a, b in pairwise(axes)):
            return None
        extent, inside = (math.prod(x[a] for a in axes) for x in (shape, sizes))
        before = offsets[axes[0]] if len(axes) == 1 else 0
        out.append(_Block(strides[axes[-1]], source[axes[-1]], before, inside, extent))
    return tuple(out)


def _steps(
    spec: NestSpec, operand: Operand, start: int, blocks: Sequence[_Block]
) -> tuple[tuple[tuple[int, int] | None, ...], tuple[int, ...]] | None:
    """(steps, start) as `Parts` has them; None where a dim goes through several blocks."""
    begin = []
    for block in blocks:
        begin.append(start // block.stride)
        start -= begin[-1] * block.stride
    steps: list[tuple[int, int] | None] = []
    last = list(begin)
    for size, stride in zip(spec.dims, operand.strides, strict=True):
        at = next((i for i, b in enumerate(blocks) if stride >= b.stride and stride % b.stride == 0), None)
        if not stride:
            steps.append(None)
        elif at is None:
            return None
        else:
            steps.append((at, stride // blocks[at].stride))
            last[at] += (size - 1) * (stride // blocks[at].stride)
    return None if any(n >= b.extent for n, b in zip(last, blocks, strict=True)) else (tuple(steps), tuple(begin))


def holds_until(padding: Padding, reader: Any, outputs: Sequence[Any], aliases: Aliases) -> bool:
    """Whether what is copied into the buffer is still the same when `reader` runs, and while it writes `outputs`."""
    source, copied = padding.source, False
    if any(aliases.may_overlap(source, out) for out in outputs):
        return False
    for op in (o.operation for o in padding.copy.block.operations):
        if op == reader:
            return copied
        if copied and op.name not in VIEWS:
            if len(op.regions) and not op.name.startswith("linalg."):
                return False
            if any(is_memref(v) and aliases.may_overlap(v, source) for v in op.operands):
                return False
        copied = copied or op == padding.copy
    return False
