"""Constant operands: memory whose contents are the same whenever a lifted op runs, so that it can be packed ahead.

That is a part of a constant global, or of a function's argument that the caller says is constant: he promises that what
the first call finds there is what every call finds. Views of either count while they start at an offset that is known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from mlir import ir

from morello_mlir.errors import SpecError
from morello_mlir.spec import dtype_bytes

from .aliases import SAME_BASE, enclosing_module
from .contraction import is_structured, operands_of
from .outcome import Lifted, NotLifted
from .tables import tables_of
from .views import view_of
from .writes import may_write

#: On an argument of a function: its contents do not change after the first call.
CONSTANT = "morello.constant"
#: On a constant global that is defined elsewhere: no element of it is infinite or NaN.
FINITE = "morello.finite"
_TENSOR_VIEWS = ("tensor.cast", "tensor.collapse_shape", "tensor.expand_shape")


def with_constants(lifted: Lifted, limit: int, made: Mapping[Any, str] = MappingProxyType({})) -> Lifted:
    """`lifted`, a contraction on memrefs, with its constant inputs of at most `limit` bytes marked as such. made: names
    for what is in buffers that are filled once, by their allocations.

    Raises SpecError where an argument that is said to be constant is written to.
    """
    plan, found = lifted.plan, {}
    tensors = list(plan.spec.operands)
    for i, (operand, tensor) in enumerate(zip(plan.operands[:2], tensors[:2], strict=True)):
        moves = any(loop.strides[i] for loop in plan.outer)
        size = math.prod(n for n, s in zip(operand.sizes, operand.strides, strict=True) if s or n == 1)
        if moves or tensor.window is not None or size * dtype_bytes(tensor.dtype) > limit:
            continue
        name = contents_of(lifted.values[operand.source], made)
        if name is not None:
            found[plan.spec.info.operands[i][0]] = name
            tensors[i] = replace(tensor, const=True)
    if not found:
        return lifted
    spec = replace(plan.spec, operands=tuple(tensors))
    return replace(lifted, plan=replace(plan, spec=spec), constants=tuple(found.items()))


def contents_of(value: Any, made: Mapping[Any, str] = MappingProxyType({})) -> str | None:
    """A name for what is in a memref value at all times: equal names (and types), equal contents. None where the
    contents may change. made: as for `with_constants`."""
    try:
        offset = view_of(value.type, "").offset
    except NotLifted:
        return None
    while not isinstance(value.owner, ir.Block) and value.owner.operation.name in SAME_BASE:
        value = value.owner.operation.operands[0]
    if isinstance(value.owner, ir.Block):
        origin = _argument(value)
    else:
        found = global_of(value)
        origin = made.get(value.owner.operation) if found is None else f"@{_symbol(found)}"
    return None if origin is None or offset is None else f"{origin}+{offset}"


def depends_on_constants(value: Any, known: dict[Any, bool]) -> bool:
    """Whether a tensor is the same in every call: a constant, an argument that its function says is constant, or what
    linalg ops and views make of such. known: answers of earlier questions, and of this one."""
    if value not in known:
        known[value] = False  # what is in a loop
        known[value] = _depends_on_constants(value, known)
    return known[value]


def _depends_on_constants(value: Any, known: dict[Any, bool]) -> bool:
    if isinstance(value.owner, ir.Block):
        return _is_marked(value)
    op = value.owner.operation
    if op.name == "bufferization.to_tensor":
        return contents_of(op.operands[0]) is not None
    if is_structured(op):
        inputs, _ = operands_of(op)
        return bool(inputs) and all(depends_on_constants(v, known) for v in (*inputs, *tables_of(op)))
    if op.name in _TENSOR_VIEWS:
        return len(op.operands) == 1 and depends_on_constants(op.operands[0], known)
    return op.name == "arith.constant"


def global_of(value: Any) -> Any:
    """The constant global that a memref value is a view of; None where it is of none."""
    while not isinstance(value.owner, ir.Block) and value.owner.operation.name in SAME_BASE:
        value = value.owner.operation.operands[0]
    op = None if isinstance(value.owner, ir.Block) else value.owner.operation
    if op is None or op.name != "memref.get_global":
        return None
    name = ir.FlatSymbolRefAttr(op.attributes["name"]).value
    for other in enclosing_module(op).regions[0].blocks[0].operations:
        if other.operation.name == "memref.global" and _symbol(other) == name:
            return other.operation if "constant" in other.operation.attributes else None
    return None


def _argument(value: Any) -> str | None:
    """The name of an argument that its function says is constant."""
    if not _is_marked(value):
        return None
    function, number = value.owner.owner.operation, ir.BlockArgument(value).arg_number
    if may_write(value):
        raise SpecError(f"argument {number} of @{_symbol(function)} is '{CONSTANT}' and may be written to")
    return f"@{_symbol(function)}.{number}"


def _is_marked(value: Any) -> bool:
    """Whether a block's argument is one of a function, which says that it is constant."""
    block = value.owner
    function = block.owner.operation
    if function.name != "func.func" or block != function.regions[0].blocks[0] or "arg_attrs" not in function.attributes:
        return False
    return CONSTANT in ir.DictAttr(ir.ArrayAttr(function.attributes["arg_attrs"])[ir.BlockArgument(value).arg_number])


def _symbol(op: Any) -> str:
    return str(ir.StringAttr(op.attributes["sym_name"]).value)
