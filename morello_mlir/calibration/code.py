"""Code to be timed: schedules, register tiles and chains of multiply-adds as functions on bare pointers."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..search.schedule import Kernel, Move, Node
from ..spec import Spec, dense_strides
from ..targets import LINE, Target, code_for
from .operands import memref_types

NUMPY = {"f32": np.float32, "f64": np.float64}
#: Dependent multiply-adds in one trip of the chain.
CHAIN = 512

_TO_LLVM = (
    "builtin.module(convert-vector-to-scf,expand-strided-metadata,lower-affine,convert-scf-to-cf,canonicalize,cse,"
    "convert-vector-to-llvm{enable-x86vector=true},convert-arith-to-llvm,convert-index-to-llvm,finalize-memref-to-llvm,"
    "convert-func-to-llvm{use-bare-ptr-memref-call-conv=true},convert-cf-to-llvm,reconcile-unrealized-casts,"
    "canonicalize,cse)"
)


@dataclass(frozen=True)
class Function:
    """A function of the module to be compiled. schedules: of the `morello.spec` ops in `text`, in order."""

    name: str
    text: str
    schedules: tuple[Node, ...] = ()


@dataclass
class Code:
    """Compiled functions by name: they take addresses, behind a number of repetitions where they have one."""

    addresses: dict[str, int]
    _library: Any = field(repr=False, default=None)

    @property
    def object_code(self) -> bytes:
        return bytes(self._library.object_code)

    def repeating(self, name: str, pointers: Sequence[int]) -> Callable[[int], None]:
        """`call(times)` of a function that repeats its work by itself."""
        raw = ctypes.CFUNCTYPE(None, ctypes.c_long, *[ctypes.c_void_p] * len(pointers))(self.addresses[name])
        return lambda times: raw(times, *pointers)

    def plain(self, name: str, pointers: Sequence[int]) -> Callable[[int], None]:
        """`call(times)` of a function that does its work once."""
        raw = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(pointers))(self.addresses[name])

        def call(times: int) -> None:
            for _ in range(times):
                raw(*pointers)

        return call


def compile_functions(functions: Sequence[Function], target: Target) -> Code:
    """Applies the schedules and compiles for this machine, as `target` says. Raises ScheduleError, CompileError."""
    from mlir import ir
    from mlir.dialects import llvm as llvm_dialect
    from mlir.passmanager import PassManager

    from morello_mlir.dialect import load, spec_ops
    from morello_mlir.passes.morello_parallel_to_pool import ParallelToPool

    from ..lowering import apply_all
    from ..runtime import jit, pool

    context = ir.Context()
    load(context)
    module = ir.Module.parse("\n".join(f.text for f in functions), context)
    schedules = [s for f in functions for s in f.schedules]
    apply_all(list(zip(spec_ops(module.operation), schedules, strict=True)), target)
    with context, ir.Location.unknown():
        ParallelToPool().run(module.operation)
        PassManager.parse(_TO_LLVM).run(module.operation)
    text = llvm_dialect.translate_module_to_llvmir(module.operation)
    cpu, features = code_for(target)
    options = jit.Options(vectorize=False, cpu=cpu, features=features)
    imports = pool.symbols() if pool.ENTRY in text else {}
    library = jit.load(text, tuple(f.name for f in functions), options, None, imports)
    return Code(library.addresses, library)


# ---------------------------------------------------------------- texts


def schedule_function(name: str, spec: Spec, schedule: Node) -> Function:
    """`@name(A, B, C)`: a Spec in GL, by its schedule, on operands as `make_operands` makes them. Raises SpecError."""
    types = memref_types(spec)
    arguments = ", ".join(f"%{n}: {t}" for n, t in zip("abc", types, strict=True))
    text = f"func.func @{name}({arguments}) {{\n{_spec_op(spec, types)}\n  return\n}}"
    return Function(name, text, (schedule,))


def repeating_function(name: str, spec: Spec, schedule: Node) -> Function:
    """`@name(times, A, B, C)`: as `schedule_function`, over and over."""
    types = memref_types(spec)
    return Function(name, _repeating(name, types, _spec_op(spec, types)), (schedule,))


def tile_function(name: str, rows: int, vectors: int, depth: int, dtype: str, target: Target) -> Function:
    """`@name(times, A, B, C)`: one register tile on packed panels, over and over."""
    columns = vectors * target.lanes(dtype)
    panels = (
        f"({dtype}, L1, [b, m/{rows}, k, m%{rows}])",
        f"({dtype}, L1, [b, n/{columns}, k, n%{columns}])",
        f"({dtype}, L1, row_major)",
    )
    spec = Spec.parse(f"MatmulAccum([1, {rows}, {depth}, {columns}], {', '.join(panels)}, serial)")
    shapes = ((1, 1, depth, rows), (1, 1, depth, columns), (1, rows, columns))
    types = [f"memref<{'x'.join(map(str, s))}x{dtype}, strided<{list(dense_strides(s))}>>" for s in shapes]
    text = _repeating(name, types, _spec_op(spec, types))
    return Function(name, text, (Move("out", "VRF", None, Kernel("broadcast_fma")),))


def _repeating(name: str, types: Sequence[str], body: str) -> str:
    """`@name(times, A, B, C)`, which calls a function with `body` so many times."""
    listed = ", ".join(types)
    arguments = ", ".join(f"%{n}: {t}" for n, t in zip("abc", types, strict=True))
    return f"""
