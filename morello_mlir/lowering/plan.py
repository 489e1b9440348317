"""From a schedule and a Spec to a plan: the tree that is emitted, with sizes, without the steps that emit nothing.

Moves that only promise that something is in a cache vanish, loops over one dim with nothing between them become one,
and equal subtrees are equal objects wherever they came from: limits and cache moves that tell Specs apart do not tell
code apart. With `stop` the schedule is kept as it is written and is cut there: the cut-off subtrees stay as Specs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from ..actions import DOT_KERNELS, TableKey, child_specs, form_of, key_of
from ..actions.move import STREAMS
from ..errors import ScheduleError, SpecError
from ..hashed import Hashed
from ..search import schedule
from ..search.nest_steps import NEST_STEPS
from ..search.schedule import LOOPS, Exchange, Hole, Kernel, Move, Node, PackAhead, Serial, Split, Tile, ToAccum
from ..spec import FUNCTIONS, Layout, Spec, dtype_bytes
from ..targets import Target
from .views import OPERAND_DIMS, OUT, View

#: Sizes by position: b, m, k, n.
Sizes: TypeAlias = tuple[int, ...]
DIMS = FUNCTIONS["Matmul"].dims
OPERANDS = tuple(name for name, _ in FUNCTIONS["Matmul"].operands)
#: Our scratch, and every pack in it, starts at a cache line.
ALIGNMENT = 64


@dataclass(frozen=True, slots=True)
class Loop(Hashed):
    """Steps of `size` along `dim` up to `full`; then `rest` from there on, if any.

    apart: a step takes places that are as far apart as there are trips, instead of neighbours. far: what it reads may
    come from memory.
    """

    sizes: Sizes
    dim: str
    size: int
    full: int
    body: Plan
    rest: Plan | None
    apart: bool = False
    far: bool = False

    @property
    def trips(self) -> int:
        """How often `body` runs."""
        return self.full // self.size


@dataclass(frozen=True, slots=True)
class Parallel(Hashed):
    """As Loop, the trips (the remainder is the last one) shared among `threads` threads. Each of them leads `inner`
    that share the loop inside, the body and the remainder both being Parallel then; 1: there is none."""

    sizes: Sizes
    dim: str
    size: int
    full: int
    body: Plan
    rest: Plan | None
    threads: int
    inner: int

    @property
    def trips(self) -> int:
        return self.full // self.size + (self.rest is not None)


@dataclass(frozen=True, slots=True)
class Sums(Hashed):
    """Each of `threads` threads adds up what it does of `body`, whose trips go along k, in a place of its own; then
    these sums are added up, in order. view: all of them, the number of the thread in place of the batch."""

    sizes: Sizes
    threads: int
    view: View
    body: Parallel

    @property
    def bytes(self) -> int:
        """Room for the sums of all threads."""
        return self.threads * self.view.strides[0] * dtype_bytes(self.view.dtype)


@dataclass(frozen=True, slots=True)
class Pack(Hashed):
    """Copies operand `operand` into panels of `width` along its logical dim `dim` (1 or 2), `group` neighbours along
    the other dim together, as elements of `dtype`; `threads` share in it."""

    sizes: Sizes
    operand: int
    dim: int
    width: int
    group: int
    dtype: str
    body: Plan
    threads: int = 1

    @property
    def panels(self) -> View:
        """How the copy lies."""
        sizes = operand_sizes(self.operand, self.sizes)
        return View.panels(self.dtype, sizes, self.dim, self.width, self.group)


@dataclass(frozen=True, slots=True)
class PackShare(Hashed):
    """What one of `threads` threads does of a pack: as many panels as any, or what is left."""

    sizes: Sizes
    dim: int
    width: int
    threads: int

    def extent(self, whole: int) -> int:
        """Elements along the packed dim for each thread, of `whole` for all."""
        return -(-whole // (self.width * self.threads)) * self.width


@dataclass(frozen=True, slots=True)
class Ahead(Hashed):
    """As Pack, once for all runs. Only at the top: above it there is nothing that emits code."""

    sizes: Sizes
    operand: int
    dim: int
    width: int
    group: int
    dtype: str
    body: Plan


@dataclass(frozen=True, slots=True)
class Exchanged(Hashed):
    """The transposed problem: `body` finds rhs^T as lhs, lhs^T as rhs, and out^T."""

    sizes: Sizes
    body: Plan


@dataclass(frozen=True, slots=True)
class Registers(Hashed):
    """The output tile lives in registers during `body`. streams: it is written past the caches."""

    sizes: Sizes
    body: Plan
    streams: bool = False


@dataclass(frozen=True, slots=True)
class Leaf(Hashed):
    """A kernel."""

    sizes: Sizes
    kernel: str


@dataclass(frozen=True, slots=True)
class Leftover(Hashed):
    """A Spec that stays in the program, with the schedule that remains."""

    sizes: Sizes
    spec: Spec
    schedule: Node


Plan: TypeAlias = Loop | Parallel | Sums | Pack | PackShare | Ahead | Exchanged | Registers | Leaf | Leftover


def operand_sizes(operand: int, sizes: Sizes) -> tuple[int, ...]:
    """The logical shape of an operand."""
    return tuple(sizes[DIMS.index(d)] for d in OPERAND_DIMS[operand])


def children(plan: Plan) -> tuple[Plan, ...]:
    """The subtrees, the remainder last."""
    if isinstance(plan, (Loop, Parallel)):
        return (plan.body,) if plan.rest is None else (plan.body, plan.rest)
    if isinstance(plan, (Sums, Pack, Ahead, Exchanged, Registers)):
        return (plan.body,)
    return ()


@dataclass(frozen=True, slots=True)
class Stop:
    """Where to stop: after `levels` steps of the schedule, or above the first step of a kind.

    kind: `to_accum`, `exchange`, `pack_ahead`, `tile`, `split`, `parallel`, `serial`, `kernel`, `move` (any) or `pack`
    (with a layout).
    """

    levels: int | None = None
    kind: str | None = None

    KINDS = ("to_accum", "exchange", "pack_ahead", "tile", "split", "parallel", "serial", "move", "pack", "kernel")

    @staticmethod
    def parse(value: int | str | None) -> Stop | None:
        """From a number of steps, its text, or a kind of step. Raises ScheduleError."""
        if value is None or value == "":
            return None
        text = str(value)
        if text.isascii() and text.isdigit() and len(text) <= 9:
            return Stop(levels=int(text))
        if text in Stop.KINDS:
            return Stop(kind=text)
        raise ScheduleError(f"stop-at={text}: expected a number of steps or one of {', '.join(Stop.KINDS)}")

    def here(self, node: Node, depth: int) -> bool:
        if self.levels is not None:
            return depth >= self.levels
        if self.kind == "move":
            return isinstance(node, Move)
        if self.kind == "pack":
            return isinstance(node, Move) and node.layout is not None
        return isinstance(node, _KINDS[str(self.kind)])


_KINDS: dict[str, type] = {
    "to_accum": ToAccum,
    "exchange": Exchange,
    "pack_ahead": PackAhead,
    "tile": Tile,
    "split": Split,
    "parallel": schedule.Parallel,
    "serial": Serial,
    "kernel": Kernel,
}


def make_plan(spec: Spec, tree: Node, target: Target, stop: Stop | None = None) -> Plan:
    """The plan of the schedule `tree` for `spec`. Raises ScheduleError for a step that is not legal, naming it."""
    return Planner(target, stop).plan(spec, tree, 0)


class Planner:
    """Makes plans; equal subtrees of equal Specs are planned once, over all schedules that it is given."""

    def __init__(self, target: Target, stop: Stop | None = None):
        self.target = target
        self.stop = stop
        self._memo: dict[tuple[Spec, Node, int], Plan] = {}

    def plan(self, spec: Spec, node: Node, depth: int = 0) -> Plan:
        """The plan of `node` for `spec`, `depth` steps below the top. Raises ScheduleError for an illegal step."""
        level = depth if self.stop else 0
        key = (spec, node, level)
        if key not in self._memo:
            self._memo[key] = self._plan(spec, node, depth)
        return self._memo[key]

    def _plan(self, spec: Spec, node: Node, depth: int) -> Plan:
        if isinstance(node, Hole) or (self.stop and self.stop.here(node, depth)):
            return Leftover(spec.dims, spec, node)
        below = [s for _, s in child_specs(spec, node, self.target)]
        if isinstance(node, Kernel):
            return Leaf(spec.dims, node.name)
        if isinstance(node, LOOPS):
            return self._loop(spec, node, below, depth)
        assert not isinstance(node, NEST_STEPS), "no step of a contraction"
        body = self.plan(below[0], node.body, depth + 1)
        if isinstance(node, (ToAccum, Serial)):
            return body
        if isinstance(node, Exchange):
            return Exchanged(spec.dims, body)
        if node.layout is None:
            streams = spec.operands[OUT].memory == "WC"
            return Registers(spec.dims, body, streams) if node.memory == "VRF" else body
        operand = OPERANDS.index(node.operand)
        names = OPERAND_DIMS[operand]
        layout, dtype = form_of(node.layout, names)
        dim, width, group = panels_of(layout, names)
        dtype = dtype or spec.operands[operand].dtype
        if isinstance(node, PackAhead):
            return Ahead(spec.dims, operand, dim, width, group, dtype, body)
        return Pack(spec.dims, operand, dim, width, group, dtype, body, key_of(spec, self.target).threads)

    def _loop(self, spec: Spec, node: schedule.Loop, below: list[Spec], depth: int) -> Plan:
        extent = spec.size(node.dim)
        body = self.plan(below[0], node.body, depth + 1)
        rest = self.plan(below[1], node.rest, depth + 1) if node.rest is not None and extent % node.size else None
        full = extent - extent % node.size
        if isinstance(node, schedule.Parallel):
            threads = key_of(spec, self.target).threads
            over = node.threads or threads
            shared = Parallel(spec.dims, node.dim, node.size, full, body, rest, over, threads // over)
            return _sums(spec, shared) if node.adds else shared
        key = key_of(spec, self.target)
        loop = _merged(Loop(spec.dims, node.dim, node.size, full, body, rest), key.unit(node.dim))
        return replace(loop, apart=_is_apart(loop, key), far=key.far) if isinstance(loop, Loop) else loop


def _sums(spec: Spec, body: Parallel) -> Sums:
    """The place for sums of threads: rows are an odd multiple of the stride class of the output's apart, so that they
    fall into cache sets as these do."""
    shape, dtype = spec.operand_shape(OUT), spec.sums
    inner = spec.operands[OUT].layout.innermost
    size = dtype_bytes(dtype)
    step = max(1, (spec.row_class(OUT) or size) // size)
    row = step * (-(-shape[inner] // step) | 1)
    line = ALIGNMENT // size
    strides = [-(-row * shape[3 - inner] // line) * line, row, row]
    strides[inner] = 1
    return Sums(spec.dims, body.threads, View(dtype, (body.threads, *shape[1:]), tuple(strides)), body)


def panels_of(layout: Layout, names: Sequence[str]) -> tuple[int, int, int]:
    """The packed dim of a layout, the width of its panels and the size of groups. Raises SpecError for layouts that are
    not lowered."""
    if layout.panels is None:
        raise SpecError(f"layout {layout.text(names)}: only panels along one of the last two dims are lowered")
    return layout.panels


def _merged(loop: Loop, unit: int) -> Plan:
    """Joins loops over one dim that have nothing between them, and drops a loop of one trip. unit: of the window along
    it (1: there is none), inside of which a loop starts anew."""
    body, rest = loop.body, loop.rest
    if loop.size == loop.full and rest is None:
        return body
    if isinstance(body, Loop) and body.dim == loop.dim and body.rest is None and body.size % unit == 0:
        loop = replace(loop, size=body.size, body=body.body)
        return _merged(loop, unit)
    if isinstance(rest, Loop) and (rest.dim, rest.size, rest.body) == (loop.dim, loop.size, body):
        return _merged(replace(loop, full=loop.full + rest.full, rest=rest.rest), unit)
    if rest is not None and rest == body:
        return replace(loop, full=loop.full + loop.size, rest=None)
    return loop


#: Bytes of the shortest row that is one: hardware that foresees lines finds each page anew.
LONG_ROW = 4096
#: The kernels of dot products.
DOTS = tuple(kernel.name for kernel in DOT_KERNELS)
#: Kernels by the dim of a loop along which all operands may have any stride.
_ANY_STRIDE = {"k": ("broadcast_fma",), "m": DOTS, "n": DOTS}


def _is_apart(loop: Loop, key: TableKey) -> bool:
    """Whether the few long rows of an operand that each step of `loop` reads from memory are better taken far apart:
    each then goes on where it ended a step before, an endless stream, which hardware foresees."""
    if not key.far or key.has_window or splits(loop.body, loop.dim):
        return False
    if not 1 < loop.size <= max(STREAMS) or loop.trips < 2:
        return False
    if not leaves(loop.body) <= set(_ANY_STRIDE.get(loop.dim, ())):
        return False
    if any(o.layout.is_packed for i, o in enumerate(key.operands) if loop.dim in key.names(i)):
        # Rows of panels are neighbours.
        return False
    return any(_in_long_rows(key, i, loop) for i in range(OUT))


def _in_long_rows(key: TableKey, operand: int, loop: Loop) -> bool:
    """Whether an input lies in memory in rows along which `loop` does not go, long ones of each of which a step reads
    all."""
    state, names = key.operands[operand], key.names(operand)
    if state.memory != "GL" or state.layout.is_packed or not state.unit or loop.dim not in names:
        return False
    inner = names[state.layout.innermost]
    return inner != loop.dim and loop.sizes[DIMS.index(inner)] * dtype_bytes(key.dtype_of(operand)) >= LONG_ROW


def leaves(plan: Plan) -> set[str]:
    """The names of the kernels of `plan`; what else may be at its leaves, or copies operands, has the empty one."""
    if isinstance(plan, Leaf):
        return {plan.kernel}
    if isinstance(plan, (Loop, Registers)):
        return set().union(*(leaves(c) for c in children(plan)))
    return {""}


def splits(plan: Plan, dim: str) -> bool:
    """Whether some loop of `plan` is over `dim`."""
    return (isinstance(plan, (Loop, Parallel)) and plan.dim == dim) or any(splits(c, dim) for c in children(plan))


def scratch_bytes(plan: Plan, memo: dict[Plan, int]) -> int:
    """Bytes of scratch that `plan` needs: its own pack lies above what its children need, whoever calls it. Each
    thread has its own."""
    if plan not in memo:
        below = max((scratch_bytes(c, memo) for c in children(plan)), default=0)
        below *= plan.threads if isinstance(plan, Parallel) else 1
        own = pack_bytes(plan) if isinstance(plan, Pack) else plan.bytes if isinstance(plan, Sums) else 0
        memo[plan] = below + own
    return memo[plan]


def pack_bytes(pack: Pack) -> int:
    """Bytes that the panels take, padding rows included, rounded up to the alignment."""
    view = pack.panels
    size = math.prod(view.shape[:2]) * view.strides[1] * dtype_bytes(view.dtype)
    return -(-size // ALIGNMENT) * ALIGNMENT


def streams(plan: Plan) -> bool:
    """Whether something of the output is written past the caches."""
    return (isinstance(plan, Registers) and plan.streams) or any(streams(c) for c in children(plan))


def splits_k(plan: Plan) -> bool:
    """Whether sums are put down between steps along k."""
    if isinstance(plan, (Registers, Sums)):
        return False
    return (isinstance(plan, Loop) and plan.dim == "k") or any(splits_k(c) for c in children(plan))


def references(plans: Iterable[Plan]) -> dict[Plan, int]:
    """How many places refer to each node, over all `plans`."""
    refs: dict[Plan, int] = {}
    stack = list(plans)
    while stack:
        p = stack.pop()
        refs[p] = refs.get(p, 0) + 1
        if refs[p] == 1:
            stack.extend(children(p))
    return refs
