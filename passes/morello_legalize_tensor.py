"""The pass `morello-legalize-tensor`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import mlir.ir as ir
from mlir.dialects import bufferization, linalg, tensor

from morello_mlir.lifting.contraction import indexing_maps, is_structured

from .base import Pass
from .symbols import all_ops, functions
from .types import DYNAMIC, function_type, is_memref, is_shaped, is_tensor, shape_of

#: On a function: tensors were in it, so the buffers that bufferization allocates there are ours to free.
HAD_TENSORS = "morello.had_tensors"

_MARK = "morello.decompose"
_GROUP = "morello.group"
_DECOMPOSED = ("linalg.softmax", "linalg.pack", "linalg.unpack")

# Upstream decomposes these through its transform dialect only.
_SCRIPT = """
module attributes {transform.with_named_sequence} {
  transform.named_sequence @decompose(%root: !transform.any_op) {
    %softmax = transform.structured.match ops{["linalg.softmax"]} attributes{morello.decompose} in %root
      : (!transform.any_op) -> !transform.any_op
    %parts = transform.structured.decompose_interface %softmax : (!transform.any_op) -> !transform.any_op
    %pack = transform.structured.match ops{["linalg.pack"]} attributes{morello.decompose} in %root
      : (!transform.any_op) -> !transform.op<"linalg.pack">
    %pad, %expand, %transpose = transform.structured.lower_pack %pack : (!transform.op<"linalg.pack">)
      -> (!transform.op<"tensor.pad">, !transform.op<"tensor.expand_shape">, !transform.op<"linalg.transpose">)
    %unpack = transform.structured.match ops{["linalg.unpack"]} attributes{morello.decompose} in %root
      : (!transform.any_op) -> !transform.op<"linalg.unpack">
    %empty, %back, %collapse, %slice = transform.structured.lower_unpack %unpack : (!transform.op<"linalg.unpack">)
      -> (!transform.op<"tensor.empty">, !transform.op<"linalg.transpose">, !transform.op<"tensor.collapse_shape">,
          !transform.op<"tensor.extract_slice">)
    transform.yield
  }
}
"""


@dataclass(frozen=True)
class LegalizeTensor(Pass):
    """Decompose what upstream cannot bufferize or lower to loops: softmax, pack and unpack; pads and concatenations of
    empty tensors become what they make, as upstream's would be slices that begin behind the end. What no loop computes
    is the output that was given: upstream's bufferization takes all of one for written that a body does not read.

    Ops that carry `morello.group` are left to `morello-lift`. Functions with tensors in them are marked, for
    `morello-deallocate`.
    """

    name: ClassVar[str] = "morello-legalize-tensor"
    summary: ClassVar[str] = "Decompose what upstream cannot bufferize or lower: softmax, pack, unpack, empty parts"

    def run(self, op: Any) -> None:
        for function in functions(op):
            # Without what is in their bodies, which goes with them.
            for each in [each for each in all_ops(function) if is_structured(each)]:
                _skip(each)
            ops = all_ops(function)
            if _mentions_tensors(function, ops):
                function.operation.attributes[HAD_TENSORS] = ir.UnitAttr.get()
            found = [each for each in ops if each.name in _DECOMPOSED and _GROUP not in each.attributes]
            for each in [each for each in ops if each.name in _EMPTY]:
                _EMPTY[each.name](each)
            if found:
                self._mark(found)
                # Not on the module: the bindings destroy a root that has no parent, as a detached copy has none.
                _decompose(function)

    def _mark(self, found: list[Any]) -> None:
        for each in found:
            if each.name == "linalg.softmax":
                each = softmax_on_tensors(each)
            elif _has_dynamic_tiles(each):
                self.fail(each, "with an inner tile of dynamic size is not supported: give the tile as a constant")
            elif each.name == "linalg.pack":
                each = _with_padding(each)
            each.attributes[_MARK] = ir.UnitAttr.get()


def _mentions_tensors(function: Any, ops: list[Any]) -> bool:
    signature = function_type(function)
    if any(is_tensor(t) for t in [*signature.inputs, *signature.results]):
        return True
    return any(is_tensor(result.type) for op in ops for result in op.results)


def _has_dynamic_tiles(op: Any) -> bool:
    return DYNAMIC in ir.DenseI64ArrayAttr(op.attributes["static_inner_tiles"])


def _with_padding(pack: Any) -> Any:
    """A pack of complex numbers with a zero to pad with, of which upstream's decomposition knows none."""
    kind = pack.operands[0].type.element_type
    if not isinstance(kind, ir.ComplexType) or pack.opview.padding_value is not None:
        return pack
    with ir.InsertionPoint(pack), pack.location:
        part = ir.FloatAttr.get(kind.element_type, 0.0)
        zero = ir.Operation.create(
            "complex.constant", results=[kind], attributes={"value": ir.ArrayAttr.get([part] * 2)}
        )
        new = linalg.pack(
            *pack.operands,
            pack.opview.inner_dims_pos,
            list(pack.opview.static_inner_tiles),
            padding_value=zero.results[0],
            outer_dims_perm=pack.opview.outer_dims_perm,
        )
    pack.results[0].replace_all_uses_with(new)
    pack.erase()
    return new.owner


