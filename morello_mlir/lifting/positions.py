"""Masks apart from what they mask: what the body of an elementwise op computes of positions alone becomes a tensor of
its own, an operand of the op.

Tiles of chains know no positions, and read operands: causal attention that compares `linalg.index` where it scales the
scores is a chain then, like one whose mask was an operand all along.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from mlir import ir
from mlir.dialects import linalg, tensor

from .aliases import nested_ops
from .body import multiply_add_dtypes
from .contraction import declared_iterators, indexing_maps, is_structured, operands_of
from .generic import copied, generic, mark_alike
from .inputs import sizes_of

_VIEWS = ("tensor.expand_shape", "tensor.collapse_shape")
_PURE = ("arith.", "math.")
#: An op has no more masks than this, and there are no more ops between two products.
MOST_MASKS, MOST_OPS = 2, 32


def masks_apart(root: Any) -> None:
    """Rewrites elementwise ops on tensors, under `root`, between two products: truth values, and floats along fewer
    dims, that their bodies compute of `linalg.index` alone are read from tensors instead, made by ops before them."""
    for op in [o for o in nested_ops(root) if o.name == "linalg.generic"]:
        if _has_positions(op) and is_between_products(op):
            _take_apart(op)


def is_between_products(op: Any) -> bool:
    """Whether a product is among what an op on tensors depends on, and another among what depends on it, by way of
    other linalg ops and reshapes in its block."""
    return _reaches(op, _producers) and _reaches(op, _users)


def _reaches(op: Any, step: Callable[[Any], Iterator[Any]]) -> bool:
    todo, seen = list(step(op)), {op}
    while todo and len(seen) <= MOST_OPS:
        here = todo.pop()
        if here in seen or here.block != op.block:
            continue
        seen.add(here)
        if is_structured(here) and multiply_add_dtypes(here.regions[0].blocks[0]) is not None:
            return True
        if here.name in _VIEWS or here.name.startswith("linalg."):
            todo += step(here)
    return False


def _producers(op: Any) -> Iterator[Any]:
    for value in op.operands:
        if not isinstance(value.owner, ir.Block):
            yield value.owner.operation


def _users(op: Any) -> Iterator[Any]:
    for result in op.results:
        for use in result.uses:
            yield use.owner.operation


def _has_positions(op: Any) -> bool:
    return any(o.operation.name == "linalg.index" for o in op.regions[0].blocks[0].operations)


# ---------------------------------------------------------------- bodies


def _take_apart(op: Any) -> None:
    block = op.regions[0].blocks[0]
    kinds = declared_iterators(op, indexing_maps(op)[0].n_dims) or []
    plain = len(op.results) == 1 and all(kind == "parallel" for kind in kinds)
    static = plain and op.results[0].type.has_static_shape
    if not static or any(len(o.operation.regions) for o in block.operations):
        return
    positions = _Positions(op)
    found = positions.masks()
    if found and len(found) <= MOST_MASKS:
        masks = {value: _made(op, value, dims, positions.sizes) for value, dims in found.items()}
        _replace(op, masks, found)


class _Positions:
    """What the body of an op computes of positions alone. sizes: of its loops."""

    def __init__(self, op: Any):
        self.block = op.regions[0].blocks[0]
        self._dims: dict[Any, frozenset[int] | None] = {}
        loops = map(ir.AffineDimExpr.get, range(indexing_maps(op)[-1].n_dims))
        sizes = sizes_of([list(indexing_maps(op)[-1].results)], [op.results[0]])
        self.sizes = [sizes[loop] for loop in loops]

    def masks(self) -> dict[Any, tuple[int, ...]]:
        """The values that are to be read instead, and the loops that each depends on; none where that cannot be."""
        found: dict[Any, tuple[int, ...]] = {}
        for inner in (o.operation for o in self.block.operations):
            if not len(inner.results) or self.dims(inner.results[0]) is None:
                for value in inner.operands:
                    cuts = self._cuts(value) if self.dims(value) is not None else []
                    if cuts is None:
                        return {}
                    found |= {cut: tuple(sorted(self.dims(cut) or ())) for cut in cuts}
        return found

    def dims(self, value: Any) -> frozenset[int] | None:
        """The loops whose positions a value is computed of; None of what depends on anything else."""
        if value not in self._dims:
            self._dims[value] = self._find(value)
        return self._dims[value]

    def _find(self, value: Any) -> frozenset[int] | None:
        if isinstance(value.owner, ir.Block):
            return None
        op = value.owner.operation
        if op.name == "linalg.index":
            return frozenset([ir.IntegerAttr(op.attributes["dim"]).value])
        if not op.name.startswith(_PURE) or (op.block != self.block and op.name != "arith.constant"):
            return None
        parts = [self.dims(v) for v in op.operands]
        return None if None in parts else frozenset(d for part in parts for d in part or ())

    def _cuts(self, value: Any) -> list[Any] | None:
        """The truth values that `value` is chosen by, or itself; None where it has no place in memory."""
        dims = self.dims(value)
        if not dims:
            return []
        kind, op = str(value.type), value.owner.operation
        long = [d for d in range(len(self.sizes)) if self.sizes[d] != 1]
        fewer = any(d not in dims for d in long)
        if kind == "i1":
            return [value] if fewer or len(long) <= 2 else None
        parts = [self._cuts(v) for v in op.operands]
        if op.name != "linalg.index" and None not in parts:
            return [cut for part in parts for cut in part or ()]
        return [value] if fewer and isinstance(value.type, ir.FloatType) else None


def _made(op: Any, value: Any, dims: tuple[int, ...], sizes: list[int]) -> Any:
    """The tensor, before `op`, of what `value` in its body is at all positions along `dims`."""

    def body(_: Any) -> Any:
        return _copied(value, op.regions[0].blocks[0], {}, dims)

    with op.location, ir.InsertionPoint(op):
        room = tensor.EmptyOp([sizes[d] for d in dims], value.type).result
        return generic([], room, [ir.AffineMap.get_identity(len(dims))], body).results[0]


def _replace(op: Any, masks: dict[Any, Any], dims: dict[Any, tuple[int, ...]]) -> None:
    inputs, (out,) = operands_of(op)
    block = op.regions[0].blocks[0]
    old = indexing_maps(op)
    count = old[0].n_dims
    maps = [ir.AffineMap.get(count, 0, [ir.AffineDimExpr.get(d) for d in dims[value]]) for value in masks]

    def body(*given: Any) -> Any:
        arguments = list(block.arguments)
        known = dict(zip([*arguments[:-1], *masks, arguments[-1]], given, strict=True))
        return _copied(list(block.operations)[-1].operation.operands[0], block, known)

    with op.location, ir.InsertionPoint(op):
        new = generic([*inputs, *masks.values()], out, [*old[:-1], *maps, old[-1]], body)
    mark_alike(new, op)
    op.results[0].replace_all_uses_with(new.results[0])
    op.erase()


def _copied(value: Any, block: Any, known: dict[Any, Any], dims: tuple[int, ...] | None = None) -> Any:
    """`value` of a body, at the insertion point: its ops in `block` are copied. known: values that have another.
    dims: the loops that are left, by their numbers now."""
    if value in known or isinstance(value.owner, ir.Block) or value.owner.operation.block != block:
        return known.get(value, value)
    op = value.owner.operation
    if op.name == "linalg.index" and dims is not None:
        known[value] = linalg.IndexOp(dims.index(ir.IntegerAttr(op.attributes["dim"]).value)).result
        return known[value]
    for operand in op.operands:
        _copied(operand, block, known, dims)
    copied(op, known)
    return known[value]
