"""Reads a contraction's tensor inputs through the copies that frontends put before it, and gives it a zero fill of
its own. A transpose or a broadcast along a batch dim is only another indexing map: no data needs to move; where
elements are widened, the contraction can do that as it reads them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from mlir import ir
from mlir.dialects import arith, linalg, tensor

from .aliases import nested_ops
from .body import is_zero, multiply_add_dtypes, widening_casts
from .contraction import indexing_maps, is_structured, operands_of
from .fills import fill_on_tensors
from .generic import copied, generic, mark_alike

#: A copy is worth it where each of its elements is used so often.
OFTEN = 32


def read_through_copies(op: Any) -> Any:
    """Rewrites a contraction on tensors to read the sources of transposed, broadcast or widened inputs; returns the op
    that now computes it. Ops that have no users left are erased."""
    maps = [list(m.results) for m in indexing_maps(op)]
    inputs, (out,) = operands_of(op)
    sources = list(inputs)
    casts: list[list[Any]] = [[], []]
    sizes = sizes_of(maps, [*inputs, out])
    for i in (0, 1):
        # Copies of copies: every step reads through one.
        while (step := _step(sources[i], maps[i], maps[1 - i], maps[2])) is not None:
            if not step[2] and _breaks_batch(maps[i], step[1], maps[1 - i], maps[2], sizes):
                break
            sources[i], maps[i], more = step
            casts[i] = [*more, *casts[i]]
    if sources == inputs:
        return op
    new = generic_like(op, sources, out, maps, casts)
    if any(casts) and multiply_add_dtypes(new.regions[0].blocks[0]) is None:
        # Types that we have no kernels for: as it was.
        new.erase()
        return op
    op.results[0].replace_all_uses_with(new.results[0])
    op.erase()
    return new


def read_operands_through(op: Any) -> None:
    """Rewrites an elementwise op on tensors to read the sources of transposed and broadcast inputs, and constants as
    they are."""
    maps = [list(m.results) for m in indexing_maps(op)]
    inputs, (out,) = operands_of(op)
    sources, constants = list(inputs), dict[int, Any]()
    for i, value in enumerate(inputs):
        if (constant := _splat(value)) is not None:
            constants[i] = constant
        while i not in constants and (copy := copy_of(sources[i])) is not None and not copy[3]:
            source, source_map, copy_map, _ = copy
            at = {e: d for d, e in enumerate(copy_map)}
            sources[i], maps[i] = source, [maps[i][at[e]] for e in source_map]
    if sources == inputs and not constants:
        return
    new = generic_like(op, sources, out, maps, [[] for _ in inputs], constants)
    op.results[0].replace_all_uses_with(new.results[0])
    op.erase()


def _splat(value: Any) -> Any:
    """The attribute of the constant that all elements of a tensor are; None of others."""
    if isinstance(value.owner, ir.Block) or not isinstance(value.type, ir.RankedTensorType):
        return None
    owner = value.owner.operation
    if owner.name == "arith.constant":
        attribute = owner.attributes["value"]
        known = isinstance(attribute, (ir.DenseFPElementsAttr, ir.DenseIntElementsAttr)) and attribute.is_splat
        return attribute.get_splat_value() if known else None
    if not is_structured(owner) or len(owner.results) != 1:
        return None
    written = indexing_maps(owner)[-1]
    if len(written.results) < written.n_dims:
        return None  # A reduction over nothing is what its output was.
    # A fill, or what yields a constant whatever it reads.
    ops = [o.operation for o in owner.regions[0].blocks[0].operations]
    filled = owner.operands[0] if owner.name == "linalg.fill" else ops[0].operands[0] if len(ops) == 1 else None
    if filled is None or isinstance(filled.owner, ir.Block) or filled.owner.operation.name != "arith.constant":
        return None
    return filled.owner.operation.attributes["value"]


def _step(value: Any, exprs: list[Any], other: list[Any], out: list[Any]) -> tuple[Any, list[Any], list[Any]] | None:
    """(source, its map, casts) where `value`, indexed by `exprs`, is a copy of a tensor with permuted or additional
    dims, or wider elements."""
    copy = copy_of(value)
    if copy is None:
        return None
    source, source_map, copy_map, casts = copy
    at = {e: i for i, e in enumerate(copy_map)}
    kept = [exprs[at[e]] for e in source_map]
    dropped = [exprs[i] for e, i in at.items() if e not in source_map]
    # A loop that this input no longer has must be in both of the others, or it would be no loop of a contraction.
    if any(e not in other or e not in out for e in dropped):
        return None
    return source, kept, casts


def sizes_of(maps: Sequence[Sequence[Any]], operands: Sequence[Any]) -> dict[Any, int]:
    """The size of every loop that a map names as it is. maps: the results of those of the operands."""
    shapes = [value.type.shape for value in operands]
    return {e: n for exprs, shape in zip(maps, shapes, strict=True) for e, n in zip(exprs, shape, strict=True)}


def _breaks_batch(before: list[Any], after: list[Any], other: list[Any], out: list[Any], sizes: dict[Any, int]) -> bool:
    """Whether the batch is the outermost dim of an input, and would be inside of others in its source: the Spec would
    have a loop around it for every batch, and be part of no chain. That is worse than a copy whose elements are used
    often."""
    before, after = ([e for e in each if sizes[e] != 1] for each in (before, after))
    if not before or before[0] not in other or before[0] not in out or before[0] not in after:
        return False
    return after[0] != before[0] and math.prod(sizes[e] for e in out if e not in before) >= OFTEN


def copy_of(value: Any) -> tuple[Any, list[Any], list[Any], list[Any]] | None:
    """(source, its map, the copy's map, casts) where `value` is made by an op whose body yields its only input, perhaps
    by way of widening casts."""
    if isinstance(value.owner, ir.Block) or not is_structured(value.owner):
        return None
    op = value.owner.operation
    inputs, outputs = operands_of(op)
    casts = widening_casts(op.regions[0].blocks[0])
    if len(inputs) != 1 or len(outputs) != 1 or casts is None or not isinstance(inputs[0].type, ir.RankedTensorType):
        return None
    source_map, copy_map = indexing_maps(op)
    if not copy_map.is_permutation or not source_map.is_projected_permutation:
        return None
    exprs = list(source_map.results)
    if not all(isinstance(e, ir.AffineDimExpr) for e in exprs):  # a zero: the dim of a broadcast size one
        return None
    return inputs[0], exprs, list(copy_map.results), casts


def generic_like(
    op: Any,
    inputs: list[Any],
    out: Any,
    maps: list[list[Any]],
    casts: list[list[Any]] | None = None,
    constants: Mapping[int, Any] = MappingProxyType({}),
) -> Any:
    """A generic with the body of `op`, before `op`, with its discardable attributes. casts: what is done to the
    elements of each input first (nothing). constants: inputs, by number, that are these attributes instead."""
    count = indexing_maps(op)[0].n_dims
    written = [e.position for e in maps[-1] if isinstance(e, ir.AffineDimExpr)]
    kept = [i for i in range(len(inputs)) if i not in constants]
    inputs, maps = [inputs[i] for i in kept], [*(maps[i] for i in kept), maps[-1]]
    kinds = ["parallel" if d in written else "reduction" for d in range(count)]
    with op.location, ir.InsertionPoint(op):
        new = linalg.GenericOp(
            [out.type],
            inputs,
            [out],
            ir.ArrayAttr.get([ir.AffineMapAttr.get(ir.AffineMap.get(count, 0, m)) for m in maps]),
            ir.ArrayAttr.get([ir.Attribute.parse(f"#linalg.iterator_type<{k}>") for k in kinds]),
        ).operation
        body = new.regions[0].blocks.append(*(v.type.element_type for v in (*inputs, out)))
        old = op.regions[0].blocks[0]
        with ir.InsertionPoint(body):
            given = iter(body.arguments)
            values = {}
            for i, (argument, more) in enumerate(zip(old.arguments, [*(casts or [[]] * len(inputs)), []], strict=True)):
                start = arith.constant(argument.type, constants[i]) if i in constants else next(given)
                values[argument] = cast_by(start, more)
            for inner in old.operations:
                copied(inner.operation, values)
    mark_alike(new, op)
    return new


def cast_by(value: Any, casts: list[Any]) -> Any:
    """`value` after copies of the ops `casts`."""
    for op in casts:
        copy = op.clone()
        copy.operands[0] = value
        value = copy.results[0]
    return value


def own_zero_fill(op: Any) -> None:
    """Lets a contraction on tensors that starts from zeros start from a fill that nothing else uses: bufferization
    would otherwise copy the zeros, which costs as much as writing them and hides where they come from."""
    (out,) = operands_of(op)[1]
    fill = fill_on_tensors(out)
    if fill is None and not is_zero(out):
        return
    if fill is not None and len(list(out.uses)) == 1:
        return
    kind = out.type
    with op.location, ir.InsertionPoint(op):
        zero = arith.constant(kind.element_type, 0.0 if isinstance(kind.element_type, ir.FloatType) else 0)
        empty = tensor.EmptyOp(list(kind.shape), kind.element_type).result
        new = linalg.fill(zero, outs=[empty])
    op.operands[len(op.operands) - 1] = new


def own_empties(root: Any) -> None:
    """Lets every op under `root` that writes to a `tensor.empty` have one of its own. Importers share them; results
    that bufferization puts in one place by turns are no longer each op's own, which keeps ops out of Specs."""
    for empty in [o for o in nested_ops(root) if o.name == "tensor.empty"]:
        # Not into loops: what is allocated there is so in every turn.
        for use in list(empty.results[0].uses)[1:]:
            user = use.owner.operation
            if user.block == empty.block:
                user.operands[use.operand_number] = empty.clone(ip=ir.InsertionPoint(user)).results[0]


def join_empties(root: Any) -> None:
    """Lets elementwise ops under `root` that follow one another by single uses write to one `tensor.empty`, the first
    one's. Where a product is summed over loops around its Spec, what is done to the sums takes their places."""
    for op in [o for o in nested_ops(root) if is_structured(o)]:
        room = _room_of_input(op)
        if room is not None:
            op.operands[len(op.operands) - 1] = room


def _room_of_input(op: Any) -> Any:
    """The `tensor.empty` in whose place an input of `op` is that `op`, which writes to another, may overwrite: nobody
    else reads the input, and each of its elements is read where that of the result goes. None: there is no such one."""
    inputs, outputs = operands_of(op)
    if len(outputs) != 1 or not _is_empty(outputs[0]):
        return None
    maps = indexing_maps(op)
    if not maps[-1].is_permutation:
        return None
    for value, its_map in zip(inputs, maps, strict=False):
        if value.type == outputs[0].type and its_map == maps[-1]:
            room = _room(value)
            if room is not None and room.owner.operation.block == op.block:
                return room
    return None


def _room(value: Any) -> Any:
    """The `tensor.empty` in whose place a tensor is, which is used once, by way of inits; None where there is none."""
    while not _is_empty(value):
        if isinstance(value.owner, ir.Block) or not is_structured(value.owner) or len(list(value.uses)) != 1:
            return None
        outputs = operands_of(value.owner.operation)[1]
        if len(outputs) != 1:
            return None
        (value,) = outputs
    return value


def _is_empty(value: Any) -> bool:
    return not isinstance(value.owner, ir.Block) and bool(value.owner.operation.name == "tensor.empty")


def add_afterwards(op: Any) -> None:
    """Lets a contraction on tensors start from zeros, and adds what it started from to its result: an operand of the
    ops that follow, which its Spec does too, is only read."""
    (out,) = operands_of(op)[1]
    result, kind = op.results[0], out.type
    whole = ir.AffineMap.get_identity(kind.rank)
    with op.location, ir.InsertionPoint(op):
        zero = arith.constant(kind.element_type, 0.0 if isinstance(kind.element_type, ir.FloatType) else 0)
        empty = tensor.EmptyOp(list(kind.shape), kind.element_type).result
        op.operands[len(op.operands) - 1] = linalg.fill(zero, outs=[empty])
    with op.location, ir.InsertionPoint.after(op):
        room = tensor.EmptyOp(list(kind.shape), kind.element_type).result
        total = generic([result, out], room, [whole] * 3, lambda x, y, _: _plus(x, y))
    result.replace_all_uses_except(total.results[0], [total])


def _plus(x: Any, y: Any) -> Any:
    return arith.addf(x, y) if isinstance(x.type, ir.FloatType) else arith.addi(x, y)


def erase_unused(root: Any) -> None:
    """Erases the copies, fills, constants and `tensor.empty`s under `root` whose tensors nothing uses (any more)."""
    # Users come after what they use. Each op is looked at once: an erased op must not be touched again.
    for op in reversed(list(nested_ops(root))):
        if _is_simple(op) and not any(len(list(r.uses)) for r in op.results):
            op.erase()


def _is_simple(op: Any) -> bool:
    if not op.results or not all(isinstance(r.type, ir.RankedTensorType) for r in op.results):
        return False
    if op.name in ("tensor.empty", "arith.constant"):
        return True
    if not is_structured(op):
        return False
    body = op.regions[0].blocks[0]
    return len(list(body.operations)) == 1 or widening_casts(body) is not None
