"""The pass `morello-legalize-float`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import mlir.ir as ir
from mlir.dialects import arith, func

from .base import Pass
from .symbols import all_ops, function_named, has_body
from .types import function_type


@dataclass(frozen=True)
class LegalizeFloat(Pass):
    """Narrow f64 to f16 and bf16 by way of f32, correctly rounded; `math.expm1` of a number becomes the library's.

    LLVM calls a library function that nobody links for the direct conversion. Rounding twice would be wrong; rounding
    the first time *to odd* (an inexact result gets an odd last bit) makes the second rounding the only one that counts.
    Upstream makes exp(x) - 1 of `math.expm1`, which is 0 for every small x.
    """

    name: ClassVar[str] = "morello-legalize-float"
    summary: ClassVar[str] = "Narrow f64 to f16 and bf16 through f32, rounded once; call the library for expm1"

    def run(self, op: Any) -> None:
        for each in all_ops(op):
            if each.name == "arith.truncf" and _narrows_f64(each.operands[0].type, each.results[0].type):
                _rewrite(each)
            elif each.name == "math.expm1" and isinstance(each.results[0].type, (ir.F32Type, ir.F64Type)):
                _call_library(each, op, "expm1")


def _call_library(each: Any, module: Any, name: str) -> None:
    """Puts a call of the C library's function in the place of a scalar op of one operand, unless the module has
    something else under its name."""
    type_ = each.results[0].type
    symbol = name + ("f" if isinstance(type_, ir.F32Type) else "")
    signature = ir.FunctionType.get([type_], [type_])
    known = function_named(module, symbol)
    if known is None:
        with ir.InsertionPoint.at_block_begin(module.operation.regions[0].blocks[0]), each.location:
            known = func.FuncOp(symbol, signature, visibility="private")
        known.attributes["llvm.readnone"] = ir.UnitAttr.get()
    if has_body(known) or function_type(known) != signature:
        return
    with ir.InsertionPoint(each), each.location:
        call = func.CallOp([type_], symbol, [each.operands[0]])
    each.results[0].replace_all_uses_with(call.results[0])
    each.erase()


def _narrows_f64(source: Any, target: Any) -> bool:
    """Whether a conversion goes from f64 to one of the 16-bit types, scalar or vector."""
    return _element(source) == ir.F64Type.get() and _element(target) in (ir.F16Type.get(), ir.BF16Type.get())


def _element(type_: Any) -> Any:
    return type_.element_type if isinstance(type_, ir.VectorType) else type_


def _like(shape_of: Any, element: Any) -> Any:
    return ir.VectorType.get(shape_of.shape, element) if isinstance(shape_of, ir.VectorType) else element


def _constant(type_: Any, value: int) -> Any:
    attribute = ir.IntegerAttr.get(_element(type_), value)
    if isinstance(type_, ir.VectorType):
        attribute = ir.DenseElementsAttr.get_splat(type_, attribute)
    return arith.ConstantOp(type_, attribute).result


def _rewrite(op: Any) -> None:
    source = op.operands[0]
    with ir.InsertionPoint(op), op.location:
        single = _like(source.type, ir.F32Type.get())
        bits = _like(source.type, ir.IntegerType.get_signless(32))
        nearest = arith.TruncFOp(single, source).result
        back = arith.ExtFOp(source.type, nearest).result
        pattern = arith.BitcastOp(bits, nearest).result
        # Towards zero, then set the last bit: of the two floats around the value, the odd one.
        beyond = _larger_magnitude(back, source)
        lower = arith.SubIOp(pattern, arith.ExtUIOp(bits, beyond).result).result
        odd = arith.OrIOp(lower, _constant(bits, 1)).result
        inexact = arith.CmpFOp(arith.CmpFPredicate.ONE, back, source).result
        chosen = arith.SelectOp(inexact, odd, pattern).result
        op.operands[0] = arith.BitcastOp(single, chosen).result


def _larger_magnitude(a: Any, b: Any) -> Any:
    """Whether |a| > |b|, for f64 values of the same sign."""
    bits = _like(a.type, ir.IntegerType.get_signless(64))
    mask = _constant(bits, (1 << 63) - 1)
    left = arith.AndIOp(arith.BitcastOp(bits, a).result, mask).result
    right = arith.AndIOp(arith.BitcastOp(bits, b).result, mask).result
    return arith.CmpIOp(arith.CmpIPredicate.ugt, left, right).result
