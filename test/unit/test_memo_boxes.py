"""Boxes: exact, disjoint, as few as any greedy merge gives; quick to look up."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from morello_mlir.memo import boxes as module
from morello_mlir.memo import merge_numba, merge_numpy
from morello_mlir.memo.boxes import NOTHING, compress, normalised, volume_of

SHAPES = st.tuples(*[st.integers(1, 6)] * 4)
BLOCKS = SHAPES.flatmap(lambda s: hnp.arrays(np.int16, s, elements=st.integers(-1, 2)))


def greedy(block, order):
    """Cells, then runs along one axis after the other: a list of [lo, hi, value]."""
    out = [[list(at), list(at), int(block[at])] for at in np.ndindex(*block.shape) if block[at] >= 0]
    for axis in order:
        merged = []
        for lo, hi, value in sorted(out, key=lambda b: ([x for i, x in enumerate(b[0]) if i != axis], b[0][axis])):
            last = merged[-1] if merged else None
            faces = last and all((last[0][i], last[1][i]) == (lo[i], hi[i]) for i in range(block.ndim) if i != axis)
            if faces and last[2] == value and last[1][axis] + 1 == lo[axis]:
                last[1][axis] = hi[axis]
            else:
                merged.append([lo, hi, value])
        out = merged
    return out


@settings(max_examples=30)
@given(BLOCKS)
def test_every_cell_comes_back_and_no_greedy_order_is_better(block):
    found = compress(block)
    assert (found.actions() == block).all()
    assert found.cells == (block >= 0).sum()
    assert all(len(found) <= len(greedy(block, order)) for order in permutations(range(4)))


@settings(max_examples=60)
@given(BLOCKS, st.permutations(range(4)))
def test_the_compiled_merge_is_the_reference(block, order):
    flat = block.reshape(-1).astype(np.int32)
    start = np.nonzero(flat >= 0)[0]
    a = b = (start, np.ones((len(start), 4), np.int32), flat[start])
    last = np.full(block.size, 7, np.int32)
    for axis in order:
        a, b = (m.merge_axis(*x, block.shape, axis, last) for m, x in ((merge_numba, a), (merge_numpy, b)))
        assert all((x == y).all() for x, y in zip(a, b, strict=False))


@settings(max_examples=40)
@given(BLOCKS)
def test_compiled_painting_is_the_reference(block):
    boxes = compress(block)
    grids = [np.full(block.shape, -1, np.int32) for _ in range(2)]
    merge_numba.paint(grids[0], boxes.lo, boxes.hi, boxes.action)
    merge_numpy.paint(grids[1], boxes.lo, boxes.hi, boxes.action)
    assert (grids[0] == grids[1]).all() and (grids[0] == boxes.actions()).all()


def test_without_numba_the_reference_serves(monkeypatch):
    block = np.arange(24).reshape(2, 3, 4, 1) // 6
    compiled = compress(block)
    monkeypatch.setattr(module, "merge_kernel", lambda: merge_numpy)
    assert len(compress(block)) == len(compiled) < 24


@settings(max_examples=40)
@given(
    SHAPES.flatmap(lambda s: hnp.arrays(np.int64, s, elements=st.integers(0, 1 << 53))),
    st.lists(st.integers(1, 4096), min_size=18, max_size=18),
    st.integers(-1, 3),
)
def test_costs_come_back_exactly(costs, sizes, hole):
    """Cost per volume is a reduced fraction, whatever the numbers: no rounding."""
    axes = [sorted(set(sizes[i * 6 : i * 6 + 6]))[: costs.shape[i]] for i in range(3)]
    costs = costs[: len(axes[0]), : len(axes[1]), : len(axes[2])].astype(np.float64)
    costs[costs % 5 == hole] = np.inf
    volume = volume_of(axes)
    top, bottom = normalised(costs, volume)
    assert (np.gcd(top, bottom) == 1).all()
    found = compress(np.where(np.isfinite(costs), 0, NOTHING), costs, volume)
    assert (found.costs(volume) == costs).all()


def test_repeated_work_shares_a_box():
    """Twice the size at twice the cost is the same normalised cost."""
    sizes = ([1, 2, 4, 8], [3], [5])
    volume = volume_of(sizes)
    assert len(compress(np.zeros((4, 1, 1, 1), int), volume * 7.0, volume)) == 1


def test_a_policy_has_no_costs():
    with pytest.raises(ValueError, match="policy only"):
        compress(np.zeros((1, 1, 1, 1), int)).costs(np.ones(1))


@settings(max_examples=20)
@given(BLOCKS)
def test_points_and_batches_find_the_same_boxes(block):
    found = compress(block)
    points = np.array(list(np.ndindex(*(s + 1 for s in block.shape))))
    many = found.find_many(points)
    assert many.tolist() == [found.find(tuple(p)) for p in points.tolist()]


def test_batches_look_at_no_box_by_itself(monkeypatch):
    rng = np.random.default_rng(0)
    found = compress(rng.integers(0, 3, (20, 20, 20, 17)))
    points = rng.integers(0, 17, (10000, 4))
    found.find_many(points[:1])
    grid = found.grid
    monkeypatch.setattr(module.Boxes, "find", None)
    assert np.array_equal(found.find_many(points), grid[tuple(points.T)])
    assert found.grid is grid
