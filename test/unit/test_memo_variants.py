"""Tables that differ in row stride classes, packed together and taken apart again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from memo_support import search_with
from small_target import SMALL

from morello_mlir.actions import key_of
from morello_mlir.errors import SpecError
from morello_mlir.memo import manage, precompute
from morello_mlir.memo.boxes import compress
from morello_mlir.memo.coordinates import key_text, parse_key
from morello_mlir.memo.families import Family
from morello_mlir.memo.record import decode, encode
from morello_mlir.memo.store import Store
from morello_mlir.memo.table import states_of
from morello_mlir.memo.variants import key_at, packed, pattern_of, table_at, tables_of
from morello_mlir.memo.version import space_of
from morello_mlir.search.solve import Search
from morello_mlir.search.tables import Tables
from morello_mlir.spec import Layout, Spec, TensorSpec, matmul_spec
from morello_mlir.targets import TARGETS

AVX2 = TARGETS["avx2"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Every table of small goals in three layouts, for the small machine."""
    store = Store(tmp_path_factory.mktemp("memo") / "memo")
    layouts = (("row_major", "row_major"), ("col_major", "row_major"), ("row_major", "col_major"))
    for task in precompute.tasks_of([Family(max_size=16, layouts=layouts)], SMALL, store, True, 1 << 26):
        precompute.keep(store, SMALL, precompute.work(task))
    return store


def single(store):
    return {r.key: r.record() for r in store.rows()}


def test_patterns_read_back():
    for lhs in ("row_major", "col_major"):
        key = key_of(matmul_spec(64, 128, 256, lhs=lhs, rhs="col_major", accumulate=True), AVX2)
        text, classes = pattern_of(key)
        assert key_at(text, classes) == key and pattern_of(key_at(text, (256, 512, 1024)))[0] == text
        assert classes == ((0, 512, 1024) if lhs == "row_major" else (256, 512, 1024))
    with pytest.raises(SpecError):
        key_at("any nonsense", (0, 0, 0))


def test_strided_operands_have_no_pattern():
    """Two operands with n innermost and different row strides; and no unpacked operand at all."""
    row, panels = Layout.row_major(3), (Layout.packed(3, 1, 6), Layout.packed(3, 2, 16))
    ops = [TensorSpec("f32", "GL", row, s) for s in (256, 512, 1024)]
    assert pattern_of(key_of(Spec("MatmulAccum", (1, 8, 8, 8), tuple(ops)), AVX2)) is None
    ops[:2] = (TensorSpec("f32", "L2", p) for p in panels)
    key = key_of(Spec("MatmulAccum", (1, 8, 8, 8), tuple(ops)), AVX2)
    assert pattern_of(key)[1] == (0, 0, 1024)


def test_every_table_comes_back(whole):
    tables = single(whole)
    groups = {}
    for key, record in tables.items():
        pattern = pattern_of(parse_key(key))
        if pattern:
            groups.setdefault(pattern[0], {})[pattern[1]] = record
    assert max(map(len, groups.values())) >= 4
    boxes = 0
    for name, members in groups.items():
        pack = packed(name, members)
        again = decode(name, encode(pack))
        boxes += len(again.boxes)
        assert again.shape == "packed" and again.specs == sum(r.specs for r in members.values())
        for classes, record in members.items():
            one = table_at(again, classes)
            assert (one.key, one.sizes, one.shape) == (record.key, record.sizes, record.shape)
            labels = [np.array([*r.actions, ""])[r.boxes.actions()] for r in (one, record)]
            assert (labels[0] == labels[1]).all()
        assert len(list(tables_of(again))) == len(members)
        assert table_at(again, (1, 2, 3)) is None
    assert boxes < sum(len(r.boxes) for r in tables.values())


def test_a_packed_memo_answers_as_before(whole, tmp_path):
    copy = Store(tmp_path / "copy")
    assert manage.merge(copy, whole).added == len(single(whole))
    before, after = manage.pack(copy)
    assert after < before and len(list(copy.rows())) < len(list(whole.rows()))
    assert sum(r.specs for r in copy.rows()) == sum(r.specs for r in whole.rows())
    copy.close()
    for spec in (matmul_spec(4, 16, 12), matmul_spec(16, 3, 8, rhs="col_major"), matmul_spec(16, 16, 16)):
        found = search_with(copy.path).solve(spec)
        assert found.source == "memo" and found.schedule == Search(SMALL).solve(spec).schedule
    # Packed again: nothing changes. Merged into another file: the tables it stands for.
    assert manage.pack(Store(copy.path))[1] == after
    apart = Store(tmp_path / "apart")
    assert manage.merge(apart, Store(copy.path)).added == len(single(whole))
    assert manage.merge(apart, whole).conflicts == 0
    assert {key_text(parse_key(r.key)) for r in apart.rows()} == {r.key for r in whole.rows()}
    assert {r.space for r in apart.rows()} == {space_of(SMALL)}


def all_states(store):
    """Every state that a file of reached records knows: {(key, m, k, n, limit): step}."""
    out = {}
    for row in store.rows():
        for table in tables_of(row.record()):
            states = states_of([table])
            for point, number in zip(states.points.tolist(), states.numbers, strict=True):
                out[(table.key, *point)] = states.labels[number]
    return out


def test_states_are_packed_and_nothing_is_made_up(tmp_path):
    """What is shipped: the states that optima reach, of all row stride classes together."""
    store = Store(tmp_path / "memo")
    tasks = precompute.tasks_of([Family(max_size=12)], SMALL, store, False, 1 << 26)
    for task in tasks[:3]:
        precompute.keep(store, SMALL, precompute.work(task))
    before, rows = all_states(store), len(list(store.rows()))
    manage.pack(store)
    assert all_states(store) == before and len(list(store.rows())) < rows
    assert {r.shape for r in store.rows()} == {"packed reached", "reached"}
    # What is found later joins the pack.
    precompute.keep(store, SMALL, precompute.work(tasks[3]))
    more = all_states(store)
    manage.pack(store)
    assert all_states(store) == more and len(more) > len(before)
    store.close()
    root = tasks[0].roots[0]
    m, k, n = root.sizes[-1]
    search = search_with(None, store.path)
    found = search.memo.find(root.key, {"b": 1, "m": m, "k": k, "n": n}, SMALL.limits)
    tables = Tables({"m": m, "k": k, "n": n}, SMALL.limits, SMALL)
    assert found is not None and found[1] == tables.at(root.key, {"m": m, "k": k, "n": n}, SMALL.limits)


def test_whole_tables_that_none_contains_are_all_kept(whole, tmp_path):
    """Two tables of one key, each longer than the other along some axis: one is packed, the other stays."""
    store = Store(tmp_path / "memo")
    row, record = max(((r, r.record()) for r in whole.rows()), key=lambda x: len(x[1].boxes))
    for cut in ((2, 9, 9), (9, 2, 9)):
        sizes = tuple(axis[:c] for axis, c in zip(record.sizes, cut, strict=True))
        policy = record.boxes.actions()[: len(sizes[0]), : len(sizes[1]), : len(sizes[2])]
        store.put(row.space, row.target, [replace(record, sizes=sizes, boxes=compress(policy))])
    before = all_states(store)
    manage.pack(store)
    assert all_states(store) == before and {r.shape.split()[0] for r in store.rows()} <= {"packed", "scale"}
