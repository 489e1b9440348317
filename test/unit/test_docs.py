"""The documentation is true where a machine can tell: files exist, commands parse, schedules are legal."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from morello_mlir.actions import check_tree
from morello_mlir.search.schedule import parse
from morello_mlir.spec import Spec, matmul_spec
from morello_mlir.targets import get_target

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    *sorted(p for d in ("docs", "benchmarks") for p in (ROOT / d).rglob("*.md")),
]
TOOLS = ("morello", "morello-opt", "morello-run")


def pages() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())


def _code(page: Path) -> str:
    """The indented blocks of a page, without prompts."""
    lines = page.read_text(encoding="utf-8").splitlines()
    return "\n".join(line[4:].removeprefix("$ ") if line.startswith("    ") else "" for line in lines)


def _commands(page: Path) -> Iterator[list[str]]:
    for line in _code(page).splitlines():
        if line.split(" ", 1)[0] in TOOLS:
            # Up to a redirection.
            yield shlex.split(line.partition(" > ")[0], comments=True)


@pages()
def test_files_that_are_mentioned_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    folders = "|".join(p.name for p in ROOT.iterdir() if p.is_dir() and not p.name.startswith("."))
    named = re.findall(rf"`((?:{folders})/[\w./-]*)`", text)
    missing = [name for name in named if not (ROOT / name).exists()]
    linked = re.findall(r"\]\(([\w./-]+)\)", text)
    missing += [name for name in linked if not (page.parent / name).exists()]
    assert not missing


def test_the_index_names_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    pages = {p.relative_to(ROOT / "docs").as_posix() for p in PAGES if p.is_relative_to(ROOT / "docs")}
    assert pages - {"README.md"} == set(re.findall(r"\]\(([\w/-]+\.md)\)", index))


@pages()
def test_headings_that_are_linked_exist(page: Path) -> None:
    for name, heading in re.findall(r"\]\(([\w./-]*)#([\w-]+)\)", page.read_text(encoding="utf-8")):
        target = page.parent / name if name else page
        headings = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE)
        assert heading in {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings}


@pages()
def test_tests_that_are_mentioned_exist(page: Path) -> None:
    tests = "\n".join(p.read_text(encoding="utf-8") for p in (ROOT / "test" / "unit").glob("*.py"))
    for name in re.findall(r"`(test_\w+)`", page.read_text(encoding="utf-8")):
        assert f"def {name}(" in tests, name


@pages()
def test_commands_have_the_flags_and_passes(page: Path) -> None:
    from morello_mlir.passes.pipeline import Pipeline
    from morello_mlir.tools import _opt_flags, explain, main, run

    for tool, *arguments in _commands(page):
        if tool == "morello-opt":
            flags = _opt_flags.parse_flags(arguments)
            if flags.pipeline:
                Pipeline.parse(flags.pipeline)
        elif tool == "morello-run":
            run.parser().parse_args(arguments)
        elif arguments[0] == "explain":
            import argparse

            parser = argparse.ArgumentParser()
            explain.add_arguments(parser)
            given = parser.parse_args(arguments[1:])
            if "(" in given.input and "..." not in given.input:
                Spec.parse(given.input)
        else:
            assert arguments[0] in main.COMMANDS


def test_the_schedule_on_the_page_is_legal() -> None:
    code = _code(ROOT / "docs" / "schedule-language.md")
    first = code[code.index("to_accum\n") :].split("\n\n", 1)[0]
    check_tree(matmul_spec(192, 600, 256), parse(first), get_target("avx2"))


@pytest.mark.parametrize("page", ["README.md", "docs/schedule-language.md"])
def test_schedules_on_ops_parse(page: str) -> None:
    written = re.findall(r"morello\.schedule = \[(.*?)\]\}", _code(ROOT / page))
    assert written
    for lines in written:
        parse("\n".join(re.findall(r'"(.*?)"', lines)))


def test_specs_on_the_page_parse() -> None:
    for text in re.findall(
        r"Matmul\(\[\d.*?serial\)", (ROOT / "docs" / "spec-language.md").read_text(encoding="utf-8")
    ):
        assert str(Spec.parse(text)) == text


def test_the_first_page_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code = _code(ROOT / "README.md")
    first = code[code.index("import numpy as np") :]
    monkeypatch.chdir(ROOT)
    known: dict[str, Any] = {}
    exec(first[: first.index("layer(x)") + len("layer(x)")], known)
    assert "to_accum" in capsys.readouterr().out
    np.testing.assert_allclose(known["y"], np.full((197, 768), 769.0))


def test_what_the_readme_shows_is_printed() -> None:
    """Line by line, with other numbers: costs and times change."""

    def shape(text: str) -> list[str]:
        text = re.sub(r"[0-9]+(\.[0-9]+)?(e-?[0-9]+)?", "#", text)
        return [line.replace("(memo)", "(search)").replace("(shipped)", "(search)") for line in text.splitlines()]

    command, *shown = _code(ROOT / "README.md").partition("morello-run")[2].partition("\n\n")[0].splitlines()
    args = [*shlex.split(command), "--threads", "2"]
    done = subprocess.run(
        [sys.executable, "-m", "morello_mlir.tools.run", *args], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert shape(done.stdout + done.stderr) == shape("\n".join(shown))


RESULTS = (ROOT / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8")


def _ratios(lines: list[str]) -> list[float]:
    """The ratios to the best library of the table that follows, if one does before the next heading."""
    rows: list[list[str]] = []
    for line in lines:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip("|").split("|")])
        elif rows or line.startswith("#"):
            break
    column = next((i for i, name in enumerate(rows[0] if rows else ()) if name in ("ratio", "ours / best")), None)
    return [] if column is None else [float(row[column].split()[0]) for row in rows[2:]]


def test_results_say_what_their_tables_hold() -> None:
    lines = RESULTS.splitlines()
    checked = 0
    for i, line in enumerate(lines):
        said = re.search(r"geometric mean (\d+\.\d\d), worst (\d+\.\d\d)", line)
        ratios = _ratios(lines[i + 1 :]) if said else []
        if said and ratios:
            mean = float(np.exp(np.log(ratios).mean()))
            # Rows are rounded before the mean is taken of them.
            assert abs(mean - float(said[1])) <= 0.0101 and min(ratios) == float(said[2]), line
            checked += 1
    assert checked > 5


def test_at_a_glance_says_what_the_sections_do() -> None:
    glance = re.search(r"## At a glance\n(.*?)\n## ", RESULTS, re.DOTALL)
    assert glance is not None
    for heading, rest in re.findall(r"^\| \[[^]]*\]\(#([\w-]+)\)(.*)$", glance[1], re.MULTILINE):
        parts = re.split(r"^(#+) (.*)$", RESULTS, flags=re.MULTILINE)
        levels, names, bodies = parts[1::3], parts[2::3], parts[3::3]
        slugs = [re.sub(r"[^\w -]", "", n.lower()).replace(" ", "-") for n in names]
        at = slugs.index(heading)
        end = next((j for j in range(at + 1, len(slugs)) if len(levels[j]) <= len(levels[at])), len(slugs))
        text = " ".join(f"{names[j]} {bodies[j]}" for j in range(at, end))
        for number in re.findall(r"\d+\.\d+(?:e\d+)?", rest):
            assert re.search(rf"(?<![\d.]){re.escape(number)}(?![\d])", text), (heading, number)
