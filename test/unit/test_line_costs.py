"""What lines cost, by how the kernel comes to them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from morello_mlir.actions import KERNELS, MoveAction, key_of
from morello_mlir.actions.move import line_cycles
from morello_mlir.spec import Layout, Spec
from morello_mlir.targets import TARGETS, LineCost

AVX512 = TARGETS["avx512"]
#: Nothing costs anything but what a test puts in.
FREE = LineCost(0.0, 0.0)
BASE = replace(
    AVX512,
    costs=replace(
        AVX512.costs,
        l2_to_l1=FREE,
        l2_to_l1_across=FREE,
        gl_to_l2=FREE,
        pack_copy=FREE,
        kernel_scale=0.0,
        call=0.0,
        burst_line=0.0,
        burst_rows=12,
        lone_line=0.0,
        pack_away=0.0,
        pack_start=0.0,
    ),
)


def cost(action, m, k, n, lhs, rhs, out="GL, row_major", **costs):
    """Cycles of an action by itself; `costs` over the free ones."""
    spec = Spec.parse(f"MatmulAccum([1, {m}, {k}, {n}], (f32, {lhs}), (f32, {rhs}), (f32, {out}), serial)")
    target = replace(BASE, costs=replace(BASE.costs, **costs))
    dims = dict(zip(spec.info.dims, spec.dims, strict=True))
    return action.cost(key_of(spec, target), dims, target) / 1000


def saved(action, text, far=False, base=BASE, **coefficient):
    """Cycles that an action on the Spec `text` takes less with a coefficient of this value than where it is 0. far:
    whether GL is DRAM, whatever the sizes say."""
    spec = Spec.parse(text)
    dims = dict(zip(spec.info.dims, spec.dims, strict=True))
    took = []
    for costs in (dict.fromkeys(coefficient, 0.0), coefficient):
        target = replace(base, costs=replace(base.costs, **costs))
        took.append(action.cost(replace(key_of(spec, target), far=far), dims, target) / 1000)
    return took[0] - took[1]


PANELS = "L2, [b, n/16, k, n%16]"
KERNEL = KERNELS["broadcast_fma"]


def test_panels_have_a_price_of_their_own():
    assert line_cycles(LineCost(2.0, 3.0, 5.0, packed=1.0), True, None) == 1.0


@pytest.mark.parametrize(
    ("stride", "rows", "want"),
    [
        (256, 1000, 2.0),
        (512, 400, 7.0),
        (512, 384, 2.0),
        (4096, 49, 7.0),
        (4096, 48, 2.0),
        (2048, None, 2.0),
        (4096, None, 7.0),
    ],
)
def test_crowded_rows_cost_more(stride, rows, want):
    assert line_cycles(LineCost(2.0, 3.0, 5.0, conflict_rows=48), True, stride, rows) == want


def test_rows_that_start_at_lines_end_together():
    """24 rows of 4 lines, of which those of 12 are free."""
    lhs = "L2, row_major, s128"
    assert cost(KERNEL, 24, 64, 16, lhs, PANELS, "VRF, row_major", burst_line=2.0) == 12 * 4 * 2
    assert cost(KERNEL, 8, 64, 16, lhs, PANELS, "VRF, row_major", burst_line=2.0) == 0


def test_rows_that_start_anywhere_do_not():
    assert cost(KERNEL, 24, 64, 16, "L2, row_major, s16", PANELS, "VRF, row_major", burst_line=2.0) == 0


def test_moving_rows_to_l1_costs_what_streaming_them_does():
    lhs = "L2, row_major, s128"
    rhs, across = "L2, row_major", LineCost(0.0, 1.0)
    move = cost(MoveAction(0, "L1"), 24, 64, 16, lhs, rhs, "L2, row_major", burst_line=2.0, l2_to_l1_across=across)
    assert move == 12 * 4 * 2 + 24 * 4
    assert move == cost(KERNEL, 24, 64, 16, lhs, PANELS, "VRF, row_major", burst_line=2.0, l2_to_l1_across=across)


def test_one_vector_waits_for_every_line():
    lhs, panels = "L2, row_major, s128", "L1, [b, n/32, k, n%32]"
    assert cost(KERNEL, 8, 64, 16, lhs, panels, "VRF, row_major", lone_line=1.0) == 8 * 4
    assert cost(KERNEL, 8, 64, 17, lhs, panels, "VRF, row_major", lone_line=1.0) == 0
    assert cost(KERNEL, 8, 64, 16, "L1, [b, m/8, k, m%8]", panels, "VRF, row_major", lone_line=1.0) == 0


def test_one_vector_does_not_wait_for_a_few_rows_in_pages_of_their_own():
    lhs, panels = "L2, row_major, s4096", "L1, [b, n/32, k, n%32]"
    assert cost(KERNEL, 12, 64, 16, lhs, panels, "VRF, row_major", lone_line=1.0) == 0
    assert cost(KERNEL, 13, 64, 16, lhs, panels, "VRF, row_major", lone_line=1.0) == 13 * 4


def test_dot_products_wait_for_lines_of_lhs():
    lhs, columns = "L2, row_major, s128", "L1, [b, n/1, k, n%1]"
    move = cost(MoveAction(0, "L1"), 4, 64, 4, lhs, columns, "L2, row_major", dot_line=0.5)
    assert move == 8
    dots = [cost(KERNELS["dot_fma"], 4, 64, 4, lhs, columns, "L2, row_major", dot_line=x) for x in (0.5, 0.0)]
    assert move == dots[0] - dots[1]
    assert cost(MoveAction(0, "L1"), 4, 64, 4, lhs, "L2, row_major", "L2, row_major", dot_line=0.5) == 0


@pytest.mark.parametrize(("k", "lines"), [(1024, 256), (2048, 512 + 512)])
def test_what_streams_past_a_full_l1_drives_out_what_is_there(k, lines):
    """Four columns beside four rows and the next kernel's: 256 + 2 * 256 lines fit 768, not twice as many."""
    operands = "L2, row_major, s128", "L1, [b, n/1, k, n%1]", "L2, row_major"
    slow, fast = (cost(KERNELS["dot_fma"], 4, k, 4, *operands, l2_line=x, kernel_scale=1.0) for x in (200.0, 100.0))
    assert (slow - fast) / 100 == lines