def _join(concat: Any) -> None:
    """Leaves out what adds nothing to a concatenation."""
    dim = ir.IntegerAttr(concat.attributes["dim"]).value
    kind = concat.results[0].type
    parts = [_uncast(value) for value in concat.operands]
    kept = [value for value in parts if value.type.shape[dim] != 0]
    with ir.InsertionPoint(concat), concat.location:
        if kind.has_static_shape and 0 in kind.shape:
            new = tensor.EmptyOp(kind.shape, kind.element_type).result
        elif len(kept) == 1 and kept[0].type == kind:
            new = kept[0]
        elif kept and len(kept) < len(parts):
            new = tensor.ConcatOp(kind, dim, kept).result
        else:
            return
    concat.results[0].replace_all_uses_with(new)
    concat.erase()


def _uncast(value: Any) -> Any:
    """The tensor itself, of one whose sizes a cast may have made unknown."""
    while not isinstance(value.owner, ir.Block) and value.owner.name == "tensor.cast":
        source = value.owner.operands[0]
        if not is_shaped(source.type) or shape_of(source.type).count(None) > shape_of(value.type).count(None):
            break
        value = source
    return value


def _generate(pad: Any) -> None:
    """Puts the padding of an empty tensor in its place: every element is made by its region."""
    kind = pad.results[0].type
    if 0 not in pad.operands[0].type.shape or not kind.has_static_shape:
        return
    with ir.InsertionPoint(pad), pad.location:
        made = ir.Operation.create("tensor.generate", results=[kind], regions=1)
    pad.regions[0].blocks[0].append_to(made.regions[0])
    pad.results[0].replace_all_uses_with(made.results[0])
    pad.erase()


def _skip(op: Any) -> None:
    """Puts the outputs in the place of the results of a structured op one of whose loops makes no trip."""
    if _GROUP in op.attributes or not op.results or not all(is_tensor(result.type) for result in op.results):
        return
    maps = indexing_maps(op)
    sizes = [size for value in list(op.operands)[: len(maps)] for size in getattr(value.type, "shape", ())]
    exprs = [expr for map_ in maps for expr in map_.results]
    if any(size == 0 and isinstance(expr, ir.AffineDimExpr) for size, expr in zip(sizes, exprs, strict=False)):
        for result, output in zip(op.results, list(op.operands)[-len(op.results) :], strict=True):
            result.replace_all_uses_with(output)
        op.erase()


#: What is done about ops of tensors that may be empty.
_EMPTY = {"tensor.concat": _join, "tensor.pad": _generate}


def softmax_on_tensors(op: Any) -> Any:
    """The decomposition wants tensors: read a memref softmax's operand as one, and write its result back."""
    source, destination = op.operands[0], op.operands[1]
    if not is_memref(source.type):
        return op
    with ir.InsertionPoint(op), op.location:
        type_ = ir.RankedTensorType.get(source.type.shape, source.type.element_type)
        value = bufferization.ToTensorOp(type_, source, restrict=True).result
        sizes = [
            tensor.DimOp(value, _constant(axis)).result if size == DYNAMIC else size
            for axis, size in enumerate(source.type.shape)
        ]
        empty = tensor.EmptyOp(sizes, source.type.element_type).result
        new = linalg.SoftmaxOp([type_], value, empty, op.attributes["dimension"])
        bufferization.MaterializeInDestinationOp(None, new.results[0], destination, writable=True)
    op.erase()
    return new.operation


def _constant(value: int) -> Any:
    index = ir.IndexType.get()
    return ir.Operation.create(
        "arith.constant", results=[index], attributes={"value": ir.IntegerAttr.get(index, value)}
    ).result


def _decompose(function: Any) -> None:
    from mlir.dialects.transform import interpreter

    script = _script(function.operation.context)
    interpreter.apply_named_sequence(function.operation, script.body.operations[0].operation, script.operation)


@lru_cache(maxsize=2)
def _script(context: Any) -> Any:
    return ir.Module.parse(_SCRIPT, context)
