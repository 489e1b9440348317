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
from .ops import element_bytes
from .spec import NestSpec

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
    span = nbytes
    apart: list[tuple[int, int]] = []
    for stride, n in sorted((s * nbytes, n) for s, n in zip(strides, steps, strict=True) if s and n > 1):
        if not apart and stride <= max(span, LINE):
            span += (n - 1) * stride
        elif apart and stride % apart[-1][0] == 0 and apart[-1][0] * apart[-1][1] >= stride:
            # Windows that overlap.
            step, have = apart[-1]
            apart[-1] = step, have + (n - 1) * (stride // step)
        else:
            apart.append((stride, n))
    runs = 1
    for _, n in apart:
        runs *= n
    return runs * max(1.0, span / LINE), runs


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

    def again(self, table: PerLine, nbytes: float) -> float:
        """Cycles of a line that is met again after `nbytes`. A cache does not lose all at once what is too large for
        it: what L2 is planned with stays, and nothing of twice as much."""
        planned = self.target.l2.lines * LINE
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
        for k, o in enumerate(self.spec.operands):
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
            self._first[k, id(table)] = self.met(k, table) + self.jumps(k)
        return self._first[k, id(table)]

    @cached_property
    def _first(self) -> dict[tuple[int, int], float]:
        return {}

    def met(self, k: int, table: PerLine) -> float:
        """What the lines of operand `k` that groups touch first are by `table`, each where it is found; without what
        waiting for those that lie apart costs."""
        lines = self._lines[key_of_operand(self.spec, k)]
        again = 0.0
        outer = 1.0
        for i in reversed(range(len(self._loops))):
            turns = self._loops[i][0]
            met = turns * lines[i] - lines[i + 1]
            each = table.at("L1") if self.near else self.again(table, self._footprints[i])
            again += outer * max(0.0, met) * each
            outer *= turns
        return lines[-1] * table.at(self.cold(k)) + again

    def stays_near(self) -> bool:
        """Whether all lines that are met again come from the nearest cache."""
        for lines in self._lines.values():
            for i, (turns, _) in enumerate(self._loops):
                if turns * lines[i] > lines[i + 1] and self.level(self._footprints[i]) != "L1":
                    return False
        return True

    def crowd(self, k: int) -> float:
        """What lines of operand `k` cost that lie in the same sets of the nearest cache: rows of a group that are whole
        pages apart."""
        if k < 0:
            return 0.0
        o = self.spec.operands[k]
        rows = 1
        for d in self.spec.parallel_dims:
            apart = o.strides[d] * element_bytes(o.dtype)
            if d != self.vector and apart and apart % PAGE == 0:
                rows *= self.group[d]
        lines = self._lines[key_of_operand(self.spec, k)][0] * self.groups
        return lines * self.target.streams.crowd * math.log2(rows)

    def jumps(self, k: int) -> float:
        """What lines cost that lie apart: the next one is not foreseen. Where the innermost loop goes on along the runs
        of a group, they are foreseen from group to group."""
        o = self.spec.operands[k]
        size = element_bytes(o.dtype)
        lines, runs = line_runs(o.strides, self.group, size)
        apart = float(runs - 1)
        if self._loops:
            turns, steps = self._loops[0]
            apart = min(apart, (line_runs(o.strides, steps, size)[1] - 1) / turns)
        # Of what groups share, only the first has to wait.
        new = min(1.0, self._lines[key_of_operand(self.spec, k)][-1] / (self.groups * lines)) if lines else 1.0
        return new * self.groups * apart * self.target.streams.run.at(self.cold(k))
