"""Reshapes before copies: what reads a reshaped transpose or broadcast can then read where the elements come from.

Importers write a product of heads as a transpose of four dims, two of which are collapsed for a batched product of
three. The transpose of the collapsed tensor is the same, where the dims that are collapsed lie side by side in it.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mlir import ir
from mlir.dialects import tensor

from .aliases import nested_ops
from .generic import generic
from .inputs import cast_by, copy_of

_KINDS = ("tensor.collapse_shape", "tensor.expand_shape")


@dataclass(frozen=True)
class _Copy:
    """source: what is copied; dims: by dim of the copy, the dim of the source, or None where it is repeated along it;
    casts: what is done to the elements."""

    source: Any
    dims: tuple[int | None, ...]
    casts: list[Any]


@dataclass(frozen=True)
class _Reshaped:
    """groups: of the source's dims when it is collapsed, of the new dims when it is expanded; shape: of the source
    then; dims: of the copy, as in _Copy."""

    groups: tuple[tuple[int, ...], ...]
    shape: tuple[int, ...]
    dims: tuple[int | None, ...]


def reshape_first(root: Any) -> None:
    """Rewrites reshapes, under `root`, of copies on tensors that nothing else reads to copies of reshapes."""
    todo = [o for o in nested_ops(root) if o.name in _KINDS]
    while todo:
        op = todo.pop()
        value = op.operands[0]
        if len(list(value.uses)) != 1 or not (value.type.has_static_shape and op.results[0].type.has_static_shape):
            continue
        copy = _copy(value)
        if copy is None:
            continue
        groups = [[ir.IntegerAttr(i).value for i in group] for group in ir.ArrayAttr(op.attributes["reassociation"])]
        collapses = op.name == "tensor.collapse_shape"
        found = _collapsed(copy, groups) if collapses else _expanded(copy, groups, list(op.results[0].type.shape))
        if found is not None and _is_worth_it(found):
            # What is copied may be a copy too.
            todo.append(_rewrite(op, copy, found, collapses))


def _copy(value: Any) -> _Copy | None:
    found = copy_of(value)
    if found is None:
        return None
    source, exprs, copied, casts = found
    if not source.type.has_static_shape:
        return None
    loops = [ir.AffineDimExpr(e).position for e in exprs]
    return _Copy(source, tuple(loops.index(d) if d in loops else None for d in _positions(copied)), casts)


def _positions(exprs: Sequence[Any]) -> list[int]:
    return [ir.AffineDimExpr(e).position for e in exprs]


def _collapsed(copy: _Copy, groups: Sequence[Sequence[int]]) -> _Reshaped | None:
    """How to collapse the source; None where dims that become one do not lie side by side in it."""
    shape = list(copy.source.type.shape)
    long = [d for d, n in enumerate(shape) if n > 1]
    parts: list[list[int]] = []
    dims: list[int | None] = []
    for group in groups:
        # Dims of the copy of one element count for nothing.
        named = [copy.dims[d] for d in group if copy.dims[d] is None or shape[copy.dims[d] or 0] > 1]
        own = [d for d in named if d is not None]
        if len(own) != len(named) and (own or len(named) > 1):
            return None
        at = [long.index(d) for d in own]
        if at != list(range(at[0], at[0] + len(at)) if at else []):
            return None
        dims.append(len(parts) if own else None)
        parts += [own] if own else []
    if not parts or len(parts) == len(shape):
        return None
    return _in_order(parts, dims, shape)


def _in_order(parts: Sequence[Sequence[int]], dims: Sequence[int | None], shape: Sequence[int]) -> _Reshaped:
    """The parts as groups of all of the source's dims, in its order: those of one element go with the
    one before, or the first."""
    order = sorted(range(len(parts)), key=lambda p: parts[p][0])
    starts = [0, *(parts[p][0] for p in order[1:]), len(shape)]
    groups = tuple(tuple(range(a, b)) for a, b in itertools.pairwise(starts))
    sizes = []
    for p in order:
        size = 1
        for d in parts[p]:
            size *= shape[d]
        sizes.append(size)
    place = {p: i for i, p in enumerate(order)}
    return _Reshaped(groups, tuple(sizes), tuple(None if d is None else place[d] for d in dims))


def _expanded(copy: _Copy, groups: Sequence[Sequence[int]], sizes: Sequence[int]) -> _Reshaped:
    """How to expand the source. groups: of the new dims, by dim of the copy; sizes: of the new dims."""
    by_source = {d: group for d, group in zip(copy.dims, groups, strict=True) if d is not None}
    new_groups: list[tuple[int, ...]] = []
    shape: list[int] = []
    place: dict[int, int] = {}
    for d in range(len(copy.source.type.shape)):
        start = len(shape)
        for new in by_source[d]:
            place[new] = len(shape)
            shape.append(sizes[new])
        new_groups.append(tuple(range(start, len(shape))))
    return _Reshaped(tuple(new_groups), tuple(shape), tuple(place.get(d) for d in range(len(sizes))))


def _is_worth_it(found: _Reshaped) -> bool:
    """Whether a contraction that reads the source has its batch as the outermost dim there, as its Spec must; else the
    batch would be a loop around many small products, or part of the rows, which a chain tiles: worse than the copy."""
    own = [d for d in found.dims if d is None or found.shape[d] > 1]
    return len(own) < 3 or (own[0] is not None and own[0] == min(d for d in own if d is not None))


def _rewrite(op: Any, copy: _Copy, found: _Reshaped, collapses: bool) -> Any:
    """Puts the reshape before the copy, and returns it."""
    before = op.operands[0].owner.operation
    result = op.results[0].type
    with op.location, ir.InsertionPoint(op):
        source_type = ir.RankedTensorType.get(list(found.shape), copy.source.type.element_type)
        if collapses:
            source = tensor.collapse_shape(source_type, copy.source, found.groups)
        else:
            source = tensor.expand_shape(source_type, copy.source, found.groups, [], list(found.shape))
        dims = {d: i for i, d in enumerate(found.dims) if d is not None}
        count = len(found.dims)
        picked = ir.AffineMap.get(count, 0, [ir.AffineDimExpr.get(dims[d]) for d in range(len(found.shape))])
        room = tensor.EmptyOp(list(result.shape), result.element_type).result
        maps = [picked, ir.AffineMap.get_identity(count)]
        new = generic([source], room, maps, lambda x, _: cast_by(x, copy.casts))
    op.results[0].replace_all_uses_with(new.results[0])
    op.erase()
    before.erase()
    return source.owner.operation
