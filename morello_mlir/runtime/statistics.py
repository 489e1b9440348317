"""Counting in a module: linalg ops, floating-point operations of contractions, Specs."""

from __future__ import annotations

import math
from typing import Any

_SPEC = "morello.spec"
_KEYS = ("spec", "function", "source", "search_s", "cost", "schedule")


def linalg_ops(module: Any) -> int:
    """How many linalg ops a module holds; `linalg.yield` and `linalg.index`, parts of others, do not count."""
    from morello_mlir.passes.symbols import all_ops

    return sum(
        op.name.startswith("linalg.") and op.name not in ("linalg.yield", "linalg.index") for op in all_ops(module)
    )


def contraction_flops(module: Any) -> int | None:
    """Multiplications and additions of the contractions and convolutions in a module, loops round them not counted.

    None where there are none, or a size is dynamic.
    """
    from mlir.dialects import linalg

    from morello_mlir.passes.symbols import all_ops

    total = 0
    for op in all_ops(module):
        if not op.name.startswith("linalg.") or not op.regions:
            continue
        if not (linalg.isa_contraction_op(op) or linalg.isa_convolution_op(op)):
            continue
        extents = _loop_extents(op)
        if extents is None:
            return None
        total += 2 * math.prod(extents)
    return total or None


def _loop_extents(op: Any) -> list[int] | None:
    """The size of every loop of a linalg op; None where one is dynamic or cannot be told."""
    import mlir.ir as ir
    from mlir.dialects import linalg

    from morello_mlir.passes.types import is_shaped, shape_of

    maps = [ir.AffineMapAttr(each).value for each in linalg.get_indexing_maps(op)]
    extents: dict[int, int] = {}
    for operand, map_ in zip(op.operands, maps, strict=True):
        shape = shape_of(operand.type) if is_shaped(operand.type) else ()
        for size, expression in zip(shape, map_.results, strict=True):
            if isinstance(expression, ir.AffineDimExpr):
                if size is None:
                    return None
                extents[ir.AffineDimExpr(expression).position] = size
    count = maps[0].n_dims
    return [extents[i] for i in range(count)] if len(extents) == count else None


def collect_specs(module: Any) -> list[dict[str, Any]]:
    """What the search wrote onto every `morello.spec`, as plain values; keys it did not write are None."""
    from morello_mlir.passes.symbols import all_ops

    found = []
    for op in all_ops(module):
        if op.name == _SPEC:
            found.append({key: _plain(op.attributes[key]) if key in op.attributes else None for key in _KEYS})
    return found


def _plain(attribute: Any) -> Any:
    import mlir.ir as ir

    for kind in (ir.StringAttr, ir.IntegerAttr, ir.FloatAttr):
        if isinstance(attribute, kind):
            return attribute.value
    return str(attribute)
