"""The pass `morello-share`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import mlir.ir as ir
from mlir.dialects import func, memref

from morello_mlir.lifting.aliases import Aliases

from .base import Pass, option
from .morello_return_to_argument import UNALIASED
from .symbols import all_ops, functions, symbol_name
from .types import is_memref, is_static_memref, strides_of

_PREFIX = "morello_op_"
_PARTS = ("linalg.yield", "linalg.index")


@dataclass(frozen=True)
class Share(Pass):
    """Give each structured op a function of its own, and equal ones the same.

    A network is hundreds of loop nests, many of them alike. In one function LLVM needs minutes for them: much of what
    it does takes time that grows with the square of a function's size. Outputs that no input overlaps become
    `morello.unaliased` arguments. Ops on memrefs of dynamic shape stay where they are, and so does everything in
    modules with fewer such ops than `least`.
    """

    name: ClassVar[str] = "morello-share"
    summary: ClassVar[str] = "Outline the linalg ops of large modules, equal ones once"
    least: int = option(8, help="leave modules with fewer linalg ops alone")

    def run(self, op: Any) -> None:
        found = [each for each in all_ops(op) if _is_candidate(each)]
        if len(found) < self.least:
            return
        outliner = _Outliner(op, Aliases(op))
        for each in found:
            outliner.outline(each)


def _is_candidate(op: Any) -> bool:
    if not op.name.startswith("linalg.") or op.name in _PARTS or len(op.results) > 0:
        return False
    if op.parent is None or op.parent.operation.name.startswith("linalg."):
        return False
    return all(not is_memref(o.type) or is_static_memref(o.type) or _is_shifted(o.type) for o in op.operands)


def _is_shifted(type_: Any) -> bool:
    """Whether nothing but the offset of a memref is dynamic."""
    if not isinstance(type_, ir.MemRefType) or not type_.has_static_shape:
        return False
    try:
        return None not in strides_of(type_)[0]
    except ValueError:
        return False


class _Outliner:
    """The functions made so far, by their text."""

    def __init__(self, module: Any, aliases: Aliases):
        self._body = module.operation.regions[0].blocks[0]
        self._aliases = aliases
        self._known: dict[str, str] = {}
        self._names = {symbol_name(f) for f in functions(module)}
        self._count = 0

    def outline(self, op: Any) -> None:
        values = list(dict.fromkeys(op.operands))
        outer = _outer_values(op)
        constants = [v for v in outer if _is_constant(v)]
        values += [v for v in outer if v not in values and v not in constants]
        with op.location:
            with ir.InsertionPoint(op):
                passed = [_Passed(value) for value in values]
            arguments = [a for each in passed for a in each.arguments]
            function = self._function(op, values, passed, constants)
            key = str(function)
            name = self._known.get(key)
            if name is None:
                name = self._name(op)
                ir.SymbolTable.set_symbol_name(function, name)
                self._known[key] = name
            else:
                function.operation.erase()
            with ir.InsertionPoint(op):
                func.CallOp([], name, arguments)
        op.erase()

    def _name(self, op: Any) -> str:
        kind = op.name.partition(".")[2]
        while True:
            name = f"{_PREFIX}{kind}_{self._count}"
            self._count += 1
            if name not in self._names:
                return name

    def _function(self, op: Any, values: list[Any], passed: list[_Passed], constants: list[Any]) -> Any:
        types = [a.type for each in passed for a in each.arguments]
        with ir.InsertionPoint(self._body):
            function = func.FuncOp(_PREFIX, ir.FunctionType.get(types, []), visibility="private")
        function.operation.attributes["passthrough"] = ir.ArrayAttr.get([ir.StringAttr.get("noinline")])
        function.operation.attributes["arg_attrs"] = ir.ArrayAttr.get(
            [each for value, p in zip(values, passed, strict=True) for each in self._attributes(op, value, values, p)]
        )
        block = function.add_entry_block()
        with ir.InsertionPoint(block):
            inner: dict[Any, Any] = {}
            at = 0
            for value, each in zip(values, passed, strict=True):
                count = len(each.arguments)
                inner[value] = each.rebuilt(list(block.arguments)[at : at + count])
                at += count
            for constant in constants:
                inner[constant] = constant.owner.clone().results[0]
            clone = op.clone()
            for each in all_ops(clone):
                for i, operand in enumerate(each.operands):
                    if operand in inner:
                        each.operands[i] = inner[operand]
            func.ReturnOp([])
        return function

    def _attributes(self, op: Any, value: Any, values: list[Any], passed: _Passed) -> list[Any]:
        """The attributes of the arguments that stand for a value."""
        named = {}
        if is_memref(value.type) and value == op.operands[len(op.operands) - 1]:
            others = [v for v in values if v != value and is_memref(v.type)]
            if not any(self._aliases.may_overlap(value, v) for v in others):
                named[UNALIASED] = ir.UnitAttr.get()
        empty = [ir.DictAttr.get({}) for _ in passed.arguments[1:]]
        return [ir.DictAttr.get(named), *empty]


class _Passed:
    """How a value goes into a function: as it is; or, a memref that does not begin where its memory does, as that
    memory and where in it, so that ops on other parts share the function. Made at the call."""

    def __init__(self, value: Any):
        self._type = value.type
        self._shifted = is_memref(value.type) and strides_of(value.type)[1] != 0
        if self._shifted:
            parts = memref.extract_strided_metadata(value)
            self.arguments = [parts[0], parts[1]]
        else:
            self.arguments = [value]

    def rebuilt(self, arguments: list[Any]) -> Any:
        """The value, from the function's arguments."""
        if not self._shifted:
            return arguments[0]
        strides = [s for s in strides_of(self._type)[0] if s is not None]
        dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
        layout = ir.StridedLayoutAttr.get(dynamic, strides)
        shape = list(self._type.shape)
        type_ = ir.MemRefType.get(shape, self._type.element_type, layout, self._type.memory_space)
        return memref.ReinterpretCastOp(type_, arguments[0], [arguments[1]], [], [], [dynamic], shape, strides).result


def _outer_values(op: Any) -> list[Any]:
    """The values that the region of an op takes from outside, in order."""
    inside: set[Any] = set()
    found: dict[Any, None] = {}
    for each in all_ops(op):
        if each != op:
            found.update(dict.fromkeys(operand for operand in each.operands if operand not in inside))
        inside.update(each.results)
        inside.update(a for region in each.regions for block in region for a in block.arguments)
    return list(found)


def _is_constant(value: Any) -> bool:
    return not isinstance(value.owner, ir.Block) and value.owner.name == "arith.constant"
