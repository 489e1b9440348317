"""The k cheapest schedules of nests: against all of a small space, and beside the search."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from nest_support import depthwise, layernorm, run, softmax, want

from morello_mlir.errors import ScheduleError, SpecError
from morello_mlir.nests import NestSpec
from morello_mlir.nests.actions import check_tree
from morello_mlir.nests.leaf import LeafSearch
from morello_mlir.nests.search import NestSearch
from morello_mlir.search.schedule import parse, to_text, walk
from morello_mlir.targets import get_target

AVX2 = get_target("avx2")
NESTS = [
    softmax(8, 2048),
    softmax(9, 100, "parallel 2"),
    layernorm(16, 768),
    depthwise(8, 9, 20),
    NestSpec.parse('Map([64, 48], (f32, GL, [1, 64]), (f32, GL, [48, 1]), "y = x0", parallel 2)'),
]


def named(spec: NestSpec) -> str:
    return f"{spec.function}-{'x'.join(map(str, spec.dims))}-{spec.threading}"


def form(node):
    """A schedule without how its passes are unrolled."""
    lines = to_text(node).splitlines()
    return "\n".join(line.split(" unroll")[0] + " streaming" * ("streaming" in line) for line in lines)


@pytest.mark.parametrize("spec", NESTS, ids=named)
def test_costs_rise_and_forms_differ(spec):
    search = NestSearch(AVX2)
    found = search.cheapest(spec, 12)
    best = NestSearch(AVX2).solve(spec)
    assert (found[0].cost, found[0].schedule) == (best.cost, best.schedule) and len(found) == 12
    assert [s.cost for s in found] == sorted(s.cost for s in found)
    assert len({form(s.schedule) for s in found}) == len(found)
    for solution in found:
        check_tree(solution.spec, solution.schedule, AVX2)
        assert NestSearch(AVX2).price(solution.spec, solution.schedule) == solution.cost
        assert parse(to_text(solution.schedule)) == solution.schedule
    assert [s.schedule for s in NestSearch(AVX2).cheapest(spec, 5)] == [s.schedule for s in found[:5]]


@pytest.mark.parametrize("spec", [softmax(3, 40), layernorm(2, 24)], ids=named)
def test_leaves_are_the_cheapest_of_all(spec):
    """Every form, its outputs past the caches or not, priced by itself."""
    spec = NestSearch(AVX2).goal(spec.canonical())
    search, legal = LeafSearch(spec, AVX2), {}
    for _, plan in map(search.choose, search.options()):
        node = search.node(plan)
        plain = [replace(p, streaming=False) for p in node.passes]
        past = [replace(p, streaming="y" in p.values) for p in node.passes]
        for passes in (node.passes, plain, past):
            form = replace(node, passes=tuple(passes))
            with suppress(ScheduleError):
                legal[form] = NestSearch(AVX2).price(spec, form)
    found = search.cheapest(10**6)
    assert {node: cost for cost, node in found} == legal
    assert [cost for cost, _ in found] == sorted(legal.values())
    assert found[0] == search.best()


@pytest.mark.parametrize("spec", [softmax(5, 37), layernorm(3, 20)], ids=named)
def test_all_compute_the_same(spec):
    found = NestSearch(AVX2).cheapest(spec, 25)
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=o.span(found[0].spec.dims)).astype("f4") for o in found[0].spec.inputs]
    for solution in found:
        for got, expected in zip(
            run(solution.spec, solution.schedule, AVX2, arrays), want(solution.spec, arrays), strict=True
        ):
            np.testing.assert_allclose(got, expected, rtol=3e-5, atol=1e-6)


def test_loops_above_leaves_are_among_them():
    found = NestSearch(AVX2).cheapest(softmax(64, 4096, "parallel 2"), 30)
    shared = {s.label() for f in found for s in walk(f.schedule) if s.label().startswith("parallel tile")}
    assert len(shared) > 1


def test_what_cannot_be_searched():
    with pytest.raises(SpecError, match="a size is 0"):
        NestSearch(AVX2).cheapest(NestSpec.parse('Map([0], (f32, GL, [1]), (f32, GL, [1]), "y = x0", serial)'), 2)
