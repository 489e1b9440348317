"""Whether memory may be written to, as far as its uses show."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from mlir import ir

from .aliases import VIEWS, enclosing_module
from .contraction import is_structured, operands_of

_FIRST_READS = ("memref.copy", "memref.load", "memref.dim", "vector.load", "vector.transfer_read", "affine.load")


def may_write(memory: Any, besides: Container[Any] = (), inside: tuple[Any, ...] = ()) -> bool:
    """Whether anything but the ops `besides` may write to a memref value, directly, through a view of it, or in a
    function that is called. When in doubt, yes. inside: the arguments of functions that are being looked at."""
    for use in memory.uses:
        op, index = use.owner.operation, use.operand_number
        if op in besides:
            continue
        if op.name in VIEWS:
            if any(may_write(result, besides, inside) for result in op.results):
                return True
        elif op.name.startswith("linalg."):
            if index >= _first_output(op):
                return True
        elif op.name == "func.call":
            argument = _argument(op, index)
            # Of functions that call themselves nothing is known.
            if argument is None or argument in inside or may_write(argument, besides, (*inside, argument)):
                return True
        elif not (op.name in _FIRST_READS and index == 0):
            return True
    return False


def _argument(call: Any, index: int) -> Any:
    """The argument of the function called that is operand `index`; None where it has no body in sight."""
    name = ir.FlatSymbolRefAttr(call.attributes["callee"]).value
    for op in enclosing_module(call).regions[0].blocks[0].operations:
        function = op.operation
        if function.name == "func.func" and ir.StringAttr(function.attributes["sym_name"]).value == name:
            blocks = function.regions[0].blocks
            return blocks[0].arguments[index] if len(blocks) else None
    return None


def _first_output(op: Any) -> int:
    """The number of the first destination operand of a linalg op."""
    if is_structured(op):
        return len(operands_of(op)[0])
    # What has no body (softmax, pack) has one destination, and it is last; packed sizes may follow: when in doubt, all.
    return len(op.operands) - 1 if op.name == "linalg.softmax" else 0
