"""Nests as code: schedules of all kinds compute what the reference says, whatever sizes, strides, types and values."""

# ruff: noqa: E501
from __future__ import annotations

import ctypes
import random
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lowering_support import compiling, context, needs
from mlir import ir
from mlir.dialects import llvm as llvm_dialect
from nest_support import softmax

from morello_mlir.errors import ScheduleError
from morello_mlir.nests import BodyBuilder, NestSpec, Operand
from morello_mlir.nests.actions import rewritten
from morello_mlir.nests.lowering.emit import Functions
from morello_mlir.nests.ops import is_float, numpy_type
from morello_mlir.nests.plan import goals, lanes_of, rows_plan, value_of
from morello_mlir.passes.pipeline import run_pipeline
from morello_mlir.passes.pipelines import morello_lower_upstream
from morello_mlir.runtime import jit, pool
from morello_mlir.search.nest_steps import Partial, Pass, Reciprocal, Rows, Stage
from morello_mlir.search.schedule import Node, Parallel, Tile, parse
from morello_mlir.targets import TARGETS, Target

GUARD = 64


def text_of(jobs: Sequence[tuple[NestSpec, Node]], target: Target) -> str:
    """A module with a function `case0`, `case1`, ... on bare pointers for every nest."""
    functions, texts = Functions(target), []
    for i, (spec, node) in enumerate(jobs):
        made = functions.nest(spec, node)
        parameters = ", ".join(f"%a{k}: memref<{o.dtype}>" for k, o in enumerate(spec.operands))
        arguments = ", ".join(f"%a{k}, %zero" for k in range(len(spec.operands)))
        texts.append(
            f"func.func @case{i}({parameters}) attributes {{llvm.bareptr}} {{\n%zero = arith.constant 0 : index\n"
            f"func.call @{made.name}({arguments}) : ({', '.join(made.types)}) -> ()\nreturn\n}}"
        )
    return "\n".join(["module {", *texts, *functions.texts.values(), "}"])


def llvm_of(jobs: Sequence[tuple[NestSpec, Node]], target: Target) -> str:
    with context(), ir.Location.unknown():
        module = ir.Module.parse(text_of(jobs, target))
        run_pipeline(module.operation, morello_lower_upstream(embedded=True))
        return str(llvm_dialect.translate_module_to_llvmir(module.operation))


def compiled(jobs: Sequence[tuple[NestSpec, Node]], target: Target) -> jit.Library:
    names = tuple(f"case{i}" for i in range(len(jobs)))
    options = jit.Options(vectorize=False, level=1)
    return jit.load(llvm_of(jobs, target), names, options, None, pool.symbols())


# ---------------------------------------------------------------- running


