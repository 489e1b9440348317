"""A picture of a memo: for every table, how many Specs it answers and how many boxes that takes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from ..errors import InputError

WIDTH, HEIGHT, MARGIN = 720, 480, 60
COLOURS = ("#3b6ea5", "#c2571a", "#4c8c4a", "#8a4f9e", "#b0a030")


def plot(statistics: Mapping[str, Any], path: Path) -> None:
    """Writes the picture as SVG, or as PNG where matplotlib is installed. Raises InputError.

    statistics: what `morello memo stats --json` prints.
    """
    points = [(t["specs_covered"], t["boxes"], t["cpu"]) for t in statistics["tables"] if t["boxes"]]
    if path.suffix == ".png":
        _png(points, path)
    elif path.suffix == ".svg":
        path.write_text(svg(points), encoding="utf-8")
    else:
        raise InputError(f"--plot: expected FILE.svg or FILE.png, not '{path}'")


def svg(points: Sequence[tuple[int, int, str]]) -> str:
    """Specs covered against boxes, both logarithmic, one circle a table."""
    tops = max([10, *(p[0] for p in points)]), max([10, *(p[1] for p in points)])
    decades = [math.ceil(math.log10(top)) for top in tops]

    def place(specs: float, boxes: float) -> tuple[float, float]:
        x = MARGIN + math.log10(max(specs, 1)) / decades[0] * (WIDTH - 2 * MARGIN)
        y = HEIGHT - MARGIN - math.log10(max(boxes, 1)) / decades[1] * (HEIGHT - 2 * MARGIN)
        return x, y

    names = sorted({p[2] for p in points})
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 15}" text-anchor="middle">Specs answered by a table</text>',
        f'<text x="15" y="{HEIGHT / 2}" text-anchor="middle" transform="rotate(-90 15 {HEIGHT / 2})">boxes</text>',
    ]
    for decade in range(decades[0] + 1):
        x, y = place(10.0**decade, 1)
        out.append(f'<line x1="{x:.1f}" y1="{MARGIN}" x2="{x:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        out.append(f'<text x="{x:.1f}" y="{y + 18:.1f}" text-anchor="middle">1e{decade}</text>')
    for decade in range(decades[1] + 1):
        x, y = place(1, 10.0**decade)
        out.append(f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{WIDTH - MARGIN}" y2="{y:.1f}" stroke="#ddd"/>')
        out.append(f'<text x="{x - 6:.1f}" y="{y + 4:.1f}" text-anchor="end">1e{decade}</text>')
    for specs, boxes, name in points:
        x, y = place(specs, boxes)
        colour = COLOURS[names.index(name) % len(COLOURS)]
        out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}" fill-opacity="0.6"/>')
    for i, name in enumerate(names):
        at, colour = f'x="{MARGIN + 10}" y="{MARGIN + 16 * (i + 1)}"', COLOURS[i % len(COLOURS)]
        out.append(f'<text {at} fill="{colour}">{escape(name)}</text>')
    return "\n".join([*out, "</svg>", ""])


def _png(points: Sequence[tuple[int, int, str]], path: Path) -> None:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError("--plot FILE.png needs matplotlib; FILE.svg needs nothing") from None
    figure = Figure(figsize=(7.5, 5))
    axes = figure.subplots()
    for name in sorted({p[2] for p in points}):
        own = [p for p in points if p[2] == name]
        axes.scatter([p[0] for p in own], [p[1] for p in own], s=12, alpha=0.6, label=name)
    axes.set(xscale="log", yscale="log", xlabel="Specs answered by a table", ylabel="boxes")
    axes.legend()
    figure.savefig(path)
