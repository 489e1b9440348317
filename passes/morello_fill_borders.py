"""The pass `morello-fill-borders`."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, ClassVar

import mlir.ir as ir
from mlir.dialects import arith, linalg, memref, scf, vector

from .base import Pass
from .symbols import all_ops
from .types import DYNAMIC

#: Bytes of the vectors in which rows are copied. Machines with smaller ones take two.
VECTOR = 64


@dataclass(frozen=True)
class FillBorders(Pass):
    """Fill only what is not overwritten right away, as padding needs it.

    Bufferization makes of `tensor.pad` a buffer that is filled as a whole, and a copy into its interior. Where nothing
    reads the buffer in between, the fill becomes one of each border, and the copy one of longest rows, in vectors.
    Meaning is preserved.
    """

    name: ClassVar[str] = "morello-fill-borders"
    summary: ClassVar[str] = "Fill only the borders of buffers whose interior is copied from elsewhere"

    def run(self, op: Any) -> None:
        # A list: fills and copies are erased on the way.
        buffers = [o.results[0] for o in all_ops(op) if o.name == "memref.alloc"]
        for buffer in buffers:
            if buffer.type.has_static_shape and (found := _padding(buffer)) is not None:
                _rewrite(*found)


def _padding(buffer: Any) -> tuple[Any, Any, Any, Any] | None:
    """(fill, constant, subview, copy) where the first uses of `buffer` are a fill and a copy into a part of it."""
    users = {use.owner.operation for use in buffer.uses}
    if any(user.block != buffer.owner.operation.block for user in users):
        return None
    first = [o.operation for o in buffer.owner.operation.block.operations if o.operation in users][:2]
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
    later = [
        o.operation for o in buffer.owner.operation.block.operations if o.operation in users and o.operation != fill
    ]
    if copy.block != fill.block or any(o != view and o.is_before_in_block(copy) for o in later):
        return None
    return fill, constant, view, copy


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


def _rewrite(fill: Any, constant: Any, view: Any, copy: Any) -> None:
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
    with ir.InsertionPoint(copy), copy.location:
        source, target = copy.operands
        groups = _rows(source.type, target.type)
        if groups is not None:
            _copy_rows(_collapsed(source, groups), _collapsed(target, groups))
            copy.erase()


def _part(buffer: Any, offsets: list[int], sizes: list[int]) -> Any:
    """A subview of a dense buffer."""
    strides, _ = buffer.type.get_strides_and_offset()
    start = sum(o * s for o, s in zip(offsets, strides, strict=True))
    kind = ir.MemRefType.get(sizes, buffer.type.element_type, ir.StridedLayoutAttr.get(start, list(strides)))
    ones = [1] * len(sizes)
    return memref.SubViewOp(kind, buffer, [], [], [], offsets, sizes, ones).result


def _rows(source: Any, target: Any) -> list[list[int]] | None:
    """Dims in groups, of which the last is as many as are one row in both; None where elements of a row do not follow
    one another, or are no whole bytes."""
    try:
        steps = [kind.get_strides_and_offset()[0] for kind in (source, target)]
    except RuntimeError:
        return None
    sizes = list(source.shape)
    if source.memory_space is not None or target.memory_space is not None:
        return None
    if not sizes or 0 in sizes or any(s[-1] != 1 for s in steps) or not _bytes(source.element_type):
        return None
    first = len(sizes) - 1
    while first > 0 and all(s[first - 1] == s[first] * sizes[first] for s in steps):
        first -= 1
    return [*([d] for d in range(first)), list(range(first, len(sizes)))]


def _bytes(element: Any) -> int:
    """The size of an element that vectors can hold; 0 of any other."""
    if isinstance(element, (ir.FloatType, ir.IntegerType)) and element.width % 8 == 0 and element.width <= 64:
        return int(element.width) // 8
    return 0


def _copy_rows(source: Any, target: Any) -> None:
    """Loops that copy row by row, in vectors of VECTOR bytes, four at a time; what is left in smaller ones."""
    element = source.type.element_type
    *outer, row = source.type.shape
    lanes = VECTOR // _bytes(element)
    constants: dict[int, Any] = {}

    def index(n: int) -> Any:
        if n not in constants:
            constants[n] = arith.constant(ir.IndexType.get(), n)
        return constants[n]

    whole = row - row % (4 * lanes)
    pieces, at = [], whole
    while lanes:
        while row - at >= lanes:
            pieces.append((at, lanes))
            at += lanes
        lanes //= 2
    lanes = VECTOR // _bytes(element)
    for n in (0, 1, *outer, whole, 4 * lanes, *(at for at, _ in pieces), *(i * lanes for i in range(4))):
        index(n)

    def move(place: list[Any], at: Any, width: int) -> None:
        kind = ir.VectorType.get([width], element)
        value = vector.LoadOp(kind, source, [*place, at]).result
        vector.StoreOp(value, target, [*place, at])

    with ExitStack() as nest:
        place = []
        for size in outer:
            place.append(index(0) if size == 1 else _loop(nest, index(0), index(size), index(1)))
        if whole:
            with ExitStack() as inner:
                start = _loop(inner, index(0), index(whole), index(4 * lanes))
                for i in range(4):
                    move(place, arith.addi(start, index(i * lanes)), lanes)
        for at, width in pieces:
            move(place, index(at), width)


def _loop(nest: ExitStack, low: Any, high: Any, step: Any) -> Any:
    """The index of a loop that `nest` stays inside of."""
    loop = scf.ForOp(low, high, step)
    with ir.InsertionPoint(loop.body):
        scf.YieldOp([])
    nest.enter_context(ir.InsertionPoint.at_block_terminator(loop.body))
    return loop.induction_variable


def _collapsed(value: Any, groups: list[list[int]]) -> Any:
    if len(groups) == value.type.rank:
        return value
    strides, offset = value.type.get_strides_and_offset()
    sizes = [1] * len(groups)
    for i, dims in enumerate(groups):
        for d in dims:
            sizes[i] *= value.type.shape[d]
    steps = [strides[dims[-1]] for dims in groups]
    kind = ir.MemRefType.get(sizes, value.type.element_type, ir.StridedLayoutAttr.get(offset, steps))
    if value.type.affine_map == ir.AffineMap.get_identity(value.type.rank):
        kind = ir.MemRefType.get(sizes, value.type.element_type)
    index = ir.IntegerType.get_signless(64)
    reassociation = ir.ArrayAttr.get([ir.ArrayAttr.get([ir.IntegerAttr.get(index, d) for d in g]) for g in groups])
    return memref.CollapseShapeOp(kind, value, reassociation).result
