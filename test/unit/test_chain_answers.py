"""What the memo keeps of chains, nests and convolutions, and that nothing wrong in it is believed."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from small_target import SMALL
from test_chains import products

from morello_mlir.chains.answers import check_answers
from morello_mlir.chains.search import ChainSearch
from morello_mlir.memo.answers import Answer, Answers, answer_space, merge_answers
from morello_mlir.memo.memo import Memo
from morello_mlir.memo.store import Store
from morello_mlir.nests import NestSpec
from morello_mlir.nests.search import NestSolution, nest_search_of
from morello_mlir.search.solve import Search
from morello_mlir.spec import Spec

CHAIN = products(2, 5, 3, 4, 3)


def searching(path: Path) -> ChainSearch:
    """As a process of its own would."""
    return ChainSearch(Search(SMALL, Memo(SMALL, Store(path))))


def test_found_once(tmp_path: Path) -> None:
    first = searching(tmp_path / "memo.sqlite").solve(CHAIN)
    again = searching(tmp_path / "memo.sqlite").solve(CHAIN)
    assert (first.source, again.source) == ("search", "memo")
    assert (again.schedule, again.cost) == (first.schedule, first.cost)


@pytest.mark.parametrize(
    ("column", "value"), [("schedule", "?"), ("cost", 1), ("spec", "Chain()"), ("checksum", b"nothing")]
)
def test_rows_that_are_damaged_are_dropped(tmp_path: Path, column: str, value: object) -> None:
    path = tmp_path / "memo.sqlite"
    searching(path).solve(CHAIN)
    with sqlite3.connect(path) as connection:
        connection.execute(f"UPDATE answers SET {column} = ?", (value,))
    connection.close()
    store = Store(path)
    assert (check_answers(store), store.dropped) == (0, 1)
    assert searching(path).solve(CHAIN).source == "search"


@pytest.mark.parametrize(("schedule", "cost"), [("?", 5), ("tile b by 7:\n    ?", 5), (None, 5), ("tile", 5)])
def test_answers_that_are_wrong_are_dropped(tmp_path: Path, schedule: str | None, cost: int) -> None:
    path = tmp_path / "memo.sqlite"
    right = searching(path).solve(CHAIN)
    answers = Answers(Store(path))
    held = answers.get(answer_space(SMALL), str(CHAIN.canonical()))
    assert held is not None
    answers.put(Answer(held.space, held.spec, schedule or held.schedule, cost))
    found = searching(path).solve(CHAIN)
    assert (found.source, found.cost) == ("search", right.cost)


def test_merged(tmp_path: Path) -> None:
    searching(tmp_path / "a.sqlite").solve(CHAIN)
    into, source = Store(tmp_path / "b.sqlite"), Store(tmp_path / "a.sqlite")
    assert vars(merge_answers(into, source)) == {"added": 1, "known": 0, "damaged": 0}
    assert vars(merge_answers(into, source)) == {"added": 0, "known": 1, "damaged": 0}
    assert searching(tmp_path / "b.sqlite").solve(CHAIN).source == "memo"
    assert vars(merge_answers(Store(tmp_path / "c.sqlite"), source, "no such text"))["added"] == 0


SUMS = NestSpec.parse('Reduce([7, 9 scan], (f32, GL, [9, 1]), (f32, GL, [1, 0]), "y = sum(x0)", serial)')
WINDOW = Spec.parse(
    "Matmul([1, 4, 4, 2], (f32, GL, row_major, m%2, k%2, lap 1:1:1:1, lap 2:2:1:1), (f32, GL, row_major), "
    "(f32, GL, row_major), serial)"
)


def test_nests_are_found_once(tmp_path: Path) -> None:
    path = tmp_path / "memo.sqlite"

    def solve() -> NestSolution:
        return nest_search_of(Search(SMALL, Memo(SMALL, Store(path)))).solve(SUMS)

    first, again = solve(), solve()
    assert (first.source, again.source) == ("search", "memo")
    assert (again.schedule, again.cost) == (first.schedule, first.cost)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE answers SET cost = 1")
    connection.close()
    assert solve().cost == first.cost


def test_convolutions_are_found_once(tmp_path: Path) -> None:
    path = tmp_path / "memo.sqlite"
    first, again = (Search(SMALL, Memo(SMALL, Store(path))).solve(WINDOW) for _ in range(2))
    assert (first.source, again.source) == ("search", "memo")
    assert (again.schedule, again.cost) == (first.schedule, first.cost)
    assert check_answers(Store(path)) == 1
