"""What costs of nests are made of: loops that passes share, blocks that fit a cache or not."""

from dataclasses import replace

import pytest
from nest_support import softmax

from morello_mlir.nests import NestSpec
from morello_mlir.nests.cost import RowsModel
from morello_mlir.nests.leaf import LeafSearch
from morello_mlir.nests.plan import rows_plan
from morello_mlir.nests.search import NestSearch
from morello_mlir.search.schedule import parse
from morello_mlir.targets import get_target

ZEN5 = get_target("znver5")
PIPELINED = """rows vector d1 pipeline {}:
    pass m unroll d1 by 4
    pass s store e to scratch unroll d1 by 4
    pass y unroll d1 by 4 streaming"""


def cycles(rows: int, schedule: str, target=ZEN5) -> float:
    spec = softmax(rows, 2048)
    return RowsModel(spec, target, near=True).cycles(rows_plan(spec, parse(schedule), target))


@pytest.mark.parametrize("per", [1, 2])
def test_ends_of_a_loop_that_passes_share(per: int) -> None:
    """At both ends less takes place beside the others: as much for few rows as for many."""
    schedule = PIPELINED.format(per)
    each = cycles(65, schedule) - cycles(64, schedule)
    assert cycles(5, schedule) - cycles(4, schedule) == pytest.approx(each, rel=1e-6)
    ends = cycles(4, schedule) - 4 * each
    assert cycles(64, schedule) - 64 * each == pytest.approx(ends, rel=1e-3)
    one_by_one = cycles(1, PIPELINED.replace(" pipeline {}", ""))
    late = (3 - 1) // per
    # So many rows are begun and ended without their neighbours.
    assert 0 < ends < 2 * late * one_by_one


def test_nothing_is_lost_where_nothing_takes_place_beside_other_things() -> None:
    """Where lines wait for instructions, and these for one unit, half a loop twice is a loop."""
    alone = replace(
        ZEN5.streams, overlap=1.0, ramp=0.0, issue=1e-3, loop=0.0, latency=0.0, live=0.0, spill=0.0, past_beside=0.0
    )
    target = replace(ZEN5, streams=replace(alone, past=alone.allocate, sweep=0.0, straight=0.0))
    schedule = PIPELINED.format(1)
    each = cycles(65, schedule, target) - cycles(64, schedule, target)
    assert cycles(4, schedule, target) == pytest.approx(4 * each, rel=0.05)


def test_blocks_that_do_not_fit_beside_the_next() -> None:
    """A block is read twice, stored once, and the next one is asked for: 48 KiB hold that of 2048 f32, not of 4096."""
    spec = NestSearch(ZEN5).goal(softmax(8, 65536).canonical())

    def lost(block: int, rows: int) -> float:
        (_, p), *_ = [
            (f, p)
            for f in LeafSearch(spec, ZEN5).options()
            for p in f.form.plan.passes
            if p.step.online == block and p.stores
        ]
        return LeafSearch(spec, ZEN5).model.instructions.lost(p, rows)

    assert lost(2048, 1) == 0.0
    assert 0.0 < lost(4096, 1) < 4096 * 4 / 64 * ZEN5.streams.read.l2
    assert lost(2048, 2) > 0.0


def test_tables_take_registers() -> None:
    """Vectors side by side leave room for what numbers are looked up in; without tables more of them fit."""
    x = "(f32, GL, [1])"
    spec = NestSpec.parse(f'Map([100000], {x}, {x}, "y = erf(x0)", serial)')

    def vectors(target) -> int:
        found = LeafSearch(spec, target).best()
        assert found is not None
        return found[1].vectors

    assert vectors(ZEN5) < vectors(replace(ZEN5, streams=replace(ZEN5.streams, tables={})))


def heads(rows: int, count: int = 16) -> NestSpec:
    """Heads of 64 elements of bf16 that are side by side, each of which becomes a matrix."""
    x, y = f"(bf16, GL, [64, {64 * count}, 1])", f"(bf16, GL, [{64 * rows}, 64, 1])"
    return NestSpec.parse(f'Map([{count}, {rows}, 64], {x}, {y}, "y = x0", serial)')


def walked(spec: NestSpec, rows: str) -> float:
    """Pages of the input that are looked up."""
    plan = rows_plan(spec, parse(f"{rows}:\n    pass y"), ZEN5)
    return RowsModel(spec, ZEN5).layout(plan).walks(0) / ZEN5.streams.page


def test_pages_that_are_met_again() -> None:
    """Once for each head, or for several together; each page once where all that a head touches are remembered."""
    spec, few = heads(1024), heads(64)
    assert walked(spec, "rows vector d2 by 2") == 16 * 512
    assert walked(spec, "rows vector d2 by 2 tile d0 by 4") == 4 * 512
    assert walked(few, "rows vector d2 by 2") == walked(few, "rows vector d2 by 2 tile d0 by 4") == 32
    assert NestSearch(ZEN5).solve(spec).schedule.tile[0][0] == "d0"


def test_squares_have_pages_among_their_costs() -> None:
    spec = NestSpec.parse('Map([1024, 1024], (f32, GL, [1, 1024]), (f32, GL, [1024, 1]), "y = x0", serial)')
    assert walked(spec, "rows vector d1 tile d0 by 16") == 0
