"""For tests of lowering: operands that lie in memory in any way, random legal schedules, compiling, and comparing."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from mlir import ir
from mlir.dialects import llvm as llvm_dialect
from mlir.passmanager import PassManager

from morello_mlir import dialect
from morello_mlir.dialect import build_spec_op
from morello_mlir.lowering import apply_all
from morello_mlir.runtime import jit
from morello_mlir.search.schedule import (
    Move,
    Node,
    parse,
)
from morello_mlir.spec import Layout, Spec, TensorSpec, dtype_bytes, element_type, stride_class
from morello_mlir.targets import TARGETS, Target, host_runs

NUMPY = {
    "f32": np.float32,
    "f64": np.float64,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "i8": np.int8,
    "u8": np.uint8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
}
OPERAND_DIMS = (("b", "m", "k"), ("b", "k", "n"), ("b", "m", "n"))
GUARD = 64

TO_LLVM = (
    "builtin.module(convert-vector-to-scf,expand-strided-metadata,lower-affine,convert-scf-to-cf,arith-expand{include-bf16=true},canonicalize,cse,"
    "convert-vector-to-llvm{enable-x86vector=true},convert-ub-to-llvm,convert-math-to-llvm,convert-arith-to-llvm,"
    "convert-index-to-llvm,finalize-memref-to-llvm,convert-func-to-llvm{use-bare-ptr-memref-call-conv=true},"
    "convert-cf-to-llvm,reconcile-unrealized-casts,canonicalize,cse)"
)


def needs(target: str) -> None:
    """Skips the test where the host does not run the code of a target."""
    if not host_runs(TARGETS[target]):
        pytest.skip(f"the host has no {target}")


def compiling(examples: int) -> settings:
    """For properties that compile every example: shrinking would take minutes, and one is small enough to look at."""
    phases = (Phase.explicit, Phase.reuse, Phase.generate)
    return settings(max_examples=examples, suppress_health_check=list(HealthCheck), phases=phases)


@lru_cache(maxsize=1)
def context() -> Any:
    made = ir.Context()
    dialect.load(made)
    return made


# ---------------------------------------------------------------- operands


@dataclass(frozen=True)
class Storage:
    """How an operand lies in memory: which of its last two dims is the fast one, the distance between its elements,
    what is left free after a row and after a matrix (elements), an offset, and whether all batches are one."""

    fast: int = 2
    gap: int = 1
    row_pad: int = 0
    matrix_pad: int = 0
    offset: int = 0
    one_batch: bool = False

    def strides(self, sizes: Sequence[int]) -> tuple[int, int, int]:
        slow = 3 - self.fast
        strides = [0, 0, 0]
        strides[self.fast] = self.gap
        strides[slow] = sizes[self.fast] * self.gap + self.row_pad
        strides[0] = 0 if self.one_batch else sizes[slow] * strides[slow] + self.matrix_pad
        return (strides[0], strides[1], strides[2])

    def length(self, sizes: Sequence[int]) -> int:
        return self.offset + 1 + sum((n - 1) * st for n, st in zip(sizes, self.strides(sizes), strict=True))

    def tensor_spec(self, dtype: str, sizes: Sequence[int]) -> TensorSpec:
        layout = Layout.row_major(3) if self.fast == 2 else Layout.col_major(3)
        row = self.strides(sizes)[3 - self.fast] * dtype_bytes(dtype)
        return TensorSpec(dtype, "GL", layout, stride_class(row), self.gap == 1)


@dataclass(frozen=True)
class Case:
    """A goal, where its operands lie, and its schedule. dtype: of all operands, or of each: `u8,i8,i32`. far: see
    Spec."""

    dims: tuple[int, int, int, int]
    dtype: str
    storages: tuple[Storage, Storage, Storage]
    accumulate: bool
    schedule: Node
    threads: int = 1
    const: tuple[int, ...] = ()
    far: bool = False

    @property
    def dtypes(self) -> tuple[str, ...]:
        return dtypes_of(self.dtype)

    @property
    def elements(self) -> tuple[str, ...]:
        """MLIR's names."""
        return tuple(map(element_type, self.dtypes))

    @property
    def spec(self) -> Spec:
        spec = make_spec(self.dims, self.dtype, self.storages, self.accumulate, self.threads, self.const)
        return replace(spec, far=self.far)

    def shape(self, i: int) -> tuple[int, ...]:
        return tuple(self.dims["bmkn".index(d)] for d in OPERAND_DIMS[i])


