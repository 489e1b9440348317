"""The page of `morello explain --html`: one file without scripts, and without anything from elsewhere."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import resources

from ..chains import ChainSpec
from ..nests import NestSpec
from ..search.steps import bytes_text, traffic_text
from ..targets import Target, called
from .charts import Point, number, roofline_chart, times_chart
from .explained import Explained
from .markup import Markup, escaped, joined, tag
from .roofline import roofline
from .text import by_share, first_call_text, left_text, whole_cycles, whole_traffic
from .tree import tree

#: Trees of goals that take at least this share of the whole are open.
OPEN_GOAL = 0.3


@dataclass(frozen=True)
class Page:
    """title: what is explained. hertz: the clock by which cycles are seconds; clock: where that is from. notes: what a
    reader must know. left: ops that are left to upstream."""

    title: str
    target: Target
    goals: Sequence[Explained]
    hertz: float
    clock: str
    notes: Sequence[str] = ()
    left: Counter[str] = field(default_factory=Counter)

    # ------------------------------------------------------------ numbers

    def seconds(self, goal: Explained) -> float:
        """Predicted, of one call."""
        return goal.cycles / self.hertz

    def share(self, goal: Explained) -> float:
        """Of all calls of all goals, without those in the first call only."""
        whole = whole_cycles(self.goals)
        return goal.cycles * goal.calls / whole if whole else 0.0

    @property
    def ordered(self) -> list[Explained]:
        return by_share(self.goals)

    @property
    def measured(self) -> bool:
        return any(goal.measured_s is not None or goal.why for goal in self.goals)

    # ------------------------------------------------------------ the page

    def html(self) -> str:
        """The whole page."""
        folder = resources.files(__package__)
        template = string.Template(folder.joinpath("page.html").read_text(encoding="utf-8"))
        style = folder.joinpath("page.css").read_text(encoding="utf-8")
        parts = [self._header(), self._cards()]
        if self.goals:
            charts = tag("div", self._roofline(), self._times(), class_="charts")
            parts += [self._table(), charts, self._trees()]
        return template.substitute(title=escaped(self.title), style=style, body=joined(parts, "\n"))

    def _header(self) -> Markup:
        target = self.target
        threads = max((goal.threads for goal in self.goals), default=1)
        said = f"Target {called(target)} ({target.summary}), {threads} thread{'s' * (threads > 1)}. "
        said += f"Cycles are seconds at {self.hertz / 1e9:.2f} GHz, {self.clock}."
        notes = [tag("p", note, class_="note") for note in self.notes]
        return tag("header", tag("h1", self.title), tag("p", said, class_="soft"), *notes)

    def _cards(self) -> Markup:
        cycles = whole_cycles(self.goals)
        goals, calls = len(self.goals), sum(goal.calls for goal in self.goals)
        rate = sum(g.flops * g.calls for g in self.goals) / (cycles / self.hertz) / 1e9 if cycles else 0.0
        said = [
            (f"{cycles:,.0f}", "cycles predicted"),
            (time_text(cycles / self.hertz), "predicted, all calls"),
            (f"{goals:,} goal{'s' * (goals != 1)}", "called once" if calls == 1 else f"called {calls:,} times"),
            (f"{number(rate)} GFLOP/s", "predicted, on average"),
        ]
        known = [goal for goal in self.goals if goal.measured_s is not None]
        if known:
            total = sum((goal.measured_s or 0) * goal.calls for goal in known)
            said.insert(2, (time_text(total), "measured, all calls" if len(known) == len(self.goals) else "measured"))
        cards = [tag("div", tag("b", value), tag("span", what), class_="card") for value, what in said]
        moved = tag("p", tag("span", "Bytes moved: ", class_="soft"), traffic_text(whole_traffic(self.goals)))
        lines = [tag("p", line, class_="soft") for line in (first_call_text(self.goals), left_text(self.left)) if line]
        return tag("section", tag("div", *cards, class_="cards"), moved, *lines)

    def _table(self) -> Markup:
        """What each goal takes."""
        heads = ["share", "", "goal", "calls", "cycles", "predicted", "GFLOP/s", "of the peak", "FLOP/byte", "operands"]
        heads += ["measured", "measured / predicted"] if self.measured else []
        classes = {"goal": "text", "": "text"}
        head = tag("tr", tag("th", "#"), *(tag("th", h, class_=classes.get(h)) for h in heads))
        rows = [self._table_row(n, goal) for n, goal in enumerate(self.ordered, 1)]
        table = tag("table", tag("thead", head), tag("tbody", *rows))
        why = [f"#{n} was not timed: {goal.why}." for n, goal in enumerate(self.ordered, 1) if goal.why]
        lines = [tag("p", line, class_="soft") for line in why]
        return tag("section", tag("h2", "Goals"), tag("div", table, class_="wide"), *lines)

    def _table_row(self, n: int, goal: Explained) -> Markup:
        seconds, peak = self.seconds(goal), goal.peak_share
        bar = tag("span", class_="bar", style=f"--own: {self.share(goal):.1%}; width: 6rem")
        numbers = [
            " + ".join(f"{n:,}{said}" for n, said in ((goal.calls, ""), (goal.once, " once")) if n),
            f"{goal.cycles:,.0f}",
            time_text(seconds),
            number(goal.flops / seconds / 1e9) if goal.flops and seconds else "",
            "" if peak is None else f"{peak:.0%}",
            number(goal.intensity) if goal.flops else "",
            bytes_text(goal.bytes),
        ]
        if self.measured and goal.measured_s is not None:
            numbers += [time_text(goal.measured_s), f"{goal.measured_s / seconds:.2f}" if seconds else ""]
        elif self.measured:
            numbers += ["not timed", ""]
        return tag(
            "tr",
            tag("td", f"{n}", class_="num"),
            tag("td", f"{self.share(goal):.1%}" if goal.calls else "", class_="num"),
            tag("td", bar),
            tag("td", tag("a", name_of(goal), href=f"#goal-{n}", title=f"{goal.spec}"), class_="text"),
            *(tag("td", text, class_="num") for text in numbers),
        )

    def _point_title(self, n: int, goal: Explained) -> str:
        return f"#{n} {name_of(goal)}: {self.share(goal):.1%}, {time_text(self.seconds(goal))} predicted"

    def _roofline(self) -> Markup:
        threads = max(goal.threads for goal in self.goals)
        fastest = max(self.ordered, key=lambda goal: goal.peak or 0.0)
        dtype = fastest.dtype if fastest.peak or fastest.dtype == "f64" else "f32"
        roof = roofline(self.target, threads, dtype, fastest.peak)
        points = []
        for n, goal in enumerate(self.ordered, 1):
            if goal.intensity and goal.cycles:
                rate = goal.flops / self.seconds(goal) / 1e9
                measured = goal.flops / goal.measured_s / 1e9 if goal.measured_s else None
                said = f"{self._point_title(n, goal)}, {number(rate)} GFLOP/s"
                points.append(Point(goal.intensity, rate, self.share(goal), f"{n}", said, measured))
        legend = [tag("span", class_="key point"), "predicted; the larger, the more of the whole"]
        if self.measured:
            legend += [tag("span", class_="key measured"), "measured"]
        about = "Lines are the model's limits: multiply-adds, and bytes read from each level by all threads. "
        about += "Where operands fit a cache, the goal can be above the lines of the levels beyond it."
        chart = roofline_chart(roof, points, self.hertz / 1e9)
        return tag("section", tag("h2", "Roofline"), chart, tag("p", *legend), tag("p", about, class_="soft"))

    def _times(self) -> Markup:
        known = [(n, goal) for n, goal in enumerate(self.ordered, 1) if goal.measured_s]
        if not known:
            return Markup()
        points = []
        for n, goal in known:
            assert goal.measured_s
            said = f"{self._point_title(n, goal)}, {time_text(goal.measured_s)} measured"
            points.append(Point(1e6 * self.seconds(goal), 1e6 * goal.measured_s, self.share(goal), f"{n}", said))
        about = "Each goal by itself, again and again on the same random operands, in turns with the others. "
        about += "On the line both agree; dashed: a factor of two."
        return tag(
            "section",
            tag("h2", "Predicted and measured time"),
            times_chart(points),
            tag("p", about, class_="soft"),
        )

    def _trees(self) -> Markup:
        goals = [self._goal(n, goal) for n, goal in enumerate(self.ordered, 1)]
        about = "Share and bar: with all below; the dark part of the bar and own: of the step alone."
        return tag("section", tag("h2", "Schedules"), tag("p", about, class_="soft"), *goals)

    def _goal(self, n: int, goal: Explained) -> Markup:
        times = f"{goal.calls} × " if goal.calls > 1 else ""
        often = [tag("p", f"{goal.times.capitalize()}.", class_="soft")] if goal.once else []
        summary = tag(
            "summary",
            tag("span", f"#{n}", class_="num soft"),
            tag("span", name_of(goal), class_="title"),
            tag("span", f"{self.share(goal):.1%}", class_="num"),
            tag("span", f"{times}{goal.cycles:,.0f} cycles", class_="num"),
            tag("span", f"{times}{time_text(self.seconds(goal))}", class_="num soft"),
        )
        ways = [tag("li", f"{a} → {b} {bytes_text(amount)}") for (a, b), amount in goal.traffic.items()]
        packed = [tag("li", line) for line in goal.packed_lines]
        where = [tag("p", goal.where, class_="soft")] if goal.where else []
        found = tag("p", f"Schedule: {goal.source}. Bytes moved by one call:", class_="soft")
        inside = tag(
            "div",
            tag("p", tag("code", goal.spec)),
            *where,
            *often,
            found,
            tag("ul", *ways, *packed, class_="ways"),
            tag("div", tree(goal.root), class_="wide"),
            class_="inside",
        )
        is_open = self.share(goal) >= OPEN_GOAL or len(self.goals) == 1
        return tag("details", summary, inside, class_="goal", id=f"goal-{n}", open=is_open)


def name_of(goal: Explained) -> str:
    """A goal in a few words: its function and sizes."""
    spec = goal.spec
    if isinstance(spec, ChainSpec):
        stages = " → ".join(stage.goal.function for stage in spec.stages)
        return f"Chain {'×'.join(map(str, spec.dims))}: {stages}"
    if isinstance(spec, NestSpec):
        sizes = "×".join(f"{n}{'↓' if scan else ''}" for n, scan in zip(spec.dims, spec.scan, strict=True))
        return f"{spec.function} {sizes}"
    sizes = " ".join(f"{d}={n}" for d, n in zip(spec.info.dims, spec.dims, strict=True) if d != "b" or n > 1)
    window = ", window" if any(t.window for t in spec.operands) else ""
    return f"{spec.function} {sizes} {spec.operands[0].dtype}{window}{', then' if spec.then else ''}"


def time_text(seconds: float) -> str:
    """`12.3 µs`."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{number(float(f'{seconds / size:.3g}'))} {unit}"
    return f"{seconds * 1e9:.3g} ns"
