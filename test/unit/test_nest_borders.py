"""Operands with borders: what is around an image is read without being there, whatever the schedule."""

# ruff: noqa: E501
from __future__ import annotations

import mmap
import random
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_nest_lowering import TARGETS, check_library, compiled, jit, needs, random_tree

from morello_mlir.errors import ScheduleError, SpecError
from morello_mlir.nests import NestSpec, Operand
from morello_mlir.nests.actions import rewritten
from morello_mlir.nests.borders import Border
from morello_mlir.nests.search import NestSearch
from morello_mlir.search.schedule import parse


def windows(
    h: int,
    w: int,
    c: int,
    *,
    taps: int = 3,
    stride: int = 1,
    dilation: int = 1,
    pads: tuple[int, int] = (1, 1),
    first: bool = False,
    body: str = "y = sum(mul(x0, x1))",
    around: str = "0.0",
    dtypes: tuple[str, str] = ("f32", "f32"),
    threading: str = "serial",
) -> NestSpec:
    """A depthwise convolution, or pooling, of an h x w image of c channels, which come first or last."""
    oh, ow = ((n + sum(pads) - (taps - 1) * dilation - 1) // stride + 1 for n in (h, w))
    rows, columns, channels = (w, 1, h * w) if first else (w * c, c, 1)
    steps = [stride * rows, stride * columns, channels, dilation * rows, dilation * columns]
    borders = f"border [{stride}, 0, 0, {dilation}, 0] from {-pads[0]} of {h}, border [0, {stride}, 0, 0, {dilation}] from {-pads[0]} of {w}"
    x = f"({dtypes[0]}, GL, {steps}, {borders}, else {around}, first {-pads[0] * (rows + columns)})"
    f = f", (f32, GL, [0, 0, {taps * taps if first else 1}, {taps if first else taps * c}, {1 if first else c}])"
    out = [ow, 1, oh * ow, 0, 0] if first else [ow * c, c, 1, 0, 0]
    y = f"({dtypes[1]}, GL, {out})"
    sizes = f"[{oh}, {ow}, {c}, {taps} scan, {taps} scan]"
    return NestSpec.parse(f'Reduce({sizes}, {x}{f if "x1" in body else ""}, {y}, "{body}", {threading})')


SPECS = [
    windows(9, 7, 20),
    windows(9, 37, 3, first=True),
    windows(5, 35, 2, first=True, stride=2),
    windows(8, 9, 17, stride=2, pads=(0, 1)),
    windows(7, 40, 2, first=True, dilation=2, pads=(2, 2)),
    windows(6, 5, 18, taps=5, pads=(2, 2)),
    windows(3, 2, 16, taps=5, pads=(4, 4)),
    windows(4, 41, 1, taps=3, first=True, stride=3, pads=(1, 4)),
    windows(6, 50, 2, first=True, stride=5, pads=(2, 2)),
    windows(9, 21, 5, body="y = max(x0)", around="-inf"),
    windows(9, 36, 3, first=True, stride=2, body="y = max(x0)", around="-inf"),
    windows(9, 12, 7, body="y = div(sum(x0), 9.0:f32)"),
    windows(9, 34, 2, first=True, body="y = max(x0)", around="-2.5", dtypes=("bf16", "bf16")),
    windows(9, 34, 2, first=True, body="y = max(cast(x0, f32))", around="-inf", dtypes=("f16", "f32")),
    windows(5, 33, 3, first=True, body="y = sum(cast(x0, i32))", around="-7", dtypes=("i8", "i32")),
    windows(5, 9, 19, body="y = max(x0)", around="-128", dtypes=("i8", "i8"), pads=(1, 0)),
    # A pad alone: no windows, and a row that is the same in all of a vector.
    NestSpec.parse(
        'Map([6, 40], (f32, GL, [33, 1], border [1, 0] from -1 of 4, border [0, 1] from -4 of 33, else 1.5, first -37), (f32, GL, [1, 0], border [1, 0] from -2 of 3, else 9.0, first -2), (f32, GL, [40, 1]), "y = add(x0, x1)", serial)'
    ),
]


def test_text_and_reference() -> None:
    """The text is read back, and what it means is the nest on a padded copy."""
    for spec in SPECS:
        assert NestSpec.parse(str(spec)) == spec
        assert NestSpec.parse(str(spec.canonical())) == spec.canonical()
    rng = np.random.default_rng(0)
    x, f = rng.standard_normal((9, 7, 20), np.float32), rng.standard_normal((3, 3, 20), np.float32)
    wide = np.pad(x, ((1, 1), (1, 1), (0, 0)))
    want = sum(wide[i : i + 9, j : j + 7] * f[i, j] for i in range(3) for j in range(3))
    (got,) = SPECS[0].evaluate([x, f])
    np.testing.assert_allclose(got.reshape(9, 7, 20), want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("(f32, GL, [4, 1], border [1] from 0 of 2, else 0.0, first 0)", "2 steps"),
        ("(f32, GL, [4, 1], border [3, 0] from 0 of 2, else 0.0, first 0)", "do not go along"),
        ("(f32, GL, [4, 1], border [1, 2] from 0 of 2, else 0.0, first 0)", "do not go along"),
        ("(f32, GL, [4, 1], border [1, 0] from 0 of 0, else 0.0, first 0)", "one place or more"),
        ("(f32, GL, [4, 1], border [1, 0] from 0 of 2, border [2, 0] from 0 of 2, else 0.0, first 0)", "at most"),
        ("(f32, GL, [4, 1], border [1, 0] from 0 of 2, else nan, first 0)", "NaN"),
        ("(f32, GL, [4, 1], border [1, 0] from 0 of 2, else x, first 0)", "cannot read 'x'"),
        ("(f32, GL, [4, 1], border [1, 0] from 0 of 2, else 0.0)", "expected"),
        ("(f32, GL, [4, 1], border [a, 0] from 0 of 2, else 0.0, first 0)", "cannot read the steps"),
    ],
)
def test_bad_operands(text: str, why: str) -> None:
    with pytest.raises(SpecError, match=why):
        Operand.parse(text)


