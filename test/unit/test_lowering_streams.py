"""Loops whose steps read a few long rows from memory take these far apart, each a stream of its own."""

from __future__ import annotations

import numpy as np
import pytest
from lowering_support import Case, Storage, assert_close, compile_cases, run_case

from morello_mlir.lowering.plan import Loop, Pack, make_plan
from morello_mlir.search.schedule import parse
from morello_mlir.targets import get_target

ROWS, COLUMNS = Storage(), Storage(fast=1)
#: Columns of lhs beside panels of rhs, whose rows are neighbours.
PANELS = """
move rhs to L2 as [b, n/16, k, n%16]
move out to L2
split k by 8:
    move lhs to L2
    tile m by 4:
        move out to L1
        tile n by 16:
            move out to VRF
            kernel broadcast_fma
"""
#: Strips of rows of rhs; rows of rhs, then of lhs, side by side.
STRIPS = """
move lhs to L2
move out to L2
split k by 8:
    move rhs to L2
    move lhs to L1
    move out to L1
    tile n by 16:
        move out to VRF
        kernel broadcast_fma
"""
SIDE_BY_SIDE = """
move {other} to L2
move out to L2
tile {dim} by 2:
    move {one} to L2
    move lhs to L1
    move rhs to L1
    move out to L1
    kernel dot_fma
"""


def with_rest(text: str) -> str:
    """The schedule with the loop's body as its remainder."""
    before, body = text.split(":\n", 1)
    return f"{before}:\n{body}rest:\n{body}"


def case(text: str, m: int, k: int, n: int, *, lhs: Storage = ROWS, rhs: Storage = ROWS, **more: object) -> Case:
    settings = {"dtype": "f32", "accumulate": True, **more}
    return Case((1, m, k, n), storages=(lhs, rhs, ROWS), schedule=parse(text), far=True, **settings)  # type: ignore[arg-type]


def loop_of(made: Case) -> Loop:
    plan = make_plan(made.spec, made.schedule, get_target("avx2"))
    assert isinstance(plan, Loop)
    return plan


DOTS_N = SIDE_BY_SIDE.format(dim="n", one="rhs", other="lhs")
DOTS_M = SIDE_BY_SIDE.format(dim="m", one="lhs", other="rhs")
CASES = {
    "strips": case(STRIPS, 1, 32, 1024),
    "strips, a remainder": case(with_rest(STRIPS), 2, 27, 1024),
    "strips, stored first": case("to_accum" + with_rest(STRIPS), 1, 27, 1024, accumulate=False),
    "strips, widened": case(with_rest(STRIPS), 1, 27, 2048, dtype="bf16,bf16,f32"),
    "dots along n": case(DOTS_N, 1, 1024, 6, rhs=COLUMNS),
    "dots along n, a remainder": case(with_rest(DOTS_N), 1, 1027, 7, rhs=COLUMNS),
    "dots along m": case(with_rest(DOTS_M), 7, 1024, 1, rhs=COLUMNS),
    "dots along m, gaps": case(with_rest(DOTS_M), 7, 1024, 1, lhs=Storage(row_pad=3), rhs=COLUMNS),
}
BESIDE_PANELS = case(PANELS, 1024, 32, 32, lhs=COLUMNS)


@pytest.mark.parametrize("name", ["avx2", "avx512"])
def test_numbers(name: str) -> None:
    target = get_target(name)
    cases = [*CASES.values(), BESIDE_PANELS]
    library = compile_cases(cases, target)
    for i, each in enumerate(cases):
        got, want = run_case(library.addresses[f"case{i}"], each, np.random.default_rng(i))
        assert_close(got, want, each.dims[2])


@pytest.mark.parametrize("name", CASES)
def test_rows_are_taken_apart(name: str) -> None:
    assert loop_of(CASES[name]).apart


@pytest.mark.parametrize(
    "made",
    [
        case(STRIPS, 1, 32, 992),  # short rows
        case(STRIPS.replace("by 8", "by 16"), 1, 32, 1024),  # many
        case(STRIPS.replace("by 8", "by 1"), 1, 32, 1024),  # one
        case(STRIPS.replace("broadcast_fma", "scalar").replace("        move out to VRF\n", ""), 1, 32, 1024),
        case(
            STRIPS.replace("by 16:", "by 16:\n        split k by 4:")
            .replace("        move", "            move")
            .replace("        kernel", "            kernel"),
            1,
            32,
            1024,
        ),
    ],
)
def test_others_are_not(made: Case) -> None:
    assert not loop_of(made).apart


def test_nor_beside_panels() -> None:
    plan = make_plan(BESIDE_PANELS.spec, BESIDE_PANELS.schedule, get_target("avx2"))
    assert isinstance(plan, Pack) and isinstance(plan.body, Loop) and not plan.body.apart


def test_nor_what_is_not_far() -> None:
    near = Case((1, 1, 32, 1024), "f32", (ROWS, ROWS, ROWS), True, parse(STRIPS))
    assert not loop_of(near).apart
