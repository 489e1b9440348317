"""Random legal schedules compute the right numbers, whatever the sizes, strides and values."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lowering_support import Case, Storage, assert_close, compile_cases, compiling, make_spec, needs, run_case
from random_schedules import random_schedule

from morello_mlir.targets import TARGETS

SIZES = st.sampled_from((1, 2, 3, 4, 5, 7, 8, 11, 13, 16, 17, 19, 23, 29, 31, 32, 37, 48, 61, 67))


@st.composite
def storages(draw: st.DrawFn, output: bool) -> Storage:
    return Storage(
        fast=draw(st.sampled_from((2, 2, 1))),
        gap=draw(st.sampled_from((1, 1, 1, 2))),
        row_pad=draw(st.sampled_from((0, 0, 3, 16))),
        matrix_pad=draw(st.sampled_from((0, 5))),
        offset=draw(st.sampled_from((0, 0, 1, 9))),
        one_batch=not output and draw(st.booleans()),
    )


@st.composite
def cases(draw: st.DrawFn, target: str) -> Case:
    dims = (draw(st.sampled_from((1, 1, 1, 2, 3))), draw(SIZES), draw(SIZES), draw(SIZES))
    dtype = draw(st.sampled_from(("f32", "f64")))
    places = (draw(storages(False)), draw(storages(False)), draw(storages(True)))
    accumulate = draw(st.booleans())
    const = draw(st.sampled_from(((), (), (1,), (0,), (0, 1))))
    seed = draw(st.integers(0, 2**32 - 1))
    threads = draw(st.sampled_from((1, 1, 1, 2, 3, 4, 6)))
    spec = make_spec(dims, dtype, places, accumulate, threads, const)
    schedule = random_schedule(spec, TARGETS[target], random.Random(seed))
    return Case(dims, dtype, places, accumulate, schedule, threads, const)


@pytest.mark.parametrize("target", ["avx2", "avx512"])
def test_random_schedules(target: str) -> None:
    needs(target)

    # Several cases a module: compiling costs more by the module than by the case.
    @compiling(9)
    @given(st.lists(cases(target), min_size=1, max_size=6), st.integers(0, 2**32 - 1), st.booleans())
    def check(some: list[Case], seed: int, special: bool) -> None:
        library = compile_cases(some, TARGETS[target])
        rng = np.random.default_rng(seed)
        for i, case in enumerate(some):
            got, want = run_case(library.addresses[f"case{i}"], case, rng, special)
            assert_close(got, want, case.dims[2])

    check()
