"""Which memrefs may share memory: the buffers that a value may come from, followed through views, regions and calls.

The assumption we make, as linalg itself does: buffers that enter the module from outside (arguments of functions that
may be called from elsewhere) do not overlap one another. Everything that the module itself shows is followed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from mlir import ir

from morello_mlir.cached import cached_property
from morello_mlir.spec import dense_strides

from .outcome import NotLifted
from .views import box_in, boxes_disjoint, view_of

#: Ops whose memref result is a view of (or is) their first operand, and which touch no memory.
VIEWS = frozenset(
    f"memref.{name}"
    for name in (
        "assume_alignment",
        "cast",
        "collapse_shape",
        "expand_shape",
        "extract_strided_metadata",
        "memory_space_cast",
        "reinterpret_cast",
        "reshape",
        "subview",
        "transpose",
        "view",
    )
)
#: Those that keep the base pointer, which the offset in a type counts from.
SAME_BASE = VIEWS - {"memref.view", "memref.reshape", "memref.memory_space_cast"}
_FRESH = ("memref.alloc", "memref.alloca")
#: Roots that may be any buffer at all, save a fresh one of this module that has not escaped.
_ANYTHING = ("anything",)
#: Ops that hand a memref on without hiding where it goes (`roots` follows it there), or only look at its elements.
_KEEPING = ("affine", "arith", "cf", "linalg", "memref", "scf", "vector")


def is_memref(value: Any) -> bool:
    """Whether a value is memory, ranked or not."""
    return isinstance(value.type, (ir.MemRefType, ir.UnrankedMemRefType))


class Aliases:
    """Answers for one module as it is now; make a new one after rewriting it."""

    def __init__(self, module: Any):
        self._calls: dict[str, list[Any]] = defaultdict(list)
        self._functions: dict[str, list[Any]] = defaultdict(list)
        self._addressed: set[str] = set()
        self._constants: set[str] = set()
        self._variables: set[str] = set()
        self._open: dict[str, bool] = {}
        self._roots: dict[Any, frozenset[Any]] = {}
        self._ops = list(nested_ops(module))
        for op in self._ops:
            if op.name == "func.call":
                self._calls[_symbol(op, "callee")].append(op)
            elif op.name == "func.func":
                self._functions[_symbol(op, "sym_name")].append(op)
            elif op.name == "memref.global":
                kind = self._constants if "constant" in op.attributes else self._variables
                kind.add(_symbol(op, "sym_name"))
            elif op.name == "func.constant":
                self._addressed.add(_symbol(op, "value"))

    def is_open(self, op: Any) -> bool:
        """Whether an op is a call of a function here that can be seen to reach no memory but that of its operands, and
        constants."""
        if op.name != "func.call":
            return False
        name = _symbol(op, "callee")
        if name not in self._open:
            functions = self._functions.get(name, [])
            ops = [each for function in functions for each in nested_ops(function)]
            self._open[name] = bool(ops) and len(functions) == 1 and all(map(self._reaches_nothing, ops))
        return self._open[name]

    def _reaches_nothing(self, op: Any) -> bool:
        """Whether an op reaches no memory but that of its operands, and constants."""
        if op.name == "memref.get_global":
            return _symbol(op, "name") in self._constants - self._variables
        return op.name == "func.return" or op.name.partition(".")[0] in (*_KEEPING, "math")

    def may_overlap(self, a: Any, b: Any) -> bool:
        """Whether two memref values may share an element. False is certain (under the assumption above)."""
        if not self._share(self.roots(a), self.roots(b)):
            return False
        if _is_newer(a, b) or _is_newer(b, a):
            return False
        return not _provably_disjoint(a, b)

    def roots(self, value: Any) -> frozenset[Any]:
        """The buffers that a memref value may be (part of): a reachability search, so that loops do no harm."""
        known = self._roots.get(value)
        if known is not None:
            return known
        found, seen, todo = set(), {value}, [value]
        while todo:
            here = todo.pop()
            roots, sources = self._step(here)
            found.update(roots)
            for source in sources:
                if source not in seen:
                    seen.add(source)
                    todo.append(source)
        self._roots[value] = frozenset(found)
        return self._roots[value]

    def _share(self, a: frozenset[Any], b: frozenset[Any]) -> bool:
        if a & b:
            return True
        # What may be anything may be whatever the other is, unless that was freshly made in this module and kept here.
        return any(
            _ANYTHING in x and any(r[0] != "fresh" or r in self._escaped for r in y) for x, y in ((a, b), (b, a))
        )

    @cached_property
    def _escaped(self) -> frozenset[Any]:
        """The roots of memrefs that go where `roots` cannot follow: stored in memory, given to functions without a body
        or to ops that we know nothing about."""
        found: set[Any] = set()
        for op in self._ops:
            for value in self._hidden(op):
                found |= self.roots(value)
        return frozenset(found)

    def _hidden(self, op: Any) -> list[Any]:
        """The memref operands whose way ends at `op`."""
        memrefs = [o for o in op.operands if is_memref(o)]
        if op.name in ("memref.store", "affine.store"):
            return [o for o in list(op.operands)[:1] if is_memref(o)]
        if op.name == "func.call":
            callees = self._functions.get(_symbol(op, "callee"), [])
            return [] if any(len(f.regions[0].blocks) for f in callees) else memrefs
        if op.name == "memref.extract_aligned_pointer_as_index":
            return memrefs
        kept = op.name == "func.return" or op.name.partition(".")[0] in _KEEPING
        return [] if kept else memrefs

    def _step(self, value: Any) -> tuple[list[Any], list[Any]]:
        """(roots, values it may be a copy of) of one value."""
        if isinstance(value.owner, ir.Block):
            return self._argument_step(ir.BlockArgument(value))
        op = value.owner.operation
        name = op.name
        if name in _FRESH:
            return [("fresh", value)], []
        if name == "memref.get_global":
            return [("global", _symbol(op, "name"))], []
        if name in VIEWS:
            return [], [op.operands[0]]
        if name == "arith.select":
            return [], list(op.operands)[1:]
        if name == "func.call":
            return self._call_step(op, value)
        if len(op.regions):
            return [], self._region_sources(op, value)
        # Loaded from memory, or from an op that we know nothing about.
        return [_ANYTHING], [o for o in op.operands if is_memref(o)]

    def _argument_step(self, value: Any) -> tuple[list[Any], list[Any]]:
        block = value.owner
        parent = block.owner.operation
        if parent.name == "func.func" and block == parent.regions[0].blocks[0]:
            return self._parameter_step(parent, value)
        entry = any(block == region.blocks[0] for region in parent.regions)
        if not entry:  # reached by branches from within the region
            region = next(r for r in parent.regions if any(block == b for b in r.blocks))
            return [], [o for t in _terminators(region) for o in t.operands if o.type == value.type]
        if parent.name == "func.func":
            return [_ANYTHING], []
        return [], self._region_sources(parent, value)

    def _parameter_step(self, function: Any, value: Any) -> tuple[list[Any], list[Any]]:
        """A function's parameter: what its callers in the module pass, and an unknown buffer if there may be
        others."""
        name = _symbol(function, "sym_name")
        calls = self._calls.get(name, [])
        number = value.arg_number
        sources = [c.operands[number] for c in calls if number < len(c.operands)]
        closed = _symbol(function, "sym_visibility") == "private" and name not in self._addressed
        return ([] if closed and calls else [("parameter", value)]), sources

    def _call_step(self, call: Any, value: Any) -> tuple[list[Any], list[Any]]:
        """A call's result: what the callee returns; anything, or one of its operands, where there is no body."""
        functions = self._functions.get(_symbol(call, "callee"), [])
        bodies = [f for f in functions if len(f.regions[0].blocks)]
        if not bodies:
            return [_ANYTHING], [o for o in call.operands if is_memref(o)]
        number = ir.OpResult(value).result_number
        returns = [t for f in bodies for t in _terminators(f.regions[0]) if t.name == "func.return"]
        return [], [r.operands[number] for r in returns if number < len(r.operands)]

    def _region_sources(self, op: Any, value: Any) -> list[Any]:
        """What a result or region argument of an op with regions may be: for loops and conditionals the value at
        the same place of the inits and yields, else any memref that enters the op or ends one of its blocks."""
        ends = [t for region in op.regions for t in _terminators(region)]
        if op.name not in ("scf.for", "scf.if", "scf.index_switch", "scf.execute_region"):
            values = [*op.operands, *(o for t in ends for o in t.operands)]
            return [v for v in values if is_memref(v)]
        is_result = not isinstance(value.owner, ir.Block)
        number = ir.OpResult(value).result_number if is_result else value.arg_number - 1  # 0 is the induction variable
        groups = [list(t.operands) for t in ends if t.name == "scf.yield"]
        if op.name == "scf.for":
            groups.append(list(op.operands)[3:])  # after the bounds and the step
        return [g[number] for g in groups if number < len(g)]


