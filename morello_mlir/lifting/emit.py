"""Builds the IR of a lifted contraction: a private function around one `morello.spec`, and calls of it."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from mlir import ir
from mlir.dialects import arith, func, memref, scf

from morello_mlir.errors import ScheduleError, SpecError
from morello_mlir.nests import NestSpec
from morello_mlir.search.schedule import Hole, Parallel, Serial, parse, walk
from morello_mlir.spec import Spec, dense_strides, element_type

from .outcome import Lifted
from .plan import Operand, Plan
from .private import Names, plus, private_function, strided_view

#: Where a user writes the schedule of a linalg op by hand; the Spec gets it, and the search fills its holes.
SCHEDULE = "morello.schedule"

_Goal = TypeVar("_Goal", Spec, NestSpec)
_NAME = {"Matmul": "morello_matmul", "MatmulAccum": "morello_matmul_accum"}


@dataclass(frozen=True)
class _Given:
    """What a `morello.spec` gets beside the Spec: a schedule by hand, and the names of what constant operands hold."""

    schedule: str | None
    constants: tuple[tuple[str, str], ...]


class Functions:
    """The private functions made so far for one module; equal plans on equal memref types share one. threads: how many
    each Spec has."""

    def __init__(self, module: Any, threads: int = 1):
        self._module = module
        self._threads = threads
        self._made: dict[Any, str] = {}
        self._names = Names(module)

    def call(self, op: Any, lifted: Lifted) -> None:
        """Puts a call in place of `op` and the members of its chain, which stay for the caller to erase.

        A function takes base pointers, and offsets other than zero (see `private`).
        """
        values = [lifted.values[operand.source] for operand in lifted.plan.operands]
        shifted = tuple(v.type.get_strides_and_offset()[1] != 0 for v in values)
        name = self._function(lifted.plan, shifted, _Given(given_schedule(op), lifted.constants), op.location)
        with op.location, ir.InsertionPoint(_last([op.operation, *lifted.members])):
            parts = [metadata(v) for v in values]
            offsets = [offset for (_, offset), s in zip(parts, shifted, strict=True) if s]
            func.CallOp([], name, [base for base, _ in parts] + offsets)

    def _function(self, plan: Plan, shifted: tuple[bool, ...], given: _Given, location: Any) -> str:
        """The name of the function; its ops get the location of the first op that needs it."""
        plan = replace(plan, spec=for_threads(plan.spec, self._threads, given.schedule))
        key = (plan.spec, tuple((o.sizes, o.strides) for o in plan.operands), plan.outer, shifted, given)
        if key not in self._made:
            name = self._names.unused(_stem(plan.spec))
            self._made[key] = name
            with location, ir.InsertionPoint(self._module.regions[0].blocks[0]):
                _build_function(name, plan, shifted, given)
        return self._made[key]


def _stem(spec: Spec) -> str:
    dtypes = "_".join(dict.fromkeys(t.dtype for t in spec.operands))
    return f"{_NAME[spec.function]}_{'x'.join(map(str, spec.dims))}_{dtypes}{'_then' if spec.then else ''}"


def _last(ops: list[Any]) -> Any:
    """The last of ops of one block."""
    last = ops[0]
    for op in ops[1:]:
        if last.is_before_in_block(op):
            last = op
    return last


def for_threads(spec: _Goal, threads: int, schedule: str | None) -> _Goal:
    """The goal that is emitted for so many threads. schedule: what the op has by hand; one that says nothing of threads
    is for one."""
    return replace(spec, serial=False, threads=threads).canonical() if threads > 1 and _may_share(schedule) else spec


def _may_share(schedule: str | None) -> bool:
    """Whether a goal with that schedule may have threads."""
    if schedule is None:
        return True
    try:
        steps = list(walk(parse(schedule)))
    except ScheduleError:  # the search reports it
        return True
    return any(isinstance(step, (Parallel, Serial)) for step in steps) or isinstance(steps[0], Hole)


def metadata(value: Any) -> tuple[Any, Any]:
    """(base as a rank-0 memref, offset) of a memref value."""
    op = memref.ExtractStridedMetadataOp(value)
    return op.results[0], op.results[1]


def given_schedule(op: Any) -> str | None:
    """The schedule that a user wrote on a linalg op, as text: `morello.schedule`, one string or one a line.

    Raises SpecError where the attribute is something else.
    """
    attribute = op.attributes.get(SCHEDULE)
    if attribute is None:
        return None
    lines = list(ir.ArrayAttr(attribute)) if isinstance(attribute, ir.ArrayAttr) else [attribute]
    if not all(isinstance(line, ir.StringAttr) for line in lines):
        raise SpecError(f"attribute '{SCHEDULE}' must be a string or an array of strings, not {attribute}")
    return "\n".join(ir.StringAttr(line).value for line in lines)


def _build_function(name: str, plan: Plan, shifted: tuple[bool, ...], given: _Given) -> None:
    dtypes = [t.dtype for t in plan.spec.operands]
    dtypes += [e.dtype for e in plan.spec.then.extras] if plan.spec.then else []
    scalars = [ir.Type.parse(element_type(dtype)) for dtype in dtypes]
    with private_function(name, scalars, shifted) as (bases, offsets):
        _build_nest(plan, bases, offsets, given)


def _build_nest(plan: Plan, bases: list[Any], offsets: list[Any], given: _Given) -> None:
    """The loops around the Spec, then the Spec on the views of one iteration. offsets: None is zero."""
    needed = {0, 1, *(o.size for o in plan.outer), *(s for o in plan.outer for s in o.strides)} if plan.outer else set()
    needed |= {o.size - 1 for o in plan.outer if o.reduction and plan.spec.then is not None}
    constants = {n: arith.constant(ir.IndexType.get(), n) for n in sorted(needed)}
    last = []
    with ExitStack() as nest:
        for outer in plan.outer:
            loop = scf.ForOp(constants[0], constants[outer.size], constants[1])
            with ir.InsertionPoint(loop.body):
                scf.YieldOp([])
            nest.enter_context(ir.InsertionPoint.at_block_terminator(loop.body))
            if outer.reduction and plan.spec.then is not None:
                end = constants[outer.size - 1]
                last.append(arith.cmpi(arith.CmpIPredicate.eq, loop.induction_variable, end))
            for i, stride in enumerate(outer.strides):
                if stride == 0:
                    continue
                step = loop.induction_variable
                if stride != 1:
                    step = arith.muli(step, constants[stride])
                offsets[i] = step if offsets[i] is None else arith.addi(offsets[i], step)
        _build_spec(plan, bases, offsets, given, last)


def _build_spec(plan: Plan, bases: list[Any], offsets: list[Any], given: _Given, last: list[Any]) -> None:
    """The Spec on views. last: what must hold at the last step along k, beside which `then` is not done."""
    from morello_mlir.dialect import build_spec_op

    views = [_view(b, o, offset) for b, o, offset in zip(bases, plan.operands, offsets, strict=True)]
    if not last:
        build_spec_op(plan.spec, views, schedule=given.schedule, constants=dict(given.constants))
        return
    condition = last[0]
    for other in last[1:]:
        condition = arith.andi(condition, other)
    branch = scf.IfOp(condition, has_else=True)
    specs = ((branch.then_block, plan.spec, views), (branch.else_block, plan.spec.plain, views[:3]))
    for block, spec, operands in specs:
        with ir.InsertionPoint(block):
            build_spec_op(spec, operands, schedule=given.schedule, constants=dict(given.constants))
            scf.YieldOp([])


def _view(base: Any, operand: Operand, offset: Any) -> Any:
    """The three-dimensional memref of an operand."""
    dense = offset is None and operand.strides == dense_strides(operand.sizes)
    return strided_view(base, plus(offset, 0), operand.sizes, operand.strides, dense)
