"""The memos that the package ships: for the targets as they are, and right."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from morello_mlir.memo.families import Family, element_types
from morello_mlir.memo.locate import PACKAGED, SHIPPED, shipped_path, shipped_targets
from morello_mlir.memo.memo import Memo
from morello_mlir.memo.store import Store
from morello_mlir.memo.version import space_of
from morello_mlir.search.solve import Search
from morello_mlir.spec import Spec, matmul_spec
from morello_mlir.targets import TARGETS, get_target
from morello_mlir.tools.precompute import SHIPPED_PARTS

MAX_BYTES = 8 << 20
REBUILD = "rebuild it: morello precompute --ship"
#: For which machines and numbers of threads there are answers of f32 goals.
F32 = [
    (name, int(threads))
    for part in SHIPPED_PARTS
    if part.dtypes == ("f32",)
    for name in part.targets
    for threads in part.threads.split(",")
]

each = pytest.mark.parametrize("name", PACKAGED)


@pytest.fixture
def shipped(name: str) -> Memo:
    target = get_target(name)
    return Memo(target, None, Store(shipped_path(target), writable=False))


@pytest.mark.parametrize("name", TARGETS)
def test_it_is_for_the_targets_as_they_are(name):
    path = shipped_path(TARGETS[name])
    assert path.is_file() and path.stat().st_size <= MAX_BYTES, REBUILD
    spaces = {n: space_of(t) for n, t in shipped_targets(name).items()}
    found = {row.space for row in Store(path, writable=False).rows()}
    assert {space for n, space in spaces.items() if n in PACKAGED} <= found <= set(spaces.values()), REBUILD


@pytest.mark.parametrize(("name", "threads"), F32)
def test_every_goal_is_answered(name, threads, shipped):
    if name not in PACKAGED and space_of(shipped.target) not in {row.space for row in shipped.layers[0].store.rows()}:
        pytest.skip("it did not fit the file")
    goals = list(Family().goals())
    assert len(goals) == 4 * 24**3
    for lhs, rhs, m, k, n in random.Random(1).sample(goals, 100):
        spec = matmul_spec(m, k, n, lhs=lhs, rhs=rhs)
        spec = spec if threads == 1 else replace(spec, serial=False, threads=threads)
        if (m + n) % 3 == 0:
            spec = _with_weights(spec)
        found = shipped.find(*Search(shipped.target).point(spec))
        assert found is not None and found[2] == "shipped", f"{spec}: {REBUILD}"


@each
@pytest.mark.parametrize("part", SHIPPED_PARTS[1:3], ids=lambda part: part.dtypes[0])
def test_goals_of_other_element_types_are_answered(name, part, shipped):
    if not part.is_for(shipped.target):
        pytest.skip("not shipped for it")
    rng = random.Random(3)
    goals = [g for g in Family(max_size=part.max_size).goals() if g[0] == "row_major"]
    for dtype in part.dtypes:
        for _, rhs, m, k, n in rng.sample(goals, 12):
            plain, types = matmul_spec(m, k, n, rhs=rhs), element_types(dtype)
            operands = tuple(replace(o, dtype=t) for o, t in zip(plain.operands, types, strict=True))
            spec = replace(plain, operands=operands)
            weights = [_with_weights(spec)] if rhs == "row_major" else []
            for goal in (spec, replace(spec, serial=False, threads=2), *weights):
                found = shipped.find(*Search(shipped.target).point(goal))
                assert found is not None and found[2] == "shipped", f"{goal}: {REBUILD}"


def _with_weights(spec: Spec) -> Spec:
    """`spec` with a row-major lhs and a constant rhs, which may be packed ahead."""
    lhs, rhs, out = spec.operands
    return replace(spec, operands=(replace(lhs, layout=out.layout), replace(rhs, const=True), out))


@each
def test_answers_are_what_a_search_finds(name, shipped):
    """A sample: the same schedule, and the price that a fresh search gives."""
    rng = random.Random(2)
    goals = [g for g in Family().goals() if g[2] * g[3] * g[4] <= 1 << 21]
    for lhs, rhs, m, k, n in rng.sample(goals, 3):
        spec, search = matmul_spec(m, k, n, lhs=lhs, rhs=rhs), Search(shipped.target)
        node, cost, _ = shipped.find(*search.point(spec))
        fresh = search.solve(spec)
        assert (fresh.cost, fresh.schedule) == (cost, node) and search.price(spec, node) == cost, REBUILD


def test_each_stands_for_other_machines():
    """No two are planned for alike, and every CPU that a host is told to be is among them."""
    assert len({get_target(n).fingerprint for n in SHIPPED}) == len(SHIPPED)
    fingerprints = {get_target(n).fingerprint for n in SHIPPED}
    common = ("znver2", "znver3", "znver4", "znver5", "skylake", "cascadelake", "icelake-server", "sapphirerapids")
    assert all(get_target(n).fingerprint in fingerprints for n in common)


def test_a_stale_one_is_ignored(tmp_path: Path):
    """Records of another fingerprint answer nothing."""
    from memo_support import SMALL, records

    store = Store(tmp_path / "memo")
    store.put("0000000000000000/1", "small", records(8, 8, 16))
    assert Memo(SMALL, None, store).find(*Search(SMALL).point(matmul_spec(8, 8, 16))) is None
