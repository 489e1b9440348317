"""The order of dims of contractions on tensors: which comes outermost, and which operand is the left one. Where nothing
speaks against it, that is the order of Specs and chains."""

from __future__ import annotations

import math
from typing import Any

from mlir import ir
from mlir.dialects import arith, linalg, tensor

from .body import is_zero
from .constants import depends_on_constants
from .contraction import indexing_maps, is_structured, operands_of
from .fills import fill_on_tensors
from .generic import generic
from .inputs import OFTEN, copy_of, generic_like, sizes_of

#: So many bytes kernels multiply as one group.
GROUP = 4


def batch_outermost(op: Any) -> Any:
    """Has a contraction on tensors read inputs in which its batch is inside of other dims as copies in which it comes
    first, as it does in the result, where their elements are used often; returns the op that now computes it."""
    maps = [list(m.results) for m in indexing_maps(op)]
    inputs, (out,) = operands_of(op)
    sizes = sizes_of(maps, [*inputs, out])
    batch = [e for e in maps[2] if e in maps[0] and e in maps[1] and sizes[e] != 1]
    if not batch or [e for e in maps[2] if sizes[e] != 1][: len(batch)] != batch:
        return op
    sources = list(inputs)
    for i in (0, 1):
        long = [e for e in maps[i] if sizes[e] != 1]
        order = [*batch, *(e for e in maps[i] if e not in batch)]
        reuse = math.prod(sizes[e] for e in maps[2] if e not in maps[i])
        # A copy moves whole rows, or it is dear.
        if long[: len(batch)] != batch and long[-1] == order[-1] and reuse >= 2 * OFTEN:
            sources[i], maps[i] = _transposed(op, inputs[i], maps[i], order), order
    return op if sources == inputs else _replaced(op, sources, out, maps)


def channels_innermost(op: Any) -> Any:
    """Has a convolution of bytes on tensors read constant filters, of which the taps are inside of the channels, as a
    copy with the channels inside; returns the op that now computes it. Kernels multiply groups of neighbours along k:
    of channels the image has whole rows for each tap."""
    maps = [list(m.results) for m in indexing_maps(op)]
    inputs, (out,) = operands_of(op)
    plain = [all(isinstance(e, ir.AffineDimExpr) for e in m) for m in maps]
    if plain[:2] not in ([True, False], [False, True]) or any(str(v.type.element_type) != "i8" for v in inputs):
        return op
    i = plain.index(True)
    sizes = dict(zip(maps[i], inputs[i].type.shape, strict=True))
    reduced = [e for e in maps[i] if e not in maps[2] and sizes[e] != 1]
    channels = [e for e in reduced if e in maps[1 - i]]
    taps = [e for e in reduced if e not in channels]
    if not taps or reduced[: len(channels)] != channels or math.prod(sizes[e] for e in channels) < GROUP:
        return op
    if not depends_on_constants(inputs[i], {}):
        return op
    turned = iter([*taps, *channels])
    order = [next(turned) if e in reduced else e for e in maps[i]]
    sources = list(inputs)
    sources[i], maps[i] = _transposed(op, inputs[i], maps[i], order), order
    return _replaced(op, sources, out, maps)


def _transposed(op: Any, value: Any, before: list[Any], after: list[Any]) -> Any:
    """A copy of `value`, before `op`, with its dims, which `before` names, in the order `after`."""
    shape = [value.type.shape[before.index(e)] for e in after]
    with op.location, ir.InsertionPoint(op):
        room = tensor.EmptyOp(shape, value.type.element_type).result
        dims = [ir.AffineDimExpr.get(after.index(e)) for e in before]
        maps = [ir.AffineMap.get(len(after), 0, dims), ir.AffineMap.get_identity(len(after))]
        return generic([value], room, maps, lambda x, _: x).results[0]


def result_as_copied(op: Any) -> Any:
    """Has a contraction of floats on tensors, from zeros, make its result in the order of rows and columns in which the
    only reader, a transposing copy, has them: its operands change places. Returns the op that now computes it."""
    copy = _only_copy(op)
    inputs, (out,) = operands_of(op)
    maps = [list(m.results) for m in indexing_maps(op)]
    same = inputs[0].type.element_type == inputs[1].type.element_type
    if copy is None or not same or not isinstance(out.type.element_type, ir.FloatType):
        return op
    if fill_on_tensors(out) is None and not is_zero(out):
        return op
    sizes = sizes_of(maps, [*inputs, out])
    own = [d for d, e in enumerate(maps[2]) if sizes[e] != 1 and not (e in maps[0] and e in maps[1])]
    _, exprs, copied, _ = copy_of(copy.results[0]) or (None, [], [], [])
    if len(own) != 2 or (maps[2][own[0]] in maps[0]) == (maps[2][own[1]] in maps[0]):
        return op
    if copied.index(exprs[own[0]]) < copied.index(exprs[own[1]]):
        return op
    order = list(range(len(maps[2])))
    order[own[0]], order[own[1]] = own[1], own[0]
    with op.location, ir.InsertionPoint(op):
        element = out.type.element_type
        room = tensor.EmptyOp([out.type.shape[d] for d in order], element).result
        zeros = linalg.fill(arith.constant(element, 0.0), outs=[room])
    new = generic_like(op, inputs[::-1], zeros, [maps[1], maps[0], [maps[2][d] for d in order]])
    with copy.location, ir.InsertionPoint(copy):
        count = len(copied)
        places = [ir.AffineDimExpr.get(copied.index(exprs[d])) for d in order]
        both = [ir.AffineMap.get(count, 0, places), ir.AffineMap.get_identity(count)]
        again = generic([new.results[0]], operands_of(copy)[1][0], both, lambda x, _: x)
    copy.results[0].replace_all_uses_with(again.results[0])
    copy.erase()
    op.erase()
    return new


def _only_copy(op: Any) -> Any:
    """The copy that is the only reader of a contraction's result and leaves elements as they are; None: no such one."""
    uses = list(op.results[0].uses)
    reader = uses[0].owner.operation if len(uses) == 1 else None
    if reader is None or not is_structured(reader) or len(reader.results) != 1 or reader.block != op.block:
        return None
    found = copy_of(reader.results[0])
    return reader if found is not None and found[0] == op.results[0] and not found[3] else None


def _replaced(op: Any, inputs: list[Any], out: Any, maps: list[list[Any]]) -> Any:
    new = generic_like(op, inputs, out, maps)
    op.results[0].replace_all_uses_with(new.results[0])
    op.erase()
    return new
