"""Finds the op that initialises an accumulator with zeros, and decides whether the contraction may take its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlir import ir

from .aliases import VIEWS, Aliases, is_memref, nested_ops
from .body import yields_zero
from .contraction import indexing_maps, is_structured, operands_of

#: Dialects whose ops touch no memory but that of their memref operands. Whatever else stands between a fill and its
#: contraction (a call, say) may read the zeros.
TRANSPARENT = ("affine", "arith", "complex", "index", "linalg", "math", "memref", "scf", "ub", "vector")


def is_zero_fill(op: Any) -> bool:
    """Whether an op sets all of its only output to floating-point zero and reads no other memory: by map and body, so
    that a generic serves as well as `linalg.fill`."""
    if not is_structured(op):
        return False
    inputs, outputs = operands_of(op)
    if len(outputs) != 1 or any(isinstance(i.type, ir.ShapedType) for i in inputs) or not yields_zero(op):
        return False
    return bool(indexing_maps(op)[-1].is_permutation)


def fill_on_tensors(out: Any) -> Any:
    """The zero fill whose result is the tensor `out`, else None."""
    if isinstance(out.owner, ir.Block):
        return None
    owner = out.owner.operation
    return owner if owner.name.startswith("linalg.") and is_zero_fill(owner) else None


def filled_with(op: Any) -> Any:
    """The attribute of the constant that an op sets all of its only output to, reading no other memory; else None."""
    if not is_structured(op):
        return None
    inputs, outputs = operands_of(op)
    body = op.operation.regions[0].blocks[0]
    operations = list(body.operations)
    if len(outputs) != 1 or any(isinstance(i.type, ir.ShapedType) for i in inputs) or len(operations) != 1:
        return None
    value = operations[0].operation.operands[0]
    if isinstance(value.owner, ir.Block) and value.owner == body:
        value = op.operation.operands[ir.BlockArgument(value).arg_number]
    if isinstance(value.owner, ir.Block) or value.owner.operation.name != "arith.constant":
        return None
    return value.owner.operation.attributes["value"] if indexing_maps(op)[-1].is_permutation else None


def fill_before(op: Any, out: Any, aliases: Aliases, is_fill: Callable[[Any], bool] = is_zero_fill) -> Any:
    """The fill, by default with zeros, of exactly the memref `out` that `op` sees untouched, else None.

    It precedes `op` in the same block, and nothing in between may read or write what it wrote.
    """
    block = op.operation.block
    before = []
    for other in block.operations:
        if other.operation == op.operation:
            break
        before.append(other.operation)
    for other in reversed(before):
        if other.name.startswith("linalg.") and is_fill(other) and operands_of(other)[1][0] == out:
            return other
        if _may_touch(other, out, aliases):
            return None
    return None


def _may_touch(op: Any, out: Any, aliases: Aliases) -> bool:
    """Whether an op, or one nested in it, may read or write memory of `out`."""
    for each in (op, *nested_ops(op)):
        if each.name in VIEWS or each.name == "memref.dim":
            continue  # looks at no elements; what uses the view is seen by itself
        if each.name.partition(".")[0] not in TRANSPARENT and not aliases.is_open(each):
            return True
        if any(is_memref(o) and aliases.may_overlap(o, out) for o in each.operands):
            return True
    return False
