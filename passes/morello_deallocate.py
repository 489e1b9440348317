"""The pass `morello-deallocate`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from mlir.passmanager import PassManager

from .base import Pass
from .morello_legalize_tensor import HAD_TENSORS
from .symbols import all_ops, functions, has_body, symbol_name, symbols_used_by
from .types import function_type, is_memref

_DEALLOCATIONS = ("memref.dealloc", "memref.realloc")


@dataclass(frozen=True)
class Deallocate(Pass):
    """Free the buffers that a program allocates and nobody frees.

    Upstream's ownership-based deallocation, on the functions where it is right: those that had tensors (their buffers
    are bufferization's) and those that neither return a memref nor free one (their buffers are local). A function
    written on memrefs that frees by hand, or returns memrefs, keeps its own ways; upstream would copy an argument that
    it returns.
    """

    name: ClassVar[str] = "morello-deallocate"
    summary: ClassVar[str] = "Free the buffers that bufferization allocated, and local ones that nobody frees"

    def run(self, op: Any) -> None:
        defined = [f for f in functions(op) if has_body(f)]
        chosen = [f for f in defined if HAD_TENSORS in f.operation.attributes or _is_local(f)]
        # The pass takes it that callees hand over what they return: callees must then do so.
        called = {name for f in chosen for name in symbols_used_by(f)}
        chosen += [f for f in defined if f not in chosen and symbol_name(f) in called and _returns_memref(f)]
        ownership = PassManager.parse("func.func(ownership-based-buffer-deallocation)")
        for function in chosen:
            if any(each.name == "memref.alloc" or _yields_memref(each) for each in all_ops(function)):
                ownership.run(function.operation)
            if HAD_TENSORS in function.operation.attributes:
                del function.operation.attributes[HAD_TENSORS]
        # Canonicalising between the parts, as upstream's own pipeline does, removes most of the run-time checks.
        PassManager.parse(
            "builtin.module(canonicalize,buffer-deallocation-simplification,bufferization-lower-deallocations,"
            "cse,canonicalize,convert-bufferization-to-memref)"
        ).run(op.operation)


def _returns_memref(function: Any) -> bool:
    return any(is_memref(t) for t in function_type(function).results)


def _yields_memref(op: Any) -> bool:
    """A call that returns a memref, or the return of one: ownership changes hands there."""
    values = op.results if op.name == "func.call" else op.operands if op.name == "func.return" else ()
    return any(is_memref(value.type) for value in values)


def _is_local(function: Any) -> bool:
    """On memrefs, allocating, and every buffer stays inside."""
    if _returns_memref(function):
        return False
    ops = all_ops(function)
    return not any(op.name in _DEALLOCATIONS or (op.name == "func.call" and _yields_memref(op)) for op in ops)
