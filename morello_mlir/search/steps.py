"""Steps of an explained schedule, of whatever kind of goal: a tree of lines with what each costs and moves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..spec import MEMORIES
from ..targets import COST_UNITS
from .schedule import INDENT

#: Bytes by (from, to) memory.
Traffic = dict[tuple[str, str], int]


@dataclass(slots=True)
class Step:
    """One line of the tree.

    label: the line, as a schedule has it (empty: no line, only what is below it). runs: how often it is reached. own,
    total: cost units of the step alone and with all below it, as often as the thread that decides (with the most to do)
    comes by. traffic: bytes of all runs, of the step alone. note: sizes, or what else there is to say. indent: how much
    deeper than the line above it stands.
    """

    label: str
    runs: int
    own: int = 0
    total: int = 0
    traffic: Traffic = field(default_factory=dict)
    note: str = ""
    indent: int = 0
    below: list[Step] = field(default_factory=list)

    def walk(self) -> Iterator[Step]:
        """This step and all below it, in the order of the lines."""
        yield self
        for step in self.below:
            yield from step.walk()

    def summed(self) -> Step:
        """Itself, `total` being what it and those below it cost."""
        self.total = self.own + sum(step.total for step in self.below)
        return self

    def under(self, word: str) -> Step:
        """Itself under the line `word:`, which stands where the step would."""
        above = Step(f"{word}:", self.runs, 0, self.total, indent=self.indent, below=[self])
        self.indent = 1
        return above

    def record(self) -> dict[str, Any]:
        """For JSON: cycles with and without those below, bytes by `from to memory`."""
        return {
            "step": self.label,
            "runs": self.runs,
            "cycles": self.total / COST_UNITS,
            "own_cycles": self.own / COST_UNITS,
            "traffic": named(self.traffic),
            "note": self.note,
            "below": [step.record() for step in self.below],
        }


def traffic(root: Step) -> Traffic:
    """Bytes moved by the whole schedule."""
    return added((step.traffic, 1) for step in root.walk())


def added(parts: Iterable[tuple[Mapping[tuple[str, str], int], int]]) -> Traffic:
    """The bytes of several times, (bytes, how often) each, outermost memories first."""
    out: Traffic = {}
    for moved, times in parts:
        for way, amount in moved.items():
            out[way] = out.get(way, 0) + amount * times
    return dict(sorted(out.items(), key=lambda p: (MEMORIES.index(p[0][0]), MEMORIES.index(p[0][1]))))


def named(moved: Traffic) -> dict[str, int]:
    """Bytes by text, `GL to L2`."""
    return {f"{a} to {b}": amount for (a, b), amount in moved.items()}


def traffic_text(moved: Traffic) -> str:
    """`GL to L2 1.2 MB, L2 to GL 600 kB`."""
    return ", ".join(f"{way} {bytes_text(amount)}" for way, amount in named(moved).items()) or "nothing"


def bytes_text(n: float) -> str:
    """`1.2 MB`."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n >= size:
            return f"{n / size:.3g} {unit}"
    return f"{n:.0f} B"


def cycles_text(cost: float) -> str:
    """Cost units as cycles: `1,234`, and `0.25` where there are few."""
    cycles = cost / COST_UNITS
    return f"{cycles:,.0f}" if cycles >= 10 or cycles == int(cycles) else f"{cycles:.2g}"


def moved_text(moved: Traffic) -> str:
    """As `traffic_text`, in short: `GL>L2 1.2 MB`."""
    return ", ".join(f"{a}>{b} {bytes_text(amount)}" for (a, b), amount in moved.items())


# ---------------------------------------------------------------- text

#: Columns beside the steps; the last two are read from the left.
COLUMNS = ("runs", "cycles", "share", "own", "moved", "note")
_LEFT = COLUMNS[-2:]


def table(root: Step, least: float = 0.0) -> list[str]:
    """The steps, and beside them as comments: how often each runs; cycles and their share of the whole, with all below
    it; the share of the step alone; bytes moved; sizes. It parses as a schedule where nothing was cut: branches that
    cost less than `least` percent of the whole are `...`."""
    rows = [*_rows(root, root.total, least, 0)]
    width = max(len(text) for text, _ in rows)
    widths = {c: max(len(c), *(len(r.get(c, "")) for _, r in rows)) for c in COLUMNS}

    def line(text: str, cells: Mapping[str, str]) -> str:
        justified = [cells.get(c, "").ljust(w) if c in _LEFT else cells.get(c, "").rjust(w) for c, w in widths.items()]
        return f"{text:{width}}  // {'  '.join(justified)}".rstrip()

    return [line("", {c: c if c != "note" else "" for c in COLUMNS}), *(line(text, cells) for text, cells in rows)]


def _rows(step: Step, whole: int, least: float, depth: int) -> Iterator[tuple[str, Mapping[str, str]]]:
    pad = INDENT * depth
    # What costs nothing itself and has nothing below it is worth its line: a pass in the sweep of another.
    if whole and 100 * step.total < least * whole and (step.total or step.below):
        yield f"{pad}...", {"share": share_text(step.total, whole)}
        return
    if step.label:
        yield f"{pad}{step.label}", cells(step, whole)
    for below in step.below:
        yield from _rows(below, whole, least, depth + below.indent)


def cells(step: Step, whole: int) -> Mapping[str, str]:
    """What stands beside a step, by column."""
    return {
        "runs": f"{step.runs:,}",
        "cycles": cycles_text(step.total) if step.total else "",
        "share": share_text(step.total, whole),
        "own": share_text(step.own, whole) if step.below else "",
        "moved": moved_text(step.traffic),
        "note": step.note,
    }


def share_text(cost: int, whole: int) -> str:
    """`12.3%`, or nothing."""
    return f"{cost / whole:.1%}" if cost and whole else ""


def sizes_text(names: Sequence[str], sizes: Sequence[int]) -> str:
    """`m=4 k=8`; batches of one are not worth a word."""
    return " ".join(f"{d}={s}" for d, s in zip(names, sizes, strict=True) if d != "b" or s > 1)
