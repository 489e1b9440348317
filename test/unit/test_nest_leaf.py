"""The search for `rows` leaves out what cannot be cheapest, and shares what nests have in common: its answers are those
of a search that does neither."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nest_support import columns, depthwise, layernorm, softmax

from morello_mlir.nests import NestSpec
from morello_mlir.nests.cost import RowsModel
from morello_mlir.nests.instructions import Instructions
from morello_mlir.nests.leaf import LeafSearch
from morello_mlir.nests.search import NestSearch
from morello_mlir.nests.space import Structures
from morello_mlir.nests.sweeps import Families, Sweeps
from morello_mlir.search.nest_steps import Rows
from morello_mlir.search.schedule import to_text, walk
from morello_mlir.targets import fixed, get_target

TARGETS = [get_target("avx2"), get_target("avx512"), get_target("znver5")]

_sizes = st.integers(1, 40)
_nests = st.one_of(
    st.builds(softmax, st.integers(1, 9), st.sampled_from([7, 48, 300, 5000])),
    st.builds(layernorm, st.integers(1, 9), st.sampled_from([16, 100, 2048])),
    st.builds(columns, _sizes, _sizes),
    st.builds(depthwise, st.integers(1, 12), st.integers(1, 12), st.sampled_from([3, 16, 40, 96]), st.integers(1, 3)),
    st.builds(
        lambda m, n: NestSpec.parse(
            f'Map([{m}, {n}], (f32, GL, [1, {m}]), (f32, GL, [{n}, 1]), "y = exp(x0)", serial)'
        ),
        _sizes,
        _sizes,
    ),
)


def slowly(spec: NestSpec, target, near: bool) -> tuple[int, str]:
    """Every form in every layout, priced by a model that has seen nothing else."""
    search = LeafSearch(spec, target, near=near)
    best = None
    for vector, vectors, tile in search.cuts(None):
        points = search.points(vector, vectors, tile)
        for structure in Structures(spec, target).known():
            for form in search.forms(structure):
                option = search.option(form, vector, points)
                if option is None:
                    continue
                cycles, plan = search.choose(option)
                assert option.least <= cycles
                if best is None or cycles < best[0]:
                    best = cycles, plan
    assert best is not None
    assert RowsModel(spec, target, near=near).cost(best[1]) == fixed(best[0])
    return fixed(best[0]), to_text(search.node(best[1]))


@settings(max_examples=25, deadline=None)
@given(spec=_nests, target=st.sampled_from(TARGETS), near=st.booleans())
def test_what_is_left_out_is_not_cheapest(spec, target, near):
    found = LeafSearch(spec, target, near=near).best()
    assert found is not None
    assert (found[0], to_text(found[1])) == slowly(spec, target, near)


@settings(max_examples=25, deadline=None)
@given(specs=st.lists(_nests, min_size=2, max_size=4), target=st.sampled_from(TARGETS))
def test_nests_of_a_family_share_without_harm(specs, target):
    families = Families(target)
    for spec in specs:
        shared = LeafSearch(spec, target, sweeps=families.of(spec)).best()
        assert shared == LeafSearch(spec, target).best()


@settings(max_examples=20, deadline=None)
@given(spec=_nests, target=st.sampled_from(TARGETS), share=st.floats(0.5, 1.5))
def test_only_what_is_cheaper(spec, target, share):
    best = LeafSearch(spec, target).best()
    assert best is not None
    below = share * best[0] / 1000
    found = LeafSearch(spec, target).best(below=below)
    assert found == (best if best[0] < fixed(below) else None) or best[0] == fixed(below)


def test_families_differ_in_sizes_of_parallel_dims_alone():
    family = Instructions.family
    image = depthwise(8, 9, 32)
    strides = [o.strides for o in image.operands]
    shorter = NestSpec(
        (4, 9, 32, 3, 3), image.scan, image.operands, image.body, serial=True, threads=0, far=True, among=2
    )
    assert [o.strides for o in shorter.operands] == strides
    assert family(image) == family(shorter)
    assert family(image) != family(depthwise(8, 9, 48))
    assert family(softmax(8, 64)) == family(softmax(4, 64))
    assert family(softmax(8, 64)) != family(softmax(8, 65))
    families = Families(TARGETS[0])
    assert families.of(image) is families.of(shorter)
    assert families.of(softmax(8, 64)) is not families.of(image)


def test_corrections_are_counted_where_a_block_was_scaled():
    """Two structures load the same stored value; only in one was it scaled against a block's maximum."""
    spec, target = softmax(8, 8192), TARGETS[2]
    sweeps = Sweeps(spec, target)
    numbers: dict[tuple[object, ...], set[int]] = {}
    for plan in Structures(spec, target).known():
        last = len(plan.passes) - 1
        p = plan.passes[last]
        what = (p.reductions, p.outputs, p.loads, p.compute)
        corrected = sweeps.instructions.corrected(p, plan)
        numbers.setdefault((*what, corrected), set()).add(sweeps.number_of_sweep(plan, (last,), ()))
    alike = [key for key in numbers if any(key[:-1] == other[:-1] and key != other for other in numbers)]
    assert alike
    for key in alike:
        others = set().union(*(numbers[o] for o in numbers if o != key))
        assert not numbers[key] & others


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
def test_a_search_keeps_its_answers(target):
    """In whatever order nests of a family are met."""
    one, two = NestSearch(target), NestSearch(target)
    specs = [depthwise(h, 12, 40, threading=t) for h in (6, 14) for t in ("serial", "parallel 2")]
    first = [one.solve(s) for s in specs]
    last = [two.solve(s) for s in reversed(specs)]
    assert [(f.cost, f.schedule) for f in first] == [(f.cost, f.schedule) for f in reversed(last)]
    assert all(any(isinstance(n, Rows) for n in walk(f.schedule)) for f in first)
