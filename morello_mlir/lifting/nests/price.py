"""What it costs to compute the same several times."""

from __future__ import annotations

import math
from typing import Any

from mlir import ir

from .index import dims_of
from .scalars import ops_of
from .structured import VIEWS, Structured

#: What may be computed again at every point instead of being stored once: so many ops, none of them costly.
CHEAP_OPS = 2
_COSTLY = ("math.", "arith.div", "arith.rem", "arith.floordiv", "arith.ceildiv")


def is_cheap(op: Structured | None) -> bool:
    """Whether computing it again costs next to nothing, and reading for it no more than reading what it computes."""
    if op is None or op.reduced:
        return False
    inner = [o.operation for o in op.block.operations]
    if ops_of(op.yielded, op.block) > CHEAP_OPS or any(o.name.startswith(_COSTLY) for o in inner):
        return False
    # Some named ops have no argument for what an output held.
    used = [v for v, a in zip(op.operands, op.block.arguments, strict=False) if any(True for _ in a.uses)]
    return sum(map(_bytes, used)) <= sum(_bytes(v) for v in op.outputs)


def _bytes(value: Any) -> int:
    kind = value.type
    if not isinstance(kind, ir.ShapedType):
        return 0
    try:
        width = kind.element_type.width
    except AttributeError:
        width = 64
    return math.prod(kind.shape) * max(width, 8) // 8


def is_mask(op: Structured) -> bool:
    """Whether it computes truth values of positions alone. Stored, it can be seen which these are, and chains, whose
    tiles know no positions, can read them."""
    return str(op.op.results[0].type.element_type) == "i1" and _is_of_positions(op.op)


def _is_of_positions(op: Any) -> bool:
    """Whether a linalg op, and what it reads, are made of `linalg.index` and constants."""
    if op.name == "linalg.fill" or op.name == "arith.constant":
        return True
    if op.name in VIEWS:
        return not isinstance(op.operands[0].owner, ir.Block) and _is_of_positions(op.operands[0].owner.operation)
    if not op.name.startswith("linalg.") or len(op.results) != 1:
        return False
    block = op.regions[0].blocks[0]
    used = [v for v, a in zip(op.operands, block.arguments, strict=False) if any(True for _ in a.uses)]
    inside = any(o.operation.name == "linalg.index" for o in block.operations)
    return (inside or bool(used)) and all(
        not isinstance(v.owner, ir.Block) and _is_of_positions(v.owner.operation) for v in used
    )


def is_transposed(op: Structured) -> bool:
    """Whether an op copies a tensor with another dim fastest."""
    if ops_of(op.yielded, op.block) or op.input_count != 1 or not isinstance(op.inputs[0].type, ir.ShapedType):
        return False
    fastest = [next((i for i in reversed(m) if i.terms), None) for m in (op.maps[0], op.maps[-1])]
    return fastest[0] != fastest[1] and dims_of(op.maps[0]) == dims_of(op.maps[-1])
