"""The pass `morello-tidy`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import mlir.ir as ir
from mlir.dialects import arith
from mlir.passmanager import PassManager

from .base import Pass
from .symbols import all_ops
from .types import is_tensor


@dataclass(frozen=True)
class Tidy(Pass):
    """Take out of linalg ops on tensors what importers leave in them and nobody needs.

    Results that nobody uses go (a maximum comes with where it was), operands that are one number become the number, and
    constants have the type that they are used in.
    """

    name: ClassVar[str] = "morello-tidy"
    summary: ClassVar[str] = (
        "Drop unused results of linalg ops on tensors, and make operands that are numbers constants"
    )

    def run(self, op: Any) -> None:
        for each in [o for o in all_ops(op) if o.name in ("arith.truncf", "arith.extf")]:
            _fold(each)
        for each in [o for o in all_ops(op) if o.name == "linalg.generic" and len(o.results) > 1]:
            _drop_unused(each)
        for each in [o for o in all_ops(op) if o.name == "linalg.generic"]:
            _inline_constants(each)
        # Not cse: copies of one tensor may be there to be written to, each by itself.
        PassManager.parse("any(canonicalize)").run(op.operation)


def _fold(op: Any) -> None:
    """A constant that is rounded becomes the rounded constant."""
    source = op.operands[0].owner
    if isinstance(source, ir.Block) or source.name != "arith.constant":
        return
    value, type_ = source.attributes["value"], op.results[0].type
    if not isinstance(value, ir.FloatAttr) or not isinstance(type_, (ir.F32Type, ir.F64Type)):
        return
    with ir.InsertionPoint(op), op.location:
        constant = arith.ConstantOp(type_, ir.FloatAttr.get(type_, value.value)).result
    op.results[0].replace_all_uses_with(constant)
    op.erase()


def _inline_constants(op: Any) -> None:
    """Let a generic op on tensors use a number in the place of an operand that is one constant.

    Other operands of one element stay operands: what is in memory is for loops to read, not for bodies. So do constant
    weights, even if they are all the same: they are factors of contractions.
    """
    block = op.regions[0].blocks[0]
    inputs = len(block.arguments) - len(op.results)
    for value, argument in list(zip(op.operands, block.arguments, strict=True))[:inputs]:
        number = _number(value) if is_tensor(value.type) and len(list(argument.uses)) else None
        if number is not None:
            with ir.InsertionPoint.at_block_begin(block), op.location:
                argument.replace_all_uses_with(arith.ConstantOp(number.type, number).result)


def _number(value: Any) -> Any:
    """The attribute of the number that a constant tensor of one element holds; None for others."""
    if isinstance(value.owner, ir.Block) or value.owner.name != "arith.constant":
        return None
    elements = value.owner.attributes["value"]
    if not isinstance(elements, (ir.DenseFPElementsAttr, ir.DenseIntElementsAttr)) or len(elements) != 1:
        return None
    number = elements.get_splat_value()
    return number if isinstance(number, (ir.FloatAttr, ir.IntegerAttr, ir.BoolAttr)) else None


def _drop_unused(op: Any) -> None:
    """Make a generic op without the results that nobody uses, where the others do not depend on them."""
    results = list(op.results)
    unused = [i for i, result in enumerate(results) if is_tensor(result.type) and not list(result.uses)]
    if not unused or len(unused) == len(results):
        return
    block = op.regions[0].blocks[0]
    count = len(block.arguments) - len(results)
    end = block.operations[len(block.operations) - 1].operation
    dropped = [i for i in unused if not _needed(block.arguments[count + i], end, set(unused))]
    if not dropped:
        return
    kept = [i for i in range(len(results)) if i not in dropped]
    operands = [*list(op.operands)[:count], *(op.operands[count + i] for i in kept)]
    maps = list(ir.ArrayAttr(op.attributes["indexing_maps"]))
    attributes = {name: op.attributes[name] for name in op.attributes}
    attributes["indexing_maps"] = ir.ArrayAttr.get([*maps[:count], *(maps[count + i] for i in kept)])
    attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([count, len(kept)])
    with ir.InsertionPoint(op), op.location:
        new = ir.Operation.create(
            "linalg.generic",
            results=[results[i].type for i in kept],
            operands=operands,
            attributes=attributes,
            regions=1,
        )
    with ir.InsertionPoint(end), end.location:
        ir.Operation.create("linalg.yield", operands=[end.operands[i] for i in kept])
    end.erase()
    _erase_dead(block)
    for i in reversed(dropped):
        block.erase_argument(count + i)
    block.append_to(new.regions[0])
    for i, result in zip(kept, new.results, strict=True):
        results[i].replace_all_uses_with(result)
    op.erase()


def _needed(argument: Any, end: Any, unused: set[int]) -> bool:
    """Whether a result that is used depends on the old value of an output."""
    reached, work = set(), [argument]
    while work:
        value = work.pop()
        for use in value.uses:
            user = use.owner.operation
            if user == end:
                if use.operand_number not in unused:
                    return True
            elif user not in reached:
                reached.add(user)
                work += list(user.results)
    return False


def _erase_dead(block: Any) -> None:
    """Erase the ops of a body, all free of effects, whose results nobody uses."""
    for each in reversed(list(block.operations)[:-1]):
        if not any(list(result.uses) for result in each.operation.results):
            each.operation.erase()
