"""k-best enumeration against the whole of a small space."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import islice, product

import pytest
from small_target import CHEAP_FORKS, SMALL

from morello_mlir.actions import check_tree, child_specs, explore, key_of
from morello_mlir.errors import ScheduleError, SpecError
from morello_mlir.lowering.plan import Planner
from morello_mlir.search.schedule import LOOPS, Hole
from morello_mlir.search.solve import Search
from morello_mlir.spec import matmul_spec
from morello_mlir.targets import TARGETS
from morello_mlir.tuning.kbest import KBest

#: A space that can be listed: no packing, so few tables.
TINY = replace(CHEAP_FORKS, name="tiny", pack_rows=(), pack_vectors=())


def every_plan(spec, target):
    """The least cost of every distinct program of `spec`, ascending, by plain recursion over Specs."""
    planner = Planner(target)

    @cache
    def programs(goal):
        key, dims = key_of(goal, target), dict(zip(goal.info.dims, goal.dims, strict=True))
        found = {}
        for action in explore(key, dims, target):
            node = action.node([Hole(), Hole()])
            if isinstance(node, LOOPS) and dims[node.dim] % node.size == 0:
                node = replace(node, rest=None)
            try:
                smaller = child_specs(goal, node, target)
            except ScheduleError:
                continue
            for parts in product(*(programs(child) for _, child in smaller)):
                costs = [cost for cost, _ in parts] + [0] * (len(action.children(key, dims)) - len(parts))
                cost = int(action.total(key, dims, target, costs))
                tree = action.node([body for _, body in parts])
                plan = planner.plan(goal, tree)
                if plan not in found or cost < found[plan][0]:
                    found[plan] = (cost, tree)
        return sorted(found.values(), key=lambda p: p[0])

    return [cost for cost, _ in programs(spec.canonical())]


SPECS = (
    *(matmul_spec(1, 2, 2), matmul_spec(2, 1, 3), matmul_spec(2, 2, 1, b=2)),
    replace(matmul_spec(3, 1, 2), serial=False, threads=2),
)


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_all_programs_in_order(spec):
    assert [s.cost for s in KBest(spec, TINY)] == every_plan(spec, TINY)


@pytest.mark.parametrize("target", [SMALL, TARGETS["avx2"]], ids=lambda t: t.name)
def test_the_first_is_the_optimum_and_costs_rise(target):
    spec = matmul_spec(12, 10, 40)
    best = Search(target).solve(spec)
    found = list(islice(KBest(spec, target), 12))
    assert found[0].cost == best.cost
    assert [s.cost for s in found] == sorted(s.cost for s in found)
    planner = Planner(target)
    assert len({planner.plan(spec, s.schedule) for s in found}) == len(found)
    for solution in found:
        check_tree(spec, solution.schedule, target)
        assert Search(target).price(spec, solution.schedule) == solution.cost


def test_it_is_deterministic():
    first, second = (list(islice(KBest(matmul_spec(6, 5, 16), SMALL), 20)) for _ in range(2))
    assert [s.schedule for s in first] == [s.schedule for s in second]


def test_what_cannot_be_searched():
    with pytest.raises(SpecError, match="a size is 0"):
        KBest(matmul_spec(0, 1, 1), SMALL)
