"""Plans: what is left of a schedule when the steps that emit nothing are gone."""

from __future__ import annotations

import pytest

from morello_mlir.errors import ScheduleError
from morello_mlir.lowering.plan import Leaf, Leftover, Loop, Pack, Plan, Registers, Stop, make_plan, scratch_bytes
from morello_mlir.search.schedule import parse
from morello_mlir.spec import matmul_spec
from morello_mlir.targets import TARGETS

TARGET = TARGETS["avx2"]
IN_CACHE = "move lhs to L2\nmove rhs to L2\nmove out to L2\n"


def plan_of(text: str, m: int, k: int, n: int, stop: int | str | None = None) -> Plan:
    return make_plan(matmul_spec(m, k, n, accumulate=True), parse(text), TARGET, Stop.parse(stop))


def test_cache_moves_vanish() -> None:
    assert plan_of(IN_CACHE + "kernel scalar", 4, 5, 6) == Leaf((1, 4, 5, 6), "scalar")


def test_tiles_of_one_dim_with_nothing_between_are_one_loop() -> None:
    text = IN_CACHE + "tile m by 8:\n  tile m by 4:\n    move out to L1\n    tile m by 2:\n      kernel scalar"
    assert plan_of(text, 16, 5, 6) == Loop((1, 16, 5, 6), "m", 2, 16, Leaf((1, 2, 5, 6), "scalar"), None)


def test_a_remainder_that_goes_on_alike_joins_the_loop() -> None:
    pairs = "  tile m by 2:\n    kernel scalar\n"
    text = f"{IN_CACHE}tile m by 8:\n{pairs}rest:\n{pairs}  rest:\n    kernel scalar"
    small, last = Leaf((1, 2, 5, 6), "scalar"), Leaf((1, 1, 5, 6), "scalar")
    assert plan_of(text, 13, 5, 6) == Loop((1, 13, 5, 6), "m", 2, 12, small, last)


def test_a_remainder_of_one_equal_tile_joins_the_loop() -> None:
    text = IN_CACHE + "tile m by 8:\n  tile m by 2:\n    kernel scalar\nrest:\n  kernel scalar"
    assert plan_of(text, 10, 5, 6) == Loop((1, 10, 5, 6), "m", 2, 10, Leaf((1, 2, 5, 6), "scalar"), None)


def test_other_loops_stay() -> None:
    text = IN_CACHE + "tile m by 8:\n  tile n by 2:\n    tile m by 2:\n      kernel scalar"
    outer = plan_of(text, 16, 5, 6)
    assert isinstance(outer, Loop)
    assert (outer.dim, outer.size) == ("m", 8)
    assert isinstance(outer.body, Loop)
    assert outer.body.dim == "n"


PACKED = """\
move rhs to L2 as [b, n/16, k, n%16]
tile m by 12:
    move lhs to L2 as [b, m/6, k, m%6]
    move out to L2
    tile n by 16:
        tile m by 6:
            move out to L1
            move out to VRF
            kernel broadcast_fma
"""


def test_scratch_is_what_a_path_needs() -> None:
    plan = plan_of(PACKED, 24, 10, 32)
    assert isinstance(plan, Pack)
    rhs, lhs = 2 * 11 * 16 * 4, 2 * 11 * 6 * 4
    assert scratch_bytes(plan, {}) == -(-rhs // 64) * 64 + -(-lhs // 64) * 64
    assert scratch_bytes(plan.body, {}) == -(-lhs // 64) * 64


def test_stopping_keeps_every_step_above() -> None:
    plan = plan_of(PACKED, 24, 10, 32, 3)
    assert isinstance(plan, Pack)
    assert isinstance(plan.body, Loop)
    inner = plan.body.body
    assert isinstance(inner, Pack)
    assert isinstance(inner.body, Leftover)
    assert inner.body.sizes == (1, 12, 10, 32)


@pytest.mark.parametrize(("stop", "kind"), [("pack", Leftover), ("tile", Pack), ("kernel", Pack), (0, Leftover)])
def test_stopping_at_a_kind_of_step(stop: int | str, kind: type) -> None:
    assert isinstance(plan_of(PACKED, 24, 10, 32, stop), kind)


def test_holes_stay() -> None:
    plan = plan_of("tile m by 8:\n  ?", 16, 5, 6)
    assert isinstance(plan, Loop)
    assert isinstance(plan.body, Leftover)


def test_equal_tiles_of_different_parents_are_one_node() -> None:
    tile = "  move out to VRF\n  kernel broadcast_fma\n"
    text = f"{IN_CACHE}move out to L1\ntile n by 16:\n{tile}rest:\n{tile}"
    plan = plan_of(text, 4, 5, 24)
    assert isinstance(plan, Loop)
    assert isinstance(plan.body, Registers)
    assert plan.rest == Registers((1, 4, 5, 8), Leaf((1, 4, 5, 8), "broadcast_fma"))


def test_illegal_steps_are_named() -> None:
    with pytest.raises(ScheduleError, match="kernel broadcast_fma: out must be in VRF"):
        plan_of(IN_CACHE + "kernel broadcast_fma", 4, 5, 6)


@pytest.mark.parametrize("text", ["lunch", "-1", "1.5", "²", "9" * 5000])
def test_unknown_stops_are_refused(text: str) -> None:
    with pytest.raises(ScheduleError, match="expected a number of steps or one of to_accum"):
        Stop.parse(text)
