"""The recursive walk over a plan: loops, packs, registers and kernels, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from ..spec import dtype_bytes
from ..targets import LINE
from .ahead import Aheads
from .amx import AMX_KERNELS, CONFIGURE, configure, release
from .builder import Builder, Index
from .bundle import Ask, First, is_straight, unroll
from .finish import Finish
from .kernels import MEMORY_KERNELS
from .leftover import emit_spec
from .outline import Outliner
from .pack import emit_pack
from .plan import (
    DIMS,
    DOTS,
    LONG_ROW,
    OPERANDS,
    Ahead,
    Exchanged,
    Leaf,
    Leftover,
    Loop,
    Pack,
    PackShare,
    Parallel,
    Plan,
    Registers,
    Sums,
    scratch_bytes,
    streams,
)
from .registers import add_up, emit_registers
from .views import LHS, NO_ARENA, OPERAND_DIMS, OUT, RHS, Arena, Flat, Operand, View, operand_in

#: Lines between asking for one of the last-level cache and using it.
_AHEAD = 64
#: The same for rows of rhs that come from memory, a few side by side: lines of each row.
_ALONG = 16


@dataclass(frozen=True, slots=True)
class Env:
    """What a node is emitted into: its operands, whether the first reduction step stores, scratch for packs, how many k
    steps a kernel's loop takes where that is an argument, what it asks for (see `broadcast_fma`), and which of the
    threads this is that share the next Parallel (None: there is but one, so far). constants: what the constant operands
    hold, by name of the operand (see `SpecOp.constants`). finish: what is done to the sums at the last step; its
    operands follow the others."""

    operands: tuple[Operand, ...]
    first: First
    arena: Arena = NO_ARENA
    looped: str | None = None
    ask: Ask | None = None
    thread: str | None = None
    constants: Mapping[str, str] = field(default_factory=dict)
    finish: Finish | None = None

    def with_operand(self, i: int, operand: Operand) -> Env:
        operands = list(self.operands)
        operands[i] = operand
        return replace(self, operands=tuple(operands))

    def exchanged(self, b: Builder) -> Env:
        """The transposed problem: all that has the dims of the output transposed, lhs and rhs in each other's place."""
        lhs, rhs, *more = (o.exchanged(b) for o in self.operands)
        names = {OPERANDS[LHS]: OPERANDS[RHS], OPERANDS[RHS]: OPERANDS[LHS]}
        constants = {names[name]: contents for name, contents in self.constants.items()}
        finish = self.finish and replace(self.finish, then=self.finish.then.exchanged())
        return replace(self, operands=(rhs, lhs, *more), constants=constants, finish=finish)

    def tile(self, b: Builder, dim: str, at: int | str, size: int) -> Env:
        """The operands' parts from `at` along `dim`."""
        return self._parts(dim, lambda o, number: o.tile(b, number, at, size))

    def comb(self, b: Builder, dim: str, at: int | str, size: int, apart: int) -> Env:
        """Of the operands, `size` places along `dim` that are `apart`, from `at` on."""
        return self._parts(dim, lambda o, number: o.comb(b, number, at, size, apart))

    def _parts(self, dim: str, part: Callable[[Operand, int], Operand]) -> Env:
        """The operands, of those that have `dim` the part that `part` takes, given its number among theirs."""
        parts = []
        for i, o in enumerate(self.operands):
            dims = OPERAND_DIMS[min(i, OUT)]
            parts.append(part(o, dims.index(dim)) if dim in dims else o)
        return replace(self, operands=tuple(parts))


