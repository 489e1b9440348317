"""New `linalg.generic` ops, and what bodies of others become in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from mlir import ir
from mlir.dialects import linalg


def copied(op: Any, known: dict[Any, Any]) -> Any:
    """A copy of `op` at the insertion point. known: values that have another, to which its results are added."""
    copy = op.clone()
    for i, operand in enumerate(op.operands):
        copy.operands[i] = known.get(operand, operand)
    known.update(zip(op.results, copy.results, strict=True))
    return copy


def mark_alike(new: Any, op: Any) -> None:
    """Gives `new` the discardable attributes of the linalg op `op`: schedules, tags."""
    for name in op.attributes:
        if "." in name and not name.startswith("linalg."):
            new.attributes[name] = op.attributes[name]


def generic(inputs: Sequence[Any], out: Any, maps: Sequence[Any], body: Callable[..., Any]) -> Any:
    """The operation, at the insertion point, on tensors or on memrefs. maps: affine maps, the output's last; loops that
    it lacks are reduced. body: what is yielded, given the block's arguments."""
    kept = {loop for e in maps[-1].results for loop in re.findall(r"d[0-9]+", str(e))}
    loops = (str(ir.AffineDimExpr.get(d)) for d in range(maps[-1].n_dims))
    kinds = ["parallel" if loop in kept else "reduction" for loop in loops]
    op = linalg.GenericOp(
        [out.type] if isinstance(out.type, ir.RankedTensorType) else [],
        list(inputs),
        [out],
        ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for m in maps]),
        ir.ArrayAttr.get([ir.Attribute.parse(f"#linalg.iterator_type<{kind}>") for kind in kinds]),
    )
    block = op.operation.regions[0].blocks.append(*(v.type.element_type for v in (*inputs, out)))
    with ir.InsertionPoint(block):
        linalg.YieldOp([body(*block.arguments)])
    return op.operation
