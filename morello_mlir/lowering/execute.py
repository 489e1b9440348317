"""Executing schedules: from `morello.spec` ops to loops, copies and vector code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from mlir import ir

from ..dialect import SpecOp
from ..errors import SpecError
from ..search.schedule import Node
from ..spec import Spec, Window, dense_strides
from ..targets import Target
from .ahead import Aheads
from .amx import on_tiles
from .builder import Builder
from .bundle import Bundle, First
from .finish import Finish
from .machine import Machine
from .outline import Job, Outliner, arguments
from .plan import ALIGNMENT, Plan, Stop, make_plan, panels_of, references, splits_k, streams
from .registers import emit_body
from .splice import ROOT, splice
from .views import LHS, NO_ARENA, OUT, RHS, Arena, Operand, View, begun
from .walk import Env, Walk


@dataclass(frozen=True, slots=True)
class Root:
    """An op and the plan for it: legal, and not yet executed."""

    op: SpecOp
    spec: Spec
    plan: Plan

    @property
    def dtype(self) -> str:
        """In which the contraction is added up."""
        return self.spec.sums

    @property
    def in_registers(self) -> bool:
        return self.spec.operands[OUT].memory == "VRF"


def prepare(op: Any, node: Node, target: Target, stop_at: int | str | None = None) -> Root:
    """The plan of the schedule `node` for the `morello.spec` op (an operation or a SpecOp). Changes nothing.

    stop_at: where to stop (see `Stop`). Raises ScheduleError, naming the step, where the schedule is not legal for the
    op's Spec, and SpecError where the op is malformed.
    """
    spec_op = SpecOp(op)
    spec = spec_op.spec
    if 0 in spec.dims:
        raise SpecError(f"attribute 'dims': {list(spec.dims)} has no elements, which no schedule implements")
    for i, value in enumerate(spec_op.operands[:OUT]):
        view_of(spec, i, value.type)
    for i, _ in enumerate(spec.then.extras if spec.then else ()):
        extra_view(spec, i, spec_op.extras[i].type)
    return Root(spec_op, spec, make_plan(spec.plain, node, target, Stop.parse(stop_at)))


def execute(roots: Sequence[Root], target: Target) -> None:
    """Replaces the ops of `roots` by what the plans say.

    Functions are added to the ops' modules; what several plans, or earlier runs, have in common is emitted once.
    """
    modules: dict[Any, list[Root]] = {}
    for root in roots:
        modules.setdefault(module_of(root.op.operation), []).append(root)
    for module, own in modules.items():
        _execute_in(module, own, target)


def _execute_in(module: Any, roots: list[Root], target: Target) -> None:
    existing = symbols(module)
    aheads = Aheads(existing)
    bodies: dict[int, str] = {}
    functions: list[str] = []
    for dtype in dict.fromkeys(r.dtype for r in roots):
        own = {i: r for i, r in enumerate(roots) if r.dtype == dtype}
        outliner = Outliner(Machine.of(target, dtype), references(r.plan for r in own.values()), existing)
        walk = Walk(outliner, aheads, any(on_tiles(r.plan, forked=True) for r in own.values()))
        bodies.update({i: _root_text(walk, r, i) for i, r in own.items()})
        functions += [*_functions(walk), *outliner.supports, *outliner.declarations.values()]
    functions += [*aheads.texts, *aheads.declarations]
    text = "\n".join(["module {", *(bodies[i] for i in sorted(bodies)), *functions, "}"])
    splice(module, [r.op.operation for r in roots], text)


def _root_text(walk: Walk, root: Root, number: int) -> str:
    """The function whose body takes the place of the op."""
    b = Builder(walk.outliner.machine)
    types = [str(v.type) for v in root.op.operands]
    names = [f"%arg{i}" for i in range(len(types))]
    results: list[str] = []
    memrefs = 2 if root.in_registers else 3
    operands = [_operand(b, root.spec, i, names[i], root.op.operands[i].type) for i in range(memrefs)]
    for i, extra in enumerate(root.op.extras):
        view = extra_view(root.spec, i, extra.type)
        operands.append(Operand(view, b.value(f"memref.cast {names[3 + i]} : {extra.type} to {view.type}")))
    if root.in_registers:
        _, m, _, n = root.spec.dims
        tile = Bundle(*Bundle.shape(m, n, b.machine.lanes), names[2:])
        results = list(emit_body(b, root.plan, operands[LHS], operands[RHS], tile).values)
    else:
        _in_memory(b, walk, root, operands)
    out_types = ", ".join(str(v.type) for v in root.op.results)
    arguments_ = ", ".join(f"{n}: {t}" for n, t in zip(names, types, strict=True))
    end = f"return {', '.join(results)} : {out_types}" if results else "return"
    return f"func.func private @{ROOT}{number}({arguments_}) -> ({out_types}) {{\n{b.text()}\n{end}\n}}"


def _in_memory(b: Builder, walk: Walk, root: Root, operands: list[Operand]) -> None:
    """Emits the plan, with scratch for all its packs round it, and for sums where results cannot hold them."""
    arena = Arena(size=walk.scratch(root.plan))
    if arena.size:
        name = b.value(f"memref.alloc() {{alignment = {ALIGNMENT} : i64}} : {arena.type}")
        arena = replace(arena, name=name)
    then, sums = root.spec.then, ""
    finish = None if then is None else Finish(then)
    if then is not None and then.dtype != then.sums and splits_k(root.plan):
        finish = Finish(then, apart=True)
        view = _sums_view(root)
        sums = b.value(f"memref.alloc() {{alignment = {ALIGNMENT} : i64}} : {_dense(view)}")
        room = Operand(view, b.value(f"memref.cast {sums} : {_dense(view)} to {view.type}"))
        operands = [*operands[:OUT], room, *operands[OUT + 1 :], operands[OUT]]
    env = Env(tuple(operands), not root.spec.info.accumulates, arena, constants=root.op.constants, finish=finish)
    with walk.tiles(b, on_tiles(root.plan)):
        walk.root(b, root.plan, env)
    if streams(root.plan):
        b.fence()
    if arena.size:
        b.line(f"memref.dealloc {arena.name} : {arena.type}")
    if sums:
        b.line(f"memref.dealloc {sums} : {_dense(_sums_view(root))}")


def _sums_view(root: Root) -> View:
    """Room for the sums of the whole output."""
    sizes = root.spec.operand_shape(OUT)
    return View(root.dtype, sizes, dense_strides(sizes))


def _dense(view: View) -> str:
    """The memref type of a dense buffer."""
    return f"memref<{'x'.join(map(str, view.sizes))}x{view.element}>"


def _functions(walk: Walk) -> list[str]:
    """The functions that are called, and those that they call."""
    texts, jobs = [], walk.outliner.jobs
    while jobs:
        texts.append(_function(walk, jobs.pop()))
    return texts


def _function(walk: Walk, job: Job) -> str:
    b = Builder(walk.outliner.machine)
    arena = Arena.of_scratch(b, job.scratch) if job.scratch else NO_ARENA
    looped, thread = "%looped" if job.counted else None, "%thread" if job.threaded else None
    first: First = True if job.stores else "%first"
    env = Env(arguments(b, job), first, arena, looped, job.asks, thread, finish=job.finish)
    with walk.tiles(b, job.threaded and on_tiles(job.plan, forked=True)):
        walk.body(b, job.plan, env)
    return walk.outliner.function(job, b.text())


def _operand(b: Builder, spec: Spec, i: int, name: str, type_: Any) -> Operand:
    """Operand `i` of the op as a memref of the shape that lowering works on (dims of size one come and go)."""
    view = view_of(spec, i, type_)
    if tuple(type_.shape) == view.shape:
        return Operand(
            view, name if str(type_) == view.type else b.value(f"memref.cast {name} : {type_} to {view.type}")
        )
    return begun(b, view, name, type_)


def view_of(spec: Spec, i: int, type_: Any) -> View:
    """How operand `i` lies in memory. Raises SpecError where its memref has another shape than the Spec says, or
    its layout is one that is not lowered."""
    if not isinstance(type_, ir.MemRefType):
        raise SpecError(f"operand {i}: expected a memref, not {type_}")
    tensor = spec.operands[i]
    window = tensor.window or Window()
    view = View(tensor.dtype, spec.operand_shape(i), (), units=window.units, edges=window.edges)
    if tensor.layout.is_packed:
        dim, width, group = panels_of(tensor.layout, spec.operand_names(i))
        view = replace(view, packed=(dim, width), group=group)
    strides, _ = type_.get_strides_and_offset()
    if tuple(type_.shape) == view.shape:
        return replace(view, strides=tuple(strides))
    # Dims of one element may be missing or be more: the others must agree, in order.
    own = [(size, stride) for size, stride in zip(type_.shape, strides, strict=True) if size != 1]
    if [size for size, _ in own] != [size for size in view.shape if size != 1]:
        raise SpecError(f"operand {i}: {type_} does not have the sizes {list(view.shape)}")
    left = iter(own)
    return replace(view, strides=tuple(1 if size == 1 else next(left)[1] for size in view.shape))


def extra_view(spec: Spec, i: int, type_: Any) -> View:
    """How the operand x`i + 1` of `then` lies in memory: with the sizes of the output, at stride 0 along the dims that
    it lacks. Raises SpecError where its memref is another."""
    assert spec.then is not None
    extra, sizes = spec.then.extras[i], spec.operand_shape(OUT)
    if not isinstance(type_, ir.MemRefType) or tuple(type_.shape) != sizes:
        raise SpecError(f"operand x{i + 1} of then: expected a memref of the sizes {list(sizes)}, not {type_}")
    strides, _ = type_.get_strides_and_offset()
    return View(extra.dtype, sizes, tuple(strides))


def module_of(op: Any) -> Any:
    """The module whose symbols calls at `op` refer to."""
    parent = op.parent
    while parent is not None and parent.operation.name != "builtin.module":
        parent = parent.operation.parent
    if parent is None:
        raise SpecError("the op is not in a module")
    return parent.operation


def symbols(module: Any) -> set[str]:
    """The names of all that a module defines at its top."""
    return {
        ir.StringAttr(op.attributes["sym_name"]).value
        for op in module.regions[0].blocks[0].operations
        if "sym_name" in op.attributes
    }
