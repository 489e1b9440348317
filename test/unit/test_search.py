"""The search against an independent enumeration, and its invariants."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from search_support import brute_force, with_limits
from small_target import CHEAP_FORKS, SMALL

from morello_mlir.actions import action_of, child_specs, explore, key_of, limits_of
from morello_mlir.actions.space import closure, steps
from morello_mlir.errors import ScheduleError, SpecError
from morello_mlir.search import passes_native, passes_numpy
from morello_mlir.search.schedule import Hole, children, parse, to_text, walk
from morello_mlir.search.solve import Search, search_for
from morello_mlir.search.tables import Tables, in_order
from morello_mlir.search.tilelists import TileLists, axis_lists, decisive_lists
from morello_mlir.spec import Layout, Spec, matmul_spec
from morello_mlir.targets import INFINITE, TARGETS

AVX2 = TARGETS["avx2"]


def parallel(threads, spec):
    return replace(spec, serial=False, threads=threads)


@pytest.mark.parametrize(
    "spec",
    [
        matmul_spec(1, 1, 1),
        matmul_spec(2, 3, 4),
        matmul_spec(4, 2, 8),
        matmul_spec(3, 2, 9),
        matmul_spec(2, 4, 3, rhs="col_major"),
        matmul_spec(3, 2, 8, lhs="col_major", accumulate=True),
        matmul_spec(2, 2, 4, b=3),
        matmul_spec(2, 3, 5, dtype="f64"),
        matmul_spec(3, 4, 9, const=("rhs",)),
        matmul_spec(2, 2, 8, b=2, rhs="col_major", const=("lhs", "rhs")),
        with_limits(matmul_spec(2, 16, 4), L1=4, L2=12),
        with_limits(matmul_spec(4, 2, 8), VRF=4),
        parallel(2, matmul_spec(5, 2, 6)),
        parallel(3, matmul_spec(7, 1, 5)),
        parallel(4, matmul_spec(5, 1, 3)),
        parallel(2, matmul_spec(2, 2, 3, b=3)),
        parallel(4, matmul_spec(3, 1, 3, b=2, rhs="col_major")),
        parallel(2, matmul_spec(1, 9, 2)),
        parallel(3, matmul_spec(1, 8, 1, b=2)),
    ],
    ids=str,
)
def test_optimum_is_the_brute_force_optimum(spec):
    target = SMALL if spec.serial else CHEAP_FORKS
    assert Search(target).cost(spec) == brute_force(spec, target)


@pytest.mark.parametrize("spec", [matmul_spec(2, 1, 16), parallel(2, matmul_spec(2, 1, 16))], ids=str)
def test_optimum_past_the_caches(spec):
    target = replace(SMALL if spec.serial else CHEAP_FORKS, l3_bytes=128)
    found = Search(target).solve(spec)
    assert found.cost == brute_force(spec, target) and "WC" in to_text(found.schedule)


@settings(max_examples=12, deadline=None)
@given(m=st.integers(1, 40), k=st.integers(1, 20), n=st.integers(1, 70), b=st.integers(1, 3), threads=st.integers(2, 9))
def test_threads_in_the_tables(m, k, n, b, threads):
    """What the tree costs is what the tables say, and threads never make it dearer."""
    spec, search = parallel(threads, matmul_spec(m, k, n, b=b)), Search(CHEAP_FORKS)
    solution = search.solve(spec)
    assert search.price(spec, solution.schedule) == solution.cost == search.cost(spec)
    assert parse(to_text(solution.schedule)) == solution.schedule
    assert solution.cost <= search.cost(replace(spec, serial=True, threads=0))


def test_tiny_goals_stay_serial():
    one = Search(AVX2).solve(matmul_spec(16, 16, 16))
    many = Search(AVX2).solve(parallel(8, matmul_spec(16, 16, 16)))
    assert to_text(many.schedule).splitlines()[:2] == ["to_accum", "serial"] and many.cost == one.cost


def test_packing_ahead_is_chosen_where_it_pays():
    search = Search(AVX2)
    # The whole operand is used once for every 4 rows: what the panels cost in a call is most of it.
    spec = matmul_spec(4, 96, 96, rhs="col_major", const=("rhs",))
    ahead, plain = search.solve(spec), search.solve(matmul_spec(4, 96, 96, rhs="col_major"))
    assert to_text(ahead.schedule).splitlines()[1].startswith("pack_ahead rhs as ")
    assert ahead.cost < plain.cost
    packed = matmul_spec(4, 96, 96).operands[1]
    ways = [plain.cost]
    for width in (16, 24):
        tensor = replace(packed, layout=Layout.packed(3, 2, width))
        lhs, _, out = spec.operands
        ways.append(2000 + search.solve(replace(spec, operands=(lhs, tensor, out))).cost)
    assert ahead.cost == min(ways)


def test_what_gains_nothing_is_left_where_it_is():
    search = Search(AVX2)
    spec = matmul_spec(1, 768, 8, rhs="col_major")
    const = replace(spec, operands=tuple(replace(t, const=i == 1) for i, t in enumerate(spec.operands)))
    assert search.solve(const).schedule == search.solve(spec).schedule


SIZES = st.integers(1, 70)


@settings(max_examples=12, deadline=None)
@given(m=SIZES, k=SIZES, n=SIZES, target=st.sampled_from((AVX2, TARGETS["avx512"], SMALL)), lay=st.booleans())
def test_the_tree_costs_what_the_table_says(m, k, n, target, lay):
    spec = matmul_spec(m, k, n, rhs="col_major" if lay else "row_major")
    search = Search(target)
    solution = search.solve(spec)
    assert search.price(spec, solution.schedule) == solution.cost == search.cost(spec)
    assert parse(to_text(solution.schedule)) == solution.schedule


@settings(max_examples=8, deadline=None)
@given(m=SIZES, k=SIZES, n=SIZES)
def test_more_memory_never_costs_more(m, k, n):
    spec = matmul_spec(m, k, n)
    previous = None
    for amount in (2, 4, 6, 8):
        cost = Search(SMALL).cost(with_limits(spec, L1=amount, L2=3 * amount, VRF=amount))
        assert previous is None or cost <= previous
        previous = cost


def test_tables_never_fall_with_less_memory():
    tables = Tables({"m": 24, "k": 20, "n": 32}, SMALL.limits, SMALL)
    tables.table(key_of(matmul_spec(24, 20, 32, accumulate=True), SMALL))
    assert all((t[..., 1:] <= t[..., :-1]).all() for t in tables.tables.values())


def test_every_cell_reconstructs_to_its_cost():
    """Not only the root: the subtree at every step of an optimum costs what its own table says."""
    search = Search(SMALL)
    spec = matmul_spec(13, 7, 24)
    stack = [(spec.canonical(), search.solve(spec).schedule)]
    while stack:
        goal, node = stack.pop()
        assert search.price(goal, node) == search.cost(goal)
        stack += [(s, b) for (_, s), b in zip(child_specs(goal, node, SMALL), children(node), strict=True)]


def test_compiled_and_numpy_passes_fill_the_same_tables():
    goal = key_of(matmul_spec(13, 7, 24, accumulate=True), SMALL)
    a, b = (Tables({"m": 13, "k": 7, "n": 24}, SMALL.limits, SMALL, impl) for impl in (passes_native, passes_numpy))
    a.table(goal), b.table(goal)
    assert a.tables.keys() == b.tables.keys()
    assert all((a.tables[k] == b.tables[k]).all() for k in a.tables)


@settings(max_examples=60, deadline=None)
@given(shape=st.tuples(*[st.integers(1, 9)] * 3, st.integers(1, 19)), deep=st.integers(1, 19), data=st.randoms())
def test_the_compiled_move_is_the_reference(shape, deep, data):
    rng = np.random.default_rng(data.randrange(1 << 30))
    block, child = (rng.integers(0, 1 << 40, (*shape[:3], n)).astype(float) for n in (shape[3], deep))
    block[rng.random(block.shape) < 0.3], child[rng.random(child.shape) < 0.3] = INFINITE, INFINITE
    # Broadcastable, as costs and groups are.
    cost = rng.integers(0, 99, [n if rng.random() < 0.7 else 1 for n in shape[:3]]).astype(float)
    group = rng.integers(0, 3, [n if rng.random() < 0.7 else 1 for n in shape[:3]])
    maps = rng.integers(-1, deep, (3, shape[3]))
    other = block.copy()
    passes_native.move_pass(block, child, cost, group, maps)
    passes_numpy.move_pass(other, child, cost, group, maps)
    assert (block == other).all()


@settings(max_examples=60, deadline=None)
@given(sizes=st.tuples(*[st.integers(1, 60)] * 3), limits=st.integers(1, 19), data=st.randoms())
def test_the_compiled_sweep_is_the_reference(sizes, limits, data):
    rng = np.random.default_rng(data.randrange(1 << 30))
    axes = [in_order(closure(size)) for size in sizes]
    columns = [axis_lists(a, lambda s: [(t, s // t, s % t) for t in steps(s) if t % 2 or s > 7]) for a in axes]
    lists = TileLists(*(tuple(c[i] for c in columns) for i in range(4)))
    block = rng.integers(1, 1 << 30, (*map(len, axes), limits)).astype(float)
    block[rng.random(block.shape) < rng.random()] = INFINITE
    other = block.copy()
    passes_native.tile_pass(block, lists)
    passes_numpy.tile_pass(other, lists)
    assert (block == other).all()


def test_compiled_kernels_refuse_blocks_that_are_not_contiguous():
    block = np.zeros((2, 3, 4, 10))[..., ::2]
    with pytest.raises(ValueError, match="contiguous"):
        passes_native.move_pass(block, block, np.zeros((1, 1, 1)), np.zeros((1, 1, 1), int), np.zeros((1, 5), int))


@st.composite
def axes_with_tiles(draw):
    """The sizes of an axis, and the legal tiles of each: all multiples of a panel, or so many units of a window."""
    panel, unit = draw(st.sampled_from(((1, 0), (4, 0), (1, 3), (1, 8))))
    size = draw(st.integers(1, 90))
    units = (unit,) if unit else ()
    sizes = in_order(closure(size * (unit or 1), units))

    def tiles(size):
        legal = (t for t in steps(size, units) if t < size and t % panel == 0) if size % (unit or 1) == 0 else ()
        return [(t, size // t, size % t) for t in legal]

    return sizes, tiles


@settings(max_examples=60, deadline=None)
@given(axes=st.tuples(axes_with_tiles(), axes_with_tiles()), seed=st.integers(0, 1 << 30))
def test_tiles_that_are_left_out_change_no_cost(axes, seed):
    axes = (*axes, ([1], lambda size: []))
    rng = np.random.default_rng(seed)
    start = rng.integers(1, 1000, [*(len(sizes) for sizes, _ in axes), 2]).astype(float)
    start[rng.random(start.shape) < rng.random()] = INFINITE
    blocks = []
    for lists in (axis_lists, decisive_lists):
        columns = [lists(sizes, tiles) for sizes, tiles in axes]
        blocks.append(start.copy())
        passes_numpy.tile_pass(blocks[-1], TileLists(*(tuple(c[i] for c in columns) for i in range(4))))
        # At most 2^x and 3 * 2^y of each size.
        assert lists is axis_lists or all((np.diff(column[0]) <= 2).all() for column in columns)
    assert (blocks[0] == blocks[1]).all()


def test_a_second_solve_is_remembered():
    search = Search(SMALL)
    first, second = search.solve(matmul_spec(4, 4, 8)), search.solve(matmul_spec(4, 4, 8))
    assert (first.source, second.source) == ("search", "memo")
    assert second.seconds < 0.005 and first.schedule is second.schedule


def test_searches_are_shared_per_target():
    assert search_for(AVX2) is search_for(replace(AVX2)) is not search_for(SMALL)


def test_a_hole_is_filled_with_the_optimum():
    search, spec = Search(SMALL), matmul_spec(8, 6, 16)
    whole = search.complete(spec, Hole())
    assert whole.cost == search.solve(spec).cost
    edited = search.complete(spec, parse("to_accum\ntile n by 8:\n    ?"))
    assert not any(isinstance(n, Hole) for n in walk(edited.schedule))
    assert edited.source == "manual" and edited.cost >= whole.cost
    assert edited.cost == search.price(spec, edited.schedule)
    ((_, acc),) = child_specs(spec, edited.schedule, SMALL)
    ((_, inner),) = child_specs(acc, children(edited.schedule)[0], SMALL)
    assert edited.cost == 2 * search.cost(inner)


def test_the_optimum_of_a_hole_keeps_the_limits_above_it():
    """A hole under moves searches with what they left, and completing an optimum's own prefix gives the optimum."""
    search, spec = Search(SMALL), matmul_spec(6, 8, 16)
    best = search.solve(spec)

    def cut(node, depth):
        kids = children(node)
        if not depth or not kids:
            return Hole()
        return replace(node, body=cut(kids[0], depth - 1))

    for depth in range(1, 8):
        assert search.complete(spec, cut(best.schedule, depth)).cost == best.cost