def ancestor_in(block: Any, op: Any) -> Any:
    """`op`, or the op around it that is in `block`; None where there is none."""
    while op is not None and op.name != "builtin.module":
        if op.block == block:
            return op
        op = None if op.parent is None else op.parent.operation
    return None


def enclosing_module(op: Any) -> Any:
    """The innermost builtin.module around an op that is in one."""
    while op.operation.name != "builtin.module":
        op = op.operation.parent
    return op.operation


def nested_ops(root: Any) -> Iterator[Any]:
    """All operations under `root`, itself excluded, in order. Collect them before rewriting."""
    around = [_directly_in(root.operation)]
    while around:  # no recursion: regions may be nested deeply
        op = next(around[-1], None)
        if op is None:
            around.pop()
        else:
            yield op
            around.append(_directly_in(op))


def _directly_in(op: Any) -> Iterator[Any]:
    for region in op.regions:
        for block in region.blocks:
            for each in block.operations:
                yield each.operation


def _terminators(region: Any) -> list[Any]:
    """The last op of every block."""
    return [ops[-1].operation for ops in (list(block.operations) for block in region.blocks) if ops]


def _symbol(op: Any, attribute: str) -> str:
    if attribute not in op.attributes:
        return ""
    return str(op.attributes[attribute]).lstrip("@").strip('"')


