"""Results that begin in one tensor, and how they get memory of their own.

Two ops may write to one tensor each: `x = op1 outs(%start)`, `y = op2 outs(%start)`. As values they have nothing to do
with each other. But if the tensor is to be made in the memory of `x`, `y` may be made there too, and upstream's
elimination of empty tensors does not see that `x` is stored there before `y` is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mlir.ir as ir
from mlir.dialects import arith, linalg, tensor

from .symbols import all_ops
from .types import is_tensor

#: On a `linalg.copy`: it is not the program's, but made here.
OWN_COPY = "morello.own_copy"

#: A use of a tensor as the memory that a result is made in: the op that uses it and the number of the operand.
Use = tuple[Any, int]

#: Ops whose result may be in the memory of these operands.
_PLACES = {
    "tensor.cast": (0,),
    "tensor.collapse_shape": (0,),
    "tensor.expand_shape": (0,),
    "tensor.extract_slice": (0,),
    "tensor.insert_slice": (0, 1),
    "tensor.reshape": (0,),
}


def part_siblings(values: list[Any]) -> None:
    """Gives `values`, results of one function, starts of their own where two begin in one tensor.

    The later of two uses of a tensor gets a fresh one, a fill of its own, or a copy where it reads what it held.
    """
    taken: dict[Any, Use] = {}
    for value in values:
        seen: set[Any] = set()
        todo = list(_uses(value))
        while todo:
            op, index = todo.pop()
            start = op.operands[index]
            if not _is_made(start) or (use := (op.operation, index)) in seen:
                continue
            seen.add(use)
            if taken.setdefault(start, use) == use:
                todo += _uses(start)
            else:
                begin_anew(op, index)


def begin_anew(op: Any, index: int) -> None:
    """Gives `op` a tensor of its own for its operand `index`, so that nothing else is made in that memory."""
    start = op.operands[index]
    maker = None if isinstance(start.owner, ir.Block) else start.owner
    with ir.InsertionPoint(op), op.location:
        if (maker and maker.name == "tensor.empty") or (op.name.startswith("linalg.") and not _reads(op, index)):
            own = _fresh(start)
        elif maker and maker.name == "linalg.fill":
            own = linalg.fill(maker.operands[0], outs=[_fresh(start)])
        else:
            own = copied(start)
        op.operands[index] = own


def copied(value: Any) -> Any:
    """A copy of a tensor, here, that nothing else refers to."""
    made = linalg.copy(value, outs=[_fresh(value)])
    made.owner.attributes[OWN_COPY] = ir.UnitAttr.get()
    return made


def _reads(op: Any, index: int) -> bool:
    """Whether a linalg op reads what its destination operand `index` held before; yes where that is unknown."""
    if len(op.regions) != 1 or len(op.regions[0].blocks) != 1:
        return True
    arguments = op.regions[0].blocks[0].arguments
    return len(arguments) != len(op.operands) or any(True for _ in arguments[index].uses)


def _fresh(like: Any) -> Any:
    """An empty tensor, here, of the type of `like`."""
    type_ = like.type
    sizes = [
        tensor.DimOp(like, _index(dim)).result if type_.is_dynamic_dim(dim) else type_.get_dim_size(dim)
        for dim in range(type_.rank)
    ]
    return tensor.EmptyOp(sizes, type_.element_type).result


def _index(number: int) -> Any:
    return arith.ConstantOp(ir.IndexType.get(), number).result


def _is_made(value: Any) -> bool:
    """Whether a value is a ranked tensor that an op of the function makes."""
    return isinstance(value.type, ir.RankedTensorType) and not isinstance(value.owner, ir.Block)


def _uses(value: Any) -> Iterator[Use]:
    """The tensors in whose memory `value` may be made, as uses by the op that makes it."""
    if not _is_made(value):
        return
    op = value.owner
    number = next(i for i, result in enumerate(op.results) if result == value)
    if op.name.startswith("linalg."):
        # Destination operands come last in every linalg op, one for each result, in the same order.
        yield op, len(op.operands) - len(op.results) + number
    elif op.name.startswith("scf."):
        # The initial values of loops are their last operands; regions yield what comes after.
        if (first := len(op.operands) - len(op.results)) >= 0:
            yield op, first + number
        yield from (
            (inner, number)
            for inner in all_ops(op)
            if inner.name == "scf.yield" and inner.parent == op and number < len(inner.operands)
        )
    else:
        yield from ((op, index) for index in _PLACES.get(op.name, ()) if is_tensor(op.operands[index].type))
