"""What sharing a nest among threads costs beside their work, and what the search makes of it."""

from dataclasses import replace

import pytest
from nest_support import columns, depthwise, softmax

from morello_mlir.nests import NestSpec
from morello_mlir.nests.search import NestSearch
from morello_mlir.nests.sharing import MEETING, own_cost, runs_beside
from morello_mlir.search.schedule import Hole, Parallel, Serial
from morello_mlir.targets import fixed, get_target

ZEN5, AVX512 = get_target("znver5"), get_target("avx512")
IMAGE = depthwise(56, 56, 144, threading="parallel 2")


def shared(d: int, size: int) -> Parallel:
    return Parallel(f"d{d}", size, Hole(), None)


@pytest.mark.parametrize(
    ("spec", "d", "size", "runs"),
    [
        # Rows of an image are whole, columns and channels of it are cut across.
        (IMAGE, 0, 28, (0, True)),
        (IMAGE, 1, 28, (55, True)),
        (IMAGE, 1, 2, (55, False)),
        (IMAGE, 2, 72, (56 * 56 - 1, False)),
        (softmax(8, 2048, "parallel 2"), 0, 4, (0, True)),
        (columns(100, 64, "parallel 2"), 0, 32, (0, False)),
    ],
)
def test_counts_runs_that_two_threads_write_side_by_side(spec, d, size, runs):
    assert runs_beside(spec, d, size) == [runs]


def test_several_outputs_cost_what_the_dearest_does():
    x, t = "(f32, GL, [1024, 1])", "(f32, GL, [1, 512])"
    spec = NestSpec.parse(f'Map([512, 1024], {x}, {x}, {t}, "y0 = exp(x0); y1 = x0", parallel 2)')
    assert runs_beside(spec, 0, 256) == [(0, True), (1023, False)]
    # Of the second, across which the input goes, several rows are written at a time.
    assert runs_beside(spec, 1, 512) == [(511, True), (0, False)]
    fork = fixed(ZEN5.costs.fork_join)
    assert own_cost(spec, shared(0, 256), ZEN5) == fork + fixed(1023 * MEETING)
    assert own_cost(spec, shared(1, 512), ZEN5) == fork + fixed(511 * ZEN5.streams.beside)
    assert own_cost(spec, Serial(Hole()), ZEN5) == 0


def test_costs_only_what_was_measured():
    assert own_cost(IMAGE, shared(1, 28), AVX512) == fixed(AVX512.costs.fork_join)


def test_threads_share_rows_where_columns_cost_the_same():
    def first(target):
        found = NestSearch(target).solve(depthwise(112, 112, 32, threading="parallel 2")).schedule
        assert isinstance(found, Parallel)
        return found.dim

    assert first(ZEN5) == "d0"
    assert first(replace(ZEN5, streams=replace(ZEN5.streams, beside=0.0))) == "d1"
