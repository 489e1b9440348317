"""Assertions in the bodies of linalg ops, taken out of them: what is left computes, and can be in a nest.

    linalg.generic ... { assert c(i), "..."; ... tensor.extract %table[i, d1] ... }

becomes a reduction, whether c holds everywhere, an assertion of that, and the op without it. As both may run in any
order, the op then reads no place that is not there: `minui` of the place and the last one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mlir import ir
from mlir.dialects import arith, cf, linalg, tensor

from ..contraction import indexing_maps
from ..generic import copied
from ..tables import loads_of

ASSERT = "cf.assert"
_PURE = ("arith.", "math.", "linalg.index")
#: What ends the process where it is not defined, and must not come before an assertion about that.
_TRAPS = tuple(f"arith.{op}" for op in ("div", "rem", "ceildiv", "floordiv"))


def take_out_assertions(op: Any) -> None:
    """Takes those of a `linalg.generic` on tensors out. Others stay as they are, and ops whose assertions depend on
    more than some elements of inputs, all of whose loops these say the size of, or that divide integers."""
    block = op.regions[0].blocks[0]
    asserts = [o.operation for o in block.operations if o.operation.name == ASSERT]
    if not asserts or not len(op.results) or not all(_is_static(v.type) for v in op.operands):
        return
    if any(o.operation.name.startswith(_TRAPS) and not _is_float(o.operation) for o in block.operations):
        return
    cone = _Cone([a.operands[0] for a in asserts], block)
    maps = indexing_maps(op)
    inputs = [i for i, a in enumerate(block.arguments) if a in cone.arguments]
    loops = sorted({d for i in inputs for d in _dims(maps[i])} | cone.loops)
    if not cone.pure or not inputs or not _is_sized(loops, [maps[i] for i in inputs]):
        return
    with op.location, ir.InsertionPoint(op):
        results = _holds(op, asserts, cone, inputs, loops)
        for each, result in zip(asserts, results, strict=True):
            cf.AssertOp(tensor.ExtractOp(result, []).result, ir.StringAttr(each.attributes["msg"]))
    for each in asserts:
        each.erase()
    for load in loads_of(op):
        _stay_inside(load)


def _is_float(op: Any) -> bool:
    return isinstance(op.results[0].type, ir.FloatType)


def _is_static(kind: Any) -> bool:
    return not isinstance(kind, ir.ShapedType) or (kind.has_static_shape and 0 not in list(kind.shape))


class _Cone:
    """What values in a body are made of. ops: in order; arguments: of the block; loops: whose positions they use; pure:
    whether that is all."""

    def __init__(self, values: list[Any], block: Any):
        self.arguments: list[Any] = []
        self.loops: set[int] = set()
        self.pure = True
        found: list[Any] = []
        todo = list(values)
        while todo:
            value = todo.pop()
            if isinstance(value.owner, ir.Block):
                self.pure &= value.owner == block
                self.arguments.append(value)
                continue
            owner = value.owner.operation
            if owner in found or owner.block != block:
                continue
            self.pure &= owner.name.startswith(_PURE) and not len(owner.regions)
            if owner.name == "linalg.index":
                self.loops.add(ir.IntegerAttr(owner.attributes["dim"]).value)
            found.append(owner)
            todo += list(owner.operands)
        self.ops = [o.operation for o in block.operations if o.operation in found]


def _dims(affine: Any) -> Iterator[int]:
    """The loops that are indices by themselves."""
    for e in affine.results:
        if isinstance(e, ir.AffineDimExpr):
            yield e.position


def _is_sized(loops: list[int], maps: list[Any]) -> bool:
    plain = all(isinstance(e, (ir.AffineDimExpr, ir.AffineConstantExpr)) for m in maps for e in m.results)
    return plain and bool(loops) and set(loops) <= {d for m in maps for d in _dims(m)}


def _holds(op: Any, asserts: list[Any], cone: _Cone, inputs: list[int], loops: list[int]) -> list[Any]:
    """For each assertion a tensor of rank 0: whether it holds at all points."""
    at = {d: ir.AffineDimExpr.get(i) for i, d in enumerate(loops)}
    kept = [at.get(d, ir.AffineConstantExpr.get(0)) for d in range(indexing_maps(op)[0].n_dims)]
    maps = [
        ir.AffineMap.get(len(loops), 0, [kept[e.position] if isinstance(e, ir.AffineDimExpr) else e for e in m.results])
        for m in (indexing_maps(op)[i] for i in inputs)
    ]
    maps += [ir.AffineMap.get(len(loops), 0, [])] * len(asserts)
    bit = ir.IntegerType.get_signless(1)
    true = arith.constant(bit, 1)
    starts = [linalg.fill(true, outs=[tensor.EmptyOp([], bit).result]) for _ in asserts]
    values = [op.operands[i] for i in inputs]
    made = linalg.GenericOp(
        [s.type for s in starts],
        values,
        starts,
        ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for m in maps]),
        ir.ArrayAttr.get([ir.Attribute.parse("#linalg.iterator_type<reduction>")] * len(loops)),
    )
    arguments = [op.regions[0].blocks[0].arguments[i] for i in inputs]
    block = made.regions[0].blocks.append(*(a.type for a in arguments), *(bit for _ in asserts))
    known = dict(zip(arguments, block.arguments, strict=False))
    with ir.InsertionPoint(block):
        for each in cone.ops:
            copy = copied(each, known)
            if each.name == "linalg.index":
                dim = loops.index(ir.IntegerAttr(each.attributes["dim"]).value)
                copy.attributes["dim"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), dim)
        so_far = list(block.arguments)[len(arguments) :]
        conditions = [known.get(a.operands[0], a.operands[0]) for a in asserts]
        linalg.YieldOp([arith.andi(s, c) for s, c in zip(so_far, conditions, strict=True)])
    return list(made.results)


def _stay_inside(load: Any) -> None:
    """Lets an op read its table's last place where it would read beyond."""
    shape = list(load.operands[0].type.shape)
    with load.location, ir.InsertionPoint(load):
        for axis, place in enumerate(list(load.operands)[1:]):
            owner = None if isinstance(place.owner, ir.Block) else place.owner.operation
            if owner is None or owner.name not in ("linalg.index", "arith.constant"):
                last = arith.constant(ir.IndexType.get(), shape[axis] - 1)
                load.operands[1 + axis] = arith.minui(place, last)


def has_assertion(op: Any) -> bool:
    """Whether the body of a linalg op asserts something."""
    return op.name == "linalg.generic" and any(o.operation.name == ASSERT for o in op.regions[0].blocks[0].operations)
