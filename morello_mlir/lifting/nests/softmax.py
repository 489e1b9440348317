"""`linalg.softmax` taken apart into the reductions and elementwise ops that a nest is made of.

Its definition leaves open in which order exponentials are added up, and how a maximum treats NaN: a row with one is NaN
in any case.
"""

from __future__ import annotations

from typing import Any

from mlir import ir
from mlir.dialects import arith, linalg, math, tensor

from ..generic import generic
from .outline import ROOT


def take_apart(op: Any) -> None:
    """Replaces a `linalg.softmax` on tensors of static sizes and floats; others stay as they are."""
    source, out = op.operands
    kind = source.type
    static = isinstance(kind, ir.RankedTensorType) and kind.has_static_shape and kind.encoding is None
    if not static or not isinstance(kind.element_type, ir.FloatType):
        return
    at = ir.IntegerAttr(op.attributes["dimension"]).value
    dims = [ir.AffineDimExpr.get(d) for d in range(kind.rank)]
    full = ir.AffineMap.get_identity(kind.rank)
    row = ir.AffineMap.get(kind.rank, 0, [e for d, e in enumerate(dims) if d != at])
    with op.location, ir.InsertionPoint(op):
        most = generic([source], _filled(kind, at, float("-inf")), [full, row], arith.maximumf).results[0]
        scratch = tensor.EmptyOp(list(kind.shape), kind.element_type).result
        powers = generic([source, most], scratch, [full, row, full], _power).results[0]
        total = generic([powers], _filled(kind, at, 0.0), [full, row], arith.addf).results[0]
        last = generic([powers, total], out, [full, row, full], lambda e, s, _: arith.divf(e, s))
    last.attributes[ROOT] = ir.StringAttr.get(op.name)
    for name in op.attributes:
        if "." in name:
            last.attributes[name] = op.attributes[name]
    op.results[0].replace_all_uses_with(last.results[0])
    op.erase()


def _power(x: Any, most: Any, _: Any) -> Any:
    return math.exp(arith.subf(x, most))


def _filled(kind: Any, at: int, value: float) -> Any:
    """A tensor of one element a row."""
    constant = arith.constant(kind.element_type, value)
    empty = tensor.EmptyOp([n for d, n in enumerate(kind.shape) if d != at], kind.element_type).result
    return linalg.fill(constant, outs=[empty])
