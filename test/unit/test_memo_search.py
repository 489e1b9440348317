"""The search with a memo: the same answers, found sooner, and where each came from."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from memo_support import SMALL, in_child, search_with, solved
from search_support import with_limits

from morello_mlir import locks
from morello_mlir.actions import child_specs, key_of
from morello_mlir.errors import ScheduleError
from morello_mlir.memo import locate
from morello_mlir.memo import memo as memo_module
from morello_mlir.memo.coordinates import key_text, memo_key
from morello_mlir.memo.families import Family
from morello_mlir.memo.memo import Layer, Memo, memo_for
from morello_mlir.memo.reach import Reach, SharedTables
from morello_mlir.memo.record import IMPOSSIBLE
from morello_mlir.memo.store import Store
from morello_mlir.memo.table import reached_record, records_of
from morello_mlir.memo.version import space_of
from morello_mlir.search.schedule import Hole, children, parse, to_text
from morello_mlir.search.solve import Search, search_for
from morello_mlir.search.tables import Tables
from morello_mlir.spec import Spec, matmul_spec
from morello_mlir.targets import TARGETS

SIZES = st.integers(1, 40)


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(m=SIZES, k=SIZES, n=SIZES, lhs=st.booleans(), b=st.sampled_from([1, 3]))
def test_answers_are_the_same_with_and_without(tmp_path, m, k, n, lhs, b):
    """The file grows from example to example: tables of other sizes, on and off the scale, serve each other."""
    spec = matmul_spec(m, k, n, b=b, lhs="col_major" if lhs else "row_major")
    plain = Search(SMALL).solve(spec)
    path = tmp_path / "memo.sqlite"
    for search in (search_with(path), search_with(path)):
        found = search.solve(spec)
        assert (found.cost, to_text(found.schedule)) == (plain.cost, to_text(plain.schedule))
    assert found.source == "memo"


def check_found_again(path, spec):
    """A search and then the memo say what a search without one says. Returns the solution."""
    plain = Search(SMALL).solve(spec)
    found = [search_with(path).solve(spec) for _ in range(2)]
    assert [f.source for f in found] == ["search", "memo"]
    assert all((f.cost, f.schedule) == (plain.cost, plain.schedule) for f in found)
    return plain


@pytest.mark.parametrize("const", [("rhs",), ("lhs", "rhs")])
def test_constant_operands(tmp_path, const):
    """What to pack ahead follows from the answers for the layouts."""
    spec = matmul_spec(5, 12, 16, b=2, const=const)
    assert "pack_ahead" in to_text(check_found_again(tmp_path / "memo", spec).schedule)


def test_threads_that_may_share_a_batch(tmp_path):
    spec = replace(matmul_spec(8, 12, 16, b=4), serial=False, threads=2)
    check_found_again(tmp_path / "memo", spec)


@pytest.fixture(scope="module")
def scale_memo(tmp_path_factory):
    """A memo of the whole tables of one goal of the scale."""
    path = tmp_path_factory.mktemp("memo") / "memo"
    search_with(path).solve(matmul_spec(16, 12, 24))
    return path


@settings(max_examples=4)
@given(m=SIZES, k=st.integers(1, 20), n=SIZES)
@example(m=13, k=7, n=29)
@example(m=24, k=16, n=32)
def test_tables_of_other_goals_are_not_read(scale_memo, m, k, n):
    """It takes longer than solving them. Those of an interrupted search of the same goal are."""
    search, store = search_with(scale_memo), Store(scale_memo, writable=False)
    tables, space = Tables({"m": m, "k": k, "n": n}, SMALL.limits, SMALL), space_of(SMALL)
    same = (m, k, n) == (16, 12, 24)
    assert search.memo._was_begun(tables) == same == store.has_shape(space, f"scale {m}x{k}x{n}", f"off {m}x{k}x{n}")
    spec = matmul_spec(m, k, n)
    assert search.cost(spec) == Search(SMALL).cost(spec)


def test_tables_of_the_same_goal_are_read(scale_memo):
    """What an interrupted search has solved is not solved again."""
    memo, root = search_with(scale_memo).memo, key_of(matmul_spec(16, 12, 24, accumulate=True), SMALL)
    dims = {"m": 16, "k": 12, "n": 24}
    plain, begun = Tables(dims, SMALL.limits, SMALL), Tables(dims, SMALL.limits, SMALL, source=memo)
    solved = plain.table(root)
    assert memo._was_begun(begun) and (memo.load(begun, root) == solved).all()
    assert not Store(None).has_shape(space_of(SMALL), "scale 16x12x24")
    kept = Store(None)
    kept.put(space_of(SMALL), "small", records_of(plain, root))
    assert kept.has_shape(space_of(SMALL), "scale 16x12x24") and not kept.has_shape("other/1", "scale 16x12x24")


def forged(folder, spec, action):
    """A memo for `spec` whose records say `action` everywhere, checksums right."""
    search_with(folder / "memo").solve(spec)
    store = Store(folder / "memo")
    for row in list(store.rows()):
        for record in store.get(row.space, row.key):
            store.put(row.space, row.target, [replace(record, actions=tuple(action for _ in record.actions))])
    return folder / "memo"


def test_a_policy_that_cannot_be_is_not_believed(tmp_path):
    """A record whose checksum is right, with tiles that are larger than what they tile."""
    spec = matmul_spec(8, 8, 16)
    assert search_with(forged(tmp_path, spec, "tile m by 96")).cost(spec) == Search(SMALL).cost(spec)


def test_sources_in_order(tmp_path):
    user, shipped, spec = tmp_path / "user", tmp_path / "shipped", matmul_spec(8, 12, 16)
    assert search_with(shipped).solve(spec).source == "search"
    search = search_with(user, shipped)
    assert [search.solve(spec).source, search.solve(spec).source] == ["shipped", "shipped"]
    search.memo.user.store.close()
    assert search_with(user).solve(spec).source == "search"
    assert search_with(user, shipped).solve(spec).source == "memo"
    assert [r["shipped"] for r in Store(user).runs()] == [0, 0, 1]
    assert Store(user).runs()[-1]["memory"] == 1


def test_whole_tables_serve_other_goals(tmp_path):
    path = tmp_path / "memo"
    search_with(path).solve(matmul_spec(12, 8, 32))
    # Not contiguous goals of other sizes: the same row stride classes.
    spec = matmul_spec(6, 8, 32)
    assert search_with(path).solve(spec).source == "memo"
    # A hole under moves: its limits are what those left.
    search, whole = search_with(path), matmul_spec(12, 8, 32)
    best = search.solve(whole)
    goal, node = whole.canonical(), best.schedule
    for _ in range(4):
        ((_, goal), *_), node = child_specs(goal, node, SMALL), children(node)[0]
    assert search.solve(goal).source == "memo" and search.solve(goal).cost == search.price(goal, node)


def test_goals_with_limits_of_their_own_are_not_mixed_up(tmp_path):
    path, spec = tmp_path / "memo", matmul_spec(6, 8, 16)
    tight = with_limits(spec, L1=4, VRF=5)
    for goal in (tight, spec, tight, spec):
        assert search_with(path).solve(goal).cost == Search(SMALL).cost(goal)


def test_a_wrong_schedule_is_not_believed(tmp_path):
    """A record whose checksum is right but whose action is not legal here is passed over."""
    spec = matmul_spec(8, 8, 16)
    assert search_with(forged(tmp_path, spec, "kernel dot_fma")).solve(spec).cost == Search(SMALL).cost(spec)


def test_batches_of_states():
    layer = Layer(Store(None), "memo", SMALL)
    tables = solved(8, 8, 16)
    key = next(k for k in tables.tables if k.limit_axis() == "L1" and "VRF" not in k.memories)
    layer.store.put(layer.space, "small", records_of(tables, key))
    points = np.array([(m, k, n, x) for m in (1, 5, 8) for k in (2, 8) for n in (3, 16) for x in range(6)])
    one_by_one = [layer.action(memo_key(key, SMALL), {"m": m, "k": k, "n": n}, x) for m, k, n, x in points.tolist()]
    assert layer.actions_at(memo_key(key, SMALL), points) == one_by_one
    assert any(one_by_one) and None in one_by_one


def keep(reach, path):
    """Writes the states that optima pass through into a memo. Returns the records."""
    batch = [reached_record(k, s, reach.target) for k, s in reach.tabled()]
    Store(path).put(space_of(reach.target), reach.target.name, batch)
    return batch


def check_shipped(path, spec):
    """A memo that is shipped answers, with what the search finds."""
    found = search_with(None, path).solve(spec)
    assert found.source == "shipped" and found.schedule == Search(SMALL).solve(spec).schedule


def test_a_reached_policy_answers_its_goals(tmp_path):
    """What is shipped: nothing but the states that optima pass through."""
    reach = Reach(SMALL)
    family = Family(max_size=8, threads=(1, 2))
    for task in family.tasks(SMALL):
        shared = SharedTables(1 << 20)
        for root in task:
            reach.add(root, shared)
    keep(reach, tmp_path / "memo")
    assert len(list(family.goals())) == 4 * 6**3
    for lhs, rhs, m, k, n in list(family.goals())[::40]:
        spec = matmul_spec(m, k, n, lhs=lhs, rhs=rhs)
        for goal in (spec, replace(spec, serial=False, threads=2)):
            check_shipped(tmp_path / "memo", goal)


def test_a_reached_policy_answers_goals_with_weights(tmp_path):
    """With the panels that a weight may be packed in, besides the layout in which it comes."""
    reach = Reach(SMALL)
    for task in Family(max_size=4, layouts=(("row_major", "col_major"), ("row_major", "const"))).tasks(SMALL):
        shared = SharedTables(1 << 20)
        for root in task:
            reach.add(root, shared)
    keep(reach, tmp_path / "memo")
    for sizes in ((4, 4, 4), (3, 2, 4), (1, 4, 2)):
        check_shipped(tmp_path / "memo", matmul_spec(*sizes, rhs="col_major", const=("rhs",)))


def test_a_reached_policy_knows_what_cannot_be_done(tmp_path):
    """Outputs past the caches take all of k at once, which not every layout of the weight allows."""
    reach = Reach(SMALL)
    goals = {(32, 2, 32), (32, 24, 16), (24, 32, 32)}
    for task in Family(max_size=32, layouts=(("row_major", "row_major"), ("row_major", "const"))).tasks(SMALL):
        shared = SharedTables(1 << 20)
        for root in task:
            if wanted := tuple(goals.intersection(root.sizes)):
                reach.add(replace(root, sizes=wanted), shared)
    past = [states for key, states in reach.tabled() if key.streams]
    assert any(IMPOSSIBLE in states.labels for states in past)
    assert any(set(states.labels) - {IMPOSSIBLE} for states in past)
    keep(reach, tmp_path / "memo")
    for sizes in goals:
        check_shipped(tmp_path / "memo", matmul_spec(*sizes, const=("rhs",)))


def test_another_cost_model_is_another_space(tmp_path):
    path, spec = tmp_path / "memo", matmul_spec(6, 4, 8)
    search_with(path).solve(spec)
    other = replace(SMALL, costs=replace(SMALL.costs, call=77.0))
    assert Layer(Store(path), "memo", other).records(memo_key(next(iter(solved(8, 8, 16).tables)), other)) == []
    assert space_of(other) != space_of(SMALL)


def test_which_file(monkeypatch, tmp_path):
    monkeypatch.setenv("MORELLO_MEMO", "off")
    assert locate.user_path() is None and memo_for(SMALL) is None
    assert locate.user_path(tmp_path / "x") == tmp_path / "x"
    monkeypatch.setenv("MORELLO_MEMO", str(tmp_path / "y"))
    assert locate.user_path("") == tmp_path / "y" and locate.user_path("OFF") is None
    monkeypatch.delenv("MORELLO_MEMO")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert locate.user_path() == tmp_path / "morello-mlir" / "memo.sqlite"
    assert search_for(SMALL, tmp_path / "y") is search_for(SMALL, str(tmp_path / "y")) is not search_for(SMALL, "off")


def test_a_hole_is_found_in_the_memo(tmp_path):
    path, spec = tmp_path / "memo", matmul_spec(8, 6, 16)
    text = "to_accum\ntile n by 8:\n    ?"
    first, second = (search_with(path).complete(spec, parse(text)) for _ in range(2))
    assert first.schedule == second.schedule and first.cost == second.cost
    assert search_with(path).complete(spec, Hole()).source == "search"


def test_a_warm_look_up_needs_neither_numba_nor_a_table(tmp_path):
    """A fresh process reads a 2048^3 schedule by decoding the records on its way, each once."""
    path = tmp_path / "memo"
    spec = matmul_spec(2048, 2048, 2048)
    reach = Reach(TARGETS["avx2"])
    tasks = Family(max_size=2048, layouts=(("row_major", "row_major"),)).tasks(TARGETS["avx2"])
    roots = [r for task in tasks for r in task if (2048, 2048, 2048) in r.sizes]
    assert [r.key.streams for r in roots].count(True) == 1
    for root in roots:
        reach.add(replace(root, sizes=((2048, 2048, 2048),)), SharedTables(1 << 20))
    batch = keep(reach, path)
    code = (
        "import sys; from morello_mlir.memo import store; from morello_mlir.search import solve, tables\n"
        "record, read, solved = store.Row.record, [], []\n"
        "store.Row.record = lambda row: (read.append(row.name), record(row))[1]\n"
        "tables.Tables.table = lambda self, key: solved.append(key)\n"
        "from morello_mlir.spec import matmul_spec; from morello_mlir.targets import TARGETS\n"
        "found = solve.search_for(TARGETS['avx2'], sys.argv[1]).solve(matmul_spec(2048, 2048, 2048))\n"
        "print(found.source, 'numba' in sys.modules, len(solved), len(read), len(set(read)))"
    )
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True, env=env)
    source, numba, solved, read, different = done.stdout.split()
    assert (source, numba, solved) == ("memo", "False", "0")
    assert 0 < int(read) <= len(batch) and read == different
    assert search_for(reach.target, path).solve(spec).schedule
    assert {key_text(root.key) for root in roots} <= {r.key for r in batch}


def test_what_was_solved_is_on_disk_when_the_answer_is_there(tmp_path):
    """Tools end by os._exit: nothing may be left to a thread."""
    path = tmp_path / "memo"
    search_with(path).solve(matmul_spec(8, 8, 16))
    assert len(list(Store(path, writable=False).rows())) > 20


def test_a_goal_that_nothing_implements_is_an_error(tmp_path):
    """An input in registers: no batch can be tiled there, with a memo or without."""
    spec = Spec.parse("Matmul([2, 5, 5, 5], (f32, VRF, row_major), (f32, GL, row_major), (f32, GL, row_major), serial)")
    with pytest.raises(ScheduleError, match="no implementation"):
        search_for(TARGETS["avx2"], tmp_path / "memo").solve(spec)


@pytest.mark.parametrize(("threads", "batch"), [(2, 1), (4, 1), (2, 3), (4, 2)])
def test_goals_of_several_threads_are_remembered(tmp_path, monkeypatch, threads, batch):
    """From whole tables: the same answers, also where a batch is shared, which no table has."""
    cheap = replace(SMALL, costs=replace(SMALL.costs, fork_join=10.0))
    spec = replace(matmul_spec(9, 4, 10, b=batch), serial=False, threads=threads)
    first, second = (search_with(tmp_path / "memo", target=cheap).solve(spec) for _ in range(2))
    assert (first.source, second.source) == ("search", "memo")
    assert first.cost == second.cost and "parallel tile" in to_text(first.schedule)
    assert second.schedule == first.schedule


# ---------------------------------------------------------------- writing


def test_nobody_waits_for_what_is_written(tmp_path):
    """The answer is there before its tables are on disk; they are when the memo is flushed."""
    store, spec = Store(tmp_path / "memo"), matmul_spec(8, 8, 16)
    memo, gate = Memo(SMALL, store, wait=False), threading.Event()
    memo._executor().submit(gate.wait)
    assert Search(SMALL, memo).solve(spec).source == "search"
    assert list(store.rows()) == []
    gate.set()
    memo.flush()
    assert search_with(tmp_path / "memo").solve(spec).source == "memo"


def test_long_searches_are_written_as_they_go(tmp_path, monkeypatch):
    """So that an interrupted one can be gone on with."""
    monkeypatch.setattr(memo_module, "LONG_SEARCH", 0.0)
    store = Store(tmp_path / "memo")
    memo = Memo(SMALL, store, wait=False)
    search = Search(SMALL, memo)
    key, dims, left = search.point(matmul_spec(8, 8, 16, accumulate=True))
    search.tables_of(key, dims, left).table(key)
    assert memo._pending and len(memo._unwritten) <= 1


def test_tables_that_wait_are_limited(tmp_path, monkeypatch):
    monkeypatch.setattr(memo_module, "MOST_PENDING", 3)
    memo = Memo(SMALL, Store(tmp_path / "memo"), wait=False)
    Search(SMALL, memo).solve(matmul_spec(8, 8, 16))
    assert len(memo._pending) <= 3 and list(memo.user.store.rows())


@pytest.mark.skipif(sys.platform != "linux", reason="threads have priorities of their own there")
def test_the_writer_gives_way_and_nobody_waits_for_it(tmp_path):
    """What it has not begun is written by who waits."""
    memo, gate, held = Memo(SMALL, Store(tmp_path / "memo"), wait=False), threading.Event(), threading.Event()
    writer = memo._executor()
    niceness = writer.submit(lambda: os.getpriority(os.PRIO_PROCESS, threading.get_native_id())).result()
    assert niceness > os.getpriority(os.PRIO_PROCESS, 0) or niceness == 19
    writer.submit(lambda: (held.set(), gate.wait()))
    held.wait()
    Search(SMALL, memo).solve(matmul_spec(8, 8, 16))
    memo.flush()
    gate.set()
    assert search_with(tmp_path / "memo").solve(matmul_spec(8, 8, 16)).source == "memo"


def test_nothing_is_written_while_others_are_not_to_be_disturbed(tmp_path, monkeypatch):
    memo, written = Memo(SMALL, Store(tmp_path / "memo"), wait=False), threading.Event()
    with memo_module.undisturbed():
        memo._submit(written.set)
        assert not written.wait(0.1)
    assert written.wait(10)
    written.clear()
    # Who keeps it up for long, or waits for the writer meanwhile, is not waited for.
    monkeypatch.setattr(memo_module, "LONGEST_WAIT", 0.05)
    with memo_module.undisturbed():
        memo._submit(written.set)
        memo.flush()
        assert written.is_set()


@pytest.mark.parametrize("ends", [True, False], ids=["that end", "that take too long to be waited for"])
def test_a_fork_while_tables_are_written(tmp_path, monkeypatch, ends):
    """A child has none of its parent's threads, and waits for none of their locks; the fork waits for the file's."""
    if not ends:
        monkeypatch.setattr(locks, "_TRIES", 3)
    memo, gate, held = Memo(SMALL, Store(tmp_path / "memo"), wait=False), threading.Event(), threading.Event()

    def hold() -> None:
        with memo.user.store._lock:
            held.set()
            gate.wait()

    search = Search(SMALL, memo)
    assert search.solve(matmul_spec(8, 8, 16)).source == "search"
    memo._executor().submit(hold)
    held.wait()
    if ends:
        threading.Timer(0.1, gate.set).start()
    child = in_child(lambda: os._exit(search.solve(matmul_spec(8, 12, 16)).source != "search"))
    assert gate.is_set() == ends
    try:
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        gate.set()
    memo.flush()
    assert search_with(tmp_path / "memo").solve(matmul_spec(8, 8, 16)).source == "memo"


@pytest.mark.parametrize("end", ["", "from morello_mlir.search.solve import keep_memos; keep_memos(); os._exit(0)"])
def test_a_process_that_ends_has_kept_what_it_found(tmp_path, end):
    code = (
        "import os, sys; from morello_mlir.search.solve import search_for; from morello_mlir.spec import matmul_spec\n"
        "from morello_mlir.targets import get_target\n"
        "print(search_for(get_target('avx2'), sys.argv[1]).solve(matmul_spec(5, 6, 7)).source, flush=True)\n" + end
    )
    command = [sys.executable, "-c", code, str(tmp_path / "memo")]
    found = [subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() for _ in range(2)]
    assert found == ["search", "memo"]
    assert [p.name for p in tmp_path.iterdir()] == ["memo"], "no log is left behind"
