"""What is done to the sums of a contraction: compiled code against what the body means in NumPy, random schedules."""

from __future__ import annotations

import ctypes
import random
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from lowering_support import (
    NUMPY,
    Storage,
    apply_in_steps,
    compile_module,
    context,
    make_spec,
)
from mlir import ir
from random_schedules import random_schedule

from morello_mlir.dialect import build_spec_op
from morello_mlir.errors import SpecError
from morello_mlir.nests.evaluate import evaluate
from morello_mlir.nests.ops import numpy_type
from morello_mlir.passes.pipeline import run_pipeline
from morello_mlir.search.explain import steps
from morello_mlir.search.schedule import Node
from morello_mlir.search.solve import Search
from morello_mlir.search.then import then_cost
from morello_mlir.spec import Spec, Then
from morello_mlir.targets import get_target

AVX2 = get_target("avx2")
GUARD = 8

RELU = Then.make("y = max(add(x0, x1), 0.0:f32)", ["f32", "(f32, [n])"])
SILU = Then.make("y = mul(x0, div(1.0:f32, add(1.0:f32, exp(neg(x0)))))", ["f32"])
REQUANTISE = Then.make(
    "s = round(mul(cast(add(x0, x1), f32), x2)); y = cast(min(max(s, -128.0:f32), 127.0:f32), i8)",
    ["i32", "(i32, [n])", "(f32, [m])"],
)
LONG = Then.make(
    "e = exp(tanh(add(x0, x1))); f = log1p(exp(erf(mul(x0, x2)))); y = mul(add(e, f), sin(exp2(tanh(sub(x0, x3)))))",
    ["f32", "(f32, [n])", "(f32, [m])", "(f32, [m, n])"],
)
RESIDUAL = Then.make("y = add(mul(x0, x1), x2)", ["f32", "(f32, [])", "(f32, [b, n, m])"])
PER_BATCH = Then.make("y = select(cmp(olt, x0, x1), mul(x0, 0.25:f64), x0)", ["f64", "(f64, [b, m])"])
WRAPPING = Then.make("y = xor(sub(x0, x1), 5:i32)", ["i32", "(i32, [b, n])"])


@dataclass(frozen=True)
class Case:
    dims: tuple[int, int, int, int]
    dtype: str
    then: Then
    accumulate: bool = False
    storages: tuple[Storage, Storage, Storage] = (Storage(), Storage(), Storage())
    threads: int = 1
    stops: tuple[int | str | None, ...] = (None,)

    @property
    def spec(self) -> Spec:
        plain = make_spec(self.dims, self.dtype, self.storages, self.accumulate, self.threads)
        return replace(plain, then=self.then).canonical()

    def sizes(self, dims: tuple[str, ...]) -> tuple[int, ...]:
        return tuple(self.dims["bmkn".index(d)] for d in dims)


def memref_type(shape: tuple[int, ...], strides: tuple[int, ...], element: str) -> str:
    return f"memref<{'x'.join(map(str, shape))}x{element}, strided<[{', '.join(map(str, strides))}], offset: {GUARD}>>"


def compile_case(case: Case, schedule: Node) -> Any:
    """A library with the function `f` on bare pointers."""
    spec = case.spec
    args, casts, types = [], [], []
    for i, (shape, strides, element) in enumerate(places(case)):
        kind = memref_type(shape, strides, element)
        length = GUARD + 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
        args.append(f"%a{i}: memref<{length}x{element}>")
        casts.append(
            f"%v{i} = memref.reinterpret_cast %a{i} to offset: [{GUARD}], sizes: [{', '.join(map(str, shape))}], "
            f"strides: [{', '.join(map(str, strides))}] : memref<{length}x{element}> to {kind}"
        )
        types.append(kind)
    names = ", ".join(f"%v{i}" for i in range(len(types)))
    text = f"func.func @f({', '.join(args)}) {{\n" + "\n".join(casts)
    text += f'\n"test.here"({names}) : ({", ".join(types)}) -> ()\nreturn\n}}'
    context().allow_unregistered_dialects = True
    module = ir.Module.parse(text, context())
    function = next(iter(module.body.operations))
    marker = next(o for o in function.operation.regions[0].blocks[0].operations if o.operation.name == "test.here")
    with ir.Location.unknown(context()):
        op = build_spec_op(spec, list(marker.operands), insertion_point=ir.InsertionPoint(marker))
    marker.operation.erase()
    apply_in_steps(module, [(op, schedule)], AVX2, case.stops)
    with context(), ir.Location.unknown():
        run_pipeline(module.operation, "builtin.module(morello-vector-math)")
    return compile_module(module, ["f"])


def places(case: Case) -> list[tuple[tuple[int, ...], tuple[int, ...], str]]:
    """Shape, strides and MLIR element type of every operand of the op."""
    spec = case.spec
    out = []
    for i, storage in enumerate(case.storages):
        shape = spec.operand_shape(i)
        element = spec.operands[i].dtype
        out.append((shape, storage.strides(shape), "i8" if element == "u8" else element))
    for extra in case.then.extras:
        sizes = dict(zip("bmkn", case.dims, strict=True))
        strides, run = dict.fromkeys("bmn", 0), 1
        for d in reversed(extra.dims):
            strides[d], run = run, run * sizes[d] + (d != extra.dims[0])
        out.append((spec.operand_shape(2), tuple(strides.values()), extra.dtype))
    return out