def test_panels_that_come_alone_are_asked_for():
    """By tiles of rows, if there are several. Single columns are not."""
    lines = {"asked_line": 0.25, "unasked_line": 0.5, "gl_to_l2": LineCost(0.0, 0.0, packed=1.0)}
    panels, others = "GL, [b, n/32, k, n%32]", ("GL, row_major", "GL, row_major")
    for m, n, expected in ((16, 32, 64 * 2 * 0.75), (12, 32, 64 * 2), (16, 64, 64 * 4 * 1.5)):
        assert cost(MoveAction(1, "L2"), m, 64, n, others[0], panels, others[1], **lines) == expected
    columns = "GL, [b, n/1, k, n%1]"
    assert cost(MoveAction(1, "L2"), 4, 64, 4, others[0], columns, others[1], **lines) == 16


def test_tall_rows_in_place_do_not_thrash_unless_they_crowd():
    """A step needs one line of each row: 24 rows fit L1 side by side, but not at a distance of a page."""
    across = LineCost(0.0, 1.0)
    for stride, lines in ((128, 24 * 64), (4096, 24 * 1024)):
        lhs = f"L2, row_major, s{stride}"
        assert cost(KERNEL, 24, 1024, 16, lhs, PANELS, "VRF, row_major", l2_to_l1_across=across) == lines


def test_panels_in_gl_are_written_back():
    layout = Layout.packed(3, 2, 16)
    assert cost(MoveAction(1, "GL", layout), 8, 64, 32, "GL, row_major", "GL, row_major", pack_away=3.0) == 128 * 3
    assert cost(MoveAction(1, "L2", layout), 8, 64, 32, "GL, row_major", "GL, row_major", pack_away=3.0) == 0


