"""Quantised products: a contraction of bytes as they are, and what the zero points take off it.

    sum (a - za) (b - zb) = sum a b - zb sum a - za sum b + k za zb

exactly, modulo 2^32. The first term is what there are kernels for; the sums are one pass over an input each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlir import ir
from mlir.dialects import arith, linalg, tensor

from .aliases import nested_ops
from .body import is_zero
from .contraction import indexing_maps, operands_of
from .generic import generic

NAMES = ("linalg.quantized_matmul", "linalg.quantized_batch_matmul")


def without_zero_points(root: Any) -> None:
    """Takes the quantised products on tensors of static sizes under `root` apart; others stay as they are."""
    # An erased op, and what is in it, must not be looked at again.
    for op in [o for o in nested_ops(root) if o.name in NAMES and o.results]:
        _take_apart(op)


def _take_apart(op: Any) -> None:
    (a, b, za, zb), (out,) = operands_of(op)
    types = [v.type.element_type for v in (a, b, out)] if all(_is_static(v) for v in (a, b, out)) else []
    if [str(t) for t in types] != ["i8", "i8", "i32"] or str(za.type) != "i32" or str(zb.type) != "i32":
        return
    of_a, of_b, of_out = ([e.position for e in m.results] for m in (indexing_maps(op)[i] for i in (0, 1, 4)))
    (k,) = (d for d in of_a if d not in of_out)
    with op.location, ir.InsertionPoint(op):
        total = _generic([a, b], out, [of_a, of_b, of_out], _multiply_add)
        terms = []
        for value, dims, zero in ((a, of_a, zb), (b, of_b, za)):
            if not is_zero(zero):
                terms.append((_sums(value, dims, k), [d for d in dims if d != k], zero))
        if terms:
            total = _corrected(total, of_out, terms, _both(za, zb, a.type.shape[of_a.index(k)]))
    op.results[0].replace_all_uses_with(total)
    op.erase()


def _is_static(value: Any) -> bool:
    return isinstance(value.type, ir.RankedTensorType) and value.type.has_static_shape


def _multiply_add(x: Any, y: Any, acc: Any) -> Any:
    wide = acc.type
    return arith.addi(acc, arith.muli(arith.extsi(wide, x), arith.extsi(wide, y)))


def _both(za: Any, zb: Any, size: int) -> Any:
    """k za zb."""
    return arith.muli(arith.muli(za, zb), arith.constant(za.type, size))


def _sums(value: Any, dims: Sequence[int], k: int) -> Any:
    """The sums of a tensor of bytes along loop `k`, in i32."""
    wide = ir.IntegerType.get_signless(32)
    shape = [size for d, size in zip(dims, value.type.shape, strict=True) if d != k]
    empty = tensor.EmptyOp(shape, wide).result
    zeros = linalg.fill(arith.constant(wide, 0), outs=[empty])
    kept = [d for d in dims if d != k]
    return _generic([value], zeros, [dims, kept], lambda x, acc: arith.addi(acc, arith.extsi(wide, x)))


def _corrected(total: Any, of_out: Sequence[int], terms: Sequence[tuple[Any, list[int], Any]], more: Any) -> Any:
    """`total` less, for each of `terms`, its sums (which have the dims given) times a zero point; plus `more`."""
    wide = total.type.element_type
    empty = tensor.EmptyOp(list(total.type.shape), wide).result

    def body(x: Any, *rest: Any) -> Any:
        for sums, (_, _, zero) in zip(rest[:-1], terms, strict=True):
            x = arith.subi(x, arith.muli(sums, zero))
        return arith.addi(x, more)

    inputs = [total, *(sums for sums, _, _ in terms)]
    return _generic(inputs, empty, [of_out, *(dims for _, dims, _ in terms), of_out], body)


def _generic(inputs: list[Any], out: Any, dims: Sequence[Sequence[int]], body: Callable[..., Any]) -> Any:
    """A generic whose operands are indexed by the loops `dims`, the output's last; loops that it lacks are reduced."""
    loops = sorted({d for each in dims for d in each})
    number = {d: i for i, d in enumerate(loops)}
    maps = [ir.AffineMap.get(len(loops), 0, [ir.AffineDimExpr.get(number[d]) for d in each]) for each in dims]
    return generic(inputs, out, maps, body).results[0]
