"""A picture of a run by size, a line for each library: the share of the peak of multiply-adds, or plain speed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .report import OURS, PEAK, Row

#: What square products have.
GROUP = "square"
#: What lines show, with the peak and without.
SHARE, SPEED = "% of the multiply-adds that registers allow", "billions of operations a second"


def plot(rows: Sequence[Row], path: Path) -> str:
    """Writes an SVG of the square products. Returns why not (nothing to show, or no matplotlib), or "" if it did.

    Rows without the peak of multiply-adds (it is one thread's) show billions of operations a second.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return "matplotlib is not installed"
    own = sorted((r for r in rows if r.workload.group == GROUP), key=lambda r: r.workload.m)
    peak = any(r.of(PEAK) for r in own)
    own = [r for r in own if bool(r.of(PEAK)) == peak]
    if not own:
        return f"it shows rows of {GROUP}/, and this run has none"
    figure = Figure(figsize=(9, 5.5), layout="constrained")
    axes = figure.subplots()
    names = dict.fromkeys([OURS, *(p.peer for r in own for p in r.peers)])
    height = _share if peak else _speed
    for name in names:
        points = [(r.workload.m, y) for r in own if (y := height(r, name)) is not None]
        wide = {"linewidth": 2.5, "color": "black", "zorder": 3} if name == OURS else {"linewidth": 1.2}
        axes.plot([p[0] for p in points], [p[1] for p in points], marker="o", markersize=3, label=name, **wide)
    sizes = [r.workload.m for r in own]
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [str(s) for s in sizes], rotation=45)
    axes.set_xticks([], minor=True)
    axes.set(xlabel="size of a square f32 product", ylabel=SHARE if peak else SPEED)
    axes.set_ylim(0, 105 if peak else None)
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small", ncols=2)
    figure.savefig(path)
    return ""


def _speed(row: Row, name: str) -> float | None:
    """Billions of operations a second."""
    result = row.of(name)
    return row.workload.operations / result.median / 1e9 if result else None


def _share(row: Row, name: str) -> float | None:
    """Per cent of the peak of multiply-adds."""
    result, peak = row.of(name), row.of(PEAK)
    return 100 * peak.median / result.median if result and peak else None
