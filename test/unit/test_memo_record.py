"""Policies and records: what comes back is what was solved; what was touched is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memo_support import SMALL, records, solved

from morello_mlir.actions import TileAction
from morello_mlir.memo import policy, policy_numba, policy_numpy
from morello_mlir.memo.boxes import volume_of
from morello_mlir.memo.coordinates import key_text, memo_key, parse_key
from morello_mlir.memo.record import PLAIN_BYTES, DamagedRecord, action_from, decode, encode
from morello_mlir.memo.states import States
from morello_mlir.memo.table import block_of, count_specs, reached_record, records_of, states_of
from morello_mlir.search.tables import AXES, Tables

GOALS = [(13, 7, 24), (8, 8, 16), (5, 12, 3)]


@pytest.mark.parametrize("goal", GOALS, ids=str)
def test_a_policy_stands_for_its_costs_exactly(goal):
    tables = solved(*goal)
    for key in list(tables.tables):
        choice, actions = policy.choose(tables, key)
        assert (policy.price(tables, key, choice, actions) == tables.table(key)).all()


def test_compiled_and_numpy_policies_are_equal():
    tables = solved(13, 7, 24)
    for key in list(tables.tables):
        (a, actions), (b, _) = (policy.choose(tables, key, impl) for impl in (policy_numba, policy_numpy))
        assert (a == b).all()
        assert (policy.price(tables, key, a, actions, policy_numpy) == tables.table(key)).all()


@pytest.mark.parametrize("goal", GOALS, ids=str)
@pytest.mark.parametrize("costs", [False, True])
def test_a_table_comes_back_from_its_records(goal, costs):
    tables = solved(*goal)
    for key in list(tables.tables):
        made = [decode(r.key, encode(r)) for r in records_of(tables, key, costs=costs)]
        assert (block_of(tables, key, made) == tables.table(key)).all()


def test_costs_are_kept_on_request():
    tables = solved(8, 8, 16)
    key = next(iter(tables.tables))
    (record,) = (decode(r.key, encode(r)) for r in records_of(tables, key, costs=True))
    assert (record.boxes.costs(volume_of(record.sizes)) == tables.table(key)).all()


def test_sizes_off_the_scale_keep_to_themselves():
    tables = solved(13, 7, 24)
    key = next(k for k in tables.tables if "GL" in k.memories)
    scale, off = records_of(tables, key)
    assert not scale.is_off_scale and off.is_off_scale
    assert scale.sizes[0] == (1, 2, 3, 4, 6, 8, 12) and scale.shape == "scale 12x6x24" and off.shape == "off 13x7x24"
    assert scale.boxes.cells + off.boxes.cells == np.isfinite(tables.table(key)).sum()
    assert block_of(tables, key, [scale]) is None and block_of(tables, key, [off]) is None
    # The same boxes as for a goal on the scale.
    inner = solved(12, 6, 24)
    assert any((r.boxes.actions() == scale.boxes.actions()).all() for r in records_of(inner, key))


def test_larger_tables_answer_smaller_goals():
    large, small = solved(16, 16, 32), Tables({"m": 8, "k": 12, "n": 16}, SMALL.limits, SMALL)
    for key in list(large.tables):
        block = block_of(small, key, records_of(large, key))
        number = [[large.number[d][s] for s in small.sizes[d]] for d in AXES]
        assert (block == large.table(key)[np.ix_(*number)]).all()
    assert block_of(large, key, records_of(small, key)) is None


def test_specs_are_counted_with_every_limit():
    tables = solved(8, 8, 16)
    for record in records(8, 8, 16):
        key = parse_key(record.key)
        assert key == memo_key(key, SMALL) and key_text(key) == record.key
        assert record.specs == count_specs(key, record.sizes, record.boxes.actions() >= 0, SMALL)
    assert math.prod(map(len, tables.sizes.values())) > 0 and PLAIN_BYTES == 26


def test_what_was_reached_is_all_that_is_known():
    tables = solved(8, 8, 16)
    key = next(k for k in tables.tables if k.limit_axis() == "L2")
    known = {(2, 4, 8, 3): TileAction("m", 1), (8, 8, 16, 4): TileAction("n", 8), (1, 8, 3, 0): TileAction("k", 4)}
    states = States()
    for point, action in known.items():
        states.add(np.array([point]), action)
    record = decode(key_text(key), encode(reached_record(key, states, SMALL)))
    assert not record.complete and record.shape == "reached" and block_of(tables, key, [record]) is None
    read = states_of([record])
    found = {
        tuple(p): action_from(read.labels[i], key) for p, i in zip(read.points.tolist(), read.numbers, strict=True)
    }
    assert found == known


POINTS = st.tuples(st.integers(1, 5), st.integers(1, 1 << 17), st.integers(1, 5), st.integers(0, 16))


@given(st.lists(st.tuples(st.lists(POINTS, min_size=1, max_size=6), st.sampled_from("abc")), max_size=6), POINTS)
def test_states_are_a_mapping_where_the_last_word_counts(batches, other):
    states, want = States(), {}
    for points, label in batches:
        states.add(np.array(points), label)
        want |= dict.fromkeys(points, label)
        assert len(states) == len(want)
    found = {tuple(p): states.labels[i] for p, i in zip(states.points.tolist(), states.numbers, strict=True)}
    assert found == want and list(found) == sorted(found)
    asked = [*want, other, other]
    assert list(map(tuple, states.unknown(np.array(asked)))) == [p for p in [other] if p not in want]


@settings(max_examples=60)
@given(st.data())
def test_a_touched_record_is_refused(data):
    record = data.draw(st.sampled_from(records(5, 12, 3)))
    blob = bytearray(encode(record))
    at = data.draw(st.integers(0, len(blob) - 1))
    blob[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(DamagedRecord, match="checksum"):
        decode(record.key, bytes(blob))


def test_a_record_is_of_one_key_only():
    a, b = records(8, 8, 16)[:2]
    with pytest.raises(DamagedRecord, match="checksum"):
        decode(b.key, encode(a))
    with pytest.raises(DamagedRecord, match="checksum"):
        decode(a.key, encode(a)[:-3])