def test_outputs_have_none() -> None:
    with pytest.raises(SpecError, match="an output has no borders"):
        NestSpec.parse(
            'Map([4], (f32, GL, [1]), (f32, GL, [1], border [1] from -1 of 2, else 0.0, first -1), "y = x0", serial)'
        )


def test_parts_of_a_border_are_none() -> None:
    """A window is not reduced in parts: which of its taps are outside depends on where it is."""
    node = parse("partial d3 by 2:\n    ?\nrest:\n    ?\ncombine:\n    ?")
    with pytest.raises(ScheduleError, match="has a border along d3"):
        rewritten(SPECS[0], node, TARGETS["avx2"])


@given(st.integers(1, 9), st.integers(1, 5), st.integers(1, 3), st.integers(-6, 6), st.integers(1, 9))
@settings(max_examples=300, deadline=None)
def test_inside(n: int, taps: int, stride: int, start: int, extent: int) -> None:
    """The positions that `inside` says are those at which every tap is a place that exists."""
    border = Border((stride, 1), start, extent)
    every = [all(0 <= start + i * stride + j < extent for j in range(taps)) for i in range(n)]
    assert [i for i in range(n) if i in border.inside(0, (n, taps))] == [i for i, x in enumerate(every) if x]
    assert border.is_met((n, taps)) == (not all(every))


@lru_cache
def library(target: str) -> tuple[list[NestSpec], jit.Library]:
    """Every nest with a schedule at random, serial and in parallel, and with the one that the search takes."""
    rng, jobs = random.Random(target), []
    search = NestSearch(TARGETS[target])
    for spec in SPECS:
        threaded = NestSpec.parse(str(spec).replace(", serial)", ", parallel 2)"))
        jobs += [(s, random_tree(s, rng, TARGETS[target])) for s in (spec, threaded)]
        found = search.solve(spec)
        jobs.append((found.spec, found.schedule))
    return [spec for spec, _ in jobs], compiled(jobs, TARGETS[target])


@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("target", ["avx2", "avx512"])
def test_schedules(target: str, special: bool) -> None:
    needs(target)
    check_library(*library(target), special)


@pytest.mark.parametrize("target", ["avx2", "avx512"])
@pytest.mark.parametrize(
    "schedule",
    [
        "rows vector d1 tile d0 by 2:\n    pass y unroll d3 by 3 unroll d4 by 3",
        "rows vector d1 by 2:\n    pass y",
        "tile d1 by 11:\n    rows vector d1:\n        pass y unroll d4 by 3\nrest:\n    rows vector d0:\n        pass y",
    ],
)
def test_nothing_else_is_read(target: str, schedule: str) -> None:
    """An image that begins and ends where memory does."""
    import ctypes

    needs(target)
    page, (h, w) = mmap.PAGESIZE, (16, 64)
    spec, node = windows(h, w, 1, first=True), parse(schedule)
    loaded = compiled([(spec, node)], TARGETS[target])
    libc = ctypes.CDLL(None, use_errno=True)
    room = mmap.mmap(-1, page * 3)
    base = ctypes.addressof(ctypes.c_char.from_buffer(room))
    assert h * w * 4 == page
    image = np.frombuffer(room, np.float32, h * w, page)
    filters = np.random.default_rng(0).standard_normal(9).astype("f4")
    writable = np.ndarray((h * w,), np.float32, buffer=memoryview(room)[page : 2 * page])
    writable[:] = np.random.default_rng(1).standard_normal(h * w)
    want = spec.evaluate([image, filters])[0].reshape(-1)
    got = np.zeros(h * w, np.float32)
    for guard in (0, 2):
        assert libc.mprotect(ctypes.c_void_p(base + guard * page), page, 0) == 0
    pointers = [base + page, filters.ctypes.data, got.ctypes.data]
    ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(loaded.addresses["case0"])(*pointers)
    for guard in (0, 2):
        assert libc.mprotect(ctypes.c_void_p(base + guard * page), page, 3) == 0
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
