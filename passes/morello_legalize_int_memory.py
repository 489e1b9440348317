"""The pass `morello-legalize-int-memory`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

import mlir.ir as ir
from mlir.dialects import arith

from .base import Pass
from .symbols import all_ops
from .types import function_type, is_memref, set_function_type, with_element

_READS = {"memref.load": 0, "vector.load": 0}
_WRITES = {"memref.store": 1, "vector.store": 1}
_WIDTHS = (8, 16, 32, 64)


@dataclass(frozen=True)
class LegalizeIntMemory(Pass):
    """Keep integers of odd widths, `i1` above all, in whole bytes of memory.

    Upstream's lowering of memrefs aborts on them. A memref of `iN` becomes one of the next of i8, i16, i32, i64; loads
    truncate (`i1`: anything but zero is true) and stores extend. Runs when only loads and stores touch memory.
    """

    name: ClassVar[str] = "morello-legalize-int-memory"
    summary: ClassVar[str] = "Keep i1 and other odd integers in whole bytes of memory"

    def run(self, op: Any) -> None:
        with op.operation.location:
            touched = [each for each in all_ops(op) if _touches(each)]
            for each in touched:
                self._check(each)
            for each in touched:
                if each.name in ("func.func", "memref.global"):
                    _rewrite_declaration(each)
            for each in touched:
                self._rewrite(each)

    def _check(self, op: Any) -> None:
        """Refuse what converts elements on its own: masked, gathering and other accesses of vectors."""
        simple = op.name in _READS or op.name in _WRITES or not op.name.startswith("vector.")
        if not simple and any(_memref_is_narrow(v.type) for v in op.operands):
            self.fail(op, "on memory of i1 or another odd integer type is not supported")

    def _rewrite(self, op: Any) -> None:
        for region in op.regions:
            for block in region:
                for argument in block.arguments:
                    argument.set_type(legal_type(argument.type))
        if op.name in _READS and is_narrow(ir.MemRefType(op.operands[0].type).element_type, stored=op.results[0].type):
            _rewrite_load(op)
        elif op.name in _WRITES:
            _rewrite_store(op)
        else:
            for result in op.results:
                result.set_type(legal_type(result.type))


def storage_type(element: Any) -> Any:
    """The type that holds an integer of an odd width in memory; any other element type is its own."""
    if not isinstance(element, ir.IntegerType) or element.width in _WIDTHS or element.width > _WIDTHS[-1]:
        return element
    return ir.IntegerType.get_signless(next(w for w in _WIDTHS if w >= element.width))


def legal_type(type_: Any) -> Any:
    """`type_` with its memory made legal; anything but memrefs is returned as it is."""
    if not is_memref(type_):
        return type_
    element = type_.element_type
    legal = storage_type(element)
    return type_ if legal == element else with_element(type_, legal)


def is_narrow(memory: Any, *, stored: Any) -> bool:
    """Whether a value of type `stored` (a scalar or vector) needs conversion to or from elements of type `memory`."""
    element = stored.element_type if isinstance(stored, ir.VectorType) else stored
    return storage_type(element) != element and memory in (element, storage_type(element))


def _memref_is_narrow(type_: Any) -> bool:
    return is_memref(type_) and legal_type(type_) != type_


def _touches(op: Any) -> bool:
    types = [v.type for v in op.operands] + [r.type for r in op.results]
    types += [a.type for region in op.regions for block in region for a in block.arguments]
    if op.name == "func.func":
        types += [*function_type(op).inputs, *function_type(op).results]
    elif op.name == "memref.global":
        types.append(ir.TypeAttr(op.attributes["type"]).value)
    return any(_memref_is_narrow(t) for t in types)


def _rewrite_declaration(op: Any) -> None:
    if op.name == "func.func":
        signature = function_type(op)
        set_function_type(op, [legal_type(t) for t in signature.inputs], [legal_type(t) for t in signature.results])
        return
    type_ = ir.MemRefType(ir.TypeAttr(op.attributes["type"]).value)
    legal = legal_type(type_)
    op.attributes["type"] = ir.TypeAttr.get(legal)
    initial = op.attributes.get("initial_value")
    if isinstance(initial, ir.DenseElementsAttr):
        op.attributes["initial_value"] = _widened(ir.DenseIntElementsAttr(initial), legal)


def _widened(values: Any, type_: Any) -> Any:
    """Constant contents in the wider type, as stores would leave them there."""
    element = type_.element_type
    narrow = ir.IntegerType(values.type.element_type).width
    shaped = ir.RankedTensorType.get(type_.shape, element)
    numbers = [_extended(number, narrow) for number in _numbers(values)]
    if values.is_splat:
        return ir.DenseElementsAttr.get_splat(shaped, ir.IntegerAttr.get(element, numbers[0]))
    return ir.DenseElementsAttr.get([ir.IntegerAttr.get(element, number) for number in numbers], shaped)


def _extended(number: int, width: int) -> int:
    """The value of the low `width` bits: signed, but true is 1."""
    low = number & ((1 << width) - 1)
    return low - (1 << width) if width > 1 and low >> (width - 1) else low


def _numbers(values: Any) -> list[int]:
    """The elements of a constant of odd integers; one of them for a splat."""
    if ir.IntegerType(values.type.element_type).width == 1 and not values.is_splat:
        return [int(values[i]) for i in range(len(values))]
    # The bindings give access to i1 and whole bytes only; the text has them all, in hexadecimal where it is long.
    text = str(values).partition("<")[2].rpartition("> :")[0]
    if text.startswith('"0x'):
        data = bytes.fromhex(text[3:-1])
        size = len(data) // len(values)
        return [int.from_bytes(data[i : i + size], "little") for i in range(0, len(data), size)]
    words = re.findall(r"-?\d+|true|false", text)
    return [int(word == "true") if word in ("true", "false") else int(word) for word in words]


def _like(value_type: Any, element: Any) -> Any:
    """`element`, or a vector of it in the shape of `value_type`."""
    return ir.VectorType.get(value_type.shape, element) if isinstance(value_type, ir.VectorType) else element


def _constant(type_: Any, value: int) -> Any:
    element = type_.element_type if isinstance(type_, ir.VectorType) else type_
    attribute = ir.IntegerAttr.get(element, value)
    return arith.ConstantOp(
        type_, ir.DenseElementsAttr.get_splat(type_, attribute) if isinstance(type_, ir.VectorType) else attribute
    ).result


def _rewrite_load(op: Any) -> None:
    result = op.results[0]
    narrow = result.type
    element = narrow.element_type if isinstance(narrow, ir.VectorType) else narrow
    wide = _like(narrow, storage_type(element))
    result.set_type(wide)
    with ir.InsertionPoint(op), op.location:
        zero = _constant(wide, 0) if element.width == 1 else None
    after = _next_of(op)
    with ir.InsertionPoint(after), op.location:
        if zero is not None:
            value = arith.CmpIOp(arith.CmpIPredicate.ne, result, zero)
        else:
            value = arith.TruncIOp(narrow, result)
    result.replace_all_uses_except(value.result, value.operation)


def _next_of(op: Any) -> Any:
    """The op after `op` in its block: loads are never last."""
    following = False
    for each in op.block:
        if following:
            return each
        following = each.operation == op
    raise AssertionError("a load ends no block")


def _rewrite_store(op: Any) -> None:
    value, target = op.operands[0], op.operands[1]
    if not is_narrow(target.type.element_type, stored=value.type):
        return
    element = value.type.element_type if isinstance(value.type, ir.VectorType) else value.type
    with ir.InsertionPoint(op), op.location:
        # Sign-extended, so that numpy reads an i4 of -1 as -1; but true is 1.
        extension = arith.ExtUIOp if element.width == 1 else arith.ExtSIOp
        op.operands[0] = extension(_like(value.type, storage_type(element)), value).result
