"""Whether memory may be written to, as far as its uses show."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from .aliases import VIEWS
from .contraction import is_structured, operands_of

_FIRST_READS = ("memref.copy", "memref.load", "memref.dim", "vector.load", "vector.transfer_read", "affine.load")


def may_write(memory: Any, besides: Container[Any] = ()) -> bool:
    """Whether anything but the ops `besides` may write to a memref value, directly or through a view of it. When in
    doubt, yes."""
    for use in memory.uses:
        op, index = use.owner.operation, use.operand_number
        if op in besides:
            continue
        if op.name in VIEWS:
            if any(may_write(result, besides) for result in op.results):
                return True
        elif op.name.startswith("linalg."):
            if index >= _first_output(op):
                return True
        elif not (op.name in _FIRST_READS and index == 0):
            return True
    return False


def _first_output(op: Any) -> int:
    """The number of the first destination operand of a linalg op."""
    if is_structured(op):
        return len(operands_of(op)[0])
    # What has no body (softmax, pack) has one destination, and it is last; packed sizes may follow: when in doubt, all.
    return len(op.operands) - 1 if op.name == "linalg.softmax" else 0
