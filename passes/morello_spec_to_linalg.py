"""The pass `morello-spec-to-linalg`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import mlir.ir as ir
from mlir.dialects import arith, linalg, memref

from morello_mlir.chains import ChainSpec
from morello_mlir.dialect import SpecOp, build_nest_op, build_spec_op, chain_ops, nest_ops, spec_ops
from morello_mlir.errors import SpecError
from morello_mlir.lifting.generic import generic
from morello_mlir.lifting.nests import to_loops
from morello_mlir.lifting.private import strided_view
from morello_mlir.lowering.elementwise import emit
from morello_mlir.lowering.splice import ROOT, place
from morello_mlir.nests import NestSpec
from morello_mlir.spec import Spec, TensorSpec, Then, is_float

from .base import Pass


@dataclass(frozen=True)
class SpecToLinalg(Pass):
    """Say in linalg what `morello.spec` ops compute, whatever their schedules: the reference of a check. Of
    `morello.nest` ops it makes plain loops, of chains their stages one after another, with buffers between them.

    Ops whose operands are packed or in registers, as a partly executed schedule leaves them, stay.
    """

    name: ClassVar[str] = "morello-spec-to-linalg"
    summary: ClassVar[str] = "Turn morello.spec ops back into linalg, ignoring their schedules"
    anchor: ClassVar[str | None] = None

    def run(self, op: Any) -> None:
        for chain in chain_ops(op):
            try:
                _apart(chain.operation, chain.spec)
            except SpecError as error:
                self.fail(chain.operation, str(error))
        for nest in nest_ops(op):
            try:
                to_loops(nest.operation, nest.spec)
            except SpecError as error:
                self.fail(nest.operation, str(error))
        for spec_op in spec_ops(op):
            self._replace(spec_op)

    def _replace(self, spec_op: SpecOp) -> None:
        op = spec_op.operation
        try:
            spec = spec_op.spec
        except SpecError as error:
            self.fail(op, str(error))
        # All operands are memrefs in logical order: a batch, rows, columns; with a window digit by digit.
        windows = [(t.window, spec.operand_shape(i)) for i, t in enumerate(spec.operands)]
        ranks = [3 if window is None else len(window.shape(shape)) for window, shape in windows]
        ranks += [3] * (len(op.operands) - len(ranks))
        if [v.type.rank if isinstance(v.type, ir.MemRefType) else 0 for v in op.operands] != ranks:
            return
        lhs, rhs, out, *extras = op.operands
        with ir.InsertionPoint(op), op.location:
            sums = out
            if spec.then is not None and spec.then.sums != spec.then.dtype:
                sums = memref.alloc(ir.MemRefType.get(out.type.shape, ir.Type.parse(spec.then.sums)), [], [])
            if not spec.info.accumulates:
                element = sums.type.element_type
                zero = arith.constant(element, 0.0 if isinstance(element, ir.FloatType) else 0)
                linalg.fill(zero, outs=[sums])
            _contraction(spec.plain, lhs, rhs, sums)
            if spec.then is not None:
                _finish(op, spec.then, [sums, *extras, out])
            if sums != out:
                memref.dealloc(sums)
        op.erase()


def _apart(op: Any, spec: ChainSpec) -> None:
    """Replaces a chain by its stages as ops of their own."""
    values = dict(zip(spec.names, op.operands, strict=True))
    between = []
    with ir.InsertionPoint(op), op.location:
        for at, stage in enumerate(spec.stages):
            made = "y" if at + 1 == len(spec.stages) else f"t{at}"
            if made not in values:
                values[made] = memref.alloc(ir.MemRefType.get(stage.shape, ir.Type.parse(stage.dtype)), [], [])
                between.append(values[made])
            operands = [values[name] for name in stage.reads]
            if isinstance(stage.goal, Spec):
                # What is done to the sums has its operands behind the output.
                build_spec_op(stage.goal, [*operands[:2], values[made], *operands[2:]])
            else:
                names = (*stage.reads, made)
                build_nest_op(stage.goal, [_seen_by(stage.goal, i, n, values[n]) for i, n in enumerate(names)])
        for value in between:
            memref.dealloc(value)
    op.erase()


def _seen_by(nest: NestSpec, i: int, name: str, value: Any) -> Any:
    """Operand `i` of a nest: with all of its dims, where it is an intermediate result, and b is several of these."""
    if name[0] != "t" or len(nest.dims) == 3:
        return value
    return strided_view(value, 0, nest.dims, nest.operands[i].strides)


def _contraction(spec: Spec, lhs: Any, rhs: Any, out: Any) -> None:
    """out += lhs @ rhs. Integers are widened by the signs of their dtypes; a narrow output is rounded, or cut off, at
    every step."""
    if len({t.dtype for t in spec.operands}) == 1 and not any(t.window for t in spec.operands):
        linalg.batch_matmul(lhs, rhs, outs=[out])
        return
    maps = _maps(spec)
    narrow, wide = out.type.element_type, ir.Type.parse(spec.sums)

    def body(*elements: Any) -> Any:
        x, y, acc = (_widened(v, t.dtype, wide) for v, t in zip(elements, spec.operands, strict=True))
        total = _plus(acc, _times(x, y))
        if narrow == wide:
            return total
        return arith.truncf(narrow, total) if isinstance(wide, ir.FloatType) else arith.trunci(narrow, total)

    generic([lhs, rhs], out, maps, body)


def _maps(spec: Spec) -> list[Any]:
    """The indexing maps: one loop a dim, or a digit where some operand has a window along it."""
    digits: dict[str, tuple[int, ...]] = {}
    for tensor, (_, names) in zip(spec.operands, spec.info.operands, strict=True):
        for i, name in enumerate(names):
            units = tensor.window.of(i) if tensor.window else ()
            digits[name] = (*units, 1) if units else digits.get(name, (1,))
    loops: dict[str, list[Any]] = {}
    for name, units in digits.items():
        first = sum(len(others) for others in loops.values())
        loops[name] = [ir.AffineDimExpr.get(first + i) for i in range(len(units))]
    count = sum(len(units) for units in digits.values())

    def index(tensor: TensorSpec, i: int, name: str) -> list[Any]:
        if tensor.window and tensor.window.of(i):
            return loops[name]
        first, *rest = (loop * unit for loop, unit in zip(loops[name], digits[name], strict=True))
        return [sum(rest, first)]

    return [
        ir.AffineMap.get(count, 0, [e for i, name in enumerate(names) for e in index(tensor, i, name)])
        for tensor, (_, names) in zip(spec.operands, spec.info.operands, strict=True)
    ]


class _Lines:
    """The text of a body, op by op."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def value(self, text: str) -> str:
        self.lines.append(f"%v{len(self.lines)} = {text}")
        return f"%v{len(self.lines) - 1}"

    def constant(self, text: str, type_: str) -> str:
        return self.value(f"arith.constant {text}" + (f" : {type_}" if type_ != "i1" else ""))


