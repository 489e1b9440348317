"""Tables: tensors and memrefs that bodies of linalg ops read at places of their own, with `tensor.extract` and
`memref.load`. Like operands, they have numbers: those after the op's operands, in the order in which they are read."""

from __future__ import annotations

from typing import Any

from mlir import ir

#: Ops that read an element.
LOADS = ("tensor.extract", "memref.load")


def loads_of(op: Any) -> list[Any]:
    """The ops in the body of a linalg op that read elements of what is around it."""
    if not len(op.regions) or not len(op.regions[0].blocks):
        return []
    return [o.operation for o in op.regions[0].blocks[0].operations if o.operation.name in LOADS]


def tables_of(op: Any) -> list[Any]:
    """What the body of a linalg op reads elements of, each once."""
    return list(dict.fromkeys(load.operands[0] for load in loads_of(op)))


def operand_of(op: Any, number: int) -> Any:
    """The operand of that number, or the table. Raises IndexError."""
    count = len(op.operands)
    return op.operands[number] if number < count else tables_of(op)[number - count]


def number_of(op: Any, table: Any) -> int:
    """The number of a table among the operands of `op`."""
    return len(op.operands) + tables_of(op).index(table)


def check_table(kind: Any) -> str | None:
    """What keeps a nest from reading a tensor or memref of that type at places of its own; None: nothing."""
    if not isinstance(kind, (ir.RankedTensorType, ir.MemRefType)) or not kind.has_static_shape:
        return f"it reads elements of {kind}"
    return f"it reads elements of what is empty ({kind})" if 0 in list(kind.shape) else None
