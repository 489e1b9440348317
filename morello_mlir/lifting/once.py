"""What nests make of constants alone is made once: the first call keeps it in a buffer of the module.

So it is with the sums of a weight's columns, which zero points are multiplied by. The buffer is a global of bytes: a
header of one cache line, whose first word says whether the rest has been filled, then the result. There is no lock, as
with panels that are packed ahead: threads that come first at once all compute it, each in memory of its own, and copy
the same bytes (docs/decisions/0004-ahead.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mlir import ir
from mlir.dialects import arith, llvm, memref, scf

from morello_mlir.errors import SpecError
from morello_mlir.spec import dtype_bytes

from .aliases import SAME_BASE, enclosing_module
from .constants import contents_of
from .nests import LiftedNest
from .writes import may_write

#: How the names of the buffers begin; the runtime finds them by it.
PREFIX = "morello_once_"
#: Marks the branch around what fills a buffer.
_FILLING = "morello.once"
#: Bytes before the result, which starts at a cache line.
HEADER = 64


@dataclass(frozen=True)
class Once:
    """A nest that reads constants alone: the op, what it is lifted as, the allocation that it fills, and a name for the
    buffer in its place."""

    op: Any
    lifted: LiftedNest
    alloc: Any
    name: str


def made_once(found: Sequence[tuple[Any, Any]], limit: int, name: Callable[[Any], str]) -> dict[Any, Once]:
    """Of ops and what becomes of them those that need to run once, by op; each comes after those that it needs. They
    are nests on constants, and on what such nests make, with one result that is no larger than what they read, nor than
    `limit` bytes, in a buffer that nobody else writes to and that does not leave its function. name: a new symbol of
    the module that an op is in.

    Raises SpecError where an argument that is said to be constant is written to.
    """
    once: dict[Any, Once] = {}
    made: set[Any] = set()
    todo = [(op, outcome) for op, outcome in found if isinstance(outcome, LiftedNest)]
    while todo:
        left = []
        for op, outcome in todo:
            alloc = _alloc_of(op, outcome, made, limit)
            if alloc is None:
                left.append((op, outcome))
            else:
                once[op] = Once(op, outcome, alloc, name(op))
                made.add(alloc)
        if len(left) == len(todo):
            break
        todo = left
    return once


def _alloc_of(op: Any, lifted: LiftedNest, made: Container[Any], limit: int) -> Any:
    """The allocation that a nest fills with what depends on constants alone; None where it does not."""
    count = len(lifted.spec.body.inputs)
    inputs, outputs = lifted.values[:count], lifted.values[count:]
    if not inputs or len(outputs) != 1 or isinstance(outputs[0].owner, ir.Block) or not _is_first(op.block):
        return None
    alloc = outputs[0].owner.operation
    if alloc.name != "memref.alloc" or outputs[0] in inputs or not _is_dense(outputs[0]):
        return None
    size = _bytes(outputs[0])
    if size > min(limit, sum(_bytes(v) for v in dict.fromkeys(inputs) if v.type.has_static_shape)):
        return None
    if not all(_is_constant(v, made) for v in inputs):
        return None
    besides = [op, *_frees(alloc), *([] if lifted.fill is None else [lifted.fill])]
    return None if may_write(alloc.results[0], besides) else alloc


def _is_first(block: Any) -> bool:
    """Whether a block is the first one of a function: what is in it would run in every call."""
    parent = block.owner.operation
    return parent.name == "func.func" and parent.regions[0].blocks[0] == block


def _is_constant(value: Any, made: Container[Any]) -> bool:
    """Whether what is in a memref value is the same in every call, and the value can be had where its function
    begins."""
    origin = _origin(value)
    if origin is None:
        return False
    return origin in made or contents_of(value) is not None


def _origin(value: Any) -> Any:
    """The argument of a function, or the op, that a memref value is a view of; None where some op on the way has to
    stay where it is."""
    while not isinstance(value.owner, ir.Block):
        op = value.owner.operation
        if op.name not in SAME_BASE:
            return op
        if not all(_is_number(o) for o in list(op.operands)[1:]):
            return None
        value = op.operands[0]
    return value


def _is_number(value: Any) -> bool:
    return not isinstance(value.owner, ir.Block) and value.owner.operation.name == "arith.constant"


def _is_dense(value: Any) -> bool:
    """Whether a memref value is of a static type, and has the default layout."""
    kind = value.type
    static = isinstance(kind, ir.MemRefType) and kind.has_static_shape and kind.memory_space is None
    return static and kind.affine_map == ir.AffineMap.get_identity(kind.rank)


def _bytes(value: Any) -> int:
    """The size of a memref of a static type in bytes, or more than any limit."""
    try:
        return math.prod(value.type.shape) * dtype_bytes(str(value.type.element_type))
    except SpecError:
        return 1 << 63


def _frees(alloc: Any) -> list[Any]:
    users = [use.owner.operation for use in alloc.results[0].uses]
    return [user for user in users if user.name == "memref.dealloc"]


def emit_once(once: Once, call: Callable[[LiftedNest], None]) -> None:
    """Puts a buffer of the module in the place of the allocation, and has `once.op` run where the function begins,
    unless the buffer is filled. What one needs that another makes must be emitted after that other.

    call: puts the call of a nest in the place of `once.op`, which stays for the caller to erase.
    """
    op, alloc = once.op, once.alloc
    kind, name = alloc.results[0].type, once.name
    with op.location:
        bytes_ = ir.MemRefType.get([HEADER + _bytes(alloc.results[0])], ir.IntegerType.get_signless(8))
        with ir.InsertionPoint.at_block_begin(enclosing_module(op).regions[0].blocks[0]):
            _global(name, bytes_)
        with ir.InsertionPoint.at_block_begin(op.block):
            values = {v: _again(v) for v in once.lifted.values if v != alloc.results[0]}
            buffer = memref.get_global(bytes_, name)
            result = memref.view(kind, buffer, arith.constant(ir.IndexType.get(), HEADER), [])
            state, is_empty = _state(buffer)
            filling = scf.IfOp(is_empty)
            filling.operation.attributes[_FILLING] = ir.UnitAttr.get()
        with ir.InsertionPoint(filling.then_block):
            room = memref.alloc(kind, [], [], alignment=HEADER)
            values[alloc.results[0]] = room
            end = scf.YieldOp([])
        op.move_before(end.operation)
        call(replace(once.lifted, values=tuple(values[v] for v in once.lifted.values), fill=None))
        with ir.InsertionPoint(end):
            memref.CopyOp(room, result)
            one = arith.constant(ir.IntegerType.get_signless(32), 1)
            llvm.store(one, state, alignment=4, ordering=_ordering("release"))
            memref.DeallocOp(room)
    for free in _frees(alloc):
        free.erase()
    alloc.results[0].replace_all_uses_with(result)
    alloc.erase()


def runs_once(call: Any) -> bool:
    """Whether a call of a goal's function is one that `emit_once` made."""
    around = call.operation.parent
    return around is not None and _FILLING in around.operation.attributes


