"""The pass `morello-free-early`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import mlir.ir as ir

from morello_mlir.lifting.aliases import VIEWS, ancestor_in

from .base import Pass
from .symbols import all_ops, functions, has_body
from .types import function_type, is_memref

#: Ops that look at a buffer and keep nothing of it.
_READERS = ("func.call", "linalg.", "memref.copy", "memref.dealloc", "memref.load", "memref.store", "vector.")


@dataclass(frozen=True)
class FreeEarly(Pass):
    """Free buffers right after their last use, instead of where their block ends.

    What is freed is used again for what comes next, while it is still in the caches. Buffers that more can be done to
    than to look at their elements, through views too and in calls that return no memrefs, are freed where they were;
    so are all in modules that declare functions of memrefs.
    """

    name: ClassVar[str] = "morello-free-early"
    summary: ClassVar[str] = "Free buffers right after their last use"

    def run(self, op: Any) -> None:
        # What is not seen may keep a buffer from one call to the next.
        if any(not has_body(f) and any(is_memref(t) for t in function_type(f).inputs) for f in functions(op)):
            return
        for block in dict.fromkeys(each.block for each in all_ops(op) if each.name == "memref.dealloc"):
            _free_early(block)


def _free_early(block: Any) -> None:
    ops = [o.operation for o in block.operations]
    place = {op: i for i, op in enumerate(ops)}
    for free in [op for op in ops if op.name == "memref.dealloc"]:
        owner = free.operands[0].owner
        if isinstance(owner, ir.Block) or owner.operation.name != "memref.alloc" or owner.operation not in place:
            continue
        users = _users(owner.operation, block)
        last = None if users is None else max((place[u] for u in users if u != free), default=None)
        if last is not None and last < place[free]:
            free.move_after(ops[last])


def _users(alloc: Any, block: Any) -> set[Any] | None:
    """The ops of `block` that use a buffer or views of it, or hold such ops; None where it may live on in something
    else."""
    found: set[Any] = set()
    todo = list(alloc.results)
    while todo:
        for use in todo.pop().uses:
            user = use.owner.operation
            if user.name in VIEWS:
                todo += [r for r in user.results if is_memref(r.type)]
            elif (
                not user.name.startswith(_READERS)
                or any(is_memref(r.type) for r in user.results)
                or (user.name == "memref.store" and use.operand_number == 0)
            ):
                return None
            here = ancestor_in(block, user)
            if here is None:
                return None
            found.add(here)
    return found
