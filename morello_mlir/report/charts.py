"""Pictures as SVG: the roofline, and predicted against measured time. Both axes are logarithmic."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from .markup import Markup, joined, tag
from .roofline import Roofline

WIDTH, HEIGHT = 640.0, 430.0
LEFT, RIGHT, TOP, BOTTOM = 58.0, 14.0, 14.0, 46.0
#: So many points have their names beside them, where there is room.
NAMED = 40

#: Pixels from the left and from the top.
Place: TypeAlias = tuple[float, float]


@dataclass(frozen=True)
class Point:
    """x, y: the predicted place; measured: the y that was measured (roofline) or None. share: of the whole, which makes
    its size. name: its number. title: what is said of it."""

    x: float
    y: float
    share: float
    name: str
    title: str
    measured: float | None = None


@dataclass(frozen=True)
class Axis:
    """Values from `low` to `high` on pixels from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """The pixel of a value, or of the end that it lies beyond."""
        value = min(max(value, self.low), self.high)
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return round(self.start + share * (self.end - self.start), 1)

    def ticks(self) -> list[float]:
        """Powers of ten; between them 2 and 5, where there are few."""
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        steps = (1, 2, 5) if last - first <= 3 else (1,)
        found = [step * 10.0**power for power in range(first, last + 1) for step in steps]
        return [value for value in found if self.low <= value * 1.0001 and value <= self.high * 1.0001]


def axis(values: Iterable[float], start: float, end: float) -> Axis:
    """An axis that has all of the values, which are positive, with room on both sides."""
    found = [v for v in values if v > 0 and math.isfinite(v)] or [1.0]
    return Axis(min(found) / 1.6, max(found) * 1.6, start, end)


def number(value: float) -> str:
    """Three digits of it."""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _frame(x: Axis, y: Axis, across: str, along: str) -> Markup:
    """Grid, ticks and what the axes are."""
    parts: list[Markup] = []
    for value in x.ticks():
        at = x.at(value)
        parts.append(tag("line", x1=at, x2=at, y1=y.end, y2=y.start, class_="grid"))
        parts.append(tag("text", number(value), x=at, y=y.start + 16, text_anchor="middle"))
    for value in y.ticks():
        at = y.at(value)
        parts.append(tag("line", x1=x.start, x2=x.end, y1=at, y2=at, class_="grid"))
        parts.append(tag("text", number(value), x=x.start - 6, y=at + 4, text_anchor="end"))
    middle = round((y.start + y.end) / 2, 1)
    parts.append(tag("text", across, x=(x.start + x.end) / 2, y=HEIGHT - 8, text_anchor="middle", class_="axis"))
    turned = f"translate(14 {middle}) rotate(-90)"
    parts.append(tag("text", along, transform=turned, text_anchor="middle", class_="axis"))
    return joined(parts)


def _svg(title: str, *inside: Markup) -> Markup:
    return tag("svg", tag("title", title), *inside, viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}", role="img", class_="chart")


def _marks(points: Sequence[Point], x: Axis, y: Axis, place: Callable[[Point], tuple[float, float]]) -> Markup:
    """A circle for each point, those that take most below the others, and numbers beside the first."""
    parts: list[Markup] = []
    ordered = sorted(points, key=lambda p: -p.share)
    for point in ordered:
        px, py = place(point)
        at = x.at(px), y.at(py)
        if point.measured is not None and px == point.x and py == point.y:
            end = y.at(point.measured)
            parts.append(tag("line", x1=at[0], x2=at[0], y1=at[1], y2=end, class_="link"))
            parts.append(tag("circle", cx=at[0], cy=end, r=3.5, class_="measured"))
        radius = round(3.5 + 9 * math.sqrt(max(point.share, 0.0)), 1)
        parts.append(tag("circle", tag("title", point.title), cx=at[0], cy=at[1], r=radius, class_="point"))
    taken = [(x.at(px), y.at(py), 5.0, 5.0) for px, py in map(place, ordered)]
    for point in ordered[:NAMED]:
        px, py = place(point)
        found = _room(x.at(px), y.at(py), point, taken)
        if found is not None:
            parts.append(tag("text", point.name, x=found[0], y=found[1], text_anchor="middle", class_="name"))
            taken.append((found[0], found[1] - 4, 5.0 * len(point.name), 8.0))
    return joined(parts)