def inputs_of(spec: NestSpec, rng: np.random.Generator, special: bool = False) -> list[np.ndarray]:
    """Flat arrays with random values; `special`: NaN and infinities among them, and rows of -inf."""
    out = []
    for o in spec.inputs:
        n, dtype = max(1, o.span(spec.dims)), numpy_type(o.dtype)
        if is_float(o.dtype):
            values = rng.standard_normal(n) * 2
            if special:
                values[rng.random(n) < 0.02] = np.nan
                values[rng.random(n) < 0.02] = np.inf
                values[rng.random(n) < 0.05] = -np.inf
                values[: n // 3] = -np.inf
            out.append(values.astype(dtype))
        elif o.dtype == "i1":
            out.append(rng.random(n) < 0.5)
        else:
            info = np.iinfo(dtype)
            out.append(rng.integers(info.min, info.max, n, dtype, endpoint=True))
    return out


def run(library: jit.Library, number: int, spec: NestSpec, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The outputs of a compiled nest by position. Nothing else in their buffers may change."""
    inputs = [np.concatenate([np.ones(GUARD, a.dtype), a]) for a in inputs]
    buffers = []
    for o in spec.outputs:
        size = o.span(spec.dims) + 2 * GUARD
        buffers.append(inputs[o.alias] if o.alias is not None else np.full(size, 1, numpy_type(o.dtype)))
    before = [x.copy() for x in buffers]
    pointers = [a.ctypes.data + GUARD * a.itemsize for a in (*inputs, *buffers)]
    ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(pointers))(library.addresses[f"case{number}"])(*pointers)
    out = []
    for k, (o, buffer) in enumerate(zip(spec.outputs, buffers, strict=True)):
        shape = [n if s else 1 for n, s in zip(spec.dims, o.strides, strict=True)]
        shape = [0 if 0 in spec.dims and not spec.scan[d] and spec.dims[d] == 0 else n for d, n in enumerate(shape)]
        steps = tuple(s * buffer.itemsize for s in o.strides)
        got = np.array(np.lib.stride_tricks.as_strided(buffer[GUARD:], shape, steps))
        np.lib.stride_tricks.as_strided(before[k][GUARD:], shape, steps)[...] = got
        np.testing.assert_array_equal(
            buffer.view("u1"), before[k].view("u1"), err_msg="memory next to the output changed"
        )
        out.append(got)
    return out


def compare(spec: NestSpec, got: Sequence[np.ndarray], inputs: Sequence[np.ndarray]) -> None:
    for o, mine, narrow, want in zip(
        spec.outputs, got, spec.evaluate(inputs), spec.evaluate(inputs, wide=True), strict=True
    ):
        if not is_float(o.dtype):
            np.testing.assert_array_equal(mine.reshape(-1), narrow.reshape(-1), err_msg=str(spec))
            continue
        mine, want = mine.astype(np.float64).reshape(-1), np.asarray(want, np.float64).reshape(-1)
        narrow = narrow.astype(np.float64).reshape(-1)
        # Where the range of the type ends, the reference in that type decides.
        want = np.where(np.isfinite(narrow), want, narrow)
        eps = {"f64": 1e-12, "f32": 3e-5, "f16": 6e-3, "bf16": 5e-2}[o.dtype]
        np.testing.assert_array_equal(np.isnan(mine), np.isnan(want), err_msg=str(spec))
        scale = np.abs(want[np.isfinite(want)]).max(initial=1.0)
        np.testing.assert_allclose(mine, want, rtol=eps, atol=eps * scale, err_msg=str(spec))


def check(spec: NestSpec, schedule: str | Node, target: str = "avx2", special: bool = False, seed: int = 0) -> None:
    """Compiles one nest, runs it and compares."""
    node = parse(schedule) if isinstance(schedule, str) else schedule
    library = compiled([(spec, node)], TARGETS[target])
    inputs = inputs_of(spec, np.random.default_rng(seed), special)
    given_ = [a.copy() for a in inputs]
    compare(spec, run(library, 0, spec, inputs), given_)


# ---------------------------------------------------------------- forms

SOFTMAX = {
    "three sweeps": "rows vector d1:\n    pass m unroll d1 by {u}\n    pass s store e to y unroll d1 by {u}\n    pass y",
    "recomputed": "rows vector d1:\n    pass m\n    pass s unroll d1 by {u}\n    pass y unroll d1 by {u}",
    "scratch": "rows vector d1 tile d0 by 2:\n    pass m\n    pass s store e to scratch unroll d1 by {u}\n    pass y",
    "one loop": "reciprocal\nrows vector d1 pipeline 1:\n    pass m unroll d1 by {u}\n"
    "    pass s store e to scratch unroll d1 by {u}\n    pass y unroll d1 by {u} streaming",
    "two loops": "rows vector d1 pipeline 2:\n    pass m\n    pass s store e to y\n    pass y",
    "online": "rows vector d1:\n    pass m, s online unroll d1 by {u}\n    pass y",
    "online in blocks": "rows vector d1:\n    pass m, s online by 24 unroll d1 by {u}\n    pass y",
    "online, stored": "rows vector d1 tile d0 by 2:\n    pass m, s online by 24 store e to y unroll d1 by {u}\n    pass y",
    "columns": "rows vector d0:\n    pass m unroll d1 by {u}\n    pass s\n    pass y unroll d1 by {u}",
    "online, columns": "rows vector d0:\n    pass m, s online by 3 unroll d1 by {u}\n    pass y",
    "online, stored, columns": "rows vector d0:\n    pass m, s online by 3 store e to scratch\n    pass y unroll d1 by {u}",
    "tiles": "tile d0 by 2:\n    rows vector d1:\n        pass m\n        pass s\n        pass y\n"
    "rest:\n    rows vector d1:\n        pass m\n        pass s\n        pass y",
    "stages": "stage m:\n    rows vector d1:\n        pass y\nthen:\n    rows vector d1:\n        pass s\n        pass y",
}


@lru_cache
def softmax_library(target: str) -> tuple[list[tuple[str, NestSpec]], jit.Library]:
    """All forms, of some sizes."""
    lanes, names, jobs = TARGETS[target].lanes("f32"), [], []
    for number, (form, text) in enumerate(SOFTMAX.items()):
        for cols in ((1, 7, lanes, 67)[number % 4], 2 * lanes + 5, 203):
            u = 1 + (cols >= 2 * lanes)
            spec = softmax(7 if cols != 67 else 3, cols)
            jobs.append((spec, parse(text.format(u=u))))
            names.append((form, spec))
    return names, compiled(jobs, TARGETS[target])


@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("form", SOFTMAX)
@pytest.mark.parametrize("target", ["avx2", "avx512"])
def test_softmax(form: str, special: bool, target: str) -> None:
    needs(target)
    names, library = softmax_library(target)
    for i, (own, spec) in enumerate(names):
        if own == form:
            inputs = inputs_of(spec, np.random.default_rng(i), special)
            compare(spec, run(library, i, spec, inputs), inputs)


def test_long_sums() -> None:
    """Errors do not grow with the length."""
    n = 300_000
    spec = NestSpec.parse(f'Reduce([2, {n} scan], (f32, GL, [{n}, 1]), (f32, GL, [1, 0]), "y = sum(x0)", serial)')
    library = compiled([(spec, parse("rows vector d1:\n    pass y unroll d1 by 4"))], TARGETS["avx2"])
    x = np.random.default_rng(0).random(2 * n).astype(np.float32)
    (got,) = run(library, 0, spec, [x])
    np.testing.assert_allclose(got.reshape(-1), x.reshape(2, n).sum(axis=1, dtype=np.float64), rtol=3e-7)
    # The same down the columns.
    spec = NestSpec.parse(f'Reduce([8, {n} scan], (f32, GL, [1, 8]), (f32, GL, [1, 0]), "y = sum(x0)", serial)')
    library = compiled([(spec, parse("rows vector d0:\n    pass y"))], TARGETS["avx2"])
    x = np.random.default_rng(0).random(8 * n).astype(np.float32)
    (got,) = run(library, 0, spec, [x])
    np.testing.assert_allclose(got.reshape(-1), x.reshape(n, 8).sum(axis=0, dtype=np.float64), rtol=2e-6)


@pytest.mark.parametrize("online", ["online", "online by 4096"])
def test_long_sums_online(online: str) -> None:
    """Partial sums are against the maximum of their time."""
    needs("avx2")
    spec = softmax(1, 140001)
    library = compiled([(spec, parse(f"rows vector d1:\n    pass m, s {online}\n    pass y"))], TARGETS["avx2"])
    x = np.linspace(-8, 8, 140001, dtype=np.float32)
    np.testing.assert_allclose(run(library, 0, spec, [x])[0], spec.evaluate([x], wide=True)[0], rtol=2e-5)


@pytest.mark.parametrize("target", ["avx2", "avx512"])
def test_squares(target: str) -> None:
    """Where another dim of the tile has the neighbours, squares are transposed: of what is read, and of what is
    written."""
    needs(target)
    jobs = []
    for dtype, op in (("f32", "neg"), ("bf16", "neg"), ("f64", "abs"), ("i8", "abs")):
        for tile in (4, 16):
            text = f'Map([37, 70], ({dtype}, GL, [1, 37]), ({dtype}, GL, [70, 1]), "y = {op}(x0)", serial)'
            jobs.append((NestSpec.parse(text), parse(f"rows vector d1 by 2 tile d0 by {tile}:\n    pass y")))
            jobs.append((NestSpec.parse(text), parse(f"rows vector d0 tile d1 by {tile}:\n    pass y")))
    # Every second row, three dims, and a value that is the same along the vectors.
    for text, rows in (
        ('Map([37, 70], (f32, GL, [1, 74]), (f32, GL, [140, 1]), "y = exp(x0)", serial)', "vector d0 tile d1 by 8"),
        (
            'Map([3, 20, 37], (f32, GL, [740, 1, 20]), (f32, GL, [740, 37, 1]), "y = neg(x0)", serial)',
            "vector d1 tile d2 by 4 tile d0 by 2",
        ),
        ('Map([37, 70], (f32, GL, [0, 1]), (f32, GL, [70, 1]), "y = neg(x0)", serial)', "vector d0 tile d1 by 4"),
    ):
        jobs.append((NestSpec.parse(text), parse(f"rows {rows}:\n    pass y")))
    library = compiled(jobs, TARGETS[target])
    for i, (spec, _) in enumerate(jobs):
        inputs = inputs_of(spec, np.random.default_rng(i), special=True)
        compare(spec, run(library, i, spec, inputs), inputs)


# ---------------------------------------------------------------- bodies


def nest(text: str) -> NestSpec:
    return NestSpec.parse(text)


OTHERS = [
    # Elementwise, with broadcasts and transposed and strided operands.
    'Map([6, 37], (f32, GL, [37, 1]), (f32, GL, [0, 1]), (f32, GL, [1, 0]), (f32, GL, [37, 1]), "y = add(mul(x0, x1), x2)", serial)',
    'Map([9, 21], (f32, GL, [1, 9]), (f32, GL, [21, 1]), "y = div(x0, add(1.0:f32, exp(neg(x0))))", serial)',
    'Map([5, 13], (f32, GL, [40, 3]), (f32, GL, [26, 2]), "y = max(x0, 0.0:f32)", serial)',
    'Map([3, 50], (f32, GL, [50, 1]), (f32, GL, [50, 1], is x0), "y = tanh(x0)", serial)',
    'Map([67], (bf16, GL, [1]), (f32, GL, [1]), (bf16, GL, [1]), "y = cast(mul(cast(x0, f32), x1), bf16)", serial)',
    'Map([67], (f16, GL, [1]), (f16, GL, [1]), "y = mul(x0, x0)", serial)',
    'Map([67], (f64, GL, [1]), (f32, GL, [1]), (f64, GL, [1]), "y = add(exp(x0), cast(x1, f64))", serial)',
    'Map([67], (i8, GL, [1]), (f32, GL, [0]), (f32, GL, [1]), "y = mul(cast(x0, f32), x1)", serial)',
    'Map([67], (i32, GL, [1]), (i32, GL, [1]), (i32, GL, [1]), "y = div(x0, or(x1, 1:i32))", serial)',
    'Map([4, 31], (i1, GL, [31, 1]), (f32, GL, [31, 1]), (f32, GL, [31, 1]), "y = select(x0, x1, -inf:f32)", serial)',
    'Map([4, 31], (f32, GL, [31, 1]), (f32, GL, [31, 1]), (i1, GL, [31, 1]), "y = cmp(olt, x0, x1)", serial)',
    'Map([4, 31], (f32, GL, [31, 1]), "y = cast(add(mul(index(0, i64), 31:i64), index(1, i64)), f32)", serial)',
    # Reductions of every kind.
    'Reduce([5, 45 scan], (f32, GL, [45, 1]), (f32, GL, [1, 0]), "y = max(x0)", serial)',
    'Reduce([5, 45 scan], (f32, GL, [45, 1]), (f32, GL, [1, 0]), "y = maxnum(x0)", serial)',
    'Reduce([5, 45 scan], (f32, GL, [45, 1]), (f32, GL, [1, 0]), "y = min(x0)", serial)',
    'Reduce([5, 45 scan], (f64, GL, [45, 1]), (f64, GL, [1, 0]), "y = sum(mul(x0, x0))", serial)',
    'Reduce([5, 45 scan], (f32, GL, [1, 5]), (f32, GL, [1, 0]), "y = prod(x0)", serial)',
    'Reduce([5, 45 scan], (i8, GL, [45, 1]), (i32, GL, [1, 0]), "y = sum(cast(x0, i32))", serial)',
    'Reduce([5, 45 scan], (i32, GL, [45, 1]), (i32, GL, [1, 0]), "y = max(x0)", serial)',
    'Reduce([5, 45 scan], (i32, GL, [45, 1]), (i32, GL, [1, 0]), "y = umin(x0)", serial)',
    'Reduce([5, 45 scan], (i1, GL, [45, 1]), (i1, GL, [1, 0]), "y = or(x0)", serial)',
    'Reduce([5, 45 scan], (i1, GL, [45, 1]), (i1, GL, [1, 0]), "y = and(x0)", serial)',
    'Reduce([5, 45 scan], (i1, GL, [45, 1]), (i1, GL, [1, 0]), "y = xor(x0)", serial)',
    'Reduce([5, 45 scan], (i16, GL, [1, 5]), (i16, GL, [1, 0]), "y = xor(x0)", serial)',
    'Reduce([5, 45 scan], (f32, GL, [45, 1]), (i64, GL, [1, 0]), "y = argmax(x0, index(1, i64))", serial)',
    'Reduce([5, 45 scan], (f32, GL, [45, 1]), (f32, GL, [1, 0]), (i32, GL, [1, 0]), "y0 = max(x0); y1 = argmaxnum(x0, index(1, i32))", serial)',
    'Reduce([5, 45 scan], (i32, GL, [45, 1]), (i32, GL, [1, 0]), "y = argmin(x0, index(1, i32))", serial)',
    'Reduce([3, 5 scan, 9 scan], (f32, GL, [45, 9, 1]), (i64, GL, [1, 0, 0]), "y = argmax(x0, add(mul(index(1, i64), 9:i64), index(2, i64)))", serial)',
    'Reduce([5, 45 scan], (bf16, GL, [45, 1]), (bf16, GL, [1, 0]), "y = cast(div(sum(cast(x0, f32)), 45.0:f32), bf16)", serial)',
    # Several reductions, statistics of channels, log-softmax, no elements.
    'Compose([6, 3 scan, 20 scan], (f32, GL, [20, 120, 1]), (f32, GL, [1, 0, 0]), (f32, GL, [1, 0, 0]), "a = div(sum(x0), 60.0:f32); d = sub(x0, a); y0 = a; y1 = div(sum(mul(d, d)), 60.0:f32)", serial)',
    'Compose([6, 45 scan], (f32, GL, [45, 1]), (f32, GL, [45, 1]), "d = sub(x0, max(x0)); y = sub(d, log(sum(exp(d))))", serial)',
    'Compose([6, 45 scan], (f32, GL, [45, 1]), (f32, GL, [1, 0]), "m = max(x0); y = add(m, log(sum(exp(sub(x0, m)))))", serial)',
    'Reduce([4, 0 scan], (f32, GL, [0, 1]), (f32, GL, [1, 0]), "y = max(x0)", serial)',
    'Reduce([4, 0 scan], (f32, GL, [0, 1]), (i32, GL, [1, 0]), "y = argmax(x0, index(1, i32))", serial)',
    'Map([0, 5], (f32, GL, [5, 1]), (f32, GL, [5, 1]), "y = neg(x0)", serial)',
    'Map([1], (f32, GL, [0]), (f32, GL, [0]), "y = sqrt(abs(x0))", serial)',
    # Pooling: windows that overlap, a dim of windows inside of a larger stride.
    'Reduce([5, 6, 3 scan, 3 scan], (f32, GL, [32, 2, 16, 1]), (f32, GL, [6, 1, 0, 0]), "y = max(x0)", serial)',
]


def random_rows(spec: NestSpec, rng: random.Random, target: Target) -> Rows:
    """A legal leaf: any vector dim, tiles, groups of passes, stores, unrolled steps, pipelines."""
    for _ in range(200):
        node = _random_rows(spec, rng, target)
        try:
            rows_plan(spec, node, target)
        except ScheduleError:
            continue
        return node
    raise AssertionError(f"no schedule found for {spec}")


def _random_rows(spec: NestSpec, rng: random.Random, target: Target) -> Rows:
    dims = range(len(spec.dims))
    vector, lanes = rng.choice(dims), lanes_of(spec, target)
    vectors = 1 if spec.scan[vector] else rng.randint(1, max(1, min(3, spec.dims[vector] // lanes)))
    others = [d for d in spec.parallel_dims if d != vector and spec.dims[d] > 1]
    tile = tuple((f"d{d}", rng.randint(1, min(4, spec.dims[d]))) for d in others if rng.random() < 0.5)
    names = sorted(goals(spec), key=lambda n: (n[0] == "y", value_of(n, spec)))
    groups: list[list[str]] = []
    for name in names:
        if groups and rng.random() < 0.3:
            groups[-1].append(name)
        else:
            groups.append([name])
    values = [n for n in spec.body.names if n and n[0] != "x" and n not in names]
    outputs = [f"y{k}" if len(spec.outputs) > 1 else "y" for k in range(len(spec.outputs))]
    pipeline = rng.choice((0, 0, 1, 2))
    unroll = {
        d: rng.randint(1, max(1, min(4, -(-spec.dims[d] // (lanes if d == vector else 1))))) for d in spec.scan_dims
    }
    passes = []
    for group in groups:
        if not pipeline:
            unroll = {d: rng.choice((1, n)) for d, n in unroll.items()}
        stores = ()
        if values and rng.random() < 0.4:
            stores = ((rng.choice(values), rng.choice(("scratch", *outputs))),)
        online = rng.choice((None, None, 0, 3 * lanes)) if len(group) > 1 else None
        steps = tuple((f"d{d}", n) for d, n in unroll.items() if n > 1)
        passes.append(Pass(tuple(group), stores, steps, online, rng.random() < 0.2))
    return Rows(f"d{vector}", vectors, tile, pipeline, tuple(passes))


def random_tree(spec: NestSpec, rng: random.Random, target: Target, budget: int = 2) -> Node:
    """A legal schedule: leaves under loops, stages, partial reductions."""
    picks: list[Node] = []
    hole = Rows("d0", 1, (), 0, (Pass(("y",)),))
    if budget and spec.serial:
        picks += [Tile(f"d{d}", rng.randint(1, n - 1), hole, None) for d, n in enumerate(spec.dims) if n > 1]
        picks += [Partial(f"d{d}", rng.randint(1, n - 1), hole, None, hole) for d, n in enumerate(spec.dims) if n > 1]
        picks += [Stage((n,), hole, hole) for n in spec.body.names if n and n[0] not in "xy"]
        picks += [Reciprocal(hole)]
        rng.shuffle(picks)
    if not spec.serial:
        picks = [Parallel(f"d{d}", rng.randint(1, n - 1), hole, None) for d, n in enumerate(spec.dims) if n > 1]
        rng.shuffle(picks)
        picks.append(parse("serial\n?"))
    if spec.serial and rng.random() < 0.5:
        picks = []
    for pick in picks:
        if isinstance(pick, (Tile, Parallel, Partial)) and spec.dims[int(pick.dim[1:])] % pick.size:
            pick = replace(pick, rest=hole)
        try:
            below = rewritten(spec, pick, target).children
        except ScheduleError:
            continue
        bodies = [random_tree(c.spec, rng, target, budget - 1) for c in below]
        if isinstance(pick, Stage):
            return Stage(pick.values, *bodies)
        if isinstance(pick, Partial):
            return replace(pick, body=bodies[0], combine=bodies[-1], rest=bodies[1] if len(bodies) > 2 else None)
        if isinstance(pick, (Tile, Parallel)):
            return replace(pick, body=bodies[0], rest=bodies[1] if len(bodies) > 1 else None)
        return replace(pick, body=bodies[0])
    return random_rows(spec, rng, target)


@lru_cache
def bodies_library(target: str) -> tuple[list[NestSpec], jit.Library]:
    """Every body, with schedules at random."""
    rng = random.Random(target)
    jobs = [(spec, random_tree(spec, rng, TARGETS[target])) for spec in map(nest, OTHERS)]
    return [spec for spec, _ in jobs], compiled(jobs, TARGETS[target])


@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("target", ["avx2", "avx512"])
def test_bodies(target: str, special: bool) -> None:
    needs(target)
    check_library(*bodies_library(target), special)


def check_library(specs: list[NestSpec], library: jit.Library, special: bool) -> None:
    """Each function of the library computes its nest, on numbers at random."""
    for i, spec in enumerate(specs):
        inputs = inputs_of(spec, np.random.default_rng(i), special)
        before = [a.copy() for a in inputs]
        compare(spec, run(library, i, spec, inputs), before)


def random_spec(rng: random.Random) -> NestSpec:
    """Any dims and strides; a chain of harmless ops, with reductions now and then."""
    rank = rng.randint(1, 3)
    dims = [rng.choice((1, 2, 3, 5, 8, 13, 17, 31, 40)) for _ in range(rank)]
    scan = [rng.random() < 0.5 for _ in dims]
    reductions = ("sum", "max ") if any(scan) else ()
    dtypes = [rng.choice(("f32", "f32", "f64", "f16", "bf16", "i8", "i32")) for _ in range(rng.randint(1, 3))]
    wide = "f64" if "f64" in dtypes else "f32"
    b = BodyBuilder()
    values = [b.cast(b.input(k, t), wide) for k, t in enumerate(dtypes)]
    # Integers of any size, brought down.
    values = [b.op("tanh", b.op("mul", v, b.const(0.25, wide))) for v in values]
    for _ in range(rng.randint(1, 7)):
        x, y = rng.choice(values), rng.choice(values)
        op = rng.choice(
            ("add", "sub", "mul", "max", "min", "tanh", "exp", "erf", "sin", "expm1", "abs", "div", *reductions)
        )
        if op in ("sum", "max "):
            r = b.reduce(op.strip(), x)
            values.append(b.op("tanh", r))
        elif op == "div":
            values.append(b.op("div", x, b.op("add", b.const(1.5, wide), b.op("abs", y))))
        elif op in ("add", "sub", "mul", "max", "min"):
            values.append(b.op("tanh", b.op(op, x, y)))
        else:
            values.append(b.op(op, b.op("tanh", x)))
    out = rng.choice((wide, "bf16", "f16", "f32"))
    body = b.build([b.cast(values[-1], out)])
    free = frozenset(range(rank))
    along = body.varies([free] * len(dtypes), frozenset(d for d in free if scan[d]))[body.outputs[0]]
    inputs = [Operand(t, "GL", _strides(rng, dims, free)) for t in dtypes]
    output = Operand(out, "GL", _strides(rng, dims, frozenset(d for d in free if not scan[d] or d in along)))
    return NestSpec(tuple(dims), tuple(scan), (*inputs, output), body)


def _strides(rng: random.Random, dims: Sequence[int], along: frozenset[int]) -> tuple[int, ...]:
    """Of the dims `along` in any order, with gaps now and then."""
    strides, step = [0] * len(dims), rng.choice((1, 1, 1, 2))
    for d in sorted(along, key=lambda _: rng.random()) if rng.random() < 0.3 else sorted(along, reverse=True):
        strides[d] = step
        step = step * dims[d] + rng.choice((0, 0, 3))
    return tuple(strides)


@pytest.mark.parametrize("target", ["avx2", "avx512"])
def test_random_nests(target: str) -> None:
    needs(target)

    # Several nests a module: compiling costs more by the module than by the nest.
    @compiling(2)
    @given(st.integers(0, 2**32 - 1))
    def check_some(seed: int) -> None:
        rng = random.Random(seed)
        specs = [random_spec(rng) for _ in range(8)]
        specs = [replace(s, serial=False, threads=3) if rng.random() < 0.2 else s for s in specs]
        jobs = [(s, random_tree(s, rng, TARGETS[target])) for s in specs]
        library = compiled(jobs, TARGETS[target])
        for i, (spec, _) in enumerate(jobs):
            inputs = inputs_of(spec, np.random.default_rng(i))
            compare(spec, run(library, i, spec, inputs), inputs)

    check_some()
