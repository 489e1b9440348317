"""Quantised products: a contraction of bytes as they are, and what the zero points take off it.

    sum (a - za) (b - zb) = sum a b - zb sum a - za sum b + k za zb

exactly, modulo 2^32. The first term is what there are kernels for; the sums are one pass over an input each. They come
as ops of their own, or as products of widened bytes from which an op has subtracted a number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mlir import ir
from mlir.dialects import arith, linalg, tensor

from .aliases import nested_ops
from .body import is_zero, multiply_add_dtypes
from .constants import depends_on_constants
from .contraction import indexing_maps, is_structured, operands_of
from .fills import fill_on_tensors
from .generic import generic
from .inputs import copy_of
from .signs import OFFSET, UnsignedSources, elementwise, number_of

NAMES = ("linalg.quantized_matmul", "linalg.quantized_batch_matmul")


@dataclass(frozen=True)
class _Bytes:
    """A tensor of bytes, the loops of the product that are its dims, whether they are unsigned, and their zero point
    (an i32 value; None: zero)."""

    value: Any
    dims: tuple[int, ...]
    unsigned: bool = False
    zero: Any = None

    def widened(self, x: Any, wide: Any) -> Any:
        return arith.extui(wide, x) if self.unsigned else arith.extsi(wide, x)


def without_zero_points(root: Any) -> None:
    """Takes the quantised products on tensors of static sizes under `root` apart; others stay as they are."""
    sources = UnsignedSources()
    # An erased op, and what is in it, must not be looked at again.
    for op in [o for o in nested_ops(root) if o.name in NAMES and o.results]:
        _take_apart(op, sources)
    for op in [
        o for o in nested_ops(root) if o.name.startswith("linalg.conv_") and o.name.endswith("_q") and o.results
    ]:
        _take_convolution_apart(op, sources)
    for op in [o for o in nested_ops(root) if len(o.results) == 1 and is_structured(o) and _sums_of_i32(o)]:
        _take_differences_apart(op)
    sources.erase_unused()


def _sums_of_i32(op: Any) -> bool:
    """Whether an op adds up products of i32, in i32 or in i64."""
    return multiply_add_dtypes(op.regions[0].blocks[0]) in (("i32",) * 3, ("i32", "i32", "i64"))


def _take_apart(op: Any, sources: UnsignedSources) -> None:
    """An op with zero points."""
    (a, b, za, zb), (out,) = operands_of(op)
    types = [v.type.element_type for v in (a, b, out)] if all(_is_static(v) for v in (a, b, out)) else []
    if [str(t) for t in types] != ["i8", "i8", "i32"] or str(za.type) != "i32" or str(zb.type) != "i32":
        return
    of_a, of_b, of_out = (tuple(e.position for e in m.results) for m in (indexing_maps(op)[i] for i in (0, 1, 4)))
    with op.location, ir.InsertionPoint(op):
        sides = [_Bytes(v, d, zero=None if is_zero(z) else z) for v, d, z in ((a, of_a, za), (b, of_b, zb))]
        for i, side in enumerate(sides):
            if (unsigned := _unsigned(side, sides[1 - i], sources)) is not None:
                sides[i] = unsigned
                break
        total = _product(sides, out, of_out)
    op.results[0].replace_all_uses_with(total)
    op.erase()


def _take_convolution_apart(op: Any, sources: UnsignedSources) -> None:
    """A convolution of bytes whose filters have the zero point zero: with them, zeros stay zeros at the borders too."""
    (image, filters, za, zb), (out,) = operands_of(op)
    operands = (image, filters, out)
    types = [str(v.type.element_type) for v in operands] if all(_is_static(v) for v in operands) else []
    if types != ["i8", "i8", "i32"] or str(za.type) != "i32" or not is_zero(zb):
        return
    maps = [indexing_maps(op)[i] for i in (0, 1, 4)]
    of_filters, of_out = (tuple(ir.AffineDimExpr(e).position for e in m.results) for m in maps[1:])
    with op.location, ir.InsertionPoint(op):
        side, whole = _Bytes(filters, of_filters), _Bytes(image, (), zero=None if is_zero(za) else za)
        whole = _unsigned(whole, side, sources) or whole

        def multiply_add(x: Any, w: Any, acc: Any) -> Any:
            return arith.addi(acc, arith.muli(whole.widened(x, acc.type), side.widened(w, acc.type)))

        kept = [d for d in of_filters if d in of_out]
        terms = [] if whole.zero is None else [(_sums(side, kept), kept, whole.zero)]
        total = generic([whole.value, filters], out, maps, multiply_add).results[0]
        total = _corrected(total, of_out, terms, None) if terms else total
    op.results[0].replace_all_uses_with(total)
    op.erase()


def _unsigned(side: _Bytes, other: _Bytes, sources: UnsignedSources) -> _Bytes | None:
    """The bytes without a sign that an input of a product of signed bytes was made of: of them kernels correct nothing.
    None where there are none, or where a zero point would come to be for which each call would add up the other."""
    if side.zero is None and not depends_on_constants(other.value, {}):
        return None
    if (source := sources.of(side.value)) is None:
        return None
    wide = ir.IntegerType.get_signless(32)
    known = 0 if side.zero is None else number_of(side.zero)
    if known is None:
        zero = arith.addi(side.zero, arith.constant(wide, OFFSET))
    else:
        total = (known + OFFSET + (1 << 31)) % (1 << 32) - (1 << 31)
        zero = arith.constant(wide, total) if total else None
    return replace(side, value=source, unsigned=True, zero=zero)


def _take_differences_apart(op: Any) -> None:
    """A product in i32 (or in i64, of which only the lower half is used) of widened bytes, from some of which an op
    before has subtracted a number."""
    inputs, outputs = operands_of(op)
    if len(inputs) != 2 or len(outputs) != 1 or not all(_is_static(v) for v in (*inputs, *outputs)):
        return
    maps = [list(m.results) for m in indexing_maps(op)]
    if not all(isinstance(e, ir.AffineDimExpr) for m in maps for e in m):
        return
    of_a, of_b, of_out = (tuple(e.position for e in m) for m in maps)
    differences = [_difference(v) for v in inputs]
    known = zip(inputs, differences, (of_a, of_b), strict=True)
    sides = [side for v, d, dims in known if (side := _bytes(v if d is None else d[0], dims, d)) is not None]
    reduced, distinct = {*of_a, *of_b} - {*of_out}, all(len({*dims}) == len(dims) for dims in (of_a, of_b, of_out))
    # Both inputs have the loop that is summed over: of one that has not, elements count as often as there are steps.
    if len(reduced) != 1 or not reduced <= {*of_a} & {*of_b} or not distinct:
        return
    if len(sides) != 2 or all(d is None for d in differences):
        return
    wide = ir.IntegerType.get_signless(32)
    last, out = op, outputs[0]
    if out.type.element_type != wide:
        if fill_on_tensors(out) is None or (cut := _cut_off(op.results[0], wide)) is None:
            return
        last = cut
    with op.location, ir.InsertionPoint(op):
        if last != op:
            out = _zeros(list(out.type.shape), wide)
        total = _product(sides, out, of_out)
    last.results[0].replace_all_uses_with(total)
    for each in dict.fromkeys([last, op, *(v.owner.operation for v, d in zip(inputs, differences, strict=True) if d)]):
        if not any(len(list(r.uses)) for r in each.results):
            each.erase()


def _difference(value: Any) -> tuple[Any, Any] | None:
    """(x, z) where a tensor of i32 is made by an elementwise op that computes x - z, z being the same for all."""
    op = elementwise(value, "arith.subi")
    if op is None:
        return None
    block = op.regions[0].blocks[0]
    z = next(iter(block.operations)).operation.operands[1]
    home = z.owner if isinstance(z.owner, ir.Block) else z.owner.operation.block
    return (operands_of(op)[0][0], z) if home != block and str(z.type) == "i32" else None


def _cut_off(value: Any, narrow: Any) -> Any:
    """The op that alone uses `value`, and cuts its elements off to `narrow`."""
    users = [use.owner for use in value.uses]
    if len(users) != 1 or len(users[0].operation.results) != 1:
        return None
    op = elementwise(users[0].operation.results[0], "arith.trunci")
    if op is None or operands_of(op)[0][0] != value or op.results[0].type.element_type != narrow:
        return None
    return op


def _bytes(value: Any, dims: tuple[int, ...], difference: tuple[Any, Any] | None) -> _Bytes | None:
    """The bytes that a tensor of i32 was widened from, as they lie."""
    copy = copy_of(value)
    if copy is None:
        return None
    source, source_map, copy_map, casts = copy
    if len(casts) != 1 or source_map != copy_map or str(source.type.element_type) != "i8" or not _is_static(source):
        return None
    return _Bytes(source, dims, casts[0].name == "arith.extui", difference[1] if difference else None)


def _is_static(value: Any) -> bool:
    return isinstance(value.type, ir.RankedTensorType) and value.type.has_static_shape


def _product(sides: Sequence[_Bytes], out: Any, of_out: tuple[int, ...]) -> Any:
    """`out` and the product of `sides`, in i32."""
    a, b = sides
    (k,) = (d for d in a.dims if d not in of_out)

    def multiply_add(x: Any, y: Any, acc: Any) -> Any:
        return arith.addi(acc, arith.muli(a.widened(x, acc.type), b.widened(y, acc.type)))

    # Before the product, which then has nothing between it and what is taken off its sums.
    terms = []
    for side, other in ((a, b), (b, a)):
        if other.zero is not None:
            kept = [d for d in side.dims if d != k]
            terms.append((_sums(side, kept), kept, other.zero))
    more = _times(a.value.type.shape[a.dims.index(k)], a.zero, b.zero) if len(terms) == 2 else None
    total = _generic([a.value, b.value], out, [a.dims, b.dims, of_out], multiply_add)
    return _corrected(total, of_out, terms, more) if terms else total


def _sums(side: _Bytes, kept: list[int]) -> Any:
    """The sums of a tensor of bytes along the loops that are not `kept`, in i32."""
    wide = ir.IntegerType.get_signless(32)
    sizes = dict(zip(side.dims, side.value.type.shape, strict=True))
    zeros = _zeros([sizes[d] for d in kept], wide)
    return _generic([side.value], zeros, [side.dims, kept], lambda x, acc: arith.addi(acc, side.widened(x, wide)))


def _times(size: int, x: Any, y: Any) -> Any:
    """The product of a number and two values of i32, in i32; a constant where the values are."""
    a, b = number_of(x), number_of(y)
    if a is None or b is None:
        return arith.muli(arith.muli(x, y), arith.constant(x.type, size))
    return arith.constant(x.type, (size * a * b + (1 << 31)) % (1 << 32) - (1 << 31))


def _zeros(shape: Sequence[int], wide: Any) -> Any:
    return linalg.fill(arith.constant(wide, 0), outs=[tensor.EmptyOp(list(shape), wide).result])


def _corrected(total: Any, of_out: Sequence[int], terms: Sequence[tuple[Any, list[int], Any]], more: Any) -> Any:
    """`total` less, for each of `terms`, its sums (which have the dims given) times a zero point; plus `more`."""
    wide = total.type.element_type
    empty = tensor.EmptyOp(list(total.type.shape), wide).result
    numbers = [zero for _, _, zero in terms] + ([] if more is None else [more])
    computed = [number for number in numbers if number_of(number) is None]

    def body(x: Any, *rest: Any) -> Any:
        sums, read = rest[: len(terms)], dict(zip(computed, rest[len(terms) : -1], strict=True))
        for each, (_, _, zero) in zip(sums, terms, strict=True):
            x = arith.subi(x, arith.muli(each, read.get(zero, zero)))
        return x if more is None else arith.addi(x, read.get(more, more))

    # Ops that read numbers from memory are lifted.
    scalars = [tensor.from_elements(ir.RankedTensorType.get([], wide), [number]) for number in computed]
    inputs = [total, *(sums for sums, _, _ in terms), *scalars]
    return _generic(inputs, empty, [of_out, *(dims for _, dims, _ in terms), *([] for _ in scalars), of_out], body)


def _generic(inputs: list[Any], out: Any, dims: Sequence[Sequence[int]], body: Callable[..., Any]) -> Any:
    """A generic whose operands are indexed by the loops `dims`, the output's last; loops that it lacks are reduced."""
    loops = sorted({d for each in dims for d in each})
    number = {d: i for i, d in enumerate(loops)}
    maps = [ir.AffineMap.get(len(loops), 0, [ir.AffineDimExpr.get(number[d]) for d in each]) for each in dims]
    return generic(inputs, out, maps, body).results[0]
