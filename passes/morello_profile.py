"""The pass `morello-profile`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import mlir.ir as ir
from mlir.dialects import arith, memref

from .base import Pass, option
from .siblings import OWN_COPY
from .symbols import all_ops, function_named, functions, has_body, is_public, symbol_name

#: The counters: of each thing that is counted, cycles and times.
SYMBOL = "morello_profile"
#: On the module: what the counters count, in order: a kind, and a name. The first is the whole function.
COUNTED = "morello.profile"
#: Kinds. goal: calls of what one goal became; upstream: an op that upstream lowers; copy, memory: of buffers.
WHOLE, GOAL, UPSTREAM, COPY, MEMORY = "whole", "goal", "upstream", "copy", "memory"
_PLAIN = {"memref.copy": COPY, "memref.alloc": MEMORY, "memref.dealloc": MEMORY}


@dataclass(frozen=True)
class Profile(Pass):
    """Count the cycles of one function: all of it, each goal in it, each op that upstream lowers, copies and buffers.

    It stands behind `morello-apply`. The counters are an external global of two numbers each, cycles and times; the
    attribute `morello.profile` of the module says what they count. Cycles are those of the time stamp counter, from
    when a thing begins in the thread that enters until it ends there: other threads that work on it are waited for.
    """

    name: ClassVar[str] = "morello-profile"
    summary: ClassVar[str] = "Count the cycles that each goal and each other op of a function takes"
    entry: str = option("", help="the function (default: the first that is public)")

    def run(self, op: Any) -> None:
        defined = [f for f in functions(op) if has_body(f)]
        entry = function_named(op, self.entry) if self.entry else next((f for f in defined if is_public(f)), None)
        if entry is None:
            return
        goals = {symbol_name(f) for f in defined} - {symbol_name(entry)}
        found = [(each, what) for each in all_ops(entry) if (what := _what(each, goals)) is not None]
        numbers = {what: i for i, what in enumerate(dict.fromkeys([(WHOLE, ""), *(what for _, what in found)]))}
        with op.location, ir.InsertionPoint.at_block_begin(op.regions[0].blocks[0]):
            type_ = ir.MemRefType.get([2 * len(numbers)], _word())
            memref.global_(SYMBOL, type_)
        for each, what in found:
            _count(each, [each], numbers[what], type_)
        blocks = entry.regions[0].blocks
        ends = [list(block.operations)[-1].operation for block in blocks]
        _count(blocks[0].operations[0], [o for o in ends if o.name == "func.return"], 0, type_)
        listed = [ir.StringAttr.get(f"{kind} {name}".strip()) for kind, name in numbers]
        op.operation.attributes[COUNTED] = ir.ArrayAttr.get(listed)


def _what(op: Any, goals: set[Any]) -> tuple[str, str] | None:
    """The kind and name of what an op counts as; None where it is not counted by itself."""
    if op.name in _PLAIN:
        return _PLAIN[op.name], str(op.name)
    if op.name == "func.call":
        callee = str(ir.FlatSymbolRefAttr(op.attributes["callee"]).value)
        return (GOAL, callee) if callee in goals else None
    if not op.name.startswith("linalg.") or op.name in ("linalg.yield", "linalg.index"):
        return None
    if op.parent is None or op.parent.operation.name.startswith("linalg."):
        return None
    return COPY if OWN_COPY in op.attributes else UPSTREAM, str(op.name)


def _count(first: Any, ends: Iterable[Any], number: int, type_: Any) -> None:
    """Add the cycles from before `first` until after each of `ends`, or before it where it ends a block."""
    with first.location, ir.InsertionPoint(first):
        started = _now()
    for end in ends:
        place = ir.InsertionPoint(end) if end.name == "func.return" else ir.InsertionPoint.after(end)
        with end.location, place:
            room = memref.get_global(type_, SYMBOL)
            taken = arith.subi(_now(), started)
            for at, more in ((2 * number, taken), (2 * number + 1, arith.constant(_word(), 1))):
                index = arith.constant(ir.IndexType.get(), at)
                memref.store(arith.addi(memref.load(room, [index]), more), room, [index])


def _word() -> Any:
    return ir.IntegerType.get_signless(64)


def _now() -> Any:
    attributes = {
        "intrin": ir.StringAttr.get("llvm.readcyclecounter"),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0]),
        "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
    }
    return ir.Operation.create("llvm.call_intrinsic", results=[_word()], attributes=attributes).result
