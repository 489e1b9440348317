"""The pass `morello-bare-pointers`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import mlir.ir as ir

from .base import Pass, option
from .morello_return_to_argument import UNALIASED
from .symbols import all_ops, functions, has_body, is_public
from .types import function_type, is_memref, is_static_memref

#: On a `func.func`: upstream's func-to-llvm passes its memref arguments as bare pointers, calls included.
BARE = "llvm.bareptr"
_NEED_ALLOCATED_POINTER = ("memref.dealloc", "memref.realloc")


@dataclass(frozen=True)
class BarePointers(Pass):
    """Pass memrefs as bare pointers wherever their types say all there is to know.

    A function qualifies when its memref arguments are static (sizes, strides, offset), it returns no memref and frees
    none. Public functions keep the convention that callers from outside expect, unless asked. `morello.unaliased`
    arguments become `llvm.noalias`, which only a pointer can carry.
    """

    name: ClassVar[str] = "morello-bare-pointers"
    summary: ClassVar[str] = "Pass static memrefs as bare pointers, noalias where it is known"
    public: bool = option(False, help="also change public functions, whose callers outside must know")

    def run(self, op: Any) -> None:
        addressed = _addressed_functions(op)
        for function in functions(op):
            attributes = function.operation.attributes
            if (self.public or not is_public(function)) and _qualifies(function, addressed):
                attributes[BARE] = ir.UnitAttr.get()
            if BARE in attributes and "arg_attrs" in attributes:
                attributes["arg_attrs"] = _with_noalias(attributes["arg_attrs"])


def _addressed_functions(module: Any) -> set[str]:
    """Functions whose address is taken: their callers are unknown, so their convention is fixed."""
    return {
        ir.FlatSymbolRefAttr(each.attributes["value"]).value for each in all_ops(module) if each.name == "func.constant"
    }


def _qualifies(function: Any, addressed: set[str]) -> bool:
    if not has_body(function) or ir.StringAttr(function.operation.attributes["sym_name"]).value in addressed:
        return False
    signature = function_type(function)
    if any(is_memref(t) for t in signature.results):
        return False
    if not all(is_static_memref(t) for t in signature.inputs if is_memref(t)):
        return False
    return not any(
        each.name in _NEED_ALLOCATED_POINTER and _is_argument(each.operands[0]) for each in all_ops(function)
    )


def _is_argument(value: Any) -> bool:
    """Whether a memref may be an argument's: not surely allocated in this function."""
    return isinstance(value.owner, ir.Block) or value.owner.name != "memref.alloc"


def _with_noalias(listed: Any) -> Any:
    out = []
    for each in ir.ArrayAttr(listed):
        named = {n.name: n.attr for n in ir.DictAttr(each)}
        if UNALIASED in named:
            named["llvm.noalias"] = ir.UnitAttr.get()
        out.append(ir.DictAttr.get(named))
    return ir.ArrayAttr.get(out)
