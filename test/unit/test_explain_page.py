"""The page of `morello explain --html`: well formed, complete, self-contained, and nothing of a user's text in it."""

from __future__ import annotations

import html
import math
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from morello_mlir import report
from morello_mlir.chains import ChainSpec, Stage
from morello_mlir.chains.search import chain_search_for
from morello_mlir.errors import InputError
from morello_mlir.nests import NestSpec
from morello_mlir.nests.search import NestSearch
from morello_mlir.report import Explained, Page, explained, shares_text
from morello_mlir.report.charts import Axis, Point, axis, number, roofline_chart, times_chart
from morello_mlir.report.markup import Markup, escaped, tag
from morello_mlir.report.page import time_text
from morello_mlir.report.roofline import roofline
from morello_mlir.search.solve import Search
from morello_mlir.search.steps import cells
from morello_mlir.spec import Spec, matmul_spec
from morello_mlir.targets import TARGETS
from morello_mlir.tools.main import main

AVX2 = TARGETS["avx2"]
VOID = {"meta", "line", "circle", "rect", "path", "br"}
SOFTMAX = (
    "Softmax([9, 100 scan], (f32, GL, [100, 1]), (f32, GL, [100, 1]), "
    '"m = max(x0); e = exp(sub(x0, m)); s = sum(e); y = div(e, s)", serial)'
)
THEN = (
    "Matmul([1, 37, 24, 40], (f32, GL, row_major), (f32, GL, row_major), (f32, GL, row_major), serial, "
    'then "y = max(add(x0, x1), 0.0:f32)" [f32, (f32, [n])])'
)


class Checked(HTMLParser):
    """Reads a page: every element is closed where it must be; text by the class of the element that it is in."""

    def __init__(self, text: str):
        super().__init__(convert_charrefs=True)
        self.open: list[tuple[str, str]] = []
        self.tags: Counter[str] = Counter()
        self.texts: list[tuple[str, str]] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags[name] += 1
        self.attributes += attributes
        if name not in VOID:
            self.open.append((name, dict(attributes).get("class") or ""))

    def handle_startendtag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags[name] += 1
        self.attributes += attributes

    def handle_endtag(self, name: str) -> None:
        if name not in VOID:
            assert self.open and self.open[-1][0] == name, (name, self.open)
            self.open.pop()

    def handle_data(self, data: str) -> None:
        if self.open and data.strip():
            self.texts.append((self.open[-1][1], data))


@pytest.fixture(scope="module")
def goals() -> list[Explained]:
    """One of every kind."""
    found = [
        replace(explained(s.spec, s.schedule, AVX2, s.source), calls=3, where="m.mlir:3:5")
        for s in map(Search(AVX2).solve, (matmul_spec(37, 24, 40), Spec.parse(THEN)))
    ]
    nest = NestSearch(AVX2).solve(NestSpec.parse(SOFTMAX))
    found.append(explained(nest.spec, nest.schedule, AVX2))
    first, second = matmul_spec(8, 4, 8), matmul_spec(8, 8, 4)
    chain = chain_search_for(AVX2, "off").solve(
        ChainSpec((Stage(first, ("x0", "x1")), Stage(second, ("t0", "x2")))).canonical()
    )
    return [*found, explained(chain.spec, chain.schedule, AVX2)]


def page(goals: list[Explained], title: str = "m.mlir", **more: object) -> str:
    return Page(title, AVX2, goals, 3e9, "as given", **more).html()  # type: ignore[arg-type]


def test_the_page_is_well_formed_and_complete(goals: list[Explained]) -> None:
    text = page(goals, left=Counter({"linalg.generic": 2}))
    read = Checked(text)
    labels = [data for kind, data in read.texts if kind == "label"]
    assert Counter(labels) == Counter(s.label for g in goals for s in g.root.walk() if s.label)
    shown = " ".join(data for _, data in read.texts)
    for goal in goals:
        assert str(goal.spec) in shown and f"{goal.cycles:,.0f}" in shown
        for step in goal.root.walk():
            for value in cells(step, goal.cost).values() if step.label else ():
                assert value in shown
    assert "left to upstream: 2 linalg.generic" in shown and read.tags["svg"] == 1
    assert read.tags["details"] >= len(goals)


def test_the_numbers_are_those_of_the_text(goals: list[Explained]) -> None:
    """Every share and every cycle that the text has beside a goal or a step is on the page."""
    shown = html.unescape(page(goals))
    for goal in goals:
        for line in goal.text(least=0).partition("\n\n")[2].splitlines()[1:]:
            beside = line.rpartition("// ")[2]
            for figure in re.findall(r"[0-9.,]+%|\d[\d,.]* [kMG]?B", beside):
                assert figure in shown, (figure, line)
    for line in shares_text(goals, Counter()).splitlines()[2:-1]:
        assert re.match(r"\s*([0-9.]+%)", line)[1] in shown  # type: ignore[index]


