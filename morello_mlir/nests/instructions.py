"""What the instructions of `rows` cost: the other half of the cost of nests beside cache lines (see `touch`)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ..targets import LINE, Target
from .facts import Facts
from .ops import REDUCE, element_bytes, is_float
from .plan import PassPlan, RowsPlan
from .spec import NestSpec
from .squares import shuffles, square
from .touch import Layout, levels

#: Ops of more instructions than LONG have constants of their own; but for those of more than CALL, which are calls.
LONG, CALL = 4, 100
#: Elements so far apart, at most, are picked from vectors of all that lies between.
INTERLEAVED = 4
#: Instructions of a turn of a loop beside its work.
TURN = 3
#: Of two passes in one loop, the share of the smaller one's vectors that are alive beside the larger one's.
AT_ONCE = 0.3
#: Registers, at least, for what is not held.
TEMPORARY = 2
#: What is alive of a vector, beside the usual, while its polynomial is looked up: where, how far off, what it was.
LOOKED_UP = 1.5
#: Accumulators that are worth having for each vector of a reduction, over all points of a group.
IN_FLIGHT = 8


@lru_cache(maxsize=1 << 14)
def places(tile: tuple[tuple[int, int], ...]) -> int:
    """How many different sums of a multiple of each step there are; tile: (how many multiples from 0, the step)."""
    found = {0}
    for count, step in tile:
        found = {x + i * step for x in found for i in range(count)}
    return len(found)


@dataclass(slots=True)
class Work:
    """What a sweep of one group does: cycles of units, counts of instructions, iterations; the vectors that are held
    all the way (accumulators, values of rows, constants), how many of one value are computed side by side, and how
    often an accumulator is met in an iteration."""

    arithmetic: float = 0.0
    instructions: float = 0.0
    loads: float = 0.0
    stores: float = 0.0
    turns: float = 0.0
    chain: float = 0.0
    held: float = 0.0
    beside: float = 1.0
    again: float = 1.0
    extra: float = 0.0

    def __add__(self, other: Work) -> Work:
        """Both in one loop."""
        return Work(
            self.arithmetic + other.arithmetic,
            self.instructions + other.instructions,
            self.loads + other.loads,
            self.stores + other.stores,
            max(self.turns, other.turns),
            max(self.chain, other.chain),
            self.held + other.held,
            max(self.beside, other.beside) + AT_ONCE * min(self.beside, other.beside),
            max(self.again, other.again),
            self.extra + other.extra,
        )


class Instructions:
    """The instructions of `rows` of one nest, for any of its schedules; what they have in common is counted once. The
    same holds for all nests of its `family`."""

    def __init__(self, spec: NestSpec, target: Target):
        self.spec, self.target, self.s = spec, target, target.streams
        self.absorbed = Facts(spec.body).absorbed
        self._work: dict[object, Work] = {}

    @staticmethod
    def family(spec: NestSpec) -> object:
        """What instructions depend on beside a group's shape. Nests of which this is equal differ in the sizes of
        parallel dims and in where their operands are."""
        operands = tuple((o.dtype, o.strides) for o in spec.operands)
        return spec.body, operands, spec.scan, tuple(spec.dims[d] for d in spec.scan_dims)

    def busy(self, w: Work) -> float:
        """Cycles of a sweep of one group."""
        s = self.s
        busy = max(w.arithmetic, w.loads * s.loads, w.stores * s.stores, (w.instructions + TURN * w.turns) / s.issue)
        spilled = max(0.0, w.held + max(TEMPORARY, s.live * w.beside) - self.target.registers)
        return max(busy, w.chain) + w.turns * (s.loop + w.again * spilled * s.spill) + w.extra

    def sweep(
        self, passes: Sequence[PassPlan], layout: Layout, shape: tuple[int, ...], plan: RowsPlan
    ) -> tuple[float, float]:
        """(cycles, cycles before and after) of passes that are one sweep, for one group of `shape`: less is set out for
        where it is no loop."""
        works = [self.work(p, layout, shape, plan) for p in passes]
        all_ = works[0]
        for more in works[1:]:
            all_ = all_ + more
        if not self.spec.scan_dims:
            return self.busy(all_), 0.0
        vectors = 1 if self.spec.scan[layout.vector] else self.units(layout, shape)[layout.vector]
        loops = any(w.turns > 1 for w in works)
        return self.busy(all_), self.s.sweep if loops else self.s.straight * vectors

    def around(self, plan: RowsPlan, layout: Layout, shape: tuple[int, ...]) -> float:
        """What comes to the sweeps of one group of `shape`: combining lanes, what is computed once per row."""
        return self.values(plan.before, layout, shape) + sum(self.between(p, layout, shape) for p in plan.passes)

    def work(self, p: PassPlan, layout: Layout, shape: tuple[int, ...], plan: RowsPlan) -> Work:
        """Of pass `p` for one group of `shape` (steps along every dim)."""
        corrected = self.corrected(p, plan)
        what = (p.reductions, p.outputs, p.loads, p.compute, p.stores, p.rows, corrected)
        key = (layout.vector, shape, p.step.unroll, p.step.online, what)
        if key not in self._work:
            self._work[key] = self._count(p, layout, shape, len(corrected))
        return self._work[key]

    def corrected(self, p: PassPlan, plan: RowsPlan) -> tuple[int, ...]:
        """The stored values that a pass must correct for the maximum of their blocks."""
        return tuple(v for v in p.loads if v in plan.stored and self._scaled(plan, v))

    def _scaled(self, plan: RowsPlan, value: int) -> bool:
        """Whether a stored value must be corrected for the maximum of its block."""
        return any(p.step.online and value in p.scaling for p in plan.passes if value in {s.value for s in p.stores})

    def _count(self, p: PassPlan, layout: Layout, shape: tuple[int, ...], corrected: int) -> Work:
        spec, s = self.spec, self.s
        units = self.units(layout, shape)
        side = {d: min(p.unroll(d), units[d]) for d in spec.scan_dims}
        turns = math.prod(-(-units[d] // side[d]) for d in spec.scan_dims)
        w = Work(turns=turns)
        long: set[str] = set()
        for v in p.compute:
            n = self.instances(v, units, side)
            value = spec.body.values[v]
            if (value.is_leaf and value.op != "index") or v in self.absorbed:
                continue
            # A sum of products is one instruction for both.
            cycles, unit = (s.fma, s.fma) if self.fuses(v) else (self.op(v), s.arithmetic)
            w.arithmetic += n * cycles
            w.instructions += n * cycles / unit
            # Accumulators take one step after the other, each from a register or two that are being loaded.
            w.beside = max(w.beside, self._points(v, units) / 2 if value.reduces else n / max(1, turns))
            if s.counts.get(value.op, 1) > LONG:
                long.add(value.op)
        # Steps side by side, as squares have them: none where no vector is whole.
        whole = shape[layout.vector] >= layout.lanes
        counts = [side.get(d, n) if whole else 1 for d, n in enumerate(units)]
        for v in p.loads:
            self._access(w, v, self._reads(v, units, side, layout), layout, counts)
        for k in p.outputs:
            n = math.prod(units[d] for d in range(len(units)) if spec.outputs[k].strides[d] or spec.scan[d] is False)
            self._scattered(w, spec.outputs[k].strides, n, layout, counts)
        for st in p.stores:
            n = self.instances(st.value, units, side)
            self._scattered(w, None if st.output is None else spec.outputs[st.output].strides, n, layout, counts)
        full = math.prod(units[d] for d in range(len(units)))
        w.arithmetic += corrected * full * s.arithmetic
        w.held = sum(self._accumulators(r, units, side) for r in p.reductions) + sum(map(self._constants, long))
        w.held += LOOKED_UP * w.beside * any(op in s.tables for op in long)
        w.held += sum(math.prod(units[d] for d in spec.varies[v]) for v in p.rows if not spec.body.values[v].is_leaf)
        if turns == 1 and spec.scan_dims and not spec.scan[layout.vector]:
            # Straight code does one vector after the other.
            w.held /= units[layout.vector]
            w.beside = max(1.0, w.beside / units[layout.vector])
            w.extra += self._spilled(p, units, side, layout)
        if p.reductions:
            w.chain = turns * s.latency
            steps = math.prod(side.values())
            w.again = max(steps * self._points(r, units) / self._accumulators(r, units, side) for r in p.reductions)
        if p.maximum is not None:
            self._online(w, p, units, side, turns, layout)
        return w

    def units(self, layout: Layout, shape: Sequence[int]) -> list[int]:
        """Steps along every dim: vectors along the vector dim."""
        return [-(-n // layout.lanes) if d == layout.vector else n for d, n in enumerate(shape)]

    def instances(self, v: int, units: Sequence[int], side: dict[int, int]) -> float:
        """How often value `v` is computed in a sweep: once for unrolled steps along which it does not vary."""
        along = self.spec.varies[v]
        if self.spec.body.values[v].reduces:
            # An accumulator takes every step.
            along = along | frozenset(self.spec.scan_dims)
        n = 1.0
        for d, count in enumerate(units):
            n *= count if d in along else -(-count // side[d]) if d in side else 1
        return n

    def _accumulators(self, r: int, units: Sequence[int], side: dict[int, int]) -> float:
        """As many as the latency asks for, and no more than there are steps side by side."""
        own = self._points(r, units)
        return own * max(1, min(math.prod(side.values()), -(-IN_FLIGHT // own)))

    def _constants(self, op: str) -> float:
        """Registers for constants: most of those of a polynomial, or its tables."""
        if op in self.s.tables:
            return self.s.tables[op]
        count = self.s.counts.get(op, 1)
        return 0.8 * count - 1.5 if count < CALL else 0

    def _points(self, r: int, units: Sequence[int]) -> int:
        """Vectors of a reduction's results in a group."""
        return math.prod(units[d] for d in self.spec.varies[r])

    def _reads(self, v: int, units: Sequence[int], side: dict[int, int], layout: Layout) -> float:
        """How often a loaded value is read in a sweep: what several points of a tile find at one place, once."""
        value = self.spec.body.values[v]
        if value.op != "input":  # what is stored, or in a table
            return self.instances(v, units, side)
        strides = self.spec.inputs[int(value.attr or 0)].strides
        steps = [s * (layout.lanes if d == layout.vector else 1) for d, s in enumerate(strides)]
        tile = tuple((side.get(d, n), step) for d, (n, step) in enumerate(zip(units, steps, strict=True)) if step)
        turns = math.prod(-(-units[d] // n) for d, n in side.items())
        return turns * places(tile)

    def fuses(self, v: int) -> bool:
        """Whether value `v` is a sum of products, in f32."""
        value = self.spec.body.values[v]
        return value.op == "reduce_sum" and value.dtype == "f32" and value.args[0] in self.absorbed

    def op(self, v: int) -> float:
        """Cycles of value `v`, per vector."""
        s, value = self.s, self.spec.body.values[v]
        name = value.op.removeprefix(REDUCE)
        if value.reduces and name.startswith("arg"):
            return 4 * s.arithmetic
        if value.reduces and name == "sum":
            name = "add"
        wide = s.double if value.dtype in ("f64", "i64") else 1.0
        if name in s.op:
            return s.op[name] * (wide if is_float(value.dtype) else 8)
        if not is_float(value.dtype) and name in ("div", "rem", "udiv", "urem"):
            return 60.0 * s.arithmetic
        return s.counts.get(name, 1) * s.arithmetic

    def _access(self, w: Work, v: int, n: float, layout: Layout, counts: Sequence[int]) -> None:
        value, stride = self.spec.body.values[v], 1
        if value.op == "gather":
            self._gather(w, v, n, layout)
            return
        if value.op == "input":
            strides = self.spec.inputs[int(value.attr or 0)].strides
            stride, found = strides[layout.vector], square(strides, layout.vector, counts, layout.lanes)
            if found is not None:
                w.loads += n * self._transposes(w, n, found[1], layout)
                return
        if stride in (0, 1):
            w.loads += n * (
                self._lines_each(int(value.attr or 0), layout.vector) if stride and value.op == "input" else 1
            )
            w.instructions += n
        elif stride <= INTERLEAVED:
            # What a window's steps along a row pick from is read once, in whole vectors, and shuffled two by two.
            loads = n * self._parts_each(strides, layout, counts)
            w.loads += loads
            w.arithmetic += n * (stride - 1) * self.s.shuffle
            w.instructions += n * (stride - 1) + loads
        else:
            w.extra += n * layout.lanes * self.s.gather

    def _gather(self, w: Work, v: int, n: float, layout: Layout) -> None:
        """Of elements of a table: along the vector dim as any others, where all of them are at one place."""
        value = self.spec.body.values[v]
        stride = self.spec.inputs[int(value.attr or 0)].strides[layout.vector]
        if stride > 1 or any(layout.vector in self.spec.varies[a] for a in value.args):
            w.extra += n * layout.lanes * self.s.gather
        else:
            w.loads += n
            w.instructions += n

    def _transposes(self, w: Work, n: float, width: int, layout: Layout) -> int:
        """Counts what transposing `n` vectors in squares of `width` takes; returns loads or stores a vector."""
        pieces, moves = layout.lanes // width, shuffles(width, layout.lanes)
        w.arithmetic += n * moves * self.s.shuffle
        w.instructions += n * (moves + pieces)
        return pieces

    def _parts_each(self, strides: Sequence[int], layout: Layout, counts: Sequence[int]) -> float:
        """How many vectors are read for each that is picked from rows of them, as `lowering.picks` does."""
        apart, steps = strides[layout.vector], enumerate(zip(counts, strides, strict=True))
        near = tuple((n, s) for d, (n, s) in steps if d != layout.vector and 0 < s < apart * layout.lanes)
        reach = (layout.lanes - 1) * apart + 1 + sum(s * (n - 1) for n, s in near)
        return reach / layout.lanes / places(near)

    def _spilled(self, p: PassPlan, units: Sequence[int], side: dict[int, int], layout: Layout) -> float:
        """Cycles of straight code whose picked vectors, what they meet and sums are more than there are registers:
        each is stored and loaded."""
        picked, alive, vectors = 0.0, 0.0, units[layout.vector]
        for v in p.loads:
            value = self.spec.body.values[v]
            stride = self.spec.inputs[int(value.attr or 0)].strides[layout.vector] if value.op == "input" else 1
            if stride == 0:
                alive += self._reads(v, units, side, layout)
            elif 1 < stride <= INTERLEAVED:
                picked += self._reads(v, units, side, layout) / vectors
        alive += picked + sum(self._points(r, units) for r in p.reductions) / vectors
        over = max(0.0, alive - self.target.registers) if picked else 0.0
        return vectors * over * (self.s.loads + self.s.stores)

    def _lines_each(self, k: int, vector: int) -> float:
        """How many lines a vector of input k lies in: windows move it by less than a vector."""
        o, width = self.spec.inputs[k], self.target.vector_bytes
        moves = (s for d, s in enumerate(o.strides) if d != vector and self.spec.scan[d] and self.spec.dims[d] > 1)
        return 1 + width / LINE if any(s * element_bytes(o.dtype) % width for s in moves) else 1

    def _scattered(
        self, w: Work, strides: Sequence[int] | None, n: float, layout: Layout, counts: Sequence[int]
    ) -> None:
        """strides: of the output; None: of scratch, which lies along vectors."""
        if strides is None or strides[layout.vector] == 1:
            w.stores += n
            w.instructions += n
            return
        found = square(strides, layout.vector, counts, layout.lanes)
        if found is not None:
            w.stores += n * self._transposes(w, n, found[1], layout)
        else:
            w.extra += n * layout.lanes * self.s.scatter

    def _online(
        self, w: Work, p: PassPlan, units: Sequence[int], side: dict[int, int], turns: float, layout: Layout
    ) -> None:
        """What keeping up with a running maximum adds: per unrolled step, or per block."""
        s, spec = self.s, self.spec
        assert p.maximum is not None
        rows = math.prod(units[d] for d in spec.varies[p.maximum])
        sums = sum(1 for r in p.reductions if r != p.maximum)
        correct = s.counts.get("exp", 9) * s.arithmetic + (1 + sums) * s.arithmetic
        if not p.step.online:
            w.arithmetic += turns * rows * (correct + s.arithmetic)
            w.instructions += turns * rows * (correct / s.arithmetic + 1)
            w.chain = turns * s.online
            return
        last = layout.vector if spec.scan[layout.vector] else spec.scan_dims[-1]
        lanes = layout.lanes if last == layout.vector else 1
        blocks = -(-units[last] * lanes // p.step.online)
        blocks *= math.prod(units[d] for d in spec.scan_dims if d != last)
        w.extra += blocks * (s.block + 2 * s.sweep + s.lanes + rows * correct)
        w.loads += sum(self.instances(v, units, side) for v in p.loads)
        w.extra += blocks * rows * self.lost(p, rows)

    def lost(self, p: PassPlan, rows: int) -> float:
        """Cycles of the lines of one row of a block that the nearest cache has lost when they are read again, for the
        sums: beside them it holds what is stored, and the lines of the next block, which have been asked for."""
        values = self.spec.body.values
        read = int(p.step.online or 0) * sum(element_bytes(values[v].dtype) for v in p.loads)
        kept = int(p.step.online or 0) * sum(element_bytes(values[st.value].dtype) for st in p.stores)
        (_, held), *_ = levels(self.target)
        lost = min(float(read), max(0.0, 2 * read + kept - held / rows))
        return lost / LINE * self.s.read.l2

    def between(self, p: PassPlan, layout: Layout, shape: tuple[int, ...]) -> float:
        """Of one group, before and after a sweep."""
        s, spec = self.s, self.spec
        units = self.units(layout, shape)
        total = 0.0
        if spec.scan[layout.vector]:
            for r in p.reductions:
                points = math.prod(units[d] for d in spec.varies[r])
                total += s.lanes * (1 + (points - 1) / 2)
        return total + self.values(p.after, layout, shape) + s.stores * len(p.writes_after)

    def values(self, computed: Iterable[int], layout: Layout, shape: tuple[int, ...]) -> float:
        """Of values that are computed once per row."""
        s, spec = self.s, self.spec
        units = self.units(layout, shape)
        total = 0.0
        for v in computed:
            value = spec.body.values[v]
            if value.op == "const":
                continue
            points = math.prod(units[d] for d in spec.varies[v])
            name = value.op
            dear = name in s.op or s.counts.get(name, 1) > 4
            total += (s.far_op if dear else s.step) * (1 + (points - 1) / 2)
        return total
