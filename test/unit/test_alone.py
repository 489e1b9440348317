"""Goals alone: modules that do one goal once, as `morello explain --html --measure` compiles and times them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from conv_support import CONV

import morello_mlir
from morello_mlir.chains import ChainSpec
from morello_mlir.chains.search import chain_search_for
from morello_mlir.errors import SpecError
from morello_mlir.nests import NestSpec
from morello_mlir.nests.search import NestSearch
from morello_mlir.report import Explained, explained
from morello_mlir.runtime.alone import ENTRY, module_of
from morello_mlir.search.solve import Search
from morello_mlir.spec import Spec
from morello_mlir.targets import TARGETS
from morello_mlir.tools import _cli, _goals, _timing
from morello_mlir.tools.main import main

pytestmark = pytest.mark.isa("avx2")

AVX2 = TARGETS["avx2"]
ROW = "(f32, GL, row_major)"
BODY = "m = max(x0); e = exp(sub(x0, m)); s = sum(e); y = div(e, s)"


def numbers(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def run(goal: Explained, *arrays: np.ndarray, function: str = "") -> None:
    """Does the goal once, in the arrays."""
    compiled = morello_mlir.compile(
        module_of(goal.spec, goal.schedule, function), entry=ENTRY, target="avx2", threads=goal.threads, memo="off"
    )
    compiled(*(a.reshape(-1) for a in arrays))


@pytest.mark.parametrize("threading", ["serial", "parallel 2"])
def test_a_contraction_with_what_follows(threading: str) -> None:
    lhs = "(f32, GL, [b, k, m])"
    then = 'then "y = max(add(x0, x1), 0.0:f32)" [f32, (f32, [n])]'
    found = Search(AVX2).solve(Spec.parse(f"Matmul([2, 7, 5, 11], {lhs}, {ROW}, {ROW}, {threading}, {then})"))
    a, b, c, bias = numbers((2, 5, 7), (2, 5, 11), (2, 7, 11), (11,))
    run(explained(found.spec, found.schedule, AVX2), a, b, c, bias)
    np.testing.assert_allclose(c, np.maximum(a.transpose(0, 2, 1) @ b + bias, 0), rtol=1e-5, atol=1e-5)


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def test_a_nest_whose_dims_change_their_order() -> None:
    """Columns: its canonical form, which the schedule names, has other dims than the text."""
    spec = NestSpec.parse(f'Softmax([20 scan, 9], (f32, GL, [9, 1]), (f32, GL, [9, 1]), "{BODY}", serial)')
    found = NestSearch(AVX2).solve(spec)
    x, y = numbers((20, 9), (20, 9))
    run(explained(found.spec, found.schedule, AVX2), x, y)
    np.testing.assert_allclose(y, softmax(x.T).T, rtol=1e-5)


def test_a_chain() -> None:
    held = "(f32, GL, [60, 12, 1])"
    text = (
        f"Chain(t0 = Matmul([3, 5, 4, 12], {ROW}, {ROW}, {ROW}, serial, "
        'then "y = mul(x0, x1)" [f32, (f32, [n])]) of x0, x1, x2 | '
        f't1 = Softmax([3, 5, 12 scan], {held}, {held}, "{BODY}", serial) of t0 | '
        f"y = Matmul([3, 5, 12, 6], {ROW}, {ROW}, {ROW}, serial) of t1, x3, serial)"
    )
    found = chain_search_for(AVX2, "off").solve(ChainSpec.parse(text))
    q, k, w, v, y = numbers((3, 5, 4), (3, 4, 12), (12,), (3, 12, 6), (3, 5, 6))
    run(explained(found.spec, found.schedule, AVX2), q, k, w, v, y)
    np.testing.assert_allclose(y, softmax(q @ k * w) @ v, rtol=1e-4, atol=1e-5)


def test_a_window_as_its_module_has_it(tmp_path: Path) -> None:
    path = tmp_path / "conv.mlir"
    path.write_text(CONV)
    (asked,) = _goals.lifted(str(path), AVX2, 1, _cli.Notebook()).goals
    assert isinstance(asked.spec, Spec) and asked.where.startswith(f"{path}:")
    found = Search(AVX2).solve(asked.spec)
    goal = explained(found.spec, found.schedule, AVX2)
    x, w, y = numbers((6, 6, 3), (3, 3, 3, 8), (4, 4, 8))
    run(goal, x, w, y, function=asked.function)
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(0, 1))
    np.testing.assert_allclose(y, np.einsum("hwcij,ijco->hwo", windows, w), rtol=1e-4, atol=1e-5)
    with pytest.raises(SpecError, match="where the places of a window lie"):
        module_of(goal.spec, goal.schedule)


def test_goals_are_timed_and_it_is_said_why_not(tmp_path: Path) -> None:
    path = tmp_path / "conv.mlir"
    path.write_text(CONV)
    (asked,) = _goals.lifted(str(path), AVX2, 1, _cli.Notebook()).goals
    found = Search(AVX2).solve(asked.spec)  # type: ignore[arg-type]
    goal = explained(found.spec, found.schedule, AVX2)
    timed, untimed = _timing.timed([(goal, asked.function), (goal, "")], "avx2", _cli.Notebook())
    assert timed.measured_s is not None and 0 < timed.measured_s < 1 and not timed.why
    assert untimed.measured_s is None and "window" in untimed.why
    assert timed == goal


def test_what_is_as_short_as_entering_it_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_timing, "in_turns", lambda calls, *_: {"nothing": 1e-7, "0": 1.1e-7, "1": 3e-7})
    found = NestSearch(AVX2).solve(NestSpec.parse('Map([8], (f32, GL, [1]), (f32, GL, [1]), "y = exp(x0)", serial)'))
    goal = explained(found.spec, found.schedule, AVX2)
    short, longer = _timing.timed([(goal, ""), (goal, "")], "avx2", _cli.Notebook())
    assert short.measured_s is None and "less than can be told from entering it, 100 ns" in short.why
    assert longer.measured_s == pytest.approx(2e-7)


def test_the_command_measures_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "conv.mlir", tmp_path / "page.html"
    path.write_text(CONV)
    monkeypatch.setattr(_timing, "ROUNDS", 1)
    command = ["explain", str(path), "--target", "avx2", "--threads", "1", "--measure", "--html", str(out), "--json"]
    code = main(command)
    (record,) = json.loads(capfd.readouterr().out)
    assert 0 < record["measured_s"] < 1
    text = out.read_text(encoding="utf-8")
    assert code == 0 and "Predicted and measured time" in text and "not timed" not in text
    assert re.search(r">[0-9.,]+ (µs|ns|ms)<", text)
