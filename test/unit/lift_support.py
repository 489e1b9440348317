"""For tests of lifting: run pipelines on text, give `morello.spec` its plainest meaning, and call the result.

The meaning comes from a `linalg.generic` per Spec and upstream's loops, so that nothing of ours but lifting is tested.
"""

from __future__ import annotations

import ctypes
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from mlir import ir
from mlir.dialects import arith, linalg
from mlir.dialects.llvm import translate_module_to_llvmir
from mlir.passmanager import PassManager

from morello_mlir import diagnostics, dialect
from morello_mlir.passes.pipeline import run_pipeline

LIFT = "morello-lift{nests=false}"
OPTIMIZE = "morello-lift{nests=false},morello-search,morello-apply"
FROM_TENSORS = (
    "morello-group,one-shot-bufferize{bufferize-function-boundaries "
    "function-boundary-type-conversion=identity-layout-map},morello-lift{nests=false}"
)
_LOWER = (
    "builtin.module(convert-linalg-to-loops,expand-strided-metadata,lower-affine,convert-scf-to-cf,"
    "convert-vector-to-llvm,convert-ub-to-llvm,convert-math-to-llvm,convert-arith-to-llvm,convert-index-to-llvm,finalize-memref-to-llvm,"
    "convert-func-to-llvm{use-bare-ptr-memref-call-conv=true},convert-cf-to-llvm,reconcile-unrealized-casts)"
)
_CONTEXT = ir.Context()
dialect.load(_CONTEXT)
llvm.initialize_native_target()
llvm.initialize_native_asmprinter()


class Run:
    """A module after a pipeline of ours, and what was said meanwhile."""

    def __init__(self, text: str, pipeline: str):
        with _CONTEXT, ir.Location.unknown(), diagnostics.capture(_CONTEXT) as sink:
            self.module = ir.Module.parse(text)
            said = run_pipeline(self.module.operation, f"builtin.module({pipeline})")
            assert dialect.verify_specs(self.module.operation), sink.diagnostics
        self.remarks = [d.message for d in said if d.severity == diagnostics.REMARK]

    @property
    def specs(self) -> list[str]:
        """The Specs of the module as text, in order."""
        with _CONTEXT:
            return [str(s.spec) for s in dialect.spec_ops(self.module.operation)]

    def compile(self) -> Compiled:
        """Machine code; the module is used up."""
        with _CONTEXT, ir.Location.unknown():
            for spec in dialect.spec_ops(self.module.operation):
                _give_meaning(spec)
            PassManager.parse(_LOWER).run(self.module.operation)
            return Compiled(translate_module_to_llvmir(self.module.operation))


class Compiled:
    """Functions callable with numpy buffers, passed as bare pointers, and integers."""

    def __init__(self, text: str):
        module = llvm.parse_assembly(text)
        machine = llvm.Target.from_default_triple().create_target_machine(
            cpu=llvm.get_host_cpu_name(),
            features=llvm.get_host_cpu_features().flatten(),
            opt=0,
            reloc="pic",
            codemodel="small",
            jit=True,
        )
        self._engine = llvm.create_mcjit_compiler(module, machine)
        self._engine.finalize_object()

    def __call__(self, name: str, *arguments: np.ndarray | int) -> None:
        address = self._engine.get_function_address(name)
        assert address, name
        kinds = [ctypes.c_int64 if isinstance(a, int) else ctypes.c_void_p for a in arguments]
        values = [a if isinstance(a, int) else a.ctypes.data for a in arguments]
        ctypes.CFUNCTYPE(None, *kinds)(address)(*values)


def _give_meaning(spec: Any) -> None:
    """Replaces a `morello.spec` by a generic multiply-add over (b, m, n, k), after a fill if it does not accumulate."""
    op = spec.operation
    lhs, rhs, out = spec.operands
    element = out.type.element_type
    b, m, n, k = (ir.AffineDimExpr.get(i) for i in range(4))
    maps = [ir.AffineMap.get(4, 0, dims) for dims in ([b, m, k], [b, k, n], [b, m, n])]
    kinds = ["parallel"] * 3 + ["reduction"]
    with op.location, ir.InsertionPoint(op):
        if spec.function == "Matmul":
            linalg.fill(arith.constant(element, 0.0), outs=[out])
        generic = linalg.GenericOp(
            [],
            [lhs, rhs],
            [out],
            ir.ArrayAttr.get([ir.AffineMapAttr.get(x) for x in maps]),
            ir.ArrayAttr.get([ir.Attribute.parse(f"#linalg.iterator_type<{x}>") for x in kinds]),
        )
        body = generic.regions[0].blocks.append(element, element, element)
        with ir.InsertionPoint(body):
            x, y, acc = body.arguments
            linalg.YieldOp([arith.addf(acc, arith.mulf(x, y))])
    op.erase()