def test_all_columns_of_a_tree_are_in_sight() -> None:
    """What they take at least, in rem of 16 pixels, fits the tree, and the tree a window of 1100 pixels."""
    style = (Path(report.__file__).parent / "page.css").read_text(encoding="utf-8")
    columns = re.search(r"\.row \{\s*display: grid; grid-template-columns: (.*);\s*gap: (\S+)rem;", style)
    least = re.search(r"\.tree \{.* min-width: (\S+)rem;", style)
    assert columns and least
    widths = [float(w) for w in re.findall(r"(?:minmax\()?([\d.]+)rem(?:, [\d.]+fr\))?", columns[1])]
    assert len(widths) == 8
    assert sum(widths) + 7 * float(columns[2]) <= float(least[1]) <= (1100 - 80) / 16


def test_nothing_comes_from_elsewhere(goals: list[Explained]) -> None:
    text = page(goals)
    for never in ("http:", "https:", "src=", "<script", "url(", "@import", "<link", "<iframe", "javascript:"):
        assert never not in text
    links = [value for name, value in Checked(text).attributes if name == "href"]
    assert sorted(links) == [f"#goal-{n}" for n in range(1, len(goals) + 1)]
    assert {f"goal-{n}" for n in range(1, len(goals) + 1)} <= {v for n, v in Checked(text).attributes if n == "id"}


HOSTILE = """"><script>alert('x')</script>&amp;$title${body}</title><img src=x onerror=alert(1)>"""


def test_hostile_names_are_text(goals: list[Explained]) -> None:
    named = [replace(goal, where=HOSTILE, why=HOSTILE, source=HOSTILE) for goal in goals]
    notes = {"notes": [HOSTILE], "left": Counter({HOSTILE: 1})}
    read = Checked(page(named, HOSTILE, **notes))
    assert not {"script", "img"} & read.tags.keys()
    assert read.tags == Checked(page([replace(g, where="x", why="x") for g in goals], "x", notes=["x"])).tags
    assert not any(name.startswith("on") for name, _ in read.attributes)
    # All of it is there, as it was.
    assert sum(HOSTILE in data for _, data in read.texts) >= 2 + 3 * len(goals)


def test_markup_escapes_what_is_no_markup() -> None:
    assert tag("p", "a<b", tag("b", "&"), class_='"x"', data_x=1, hidden=True, open=False) == (
        '<p class="&quot;x&quot;" data-x="1" hidden>a&lt;b<b>&amp;</b></p>'
    )
    assert tag("line", x1=1) == '<line x1="1"/>' and escaped(Markup("<br/>")) == "<br/>"


def test_what_was_measured_stands_beside_what_was_predicted(goals: list[Explained]) -> None:
    timed = [replace(goal, measured_s=2 * goal.cycles / 3e9) for goal in goals[:-1]]
    timed.append(replace(goals[-1], why="it crashed"))
    text = page(timed, notes=["another machine"])
    read = Checked(text)
    assert read.tags["svg"] == 2 and text.count('class="measured"') == sum(bool(g.flops) for g in timed[:-1])
    rows = " ".join(data for kind, data in read.texts if kind == "num")
    assert rows.count("2.00") == len(timed) - 1 and rows.count("not timed") == 1
    shown = " ".join(data for _, data in read.texts)
    assert "was not timed: it crashed" in shown and "another machine" in shown


def test_a_page_without_goals() -> None:
    read = Checked(page([], left=Counter({"linalg.sort": 1})))
    assert any("1 linalg.sort" in data for _, data in read.texts) and not read.tags["svg"]


# ---------------------------------------------------------------- pictures


def test_the_roofline_is_the_models() -> None:
    one, two = roofline(AVX2, 1), roofline(AVX2, 2)
    assert one.peak == 32 and two.peak == 64 and roofline(AVX2, 1, "f64").peak == 16
    assert roofline(AVX2, 2, "u8 x i8 in i32", 128.0).peak == 256
    # Zen 3: two loads of 32 bytes a cycle; L2 and L3 bring a line in as many cycles.
    assert list(one.rates) == ["L1", "L2, L3", "DRAM"] and one.rates["L1"] == 64
    assert one.rates["DRAM"] == pytest.approx(64 / AVX2.streams.read.dram)
    assert two.rates["L1"] == 128
    assert two.rates["DRAM"] == pytest.approx(one.rates["DRAM"] * min(2, AVX2.costs.far_streams))
    assert one.ridge("L1") == 0.5