def _origin(value: Any) -> Any:
    """The value that `value` is a view of, by views alone."""
    while not isinstance(value.owner, ir.Block) and value.owner.operation.name in VIEWS:
        value = value.owner.operation.operands[0]
    return value


def _is_newer(a: Any, b: Any) -> bool:
    """Whether `a` is a view of a buffer that was allocated after `b` existed. (The buffer may have the same root as `b`
    all the same: that of an earlier run of the same allocation.)"""
    allocated, older = _origin(a), _origin(b)
    if isinstance(allocated.owner, ir.Block) or allocated.owner.operation.name not in _FRESH or allocated == older:
        return False
    alloc = allocated.owner.operation
    if isinstance(older.owner, ir.Block):
        return _ancestor_in(older.owner, alloc) is not None
    definition = older.owner.operation
    ancestor = _ancestor_in(definition.block, alloc)
    return ancestor is not None and definition != ancestor and bool(definition.is_before_in_block(ancestor))


def _ancestor_in(block: Any, op: Any) -> Any:
    """`op`, or the op around it, that is directly in `block`; None where there is none."""
    while op is not None and op.block != block:
        parent = op.parent
        op = None if parent is None or parent.operation.name in ("func.func", "builtin.module") else parent.operation
    return op


def _provably_disjoint(a: Any, b: Any) -> bool:
    """Whether two views of one statically shaped dense buffer touch different elements."""
    buffer = _origin(a)
    if buffer != _origin(b):
        return False
    try:
        whole, view_a, view_b = (view_of(v.type, "") for v in (buffer, a, b))
    except NotLifted:
        return False
    dense = whole.offset == 0 and whole.strides == dense_strides(whole.sizes)
    if not dense or not whole.dtype == view_a.dtype == view_b.dtype:
        return False
    box_a, box_b = box_in(view_a, whole.sizes), box_in(view_b, whole.sizes)
    return box_a is not None and box_b is not None and boxes_disjoint(box_a, box_b)
