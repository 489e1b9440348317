"""k-best enumeration against the whole of a small space."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import islice, product

import pytest
from search_support import choices, key_and_sizes
from small_target import CHEAP_FORKS, SMALL

from morello_mlir.actions import check_tree, child_specs
from morello_mlir.errors import SpecError
from morello_mlir.lowering.plan import Planner
from morello_mlir.search.schedule import LOOPS, children, parse
from morello_mlir.search.solve import Search
from morello_mlir.spec import matmul_spec
from morello_mlir.targets import TARGETS
from morello_mlir.tuning.kbest import LEAST_SHARE, KBest, varies, way_of

#: A space that can be listed: no packing, so few tables.
TINY = replace(CHEAP_FORKS, name="tiny", pack_rows=(), pack_vectors=())


def every_way(spec, target):
    """The least cost of every way to do `spec`, ascending, from all of its programs, by plain recursion over Specs."""
    planner = Planner(target)

    @cache
    def optimum(goal):
        search = Search(target)
        tree = next(iter(KBest(goal, target, search))).schedule
        return search.price(goal, tree), tree

    @cache
    def programs(goal):
        key, dims = key_and_sizes(goal, target)
        found = {}
        for action, smaller in choices(goal, target):
            options = [programs(child) if varies(action, dims) else [optimum(child)] for _, child in smaller]
            for parts in product(*options):
                costs = [cost for cost, _ in parts] + [0] * (len(action.children(key, dims)) - len(parts))
                cost = int(action.total(key, dims, target, costs))
                tree = action.node([body for _, body in parts])
                program = planner.plan(goal, tree), way_of(goal, tree, target)
                if program not in found or cost < found[program][0]:
                    found[program] = (cost, tree)
        return list(found.values())

    least = {}
    for cost, tree in programs(spec.canonical()):
        way = way_of(spec.canonical(), tree, target)
        least[way] = min(cost, least.get(way, cost))
    return sorted(least.values()), least


SPECS = (
    *(matmul_spec(1, 2, 2), matmul_spec(2, 1, 2), matmul_spec(2, 2, 1, b=2)),
    replace(matmul_spec(2, 1, 1), serial=False, threads=2),
)


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_all_ways_in_order(spec):
    costs, least = every_way(spec, TINY)
    found = list(KBest(spec, TINY))
    assert [s.cost for s in found] == costs
    assert {way_of(spec.canonical(), s.schedule, TINY): s.cost for s in found} == least


def test_most_of_the_whole_is_done_in_that_way():
    """Not in a corner that is cut off."""

    def share(spec, tree):
        below = [s for _, s in child_specs(spec, tree, TARGETS["avx2"])]
        rest = isinstance(tree, LOOPS) and tree.rest is not None
        own = 1 - spec.size(tree.dim) % tree.size / spec.size(tree.dim) if rest else 1
        return own * share(below[0], children(tree)[0]) if below else 1

    spec = matmul_spec(512, 64, 512)
    assert all(share(spec, s.schedule) > LEAST_SHARE**2 for s in islice(KBest(spec, TARGETS["avx2"]), 1, 12))


def test_packs_are_ways_too():
    """What packs copy, and for which sizes."""
    target = replace(TARGETS["avx2"], l1=SMALL.l1, l2=SMALL.l2)
    spec = matmul_spec(64, 8, 64)
    ways = [way_of(spec, s.schedule, target) for s in islice(KBest(spec, target), 40)]
    assert len(set(ways)) == len(ways)
    assert any(step[0] == "Move" for way in ways for step in way)


NEAR = "move lhs to L2\nmove rhs to L2\nmove out to L2\nmove lhs to L1\nmove out to L1\n"
PACK = "move rhs to L2 as [b, n/8, k, n%8]\n"
WAYS = {
    "block": NEAR + "tile m by 4:\n tile n by 8:\n  tile m by 2:\n   KERNEL",
    "no block": NEAR + "tile n by 8:\n tile m by 2:\n  KERNEL",
    "near": "tile n by 8:\n " + NEAR.replace("\n", "\n ") + "tile m by 2:\n  KERNEL",
    "other loop": NEAR + "tile m by 2:\n tile n by 8:\n  KERNEL",
    "other tile": NEAR + "tile n by 8:\n tile m by 4:\n  KERNEL",
    "other depth": NEAR + "tile n by 8:\n split k by 4:\n  tile m by 2:\n   KERNEL",
    "other kernel": NEAR + "tile n by 8:\n tile m by 2:\n  kernel scalar",
    "pack": PACK + NEAR.replace("move rhs to L2\n", "") + "tile n by 8:\n tile m by 2:\n  KERNEL",
    "pack of a tile": "tile n by 8:\n " + PACK + " " + NEAR.replace("move rhs to L2\n", "").replace("\n", "\n ")
    + "tile m by 2:\n  KERNEL",
}  # fmt: skip


def test_what_is_a_way_of_its_own():
    def way(name):
        text = WAYS[name]
        pad = " " * (len(text.splitlines()[-1]) - len(text.splitlines()[-1].lstrip()))
        tree = parse("to_accum\n" + text.replace("KERNEL", f"move out to VRF\n{pad}kernel broadcast_fma"))
        return way_of(matmul_spec(8, 8, 16), tree, TARGETS["avx2"])

    assert way("block") == way("no block") == way("near")
    others = WAYS.keys() - {"block", "near"}
    assert len({way(name) for name in others}) == len(others)


def test_remainders_are_no_ways():
    kernel = "move out to VRF\n kernel broadcast_fma"
    text = f"to_accum\n{NEAR}tile m by 4:\n {kernel}\nrest:\n "
    first, second = (
        way_of(matmul_spec(5, 8, 8), parse(text + rest), TARGETS["avx2"]) for rest in (kernel, "kernel scalar")
    )
    assert first == second == (("around", "m"), ("move out to VRF",), ("broadcast_fma", 1, 4, 8, 8))


@pytest.mark.parametrize("target", [SMALL, TARGETS["avx2"]], ids=lambda t: t.name)
def test_the_first_is_the_optimum_and_costs_rise(target):
    spec = matmul_spec(12, 10, 40)
    best = Search(target).solve(spec)
    found = list(islice(KBest(spec, target), 12))
    assert found[0].cost == best.cost
    assert [s.cost for s in found] == sorted(s.cost for s in found)
    assert len({way_of(spec, s.schedule, target) for s in found}) == len(found)
    for solution in found:
        check_tree(spec, solution.schedule, target)
        assert Search(target).price(spec, solution.schedule) == solution.cost


def test_it_is_deterministic():
    first, second = (list(islice(KBest(matmul_spec(6, 5, 16), SMALL), 20)) for _ in range(2))
    assert [s.schedule for s in first] == [s.schedule for s in second]


def test_what_cannot_be_searched():
    with pytest.raises(SpecError, match="a size is 0"):
        KBest(matmul_spec(0, 1, 1), SMALL)