def _room(x: float, y: float, point: Point, taken: Sequence[tuple[float, float, float, float]]) -> Place | None:
    """Where the name of a point can stand beside it, away from the middles of boxes (with half of width and height)
    that are taken; None where there is no room."""
    apart = 8 + 9 * math.sqrt(max(point.share, 0.0))
    half = 3.5 * len(point.name)
    for dx, dy in ((apart + half, 4), (-apart - half, 4), (0, -apart + 2), (0, apart + 8)):
        at = round(x + dx, 1), round(y + dy, 1)
        if all(abs(at[0] - bx) >= bw + half or abs(at[1] - 4 - by) >= bh + 4 for bx, by, bw, bh in taken):
            return at
    return None


def roofline_chart(roof: Roofline, points: Sequence[Point], gigahertz: float) -> Markup:
    """x: operations a byte; y: 10^9 operations a second, at so many GHz."""
    peak = roof.peak * gigahertz
    ridges = [roof.ridge(level) for level in roof.rates]
    x = axis([*(p.x for p in points), *ridges, min(ridges) / 2, max(ridges) * 2], LEFT, WIDTH - RIGHT)
    heights = [h for p in points for h in (p.y, p.measured) if h is not None]
    y = axis([*heights, peak, peak / 20], HEIGHT - BOTTOM, TOP)
    roofs: list[Markup] = []
    for level, rate in roof.rates.items():
        ridge, slope = roof.ridge(level), rate * gigahertz
        # From where the line enters the picture, on the left or at the bottom.
        first = max(x.low, y.low / slope)
        if first < ridge:
            ends = {"x1": x.at(first), "y1": y.at(first * slope), "x2": x.at(ridge), "y2": y.at(peak)}
            roofs.append(tag("line", **ends, class_="roof"))
            angle = math.degrees(math.atan2(ends["y2"] - ends["y1"], ends["x2"] - ends["x1"]))
            at = first * (ridge / first) ** 0.06
            label = f"{level}: {number(slope)} GB/s"
            turned = f"translate({x.at(at)} {y.at(at * slope) - 5}) rotate({angle:.1f})"
            roofs.append(tag("text", label, transform=turned, class_="roofname"))
    roofs.append(tag("line", x1=x.at(min(ridges)), x2=x.end, y1=y.at(peak), y2=y.at(peak), class_="roof"))
    label = f"{number(peak)} GFLOP/s, multiply-adds of {roof.dtype}"
    roofs.append(tag("text", label, x=x.end, y=y.at(peak) - 6, text_anchor="end", class_="roofname"))
    frame = _frame(x, y, "operations a byte (FLOP/byte; each operand counted once)", "GFLOP/s")
    return _svg("Roofline", frame, *roofs, _marks(points, x, y, lambda p: (p.x, p.y)))


def times_chart(points: Sequence[Point]) -> Markup:
    """x: predicted, y: measured microseconds; on the line both agree."""
    both = [v for p in points for v in (p.x, p.y)]
    x, y = axis(both, LEFT, WIDTH - RIGHT), axis(both, HEIGHT - BOTTOM, TOP)
    low, high = x.low, x.high
    lines = [tag("line", x1=x.at(low), y1=y.at(low), x2=x.at(high), y2=y.at(high), class_="roof")]
    for factor in (0.5, 2.0):
        start, end = max(low, low / factor), min(high, high / factor)
        ends = {"x1": x.at(start), "y1": y.at(start * factor), "x2": x.at(end), "y2": y.at(end * factor)}
        lines.append(tag("line", **ends, class_="half"))
    frame = _frame(x, y, "predicted, µs", "measured, µs")
    return _svg("Predicted and measured time", frame, *lines, _marks(points, x, y, lambda p: (p.x, p.y)))