func.func private @{name}_body({arguments}) attributes {{passthrough = ["noinline"]}} {{
{body}
  return
}}
func.func @{name}(%times: index, {arguments}) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %i = %zero to %times step %one {{
    func.call @{name}_body(%a, %b, %c) : ({listed}) -> ()
  }}
  return
}}"""


def chain_function(name: str, dtype: str, target: Target) -> Function:
    """`@name(times, A, B, C)`: CHAIN dependent fused multiply-adds of whole vectors, over and over."""
    lanes = target.lanes(dtype)
    vector, memory = f"vector<{lanes}x{dtype}>", f"memref<{lanes}x{dtype}>"
    steps = "\n".join(f"%v{i + 1} = vector.fma %v{i}, %x, %x : {vector}" for i in range(CHAIN))
    text = f"""
func.func @{name}(%times: index, %a: {memory}, %b: {memory}, %c: {memory}) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %x = vector.load %a[%zero] : {memory}, {vector}
  %start = vector.load %b[%zero] : {memory}, {vector}
  %end = scf.for %i = %zero to %times step %one iter_args(%v0 = %start) -> ({vector}) {{
    {steps}
    scf.yield %v{CHAIN} : {vector}
  }}
  vector.store %end, %c[%zero] : {memory}, {vector}
  return
}}"""
    return Function(name, text)


def _spec_op(spec: Spec, types: Sequence[str]) -> str:
    tensors = ", ".join(f'"{t.text(names)}"' for t, (_, names) in zip(spec.operands, spec.info.operands, strict=True))
    dims = ", ".join(map(str, spec.dims))
    flags = "".join(f", {flag}" for flag in ("serial", "far") if getattr(spec, flag))
    if spec.threads:
        flags += f", threads = {spec.threads} : i64"
    if spec.limits:
        flags += ", limits = {" + ", ".join(f"{memory} = {amount} : i64" for memory, amount in spec.limits) + "}"
    return (
        f'  "morello.spec"(%a, %b, %c) {{function = "{spec.function}", dims = array<i64: {dims}>, '
        f"operands = [{tensors}]{flags}}} : ({', '.join(types)}) -> ()"
    )


def panel_bytes(target: Target) -> int:
    """Half of L1: what the panels of a register tile may take so that they stay there."""
    return target.l1.lines * LINE // 2