def run(case: Case, schedule: Node, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """(what the code computed, what it should have)."""
    rng = np.random.default_rng(seed)
    library = compile_case(case, schedule)
    spec = case.spec
    views, buffers = [], []
    for i, (shape, strides, element) in enumerate(places(case)):
        dtype = np.dtype(NUMPY[spec.operands[i].dtype]) if i < 3 else numpy_type(element)
        length = 2 * GUARD + 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
        buffer = np.full(length, 77 if dtype.kind in "iu" else np.nan, dtype)
        view = np.lib.stride_tricks.as_strided(buffer[GUARD:], shape, tuple(s * dtype.itemsize for s in strides))
        if i != 2 or case.accumulate:
            if dtype.kind in "iu":
                view[...] = rng.integers(-100 if dtype.kind == "i" else 0, 100, shape)
            else:
                view[...] = rng.standard_normal(shape) * (0.01 if i > 2 else 1)
        views.append(view)
        buffers.append(buffer)
    lhs, rhs, out, *extras = views
    wide = np.float64 if case.then.sums.startswith("f") else np.int64
    sums = lhs.astype(wide) @ rhs.astype(wide)
    if case.accumulate:
        sums = sums + out
    want = evaluate(case.then.body, [sums.astype(numpy_type(case.then.sums)), *extras], ())[0]
    before = buffers[2].copy()
    pointers = [b.ctypes.data for b in buffers]
    ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(pointers))(library.addresses["f"])(*pointers)
    got = np.array(out)
    mine = np.lib.stride_tricks.as_strided(before[GUARD:], out.shape, out.strides)
    mine[...] = out
    np.testing.assert_array_equal(buffers[2], before, err_msg="memory next to the output changed")
    return got, want


ACROSS = Storage(fast=1, row_pad=3)
PADDED = Storage(row_pad=5, matrix_pad=2)
CASES = [
    Case((1, 13, 17, 29), "f32", RELU),
    Case((1, 7, 40, 19), "f32", RELU, accumulate=True, storages=(PADDED, ACROSS, PADDED)),
    Case((1, 1, 31, 37), "f32", RELU, storages=(Storage(), Storage(fast=1), Storage())),
    Case((3, 5, 6, 11), "f32", RESIDUAL, storages=(PADDED, PADDED, PADDED)),
    Case((2, 9, 8, 1), "f32", RESIDUAL),
    Case((1, 11, 23, 17), "f32", SILU),
    Case((1, 9, 33, 21), "u8,i8,i8", REQUANTISE),
    Case((1, 4, 8, 3), "i16,i8,i8", REQUANTISE, storages=(Storage(), Storage(fast=1), ACROSS)),
    Case((2, 6, 19, 10), "f64", PER_BATCH, accumulate=True),
    Case((2, 5, 7, 12), "i32", WRAPPING),
    Case((1, 1, 1, 1), "f32", RELU),
    Case((1, 13, 9, 29), "f32", LONG),
    Case((1, 18, 33, 21), "u8,i8,i8", REQUANTISE, threads=2),
    Case((3, 10, 9, 40), "f32", RESIDUAL, threads=4),
]


@pytest.mark.parametrize("number", range(len(CASES)))
@pytest.mark.parametrize("seed", range(3))
def test_random_schedules(number: int, seed: int) -> None:
    case = CASES[number]
    schedule = random_schedule(case.spec.plain, AVX2, random.Random(100 * number + seed))
    got, want = run(case, schedule, seed)
    if want.dtype.kind in "iu":
        np.testing.assert_array_equal(got, want)
    else:
        np.testing.assert_allclose(got.astype(float), want.astype(float), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("number", [1, 6, 8])
@pytest.mark.parametrize("stop", [2, "kernel", "split"])
def test_in_steps(number: int, stop: int | str) -> None:
    """What is left by stopping early computes the same."""
    case = replace(CASES[number], stops=(stop, None))
    schedule = random_schedule(case.spec.plain, AVX2, random.Random(number))
    got, want = run(case, schedule)
    np.testing.assert_allclose(got.astype(float), want.astype(float), rtol=1e-4, atol=1e-4)


def test_text() -> None:
    spec = CASES[6].spec
    assert Spec.parse(str(spec)) == spec
    assert spec.sums == "i32" and spec.plain.operands[-1].dtype == "i32" and spec.plain.then is None
    assert RELU.canonical({"b": 1, "m": 3, "n": 1}).extras[0].dims == ()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('then "y = exp(x0)" []', "type of the sums is missing"),
        ('then "y = add(x0, x1)" [f32]', "no input x1"),
        ('then "y = exp(x0)" [f32, (f32, [k])]', "the dims of an operand are some of b, m, n"),
        ('then "y0 = exp(x0); y1 = x0" [f32]', "one output, not 2"),
        ('then "y = cast(index(1, i32), f32)" [f32]', "elementwise"),
        ('then "y = exp(x0)" [f64]', "the output is f32, and then gives f64"),
        ("then y = exp(x0) [f32]", "expected then"),
        ('then "y = cmp(olt, x0, x0)" [f32]', "i1 is no type of operands"),
    ],
)
def test_what_does_not_fit(text: str, reason: str) -> None:
    with pytest.raises(SpecError, match=reason):
        Spec.parse(f"Matmul([1, 2, 3, 4], {', '.join(['(f32, GL, row_major)'] * 3)}, serial, {text})")


def test_the_cost_is_that_of_the_plain_goal_and_a_constant() -> None:
    search = Search(AVX2)
    for case in (CASES[0], CASES[6]):
        plain, full = search.solve(case.spec.plain), search.solve(case.spec)
        assert full.schedule == plain.schedule and full.spec == case.spec
        assert full.cost == plain.cost + then_cost(case.spec, AVX2)
        assert search.price(case.spec, full.schedule) == full.cost == search.cost(case.spec)
        (then,) = (s for s in steps(full.spec, full.schedule, AVX2).walk() if s.label.startswith("// then"))
        assert then.total == then_cost(case.spec, AVX2)