def dtypes_of(dtype: str) -> tuple[str, ...]:
    names = tuple(dtype.split(","))
    return names * 3 if len(names) == 1 else names


def make_spec(
    dims: Sequence[int],
    dtype: str,
    storages: Sequence[Storage],
    accumulate: bool,
    threads: int = 1,
    const: Sequence[int] = (),
) -> Spec:
    shapes = [tuple(dims["bmkn".index(d)] for d in names) for names in OPERAND_DIMS]
    rows = zip(storages, dtypes_of(dtype), shapes, strict=True)
    plain = [s.tensor_spec(d, shape) for s, d, shape in rows]
    tensors = tuple(replace(t, const=i in const) for i, t in enumerate(plain))
    function = "MatmulAccum" if accumulate else "Matmul"
    return Spec(function, tuple(dims), tensors, threads == 1, threads=threads).canonical()


# ---------------------------------------------------------------- compiling


def module_of(cases: Sequence[Case]) -> tuple[Any, list[Any]]:
    """A module with a function `case<i>` for each case, with a `morello.spec` in it; and these ops."""
    texts = []
    for number, case in enumerate(cases):
        args, casts = [], []
        for i, storage in enumerate(case.storages):
            shape, strides = case.shape(i), storage.strides(case.shape(i))
            element = case.elements[i]
            args.append(f"%a{i}: memref<{storage.length(shape)}x{element}>")
            sizes, strided = ", ".join(map(str, shape)), ", ".join(map(str, strides))
            kind = f"memref<{'x'.join(map(str, shape))}x{element}, strided<[{strided}], offset: {storage.offset}>>"
            casts.append(
                f"%v{i} = memref.reinterpret_cast %a{i} to offset: [{storage.offset}], sizes: [{sizes}], "
                f"strides: [{strided}] : memref<{storage.length(shape)}x{element}> to {kind}"
            )
        body = "\n".join([*casts, f'"test.here"(%v0, %v1, %v2) : ({", ".join(_types(case))}) -> ()', "return"])
        texts.append(f"func.func @case{number}({', '.join(args)}) {{\n{body}\n}}")
    context().allow_unregistered_dialects = True
    module = ir.Module.parse("\n".join(texts), context())
    ops = []
    for function, case in zip(list(module.body.operations), cases, strict=True):
        marker = next(o for o in function.operation.regions[0].blocks[0].operations if o.operation.name == "test.here")
        with ir.Location.unknown(context()):
            made = build_spec_op(case.spec, list(marker.operands), insertion_point=ir.InsertionPoint(marker))
        marker.operation.erase()
        ops.append(made)
    return module, ops


def _types(case: Case) -> list[str]:
    out = []
    for i, storage in enumerate(case.storages):
        shape, strides = case.shape(i), ", ".join(map(str, storage.strides(case.shape(i))))
        element = case.elements[i]
        out.append(f"memref<{'x'.join(map(str, shape))}x{element}, strided<[{strides}], offset: {storage.offset}>>")
    return out


def compile_module(module: Any, names: Sequence[str], level: int = 1) -> jit.Library:
    """Compiles and links a module of functions on bare pointers."""
    with context(), ir.Location.unknown():
        PassManager.parse(TO_LLVM).run(module.operation)
    text = llvm_dialect.translate_module_to_llvmir(module.operation)
    return jit.load(text, tuple(names), jit.Options(vectorize=False, level=level), None)


def apply_in_steps(module: Any, jobs: Any, target: Target, stops: Sequence[int | str | None]) -> None:
    """Executes schedules up to each of the stops, the last of which is the end."""
    for i, stop in enumerate(stops):
        if i:
            jobs = [(op, parse(op.schedule_text)) for op in dialect.spec_ops(module.operation)]
        apply_all(jobs, target, stop)
        assert module.operation.verify()
        assert dialect.verify_specs(module.operation)
    assert not list(dialect.spec_ops(module.operation))


