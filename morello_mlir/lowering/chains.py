"""Executing schedules of chains: loops, packs and scratch around smaller `morello.spec` ops, one for every stage of a
tile, with their schedules. These are executed like any others."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mlir import ir

from ..chains import ChainSpec
from ..chains.online import Form
from ..chains.schedule import Loop, Node, Online, PackRhs, Skip, Stages, has_hole, parse
from ..chains.search import chain_search_for
from ..chains.space import RHS, Point
from ..dialect import ChainOp
from ..errors import ScheduleError, SpecError
from ..nests.search import nest_search_for
from ..search import schedule
from ..spec import Spec, dtype_bytes
from ..targets import LINE, Target
from .builder import Builder, Index
from .execute import module_of, symbols
from .goals import emit_goal
from .machine import Machine
from .online import OnlineEmitter, scratch_bytes
from .outline import INTERNAL, THREADS
from .pack import emit_pack
from .plan import ALIGNMENT, panels_of
from .splice import ROOT, splice
from .views import NO_ARENA, Arena, Flat, Operand, View, begun, operand_in


@dataclass(frozen=True)
class Env:
    """What a part of a schedule is emitted into. operands: by name, inputs and output as their part of the chain.
    packed: the panels of rhs, by stage. row: the first one, of the whole. finite: where what is masked is skipped, the
    i1 that says whether it may be."""

    point: Point
    operands: dict[str, Operand]
    arena: Arena
    packed: dict[int, Operand] = field(default_factory=dict)
    row: Index = 0
    finite: str = ""


class Emitter:
    """Emits the schedule of one op into text; `functions` collects what threads run."""

    def __init__(self, target: Target, taken: set[str]):
        self.target = target
        self.taken = taken
        self.functions: list[str] = []

    # ------------------------------------------------------------ scratch

    def scratch(self, point: Point, node: Node) -> int:
        """Bytes that `node` needs, whole lines; each thread has its own."""
        if isinstance(node, Loop):
            body, rest = point.tiled(node)
            most = self.scratch(body, node.body)
            if rest is not None and node.rest is not None:
                most = max(most, self.scratch(rest, node.rest))
            return most * point.shares(node)
        if isinstance(node, PackRhs):
            return self._pack_bytes(point, node) + self.scratch(point.pack(node, self.target), node.body)
        if isinstance(node, Skip):
            return LINE + self.scratch(point.skip(), node.body)
        if isinstance(node, Online):
            return scratch_bytes(Form(point, node.size, node.home, self.target))
        assert isinstance(node, Stages)
        return sum(point.lines(t) * LINE for t, home in enumerate(node.homes) if not home.startswith("t"))

    def _panels(self, point: Point, step: PackRhs) -> View:
        goal = point.contraction(step.stage)
        move = point.move(step)
        assert move.layout is not None
        dim, width, group = panels_of(move.layout, goal.operand_names(RHS))
        sizes = (1, *goal.operand_shape(RHS)[1:])
        return View.panels(move.dtype or goal.operands[RHS].dtype, sizes, dim, width, group)

    def _pack_bytes(self, point: Point, step: PackRhs) -> int:
        view = self._panels(point, step)
        size = view.shape[1] * view.strides[1] * dtype_bytes(view.dtype)
        return -(-size // ALIGNMENT) * ALIGNMENT

    # ------------------------------------------------------------ steps

    def emit(self, b: Builder, node: Node, env: Env) -> None:
        if isinstance(node, Loop) and node.threads:
            self._fork(b, node, env)
        elif isinstance(node, Loop):
            self._loop(b, node, env)
        elif isinstance(node, PackRhs):
            self._pack(b, node, env)
        elif isinstance(node, Skip):
            self._skip(b, node, env)
        elif isinstance(node, Online):
            form = Form(env.point, node.size, node.home, self.target)
            OnlineEmitter(b, form, node, env.operands, env.packed).emit(env.arena, self._seen(b, env))
        else:
            assert isinstance(node, Stages)
            self._stages(b, node, env)

    def _loop(self, b: Builder, node: Loop, env: Env) -> None:
        at = "bm".index(node.dim)
        body, rest = env.point.tiled(node)
        full = env.point.dims[at] // node.size * node.size
        env = replace(env, operands={n: o.as_memref(b) for n, o in env.operands.items()})
        with b.loop(0, full, node.size) as iv:
            self.emit(b, node.body, self._part(b, env, body, at, iv, node.size))
        if rest is not None and node.rest is not None:
            self.emit(b, node.rest, self._part(b, env, rest, at, full, rest.dims[at]))

    def _part(self, b: Builder, env: Env, point: Point, at: int, start: Index, size: int) -> Env:
        """The operands' parts along b or m."""
        parts = {}
        for name, operand in env.operands.items():
            if at == 0 and (batch := batch_of(point.spec, name)):
                operand = _moved(b, operand, start, batch)
            has = at == 0 or name in self._rows(point.spec)
            parts[name] = operand.tile(b, at, start, size) if has else operand
        return replace(env, point=point, operands=parts, row=b.add(env.row, start) if at else env.row)

    def _rows(self, spec: ChainSpec) -> set[str]:
        """The operands that have m as their second dim: all but those that are rhs."""
        rhs = {s.reads[RHS] for s in spec.stages if s.is_contraction}
        return {f"x{k}" for k in range(spec.inputs)} - rhs | {"y"}

    def _pack(self, b: Builder, node: PackRhs, env: Env) -> None:
        view = self._panels(env.point, node)
        below = env.point.pack(node, self.target)
        start = self.scratch(below, node.body)
        line = f"memref<{view.shape[0] * view.strides[0]}x{view.element}>"
        source = env.operands[env.point.spec.stages[node.stage].reads[RHS]].as_memref(b)
        emit_pack(b, source, Flat(env.arena.part(b, start, line), line, view.dtype), view)
        operand = operand_in(b, env.arena, start, view, view.shape_with_padding)
        self.emit(b, node.body, replace(env, point=below, packed={**env.packed, node.stage: operand}))

    # ------------------------------------------------------------ masks

    def _skip(self, b: Builder, node: Skip, env: Env) -> None:
        """Whether 0 times all that is weighed is 0, and scores are finite where that counts: only then may it be left
        out."""
        below, finite = env.point.skip(), ""
        for name, goal in env.point.checks():
            view = View(goal.operands[-1].dtype, (1, 1, 1), (1, 1, 1))
            room = operand_in(b, env.arena, self.scratch(below, node.body), view, view.sizes)
            solution = nest_search_for(self.target).solve(goal)
            emit_goal(b, goal, solution.schedule, [env.operands[name].as_memref(b), room], self.target)
            zero = b.index(0)
            total = b.value(f"memref.load {room.name}[{zero}, {zero}, {zero}] : {room.view.type}")
            fine = b.value(f"arith.cmpf oeq, {total}, {b.constant('0.0', view.dtype)} : {view.dtype}")
            finite = b.value(f"arith.andi {finite}, {fine} : i1") if finite else fine
        self.emit(b, node.body, replace(env, point=below, finite=finite))

    def _seen(self, b: Builder, env: Env) -> str:
        """How many columns the rows of a tile look at; "" for all."""
        mask, columns = env.point.spec.mask, env.point.spec.stages[0].shape[2]
        if mask is None or not env.finite:
            return ""
        beyond = b.index(b.add(env.row, env.point.dims[1] + mask.above))
        least = b.value(f"arith.maxsi {beyond}, {b.index(0)} : index")
        most = b.value(f"arith.minsi {least}, {b.index(columns)} : index")
        return b.value(f"arith.select {env.finite}, {most}, {b.index(columns)} : index")

    # ------------------------------------------------------------ threads

    def _fork(self, b: Builder, node: Loop, env: Env) -> None:
        """A function that every thread runs for its share of the trips; it takes bare pointers."""
        names = list(env.operands)
        threads, each = env.point.shares(node), self.scratch(env.point, node) // env.point.shares(node)
        args: list[str] = []
        for name in names:
            args += env.operands[name].parts(b)
        types = [t for n in names for t in (f"memref<{env.operands[n].view.element}>", "index")]
        if each:
            args.append(env.arena.base(b))
            types.append("memref<i8>")
        args.append(b.index(env.row))
        types.append("index")
        thread = b.name()
        name = self._function(b, node, env, names, threads, each)
        zero, one, many = (b.index(i) for i in (0, 1, threads))
        b.line(f"scf.parallel ({thread}) = ({zero}) to ({many}) step ({one}) {{")
        b.line(f"func.call @{name}({', '.join([*args, thread])}) : ({', '.join([*types, 'index'])}) -> ()")
        b.line(f"}} {{{THREADS}}}")

    def _function(self, outer: Builder, node: Loop, env: Env, names: Sequence[str], threads: int, each: int) -> str:
        b = Builder(outer.machine)
        operands, parameters = {}, []
        for i, name in enumerate(names):
            view = env.operands[name].view
            operands[name] = Operand(view, base=f"%base{i}", offset=f"%offset{i}").as_memref(b)
            parameters += [f"%base{i}: memref<{view.element}>", f"%offset{i}: index"]
        arena = NO_ARENA
        if each:
            parameters.append(f"%scratch: memref<i8> {{llvm.align = {ALIGNMENT} : i64}}")
            arena = Arena.of_scratch(b, each * threads).slice(b, "%thread", each)
        parameters += ["%row: index", "%thread: index"]
        row: Index = env.row if isinstance(env.row, int) else "%row"
        self._share(b, node, replace(env, operands=operands, arena=arena, row=row), threads)
        body = b.text()
        digest = hashlib.blake2s(f"{body} {parameters}".encode(), digest_size=5).hexdigest()
        name, count = f"morello_chain_{digest}", 0
        while name in self.taken:
            count += 1
            name = f"morello_chain_{digest}_{count}"
        self.taken.add(name)
        self.functions.append(f"func.func private @{name}({', '.join(parameters)}) {INTERNAL} {{\n{body}\nreturn\n}}")
        return name

    def _share(self, b: Builder, node: Loop, env: Env, threads: int) -> None:
        """What thread `%thread` does."""
        at = "bm".index(node.dim)
        body, rest = env.point.tiled(node)
        full = env.point.dims[at] // node.size * node.size
        trips = full // node.size + (rest is not None)
        low, high = (b.index(b.div(b.mul(t, trips), threads)) for t in ("%thread", b.add("%thread", 1)))
        first, beyond = (b.index(b.mul(trip, node.size)) for trip in (low, high))
        last = b.value(f"arith.minui {beyond}, {b.index(full)} : index")
        iv = b.name()
        b.line(f"scf.for {iv} = {first} to {last} step {b.index(node.size)} {{")
        self.emit(b, node.body, self._part(b, env, body, at, iv, node.size))
        b.line("}")
        if rest is not None and node.rest is not None:
            b.line(f"scf.if {b.value(f'arith.cmpi eq, {high}, {b.index(trips)} : index')} {{")
            self.emit(b, node.rest, self._part(b, env, rest, at, full, rest.dims[at]))
            b.line("}")

    # ------------------------------------------------------------ stages

    def _stages(self, b: Builder, node: Stages, env: Env) -> None:
        point, rooms, start = env.point, {}, 0
        for t, home in enumerate(node.homes):
            if not home.startswith("t"):
                rooms[t] = self._room(b, env, t, start)
                start += point.lines(t) * LINE
        for at, stage in enumerate(point.spec.stages):
            made = "y" if at + 1 == len(point.spec.stages) else f"t{at}"
            operands = []
            for i, name in enumerate((*stage.reads, made)):
                if stage.is_contraction and i == RHS and at in env.packed:
                    operands.append(env.packed[at])
                elif name.startswith("t"):
                    operands.append(rooms[point.home(node.homes, int(name[1:]))])
                else:
                    operands.append(env.operands[name].as_memref(b))
            if stage.is_contraction:
                # What is done to the sums has its operands behind the output.
                operands.insert(2, operands.pop())
            goal = point.goal(at, node.homes, self.target)
            emit_goal(b, goal, schedule.parse(node.schedules[at]), operands, self.target)

    def _room(self, b: Builder, env: Env, t: int, start: int) -> Operand:
        """A tile of an intermediate result, in the scratch."""
        stage, row = env.point.spec.stages[t], env.point.row(t)
        rows, columns = env.point.dims[1], stage.shape[2]
        view = View(stage.dtype, (1, rows, columns), (rows * row, row, 1))
        return operand_in(b, env.arena, start, view, (1, rows, row))


