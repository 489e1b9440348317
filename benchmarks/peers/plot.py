"""A picture of a run: the share of the peak of multiply-adds by size, a line for each library."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .report import OURS, PEAK, Row

#: What square products have.
GROUP = "square"


def plot(rows: Sequence[Row], path: Path) -> str:
    """Writes an SVG of the square products. Returns why not (nothing to show, or no matplotlib), or "" if it did."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return "matplotlib is not installed"
    own = sorted((r for r in rows if r.workload.group == GROUP and r.of(PEAK)), key=lambda r: r.workload.m)
    if not own:
        return f"it shows rows of {GROUP}/ beside {PEAK}, and this run has none"
    figure = Figure(figsize=(9, 5.5), layout="constrained")
    axes = figure.subplots()
    names = dict.fromkeys([OURS, *(p.peer for r in own for p in r.peers)])
    for name in names:
        shares = [(r.workload.m, share) for r in own if (share := _share(r, name)) is not None]
        wide = {"linewidth": 2.5, "color": "black", "zorder": 3} if name == OURS else {"linewidth": 1.2}
        axes.plot([s[0] for s in shares], [100 * s[1] for s in shares], marker="o", markersize=3, label=name, **wide)
    sizes = [r.workload.m for r in own]
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [str(s) for s in sizes], rotation=45)
    axes.set_xticks([], minor=True)
    axes.set(xlabel="size of a square f32 product", ylabel="% of the multiply-adds that registers allow", ylim=(0, 105))
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small", ncols=2)
    figure.savefig(path)
    return ""


def _share(row: Row, name: str) -> float | None:
    result, peak = row.of(name), row.of(PEAK)
    return peak.median / result.median if result and peak else None
