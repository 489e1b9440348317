"""Operands that go across the vector dim: squares that are transposed in registers, lines that crowd in few sets."""

import math
from dataclasses import replace

import pytest

from morello_mlir.nests import NestSpec
from morello_mlir.nests.actions import FAR, goal
from morello_mlir.nests.cost import RowsModel
from morello_mlir.nests.crowd import apart_of, lines_a_set, occupied
from morello_mlir.nests.leaf import LeafSearch
from morello_mlir.nests.plan import rows_plan
from morello_mlir.nests.search import NestSearch
from morello_mlir.nests.space import layouts
from morello_mlir.nests.squares import shuffles, square
from morello_mlir.search.nest_steps import Rows
from morello_mlir.search.schedule import Serial, parse, to_text
from morello_mlir.targets import get_target

ZEN5 = get_target("znver5")


def transposed(rows: int, cols: int, dtype: str = "f32", memory: str = "GL") -> NestSpec:
    """rows x cols elements of the output, columns of the input."""
    x, y = f"({dtype}, {memory}, [1, {rows}])", f"({dtype}, {memory}, [{cols}, 1])"
    return NestSpec.parse(f'Map([{rows}, {cols}], {x}, {y}, "y = x0", serial)')


def layout(spec: NestSpec, rows: str):
    plan = rows_plan(spec, parse(f"{rows}:\n    pass y"), ZEN5)
    return RowsModel(spec, ZEN5).layout(plan)


def cycles(spec: NestSpec, rows: str, streaming: bool = False) -> float:
    node = parse(f"{rows}:\n    pass y{' streaming' if streaming else ''}")
    return RowsModel(spec, ZEN5).cycles(rows_plan(spec, node, ZEN5))


# ---------------------------------------------------------------- squares


@pytest.mark.parametrize(
    ("strides", "counts", "want"),
    [
        ((1, 100), (8, 1), (0, 8)),
        ((1, 100), (16, 2), (0, 16)),
        ((1, 100), (64, 1), (0, 16)),
        # 12 is three squares of four; 6 would be three of two.
        ((1, 100), (12, 1), (0, 4)),
        ((1, 100), (6, 1), None),
        ((1, 100), (1, 4), None),
        # Vectors of neighbours, or of one element.
        ((100, 1), (8, 1), None),
        ((1, 0), (8, 1), None),
        ((3, 100), (8, 1), None),
    ],
)
def test_where_there_are_squares(strides, counts, want):
    assert square(strides, 1, counts, 16) == want


@pytest.mark.parametrize(("width", "lanes", "want"), [(16, 16, 4), (8, 16, 7), (4, 16, 11), (4, 4, 2), (16, 64, 19)])
def test_shuffles_of_a_vector(width, lanes, want):
    assert shuffles(width, lanes) == want


@pytest.mark.parametrize("rows", ["rows vector d1", "rows vector d0"])
def test_squares_take_less_than_elements_one_by_one(rows):
    """Read or written, near enough that lines cost nothing."""
    spec, other = transposed(64, 64, memory="L1"), "d0" if rows.endswith("d1") else "d1"
    few = cycles(spec, f"{rows} tile {other} by 6")
    assert cycles(spec, f"{rows} tile {other} by 16") < cycles(spec, f"{rows} tile {other} by 4") < few
    assert few == pytest.approx(cycles(spec, rows), rel=0.15)


def test_whole_lines_are_in_the_space_where_they_help():
    def tiles(spec):
        return {(v, max(tile)) for v, _, tile in layouts(spec, ZEN5)}

    assert {(0, 16), (1, 16)} <= tiles(transposed(64, 64))
    # Neighbours along the vectors in all operands: nothing to transpose.
    same = NestSpec.parse('Map([64, 64], (f32, GL, [64, 1]), (f32, GL, [64, 1]), "y = x0", serial)')
    assert (1, 8) in tiles(same) and (1, 16) not in tiles(same)


def test_the_search_picks_squares():
    for size in (64, 256, 1000, 1024):
        for dtype in ("f32", "bf16", "i8", "f64"):
            text = to_text(NestSearch(ZEN5).solve(transposed(size, size, dtype)).schedule)
            assert "by 8:" in text or "by 16:" in text or "by 4:" in text, (size, dtype, text)


# ---------------------------------------------------------------- lines in few sets


@pytest.mark.parametrize(
    ("stride", "rows", "span", "want"),
    [
        (4096, 16, 4, 16),
        (4096, 16, 64, 16),
        (2048, 16, 64, 8),
        (6144, 16, 64, 8),
        (256, 16, 64, 0),
        (4160, 16, 64, 0),
        # Two lines of each row have sets of their own; long rows have all.
        (4096, 16, 128, 16),
        (4096, 16, 4096, 0),
        (4096, 1, 64, 0),
        # Rows drift by a line in sixteen.
        (4092, 16, 4, 8),
    ],
)
def test_lines_of_rows_a_set(stride, rows, span, want):
    assert lines_a_set(((stride, rows),), span, 64) == want


def test_rows_along_two_dims_crowd_together():
    assert lines_a_set(((4096, 8), (1 << 16, 8)), 64, 64) == 64
    assert lines_a_set(((64, 8), (1 << 16, 8)), 64, 64) == 8


def test_crowded_lines_take_room_in_all_sets():
    assert occupied(16, 16, 64) == 1024
    assert occupied(16, 0, 64) == 16


def test_rows_of_an_operand():
    assert apart_of([1, 1024], [16, 32], 4) == (((4096, 32),), 64)
    assert apart_of([1024, 1], [1, 1024], 4) == ((), 4096)