def _global(name: str, kind: Any) -> None:
    zeros = ir.DenseElementsAttr.get_splat(
        ir.RankedTensorType.get(kind.shape, kind.element_type), ir.IntegerAttr.get(kind.element_type, 0)
    )
    private = ir.StringAttr.get("private")
    memref.GlobalOp(name, kind, sym_visibility=private, initial_value=zeros, alignment=HEADER)


def _state(buffer: Any) -> tuple[Any, Any]:
    """The address of the word that says whether a buffer is filled, and whether it is not."""
    wide, word = (ir.IntegerType.get_signless(bits) for bits in (64, 32))
    at = memref.extract_aligned_pointer_as_index(buffer)
    pointer = llvm.inttoptr(ir.Type.parse("!llvm.ptr"), arith.index_cast(wide, at))
    state = llvm.load(word, pointer, alignment=4, ordering=_ordering("acquire"))
    return pointer, arith.cmpi(arith.CmpIPredicate.eq, state, arith.constant(word, 0))


def _ordering(name: str) -> Any:
    return getattr(llvm.AtomicOrdering, name)


def _again(value: Any) -> Any:
    """A value as at the insertion point: the views that it goes through, and where they begin, once more."""
    if isinstance(value.owner, ir.Block):
        return value
    op = value.owner.operation
    if op.name == "memref.alloc":  # of what is made once, too
        return value
    operands = [_again(operand) for operand in op.operands]
    copy = op.clone()
    for i, operand in enumerate(operands):
        copy.operands[i] = operand
    return copy.results[ir.OpResult(value).result_number]
