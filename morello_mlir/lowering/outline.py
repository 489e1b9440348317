"""Outlining: which nodes become functions, and how they are called.

Micro-kernels always do, other nodes where several places of the module refer to them. A function is named after what it
does and a digest of everything that its code depends on: equal code has one name, in whatever order it is met.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, fields, replace

from .builder import Builder, Index
from .bundle import Ask, First, is_straight, unroll
from .finish import Finish
from .machine import Machine
from .plan import ALIGNMENT, Ahead, Exchanged, Leaf, Leftover, Loop, Pack, PackShare, Parallel, Plan, Registers, Sums
from .views import LHS, OUT, RHS, Arena, Operand, View

INTERNAL = 'attributes {passthrough = ["noinline"], llvm.linkage = #llvm.linkage<internal>}'
#: On an `scf.parallel` whose trips are threads' shares of the work, for the pass `morello-parallel-to-pool`.
THREADS = "morello.threads"
_ARENA_ATTRIBUTES = f"{{llvm.align = {ALIGNMENT} : i64}}"


@dataclass(frozen=True, slots=True)
class Job:
    """A function that is to be emitted. counted: its k loop takes as many steps as an argument says. stores: the first
    reduction step stores, at every call; else an argument says so. finish: what is done to the sums at the last step;
    an argument says whether this is one, where it is not so at every call. asks: see `Ask`; an argument
    says where in rhs that begins."""

    name: str
    plan: Plan
    views: tuple[View, ...]
    scratch: int
    counted: bool
    stores: bool
    finish: Finish | None = None
    asks: Ask | None = None

    @property
    def threaded(self) -> bool:
        """Whether it is what each thread runs: its last argument says which one that is."""
        return isinstance(self.plan, (Parallel, PackShare))


class Outliner:
    """The functions of one element type in one module.

    references: how many places refer to each plan. existing: symbols of the module; a function that is there is called.
    """

    def __init__(self, machine: Machine, references: Mapping[Plan, int], existing: Set[str]):
        self.machine = machine
        self.jobs: list[Job] = []
        #: Texts of functions that `support` made.
        self.supports: list[str] = []
        self._references = references
        self._existing = existing
        self._made: set[str] = set()
        #: What the text must declare: functions that the module has already.
        self.declarations: dict[str, str] = {}
        self._digests: dict[Plan, str] = {}

    def outlines(self, plan: Plan) -> bool:
        return self.is_shared(plan) or isinstance(plan, (Registers, Leaf, Sums))

    def is_shared(self, plan: Plan) -> bool:
        """Whether several places refer to `plan`."""
        return not isinstance(plan, (Leftover, Ahead)) and self._references.get(plan, 0) > 1

    def call(
        self,
        b: Builder,
        plan: Plan,
        operands: Sequence[Operand],
        first: First,
        arena: Arena,
        scratch: int,
        finish: Finish | None = None,
        ask: Ask | None = None,
    ) -> None:
        """Calls the function of `plan`, which is emitted later if it does not exist yet; once for every thread, where
        it is what a thread runs."""
        if finish is None:
            operands = operands[: OUT + 1]
        operands = [_knowing(o, plan if i == LHS else None) for i, o in enumerate(operands)]
        views = [o.view for o in operands]
        # Through a window, and at its edges, there are several loops.
        looped = 0 if any(any(v.units) or v.edges for v in views) else self._looped_steps(plan)
        if looped:
            plan = self._shortened(plan, looped)
            views[LHS] = views[LHS].with_size(2, plan.sizes[2])
            views[RHS] = views[RHS].with_size(1, plan.sizes[2])
        known = finish and finish.on(finish.last if finish.last is True else "%last")
        asks = ask if ask and (ask.own or not isinstance(plan, Registers)) else None
        if ask and not ask.own and (looped or ask.lines):
            asks = replace(ask, at="%ask")
        job = self._job(
            Job("", plan, tuple(v.canonical() for v in views), scratch, looped > 0, first is True, known, asks)
        )
        given = [part for o in operands for part in _operand_parts(b, o, job)]
        if scratch:
            given.append((arena.base(b), "memref<i8>"))
        if looped:
            given.append((b.index(looped), "index"))
        if ask and asks and asks.at == "%ask":
            given.append((b.index(ask.at), "index"))
        if not job.stores:
            given.append((first if isinstance(first, str) else b.constant("false", "i1"), "i1"))
        if finish is not None and isinstance(finish.last, str):
            given.append((finish.last, "i1"))
        if job.threaded:
            given.append((b.name(), "index"))
        self._enter(b, job, plan, given)

    def _enter(self, b: Builder, job: Job, plan: Plan, given: Sequence[tuple[str, str]]) -> None:
        """Calls the function of `job` with values of types; once for every thread, which the last value numbers."""
        args, types = (", ".join(words) for words in zip(*given, strict=True))
        if job.name in self._existing:
            self.declarations[job.name] = f"func.func private @{job.name}({types})"
        elif job.name not in self._made:
            self._made.add(job.name)
            self.jobs.append(job)
        call = f"func.call @{job.name}({args}) : ({types}) -> ()"
        if isinstance(plan, (Parallel, PackShare)):
            threads = plan.threads * (plan.inner if isinstance(plan, Parallel) else 1)
            zero, one, many = (b.index(i) for i in (0, 1, threads))
            b.line(f"scf.parallel ({given[-1][0]}) = ({zero}) to ({many}) step ({one}) {{")
            b.line(call)
            b.line(f"}} {{{THREADS}}}")
        else:
            b.line(call)

    def support(self, b: Builder, name: str, emit: Callable[[Builder], None]) -> None:
        """Calls the function `name` without arguments, which `emit` fills if it does not exist yet."""
        if name in self._existing:
            self.declarations[name] = f"func.func private @{name}()"
        elif name not in self._made:
            self._made.add(name)
            inner = Builder(b.machine)
            emit(inner)
            self.supports.append(f"func.func private @{name}() {INTERNAL} {{\n{inner.text()}\nreturn\n}}")
        b.line(f"func.call @{name}() : () -> ()")

    def function(self, job: Job, body: str) -> str:
        """The text of the function of `job`; `arguments` has the names that `body` may use."""
        parameters = []
        for i, view in enumerate(job.views):
            if job.threaded:
                parameters += [f"%base{i}: memref<{view.element}>", f"%offset{i}: index"]
            else:
                parameters.append(f"%pointer{i}: !llvm.ptr")
            parameters += [f"{at}: index" for begin in _begins(i, view) for at in begin if isinstance(at, str)]
        if job.scratch:
            parameters.append(f"%scratch: memref<i8> {_ARENA_ATTRIBUTES}")
        if job.counted:
            parameters.append("%looped: index")
        if job.asks and job.asks.at == "%ask":
            parameters.append("%ask: index")
        if not job.stores:
            parameters.append("%first: i1")
        if job.finish is not None and job.finish.last is not True:
            parameters.append("%last: i1")
        if job.threaded:
            parameters.append("%thread: index")
        return f"func.func private @{job.name}({', '.join(parameters)}) {INTERNAL} {{\n{body}\nreturn\n}}"

    def _looped_steps(self, plan: Plan) -> int:
        """How many k steps the loop of a register tile kernel takes, where it has one; else 0.

        Kernels that differ in nothing else share a function: schedules use many depths, and kernels are most of the
        code. The depth as an argument costs nothing that can be measured.
        """
        if not (isinstance(plan, Registers) and isinstance(plan.body, Leaf)):
            return 0
        depth, step = plan.sizes[2], self._step(plan)
        if is_straight(plan.sizes[1], -(-plan.sizes[3] // self.machine.lanes), depth):
            return 0
        return depth - depth % step if depth >= 2 * step else 0

    def _step(self, plan: Plan) -> int:
        assert isinstance(plan, Registers) and isinstance(plan.body, Leaf)
        return unroll(plan.sizes[1], -(-plan.sizes[3] // self.machine.lanes), plan.body.kernel)

    def _shortened(self, plan: Plan, looped: int) -> Plan:
        """A register tile kernel with one iteration of its loop instead of `looped` steps."""
        assert isinstance(plan, Registers) and isinstance(plan.body, Leaf)
        b, m, k, n = plan.sizes
        sizes = (b, m, k - looped + self._step(plan), n)
        return Registers(sizes, Leaf(sizes, plan.body.kernel), plan.streams)

    def _job(self, job: Job) -> Job:
        """The job with its name."""
        key = f"{self._digest(job.plan)} {job.views} {job.counted} {job.stores} {self.machine}"
        if job.finish is not None:
            key += f" {job.finish}"
        if job.asks:
            key += f" {job.asks}"
        digest = hashlib.blake2s(key.encode(), digest_size=5).hexdigest()
        batch, m, k, n = job.plan.sizes
        sizes = [*([batch] if batch != 1 else []), m, *([] if job.counted else [k]), n]
        return replace(job, name=f"morello_{_kind(job.plan)}_{'x'.join(map(str, sizes))}_{digest}")

    def _digest(self, plan: Plan) -> str:
        """A digest of the tree under `plan`, each node visited once."""
        if plan not in self._digests:
            values = [getattr(plan, f.name) for f in fields(plan)]
            plans = (Loop, Parallel, Sums, Pack, PackShare, Exchanged, Registers, Leaf, Leftover)
            text = repr([self._digest(v) if isinstance(v, plans) else v for v in values])
            self._digests[plan] = hashlib.blake2s(f"{type(plan).__name__} {text}".encode()).hexdigest()
        return self._digests[plan]


def _knowing(operand: Operand, plan: Plan | None) -> Operand:
    """The operand with those edges that `plan` may use; None: it uses none."""
    if not operand.view.edges:
        return operand
    edges = operand.view.edges if plan is not None else ()
    if isinstance(plan, (Registers, Leaf)):
        _, m, k, _ = plan.sizes
        edges = tuple(e for e in edges if e.fits(m) and e.steps(k))
    return operand.with_edges(edges)


def _begins(i: int, view: View) -> tuple[tuple[Index, Index], ...]:
    """Inside of a function: where operand `i` begins at its edges. What has all positions begins at the first."""
    return tuple(
        (f"%position{i}_{number}", f"%tap{i}_{number}") if edge.moves else (0, 0)
        for number, edge in enumerate(view.edges)
    )


def _operand_parts(b: Builder, operand: Operand, job: Job) -> list[tuple[str, str]]:
    """What of an operand the function of `job` takes, with types."""
    begins = [(b.index(at), "index") for e in operand.view.edges if e.moves for at in operand.begin(e)]
    if not job.threaded:
        return [(operand.pointer(b), "!llvm.ptr"), *begins]
    parts = zip(operand.parts(b), (f"memref<{operand.view.element}>", "index"), strict=True)
    return [*parts, *begins]


def arguments(b: Builder, job: Job) -> tuple[Operand, ...]:
    """The operands as they arrive in the function of `job`."""
    found = []
    for i, view in enumerate(job.views):
        begins = _begins(i, view)
        if job.threaded:
            found.append(Operand(view, base=f"%base{i}", offset=f"%offset{i}", begins=begins))
        else:
            found.append(Operand.at(b, view, f"%pointer{i}", begins))
    return tuple(found)


def _kind(plan: Plan) -> str:
    """What a function does, for its name."""
    if isinstance(plan, Leaf):
        return plan.kernel
    if isinstance(plan, Registers):
        inner = plan.body
        while isinstance(inner, Loop):
            inner = inner.body
        return inner.kernel if isinstance(inner, Leaf) else "registers"
    if isinstance(plan, (Parallel, Sums)):
        return "threads" if isinstance(plan, Parallel) else "sums"
    return "pack" if isinstance(plan, (Pack, PackShare)) else "block"