def test_strides_of_pages_cost_more_than_their_neighbours():
    """A gather of sixteen rows, and squares of them."""
    for rows in ("rows vector d1", "rows vector d1 tile d0 by 8", "rows vector d0 by 2 tile d1 by 8"):
        assert cycles(transposed(1024, 1024), rows) > 1.5 * cycles(transposed(1040, 1040), rows)


def test_lines_wait_for_one_another_where_they_crowd():
    crowded = layout(transposed(1024, 1024), "rows vector d1 tile d0 by 16")
    assert crowded.waits(0, written=False) > 0
    assert layout(transposed(1040, 1040), "rows vector d1 tile d0 by 16").waits(0, written=False) == 0
    # Eight rows of the output that go on are no more than a set takes; sixteen are.
    assert layout(transposed(1024, 1024), "rows vector d1 tile d0 by 8").waits(1, written=True) == 0
    assert crowded.waits(1, written=True) > 0


def test_parts_of_lines_wait_as_what_comes_back():
    """Of a nest that has half of each line, the other half is another's."""
    half = NestSpec.parse('Map([8, 1024], (f32, GL, [1, 1024]), (f32, GL, [1024, 1]), "y = x0", serial)')
    whole = NestSpec.parse('Map([16, 1024], (f32, GL, [1, 1024]), (f32, GL, [1024, 1]), "y = x0", serial)')
    rows = "rows vector d1 tile d0 by 8"
    once = layout(whole, "rows vector d1 tile d0 by 16").waits(0, written=False)
    assert layout(half, rows).waits(0, written=False) > once


def test_crowded_lines_are_lost_early():
    """A thousand lines in one set of L1: from row to row they come from further than as many that are apart."""
    tables = ZEN5.streams.read
    apart, pages = (layout(transposed(n, n), "rows vector d1 tile d0 by 8") for n in (1040, 1024))
    again = [x.met(0, tables) - x.spec.dims[0] * x.spec.dims[1] / 16 * tables.l3 for x in (apart, pages)]
    assert again[1] > 1.2 * again[0] > 0


def test_rows_that_begin_anywhere_lie_in_more_lines():
    """A line's worth of each row lies in two, but where strides are whole lines."""
    lines = [layout(transposed(n, n), "rows vector d1 tile d0 by 16").lines(("operand", 0)) for n in (1024, 1023)]
    assert lines == [16, pytest.approx(16 * (2 - 4 / 64))]


# ---------------------------------------------------------------- runs, ends, the last cache


def test_short_groups_wait_for_runs_of_far_operands_only():
    near, far = transposed(1024, 1024), transposed(8192, 8192)
    rows = "rows vector d1 tile d0 by 16"
    assert 0 < layout(near, rows).jumps(0) < 0.2 * layout(near, rows).met(0, ZEN5.streams.read)
    assert layout(goal(far, ZEN5), rows).jumps(0) > 0.5 * layout(goal(far, ZEN5), rows).met(0, ZEN5.streams.read)


def test_few_runs_that_a_loop_goes_on_along_are_followed():
    """The rows of 64 columns, and of all."""
    whole = goal(transposed(8192, 8192), ZEN5)
    part = NestSpec.parse('Map([8192, 64], (f32, GL, [1, 8192]), (f32, GL, [8192, 1]), "y = x0", serial, far)')
    rows = "rows vector d1 tile d0 by 16"
    a, b = (layout(x, rows).jumps(0) / math.prod(x.dims) for x in (part, whole))
    assert a < 0.1 * b


def test_what_is_written_past_the_caches_arrives_at_the_end():
    spec = transposed(1024, 1024)
    rows = "rows vector d1 tile d0 by 16"
    free = replace(ZEN5, streams=replace(ZEN5.streams, fence=0.0))
    node = parse(f"{rows}:\n    pass y streaming")
    without = RowsModel(spec, free).cycles(rows_plan(spec, node, free))
    assert cycles(spec, rows, streaming=True) == pytest.approx(without + ZEN5.streams.fence)
    plain = parse(f"{rows}:\n    pass y")
    assert cycles(spec, rows) == RowsModel(spec, free).cycles(rows_plan(spec, plain, free))


def test_nothing_is_written_past_the_caches_that_gains_less_than_the_end_takes():
    spec = transposed(1024, 1024)

    def streams(fence: float) -> bool:
        target = replace(ZEN5, streams=replace(ZEN5.streams, fence=fence))
        found = LeafSearch(spec, target).best()
        assert found is not None and isinstance(found[1], Rows)
        return "streaming" in to_text(found[1])

    assert streams(450.0) and not streams(1e6)


def test_what_fills_the_last_cache_is_not_there():
    line = ZEN5.l3_bytes // 4
    spec = NestSpec.parse(f'Map([{line}], (f32, GL, [1]), (f32, GL, [1]), "y = x0", serial)')
    assert goal(spec, ZEN5).far
    half = NestSpec.parse(f'Map([{int(line * FAR) // 2}], (f32, GL, [1]), (f32, GL, [1]), "y = x0", serial)')
    assert not goal(half, ZEN5).far


def test_threads_share_rows_or_columns_of_a_transpose_alike():
    """No run is followed past its end: both cost what their lines do."""
    spec = NestSpec.parse(str(transposed(1024, 1024)).replace("serial", "parallel 2"))
    found = NestSearch(ZEN5).solve(spec).schedule
    assert not isinstance(found, Serial)
