"""A goal alone: a module of one function that does it once, to be compiled and timed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import mlir.ir as ir
from mlir.dialects import arith, func

from ..calibration.operands import operand_strides
from ..chains import ChainSpec
from ..dialect import NestOp, build_chain_op, build_nest_op, build_spec_op, chain_ops, goal_ops
from ..errors import SpecError
from ..lifting.private import strided_view
from ..nests import NestSpec
from ..spec import Spec, dense_strides, element_type
from .context import LOCK, parse_text

#: The function to enter: it takes every operand as a memref of one dim.
ENTRY = "measured"
#: The function that is called.
_INNER = "goal"

Goal = Spec | NestSpec | ChainSpec


def module_of(goal: Goal, schedule: str, function: str = "") -> Any:
    """An `mlir.ir.Module` whose public function ENTRY does `goal` by `schedule`.

    function: the text of the function that lifting made for it, on bases of memrefs; without it the operands lie as the
    Spec says. Raises SpecError where that does not say it (a window), or the function takes other things.
    """
    text = function or f"module {{ func.func private @{_INNER}() }}"
    module = parse_text(text)
    with LOCK, module.context, ir.Location.unknown():
        if not function:
            module.body.operations[0].erase()
            _build(module, goal)
        inner = next(op for op in module.body.operations if op.operation.name == "func.func")
        op = next(iter([*goal_ops(inner), *chain_ops(inner)]))
        if isinstance(op, NestOp) and isinstance(goal, NestSpec):
            # The schedule names the dims of the goal.
            op.set_spec(goal)
        op.set_schedule(schedule)
        _enter(module, inner)
    return module


def _enter(module: Any, inner: Any) -> None:
    """The public function, which calls `inner` with bases of its arguments, and 0 for where in these it is to begin."""
    arguments = list(inner.regions[0].blocks[0].arguments)
    index = ir.IndexType.get()
    arrays = [a for a in arguments if a.type != index]
    types = [ir.MemRefType.get([_extent(a)], ir.MemRefType(a.type).element_type) for a in arrays]
    with ir.InsertionPoint.at_block_begin(module.body):
        entry = func.FuncOp(ENTRY, ir.FunctionType.get(types, []))
    with ir.InsertionPoint(entry.add_entry_block()):
        zero = arith.constant(index, 0)
        bases = iter([strided_view(a, 0, [], [], dense=True) for a in entry.arguments])
        given = [zero if a.type == index else next(bases) for a in arguments]
        func.CallOp([], ir.FlatSymbolRefAttr.get(ir.StringAttr(inner.attributes["sym_name"]).value), given)
        func.ReturnOp([])


def _extent(base: Any) -> int:
    """Elements from the first to the last that are reached from a base."""
    if not isinstance(base.type, ir.MemRefType) or base.type.rank:
        raise SpecError("its function takes other things than memrefs")
    most = 1
    for use in base.uses:
        op = use.owner.operation
        if op.name == "memref.reinterpret_cast":
            offsets, sizes, strides = (
                list(ir.DenseI64ArrayAttr(op.attributes[f"static_{word}"])) for word in ("offsets", "sizes", "strides")
            )
            # One that is known at run time only is 0 here.
            start = 0 if offsets[0] == ir.ShapedType.get_dynamic_stride_or_offset() else offsets[0]
            most = max(most, 1 + start + sum((n - 1) * s for n, s in zip(sizes, strides, strict=True)))
        else:
            most = max(most, *(_extent(result) for result in op.results))
    return most


# ---------------------------------------------------------------- a goal without a function


def _build(module: Any, goal: Goal) -> None:
    """The private function that does `goal`."""
    operands = [*_operands(goal)]
    bases = [ir.MemRefType.get([], ir.Type.parse(element_type(dtype))) for dtype, _, _ in operands]
    with ir.InsertionPoint(module.body):
        inner = func.FuncOp(_INNER, ir.FunctionType.get(bases, []), visibility="private")
    with ir.InsertionPoint(inner.add_entry_block()):
        places = zip(inner.arguments, operands, strict=True)
        views = [strided_view(base, 0, sizes, strides) for base, (_, sizes, strides) in places]
        if isinstance(goal, Spec):
            build_spec_op(goal, views)
        elif isinstance(goal, NestSpec):
            build_nest_op(goal, views)
        else:
            build_chain_op(goal, views)
        func.ReturnOp([])


def _operands(goal: Goal) -> Iterator[tuple[str, Sequence[int], Sequence[int]]]:
    """Element type, sizes and strides of every operand, as its op has them."""
    if isinstance(goal, NestSpec):
        yield from ((o.dtype, goal.dims, o.strides) for o in goal.operands)
    elif isinstance(goal, ChainSpec):
        for name in goal.names:
            at, i = (-1, len(goal.stages[-1].reads)) if name == "y" else goal.readers(name)[0]
            parts = [*_operands(goal.stages[at].goal)]
            yield parts[_place(goal.stages[at].goal, i, name == "y")]
    else:
        if any(t.window for t in goal.operands):
            raise SpecError("its text does not say where the places of a window lie: give the module")
        for i, t in enumerate(goal.operands):
            yield t.dtype, goal.operand_shape(i), operand_strides(goal, i)
        for extra in goal.then.extras if goal.then else ():
            sizes = [goal.size(d) for d in extra.dims]
            steps = dict(zip(extra.dims, dense_strides(sizes), strict=True))
            yield extra.dtype, goal.operand_shape(2), [steps.get(d, 0) for d in goal.operand_names(2)]


def _place(goal: Spec | NestSpec, i: int, output: bool) -> int:
    """The number of an operand of a stage's op, given that of a stage's read: outputs of contractions come third."""
    if isinstance(goal, Spec):
        return 2 if output else i if i < 2 else i + 1
    return i
