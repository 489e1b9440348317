"""Makes a private function of what `enclose` put into a region, once that is on memrefs: as it is, so that it is right
whether it is lifted or not.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mlir import ir
from mlir.dialects import func

from ..aliases import nested_ops
from ..emit import SCHEDULE
from ..outcome import NotLifted
from ..tables import operand_of
from .record import MEMBER, NEST, Record

#: The name of the op that a nest is reported as: on the function around it, and on an op that stands for another.
ROOT = "morello.root"


def regions(root: Any) -> list[tuple[Any, Any]]:
    """The regions of nests under an op: (region op, root of the nest)."""
    found = []
    for op in nested_ops(root):
        if NEST in op.attributes and op.parent is not None and op.parent.operation.name == "scf.execute_region":
            found.append((op.parent.operation, op))
    return found


def outline(region: Any, root: Any, name: str) -> None:
    """Puts a call of a new private function in the place of a bufferized region; where that cannot be, the ops of the
    region as they are."""
    end = list(region.regions[0].blocks[0].operations)[-1].operation
    results = list(end.operands)
    try:
        function_of(region, root, name, results)
    except NotLifted:
        _dissolve(region, end)
    for old, new in zip(region.results, results, strict=True):
        old.replace_all_uses_with(new)
    region.erase()


def function_of(region: Any, root: Any, name: str, results: list[Any]) -> None:
    """Makes the function and its call. Raises NotLifted, with everything as it was."""
    inside = list(nested_ops(region))
    record = Record.of(root.attributes[NEST])
    members = {ir.IntegerAttr(op.attributes[MEMBER]).value: op for op in inside if MEMBER in op.attributes}
    values = []
    for access in record.inputs:
        member, _, operand = access.where.partition(".")
        try:
            values.append(operand_of(members[int(member)], int(operand)))
        except LookupError:
            raise NotLifted("an op of the nest is gone") from None
    values += [results[int(access.where)] for access in record.outputs]
    for value in values:
        if not isinstance(value.type, ir.MemRefType):
            raise NotLifted("it is not on memrefs")
        if not _is_outside(value, region):
            owner = value.owner
            if isinstance(owner, ir.Block) or owner.operation.name != "memref.alloc" or len(owner.operation.operands):
                raise NotLifted("an operand is made in the nest")
            owner.operation.move_before(region)
    arguments = _arguments(values, region)
    accesses = tuple(replace(a, where=str(arguments.index(v))) for a, v in zip(record.accesses, values, strict=True))
    _build(region, root, name, arguments, replace(record, accesses=accesses))


def _arguments(values: list[Any], region: Any) -> list[Any]:
    """`values`, each once, and what else `region` uses from outside; constants are no arguments."""
    found = dict.fromkeys(values)
    for op in nested_ops(region):
        for value in op.operands:
            if value not in found and not _is_constant(value) and _is_outside(value, region):
                found[value] = None
    return list(found)


def _is_outside(value: Any, region: Any) -> bool:
    op = value.owner.owner if isinstance(value.owner, ir.Block) else value.owner
    return not is_inside(op.operation, region)


def _is_constant(value: Any) -> bool:
    return not isinstance(value.owner, ir.Block) and value.owner.operation.name == "arith.constant"


def _build(region: Any, root: Any, name: str, arguments: list[Any], record: Record) -> None:
    function = region
    while function.name != "func.func":
        function = function.parent.operation
    with root.location:
        with ir.InsertionPoint(function):
            made = func.FuncOp(name, ([v.type for v in arguments], []), visibility="private")
        made.attributes["llvm.linkage"] = ir.Attribute.parse("#llvm.linkage<internal>")
        made.attributes[NEST] = record.attribute()
        made.attributes[ROOT] = root.attributes[ROOT] if ROOT in root.attributes else ir.StringAttr.get(root.name)
        if SCHEDULE in root.attributes:
            made.attributes[SCHEDULE] = root.attributes[SCHEDULE]
        block = made.add_entry_block()
        with ir.InsertionPoint(block):
            end = func.ReturnOp([]).operation
        with ir.InsertionPoint(region):
            func.CallOp([], name, arguments)
    known = dict(zip(arguments, block.arguments, strict=True))
    for op in [o.operation for o in region.regions[0].blocks[0].operations][:-1]:
        op.move_before(end)
        _forget(op)
        for each in (op, *nested_ops(op)):
            for i, value in enumerate(each.operands):
                if value not in known and _is_constant(value) and not is_inside(value.owner.operation, made.operation):
                    known[value] = value.owner.operation.clone(ip=ir.InsertionPoint.at_block_begin(block)).results[0]
                if value in known:
                    each.operands[i] = known[value]


def is_inside(op: Any, root: Any) -> bool:
    """Whether `op` is `root` or nested in it."""
    while op is not None and op != root:
        op = op.parent.operation if op.parent is not None else None
    return op is not None


def _dissolve(region: Any, end: Any) -> None:
    for op in [o.operation for o in region.regions[0].blocks[0].operations]:
        if op != end:
            op.move_before(region)
            _forget(op)


def _forget(op: Any) -> None:
    for name in (MEMBER, NEST, ROOT):
        if name in op.attributes:
            del op.attributes[name]