def expand(op: ChainOp, target: Target) -> None:
    """Replaces a chain that has a schedule by what it says. Raises ScheduleError where a step is not legal or is a
    hole, SpecError where the op is malformed."""
    spec = op.spec
    node = parse(op.schedule_text or "")
    if has_hole(node):
        raise ScheduleError("the schedule has holes: run morello-search before")
    point = Point.of(spec, target)
    chain_search_for(target).price(point, node)
    module = module_of(op.operation)
    splice(module, [op.operation], "\n".join(["module {", *_texts(op, point, node, target, symbols(module)), "}"]))


def _texts(op: ChainOp, point: Point, node: Node, target: Target, taken: set[str]) -> list[str]:
    """The function whose body takes the place of `op`, and those that it calls."""
    emitter = Emitter(target, taken)
    b = Builder(Machine.of(target, "f32"))
    operands = {}
    for i, (name, value) in enumerate(zip(point.spec.names, op.operands, strict=True)):
        view = view_of(point.spec, name, value.type)
        if batch_of(point.spec, name):
            operands[name] = begun(b, view, f"%arg{i}", value.type).as_memref(b)
            continue
        same = str(value.type) == view.type
        cast = f"%arg{i}" if same else b.value(f"memref.cast %arg{i} : {value.type} to {view.type}")
        operands[name] = Operand(view, cast)
    arena = Arena(size=emitter.scratch(point, node))
    if arena.size:
        room = b.value(f"memref.alloc() {{alignment = {ALIGNMENT} : i64}} : {arena.type}")
        arena = Arena(room, arena.size)
    emitter.emit(b, node, Env(point, operands, arena))
    if arena.size:
        b.line(f"memref.dealloc {arena.name} : {arena.type}")
    arguments = ", ".join(f"%arg{i}: {value.type}" for i, value in enumerate(op.operands))
    return [f"func.func private @{ROOT}0({arguments}) {{\n{b.text()}\nreturn\n}}", *emitter.functions]


