"""Scalars that are known at run time only, as operands of linalg ops: tensors of one element and no dims.

What the body of an op reads from outside of it, or an op takes as a number, is no element of an operand: a scale that
is an argument, a value to fill with. Nests and what follows a contraction read operands.
"""

from __future__ import annotations

from typing import Any

from mlir import ir
from mlir.dialects import tensor

from .aliases import nested_ops
from .contraction import indexing_maps, operands_of
from .generic import copied, generic, mark_alike

_PURE = ("arith.", "math.", "linalg.index", "linalg.yield")
_OPS = ("linalg.generic", "linalg.fill")


def scalars_as_operands(root: Any) -> None:
    """Makes operands of the scalars, other than constants, that elementwise ops, reductions and fills on tensors read
    under `root`."""
    for op in [o for o in nested_ops(root) if o.name in _OPS]:
        if len(op.results) == 1 and _is_plain(op):
            _rewrite(op)


def _is_plain(op: Any) -> bool:
    """Whether sizes are static, and the body does nothing but compute."""
    shapes = [o.type for o in op.operands if isinstance(o.type, ir.ShapedType)]
    bodies = [o.operation for o in op.regions[0].blocks[0].operations]
    static = all(t.has_static_shape and 0 not in t.shape for t in shapes)
    return static and all(o.name.startswith(_PURE) and not len(o.regions) for o in bodies)


def _rewrite(op: Any) -> None:
    inputs, (out,) = operands_of(op)
    block, maps = op.regions[0].blocks[0], indexing_maps(op)
    read = dict.fromkeys(v for o in block.operations for v in o.operation.operands if _is_outside(v, block))
    captured = [v for v in read if _is_scalar(v)]
    taken = [i for i, v in enumerate(inputs) if _is_scalar(v)]
    if not captured and not taken:
        return
    with op.location, ir.InsertionPoint(op):
        given = [_tensor(v) if i in taken else v for i, v in enumerate(inputs)]
        one = ir.AffineMap.get(maps[0].n_dims, 0, [])

        def body(*arguments: Any) -> Any:
            *own, last = arguments
            known = dict(zip([*block.arguments[:-1], *captured, block.arguments[-1]], [*own, last], strict=True))
            return _yielded(block, known)

        more = [_tensor(v) for v in captured]
        new = generic([*given, *more], out, [*maps[:-1], *[one] * len(more), maps[-1]], body)
    mark_alike(new, op)
    op.results[0].replace_all_uses_with(new.results[0])
    op.erase()


def _is_outside(value: Any, block: Any) -> bool:
    owner = value.owner
    return owner != block if isinstance(owner, ir.Block) else owner.operation.block != block


def _is_scalar(value: Any) -> bool:
    """Whether a value is a number that is no constant."""
    kind = value.type
    if not isinstance(kind, (ir.FloatType, ir.IntegerType)):
        return False
    return isinstance(value.owner, ir.Block) or value.owner.operation.name != "arith.constant"


def _tensor(value: Any) -> Any:
    """A tensor of that one element, at the insertion point: where it came from, if it did."""
    made = None if isinstance(value.owner, ir.Block) else value.owner.operation
    if made is not None and made.name == "tensor.extract" and len(made.operands) == 1:
        return made.operands[0]
    return tensor.FromElementsOp(ir.RankedTensorType.get([], value.type), [value]).result


def _yielded(block: Any, known: dict[Any, Any]) -> Any:
    """What a body yields, its ops copied to the insertion point. known: values that have another."""
    *ops, last = (o.operation for o in block.operations)
    for op in ops:
        copied(op, known)
    return known.get(last.operands[0], last.operands[0])
