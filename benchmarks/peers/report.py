"""Tables of a run: Markdown for people, plain data for programs."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .driver import Result
from .workloads import Workload

OURS, OURS_PYTHON, PEAK, READ = "ours", "ours from Python", "FMA peak", "read bandwidth"
_NOT_PEERS = (OURS, OURS_PYTHON, PEAK, READ)


@dataclass(frozen=True)
class Row:
    """A workload and what everyone did with it."""

    workload: Workload
    results: tuple[Result, ...]

    def of(self, name: str) -> Result | None:
        """The result of a peer by name, if it has samples."""
        return next((r for r in self.results if r.peer == name and r.samples), None)

    @property
    def peers(self) -> list[Result]:
        """The libraries that ran it, fastest median first."""
        return sorted((r for r in self.results if r.samples and r.peer not in _NOT_PEERS), key=lambda r: r.median)

    @property
    def ratio(self) -> float | None:
        """Best peer's time over ours: the median over the rounds. Above 1, we are faster."""
        ours = self.of(OURS)
        if ours is None or not self.peers:
            return None
        return statistics.median(p / o for p, o in zip(self.peers[0].samples, ours.samples, strict=False))

    @property
    def ratio_best(self) -> float | None:
        """The same of the best rounds: the fastest sample of any peer over our fastest."""
        ours = self.of(OURS)
        return min(p.best for p in self.peers) / ours.best if ours and self.peers else None

    @property
    def of_peak(self) -> float | None:
        """The share of the peak of multiply-adds measured in the same rounds."""
        return self._share(PEAK)

    @property
    def of_read(self) -> float | None:
        """The share of the speed at which as many bytes can be read."""
        return self._share(READ)

    def _share(self, name: str) -> float | None:
        ours, limit = self.of(OURS), self.of(name)
        return limit.median / ours.median if ours and limit else None

    def record(self) -> dict[str, Any]:
        w = self.workload
        return {
            "workload": w.key, "m": w.m, "k": w.k, "n": w.n, "batch": w.batch, "types": list(w.types), "ahead": w.ahead,
            "operations": w.operations, "bytes": w.bytes, "ratio": self.ratio, "ratio_best": self.ratio_best,
            "of_peak": self.of_peak, "of_read": self.of_read,
            "results": {
                r.peer: {"samples_s": r.samples, "note": r.note, "python": r.python, "build_s": r.build_s, "why": r.why}
                for r in self.results
            },
        }  # fmt: skip


def giga(workload: Workload, seconds: float) -> float:
    """Billions of operations a second."""
    return workload.operations / seconds / 1e9


LEGEND = """\
Billions of operations a second, median (best round). Ratio: the best peer's time over ours, median over the rounds;
best: of the best rounds. Peak: our share of the multiply-adds that registers allow (f32); read: of the speed at which
as many bytes are read; both measured in the same rounds. ⁽ᵖ⁾: called from Python; the others from a native loop."""
#: How many peers a line names.
NAMED = 4
HEAD = (
    "| workload | ours | from Python | ratio | best | peak | read | fastest peers |\n|---|---|---|---|---|---|---|---|"
)


def markdown(rows: Sequence[Row], about: dict[str, Any]) -> str:
    """The whole report."""
    parts = ["\n".join(f"* {name}: {value}" for name, value in about.items())]
    for group in dict.fromkeys(r.workload.group for r in rows):
        own = [r for r in rows if r.workload.group == group]
        parts += [f"## {group}", table(own), _summary(own)]
    parts.append(LEGEND)
    return "\n\n".join(p for p in parts if p) + "\n"


def table(rows: Sequence[Row]) -> str:
    return "\n".join([HEAD, *(line(row) for row in rows)])


def line(row: Row) -> str:
    w = row.workload
    peak = row.of_peak if w.types == ("f32",) * 3 else None
    shares = (
        _number(row.ratio, ".2f"),
        _number(row.ratio_best, ".2f"),
        _number(peak, ".0%"),
        _number(row.of_read, ".0%"),
    )
    peers = ", ".join(f"{p.peer}{'⁽ᵖ⁾' if p.python else ''} {_speed(w, p)}" for p in row.peers[:NAMED])
    return (
        f"| {w.label} | {_speed(w, row.of(OURS))} | {_speed(w, row.of(OURS_PYTHON))} | {' | '.join(shares)} | {peers} |"
    )


def _speed(workload: Workload, result: Result | None) -> str:
    if result is None:
        return "–"
    return f"{_digits(giga(workload, result.median))} ({_digits(giga(workload, result.best))})"


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 1 else f"{value:.2g}"


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)


def _summary(rows: Sequence[Row]) -> str:
    ratios = [(r.ratio, r.workload.label) for r in rows if r.ratio is not None]
    if not ratios:
        return ""
    mean = math.exp(statistics.fmean(math.log(ratio) for ratio, _ in ratios))
    worst, where = min(ratios)
    return f"Geometric mean of the ratios {mean:.2f}, worst {worst:.2f} ({where})."