def test_illegal_edits_are_refused():
    with pytest.raises(ScheduleError, match="split k by 4: only an accumulating"):
        Search(SMALL).complete(matmul_spec(8, 8, 8), parse("split k by 4:\n    ?"))


def test_what_cannot_be_searched():
    with pytest.raises(SpecError, match="a size is 0"):
        Search(SMALL).solve(matmul_spec(0, 4, 4))
    with pytest.raises(SpecError, match="no kernels"):
        spec = "Matmul([1, 4, 4, 4], (i8, GL, row_major), (i8, GL, row_major), (f32, GL, row_major), serial)"
        Search(SMALL).solve(Spec.parse(spec))
    with pytest.raises(ScheduleError, match="no implementation fits"):
        Search(SMALL).solve(with_limits(matmul_spec(4, 4, 4), L2=0))


def test_explored_actions_are_what_schedules_name():
    spec = matmul_spec(12, 8, 32, accumulate=True)
    key = key_of(spec, AVX2)
    for action in explore(key, dict(zip("bmkn", spec.dims, strict=True)), AVX2):
        assert action_of(action.node([Hole(), Hole()]), spec) == action
    assert limits_of(spec, AVX2) == AVX2.limits


@pytest.mark.parametrize("stride", [4, 32, 256, 8192])
def test_canonical_keys_have_the_same_tables(stride):
    """A far goal and a near one share the tables of operands in caches, and row strides that no cost tells apart are
    merged: the table of a key as it was equals that of its canonical form."""
    goal = matmul_spec(6, 8, 9, accumulate=True)
    strided = replace(goal, operands=tuple(replace(t, row_stride=stride) for t in goal.operands), far=True)
    root = key_of(strided, SMALL)
    tables = Tables({"m": 6, "k": 8, "n": 9}, SMALL.limits, SMALL)
    tables.table(root)
    assert all(key.far == ("GL" in key.memories) for key in tables.tables)
    for key in list(tables.tables):
        states = (replace(o, stride=None if o.layout.is_packed else stride) for o in key.operands)
        raw = replace(key, operands=tuple(states), far=True)
        assert raw.canonical(SMALL) == key
        assert (tables._solve(raw) == tables.tables[key]).all()
