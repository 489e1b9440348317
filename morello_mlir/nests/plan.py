"""What `rows` does, in detail: which values each of its passes loads, computes, stores; and in which sweep it runs.

For each group of points of the parallel dims (the loops run over these in the order of the dims, outermost first, in
steps of `tile`), a pass sweeps the scan dims in the order of the dims, the vector dim innermost where it is a scan dim.
At each step it computes `compute`, in order, for every point of the group and every unrolled step; each value once per
combination of steps along the dims along which it varies. Reductions have an accumulator for each point of the group
and each unrolled step; they are combined at the end of the sweep, and so are, where the vector dim is a scan dim, the
lanes. Then `after` is computed and the outputs `writes_after` are written: one element for each point.

Where the vector dim is a scan dim, values that do not vary along it are scalars, broadcast where they meet vectors.
Where it is parallel, values that vary along it are vectors all the way, also reductions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from ..cached import cached_property
from ..errors import ScheduleError, SpecError
from ..search.nest_steps import SCRATCH, Pass, Rows
from ..search.schedule import Hole
from ..targets import Target
from .body import READS, Body
from .online import MAXIMA, Scaling, scalings
from .ops import element_bytes
from .spec import NestSpec

#: Steps of a scan dim that may all be side by side, at most.
MOST_SIDE_BY_SIDE = 8


@dataclass(frozen=True, slots=True)
class Store:
    """A value kept for later passes. output: in whose room, at the element's own place; None: in scratch, a row of it
    for each point of the group, with the steps of the scan dims (row-major) as its elements."""

    value: int
    output: int | None


@dataclass(frozen=True)
class PassPlan:
    """One pass. Values are numbers of the body's.

    reductions: completed by it. outputs: numbers of the outputs it writes in the sweep. stores: what it keeps.
    loads: inputs (by their values) and stored values it reads in the sweep. compute: what it computes at each step, in
    order (reductions of `reductions` among them: they accumulate). rows: values it takes from registers. after: what is
    computed once per point after the sweep, in order (inputs among them are loaded then). writes_after: numbers of the
    outputs written then. maximum: the one that `online` runs along with, and scaling: by value, how what is made with
    it scales; None, and empty, where the pass is not online.
    """

    step: Pass
    reductions: tuple[int, ...]
    outputs: tuple[int, ...]
    stores: tuple[Store, ...]
    loads: tuple[int, ...]
    compute: tuple[int, ...]
    rows: tuple[int, ...]
    after: tuple[int, ...]
    writes_after: tuple[int, ...]
    maximum: int | None
    scaling: dict[int, Scaling]

    def unroll(self, dim: int) -> int:
        """Steps of scan dim `dim` side by side (vectors along the vector dim)."""
        return dict(self.step.unroll).get(f"d{dim}", 1)


@dataclass(frozen=True)
class RowsPlan:
    """`rows` of `spec`.

    vector: the vector dim; lanes: elements per vector, of every type (the widest that is computed fills a register).
    tile: steps of every dim in a group of points: whole vectors along a parallel vector dim, 1 along scan dims.
    before: values computed for each group before its first pass. sweeps: for each loop of one iteration, the (pass,
    lag) pairs it runs, the largest lag first: the pass works on the group `lag` iterations before the newest. A sweep
    whose passes belong to groups that do not exist yet, or any more, runs the others.
    """

    spec: NestSpec
    node: Rows
    vector: int
    lanes: int
    tile: tuple[int, ...]
    before: tuple[int, ...]
    passes: tuple[PassPlan, ...]
    sweeps: tuple[tuple[tuple[int, int], ...], ...]

    @property
    def pipelined(self) -> bool:
        return any(lag for sweep in self.sweeps for _, lag in sweep)

    @property
    def is_straight(self) -> bool:
        """See the function of that name."""
        return is_straight(self.spec, self.vector, self.passes)

    @cached_property
    def stored(self) -> dict[int, Store]:
        """What is stored, by value."""
        return {s.value: s for p in self.passes for s in p.stores}

    @property
    def scratch(self) -> tuple[Store, ...]:
        return tuple(s for p in self.passes for s in p.stores if s.output is None)

    @property
    def scratch_elements(self) -> int:
        """Elements of one stored value for one group of points: whole vectors along the vector dim."""
        total = 1
        for d, n in enumerate(self.spec.dims):
            size = n if self.spec.scan[d] else self.tile[d]
            total *= -(-size // self.lanes) * self.lanes if d == self.vector else size
        return total


def is_window(spec: NestSpec, vector: int) -> bool:
    """Whether a nest with scan dims goes over so few steps of each that all can be side by side, for vectors along a
    parallel dim."""
    return not spec.scan[vector] and 0 < max((spec.dims[d] for d in spec.scan_dims), default=0) <= MOST_SIDE_BY_SIDE


def is_straight(spec: NestSpec, vector: int, passes: Iterable[PassPlan]) -> bool:
    """Whether passes of a nest with scan dims are no loops, but windows: all steps of each are side by side, for
    vectors along a parallel dim."""
    scan = [(d, spec.dims[d]) for d in spec.scan_dims if spec.dims[d] > 1]
    if not scan or spec.scan[vector]:
        return False
    return all(p.unroll(d) >= n for p in passes for d, n in scan)


def dim_of(name: str, spec: NestSpec) -> int:
    """The dim called `name`. Raises ScheduleError."""
    names = [f"d{d}" for d in range(len(spec.dims))]
    if name in names:
        return names.index(name)
    raise ScheduleError(f"there is no dim '{name}' (have d0 to d{len(spec.dims) - 1})")


def value_of(name: str, spec: NestSpec) -> int:
    """The value of the body called `name`. Raises ScheduleError."""
    try:
        return spec.body.named(name)
    except SpecError as error:
        raise ScheduleError(str(error)) from None


def lanes_of(spec: NestSpec, target: Target) -> int:
    """Elements per vector: of the widest type that a nest computes in (not: of positions, which are counted once, nor
    of places in tables, which are the same for a whole vector where it matters)."""
    body = spec.body
    wide = [
        element_bytes(v.dtype)
        for at, v in enumerate(body.values)
        if v.op not in ("const", "index") and v.dtype != "i1" and at not in body.places
    ]
    return target.vector_bytes // max(wide, default=4)


def swept_outputs(spec: NestSpec) -> tuple[int, ...]:
    """Numbers of the outputs that are written in sweeps: those with a stride along scan dims; without these, all."""
    scan = spec.scan_dims
    return tuple(k for k, o in enumerate(spec.outputs) if not scan or o.varies.intersection(scan))


def goals(spec: NestSpec) -> tuple[str, ...]:
    """The names that the passes of `rows` must have among their values, each once: reductions and swept outputs."""
    names = spec.body.names
    many = len(spec.outputs) > 1
    outputs = tuple(f"y{k}" if many else "y" for k in swept_outputs(spec))
    return tuple(names[r] for r in spec.body.reductions if names[r] not in outputs) + outputs


class Values:
    """Which values a pass needs, for one nest: the cones between what there is and what it makes."""

    def __init__(self, spec: NestSpec):
        self.spec = spec
        self.body: Body = spec.body
        self.swept = bool(spec.scan_dims)
        self.row = frozenset(i for i in range(len(self.body.values)) if self.swept and spec.is_row(i))
        self.cones = [self.body.depends(v) for v in range(len(self.body.values))]
        self.reductions = frozenset(self.body.reductions)

    def needs(self, value: int) -> frozenset[int]:
        """The reductions that `value` is made of, without itself."""
        return (self.cones[value] & self.reductions) - {value}

    def output(self, name: str) -> int | None:
        """The number of the swept output called `name`; None where there is none."""
        names = {f"y{k}" if len(self.spec.outputs) > 1 else "y": k for k in swept_outputs(self.spec)}
        return names.get(name)

    def step(self, targets: Iterable[int], stored: Collection[int]) -> tuple[set[int], set[int], set[int]]:
        """(loads, compute, rows) of a sweep that makes `targets`, where the values `stored` can be loaded."""
        loads: set[int] = set()
        compute: set[int] = set()
        rows: set[int] = set()
        todo = list(targets)
        while todo:
            at = todo.pop()
            value = self.body.values[at]
            if at in loads or at in compute or at in rows:
                continue
            if at in stored or (value.op in READS and at not in self.row):
                loads.add(at)
                # What says the place in a table is needed as well.
                todo += () if at in stored else value.args
            elif at in self.row and at not in targets_reduced(self.body, targets):
                rows.add(at)
            else:
                compute.add(at)
                todo += value.args
        return loads, compute, rows


def targets_reduced(body: Body, targets: Iterable[int]) -> set[int]:
    """The reductions among `targets`: these are computed by the sweep, though they do not vary along it."""
    return {t for t in targets if body.values[t].reduces}


def rows_plan(spec: NestSpec, node: Rows, target: Target) -> RowsPlan:
    """The plan of `rows`, whose passes are all there. Raises ScheduleError saying what is not legal."""
    return _Planner(spec, node, target).plan()


def check_rows(spec: NestSpec, node: Rows, target: Target) -> None:
    """Raises ScheduleError saying what is not legal of `rows`; of passes that are missing, nothing is said."""
    planner = _Planner(spec, node, target)
    if any(isinstance(p, Hole) for p in node.passes):
        planner.begun()
    else:
        planner.plan()


class _Planner:
    def __init__(self, spec: NestSpec, node: Rows, target: Target):
        self.spec, self.node, self.target = spec, node, target
        self.values = Values(spec)
        self.done: set[int] = set()
        self.written: set[int] = set()
        #: Stored so far: by value, where.
        self.stored: dict[int, Store] = {}
        self.computed: set[int] = set()

    def fail(self, why: str, step: Pass | None = None) -> ScheduleError:
        return ScheduleError(f"{(step or self.node).label()}: {why}, in {self.spec}")

    def begun(self) -> RowsPlan:
        """The plan as far as there are passes, each of which is legal after those before it."""
        spec = self.spec
        try:
            vector = dim_of(self.node.vector, spec)
            lanes = lanes_of(spec, self.target)
            tile = self.tile(vector, lanes)
            before = self.rows_ready()
            passes = tuple(self.one(p, vector) for p in self.node.passes if isinstance(p, Pass))
        except ScheduleError as error:
            raise error if ", in " in str(error) else self.fail(str(error)) from None
        return RowsPlan(spec, self.node, vector, lanes, tile, before, passes, ())

    def plan(self) -> RowsPlan:
        spec, plan = self.spec, self.begun()
        if len(plan.passes) < len(self.node.passes):
            raise self.fail("passes are missing")
        missing = [g for g in goals(spec) if value_of(g, spec) not in self.done and self.values.output(g) is None]
        missing += [g for g in goals(spec) if (k := self.values.output(g)) is not None and k not in self.written]
        if missing:
            raise self.fail(f"no pass computes {', '.join(missing)}")
        plan = replace(plan, sweeps=self.sweeps(len(plan.passes)))
        self.check_stores(plan)
        self.check_pipeline(plan)
        return plan

    def tile(self, vector: int, lanes: int) -> tuple[int, ...]:
        spec, node = self.spec, self.node
        if spec.scan[vector] and node.vectors > 1:
            raise ScheduleError(f"{node.vector} is a scan dim: passes unroll it")
        out = [1] * len(spec.dims)
        for name, size in node.tile:
            d = dim_of(name, spec)
            if spec.scan[d] or d == vector or out[d] != 1:
                raise ScheduleError(f"tile {name}: not a parallel dim apart from the vector dim, or there twice")
            if size > spec.dims[d]:
                raise ScheduleError(f"tile {name} by {size}: larger than {name}={spec.dims[d]}")
            out[d] = size
        if not spec.scan[vector]:
            if node.vectors > max(1, -(-spec.dims[vector] // lanes)):
                raise ScheduleError(f"vector {node.vector} by {node.vectors}: larger than {node.vector}")
            out[vector] = node.vectors * lanes
        return tuple(out)

    def rows_ready(self) -> tuple[int, ...]:
        """Row values not computed yet that need no reductions that are not done."""
        out = []
        for at in sorted(self.values.row):
            value = self.spec.body.values[at]
            if at in self.computed or value.reduces:
                continue
            if self.values.needs(at) <= self.done:
                self.computed.add(at)
                out.append(at)
        return tuple(out)

    def one(self, step: Pass, vector: int) -> PassPlan:
        """The plan of the next pass."""
        spec, values = self.spec, self.values
        reductions, outputs = [], []
        for name in step.values:
            k = values.output(name)
            at = value_of(name, spec) if k is None else spec.body.outputs[k]
            if k is None and not spec.body.values[at].reduces:
                raise self.fail(f"'{name}' is neither a reduction nor an output written in sweeps", step)
            if (k in self.written) if k is not None else (at in self.done):
                raise self.fail(f"{name} is computed twice", step)
            if k is None:
                reductions.append(at)
            else:
                outputs.append(k)
        maximum, scaling = self.online(step, reductions)
        self.check_needs(step, maximum)
        stores = [self.store(step, v, place) for v, place in step.stores]
        written = [spec.body.outputs[k] for k in outputs]
        targets = [*reductions, *written, *(s.value for s in stores)]
        loads, compute, rows = values.step(targets, self.stored)
        for s in stores:
            missing = values.needs(s.value) - self.done - {maximum}
            if s.value not in compute or missing:
                raise self.fail(f"{spec.body.names[s.value]} is not computed in this pass", step)
            if s.value in scaling_taint(spec.body, maximum) and (s.value not in scaling or not step.online):
                raise self.fail(f"{spec.body.names[s.value]} cannot be corrected later", step)
            self.stored[s.value] = s
        self.check_unroll(step, vector)
        self.done.update(reductions)
        self.written.update(outputs)
        after = self.rows_ready()
        return PassPlan(
            step,
            tuple(reductions),
            tuple(outputs),
            tuple(stores),
            tuple(sorted(loads)),
            tuple(sorted(compute)),
            tuple(sorted(rows)),
            after,
            self.complete_outputs(reductions, after),
            maximum,
            scaling,
        )

    def check_needs(self, step: Pass, maximum: int | None) -> None:
        """What the values of a pass need is there, or runs along with it."""
        body = self.spec.body
        for name in step.values:
            k = self.values.output(name)
            at = value_of(name, self.spec) if k is None else body.outputs[k]
            missing = self.values.needs(at) - self.done - ({maximum} if maximum is not None and k is None else set())
            if k is not None and body.values[at].reduces and at not in self.done:
                missing |= {at}
            if missing:
                names = ", ".join(body.names[m] for m in sorted(missing))
                raise self.fail(f"{name} needs {names}, which no earlier pass computes", step)

    def complete_outputs(self, reductions: list[int], after: tuple[int, ...]) -> tuple[int, ...]:
        """Outputs that are not swept, and whose values are there now."""
        swept = swept_outputs(self.spec)
        new = {*reductions, *after}
        return tuple(k for k, v in enumerate(self.spec.body.outputs) if k not in swept and v in new)

    def online(self, step: Pass, reductions: list[int]) -> tuple[int | None, dict[int, Scaling]]:
        """The maximum that an online pass runs along with, and what scales with it."""
        if step.online is None:
            return None, {}
        body = self.spec.body
        maxima = [r for r in reductions if body.values[r].op in MAXIMA]
        needed = [m for m in maxima if any(m in self.values.needs(r) for r in reductions)]
        if len(needed) != 1:
            raise self.fail("online takes one maximum, and sums that need it", step)
        m = needed[0]
        found = scalings(body, m, self.values.row)
        for r in reductions:
            if m in self.values.needs(r) and r not in found:
                raise self.fail(f"{body.names[r]} is no sum of exp(x - {body.names[m]}) times what is free of it", step)
            if any(o != m and o in self.values.needs(r) for o in reductions):
                raise self.fail(f"{body.names[r]} needs another reduction of the pass", step)
        if any(self.values.output(v) is not None for v in step.values):
            raise self.fail("outputs are not written online", step)
        return m, found

    def store(self, step: Pass, name: str, place: str) -> Store:
        spec = self.spec
        at = value_of(name, spec)
        value = spec.body.values[at]
        if at in self.stored:
            raise self.fail(f"{name} is stored twice", step)
        if at in self.values.row or value.is_leaf:
            raise self.fail(f"{name} needs no store: it is an input, or the same along scan dims", step)
        if place == SCRATCH:
            return Store(at, None)
        k = self.values.output(place)
        if k is None:
            raise self.fail(f"no output '{place}' is written in sweeps (or say {SCRATCH})", step)
        out = spec.outputs[k]
        if out.dtype != value.dtype:
            raise self.fail(f"{place} holds {out.dtype}, not {value.dtype}", step)
        steps = [d for d in spec.varies[at] if not out.strides[d] and spec.dims[d] > 1]
        if steps:
            raise self.fail(f"{name} varies along d{steps[0]}, and {place} does not", step)
        if k in self.written or any(s.output == k for s in self.stored.values()):
            raise self.fail(f"{place} is in use", step)
        return Store(at, k)

    def check_unroll(self, step: Pass, vector: int) -> None:
        spec = self.spec
        seen = set()
        for name, count in step.unroll:
            d = dim_of(name, spec)
            steps = -(-spec.dims[d] // lanes_of(spec, self.target)) if d == vector else spec.dims[d]
            if not spec.scan[d] or d in seen:
                raise self.fail(f"unroll {name}: not a scan dim, or there twice", step)
            if count > max(1, steps):
                raise self.fail(f"unroll {name} by {count}: it has {steps} steps", step)
            seen.add(d)
        if step.streaming:
            written = [self.values.output(v) for v in step.values if self.values.output(v) is not None]
            if not written or any(spec.outputs[k].strides[vector] != 1 for k in written if k is not None):
                raise self.fail(
                    "streaming: there must be outputs, and they must be contiguous along the vector dim", step
                )

    def sweeps(self, count: int) -> tuple[tuple[tuple[int, int], ...], ...]:
        per = self.node.pipeline or count
        if per > count:
            raise self.fail(f"there are {count} passes")
        return tuple(tuple((j, j // per) for j in reversed(range(w, count, per))) for w in range(per))

    # ------------------------------------------------------------ conditions on the whole

    def check_stores(self, plan: RowsPlan) -> None:
        """An output's room is free until its own values come; an input that lies there is not read any more."""
        last = {s: max((j for j, p in enumerate(plan.passes) if s in p.loads), default=-1) for s in plan.stored}
        first: dict[int, int] = {}
        for j, p in enumerate(plan.passes):
            for k in (*p.outputs, *(s.output for s in p.stores if s.output is not None)):
                first.setdefault(k, j)
        for value, s in plan.stored.items():
            own = next((j for j, p in enumerate(plan.passes) if s.output in p.outputs), None)
            made = next(j for j, p in enumerate(plan.passes) if s in p.stores)
            if last[value] < 0:
                raise self.fail(f"{self.spec.body.names[value]} is stored, and no pass reads it")
            if own is not None and last[value] > own:
                raise self.fail(f"{self.spec.body.names[value]} is read after its room has been overwritten")
            if s.output is None and plan.pipelined and last[value] - made > len(plan.sweeps):
                raise self.fail(f"{self.spec.body.names[value]} would need several rows of scratch")
        for k, j in first.items():
            alias = self.spec.outputs[k].alias
            at = None if alias is None else self.spec.body.inputs.get(alias)
            if at is not None and any(at in p.loads for p in plan.passes[j + 1 :]):
                raise self.fail(f"x{alias} is read after output {k}, which lies there, has been written")

    def check_pipeline(self, plan: RowsPlan) -> None:
        if not plan.pipelined:
            return
        spec = self.spec
        inner = innermost(plan)
        if not spec.scan[plan.vector]:
            raise self.fail("only rows whose vector dim is a scan dim are pipelined")
        lag = max(lag for sweep in plan.sweeps for _, lag in sweep)
        if inner is None or spec.dims[inner] % plan.tile[inner] or spec.dims[inner] // plan.tile[inner] <= lag:
            raise self.fail("the innermost loop must divide into groups, more than are under way at a time")
        for sweep in plan.sweeps:
            steps = [plan.passes[j].step for j, _ in sweep]
            if len({s.unroll for s in steps}) > 1:
                raise self.fail("passes of one sweep unroll alike")
            if len(steps) > 1 and any(s.online is not None for s in steps):
                raise self.fail("an online pass has a sweep of its own")


def scaling_taint(body: Body, maximum: int | None) -> frozenset[int]:
    """The values that are made of `maximum`."""
    if maximum is None:
        return frozenset()
    return frozenset(v for v in range(len(body.values)) if v != maximum and maximum in body.depends(v))


def innermost(plan: RowsPlan) -> int | None:
    """The innermost parallel dim that has a loop; None where one group is all."""
    loops = [d for d in plan.spec.parallel_dims if plan.spec.dims[d] > plan.tile[d]]
    return loops[-1] if loops else None
