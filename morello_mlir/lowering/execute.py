"""Executing schedules: from `morello.spec` ops to loops, copies and vector code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mlir import ir

from ..dialect import SpecOp
from ..errors import SpecError
from ..search.schedule import Node
from ..spec import Spec
from ..targets import Target
from .builder import Builder
from .kernels import Bundle
from .machine import Machine
from .outline import Job, Outliner, arguments
from .plan import ALIGNMENT, Plan, Stop, make_plan, references
from .registers import emit_body
from .splice import ROOT, splice
from .views import LHS, OUT, RHS, Operand, View
from .walk import Env, Walk


def apply(op: Any, node: Node, target: Target, stop_at: int | str | None = None) -> None:
    """Replaces the `morello.spec` op (an operation or a SpecOp) by what the schedule `node` makes of it.

    stop_at: where to stop (see `Stop`); smaller `morello.spec` ops with the remaining schedule stay then. A hole in the
    schedule stays as a Spec in any case. Functions are added to the op's module, and shared with those that earlier
    calls added. Raises ScheduleError, naming the step, where the schedule is not legal for the op's Spec.
    """
    apply_all([(SpecOp(op), node)], target, stop_at)


def apply_all(jobs: Sequence[tuple[SpecOp, Node]], target: Target, stop_at: int | str | None = None) -> None:
    """`apply` for several ops of one module at once: what their schedules have in common is emitted once.

    Nothing is changed where one of the schedules is not legal.
    """
    if not jobs:
        return
    stop = Stop.parse(stop_at)
    roots = [_Root.of(op, node, target, stop) for op, node in jobs]
    module = _module_of(jobs[0][0].operation)
    existing = _symbols(module)
    bodies: dict[int, str] = {}
    functions: list[str] = []
    for dtype in dict.fromkeys(r.dtype for r in roots):
        own = {i: r for i, r in enumerate(roots) if r.dtype == dtype}
        refs = references([r.plan for r in own.values()])
        walk = Walk(Outliner(Machine.of(target, dtype), refs, existing))
        bodies.update({i: _root_text(walk, r, i) for i, r in own.items()})
        functions += _functions(walk)
    text = "\n".join(["module {", *(bodies[i] for i in sorted(bodies)), *functions, "}"])
    splice(module, [r.op.operation for r in roots], text)


@dataclass(frozen=True, slots=True)
class _Root:
    """An op and its plan."""

    op: SpecOp
    spec: Spec
    plan: Plan

    @staticmethod
    def of(op: SpecOp, node: Node, target: Target, stop: Stop | None) -> _Root:
        spec = op.spec
        return _Root(op, spec, make_plan(spec, node, target, stop))

    @property
    def dtype(self) -> str:
        return self.spec.operands[OUT].dtype

    @property
    def in_registers(self) -> bool:
        return self.spec.operands[OUT].memory == "VRF"


def _root_text(walk: Walk, root: _Root, number: int) -> str:
    """The function whose body takes the place of the op."""
    b = Builder(walk.outliner.machine)
    types = [str(v.type) for v in root.op.operands]
    names = [f"%arg{i}" for i in range(len(types))]
    results: list[str] = []
    memrefs = 2 if root.in_registers else 3
    operands = [_operand(b, root.spec, i, names[i], root.op.operands[i].type) for i in range(memrefs)]
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


def _in_memory(b: Builder, walk: Walk, root: _Root, operands: list[Operand]) -> None:
    """Emits the plan, with scratch for all its packs round it."""
    size = walk.scratch(root.plan)
    arena, base = f"memref<{size}xi8>", ""
    if size:
        whole = b.value(f"memref.alloc() {{alignment = {ALIGNMENT} : i64}} : {arena}")
        parts = [b.name() for _ in range(4)]
        base = parts[0]
        b.line(
            f"{', '.join(parts)} = memref.extract_strided_metadata {whole} : {arena} -> memref<i8>, index, index, index"
        )
    first = not root.spec.info.accumulates
    walk.root(b, root.plan, Env(tuple(operands), first, base))
    if size:
        b.line(f"memref.dealloc {whole} : {arena}")


def _functions(walk: Walk) -> list[str]:
    """The functions that are called, and those that they call."""
    texts, jobs = [], walk.outliner.jobs
    while jobs:
        texts.append(_function(walk, jobs.pop()))
    return texts


def _function(walk: Walk, job: Job) -> str:
    b = Builder(walk.outliner.machine)
    first = {"store": True, "add": False, "flag": "%first"}[job.mode]
    walk.body(b, job.plan, Env(arguments(job), first, "%scratch" if job.scratch else ""))
    return walk.outliner.function(job, b.text())


def _operand(b: Builder, spec: Spec, i: int, name: str, type_: Any) -> Operand:
    """Operand `i` of the op as a memref of the shape that lowering works on (dims of size one come and go)."""
    view = _view(spec, i, ir.MemRefType(type_))
    rank = ir.MemRefType(type_).rank
    outer = View(view.dtype, tuple(ir.MemRefType(type_).shape), (0,) * rank)
    base, offset = b.name(), b.name()
    more = "".join(f", {b.name()}:{rank}" for _ in range(2)) if rank else ""
    b.line(
        f"{base}, {offset}{more} = memref.extract_strided_metadata {name} : {type_} -> {outer.metadata_types}"
    )
    return Operand(view, base=base, offset=offset)


def _view(spec: Spec, i: int, type_: Any) -> View:
    """How operand `i` lies in memory. Raises SpecError where its memref has another shape than the Spec says."""
    tensor = spec.operands[i]
    sizes = spec.operand_shape(i)
    strides, _ = type_.get_strides_and_offset()
    own = [(size, stride) for size, stride in zip(type_.shape, strides, strict=True) if size != 1]
    packed = None
    if tensor.layout.is_packed:
        dim = next(d for d, w in tensor.layout.parts if w is not None)
        packed = (dim, int(tensor.layout.pack_width(dim) or 1))
    wanted = View(tensor.dtype, sizes, (), packed).shape
    out, left = [], list(own)
    for size in wanted:
        if size == 1:
            out.append(1)
        elif left and left[0][0] == size:
            out.append(left.pop(0)[1])
        else:
            raise SpecError(f"operand {i} ({type_}) does not have the sizes {list(wanted)}")
    if left:
        raise SpecError(f"operand {i} ({type_}) does not have the sizes {list(wanted)}")
    return View(tensor.dtype, sizes, tuple(out), packed)


def _module_of(op: Any) -> Any:
    """The module whose symbols calls at `op` refer to."""
    parent = op.parent
    while parent is not None and parent.operation.name != "builtin.module":
        parent = parent.operation.parent
    if parent is None:
        raise SpecError("the op is not in a module")
    return parent.operation


def _symbols(module: Any) -> set[str]:
    return {
        ir.StringAttr(op.attributes["sym_name"]).value
        for op in module.regions[0].blocks[0].operations
        if "sym_name" in op.attributes
    }
