"""Nests that read a padded buffer read what it was made of instead: the padding becomes borders of their operand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from mlir import ir

from morello_mlir.errors import SpecError
from morello_mlir.nests import NestSpec
from morello_mlir.nests.borders import Border
from morello_mlir.nests.spec import Operand
from morello_mlir.spec import dense_strides

from ..aliases import VIEWS, Aliases, is_memref
from ..borders import Padding
from .lift import LiftedNest


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


def unpadded(lifted: LiftedNest, padding: Padding) -> LiftedNest | None:
    """The nest on what is copied into a padded buffer that it reads; None where its dims do not go along with the
    buffer's axes, or what is around is not known."""
    spec, around, blocks = lifted.whole, _constant(padding.constant), _blocks(padding)
    if around is None or blocks is None:
        return None
    operands, starts, values = list(spec.operands), list(lifted.starts), list(lifted.values)
    try:
        for k, value in enumerate(lifted.values):
            if value != padding.buffer:
                continue
            is_output = k >= len(spec.inputs) or any(o.alias == k for o in spec.operands)
            found = _bordered(spec, spec.operands[k], starts[k], blocks, around)
            if found is None or is_output or spec.operands[k].dtype != str(value.type.element_type):
                return None
            (operands[k], starts[k]), values[k] = found, padding.source
        new = replace(spec, operands=tuple(operands))
    except SpecError:
        return None
    return replace(lifted, spec=new.canonical(), whole=new, values=tuple(values), starts=tuple(starts))


def _constant(value: Any) -> float | int | None:
    """The number that a value is, other than NaN."""
    if isinstance(value.owner, ir.Block) or value.owner.operation.name != "arith.constant":
        return None
    attribute = value.owner.operation.attributes["value"]
    if isinstance(attribute, ir.IntegerAttr):
        return int(ir.IntegerAttr(attribute).value)
    if not isinstance(attribute, ir.FloatAttr):
        return None
    number = float(ir.FloatAttr(attribute).value)
    return None if math.isnan(number) else number


def _bordered(
    spec: NestSpec, operand: Operand, start: int, blocks: Sequence[_Block], around: float | int
) -> tuple[Operand, int] | None:
    """An operand in the buffer as one in what is copied into it, and how many elements that starts behind it; None
    where a dim goes through several blocks."""
    found = None if operand.axes else _steps(spec, operand, start, blocks)
    if found is None:
        return None
    steps, begin = found
    first, borders = 0, []
    for i, (block, at) in enumerate(zip(blocks, begin, strict=True)):
        along = tuple(s[1] if s is not None and s[0] == i else 0 for s in steps)
        border = Border(along, at - block.before, block.inside)
        first += border.start * block.source
        if border.is_met(spec.dims):
            borders.append(border)
    strides = tuple(0 if s is None else s[1] * blocks[s[0]].source for s in steps)
    plain = replace(operand, strides=strides)
    if not borders:
        return plain, first
    if any(not any(b.steps) for b in borders) or any(not s for s, step in zip(strides, steps, strict=True) if step):
        return None
    return replace(plain, borders=tuple(borders), around=around, first=first), 0


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
    """For each dim (block, places of it that a step goes), None where it does not move; where the operand begins, by
    block. None where a dim goes through several blocks."""
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
            if op.name == "func.call" and not aliases.is_open(op):
                return False
            if any(is_memref(v) and aliases.may_overlap(v, source) for v in op.operands):
                return False
        copied = copied or op == padding.copy
    return False
