"""Arithmetic on bundles of 1-D vectors, as MLIR text.

A bundle is a tuple of SSA names of one type: the vectors that an unrolled loop works on at once. Every op is written
for all of a bundle before the next op begins, so that neighbours in the code do not wait for one another. A bundle of
one stands for as many equal vectors as its partner has: constants, and values of a row.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TypeAlias

from ...lowering.builder import Builder

Bundle: TypeAlias = tuple[str, ...]

_BITS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}


def float_bits(x: float, dtype: str) -> str:
    """The literal of `x`, rounded to f32 or f64, bit for bit."""
    if dtype == "f64":
        return f"0x{struct.unpack('<Q', struct.pack('<d', x))[0]:016X}"
    try:
        word = struct.unpack("<I", struct.pack("<f", x))[0]
    except OverflowError:
        word = 0x7F800000 if x > 0 else 0xFF800000
    return f"0x{word:08X}"


class Vectors:
    """Vectors of `lanes` floats of `dtype` (f32 or f64), the integers of the same width, and masks of as many lanes."""

    def __init__(self, b: Builder, dtype: str, lanes: int):
        self.b = b
        self.dtype = dtype
        self.lanes = lanes
        self.width = _BITS[dtype]
        self.type = f"vector<{lanes}x{dtype}>"
        self.int_type = f"vector<{lanes}xi{self.width}>"
        self.mask_type = f"vector<{lanes}xi1>"
        machine = getattr(b, "machine", None)
        #: Whether there is an instruction that multiplies by powers of two: AVX-512 has one.
        self.has_scale = machine is not None and machine.masks and dtype == "f32" and lanes in (8, 16)

        #: Whether there is an instruction that looks 16 numbers up among 32: AVX-512 has one.
        self.has_lookup = self.has_scale and lanes == 16

    def wider(self) -> Vectors:
        """As many lanes of f64."""
        return Vectors(self.b, "f64", self.lanes)

    def each(self, text: str, *bundles: Bundle) -> Bundle:
        """`text` for every vector of the bundles, its `{}` filled with their names."""
        count = max((len(x) for x in bundles), default=1)
        return tuple(self.b.value(text.format(*(x[i] if len(x) > 1 else x[0] for x in bundles))) for i in range(count))

    # ---------------------------------------------------------------- constants

    def number(self, x: float) -> Bundle:
        return (self.b.constant(f"dense<{float_bits(x, self.dtype)}>", self.type),)

    def integer(self, n: int) -> Bundle:
        return (self.b.constant(f"dense<{n}>", self.int_type),)

    # ---------------------------------------------------------------- floats

    def _float(self, op: str, *args: Bundle) -> Bundle:
        return self.each(f"{op} {', '.join(['{}'] * len(args))} : {self.type}", *args)

    def add(self, x: Bundle, y: Bundle) -> Bundle:
        return self._float("arith.addf", x, y)

    def sub(self, x: Bundle, y: Bundle) -> Bundle:
        return self._float("arith.subf", x, y)

    def mul(self, x: Bundle, y: Bundle) -> Bundle:
        return self._float("arith.mulf", x, y)

    def div(self, x: Bundle, y: Bundle) -> Bundle:
        return self._float("arith.divf", x, y)

    def neg(self, x: Bundle) -> Bundle:
        return self._float("arith.negf", x)

    def fma(self, x: Bundle, y: Bundle, z: Bundle) -> Bundle:
        """x * y + z, rounded once."""
        return self._float("vector.fma", x, y, z)

    def absolute(self, x: Bundle) -> Bundle:
        return self._float("math.absf", x)

    def sqrt(self, x: Bundle) -> Bundle:
        return self._float("math.sqrt", x)

    def floor(self, x: Bundle) -> Bundle:
        return self._float("math.floor", x)

    def compare(self, predicate: str, x: Bundle, y: Bundle) -> Bundle:
        """A mask; `predicate` is one of arith.cmpf's."""
        return self.each(f"arith.cmpf {predicate}, {{}}, {{}} : {self.type}", x, y)

    def select(self, mask: Bundle, x: Bundle, y: Bundle) -> Bundle:
        """x where the mask holds, else y."""
        return self.each(f"arith.select {{}}, {{}}, {{}} : {self.mask_type}, {self.type}", mask, x, y)

    def either(self, x: Bundle, y: Bundle) -> Bundle:
        """Masks: x or y."""
        return self.each(f"arith.ori {{}}, {{}} : {self.mask_type}", x, y)

    def both(self, x: Bundle, y: Bundle) -> Bundle:
        """Masks: x and y."""
        return self.each(f"arith.andi {{}}, {{}} : {self.mask_type}", x, y)

    def larger(self, x: Bundle, y: Bundle) -> Bundle:
        """x > y ? x : y, one instruction. Where either is NaN this is y: put there what has to survive."""
        return self.select(self.compare("ogt", x, y), x, y)

    def smaller(self, x: Bundle, y: Bundle) -> Bundle:
        """x < y ? x : y, one instruction. Where either is NaN this is y."""
        return self.select(self.compare("olt", x, y), x, y)

    def scale(self, x: Bundle, n: Bundle) -> Bundle:
        """x 2^n, n integers as floats, of any size; where `has_scale`."""
        bits = 32 * self.lanes
        mask = self.b.constant("-1", f"i{self.lanes}")
        rest = f", {{}}, {mask}" + (f", {self.b.constant('4', 'i32')}" if bits == 512 else "")
        types = f"{self.type}, {self.type}, {self.type}, i{self.lanes}" + (", i32" if bits == 512 else "")
        name = f"llvm.x86.avx512.mask.scalef.ps.{bits}"
        return self.each(f'llvm.call_intrinsic "{name}"({{}}, {{}}{rest}) : ({types}) -> {self.type}', x, n, x)

    def over_floor(self, x: Bundle) -> Bundle:
        """x - floor(x), 0 for infinities; where `has_scale`."""
        bits = 32 * self.lanes
        mask = self.b.constant("-1", f"i{self.lanes}")
        imm = self.b.constant("1", "i32")
        rest = f", {imm}, {{}}, {mask}" + (f", {self.b.constant('4', 'i32')}" if bits == 512 else "")
        types = f"{self.type}, i32, {self.type}, i{self.lanes}" + (", i32" if bits == 512 else "")
        name = f"llvm.x86.avx512.mask.reduce.ps.{bits}"
        return self.each(f'llvm.call_intrinsic "{name}"({{}}{rest}) : ({types}) -> {self.type}', x, x)

    def lookup(self, table: Sequence[float], at: Bundle) -> Bundle:
        """Of 32 numbers those at the places that the low five bits of the integers `at` say; where `has_lookup`."""
        low, high = (
            self.b.constant(f"dense<[{', '.join(float_bits(x, self.dtype) for x in half)}]>", self.type)
            for half in (table[:16], table[16:])
        )
        types = f"{self.type}, {self.int_type}, {self.type}"
        call = f'llvm.call_intrinsic "llvm.x86.avx512.vpermi2var.ps.512"({low}, {{}}, {high})'
        return self.each(f"{call} : ({types}) -> {self.type}", at)

    def horner(self, coefficients: Sequence[float], x: Bundle) -> Bundle:
        """The polynomial with these coefficients, lowest power first."""
        p = self.number(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            p = self.fma(p, x, self.number(c))
        return p

    # ---------------------------------------------------------------- bits

    def bits(self, x: Bundle) -> Bundle:
        return self.each(f"vector.bitcast {{}} : {self.type} to {self.int_type}", x)

    def floats(self, x: Bundle) -> Bundle:
        return self.each(f"vector.bitcast {{}} : {self.int_type} to {self.type}", x)

    def int_op(self, op: str, x: Bundle, y: Bundle) -> Bundle:
        """addi, subi, andi, ori, xori, shli, shrui or shrsi of arith."""
        return self.each(f"arith.{op} {{}}, {{}} : {self.int_type}", x, y)

    def to_float(self, x: Bundle) -> Bundle:
        """Signed integers as floats."""
        return self.each(f"arith.sitofp {{}} : {self.int_type} to {self.type}", x)

    def with_sign_of(self, x: Bundle, y: Bundle) -> Bundle:
        """x, which is not negative, with the sign of y."""
        sign = self.int_op("andi", self.bits(y), self.integer(-(1 << (self.width - 1))))
        return self.floats(self.int_op("ori", self.bits(x), sign))

    # ---------------------------------------------------------------- other widths

    def convert(self, x: Bundle, source: str, target: str) -> Bundle:
        """Floats of dtype `source` as `target`."""
        return tuple(self.b.convert(v, source, target, self.lanes) for v in x)
