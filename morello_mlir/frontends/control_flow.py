"""StableHLO's loops and branches as those of scf, in jaxlib's MLIR: its own pass to linalg leaves them alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def to_scf(module: Any) -> None:
    """Rewrite every `stablehlo.while`, `stablehlo.if` and `stablehlo.case` under a module, innermost first."""
    for op in list(inner_first(module.operation)):
        if op.name == "stablehlo.while":
            _while(op)
        elif op.name == "stablehlo.if":
            _branches(op, "scf.if", lambda found: found)
        elif op.name == "stablehlo.case":
            # Any other number is the last branch, which scf has first.
            _branches(op, "scf.index_switch", lambda found: [found[-1], *found[:-1]])


def inner_first(op: Any) -> Iterator[Any]:
    """The ops under `op`, those in regions before those that have them."""
    for region in op.regions:
        for block in region:
            for each in block:
                yield from inner_first(each.operation)
                yield each.operation


def _while(op: Any) -> None:
    from jaxlib.mlir import ir

    types = [result.type for result in op.results]
    with ir.InsertionPoint(op), op.location:
        new = ir.Operation.create("scf.while", results=types, operands=list(op.operands), regions=2)
    for old, region in zip(list(op.regions), new.regions, strict=True):
        old.blocks[0].append_to(region)
    condition, body = (region.blocks[0] for region in new.regions)
    end = condition.operations[len(condition.operations) - 1].operation
    with ir.InsertionPoint(end), end.location:
        goes_on = _scalar(end.operands[0])
        ir.Operation.create("scf.condition", operands=[goes_on, *condition.arguments])
    end.erase()
    _yield(body)
    _replace(op, new)


def _branches(op: Any, name: str, ordered: Any) -> None:
    from jaxlib.mlir import ir

    types = [result.type for result in op.results]
    attributes: dict[str, Any] = {}
    with ir.InsertionPoint(op), op.location:
        chosen = _scalar(op.operands[0])
        if name == "scf.index_switch":
            index = ir.IndexType.get()
            chosen = ir.Operation.create("arith.index_cast", results=[index], operands=[chosen]).result
            attributes["cases"] = ir.DenseI64ArrayAttr.get(list(range(len(op.regions) - 1)))
        new = ir.Operation.create(
            name, results=types, operands=[chosen], attributes=attributes, regions=len(op.regions)
        )
    for old, region in zip(ordered(list(op.regions)), new.regions, strict=True):
        old.blocks[0].append_to(region)
        _yield(region.blocks[0])
    _replace(op, new)


def _scalar(value: Any) -> Any:
    """The number in a tensor of rank 0."""
    from jaxlib.mlir import ir

    element = ir.RankedTensorType(value.type).element_type
    return ir.Operation.create("tensor.extract", results=[element], operands=[value]).result


def _yield(block: Any) -> None:
    from jaxlib.mlir import ir

    end = block.operations[len(block.operations) - 1].operation
    with ir.InsertionPoint(end), end.location:
        ir.Operation.create("scf.yield", operands=list(end.operands))
    end.erase()


def _replace(op: Any, new: Any) -> None:
    for old, result in zip(op.results, new.results, strict=True):
        old.replace_all_uses_with(result)
    op.erase()
