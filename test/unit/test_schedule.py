"""The schedule language: text and trees, and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from morello_mlir.errors import ScheduleError
from morello_mlir.search.schedule import (
    Hole,
    Kernel,
    Move,
    PackAhead,
    Split,
    Tile,
    ToAccum,
    children,
    has_hole,
    parse,
    to_text,
    walk,
)

leaves = st.one_of(st.just(Hole()), st.sampled_from(("broadcast_fma", "scalar")).map(Kernel))


def _steps(inner):
    layouts = st.sampled_from((None, "[b, n/16, k, n%16]", "row_major"))
    return st.one_of(
        st.builds(ToAccum, inner),
        st.builds(PackAhead, st.sampled_from(("lhs", "rhs")), st.just("[b, n/16, k, n%16]"), inner),
        st.builds(Tile, st.sampled_from("mn"), st.integers(1, 99), inner, st.one_of(st.none(), inner)),
        st.builds(Split, st.just("k"), st.integers(1, 99), inner, st.one_of(st.none(), inner)),
        st.builds(Move, st.sampled_from(("lhs", "rhs", "out")), st.sampled_from(("L1", "L2", "VRF")), layouts, inner),
    )


trees = st.recursive(leaves, _steps, max_leaves=12)


@given(trees, st.integers(0, 5))
def test_text_round_trip(tree, share):
    assert parse(to_text(tree, share=share)) == tree


@given(trees)
def test_walk_visits_every_distinct_subtree_once(tree):
    nodes = list(walk(tree))
    assert len(nodes) == len(set(nodes))
    assert all(c in set(nodes) for n in nodes for c in children(n))
    assert has_hole(tree) == any(isinstance(n, Hole) for n in nodes)


def test_shared_subtrees_are_written_once():
    leaf = Move("lhs", "L1", None, Move("out", "L1", None, Move("out", "VRF", None, Kernel("broadcast_fma"))))
    text = to_text(Tile("m", 6, leaf, leaf))
    assert text.count("kernel") == 1
    assert text.splitlines()[0] == "define #1:"


def test_comments_tabs_and_blank_lines():
    assert parse("// a\n\ntile m by 4:  // b\n\t?\n") == Tile("m", 4, Hole())


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"),
        ("// nothing", "empty"),
        ("fuse m", "line 1: 'fuse m': unknown step"),
        ("to_accum", "ends without"),
        ("tile m by 4:", "an indented body must follow"),
        ("tile m by 4:\nkernel scalar", "an indented body must follow"),
        ("tile m by 0:\n  ?", "must be positive"),
        ("kernel scalar\nkernel scalar", "line 2.*nothing may follow"),
        ("to_accum\n  ?", "unexpected indentation"),
        ("rest:\n  ?", "must follow the body"),
        ("use #1", "#1 is not defined"),
        ("define #1:\n  ?\ndefine #1:\n  ?\n?", "defined twice"),
        ("tile m by 4:\n    ?\n  rest:\n    ?", "line 3"),
        ("tile m by 9999999999999999999:\n    ?", "unknown step"),
    ],
)
def test_bad_schedules_name_the_line(text, why):
    with pytest.raises(ScheduleError, match=why):
        parse(text)


@pytest.mark.parametrize("chain", ["loops", "steps", "uses"])
def test_deep_nesting_is_an_error_not_a_crash(chain):
    text = {
        "loops": "\n".join(" " * i + "tile m by 2:" for i in range(5_000)) + "\n" + " " * 5_000 + "?",
        "steps": "to_accum\n" * 5_000 + "?",
        "uses": "".join(f"define #{i}:\n  to_accum\n  " + (f"use #{i - 1}\n" if i else "?\n") for i in range(300))
        + "?",
    }[chain]
    with pytest.raises(ScheduleError, match="deep"):
        parse(text)


def test_long_lines_are_quoted_in_part_with_the_column():
    with pytest.raises(ScheduleError) as error:
        parse("to_accum\ntile m by 4:\n    kernal " + "x" * 100_000)
    assert str(error.value).startswith("schedule line 3, column 5: 'kernal xxx")
    assert "x...': unknown step" in str(error.value)
    assert len(str(error.value)) < 400


@pytest.mark.parametrize(
    ("line", "column"),
    [
        ("rows vector n by 2" + " tile m by 2" * 1000 + " tail x" + " tile m by 2" * 1000 + ":", 18 + 12 * 1000 + 2),
        ("pass y" + " unroll m by 2" * 1000 + " streaming now" + " unroll m by 2" * 1000, 6 + 14 * 1000 + 10 + 2),
    ],
)
def test_the_column_is_where_the_fault_is(line, column):
    text = line if line.startswith("rows") else f"rows vector n:\n    {line}"
    column += 0 if line.startswith("rows") else 4
    with pytest.raises(ScheduleError, match=f"column {column}: '\\.\\.\\..{{80}}\\.\\.\\.': cannot read") as error:
        parse(text)
    assert len(str(error.value)) < 400


def test_short_lines_are_quoted_whole():
    with pytest.raises(ScheduleError, match="schedule line 1: 'kernal scalar': unknown step"):
        parse("kernal scalar")


def test_a_node_asks_what_is_below_for_its_hash_once():
    asked = []

    class Body(Hole):
        def __hash__(self):
            asked.append(self)
            return 1

    node = Tile("m", 4, Body())
    assert hash(node) == hash(node) and len(asked) == 1