def _finish(op: Any, then: Then, values: Sequence[Any]) -> None:
    """The elementwise op before `op` that reads sums and extras, and writes the results, the last of `values`."""
    *types, out = (str(v.type) for v in values)
    names = [f"%arg{i}" for i in range(len(types))]
    b = _Lines()
    elements = [f"%x{i}" for i in range(len(types))]
    (result,) = emit(b, then.body, elements)
    body = "\n".join([*b.lines, f"linalg.yield {result} : {then.dtype}"])
    arguments = ", ".join(f"{x}: {v.type.element_type}" for x, v in zip([*elements, "%old"], values, strict=True))
    same = ", ".join(["affine_map<(b, m, n) -> (b, m, n)>"] * len(values))
    parameters = ", ".join(f"{n}: {t}" for n, t in zip(names, types, strict=True))
    text = f"""func.func private @{ROOT}0({parameters}, %out: {out}) {{
      linalg.generic {{indexing_maps = [{same}], iterator_types = ["parallel", "parallel", "parallel"]}}
          ins({", ".join(names)} : {", ".join(types)}) outs(%out : {out}) {{
      ^bb0({arguments}):
        {body}
      }}
      return
    }}"""
    module = ir.Module.parse(text, op.context)
    place(next(iter(module.body.operations)), values, op)


def _widened(value: Any, dtype: str, wide: Any) -> Any:
    if value.type == wide:
        return value
    if is_float(dtype):
        return arith.extf(wide, value)
    return arith.extui(wide, value) if dtype == "u8" else arith.extsi(wide, value)


def _times(x: Any, y: Any) -> Any:
    return arith.mulf(x, y) if isinstance(x.type, ir.FloatType) else arith.muli(x, y)


def _plus(x: Any, y: Any) -> Any:
    return arith.addf(x, y) if isinstance(x.type, ir.FloatType) else arith.addi(x, y)