@pytest.mark.parametrize(
    ("m", "k", "n", "rhs", "less"),
    [
        (1, 8, 2048, "row_major, s8192", True),
        (4, 8, 2048, "row_major, s8192", True),
        (1, 9, 2048, "row_major, s8192", False),  # many
        (1, 1, 2048, "row_major, s8192", False),  # one
        (1, 8, 512, "row_major", False),  # short ones
        (1, 8, 2048, "row_major, s16384", False),  # with gaps
        (1, 2048, 2, "col_major, s8192", True),
        (2, 2048, 2, "col_major, s8192", False),  # beside several rows
        (1, 2048, 3, "col_major, s8192", False),  # side by side
    ],
)
def test_a_few_long_rows_from_memory_are_streams(m: int, k: int, n: int, rhs: str, less: bool):
    spec = Spec.parse(
        f"MatmulAccum([1, {m}, {k}, {n}], (f32, L2, row_major), (f32, GL, {rhs}), (f32, L2, row_major), serial, far)"
    )
    dims = dict(zip(spec.info.dims, spec.dims, strict=True))
    took = []
    for saved in (0.0, 1.5):
        target = replace(BASE, costs=replace(BASE.costs, far_to_l2=LineCost(7.0, 7.0), far_stream=saved))
        took.append(MoveAction(1, "L2").cost(key_of(spec, target), dims, target) / 1000)
    lines = k * n // 16
    assert took == [7.0 * lines, (5.5 if less else 7.0) * lines]


