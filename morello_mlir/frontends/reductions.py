"""StableHLO's reductions that jaxlib does not lower to linalg, in jaxlib's MLIR: along no dims, and of no elements."""

from __future__ import annotations

from typing import Any

from .control_flow import inner_first


def rewrite(module: Any) -> None:
    """Make of every such `stablehlo.reduce` under a module something that jaxlib lowers."""
    for op in list(inner_first(module.operation)):
        if op.name != "stablehlo.reduce":
            continue
        if any(0 in _type(value).shape for value in op.operands):
            _without_elements(op)
        elif not len(op.attributes["dimensions"]):
            _along_a_dim(op)


def _without_elements(op: Any) -> None:
    """Every result is its initial value."""
    from jaxlib.mlir import ir

    initial = list(op.operands)[len(op.results) :]
    with ir.InsertionPoint(op), op.location:
        nowhere = {"broadcast_dimensions": ir.DenseI64ArrayAttr.get([])}
        for result, value in zip(op.results, initial, strict=True):
            make = ir.Operation.create
            new = make("stablehlo.broadcast_in_dim", results=[result.type], operands=[value], attributes=nowhere)
            result.replace_all_uses_with(new.result)
    op.erase()


def _along_a_dim(op: Any) -> None:
    """Reduce along one more dim, of size 1, the last of all."""
    from jaxlib.mlir import ir

    inputs, initial = list(op.operands)[: len(op.results)], list(op.operands)[len(op.results) :]
    types = [result.type for result in op.results]
    with ir.InsertionPoint(op), op.location:
        longer = []
        for value in inputs:
            old = _type(value)
            new_type = ir.RankedTensorType.get([*old.shape, 1], old.element_type)
            longer.append(ir.Operation.create("stablehlo.reshape", results=[new_type], operands=[value]).result)
        last = {"dimensions": ir.DenseI64ArrayAttr.get([_type(inputs[0]).rank])}
        operands = [*longer, *initial]
        new = ir.Operation.create("stablehlo.reduce", results=types, operands=operands, attributes=last, regions=1)
    op.regions[0].blocks[0].append_to(new.regions[0])
    for result, found in zip(op.results, new.results, strict=True):
        result.replace_all_uses_with(found)
    op.erase()


def _type(value: Any) -> Any:
    from jaxlib.mlir import ir

    return ir.RankedTensorType(value.type)
