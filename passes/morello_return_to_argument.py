"""The pass `morello-return-to-argument`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import mlir.ir as ir
from mlir.dialects import bufferization

from .base import Pass, option
from .siblings import begin_anew, copied, part_siblings
from .symbols import all_ops, entry_function, symbol_name, symbols_used_by
from .types import function_type, is_shaped, is_tensor, set_function_type

#: On an argument: nothing else in the program refers to this memory.
UNALIASED = "morello.unaliased"
#: On an argument, an index: it receives this result of the original function.
RESULT = "morello.result"


@dataclass(frozen=True)
class ReturnToArgument(Pass):
    """Let the caller of the entry function supply the memory of its tensor results.

    Each result that is a tensor of static shape becomes a memref argument at the end, marked `morello.result` (its
    number among the results) and `morello.unaliased`; the value is materialised in it, so that bufferization computes
    in place where it can. Tensor arguments become read-only: what the function does to them stays inside. Results of
    other types are returned as before. An entry that the module calls itself keeps its results.
    """

    name: ClassVar[str] = "morello-return-to-argument"
    summary: ClassVar[str] = (
        "Turn the entry's static tensor results into memref arguments and protect its tensor arguments"
    )
    entry: str = option("", help="the entry function (default: the only public one with a body)")

    def run(self, op: Any) -> None:
        try:
            entry = entry_function(op, self.entry)
        except ValueError as error:
            self.fail(op, str(error))
        called = {name for each in op.operation.regions[0].blocks[0] for name in symbols_used_by(each)}
        returns = [each for each in all_ops(entry) if each.name == "func.return"]
        with op.operation.location:
            _protect_arguments(entry)
            if symbol_name(entry) not in called and len(returns) == 1:
                _move_results(entry, returns[0])


def _argument_attributes(entry: Any) -> list[dict[str, Any]]:
    """The attributes of each argument."""
    count = len(function_type(entry).inputs)
    attributes = entry.operation.attributes
    if "arg_attrs" not in attributes:
        return [{} for _ in range(count)]
    listed = ir.ArrayAttr(attributes["arg_attrs"])
    return [{named.name: named.attr for named in ir.DictAttr(each)} for each in listed]


def _set_argument_attributes(entry: Any, attributes: list[dict[str, Any]]) -> None:
    entry.operation.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(each) for each in attributes])


def _protect_arguments(entry: Any) -> None:
    attributes = _argument_attributes(entry)
    for each, type_ in zip(attributes, function_type(entry).inputs, strict=True):
        if is_tensor(type_):
            each["bufferization.writable"] = ir.BoolAttr.get(False)
    _set_argument_attributes(entry, attributes)


def _moves(type_: Any) -> bool:
    return isinstance(type_, ir.RankedTensorType) and type_.has_static_shape and type_.encoding is None


def _move_results(entry: Any, returned: Any) -> None:
    block = entry.operation.regions[0].blocks[0]
    inputs, attributes = list(function_type(entry).inputs), _argument_attributes(entry)
    results = list(returned.operands)
    moved = [number for number, value in enumerate(results) if _moves(value.type)]
    kept = [value for value in results if not _moves(value.type)]
    apart = _must_part(entry, [results[number] for number in moved], kept)
    order = sorted(moved, key=_order(block, results))
    if not apart and len(moved) > 1:
        part_siblings([results[number] for number in order])
    for number in moved:
        value = results[number]
        type_ = ir.MemRefType.get(value.type.shape, value.type.element_type)
        inputs.append(type_)
        attributes.append(
            {UNALIASED: ir.UnitAttr.get(), RESULT: ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)}
        )
        block.add_argument(type_, returned.location)
    # What is made in the memory of one result may be what a later result was computed from. It has to be out of there
    # before the later one comes in. Bufferization does not see to that: it looks at tensors only, not at this memory.
    destinations = dict(zip(moved, list(block.arguments)[-len(moved) :], strict=True)) if moved else {}
    for number in order:
        with ir.InsertionPoint(returned), returned.location:
            value = copied(results[number]) if apart else _off_arguments(results[number], block)
            bufferization.MaterializeInDestinationOp(None, value, destinations[number], restrict=True, writable=True)
    with ir.InsertionPoint(returned), returned.location:
        ir.Operation.create("func.return", operands=kept)
    returned.erase()
    set_function_type(entry, inputs, [value.type for value in kept])
    _set_argument_attributes(entry, attributes)
    if "res_attrs" in entry.operation.attributes:
        del entry.operation.attributes["res_attrs"]


def _order(block: Any, results: list[Any]) -> Callable[[int], int]:
    """The place in the block where the result of a number comes from: before the block for its arguments."""
    places = {op.operation: place for place, op in enumerate(block.operations)}
    return lambda number: places.get(getattr(results[number].owner, "operation", None), -1)


def _must_part(entry: Any, moved: list[Any], kept: list[Any]) -> bool:
    """Whether the order of the results cannot keep them apart: which comes first depends on branches, or one that is
    returned in whatever memory it was made in may be what another was computed from."""
    if len(entry.operation.regions[0].blocks) > 1:
        return len(moved) + sum(is_tensor(value.type) for value in kept) > 1
    return not _made_for(moved).isdisjoint(_made_for([value for value in kept if is_shaped(value.type)]))


def _made_for(values: list[Any]) -> set[Any]:
    """The ops that the tensors are computed by, directly or not, outside of the regions of other ops."""
    found: set[Any] = set()
    todo = list(values)
    while todo:
        owner = todo.pop().owner
        if isinstance(owner, ir.Block) or owner.operation in found:
            continue
        found.add(owner.operation)
        todo += [o for op in all_ops(owner) for o in op.operands if is_tensor(o.type)]
    return found


def _off_arguments(value: Any, block: Any) -> Any:
    """`value`; but where it accumulates into an argument of the function, first copy that to a fresh tensor.

    The argument is read-only, so bufferization would copy it too, into memory of its own, and then copy the result once
    more. A fresh tensor can be replaced by the destination itself.
    """
    use = _initial(value)
    if use is None:
        return value
    op, index = use
    start = op.operands[index]
    if not (isinstance(start.owner, ir.Block) and start.owner == block):
        return value
    begin_anew(op, index)
    return value


def _initial(value: Any) -> tuple[Any, int] | None:
    """The op and operand number where the chain of destination-passing linalg ops that ends in `value` starts."""
    found = None
    while not isinstance(value.owner, ir.Block) and value.owner.name.startswith("linalg."):
        op = value.owner
        if len(op.results) == 0 or not all(is_tensor(r.type) for r in op.results):
            break
        # Destination operands come last in every linalg op, one for each result, in the same order.
        first = len(op.operands) - len(op.results)
        index = first + next(i for i, r in enumerate(op.results) if r == value)
        found = (op, index)
        value = op.operands[index]
    return found