def batch_of(spec: ChainSpec, name: str) -> list[tuple[int, int]]:
    """Sizes and strides of the dims that b is in an operand, if it is several there."""
    at, i = (len(spec.stages) - 1, -1) if name == "y" else spec.readers(name)[0]
    goal = spec.stages[at].goal
    if isinstance(goal, Spec) or len(goal.dims) == 3:
        return []
    return [*zip(goal.dims[:-2], goal.operands[i].strides[:-2], strict=True)]


def _moved(b: Builder, operand: Operand, at: Index, batch: Sequence[tuple[int, int]]) -> Operand:
    """An operand that begins with element `at` of b, which is the dims `batch`."""
    base, offset = operand.parts(b)
    start: Index = offset
    for i, (size, stride) in reversed([*enumerate(batch)]):
        digit = b.rest(at, size) if i else at
        start, at = b.add(start, b.mul(digit, stride)), b.div(at, size)
    return Operand(operand.view, base=base, offset=b.index(start)).as_memref(b)


def view_of(spec: ChainSpec, name: str, type_: Any) -> View:
    """How an operand lies. Raises SpecError where its memref is not what the stages say."""
    last = len(spec.stages) - 1
    at, i = (last, len(spec.stages[last].reads)) if name == "y" else spec.readers(name)[0]
    goal = spec.stages[at].goal
    if isinstance(goal, Spec):
        more = goal.then.extras if goal.then else ()
        sizes = goal.operand_shape(min(i, 2))
        dtype = more[i - 2].dtype if 2 <= i < 2 + len(more) else goal.operands[min(i, 2)].dtype
    else:
        sizes, dtype = goal.dims, goal.operands[i].dtype
    if not isinstance(type_, ir.MemRefType) or tuple(type_.shape) != tuple(sizes):
        raise SpecError(f"operand {name}: expected a memref of {list(sizes)}, not {type_}")
    strides, _ = type_.get_strides_and_offset()
    if len(sizes) > 3:
        # Along b it is moved by hand: see batch_of.
        return View(dtype, (math.prod(sizes[:-2]), *sizes[-2:]), (0, *strides[-2:]))
    return View(dtype, tuple(sizes), tuple(strides))
