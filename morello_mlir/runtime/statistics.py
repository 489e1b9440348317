"""Counting in a module: linalg ops, floating-point operations of contractions, Specs."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

_PARTS = ("linalg.yield", "linalg.index")


def linalg_ops(module: Any) -> Counter[str]:
    """How many linalg ops of each name a module holds: parts of others (yield, index) and copies of our own making do
    not count."""
    from morello_mlir.passes.siblings import OWN_COPY
    from morello_mlir.passes.symbols import all_ops

    return Counter(
        op.name
        for op in all_ops(module)
        if op.name.startswith("linalg.") and op.name not in _PARTS and OWN_COPY not in op.attributes
    )


def contraction_flops(module: Any) -> int | None:
    """Multiplications and additions of the contractions (lifted ones too) and convolutions in a module, loops round
    them not counted.

    None where there are none, or a size is dynamic.
    """
    from mlir.dialects import linalg

    from morello_mlir.dialect import spec_ops
    from morello_mlir.passes.symbols import all_ops

    total = sum(op.spec.flops for op in spec_ops(module.operation))
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
    """What every `morello.spec`, nest and chain says: spec, function, source, cost, schedule, search_s, measured_s,
    model_s (seconds of the schedule, and of the model's choice), alternatives (a list of cost and schedule); None for
    what is not there."""
    from morello_mlir.dialect import chain_ops, goal_ops

    return [
        {
            "spec": str(op.spec),
            "function": op.function,
            "source": op.source,
            "search_s": _seconds(op.operation, "morello.search_s"),
            "measured_s": _seconds(op.operation, "morello.measured_s"),
            "model_s": _seconds(op.operation, "morello.model_s"),
            "cost": op.cost,
            "schedule": op.schedule_text,
            "alternatives": _alternatives(op.operation),
        }
        for op in (*goal_ops(module.operation), *chain_ops(module.operation))
    ]


def goal_functions(module: Any) -> dict[str, str]:
    """By function that holds one goal, as lifting makes them, the text of its Spec."""
    from morello_mlir.dialect import chain_ops, goal_ops
    from morello_mlir.passes.symbols import symbol_name

    found: dict[str, list[str]] = {}
    for op in (*goal_ops(module.operation), *chain_ops(module.operation)):
        parent = op.operation.parent
        name = symbol_name(parent) if parent is not None else None
        if name is not None:
            found.setdefault(name, []).append(str(op.spec))
    return {name: specs[0] for name, specs in found.items() if len(specs) == 1}


def _seconds(op: Any, name: str) -> float | None:
    """How long something took, where the op says so."""
    import mlir.ir as ir

    return ir.FloatAttr(op.attributes[name]).value if name in op.attributes else None


def _alternatives(op: Any) -> list[dict[str, Any]] | None:
    """The cheapest schedules, where the op lists them."""
    import mlir.ir as ir

    if "morello.alternatives" not in op.attributes:
        return None
    listed = [ir.DictAttr(each) for each in ir.ArrayAttr(op.attributes["morello.alternatives"])]
    return [
        {
            "cost": ir.IntegerAttr(each["cost"]).value,
            "schedule": "\n".join(ir.StringAttr(line).value for line in ir.ArrayAttr(each["schedule"])),
        }
        for each in listed
    ]