def test_axes_are_logarithmic() -> None:
    x = Axis(1.0, 100.0, 0.0, 200.0)
    assert [x.at(v) for v in (0.5, 1, 10, 100, 1e9)] == [0, 0, 100, 200, 200]
    assert x.ticks() == [1, 2, 5, 10, 20, 50, 100]
    assert Axis(1.0, 1e6, 0, 1).ticks() == [10.0**i for i in range(7)]
    found = axis([3.0, 0.0, math.inf, 30.0], 0, 1)
    assert found.low < 3 and found.high > 30
    assert axis([], 0, 1).low < 1 < axis([], 0, 1).high
    assert [number(v) for v in (12345.6, 12.345, 0.00123)] == ["12,346", "12.3", "0.00123"]


def test_points_are_where_their_numbers_are() -> None:
    points = [Point(2.0, 10.0, 0.5, "1", "one", 20.0), Point(4.0, 30.0, 0.5, "2", "<two>")]
    text = roofline_chart(roofline(AVX2, 1), points, 3.0)
    circles = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)" r="[\d.]+" class="(\w+)"', text)
    by_kind = {kind: [(float(x), float(y)) for x, y, k in circles if k == kind] for kind in ("point", "measured")}
    (x1, y1), (x2, y2) = sorted(by_kind["point"])
    assert x1 < x2 and y1 > y2
    ((x3, y3),) = by_kind["measured"]
    assert x3 == x1 and y3 < y1
    assert "&lt;two&gt;" in text and "96 GFLOP/s" in text
    assert len(re.findall(r'class="point"', times_chart(points))) == 2


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(2.5, "2.5 s"), (0.0025, "2.5 ms"), (1.234e-5, "12.3 µs"), (3e-8, "30 ns"), (0, "0 ns"), (0.9995, "1,000 ms")],
)
def test_times(seconds: float, text: str) -> None:
    assert time_text(seconds) == text


# ---------------------------------------------------------------- the command


TEXT = str(matmul_spec(37, 24, 40))


def test_the_command_writes_a_page(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "page.html"
    assert main(["explain", TEXT, "--target", "avx2", "--html", str(file), "--clock", "2.5"]) == 0
    assert capfd.readouterr().out == ""
    text = file.read_text(encoding="utf-8")
    Checked(text)
    assert "at 2.50 GHz, as given" in text and html.escape(TEXT) in text
    assert main(["explain", TEXT, "--target", "avx2", "--html", "-", "--clock", "2.5", "--least", "0"]) == 0
    assert capfd.readouterr().out == text


def test_the_page_goes_beside_other_output(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "page.html"
    assert main(["explain", TEXT, "--target", "avx2", "--html", str(file), "--clock", "1", "--plain"]) == 0
    assert capfd.readouterr().out.startswith("to_accum") and file.exists()


@pytest.mark.parametrize(
    ("more", "status", "message"),
    [
        (("--html", "/no/such/folder/page.html"), 2, "page.html:0:0: error: cannot write output file: No such file"),
        (("--html", "/"), 2, "cannot write output file"),
        (("--html", "p.html", "--clock", "0"), 2, "'0' is no clock in GHz"),
        (("--html", "p.html", "--clock", "fast"), 2, "--clock"),
        (("--clock", "3"), 2, "--clock is of a page: give --html too"),
    ],
)
def test_what_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], more: tuple[str, ...],
    status: int, message: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    try:
        found = main(["explain", TEXT, "--target", "avx2", *more])
    except SystemExit as error:
        found = int(error.code or 0)
    assert found == status and message in capfd.readouterr().err
    assert not list(tmp_path.iterdir())


def test_another_machine_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from morello_mlir.tuning import clock

    monkeypatch.setattr(clock, "host_target", lambda: AVX2)
    monkeypatch.setattr(clock, "measured_hertz", lambda target: 2e9)
    assert clock.clock_of(AVX2).notes == () or not clock.host_runs(AVX2)
    assert clock.clock_of(AVX2, 3.5).hertz == 3.5e9
    # With other caches it is the same machine.
    assert not clock.clock_of(replace(AVX2, l2=TARGETS["avx512"].l2), 3.5).notes
    (note,) = clock.clock_of(TARGETS["avx512"], 3.0).notes
    assert note.startswith("Cycles are predicted for avx512; this machine (") and "another target" in note
    monkeypatch.setattr(clock, "host_runs", lambda target: False)
    assumed = clock.clock_of(TARGETS["avx512"])
    assert assumed.hertz == clock.ASSUMED and "assumed" in assumed.source


def test_measuring_for_a_target_that_this_machine_cannot_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("morello_mlir.targets.missing_features", lambda target, host=None: ["avx2"])
    file = tmp_path / "page.html"
    assert main(["explain", TEXT, "--target", "avx2", "--html", str(file), "--measure"]) == InputError.exit_code
    assert "nothing can be measured" in capfd.readouterr().err and not file.exists()
