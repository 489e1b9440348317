"""What the cache lines of `rows` cost, pass by pass, and what they move (docs/nests.md): sums over `touch`."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ..targets import LINE, Target
from ..targets.streams import LEVELS, PerLine, scaled
from .ops import element_bytes
from .plan import PassPlan, RowsPlan
from .touch import Key, Layout, key_of_operand

#: Tables by which a sum of lines is their number at one level.
COUNTING = {level: PerLine(*(float(level == other) for other in LEVELS)) for level in LEVELS}


@dataclass(frozen=True, slots=True)
class Lines:
    """Cycles of cache lines: of those that pass through the caches (waits: for one another in few sets), and of those
    written past them."""

    cached: float = 0.0
    past: float = 0.0
    waits: float = 0.0

    def __add__(self, other: Lines) -> Lines:
        return Lines(self.cached + other.cached, self.past + other.past, self.waits + other.waits)

    @property
    def total(self) -> float:
        return self.cached + self.past


class Tour:
    """The passes of a group one after another: where each finds what it touches. past: all outputs are written past the
    caches, instead of those of passes that say so."""

    def __init__(self, target: Target, plan: RowsPlan, layout: Layout, *, past: bool = False):
        self.plan, self.layout, self.past = plan, layout, past
        self.s = target.streams
        # What is written past the caches, all threads wait for.
        self.past_line = scaled(self.s.past, plan.spec.among)
        self.per = len(plan.sweeps)
        self.touched: dict[Key, int] = {}
        self.reads = [[self.place(v) for v in p.loads] for p in plan.passes]
        self.writes = [
            [self.place(s.value) for s in p.stores] + [self.output(k) for k in p.outputs] for p in plan.passes
        ]
        self.sizes = [0.0] * self.per
        for j in range(len(plan.passes)):
            for key in {key for key, _ in (*self.reads[j], *self.writes[j])}:
                self.sizes[j % self.per] += LINE * self.lines(key)

    def place(self, value: int) -> tuple[Key, int]:
        """Where a loaded value lies: what it counts as, and the operand whose place it is (-1: scratch)."""
        store = self.plan.stored.get(value)
        if store is None:
            k = int(self.plan.spec.body.values[value].attr or 0)
            return key_of_operand(self.plan.spec, k), k
        return (("scratch", value), -1) if store.output is None else self.output(store.output)

    def output(self, k: int) -> tuple[Key, int]:
        operand = len(self.plan.spec.inputs) + k
        return key_of_operand(self.plan.spec, operand), operand

    def lines(self, key: Key) -> float:
        """The lines of one group."""
        if key[0] == "operand":
            return self.layout.lines(key)
        size = element_bytes(self.plan.spec.body.values[key[1]].dtype)
        return max(1.0, self.plan.scratch_elements * size / LINE)

    def since(self, first: int, j: int) -> float:
        """Bytes that pass by before pass `j` finds what pass `first` of the same group touched."""
        return sum(self.sizes[t % self.per] for t in range(first, j))

    def visit(self, j: int, p: PassPlan) -> Lines:
        """Cycles of the lines that pass `j` touches."""
        s, cached, past, waits = self.s, 0.0, 0.0, 0.0
        for key, operand in self.reads[j]:
            cached += self.cycles(j, key, operand, s.read, s.read)
            waits += self.waits(key, operand, written=False)
            self.touched[key] = j
        written = self.past_caches(p)
        for key, operand in self.writes[j]:
            if key in written:
                past += self.cycles(j, key, operand, self.past_line, self.past_line)
            else:
                cached += self.cycles(j, key, operand, s.allocate, s.touched)
                waits += self.waits(key, operand, written=True)
            self.touched[key] = j
        return Lines(cached + waits, past, waits)

    def past_caches(self, p: PassPlan) -> Collection[Key]:
        """What a pass writes past the caches."""
        return {self.output(k)[0] for k in p.outputs} if self.past or p.step.streaming else ()

    def cycles(self, j: int, key: Key, operand: int, new: PerLine, again: PerLine) -> float:
        """Of all groups' lines of `key`: what a line costs that this group has not touched, and one that it has."""
        if operand < 0 or key in self.touched:
            return self.by(j, key, operand, new, again) + self.layout.crowd(operand)
        return self.layout.first(operand, new) + self.layout.crowd(operand)

    def waits(self, key: Key, operand: int, *, written: bool) -> float:
        """What all groups' lines of `key` wait for one another, where this pass is the first to touch them."""
        return 0.0 if operand < 0 or key in self.touched else self.layout.waits(operand, written=written)

    def by(self, j: int, key: Key, operand: int, new: PerLine, again: PerLine) -> float:
        """All groups' lines of `key` by tables, each where it is found."""
        if key in self.touched:
            lines = self.lines(key) * self.layout.groups
            return lines * self.layout.again(again, self.since(self.touched[key], j))
        if operand < 0:
            return self.lines(key) * self.layout.groups * self.layout.again(again, self.layout.footprint)
        return self.layout.met(operand, new)

    def moved(self, j: int, p: PassPlan) -> dict[tuple[str, str], int]:
        """Bytes that pass `j` moves, by (from, to) memory: what it reads comes to the nearest cache from where it is
        found, what it writes goes back there, or past the caches."""
        out: dict[tuple[str, str], float] = {}
        written = self.past_caches(p)
        for key, operand, reads in (*((*r, True) for r in self.reads[j]), *((*w, False) for w in self.writes[j])):
            for level, counting in COUNTING.items():
                lines = self.by(j, key, operand, counting, counting)
                memory = "GL" if level in ("L3", "DRAM") else level
                way = ("VRF", "GL") if not reads and key in written else (memory, "L1") if reads else ("L1", memory)
                if lines and way != ("L1", "L1"):
                    out[way] = out.get(way, 0.0) + lines * LINE
            self.touched[key] = j
        return {way: round(amount) for way, amount in out.items()}