class Walk:
    """Emits plans into builders; what is shared becomes calls (see `outline`). on_tiles: some kernel runs on tiles."""

    def __init__(self, outliner: Outliner, aheads: Aheads, on_tiles: bool = False):
        self.outliner = outliner
        self.aheads = aheads
        self.on_tiles = on_tiles
        self._scratch: dict[Plan, int] = {}

    def scratch(self, plan: Plan) -> int:
        """Bytes of scratch that `plan` needs."""
        return scratch_bytes(plan, self._scratch)

    @contextmanager
    def tiles(self, b: Builder, wanted: bool) -> Iterator[None]:
        """Sets the shapes of tile registers for what is emitted inside, where that is `wanted`."""
        if wanted:
            self._set_tiles(b)
        yield
        if wanted:
            release(b)

    def _set_tiles(self, b: Builder) -> None:
        self.outliner.support(b, f"{CONFIGURE}_{b.machine.dtype}", configure)

    def root(self, b: Builder, plan: Plan, env: Env) -> None:
        """The plan of an op: in place, unless other ops have the same. A kernel by itself needs no call."""
        while isinstance(plan, (Ahead, Exchanged)):
            if isinstance(plan, Exchanged):
                env, plan = env.exchanged(b), plan.body
                continue
            source = env.operands[plan.operand]
            contents = env.constants.get(OPERANDS[plan.operand], "")
            env = env.with_operand(plan.operand, self.aheads.panels(b, plan, source, contents))
            plan = plan.body
        # What takes memory on the stack must not stand in a loop of the user's.
        on_stack = isinstance(plan, Leaf) and plan.kernel in AMX_KERNELS
        if isinstance(plan, (Parallel, Sums)) or on_stack or self.outliner.is_shared(plan):
            self.emit(b, plan, env)
        else:
            self.body(b, plan, env)

    def emit(self, b: Builder, plan: Plan, env: Env) -> None:
        """`plan`, as a call where it is outlined, else in place."""
        forks = isinstance(plan, Parallel)
        if (forks and env.thread is None) or (not forks and self.outliner.outlines(plan)):
            self.outliner.call(b, plan, env.operands, env.first, env.arena, self.scratch(plan), env.finish, env.ask)
        else:
            self.body(b, plan, env)

    def body(self, b: Builder, plan: Plan, env: Env) -> None:
        """`plan` in place."""
        if isinstance(plan, Loop):
            self._loop(b, plan, env)
        elif isinstance(plan, Parallel):
            self._share(b, plan, env)
        elif isinstance(plan, Sums):
            self._sums(b, plan, env)
        elif isinstance(plan, PackShare):
            self._pack_share(b, plan, env)
        elif isinstance(plan, Exchanged):
            self.emit(b, plan.body, env.exchanged(b))
        elif isinstance(plan, Pack):
            self._pack(b, plan, env)
        elif isinstance(plan, Registers):
            emit_registers(b, plan, env.operands, env.first, env.looped, env.finish, env.ask)
        elif isinstance(plan, Leftover):
            emit_spec(b, plan, env.operands, env.first, env.constants, env.finish)
            if self.on_tiles:
                # What it becomes may set shapes of tiles of its own, and let go of them.
                self._set_tiles(b)
        else:
            assert isinstance(plan, Leaf), "panels are packed ahead at the top only"
            emit = (MEMORY_KERNELS | AMX_KERNELS)[plan.kernel]
            more = (env.ask,) if env.ask else ()
            emit(b, plan.sizes, env.operands, env.first, env.finish, *more)

    def _loop(self, b: Builder, plan: Loop, env: Env) -> None:
        env = replace(env, operands=tuple(o.as_memref(b) for o in env.operands))
        reduces = plan.dim == "k"
        apart = plan.apart and _rows_follow(plan, env.operands)
        end, step = (plan.trips, 1) if apart else (plan.full, plan.size)
        with b.loop(0, end, step) as iv:
            if apart:
                inside = replace(env.comb(b, plan.dim, iv, plan.size, plan.trips), ask=None)
            else:
                ask = _ask(b, plan, plan.body, env, iv)
                inside = replace(env.tile(b, plan.dim, iv, plan.size), ask=ask)
            if reduces:
                inside = replace(inside, finish=self._last_trip(b, iv, plan, env.finish, end - step))
            if reduces and isinstance(iv, str):
                inside = replace(inside, first=self._first_trip(b, iv, env.first))
            self.emit(b, plan.body, inside)
        if plan.rest is not None:
            left = plan.sizes[DIMS.index(plan.dim)] - plan.full
            ask = _ask(b, plan, plan.rest, env, plan.full)
            outside = replace(env.tile(b, plan.dim, plan.full, left), ask=ask)
            self.emit(b, plan.rest, replace(outside, first=False) if reduces else outside)

    def _share(self, b: Builder, plan: Parallel, env: Env) -> None:
        """What thread `env.thread` does: its part of the trips, in the scratch of its own."""
        assert env.thread is not None
        lead, member = env.thread, None
        if plan.inner > 1:
            lead = b.value(f"arith.divui {env.thread}, {b.index(plan.inner)} : index")
            member = b.value(f"arith.remui {env.thread}, {b.index(plan.inner)} : index")
        arena = env.arena.slice(b, lead, self.scratch(plan) // plan.threads)
        operands = tuple(o.as_memref(b) for o in env.operands)
        env = replace(env, operands=operands, arena=arena, thread=member)
        if plan.dim == "k":
            env = env.with_operand(OUT, operands[OUT].tile(b, 0, lead, 1))
        after = b.add(lead, 1)
        low, high = (b.index(b.div(b.mul(t, plan.trips), plan.threads)) for t in (lead, after))
        first, beyond = (b.index(b.mul(trip, plan.size)) for trip in (low, high))
        last = b.value(f"arith.minui {beyond}, {b.index(plan.full)} : index")
        iv = b.name()
        b.line(f"scf.for {iv} = {first} to {last} step {b.index(plan.size)} {{")
        self.emit(b, plan.body, self._trip(b, plan, env, iv, plan.size, first))
        b.line("}")
        if plan.rest is not None:
            left = plan.sizes[DIMS.index(plan.dim)] - plan.full
            b.line(f"scf.if {b.value(f'arith.cmpi eq, {high}, {b.index(plan.trips)} : index')} {{")
            self.emit(b, plan.rest, self._trip(b, plan, env, plan.full, left, first))
            b.line("}")
        if streams(plan):
            b.fence()

    @staticmethod
    def _trip(b: Builder, plan: Parallel, env: Env, at: Index, size: int, start: str) -> Env:
        """The trip at `at` of a thread that begins at `start`: along k only its first one stores."""
        inside = env.tile(b, plan.dim, at, size)
        if plan.dim != "k":
            return inside
        return replace(inside, first=b.value(f"arith.cmpi eq, {b.index(at)}, {start} : index"))

    def _sums(self, b: Builder, plan: Sums, env: Env) -> None:
        """The threads' sums lie in the arena above all that threads need."""
        start, view = self.scratch(plan.body), plan.view
        line = f"memref<{plan.bytes // dtype_bytes(view.dtype)}x{view.element}>"
        base, offset, size, stride = (b.name() for _ in range(4))
        b.line(
            f"{base}, {offset}, {size}, {stride} = memref.extract_strided_metadata {env.arena.part(b, start, line)} : "
            f"{line} -> memref<{view.element}>, index, index, index"
        )
        sums = Operand(view, base=base, offset=offset)
        inputs = env.operands[:OUT]
        self.outliner.call(b, plan.body, (*inputs, sums), True, env.arena, start)
        add_up(b, sums, env.operands, env.first, env.finish)

    def _pack_share(self, b: Builder, plan: PackShare, env: Env) -> None:
        """Threads take as many panels each; the last that has any may find fewer."""
        source, panels = (o.as_memref(b) for o in env.operands)
        whole = panels.view.sizes[plan.dim]
        each = plan.extent(whole)
        full, left = divmod(whole, each)
        for kind, count, size in (("ult", full, each), ("eq", full, left)):
            if (count == 0 and kind == "ult") or size == 0:
                continue
            b.line(f"scf.if {b.value(f'arith.cmpi {kind}, {env.thread}, {b.index(count)} : index')} {{")
            at = b.mul(str(env.thread), each)
            part = panels.tile(b, plan.dim, at, size)
            emit_pack(b, source.tile(b, plan.dim, at, size), part.flat(b), part.view)
            b.line("}")

    @staticmethod
    def _first_trip(b: Builder, iv: str, first: First) -> First:
        """Only the first trip of a reduction loop can be the first step."""
        if first is False:
            return False
        is_first = b.value(f"arith.cmpi eq, {iv}, {b.index(0)} : index")
        return is_first if first is True else b.value(f"arith.andi {is_first}, {first} : i1")

    @staticmethod
    def _last_trip(b: Builder, iv: Index, plan: Loop, finish: Finish | None, last: int) -> Finish | None:
        """Only the last trip of a reduction loop without a remainder can be the last step."""
        if finish is None or plan.rest is not None:
            return None
        if not isinstance(iv, str):
            return finish
        is_last = b.value(f"arith.cmpi eq, {iv}, {b.index(last)} : index")
        return finish.on(is_last if finish.last is True else b.value(f"arith.andi {is_last}, {finish.last} : i1"))

    def _pack(self, b: Builder, plan: Pack, env: Env) -> None:
        """The panels lie in the arena above all that the body needs: the place does not depend on the caller."""
        view = plan.panels
        start = self.scratch(plan.body)
        # Written as a line of elements, read as panels without their last, unused row.
        line = f"memref<{view.shape[0] * view.strides[0]}x{view.element}>"
        if plan.threads == 1:
            emit_pack(b, env.operands[plan.operand], Flat(env.arena.part(b, start, line), line, view.dtype), view)
        operand = operand_in(b, env.arena, start, view, view.shape_with_padding)
        if plan.threads > 1:
            share = PackShare(plan.sizes, plan.dim, plan.width, plan.threads)
            self.outliner.call(b, share, (env.operands[plan.operand], operand), False, NO_ARENA, 0)
        self.emit(b, plan.body, env.with_operand(plan.operand, operand))


def _rows_follow(plan: Loop, operands: Sequence[Operand]) -> bool:
    """Whether the long rows of an input, along which `plan` does not go, follow one another in memory: only then is one
    taken after the other a stream without end."""
    for operand, dims in zip(operands[:OUT], OPERAND_DIMS, strict=False):
        if plan.dim in dims:
            at, view = dims.index(plan.dim), operand.view
            row = view.sizes[3 - at]
            if row * dtype_bytes(view.dtype) >= LONG_ROW and view.has_unit(3 - at) and view.stride(at) == row:
                return True
    return False


def _ask(b: Builder, plan: Loop, body: Plan, env: Env, iv: Index) -> Ask | None:
    """What the kernel `body` at place `iv` of a loop over rows, its body or its remainder, asks for (see `Ask`).

    Tiles of rows that read one panel of rhs that was packed ahead: their parts of the next panel, which lie one after
    the other. Dot products with full rows of lhs: the rows of the next tile, where there is room for more loads.
    """
    if plan.dim == "n" and env.ask and env.ask.lines and _is_tile(body):
        return _share(b, plan, body, env.ask, iv)
    lhs, rhs = env.operands[LHS].view, env.operands[RHS].view
    if plan.dim == "n":
        own = _own_rows(b, body, rhs)
        return own or (_along_rows(b, plan, body, rhs) if iv != plan.full else None)
    if plan.dim != "m":
        return None
    _, m, _, n = body.sizes
    if isinstance(body, Leaf) and body.kernel in DOTS:
        is_last, room = iv == plan.full, 2 * m + n <= m * n
        return Ask(plan.size * lhs.stride(1)) if room and not is_last else None
    if not rhs.ahead and (iv != plan.full or isinstance(iv, str)):
        return _next_panel(b, plan, body, lhs)
    if not _is_tile(body) or not rhs.ahead or rhs.packed is None or rhs.sizes[2] > rhs.packed[1]:
        return None
    trips = plan.full // plan.size + (plan.rest is not None)
    part = rhs.sizes[1] * rhs.packed[1] // trips
    return Ask(b.add(b.mul(b.div(iv, plan.size), part), rhs.strides[1]), trips)


def _own_rows(b: Builder, body: Plan, rhs: View) -> Ask | None:
    """What tiles of few rows ask for, each of which reads other panels of `rhs`, all packed ahead, from the last-level
    cache: their own rows. Panels that come from L2 are read slower with more loads beside them, and those from memory
    no faster: hardware foresees both."""
    size = rhs.sizes[1] * rhs.sizes[2] * dtype_bytes(rhs.dtype)
    if not rhs.ahead or not _is_tile(body) or not b.machine.l2 < size < b.machine.l3 // 2:
        return None
    _, m, _, n = body.sizes
    vectors, lines = -(-n // b.machine.lanes), -(-n * dtype_bytes(rhs.dtype) // LINE)
    return Ask(0, steps=-(-_AHEAD // lines)) if m + vectors + lines > m * vectors else None


def _along_rows(b: Builder, plan: Loop, body: Plan, rhs: View) -> Ask | None:
    """What tiles ask for that come one after the other along a few long rows of `rhs`, which lie in memory in place:
    these rows, further on. A tile is more instructions than a core looks ahead, and hardware that foresees the rows is
    not told early enough."""
    if not plan.far or not _is_tile(body) or rhs.packed or plan.full * dtype_bytes(rhs.dtype) < LONG_ROW:
        return None
    _, m, k, n = body.sizes
    vectors = -(-n // b.machine.lanes)
    once = is_straight(m, vectors, k) or k < 2 * unroll(m, vectors)
    past = isinstance(body, Registers) and body.streams
    return Ask(0, along=_ALONG * LINE // dtype_bytes(rhs.dtype)) if once and not past else None


def _is_tile(plan: Plan) -> bool:
    """Whether it is a register tile of `broadcast_fma`."""
    return isinstance(plan, Registers) and isinstance(plan.body, Leaf) and plan.body.kernel == "broadcast_fma"


def _next_panel(b: Builder, plan: Loop, body: Plan, lhs: View) -> Ask | None:
    """What the kernels of one panel of lhs ask for, where all panels together, of which `lhs` may be a part along k, do
    not stay in L2: the next one. They read that panel along n, or there is only one."""
    size = -(-lhs.sizes[1] // plan.size) * lhs.strides[1] * dtype_bytes(lhs.dtype)
    if lhs.packed != (1, plan.size) or lhs.group > 1 or lhs.ahead or size <= b.machine.l2:
        return None
    trips, tile = 1, body
    if isinstance(body, Loop) and body.dim == "n":
        trips, tile = body.full // body.size, body.body
    if not _is_tile(tile):
        return None
    step = unroll(tile.sizes[1], -(-tile.sizes[3] // b.machine.lanes))
    return Ask(lhs.strides[1], trips, -(-step * plan.size * dtype_bytes(lhs.dtype) // (LINE * trips)))


def _share(b: Builder, plan: Loop, body: Plan, ask: Ask, iv: Index) -> Ask:
    """The part of the next panel of lhs that falls to the kernel at `iv` of a loop along n; again from its start, when
    all of it has been asked for."""
    _, m, depth, n = body.sizes
    iterations = depth // unroll(m, -(-n // b.machine.lanes))
    part = iterations * ask.lines * (LINE // dtype_bytes(b.machine.dtype))
    at = b.mul(b.div(iv, plan.size), part)
    if part >= depth * m:
        return ask
    return replace(ask, at=b.add(ask.at, b.rest(at, depth * m)))