def test_rows_beside_panels_are_no_streams():
    """Rows of rhs that follow one another go with neighbours in a panel of lhs."""
    took = []
    for lhs in ("row_major", "[b, m/6, k, m%6]"):
        spec = Spec.parse(
            f"MatmulAccum([1, 1, 8, 4096], (f32, L2, {lhs}), (f32, GL, row_major), (f32, L2, row_major), serial, far)"
        )
        dims = dict(zip(spec.info.dims, spec.dims, strict=True))
        target = replace(BASE, costs=replace(BASE.costs, far_to_l2=LineCost(7.0, 7.0), far_stream=1.5))
        took.append(MoveAction(1, "L2").cost(key_of(spec, target), dims, target) / 1000 / (8 * 4096 // 16))
    assert took == [5.5, 7.0]


@pytest.mark.parametrize(
    "lhs, rows, less", [("[b, m/6, k, m%6]", 6, True), ("[b, m/6, k, m%6]", 12, False), ("row_major", 6, False)]
)
def test_a_panel_of_lhs_from_memory_is_asked_for_where_it_comes_alone(lhs: str, rows: int, less: bool):
    spec = (
        f"MatmulAccum([1, {rows}, 256, 128], (f32, GL, {lhs}), (f32, L2, [b, n/64, k, n%64]), (f32, GL, row_major), "
        "serial)"
    )
    base = replace(BASE, costs=replace(BASE.costs, far_to_l2=LineCost(7.0, 7.0, packed=6.0)))
    want = 5.0 * rows * 256 // 16 if less else 0.0
    assert saved(MoveAction(0, "L2"), spec, far=True, base=base, far_asked=5.0) == want


@pytest.mark.parametrize("n, far, less", [(64, True, True), (128, True, False), (64, False, False)])
def test_one_panel_of_rhs_from_memory_is_a_stream(n: int, far: bool, less: bool):
    spec = (
        f"MatmulAccum([1, 2, 256, {n}], (f32, L2, row_major), (f32, GL, [b, n/64, k, n%64]), (f32, L2, row_major), "
        "serial)"
    )
    assert saved(MoveAction(1, "L2"), spec, far, far_panel=1.5) == (1.5 * 256 * 64 // 16 if less else 0.0)


@pytest.mark.parametrize("m, far, passes", [(4096, True, 0), (8192, True, 7), (8192, False, 0)])
def test_panels_of_lhs_that_do_not_stay_in_the_last_level_cache_come_from_memory_each_time(
    m: int, far: bool, passes: int
):
    """A fourth of 32 MiB may be theirs; panels of rhs that L2 holds, 512 deep, have 640 columns of 4096."""
    spec = f"MatmulAccum([1, {m}, 512, 4096], (f32, GL, row_major), (f32, GL, row_major), (f32, GL, row_major), serial)"
    move, base = MoveAction(0, "GL", Layout.packed(3, 1, 4)), replace(BASE, l3_bytes=32 << 20)
    assert -saved(move, spec, far, base, far_asked=5.0) == 5.0 * passes * m * 512 // 16


def test_wide_strips_of_what_is_widened_are_dear():
    """Each line beyond four of a row; not of what is as wide as the sums."""
    for rhs, n, lines in (("f16", 192, 2), ("f16", 128, 0), ("f32", 192, 0)):
        spec = (
            f"MatmulAccum([1, 1, 8, {n}], (f32, L1, row_major), ({rhs}, L1, row_major), (f32, VRF, row_major), serial)"
        )
        assert -saved(KERNEL, spec, strip_line=1.0) == 8 * lines


def test_setting_out_to_pack_is_paid_once_whatever_the_size():
    layout = Layout.packed(3, 2, 16)
    for n in (16, 64):
        paid = cost(MoveAction(1, "L2", layout), 8, 64, n, "GL, row_major", "GL, row_major", pack_start=7.0)
        free = cost(MoveAction(1, "L2", layout), 8, 64, n, "GL, row_major", "GL, row_major", pack_start=0.0)
        assert paid - free == 7


@pytest.mark.parametrize(
    ("m", "n", "rhs", "together"),
    [
        (12, 16, "L1, row_major, s128", 1),
        (12, 8, "L1, row_major, s128", 2),
        (12, 5, "L1, row_major, s128", 2),
        (12, 4, "L1, row_major, s128", 4),
        (20, 4, "L1, row_major, s128", 2),
        (12, 1, "L1, row_major, s128", 1),
        (12, 4, "L1, [b, n/16, k, n%16]", 1),
    ],
)
def test_few_columns_take_several_steps_a_vector_where_shuffles_are_free(m, n, rhs, together):
    spec = f"MatmulAccum([1, {m}, 64, {n}], (f32, L1, row_major, s128), (f32, {rhs}), (f32, VRF, row_major), serial)"
    for shuffles, steps in ((True, 64 / together), (False, 64)):
        costs = replace(BASE.costs, kernel_scale=1.0, unaligned=1.0, spread_step=0.5)
        target = replace(BASE, costs=costs, shuffles=shuffles)
        parsed = Spec.parse(spec)
        dims = dict(zip(parsed.info.dims, parsed.dims, strict=True))
        tail = 0.5 if n < 16 and "%" not in rhs else 0.0
        # The whole vector under tall tiles: pairs of steps are spread, and loads do not bind.
        spread = shuffles and together == 1
        step = max(target.costs.fma_latency, m / 2 + 0.5) if spread else target.kernel_cycles[m, 1]
        want = steps * (step + tail)
        assert KERNEL.cost(key_of(parsed, target), dims, target) / 1000 == pytest.approx(want)


@pytest.mark.parametrize("shuffles", [False, True])
def test_lines_of_rows_in_place_are_not_waited_for_where_pairs_are_spread(shuffles):
    spec = (
        "MatmulAccum([1, 16, 64, 16], (f32, L2, row_major, s512), (f32, L1, [b, n/16, k, n%16]),"
        " (f32, VRF, row_major), serial)"
    )
    parsed = Spec.parse(spec)
    dims = dict(zip(parsed.info.dims, parsed.dims, strict=True))
    costs = []
    for dear in (0.0, 5.0):
        target = replace(BASE, costs=replace(BASE.costs, burst_line=dear, lone_line=dear), shuffles=shuffles)
        costs.append(int(KERNEL.cost(key_of(parsed, target), dims, target)))
    assert (costs[0] == costs[1]) == shuffles


@pytest.mark.parametrize(
    ("shape", "rhs", "want"),
    [
        ((8, 64, 64), "row_major, s4096", 64 * 5.0),
        ((8, 64, 64), "row_major, s2048", 0.0),
        ((8, 64, 16), "row_major, s4096", 64 * (5.0 + 3.0)),
        ((8, 64, 16), "row_major, s512", 64 * 3.0),
        ((8, 64, 16), "row_major, s256", 0.0),
        ((8, 64, 64), "[b, n/16, k, n%16]", 4 * 40.0),
    ],
)
def test_rows_in_pages_rows_of_one_line_and_panels_add_to_their_lines(shape, rhs, want):
    rows = LineCost(0.0, 0.0, row=5.0, lone=3.0, panel=40.0)
    got = cost(
        MoveAction(1, "L2"), *shape, "GL, row_major", f"GL, {rhs}", gl_to_l2=rows, asked_line=0.0, unasked_line=0.0
    )
    assert got == want


def test_packing_rows_that_are_pages_apart_costs_each_row():
    action = MoveAction(1, "L2", Layout.packed(3, 2, 16))
    priced = {s: cost(action, 8, 64, 64, "GL, row_major", f"GL, row_major, s{s}", pack_copy=LineCost(0, 0, row=4.0))
              for s in (2048, 4096)}  # fmt: skip
    assert priced == {2048: 0.0, 4096: 64 * 4.0}


@pytest.mark.parametrize(("rows", "want"), [(2, 256 * 1.5 - 2 * 64 * 64 / 32), (6, 0.0)])
def test_an_operand_that_is_moved_is_waited_for_beyond_what_is_computed_with_it(rows, want):
    got = cost(
        MoveAction(1, "L1"), rows, 64, 64, "L2, row_major", PANELS, out="L2, row_major", l1_wait=1.5, kernel_scale=1.0
    )
    assert got == want
    far = "GL, [b, n/16, k, n%16]"
    prices = {"asked_line": 0.0, "unasked_line": 0.0, "kernel_scale": 1.0}
    assert cost(MoveAction(1, "L2"), rows, 64, 64, "GL, row_major", far, l2_wait=1.5, **prices) == want
    assert cost(MoveAction(1, "L2"), rows, 64, 64, "GL, row_major", far, **prices) == 0.0


@pytest.mark.parametrize(
    ("stride", "vectors", "want"),
    [
        *((256, 4, 4 * 1.5 + 2.0), (1024, 4, 4 * 1.5 + 2.0), (4096, 4, 4 * 1.5 + 7.0)),
        # Half a page apart: short rows take as long as rows of four lines.
        *((2048, 4, 8.0), (2048, 2, 8.0), (2048, 6, 6 * 1.5 + 2.0), (1024, 2, 2 * 1.5 + 2.0)),
    ],
)
def test_rows_of_rhs_in_place_take_their_time_beside_the_arithmetic(stride, vectors, want):
    got = cost(
        KERNEL, 1, 64, 16 * vectors, "L1, row_major", f"L2, row_major, s{stride}", out="VRF, row_major",
        kernel_scale=1.0, l2_line=1.5, row_line=2.0, page_row=7.0, half_page_row=8.0,
    )  # fmt: skip
    assert got == 64 * want


def test_vectors_of_rhs_that_straddle_lines_add_to_the_step():
    straddling, aligned = (
        cost(KERNEL, 6, 64, 64, "L1, row_major", f"L1, row_major, s{s}", out="VRF, row_major",
             kernel_scale=1.0, unaligned=1.0, unaligned_vector=0.5)
        for s in (4, 64)
    )  # fmt: skip
    assert straddling - aligned == 64 * 4 * 0.5


@pytest.mark.parametrize(("m", "k", "want"), [(2, 1, 0.0), (3, 1, 27.0), (3, 3, 9.0), (3, 4, 0.0)])
def test_stores_of_large_tiles_come_in_bursts_where_few_steps_lie_between_them(m, k, want):
    """12 vectors are few; 18 take 2 cycles each, of which nine are covered by every k step."""
    lhs, rhs, out = "L1, row_major", "L1, row_major", "L1, row_major"
    got = cost(MoveAction(2, "VRF"), m, k, 96, lhs, rhs, out, out_vector=0.0, store_wait=2.0, few_stores=12)
    assert got == want