def compile_cases(
    cases: Sequence[Case], target: Target, stops: Sequence[int | str | None] = (None,), level: int = 1
) -> jit.Library:
    """Applies the schedules of `cases` (in steps, where `stops` says so) and compiles."""
    module, ops = module_of(cases)
    apply_in_steps(module, [(op, case.schedule) for op, case in zip(ops, cases, strict=True)], target, stops)
    return compile_module(module, [f"case{i}" for i in range(len(cases))], level)


def in_l1(body: Node) -> Node:
    """`body` with all operands in L1."""
    for memory in ("L1", "L2"):
        for operand in ("out", "rhs", "lhs"):
            body = Move(operand, memory, None, body)
    return body


# ---------------------------------------------------------------- running and comparing


def run_case(
    address: int, case: Case, rng: np.random.Generator, special: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Runs a compiled case on random operands: (what it computed, what it should have). Checks that no element outside
    of the output changed. `special`: NaN and infinities among the inputs."""
    views, buffers = [], []
    for i, storage in enumerate(case.storages):
        shape = case.shape(i)
        # What lies between and around the elements is NaN in the inputs: reading it would show.
        dtype = np.dtype(NUMPY[case.dtypes[i]])
        fill = 77 if i == 2 else 99 if dtype.kind in "iu" else np.nan
        buffer = np.full(storage.length(shape) + 2 * GUARD, fill, dtype)
        start = GUARD + storage.offset
        strides = tuple(st * buffer.itemsize for st in storage.strides(shape))
        view = np.lib.stride_tricks.as_strided(buffer[start:], shape, strides)
        if i < 2 or case.accumulate:
            view[...] = _values(rng, shape, dtype)
        elif dtype.kind not in "iu":
            view[...] = np.nan
        if special and i < 2:
            for value in (np.nan, np.inf, -np.inf):
                view[tuple(rng.integers(0, n) for n in shape)] = value
        views.append(view)
        buffers.append(buffer)
    lhs, rhs, out = views
    wide = np.int64 if np.dtype(NUMPY[case.dtypes[2]]).kind in "iu" else np.float64
    with np.errstate(invalid="ignore", over="ignore"):
        want = lhs.astype(wide) @ rhs.astype(wide)
        if case.accumulate:
            want = want + out
    untouched = buffers[2].copy()
    pointers = [b.ctypes.data + GUARD * b.itemsize for b in buffers]
    ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(address)(*pointers)
    got = np.array(out)
    start = GUARD + case.storages[2].offset
    mine = np.lib.stride_tricks.as_strided(untouched[start:], out.shape, out.strides)
    mine[...] = out
    np.testing.assert_array_equal(buffers[2], untouched, err_msg="memory next to the output changed")
    return got, want


def _values(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Random values: integers over the whole range, often at its ends."""
    if dtype.kind not in "iu":
        return rng.standard_normal(shape)
    info = np.iinfo(dtype)
    ends = rng.choice(np.array([info.min, info.max], dtype), shape)
    return np.where(rng.random(shape) < 0.5, ends, rng.integers(info.min, info.max, shape, dtype, endpoint=True))


def assert_close(got: np.ndarray, want: np.ndarray, depth: int) -> None:
    """Equal up to rounding; NaN and infinities in the same places. Integers are equal, modulo their range."""
    if got.dtype.kind == "i":
        np.testing.assert_array_equal(got, want.astype(got.dtype))
        return
    if got.dtype.itemsize == 2:
        # Added up in f32 and rounded once.
        np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
        eps = float(ml_dtypes.finfo(got.dtype).eps)
        np.testing.assert_allclose(got.astype(np.float64), want, rtol=0.51 * eps, atol=1e-4 * (depth + 4))
        return
    finite = np.isfinite(want)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_array_equal(got[~finite], want[~finite].astype(got.dtype))
    tolerance = 4 * np.finfo(got.dtype).eps * (depth + 4)
    np.testing.assert_allclose(got[finite], want[finite], rtol=tolerance, atol=8 * tolerance)
