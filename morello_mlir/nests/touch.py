"""Which cache lines `rows` touches, and from how far they come: the memory half of the cost of nests.

An access is priced by the level at which its line was last touched: the caches hold what has been touched since, if
that fits. Along the loops over groups, a line is met anew (it comes from where the operand was when the nest started),
or again (from the level that holds what one turn of the innermost loop that comes back to it touches).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from ..cached import cached_property
from ..targets import LINE, PAGE, Target
from ..targets.streams import PerLine
from .crowd import apart_of, lines_a_set, occupied
from .ops import element_bytes
from .spec import NestSpec

#: Lines that are under way at a time, those of more than one group that are written, and groups, at most.
UNDER_WAY, WRITES_UNDER_WAY, MOST_UNDER_WAY = 64, 32, 16
#: How many times as many lines as in others there are in some sets of L2.
UNEVEN = 2
#: The share of the ways of a set from which on lines wait for one another; and how many times all ways, at most, count
#: of lines that are written.
CROWDED, MOST_CROWDED = 0.7, 2.0
#: What is touched: an operand (an output that overwrites an input is that input), or scratch, by its value.
Key = tuple[str, int]


def levels(target: Target) -> tuple[tuple[str, int], ...]:
    """The caches, innermost first, and how many bytes of a footprint they hold: more than contractions plan with, which
    must be sure of it."""
    l1, l2 = target.l1.lines * LINE * 7 // 8, target.l2.lines * LINE * 8 // 5
    return ("L1", l1), ("L2", l2)


def key_of_operand(spec: NestSpec, k: int) -> Key:
    """k: the number of the operand, inputs first."""
    first = len(spec.inputs)
    alias = spec.operands[k].alias if k >= first else None
    return "operand", k if alias is None else alias


def line_runs(strides: Sequence[int], steps: Sequence[int], nbytes: int) -> tuple[float, int]:
    """(lines, runs of neighbouring lines) that the steps along all dims touch."""
    apart, span = apart_of(strides, steps, nbytes)
    runs = math.prod(n for _, n in apart)
    # Rows begin anywhere in a line that their strides lead to.
    begin = math.gcd(LINE, *(stride for stride, _ in apart))
    return runs * max(1.0, (span + LINE - begin) / LINE), runs


def _page_runs(apart: Sequence[tuple[int, int]]) -> float:
    """On how many pages runs begin, so many at each stride in bytes."""
    return math.prod(max(1.0, n * min(1.0, stride / PAGE)) for stride, n in apart)


@dataclass(frozen=True)
class Layout:
    """How groups are cut: the vector dim, lanes, and the steps of a group along every dim (all, along scan dims). near:
    as if lines that come back did so from the nearest cache."""

    spec: NestSpec
    target: Target
    vector: int
    lanes: int
    group: tuple[int, ...]
    near: bool = False

    def level(self, nbytes: float) -> str:
        """Where what `nbytes` have passed over is found again."""
        for memory, held in levels(self.target):
            if nbytes <= held:
                return memory
        return "L3" if nbytes <= self.target.l3_bytes else "DRAM"

    def again(self, table: PerLine, nbytes: float, nearest: float = 0.0) -> float:
        """Cycles of a line that is met again after `nbytes`, which take `nearest` bytes of L1 where they crowd there. A
        cache does not lose all at once what is too large for it: what L2 is planned with stays, and nothing of twice as
        much."""
        planned, (_, held) = self.target.l2.lines * LINE, levels(self.target)[0]
        if nearest > held:
            nbytes = max(nbytes, held + 1.0)
        level = self.level(nbytes)
        if level == "L1" or not planned < nbytes < 2 * planned:
            return table.at(level)
        lost = nbytes / planned - 1
        return lost * table.at("L3") + (1 - lost) * table.at("L2")

    @cached_property
    def shapes(self) -> list[tuple[tuple[int, ...], int]]:
        """The shapes of groups, those at the ends of dims being smaller, and how many there are of each."""
        choices = []
        for d, (n, size) in enumerate(zip(self.spec.dims, self.group, strict=True)):
            if self.spec.scan[d]:
                choices.append([(n, 1)])
            else:
                whole, rest = divmod(n, size)
                choices.append([(size, whole)] * (whole > 0) + [(rest, 1)] * (rest > 0))
        return [(tuple(n for n, _ in ends), math.prod(c for _, c in ends)) for ends in product(*choices)]

    @cached_property
    def groups(self) -> int:
        """How many groups there are, those at the ends included."""
        total = 1
        for d in self.spec.parallel_dims:
            total *= -(-self.spec.dims[d] // self.group[d])
        return total

    @cached_property
    def _loops(self) -> list[tuple[int, tuple[int, ...]]]:
        """The loops over groups, innermost first: turns, and the steps of all that lies in the loop."""
        out = []
        steps = list(self.group)
        for d in reversed(self.spec.parallel_dims):
            turns = -(-self.spec.dims[d] // self.group[d])
            steps[d] = self.spec.dims[d]
            if turns > 1:
                out.append((turns, tuple(steps)))
        return out

    @cached_property
    def _lines(self) -> dict[Key, list[float]]:
        """By operand: the lines that a group touches, and that each loop does, innermost first."""
        out: dict[Key, list[float]] = {}
        for k, o in enumerate(self.spec.met):
            size = element_bytes(o.dtype)
            steps = [self.group, *(s for _, s in self._loops)]
            key = key_of_operand(self.spec, k)
            if key not in out:
                out[key] = [line_runs(o.strides, s, size)[0] for s in steps]
        return out

    def lines(self, key: Key, scratch_bytes: int = 0) -> float:
        """The lines of `key` that a group touches."""
        return self._lines[key][0] if key[0] == "operand" else max(1.0, scratch_bytes / LINE)

    @cached_property
    def _footprints(self) -> list[float]:
        """Bytes that a group touches, and each loop, innermost first."""
        rows = list(self._lines.values())
        return [LINE * sum(r[i] for r in rows) for i in range(len(self._loops) + 1)]

    @cached_property
    def _crowded(self) -> dict[Key, list[tuple[float, float]]]:
        """By operand: bytes of L1 and of L2 that each loop takes, innermost first, of which none of that operand are
        lost before: where its lines crowd in few sets, the others are of no use. Pages that are neighbours lie anywhere
        in memory, so that lines crowd in some sets of L2 more than in others."""
        caches = (self.target.l1.sets, 1), (self.target.l2.sets, UNEVEN)
        out: dict[Key, list[tuple[float, float]]] = {}
        for k, o in enumerate(self.spec.met):
            key = key_of_operand(self.spec, k)
            if key in out:
                continue
            out[key] = []
            for i, steps in enumerate((self.group, *(s for _, s in self._loops))):
                lines, shape = self._lines[key][i], apart_of(o.strides, steps, element_bytes(o.dtype))
                more = [occupied(lines, by * lines_a_set(*shape, sets), sets) - lines for sets, by in caches]
                out[key].append((self._footprints[i] + LINE * more[0], self._footprints[i] + LINE * more[1]))
        return out

    @property
    def footprint(self) -> float:
        """Bytes of all operands that a group touches."""
        return self._footprints[0]

    def cold(self, k: int) -> str:
        """The level at which operand `k` is when the nest starts."""
        memory = self.spec.operands[k].memory
        return memory if memory != "GL" else "DRAM" if self.spec.far else "L3"

    def first(self, k: int, table: PerLine) -> float:
        """Cycles of the first touches of operand `k` in all groups, per line as `table` says."""
        if (k, id(table)) not in self._first:
            self._first[k, id(table)] = self.met(k, table) + self.jumps(k) + self.walks(k)
        return self._first[k, id(table)]

    @cached_property
    def _first(self) -> dict[tuple[int, int], float]:
        return {}

    def met(self, k: int, table: PerLine) -> float:
        """What the lines of operand `k` that groups touch first are by `table`, each where it is found; without what
        waiting for those that lie apart costs."""
        return self.over(k, table, table)

    def over(self, k: int, first: PerLine, again: PerLine) -> float:
        """All groups' lines of operand `k`: of those that no group has touched before by `first`, of others by `again`,
        each where it is found."""
        key = key_of_operand(self.spec, k)
        lines, total, outer = self._lines[key], 0.0, 1.0
        for i in reversed(range(len(self._loops))):
            turns = self._loops[i][0]
            met = turns * lines[i] - lines[i + 1]
            if met > 0:
                nearest, beyond = self._crowded[key][i]
                total += outer * met * (again.l1 if self.near else self.again(again, beyond, nearest))
            outer *= turns
        return lines[-1] * first.at(self.cold(k)) + total

    def stays_near(self) -> bool:
        """Whether all lines that are met again come from the nearest cache."""
        _, held = levels(self.target)[0]
        for key, lines in self._lines.items():
            for i, (turns, _) in enumerate(self._loops):
                if turns * lines[i] > lines[i + 1] and max(self._crowded[key][i]) > held:
                    return False
        return True

    def crowd(self, k: int) -> float:
        """What lines of operand `k` cost that lie in the same sets of the nearest cache: rows of a group that are whole
        pages apart."""
        if k < 0:
            return 0.0
        o = self.spec.met[k]
        rows = 1
        for d in self.spec.parallel_dims:
            apart = o.strides[d] * element_bytes(o.dtype)
            if d != self.vector and apart and apart % PAGE == 0:
                rows *= self.group[d]
        lines = self._lines[key_of_operand(self.spec, k)][0] * self.groups
        return lines * self.target.streams.crowd * math.log2(rows)

    def waits(self, k: int, *, written: bool) -> float:
        """What lines of operand `k` wait for one another that groups touch first: of those under way at a time, no set
        of the nearest cache takes more than it has ways."""
        o, s, sets = self.spec.met[k], self.target.streams, self.target.l1.sets
        size, most = element_bytes(o.dtype), WRITES_UNDER_WAY if written else UNDER_WAY
        steps = self._under_way(o.strides, size, most)
        a_set = lines_a_set(*apart_of(o.strides, steps, size), sets)
        a_set *= min(1.0, UNDER_WAY / line_runs(o.strides, steps, size)[0])
        much = a_set * sets / self.target.l1.lines - CROWDED
        if much <= 0:
            return 0.0
        if written:
            return min(much, MOST_CROWDED) * self.over(k, s.write_crowded, s.write_again)
        # Where the nest has only parts of lines, others meet the rest of them.
        part = min(1.0, apart_of(o.strides, self.spec.dims, size)[1] / LINE)
        met = PerLine(*(part * x + (1 - part) * y for x, y in zip(s.read_crowded, s.read_again, strict=True)))
        return much * self.over(k, met, s.read_again)

    def _under_way(self, strides: Sequence[int], nbytes: int, most: int) -> list[int]:
        """Steps along every dim of the groups that are under way at a time: while there are fewer than `most` lines."""
        steps, left = list(self.group), MOST_UNDER_WAY
        for d in reversed(self.spec.parallel_dims):
            while left > 1 and steps[d] < self.spec.dims[d] and line_runs(strides, steps, nbytes)[0] < most:
                steps[d] = min(self.spec.dims[d], 2 * steps[d])
                left //= 2
        return steps

    def jumps(self, k: int) -> float:
        """What lines cost that lie apart: the next one is not foreseen. Where the innermost loop goes on along the runs
        of a group, they are foreseen from group to group."""
        o, cold = self.spec.met[k], self.cold(k)
        size = element_bytes(o.dtype)
        lines, runs = line_runs(o.strides, self.group, size)
        apart, each = float(runs - 1), self.target.streams.run.at(cold)
        if not self.spec.scan_dims:
            # Groups without a sweep are short: the lines of the next ones are under way beside theirs.
            apart, each = self._followed(k, apart), self.target.streams.short_run.at(cold)
        elif self._loops:
            turns, steps = self._loops[0]
            apart = min(apart, (line_runs(o.strides, steps, size)[1] - 1) / turns)
        # Of what groups share, only the first has to wait.
        new = min(1.0, self._lines[key_of_operand(self.spec, k)][-1] / (self.groups * lines)) if lines else 1.0
        return new * self.groups * apart * each

    def walks(self, k: int) -> float:
        """What pages of operand `k` cost that are met after so many others that their address is looked up again. What
        goes across memory along the vector dim, or has sweeps, has that among its lines' costs."""
        if self.spec.scan_dims or any(o.strides[self.vector] > 1 for o in self.spec.operands):
            return 0.0
        # Along one loop pages are met once each, if those of one of its turns are remembered.
        executions = math.prod(turns for turns, _ in self._loops)
        pages = self._pages[k][0]
        for i, (turns, _) in enumerate(self._loops):
            executions //= turns
            pages = executions * self._pages[k][i + 1]
            if sum(own[i + 1] for own in self._pages) > self.target.streams.pages:
                break
        return self.target.streams.page * pages

    @cached_property
    def _pages(self) -> list[list[float]]:
        """By operand: the pages that a group touches, and that each loop does, innermost first."""
        every = (self.group, *(s for _, s in self._loops))
        found = []
        for o in self.spec.operands:
            own = [apart_of(o.strides, steps, element_bytes(o.dtype)) for steps in every]
            found.append([max(span / PAGE, 1.0) * _page_runs(apart) for apart, span in own])
        return found

    def _followed(self, k: int, apart: float) -> float:
        """As many of the runs `apart` of a group as no loop goes on along, of those whose runs are few enough to be
        followed at the same time."""
        o, groups = self.spec.met[k], 1
        for turns, steps in self._loops:
            groups *= turns
            runs = line_runs(o.strides, steps, element_bytes(o.dtype))[1]
            apart = min(apart, (runs - 1) / groups)
            if runs > UNDER_WAY:
                break
        return apart
