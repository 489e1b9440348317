"""Each rule of the actions: one legal step, and one refusal with its reason."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from search_support import block_and_point

from morello_mlir.actions import child_specs, closure, explore, footprint, key_of, remaining, scale
from morello_mlir.actions.space import check_tree
from morello_mlir.errors import ScheduleError, SpecError
from morello_mlir.search.schedule import Hole, Kernel, Move, PackAhead, Parallel, Split, Tile, ToAccum, parse
from morello_mlir.spec import Spec, matmul_spec
from morello_mlir.targets import TARGETS, get_target

AVX2 = TARGETS["avx2"]
HOLE = Hole()


def accum(m=64, k=64, n=64, lhs="GL, row_major", rhs="GL, row_major", out="GL, row_major", tail=""):
    return Spec.parse(f"MatmulAccum([1, {m}, {k}, {n}], (f32, {lhs}), (f32, {rhs}), (f32, {out}), serial{tail})")


def test_tile_leaves_full_tiles_and_a_remainder():
    (q, main), (one, rest) = child_specs(accum(m=100), Tile("m", 48, HOLE, HOLE), AVX2)
    assert (q, main.dims, one, rest.dims) == (2, (1, 48, 64, 64), 1, (1, 4, 64, 64))


def test_tile_inherits_the_row_stride():
    ((_, child),) = child_specs(accum(n=512), Tile("n", 16, HOLE), AVX2)
    assert child.row_class(1) == 2048 and child.operands[1].row_stride == 2048


def test_to_accum():
    ((count, child),) = child_specs(matmul_spec(4, 5, 6), ToAccum(HOLE), AVX2)
    assert count == 1 and child == matmul_spec(4, 5, 6, accumulate=True)


def test_moves_take_lines():
    ((_, child),) = child_specs(accum(), Move("lhs", "L2", None, HOLE), AVX2)
    assert child.operands[0].memory == "L2" and dict(child.limits)["L2"] == 4096 - 256


def test_a_pack_changes_the_layout():
    ((_, child),) = child_specs(accum(), Move("rhs", "L2", "[b, n/16, k, n%16]", HOLE), AVX2)
    assert str(child.operands[1].layout.text("bkn")) == "[b, n/16, k, n%16]"


PANELS = "[b, n/16, k, n%16]"


def test_packing_ahead_stands_above_a_batch():
    spec = matmul_spec(4, 5, 6, b=3, const=("lhs", "rhs"))
    ((_, packed),) = child_specs(spec, PackAhead("rhs", PANELS, HOLE), AVX2)
    assert str(packed) == (
        "Matmul([3, 4, 5, 6], (f32, GL, row_major, const), (f32, GL, [b, n/16, k, n%16]), (f32, GL, row_major), serial)"
    )
    ((_, accumulating),) = child_specs(packed, ToAccum(HOLE), AVX2)
    assert accumulating.operands[0].const
    ((_, one),) = child_specs(accumulating, Tile("b", 1, HOLE), AVX2)
    assert one.dims == (1, 4, 5, 6) and not any(t.const for t in one.operands)


def test_other_steps_forget_what_is_constant():
    spec = matmul_spec(64, 64, 64, const=("rhs",), accumulate=True)
    for node in (
        Tile("m", 32, HOLE),
        Split("k", 32, HOLE),
        Move("rhs", "L2", None, HOLE),
        Move("lhs", "L2", None, HOLE),
    ):
        ((_, child),) = child_specs(spec, node, AVX2)
        assert not child.operands[1].const


L1 = {"lhs": "L1, row_major", "rhs": "L1, row_major", "out": "L1, row_major"}


def shared(**changes):
    """A goal of four threads."""
    spec = replace(matmul_spec(64, 64, 64, accumulate=True), serial=False, threads=4)
    return replace(spec, **changes).canonical()


@pytest.mark.parametrize(
    ("spec", "node", "why"),
    [
        (matmul_spec(4, 4, 4), Split("k", 2, HOLE), "split k by 2: .*put to_accum above"),
        (matmul_spec(4, 4, 4, accumulate=True), ToAccum(HOLE), "already accumulates"),
        (
            replace(accum(m=4, n=16, **L1 | {"out": "VRF, row_major"}), function="Matmul"),
            ToAccum(HOLE),
            "nothing is in",
        ),
        (accum(), Tile("k", 8, HOLE), "k is split, not tile"),
        (accum(), Split("m", 8, HOLE), "m is tile, not split"),
        (accum(), Tile("z", 8, HOLE), "no dim 'z'"),
        (accum(), Tile("m", 64, HOLE), "must be less than m=64"),
        (accum(), Tile("m", 48, HOLE), "needs a 'rest:'"),
        (accum(), Tile("m", 32, HOLE, HOLE), "divides: there is no rest"),
        (accum(rhs="L2, [b, n/16, k, n%16]"), Tile("n", 8, HOLE), "panels of 16"),
        (matmul_spec(4, 4, 4, b=3, accumulate=True), Tile("b", 2, HOLE, HOLE), "tiled by 1"),
        (matmul_spec(4, 4, 4, b=3, accumulate=True), Move("lhs", "L2", None, HOLE), "tile b by 1 first"),
        (accum(), Move("bias", "L2", None, HOLE), "no operand 'bias'"),
        (accum(), Move("lhs", "L7", None, HOLE), "unknown memory 'L7'"),
        (accum(), Move("lhs", "L1", None, HOLE), "one memory inwards"),
        (accum(lhs="L2, row_major"), Move("lhs", "L1", None, HOLE), "no operand is left in GL"),
        (accum(lhs="L1, row_major", rhs="L1, row_major"), Move("out", "L2", "col_major", HOLE), "not repacked"),
        (accum(m=4096, k=4096), Move("lhs", "L2", None, HOLE), "of L2, which has 4096 left"),
        (accum(), Move("rhs", "L2", "[b, k/16, n, k%16]", HOLE), "can be packed as"),
        (accum(), Move("rhs", "L1", "[b, n/16, k, n%16]", HOLE), "lands in GL or L2"),
        (accum(rhs="GL, [b, n/8, k, n%8]"), Move("rhs", "L2", "[b, n/16, k, n%16]", HOLE), "packed already"),
        (accum(), Move("rhs", "L2", "nonsense", HOLE), "layout 'nonsense'"),
        (accum(m=4, n=16, **L1), Move("lhs", "VRF", None, HOLE), "only the output"),
        (accum(m=64, n=16, **L1), Move("out", "VRF", None, HOLE), "of VRF, which has 16 left"),
        (accum(out="L1, row_major"), Move("out", "VRF", None, HOLE), "in caches"),
        (accum(), Kernel("magic"), "no such kernel"),
        (accum(), Kernel("broadcast_fma"), "lhs must be in L2 or L1, not GL"),
        (accum(m=4, n=16, **L1), Kernel("broadcast_fma"), "out must be in VRF"),
        (
            accum(m=4, n=16, **L1 | {"out": "VRF, row_major", "rhs": "L1, [b, n/1, k, n%1]"}),
            Kernel("broadcast_fma"),
            "rhs needs unit stride along n",
        ),
        (accum(rhs="L2, [b, n/1, k, n%1]", lhs="L2, col_major"), Kernel("dot_fma"), "unit stride along k|in L2 or L1"),
        (accum(m=6, n=24, **L1 | {"out": "VRF, row_major"}), Kernel("broadcast_fma"), "would spill|registers"),
        (accum(m=6, n=16, **L1 | {"out": "VRF, row_major"}, tail=", [VRF=2]"), Kernel("broadcast_fma"), "registers"),
        (accum(m=4, n=8, **L1 | {"out": "VRF, row_major", "rhs": "L1, col_major"}), Kernel("broadcast_fma"), "along n"),
        (
            replace(accum(m=4, n=16, **L1), function="Matmul"),
            Move("out", "VRF", None, HOLE),
            "move out to VRF: Matmul does not accumulate: put to_accum above",
        ),
        (accum(m=4, n=16, **L1), Kernel("dot_fma"), "rhs needs unit stride along k"),
        (
            accum(m=4, n=16, **L1 | {"lhs": "L1, col_major", "rhs": "L1, col_major"}),
            Kernel("dot_fma"),
            "lhs needs unit stride along k",
        ),
        (
            accum(m=4, n=16, **L1 | {"lhs": "L1, row_major, gapped", "rhs": "L1, col_major"}),
            Kernel("dot_fma"),
            "lhs needs unit stride along k",
        ),
        (replace(accum(m=4, n=16, **L1), dims=(2, 4, 8, 16)), Kernel("scalar"), "tile b by 1 first"),
        (accum(m=4, n=16, **L1 | {"rhs": "L1, col_major"}), Kernel("dot_fma"), "registers"),
        (accum(m=4, n=16, **L1 | {"rhs": "L1, [b, n/8, k, n%8]"}), Kernel("scalar"), "across a panel of 8"),
        (
            accum(m=4, n=4, k=16, **L1 | {"lhs": "L1, [b, k/8, m, k%8]"}),
            Kernel("scalar"),
            "k=16 reaches across a panel of 8",
        ),
        (shared(function="Matmul"), Parallel("k", 8, HOLE, adds=True), "put to_accum above"),
        (shared(), Parallel("k", 8, HOLE), "k is split, not tile"),
        (shared(), Parallel("m", 8, HOLE, adds=True), "m is tile, not split"),
        (shared(), Parallel("k", 48, HOLE, HOLE, adds=True), "2 trips do not give each of 4 threads one"),
        (shared(), Parallel("k", 8, HOLE, threads=2, adds=True), "all threads together share k"),
        (shared(dims=(1, 512, 64, 512)), Parallel("k", 8, HOLE, adds=True), "too many for each thread"),
        (shared(dims=(2, 4, 64, 4)), Parallel("k", 8, HOLE, adds=True), "tile b by 1 first"),
        (matmul_spec(1, 1, 1), Kernel("scalar"), "put to_accum above"),
        (accum(), Move("out", "WC", None, HOLE), "adds to its output"),
        (matmul_spec(16, 16, 16), Move("lhs", "WC", None, HOLE), "only the output"),
        (matmul_spec(16, 16, 15), Move("out", "WC", None, HOLE), "do not begin at lines"),
        (replace(accum(out="WC, row_major"), function="Matmul"), ToAccum(HOLE), "written once"),
        (replace(accum(out="WC, row_major"), function="Matmul"), Split("k", 2, HOLE), "put to_accum above"),
        (replace(accum(out="WC, row_major"), function="Matmul"), Move("out", "L2", None, HOLE), "is in WC"),
        (accum(), PackAhead("rhs", PANELS, HOLE), "pack_ahead rhs as .*: rhs is not constant here"),
        (accum(rhs="GL, row_major, const"), PackAhead("lhs", PANELS.replace("n", "m"), HOLE), "lhs is not constant"),
        (accum(rhs="GL, row_major, const"), PackAhead("out", PANELS, HOLE), "unknown dimension 'k'"),
        (accum(rhs="GL, row_major, const"), PackAhead("rhs", "[b, k/16, n, k%16]", HOLE), "can be packed as"),
        (accum(rhs=f"GL, {PANELS}, const"), PackAhead("rhs", PANELS, HOLE), "packed already"),
        (accum(rhs="GL, row_major, const"), PackAhead("bias", PANELS, HOLE), "no operand 'bias'"),
    ],
)
def test_illegal_steps_name_the_step_and_the_reason(spec, node, why):
    with pytest.raises(ScheduleError, match=why) as caught:
        child_specs(spec, node, AVX2)
    assert node.label() in str(caught.value)


def test_no_step_follows_registers_but_a_kernel():
    spec = accum(m=4, n=16, **L1 | {"out": "VRF, row_major"})
    for node in (Tile("m", 2, HOLE), Split("k", 8, HOLE), Move("lhs", "L1", None, HOLE)):
        with pytest.raises(ScheduleError, match="only a kernel may follow"):
            child_specs(spec, node, AVX2)
    assert child_specs(spec, Kernel("broadcast_fma"), AVX2) == []


def test_what_no_kernel_adds_up_has_no_key():
    text = "MatmulAccum([1, 2, 3, 4], (f32, L2, row_major), (f64, L2, row_major), (f32, L2, row_major), serial)"
    with pytest.raises(SpecError, match="no kernels for the dtypes"):
        child_specs(Spec.parse(text), Kernel("scalar"), AVX2)


def test_tiles_start_at_panels_of_every_operand():
    spec = accum(lhs="L2, [b, k/8, m, k%8]", rhs="L2, [b, k/12, n, k%12]")
    assert key_of(spec, AVX2).pack_width("k") == 24 and key_of(spec, AVX2).pack_width("m") == 1
    with pytest.raises(ScheduleError, match="panels of 24"):
        child_specs(spec, Split("k", 12, HOLE, HOLE), AVX2)


def test_a_schedule_is_checked_to_its_leaves():
    text = "tile m by 4:\n  move lhs to L2\n  move rhs to L2\n  move out to L2\n  kernel broadcast_fma"
    with pytest.raises(ScheduleError, match="kernel broadcast_fma: out must be in VRF"):
        check_tree(accum(), parse(text), AVX2)


@given(st.integers(1, 5000))
def test_closure_holds_every_tile_and_remainder(n):
    sizes = closure(n)
    assert sizes == sorted(set(sizes)) and sizes[-1] == n
    for size in sizes:
        for step in scale(size):
            assert step in sizes and (size % step == 0 or size % step in sizes)


def test_the_scale():
    assert scale(20) == [1, 2, 3, 4, 6, 8, 12, 16]


@given(st.tuples(*[st.integers(1, 300)] * 3), st.sampled_from(("avx2", "avx512")))
def test_arrays_and_points_agree(dims, target):
    """One declaration serves whole blocks and single points: cost, uses and conditions are the same numbers."""
    t = TARGETS[target]
    m, k, n = dims
    grid, point = block_and_point(m, k, n)
    for mems in (("GL", "GL", "GL"), ("L2", "L2", "L2"), ("L2", "L1", "L1"), ("L1", "L1", "VRF")):
        spec = Spec.parse(
            f"MatmulAccum([1, {m}, {k}, {n}], (f32, {mems[0]}, row_major), (f32, {mems[1]}, row_major), "
            f"(f32, {mems[2]}, row_major), serial)"
        )
        key = key_of(spec, t)
        for action in explore(key, point, t):
            block = np.broadcast_to(action.cost(key, grid, t), (2, 2, 2))
            assert block[1, 1, 1] == action.cost(key, point, t)
            for memory, amount in action.uses(key, point, t).items():
                assert np.broadcast_to(action.uses(key, grid, t)[memory], (2, 2, 2))[1, 1, 1] == amount
            left = dict(t.limits)
            many = action.conditions(key, grid, left, t)
            one = action.conditions(key, point, left, t)
            assert [bool(np.broadcast_to(c, (2, 2, 2))[1, 1, 1]) for c, _ in many] == [bool(c) for c, _ in one]


@pytest.mark.parametrize(
    ("rows", "stride", "sets", "lines"), [(8, 64, 64, 8), (64, 4096, 64, 4096), (8, 2048, 64, 256)]
)
def test_power_of_two_strides_crowd_few_sets(rows, stride, sets, lines):
    key = key_of(accum(m=rows, k=16, lhs=f"L2, row_major, s{stride}"), AVX2)
    assert footprint(key, 0, {"b": 1, "m": rows, "k": 16, "n": 1}).occupied(sets) == lines


def test_what_is_left_is_whole_steps():
    spec = accum(m=5, k=16)
    key = key_of(spec, AVX2)
    dims = dict(zip("bmkn", spec.dims, strict=True))
    action = next(a for a in explore(key, dims, AVX2) if a.label() == "move lhs to L2")
    left = remaining(action, key, dims, AVX2.limits, AVX2)
    assert left["L2"] == 4096 - 256


MEMORIES = [
    ("GL", "GL", "GL"),
    ("L2", "L2", "L2"),
    ("L1", "L2", "L1"),
    ("L1", "L1", "L1"),
    ("L2", "L1", "VRF"),
    ("L1", "L2", "VRF"),
]


@pytest.mark.parametrize("memories", MEMORIES, ids="-".join)
@given(
    st.sampled_from((4, 8, 16, 32, 64, 512, 2048, 4096, 8192)),
    st.tuples(st.integers(1, 40), st.integers(1, 300), st.integers(1, 80)),
    st.sampled_from(("avx2", "avx512", "znver5")),
    st.sampled_from(("row_major", "[b, n/32, k, n%32]")),
)
def test_equal_keys_have_equal_numbers(memories, stride, dims, target, rhs):
    """What the canonical key forgets changes no cost, no occupancy and no condition."""
    t, point = get_target(target), dict(zip("bmkn", (1, *dims), strict=True))
    lhs, out = (f"{memories[i]}, row_major, s{stride}" for i in (0, 2))
    rhs = f"{memories[1]}, {rhs}" + f", s{stride}" * (rhs == "row_major")
    key = key_of(accum(*dims, lhs=lhs, rhs=rhs, out=out), t)
    same = key.canonical(t)
    assert [a.label() for a in explore(key, point, t)] == [a.label() for a in explore(same, point, t)]
    for action in explore(key, point, t):
        assert action.cost(key, point, t) == action.cost(same, point, t)
        assert action.uses(key, point, t) == action.uses(same, point, t)
