"""The pass `morello-parallel-to-pool`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import mlir.ir as ir
from mlir.dialects import arith, func, llvm, memref

from .base import Pass
from .symbols import all_ops, functions, symbol_name

#: On the `scf.parallel` loops of `morello-apply`: their trips are what threads do.
THREADS = "morello.threads"
#: The fork-join of the runtime: `void (ptr function, ptr context, i64 calls)`.
ENTRY = "morello_parallel"


@dataclass(frozen=True)
class ParallelToPool(Pass):
    """Run the `scf.parallel` loops marked `morello.threads` on the thread pool of the runtime.

    The body of a loop becomes a function of a context and a trip number; the loop becomes a call of `@morello_parallel`
    with that function, the context (the values that the body needs, eight bytes each, on the stack) and the number of
    trips. Loops that are left to upstream's passes run in one thread, with the same results.

    Before: one-dimensional loops from zero in steps of one, as `morello-apply` makes them. A loop of another form, or
    with a body that needs values other than numbers and rank-0 memrefs, stays.
    """

    name: ClassVar[str] = "morello-parallel-to-pool"
    summary: ClassVar[str] = "Run the parallel loops of morello-apply on the runtime's thread pool"

    def run(self, op: Any) -> None:
        loops = [each for each in all_ops(op) if each.name == "scf.parallel" and THREADS in each.attributes]
        names = {symbol_name(each) for each in op.operation.regions[0].blocks[0]}
        for loop in loops:
            if _trips(loop) is None or any(_kind(v.type) is None for v in _needed(loop)):
                continue
            if ENTRY not in names:
                _declare(op, loop)
            elif ENTRY not in {symbol_name(f) for f in functions(op)}:
                self.fail(op, f"@{ENTRY} is something else than the runtime's function")
            number = 0
            while (name := f"morello_fork_{number}") in names:
                number += 1
            names |= {name, ENTRY}
            _outline(op, loop, name)


def _types() -> tuple[Any, Any, Any]:
    return ir.Type.parse("!llvm.ptr"), ir.IntegerType.get_signless(64), ir.IndexType.get()


def _trips(loop: Any) -> Any | None:
    """The number of trips of a loop over 0, 1, 2, ... without reductions; None where it has another form."""
    if len(loop.operands) != 3 or len(loop.results):
        return None
    lower, upper, step = loop.operands
    return upper if (_constant(lower), _constant(step)) == (0, 1) else None


def _constant(value: Any) -> int | None:
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return None
    attribute = owner.attributes["value"]
    return ir.IntegerAttr(attribute).value if isinstance(attribute, ir.IntegerAttr) else None


def _needed(loop: Any) -> list[Any]:
    """The values from outside that the body of a loop uses, in order; constants are not counted."""
    own = {a for region in loop.regions for block in region for a in block.arguments}
    found: dict[Any, None] = {}
    for each in all_ops(loop)[1:]:
        for value in each.operands:
            if value not in own and not _is_constant(value):
                found.setdefault(value)
        own.update(each.results)
        own.update(a for region in each.regions for block in region for a in block.arguments)
    return list(found)


def _is_constant(value: Any) -> bool:
    return not isinstance(value.owner, ir.Block) and value.owner.name == "arith.constant"


def _kind(type_: Any) -> str | None:
    """How a value is passed in eight bytes: `index`, `int`, `float`, `memref`; None: not at all."""
    if isinstance(type_, ir.IndexType):
        return "index"
    if isinstance(type_, ir.IntegerType):
        return "int" if ir.IntegerType(type_).width <= 64 else None
    if isinstance(type_, (ir.F32Type, ir.F64Type)):
        return "float"
    if isinstance(type_, ir.MemRefType):
        memref_type = ir.MemRefType(type_)
        plain = memref_type.memory_space is None and memref_type.affine_map == ir.AffineMap.get_identity(0)
        return "memref" if memref_type.rank == 0 and plain else None
    return None


def _declare(module: Any, loop: Any) -> None:
    with loop.location, ir.InsertionPoint(module.operation.regions[0].blocks[0]):
        pointer, i64, _ = _types()
        func.FuncOp(ENTRY, ([pointer, pointer, i64], []), visibility="private")


def _outline(module: Any, loop: Any, name: str) -> None:
    """Puts the body of `loop` into a function `name`, and a call of the pool in its place."""
    values = _needed(loop)
    with loop.location:
        pointer, i64, _ = _types()
        with ir.InsertionPoint(module.operation.regions[0].blocks[0]):
            function = func.FuncOp(name, ([pointer, i64], []), visibility="private")
            function.attributes["llvm.linkage"] = ir.Attribute.parse("#llvm.linkage<internal>")
        _fill(function.add_entry_block(), loop, values)
        _call(loop, name, values)
    loop.erase()


def _fill(block: Any, loop: Any, values: list[Any]) -> None:
    """The body of a loop in a function of (context, trip number)."""
    context, trip = block.arguments
    body = loop.regions[0].blocks[0]
    with ir.InsertionPoint(block):
        new = {value: _loaded(context, i, value.type) for i, value in enumerate(values)}
        new[body.arguments[0]] = arith.index_cast(ir.IndexType.get(), trip)
        end = func.ReturnOp([])
    for each in all_ops(loop)[1:]:
        for i, value in enumerate(each.operands):
            if _is_constant(value) and value not in new and _is_outside(value, loop):
                with ir.InsertionPoint.at_block_begin(block):
                    new[value] = value.owner.clone().results[0]
            if value in new:
                each.operands[i] = new[value]
    for each in list(body.operations)[:-1]:
        each.operation.move_before(end.operation)


def _is_outside(value: Any, loop: Any) -> bool:
    parent = value.owner.parent
    while parent is not None:
        if parent.operation == loop.operation:
            return False
        parent = parent.operation.parent
    return True


def _loaded(context: Any, at: int, type_: Any) -> Any:
    """The value of number `at` in the context."""
    pointer, i64, index = _types()
    place = llvm.GEPOp(pointer, context, [], ir.DenseI32ArrayAttr.get([at]), i64, None).result
    kind = _kind(type_)
    if kind == "float":
        return llvm.load(type_, place)
    if kind == "memref":
        base = llvm.load(pointer, place)
        struct = ir.Type.parse("!llvm.struct<(ptr, ptr, i64)>")
        whole = llvm.mlir_poison(struct)
        zero = llvm.mlir_constant(ir.IntegerAttr.get(i64, 0))
        for position, part in enumerate((base, base, zero)):
            whole = llvm.insertvalue(whole, part, ir.DenseI64ArrayAttr.get([position]))
        return _cast(type_, whole)
    word = llvm.load(i64, place)
    if kind == "index":
        return arith.index_cast(index, word)
    return word if type_ == i64 else arith.trunci(type_, word)


def _cast(type_: Any, value: Any) -> Any:
    return ir.Operation.create("builtin.unrealized_conversion_cast", results=[type_], operands=[value]).results[0]


def _call(loop: Any, name: str, values: list[Any]) -> None:
    pointer, i64, index = _types()
    slots = ir.MemRefType.get([max(len(values), 1)], i64)
    # In the first block of the function: in a loop the stack would grow with every trip.
    with ir.InsertionPoint.at_block_begin(_function_of(loop).regions[0].blocks[0]):
        room = memref.alloca(slots, [], [])
        base = arith.index_cast(i64, memref.extract_aligned_pointer_as_index(room))
        context = llvm.inttoptr(pointer, base)
    with ir.InsertionPoint(loop):
        for i, value in enumerate(values):
            memref.store(_word(value), room, [arith.constant(index, i)])
        kind = ir.FunctionType.get([pointer, i64], [])
        address = _cast(pointer, func.constant(kind, ir.FlatSymbolRefAttr.get(name)))
        func.CallOp([], ENTRY, [address, context, arith.index_cast(i64, _trips(loop))])


def _word(value: Any) -> Any:
    """A value as an i64."""
    _, i64, _ = _types()
    kind = _kind(value.type)
    if kind == "memref":
        return arith.index_cast(i64, memref.extract_aligned_pointer_as_index(value))
    if kind == "index":
        return arith.index_cast(i64, value)
    if kind == "float":
        width = ir.IntegerType.get_signless(32 if isinstance(value.type, ir.F32Type) else 64)
        bits = arith.bitcast(width, value)
        return bits if width == i64 else arith.extui(i64, bits)
    return value if value.type == i64 else arith.extui(i64, value)


def _function_of(op: Any) -> Any:
    """The function that `op` is in."""
    parent = op.parent
    while parent.operation.name != "func.func":
        parent = parent.operation.parent
    return parent.operation
