"""For tests of lowering: operands that lie in memory in any way, random legal schedules, compiling, and comparing."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np
from mlir import ir
from mlir.dialects import llvm as llvm_dialect
from mlir.passmanager import PassManager

from morello_mlir import dialect
from morello_mlir.actions import action_of, check, check_tree, child_specs, explore, key_of
from morello_mlir.dialect import build_spec_op
from morello_mlir.errors import ScheduleError
from morello_mlir.lowering import apply_all
from morello_mlir.runtime import jit
from morello_mlir.search.schedule import (
    LOOPS,
    Hole,
    Kernel,
    Move,
    Node,
    PackAhead,
    Parallel,
    Serial,
    Split,
    Tile,
    ToAccum,
    parse,
)
from morello_mlir.spec import Layout, Spec, TensorSpec, dtype_bytes, element_type, stride_class
from morello_mlir.targets import Target

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


# ---------------------------------------------------------------- schedules


class DeadEnd(Exception):
    """No legal step leads on from here (the output is in registers, say, and no kernel takes the operands)."""


def random_schedule(spec: Spec, target: Target, rng: random.Random, budget: int = 8) -> Node:
    """A legal schedule for `spec`, chosen at random: any action that the rules allow, tile sizes from everywhere."""
    for left in (budget, budget // 2, 0):
        try:
            tree = _random_node(spec, target, rng, left)
        except DeadEnd:
            continue
        check_tree(spec, tree, target)
        return tree
    raise AssertionError(f"no schedule found for {spec}")


def _random_node(spec: Spec, target: Target, rng: random.Random, budget: int) -> Node:
    if not spec.info.accumulates:
        if rng.random() < 0.3 and (past := _random_past_caches(spec, target, rng)):
            return past
        ((_, accumulating),) = child_specs(spec, ToAccum(Hole()), target)
        return ToAccum(_random_node(accumulating, target, rng, budget))
    const = [i for i, t in enumerate(spec.operands) if t.const]
    if const:
        return _random_ahead(spec, rng.choice(const), target, rng, budget)
    if not spec.serial:
        return _random_sharing(spec, target, rng, budget)
    options = _options(spec, target)
    kernels = [n for n in options if isinstance(n, Kernel)]
    vector_kernels = [n for n in kernels if n.name != "scalar"]
    if vector_kernels and (budget <= 0 or rng.random() < 0.6):
        return rng.choice(vector_kernels)
    if kernels and rng.random() < 0.1:
        return rng.choice(kernels)
    for pick in _picks(spec, target, rng, budget, [n for n in options if isinstance(n, Move)])[:4]:
        try:
            return _with_bodies(pick, spec, target, rng, budget)
        except DeadEnd:
            continue
    if kernels:
        return rng.choice(kernels)
    raise DeadEnd


def _random_ahead(spec: Spec, operand: int, target: Target, rng: random.Random, budget: int) -> Node:
    """Operand `operand`, a constant, packed ahead in any panels, or not."""
    if rng.random() < 0.2:
        tensors = [replace(t, const=t.const and i != operand) for i, t in enumerate(spec.operands)]
        return _random_node(replace(spec, operands=tuple(tensors)), target, rng, budget)
    lanes = target.lanes(spec.operands[operand].dtype)
    width = rng.choice((1, 5, 6, 12, lanes, lanes + 3))
    layout = f"[b, m/{width}, k, m%{width}]" if operand == 0 else f"[b, n/{width}, k, n%{width}]"
    name = spec.info.operands[operand][0]
    ((_, packed),) = child_specs(spec, PackAhead(name, layout, Hole()), target)
    return PackAhead(name, layout, _random_node(packed, target, rng, budget))


def _random_past_caches(spec: Spec, target: Target, rng: random.Random) -> Node | None:
    """A schedule that writes the output past the caches: loops, and kernels whose output is in registers. None where
    such a one is not legal."""
    loops = [(d, s) for d, s in (("n", 16 * rng.randint(1, 2)), ("m", rng.randint(1, 3))) if s < spec.size(d)]
    tree: Node = Move("out", "VRF", None, Kernel("broadcast_fma"))
    for dim, size in rng.sample(loops, len(loops)):
        tree = Tile(dim, size, tree, tree if spec.size(dim) % size else None)
    for name in ("rhs", "lhs"):
        tree = Move(name, "L2", None, tree)
    tree = Move("out", "WC", None, tree)
    try:
        check_tree(spec, tree, target)
    except ScheduleError:
        return None
    return tree


def _random_sharing(spec: Spec, target: Target, rng: random.Random, budget: int) -> Node:
    """A step of a parallel Spec: a parallel loop mostly, one or two dims deep."""
    key = key_of(spec, target)
    groups = [g for g in range(2, key.threads + 1) if key.threads % g == 0]
    loops, others = [], []
    for dim in "bmn":
        width = key.pack_width(dim)
        if spec.size(dim) > width:
            size = 1 if dim == "b" else rng.randint(1, (spec.size(dim) - 1) // width) * width
            over = rng.choice(groups)
            loops.append(Parallel(dim, size, Hole(), None, over if over < key.threads else 0))
            others.append(Tile(dim, size, Hole(), None))
    if spec.size("k") > 1:
        others.append(Split("k", rng.randint(1, spec.size("k") - 1), Hole(), None))
        # Every thread has a trip.
        loops.append(Parallel("k", max(1, rng.randint(1, spec.size("k")) // key.threads), Hole(), None, adds=True))
    width = rng.choice((1, 5, 8))
    others.append(Move("lhs", "GL", f"[b, m/{width}, k, m%{width}]", Hole()))
    others.append(Move("rhs", "GL", f"[b, n/{width}, k, n%{width}]", Hole()))
    first = rng.sample(loops, len(loops))
    rest = rng.sample(others, len(others)) if budget > 0 else []
    # Two steps in three are loops; a group that finds nothing to share is a dead end.
    for pick in [*(first + rest if rng.random() < 0.66 else rest + first), Serial(Hole())][:6]:
        if _legal(pick, spec, target):
            try:
                return _with_bodies(pick, spec, target, rng, budget)
            except DeadEnd:
                continue
    raise DeadEnd


def _picks(spec: Spec, target: Target, rng: random.Random, budget: int, moves: list[Move]) -> list[Node]:
    """Steps to try, in order. Registers come first where they can be had: most random steps lead past them."""
    registers = [n for n in moves if n.memory == "VRF"]
    if registers and rng.random() < 0.7:
        return [*registers, *_forced(spec, target, moves)]
    if budget <= 0:
        return _forced(spec, target, moves)
    # At most one of the many ways to pack: otherwise everything would be packed.
    packs = [n for n in moves if n.layout is not None]
    moves = [n for n in moves if n.layout is None] + rng.sample(packs, min(len(packs), rng.choice((0, 0, 1))))
    tiles = _random_tiles(spec, target, rng)
    groups = [moves, tiles] if rng.random() < 0.6 else [tiles, moves]
    return [n for group in groups for n in rng.sample(group, len(group))]


def _with_bodies(pick: Node, spec: Spec, target: Target, rng: random.Random, budget: int) -> Node:
    below = [s for _, s in child_specs(spec, _probe(pick, spec), target)]
    bodies = [_random_node(s, target, rng, budget - 1 - (i > 0)) for i, s in enumerate(below)]
    if isinstance(pick, Move):
        return Move(pick.operand, pick.memory, pick.layout, bodies[0])
    if isinstance(pick, Serial):
        return Serial(bodies[0])
    return replace(pick, body=bodies[0], rest=bodies[1] if len(bodies) > 1 else None)


def _probe(node: Node, spec: Spec) -> Node:
    """The step with a remainder where it needs one, so that its children can be asked for."""
    if isinstance(node, LOOPS):
        return replace(node, rest=Hole() if spec.size(node.dim) % node.size else None)
    return node


def _legal(node: Node, spec: Spec, target: Target) -> bool:
    try:
        check(action_of(node, spec), spec, target)
    except ScheduleError:
        return False
    return True


def _options(spec: Spec, target: Target) -> list[Node]:
    """Legal kernels and moves; panel widths beyond those that the target tries are legal too."""
    key = key_of(spec, target)
    dims = dict(zip(spec.info.dims, spec.dims, strict=True))
    nodes = [a.node([Hole()]) for a in explore(key, dims, target)]
    lanes = target.lanes(key.dtype)
    for width in (1, 5, 6, 12, lanes, lanes + 3):
        nodes.append(Move("lhs", "L2", f"[b, m/{width}, k, m%{width}]", Hole()))
        nodes.append(Move("rhs", "L2", f"[b, n/{width}, k, n%{width}]", Hole()))
        if key.kernels:
            for group, dtype in ((1, " " + key.dtype), (2, " i16"), (2, ""), (4, "")):
                inner = ("k", "") if group == 1 else (f"k/{group}", f", k%{group}")
                nodes.append(Move("lhs", "L2", f"[b, m/{width}, {inner[0]}, m%{width}{inner[1]}]{dtype}", Hole()))
                nodes.append(Move("rhs", "L2", f"[b, n/{width}, {inner[0]}, n%{width}{inner[1]}]{dtype}", Hole()))
    return [n for n in nodes if isinstance(n, (Kernel, Move)) and _legal(n, spec, target)]


def _random_tiles(spec: Spec, target: Target, rng: random.Random) -> list[Node]:
    key = key_of(spec, target)
    out = []
    for dim in ("b", "m", "k", "n"):
        width = key.pack_width(dim)
        if spec.size(dim) <= width:
            continue
        size = 1 if dim == "b" else rng.randint(1, max(1, (spec.size(dim) - 1) // width)) * width
        node = (Split if dim == "k" else Tile)(dim, size, Hole(), None)
        if _legal(node, spec, target):
            out.append(node)
    return out


def _forced(spec: Spec, target: Target, moves: list[Move]) -> list[Node]:
    """Steps towards a vector kernel, best first: batches to one, tiles to panels, operands inwards, a small tile."""
    key = key_of(spec, target)
    out: list[Node] = []
    for dim in ("b", "m", "n"):
        width = key.pack_width(dim)
        if spec.size(dim) > width and (dim == "b" or width > 1):
            out.append(Tile(dim, width, Hole(), None))
    plain = [n for n in moves if n.layout is None and n.memory != "VRF"]
    out += sorted(plain, key=lambda n: n.memory != "L2")
    streams_rows = spec.operands[1].layout.innermost == 2
    limits = (("m", 3), ("n", 2 * target.lanes(key.dtype) if streams_rows else 3))
    out += [Tile(dim, size, Hole(), None) for dim, size in limits if spec.size(dim) > size]
    out += [n for n in moves if n.memory == "VRF"]
    return [n for n in out if _legal(n, spec, target)]
