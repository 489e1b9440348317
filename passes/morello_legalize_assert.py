"""The pass `morello-legalize-assert`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import mlir.ir as ir
from mlir.dialects import arith, cf, memref, ub

from .base import Pass
from .symbols import all_ops, functions, has_body, is_public, symbol_name, symbols_used_by
from .types import function_type, set_function_type

#: On a public function: the messages of its assertions. Its last argument, a memref<i64>, receives the number of the
#: one that failed, counted from 1; the caller clears it first.
MESSAGES = "morello.assertions"


@dataclass(frozen=True)
class LegalizeAssert(Pass):
    """Make a failing `cf.assert` return to the caller instead of ending the process.

    Functions that may fail, directly or through a callee, get a last argument for the number of the failed assertion.
    After it is written they return poison at once, and so do their callers in turn.
    """

    name: ClassVar[str] = "morello-legalize-assert"
    summary: ClassVar[str] = "Make a failing assertion return to the caller instead of ending the process"

    def run(self, op: Any) -> None:
        defined = {symbol_name(f) or "": f for f in functions(op) if has_body(f)}
        failing = _closed_over_callers(defined)
        if not failing:
            return
        with op.operation.location:
            status = ir.MemRefType.get([], ir.IntegerType.get_signless(64))
        messages: list[str] = []
        for name in failing:
            _Function(defined[name], status, failing, messages).rewrite()
        for name in failing:
            if is_public(defined[name]):
                listed = ir.ArrayAttr.get([ir.StringAttr.get(m) for m in messages])
                defined[name].operation.attributes[MESSAGES] = listed


def _closed_over_callers(defined: dict[str, Any]) -> list[str]:
    """The functions with an assertion, and all that reach one, in the order of the module."""
    failing = {name for name, f in defined.items() if any(each.name == "cf.assert" for each in all_ops(f))}
    uses = {name: symbols_used_by(f) for name, f in defined.items()}
    while True:
        more = {name for name in defined if name not in failing and uses[name] & failing}
        if not more:
            return [name for name in defined if name in failing]
        failing |= more


class _Function:
    """The rewriting of one function that may fail."""

    def __init__(self, function: Any, status: Any, failing: list[str], messages: list[str]):
        self.function = function
        self.failing = failing
        self.messages = messages
        signature = function_type(function)
        self.results = list(signature.results)
        self.region = function.operation.regions[0]
        self.status = self.region.blocks[0].add_argument(status, function.operation.location)
        set_function_type(function, [*signature.inputs, status], self.results)
        if "arg_attrs" in function.operation.attributes:
            attributes = list(ir.ArrayAttr(function.operation.attributes["arg_attrs"]))
            function.operation.attributes["arg_attrs"] = ir.ArrayAttr.get([*attributes, ir.DictAttr.get({})])

    def rewrite(self) -> None:
        for op in all_ops(self.function):
            if op.name == "cf.assert":
                self.rewrite_assert(op)
            elif op.name == "func.call" and ir.FlatSymbolRefAttr(op.attributes["callee"]).value in self.failing:
                self.rewrite_call(op)

    def rewrite_assert(self, op: Any) -> None:
        self.messages.append(ir.StringAttr(op.attributes["msg"]).value)
        with op.location:
            going_on = self.split_after(op)
            failed = self.failure_block(len(self.messages))
            with ir.InsertionPoint(op):
                cf.CondBranchOp(op.operands[0], [], [], going_on, failed)
        op.erase()

    def rewrite_call(self, op: Any) -> None:
        with op.location:
            with ir.InsertionPoint(op):
                call = ir.Operation.create(
                    "func.call",
                    results=[r.type for r in op.results],
                    operands=[*op.operands, self.status],
                    attributes={name: op.attributes[name] for name in op.attributes},
                )
            for before, after in zip(op.results, call.results, strict=True):
                before.replace_all_uses_with(after)
            going_on = self.split_after(op)
            failed = self.failure_block(None)
            with ir.InsertionPoint(op):
                clear = arith.CmpIOp(arith.CmpIPredicate.eq, memref.LoadOp(self.status, []), self.number(0)).result
                cf.CondBranchOp(clear, [], [], going_on, failed)
        op.erase()

    def split_after(self, op: Any) -> Any:
        """Move what follows `op` to a new block, which is returned; `op`'s block is left without a terminator."""
        block = op.block
        tail = []
        following = False
        for each in block:
            if following:
                tail.append(each)
            following = following or each.operation == op
        new = block.create_after()
        for each in tail:
            new.append(each)
        return new

    def failure_block(self, number: int | None) -> Any:
        """A block that returns poison, having noted that assertion `number` failed (None: it is noted already)."""
        block = self.region.blocks.append()
        with ir.InsertionPoint(block):
            if number is not None:
                memref.StoreOp(self.number(number), self.status, [])
            ir.Operation.create("func.return", operands=[ub.PoisonOp(t).result for t in self.results])
        return block

    def number(self, value: int) -> Any:
        type_ = ir.IntegerType.get_signless(64)
        return arith.ConstantOp(type_, ir.IntegerAttr.get(type_, value)).result
