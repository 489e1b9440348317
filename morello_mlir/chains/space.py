"""What the steps of a chain's schedule make of it: tiles, what is packed, where intermediate results live, and the
goals that are left for the stages. Each is declared once: search, legality, price and lowering ask here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..actions import MoveAction, OperandState, TableKey, form_of, key_of, matters, reason, spec_of
from ..actions.space import panels
from ..errors import ScheduleError, SpecError
from ..nests import NestSpec, Operand
from ..nests.body import BodyBuilder
from ..nests.ops import element_bytes
from ..spec import Layout, Spec, Then, dtype_bytes, stride_class
from ..targets import LINE, Target, ceil_div, thread_count
from .schedule import Hole, Loop, PackRhs, Skip, Stages
from .spec import ChainSpec, is_contiguous, is_dense

RHS = 1


@dataclass(frozen=True, slots=True)
class Point:
    """A part of a chain. dims: its sizes along b and m. threads: how many work on it. l2: lines of L2 that are left.
    packed: the steps (without bodies) that have packed the rhs of stages. skips: whether blocks of columns that the
    mask hides are left out. span: the rows among which it is, of the thread that decides; () for all."""

    spec: ChainSpec
    dims: tuple[int, int]
    threads: int
    l2: int
    packed: tuple[tuple[int, str, str], ...] = ()
    skips: bool = False
    span: tuple[int, ...] = ()

    @staticmethod
    def of(spec: ChainSpec, target: Target) -> Point:
        """All of a chain. Raises SpecError where it has no elements, or a stage has no kernels."""
        for stage in spec.stages:
            if 0 in stage.goal.dims:
                raise SpecError(f"nothing to search: a size is 0 in {stage.goal}")
            if isinstance(stage.goal, Spec):
                key_of(stage.goal.plain, target)
        threads = 1 if spec.serial else spec.threads or thread_count()
        return Point(spec, spec.dims, threads, target.limits["L2"])

    # ------------------------------------------------------------ steps

    def tiled(self, loop: Loop) -> tuple[Point, Point | None]:
        """What a loop leaves: its body, and its remainder. Raises ScheduleError."""
        at = 0 if loop.dim == "b" else 1
        extent = self.dims[at]
        if loop.size >= extent:
            raise ScheduleError(f"{loop.label()}: the size must be less than {loop.dim}={extent}")
        if loop.dim == "b" and loop.size != 1:
            raise ScheduleError(f"{loop.label()}: b is tiled by 1")
        if loop.threads and self.threads == 1:
            raise ScheduleError(f"{loop.label()}: one thread works on it")
        if loop.threads > self.threads:
            raise ScheduleError(f"{loop.label()}: {self.threads} threads work on it")
        if (self.packed or self.skips) and loop.threads:
            raise ScheduleError(f"{loop.label()}: parallel tiles come before packs, and before what is skipped")
        threads = 1 if loop.threads else self.threads
        sizes = [loop.size, extent % loop.size]
        parts = [
            replace(
                self,
                dims=(s, self.dims[1]) if at == 0 else (self.dims[0], s),
                threads=threads,
                span=self.span if at == 0 else span,
            )
            for s, span in zip(sizes, self._spans(loop), strict=True)
        ]
        return parts[0], parts[1] if sizes[1] else None

    @property
    def rows(self) -> tuple[int, int]:
        """From where to where its rows may be."""
        low, high = self.span or (0, self.spec.dims[1])
        return low, high

    def _spans(self, loop: Loop) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Of a loop along m: of its body, and of its remainder. The last of the threads that share it has most to do
        where a mask hides later columns from earlier rows."""
        if self.spec.mask is None:
            return (), ()
        low, high = self.rows
        if high - low != self.dims[1]:
            return (low, high), (low, high)
        full, rest = divmod(self.dims[1], loop.size)
        shares, trips = self.shares(loop), full + bool(rest)
        first = min((shares - 1) * trips // shares, full - 1) * loop.size
        return (low + first, low + full * loop.size), (high - rest, high)

    def skip(self) -> Point:
        """What is left where what is masked is skipped. Raises ScheduleError."""
        label = Skip(Hole()).label()
        if self.spec.mask is None:
            raise ScheduleError(f"{label}: no mask is known")
        if self.dims[0] != 1:
            raise ScheduleError(f"{label}: tile b by 1 first")
        if self.skips:
            raise ScheduleError(f"{label}: it is skipped already")
        if (
            len(self.spec.stages) != 3
            or not self.spec.stages[2].is_contraction
            or not is_dense(self.contraction(2), RHS)
        ):
            raise ScheduleError(f"{label}: what the third stage weighs must lie row by row without gaps")
        if self.spec.bound is not None and not all(is_contiguous(self.contraction(0), i) for i in (0, RHS)):
            raise ScheduleError(f"{label}: what the first stage multiplies must lie without gaps")
        return replace(self, skips=True)

    def checks(self) -> list[tuple[str, NestSpec]]:
        """What tells whether what is masked may be skipped: inputs, and goals that make a sum of each for one b, which
        is 0 where it may."""
        found = [(self.spec.stages[2].reads[RHS], self.finite())]
        if self.spec.bound is not None:
            found += [(self.spec.stages[0].reads[i], self._bounded(i, self.spec.bound)) for i in (0, RHS)]
        return found

    def _bounded(self, i: int, bound: float) -> NestSpec:
        """How many elements of input `i` of the first stage are larger than `bound`, or NaN."""
        goal = self.contraction(0)
        _, _, k, n = goal.dims
        count = k * (n if i == RHS else self.dims[1])
        b = BodyBuilder()
        x = b.op("abs", b.cast(b.input(0, goal.operands[i].dtype), goal.sums))
        small = b.cmp("ole", x, b.const(bound, goal.sums))
        body = b.build([b.reduce("sum", b.op("select", small, b.const(0, goal.sums), b.const(1, goal.sums)))])
        operands = (Operand(goal.operands[i].dtype, "GL", (1 if count > 1 else 0,)), Operand(goal.sums, "L1", (0,)))
        return NestSpec((count,), (True,), operands, body)

    def finite(self) -> NestSpec:
        """The sum of 0 times all that is weighed for one b: 0, or NaN where something is not finite."""
        goal = self.contraction(2)
        dtype, sums = goal.operands[RHS].dtype, goal.sums
        b = BodyBuilder()
        x = b.cast(b.input(0, dtype), sums)
        body = b.build([b.reduce("sum", b.op("mul", x, b.const(0, sums)))])
        _, _, k, n = goal.dims
        operands = (Operand(dtype, "GL", (1 if k * n > 1 else 0,)), Operand(sums, "L1", (0,)))
        return NestSpec((k * n,), (True,), operands, body)

    def shares(self, loop: Loop) -> int:
        """Among how many threads the trips of a loop are shared."""
        return 1 if not loop.threads else self.threads if loop.threads < 0 else loop.threads

    def pack(self, step: PackRhs, target: Target) -> Point:
        """What is left once the rhs of a stage is packed. Raises ScheduleError."""
        if not 0 <= step.stage < len(self.spec.stages) or not self.spec.stages[step.stage].is_contraction:
            raise ScheduleError(f"{step.label()}: there is no such contraction")
        if self.dims[0] != 1:
            raise ScheduleError(f"{step.label()}: tile b by 1 first")
        if any(stage == step.stage for stage, _, _ in self.packed):
            raise ScheduleError(f"{step.label()}: it is packed already")
        move = self.move(step)
        key, dims = self.whole(step.stage, target)
        left = {**target.limits, "L2": self.l2}
        for condition in (*move.requires(key, target), *move.conditions(key, dims, left, target)):
            if not condition[0]:
                raise ScheduleError(f"{step.label()}: {reason(condition)}")
        used = int(move.uses(key, dims, target).get("L2", 0))
        packed = (*self.packed, (step.stage, step.memory, step.form))
        return replace(self, l2=steps(self.l2 - used, target), packed=packed)

    def move(self, step: PackRhs) -> MoveAction:
        """The move that a pack is. Raises ScheduleError."""
        try:
            layout, dtype = form_of(step.form, self.contraction(step.stage).operand_names(RHS))
        except SpecError as error:
            raise ScheduleError(f"{step.label()}: {error}") from None
        return MoveAction(RHS, step.memory, layout, dtype)

    def whole(self, stage: int, target: Target) -> tuple[TableKey, dict[str, int]]:
        """The table key of a stage of which nothing has been moved, and its sizes for one b and all of m."""
        known, name = self.spec.wholes, (stage, target.fingerprint)
        if name not in known:
            known[name] = self._whole(stage, target)
        key, dims = known[name]
        return key, dict(dims)

    def _whole(self, stage: int, target: Target) -> tuple[TableKey, dict[str, int]]:
        goal = self.contraction(stage)
        key = replace(key_of(goal.plain, target), far=self.spec.bytes > target.l3_bytes)
        dims = dict(zip(goal.info.dims, goal.dims, strict=True))
        # A function that overwrites is packed as one that accumulates: to_accum comes first and is free.
        return replace(key, function=key.function + "Accum"), {**dims, "b": 1}

    def forms(self, stage: int, target: Target) -> list[PackRhs]:
        """Every way to pack the rhs of a stage (without bodies)."""
        key, _ = self.whole(stage, target)
        names = self.contraction(stage).operand_names(RHS)
        found = [(lay.text(names) + (f" {dtype}" if dtype else "")) for lay, dtype in panels(key, RHS, target)]
        return [PackRhs(stage, memory, form, Hole()) for memory in ("L2", "GL") for form in found]

    def contraction(self, stage: int) -> Spec:
        goal = self.spec.stages[stage].goal
        assert isinstance(goal, Spec)
        return goal

    # ------------------------------------------------------------ intermediate results

    def row(self, t: int) -> int:
        """Elements from one row of intermediate result `t` to the next."""
        stage = self.spec.stages[t]
        return row_of(stage.shape[2], stage.dtype, self.dims[1])

    def lines(self, t: int) -> int:
        """Lines of memory that a tile of intermediate result `t` takes."""
        return int(ceil_div(self.dims[1] * self.row(t) * element_bytes(self.spec.stages[t].dtype), LINE))

    def homes(self) -> list[tuple[str, ...]]:
        """Every choice of where the intermediate results live. One that can take the place of another does so."""
        out: list[tuple[str, ...]] = [()]
        for t in range(len(self.spec.stages) - 1):
            place = self.spec.in_place(t)
            options = ("L2", "GL") if place is None else (f"t{place}",)
            out = [(*before, o) for before in out for o in options]
        return out

    def check_homes(self, step: Stages) -> None:
        """Raises ScheduleError where the intermediate results cannot live there, or stages are missing."""
        count = len(self.spec.stages)
        if len(step.homes) != count - 1 or len(step.schedules) not in (0, count):
            raise ScheduleError(f"the chain has {count} stages and {count - 1} intermediate results to bufferize")
        if self.dims[0] != 1:
            raise ScheduleError("stage 1: tile b by 1 first")
        for t, home in enumerate(step.homes):
            if home.startswith("t") and home != f"t{self.spec.in_place(t)}":
                raise ScheduleError(f"bufferize t{t} in {home}: it cannot take the place of {home}")
        if self.l2_left(step.homes) < 0:
            raise ScheduleError(f"bufferize: the intermediate results do not fit L2, which has {self.l2} lines left")

    def l2_left(self, homes: tuple[str, ...]) -> int:
        return self.l2 - sum(self.lines(t) for t, home in enumerate(homes) if home == "L2")

    def home(self, homes: tuple[str, ...], t: int) -> int:
        """The intermediate result in whose place `t` lives."""
        return self.home(homes, int(homes[t][1:])) if homes[t].startswith("t") else t

    # ------------------------------------------------------------ stages

    def table_point(
        self, at: int, homes: tuple[str, ...], target: Target
    ) -> tuple[TableKey, dict[str, int], dict[str, int]]:
        """Where the tables have the optimum of a contraction: its key, sizes, and what it may take."""
        key, dims = self.whole(at, target)
        key = replace(key, function=self.contraction(at).function)
        stage = self.spec.stages[at]
        if stage.reads[0].startswith("t"):
            key = key.with_operand(0, self._state(key.operands[0], homes, int(stage.reads[0][1:])))
        if at + 1 < len(self.spec.stages):
            made = self._state(key.operands[2], homes, at)
            if key.dtype_of(2) != stage.dtype:
                # Sums of another type lie in rows of their own.
                made = replace(made, stride=stride_class(stage.shape[2] * dtype_bytes(key.dtype_of(2))))
            key = key.with_operand(2, made)
        key = self.with_packs(at, key)
        left = {**target.limits, "L2": steps(self.l2_left(homes), target)}
        return key, {**dims, "m": self.dims[1]}, left

    def with_packs(self, at: int, key: TableKey) -> TableKey:
        """`key`, of stage `at`, with its rhs where a pack has put it."""
        for number, memory, form in self.packed:
            if number == at:
                step = PackRhs(number, memory, form, Stages((), ()))
                key = key.with_operand(RHS, self.move(step).moved(key))
        return key

    def _state(self, state: OperandState, homes: tuple[str, ...], t: int) -> OperandState:
        t = self.home(homes, t)
        step = stride_class(self.row(t) * element_bytes(self.spec.stages[t].dtype))
        return OperandState(homes[t], Layout.permutation((0, 1, 2)), step, dtype=state.dtype)

    def goal(self, at: int, homes: tuple[str, ...], target: Target) -> Spec | NestSpec:
        """What is left of stage `at`: a Spec of the tile."""
        stage = self.spec.stages[at]
        if isinstance(stage.goal, Spec):
            key, dims, left = self.table_point(at, homes, target)
            keep = {m: v for m, v in left.items() if v != target.limits[m] and matters(key, m)}
            row = self.row(at) if at + 1 < len(self.spec.stages) else None
            return finishing(spec_of(key, dims, keep), stage.goal.then, row)
        return self.nest(at, homes)

    def nest(self, at: int, homes: tuple[str, ...]) -> NestSpec:
        """As `goal`, of a stage that is a nest: it does not depend on what has been packed."""
        stage = self.spec.stages[at]
        assert isinstance(stage.goal, NestSpec)
        operands = []
        for i, operand in enumerate(stage.goal.operands):
            name = stage.reads[i] if i < len(stage.reads) else f"t{at}"
            if not name.startswith("t") or name == f"t{len(self.spec.stages) - 1}":
                # One b is left: how it is stepped along says nothing any more.
                operands.append(replace(operand, strides=operand.strides[-3:]))
                continue
            t = self.home(homes, int(name[1:]))
            strides = (0, self.row(t) if self.dims[1] > 1 else 0, operand.strides[-1])
            operands.append(replace(operand, memory=homes[t], strides=strides))
        place = self.spec.in_place(at)
        if place is not None and homes[at].startswith("t"):
            i = stage.reads.index(f"t{place}")
            operands[-1] = replace(operands[-1], alias=i)
        return replace(
            stage.goal, dims=(1, self.dims[1], stage.goal.dims[-1]), scan=stage.goal.scan[-3:], operands=tuple(operands)
        )


def finishing(spec: Spec, then: Then | None, row: int | None) -> Spec:
    """A part of a contraction with what is done to the sums of the whole. row: elements from one row of the results to
    the next, where they are not dense."""
    if then is None:
        return spec
    out = spec.operands[-1]
    if then.dtype != out.dtype:
        stride = None if row is None else stride_class(row * dtype_bytes(then.dtype))
        out = replace(out, dtype=then.dtype, row_stride=stride)
    return replace(spec, operands=(*spec.operands[:-1], out), then=then).canonical()


def row_of(columns: int, dtype: str, rows: int) -> int:
    """Elements from one row of a tile in scratch to the next: an odd number of lines, so that rows fall into all sets
    of the caches, and rows of any length look alike to the search."""
    size = element_bytes(dtype)
    lines = ceil_div(columns * size, LINE)
    return int((lines | (rows > 1)) * LINE // size)


def steps(lines: int, target: Target) -> int:
    """Rounded down to what tables tell apart."""
    step = target.l2.step
    return lines // step * step if lines >= 0 else -1


def is_tabled(key: TableKey, left: Mapping[str, int], target: Target) -> bool:
    """Whether tables have states with that much of L2: while nothing is in it, but may still be, all of it is there."""
    return key.limit_axis() == "L2" or "GL" not in key.memories or left["L2"] == target.limits["L2"]
