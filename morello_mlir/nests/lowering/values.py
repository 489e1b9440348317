"""Elementwise values of a body on vectors: MLIR types, one op after the other, for bundles.

f16 and bf16 are held in f32, and rounded where they are stored, cast or taken as bits. i1 is a mask.
"""

from __future__ import annotations

from ...lowering.builder import Builder
from ..body import Value
from ..ops import ELEMENT_BYTES, is_float
from . import vector_math
from .vectors import Bundle, Vectors, float_bits

_FLOAT_OPS = {"add": "addf", "sub": "subf", "mul": "mulf", "div": "divf", "rem": "remf"}
_INT_OPS = {
    "add": "addi",
    "sub": "subi",
    "mul": "muli",
    "div": "divsi",
    "rem": "remsi",
    "udiv": "divui",
    "urem": "remui",
    "max": "maxsi",
    "min": "minsi",
    "umax": "maxui",
    "umin": "minui",
    "and": "andi",
    "or": "ori",
    "xor": "xori",
    "shl": "shli",
    "shr": "shrsi",
    "ushr": "shrui",
}
#: What the processor does itself.
_MATH = {
    "sqrt": "sqrt",
    "floor": "floor",
    "ceil": "ceil",
    "round": "roundeven",
    "roundaway": "round",
    "trunc": "trunc",
    "abs": "absf",
    "copysign": "copysign",
}
_DIVISIONS = ("div", "rem", "udiv", "urem")


def computed(dtype: str) -> str:
    """The type in which values of `dtype` are held."""
    return "f32" if dtype in ("f16", "bf16") else dtype


class Values:
    """Ops on vectors of `lanes` elements, of any element type."""

    def __init__(self, b: Builder, lanes: int):
        self.b = b
        self.lanes = lanes
        self._floats = {dtype: Vectors(b, dtype, lanes) for dtype in ("f32", "f64")}

    def floats(self, dtype: str) -> Vectors:
        return self._floats[computed(dtype)]

    def type(self, dtype: str) -> str:
        """The MLIR type of a vector of values of `dtype`."""
        return f"vector<{self.lanes}x{computed(dtype)}>"

    def each(self, text: str, *bundles: Bundle) -> Bundle:
        return self._floats["f32"].each(text, *bundles)

    # ---------------------------------------------------------------- constants, positions

    def number(self, x: float | int, dtype: str) -> Bundle:
        """`x` in all lanes."""
        if dtype == "i1":
            text = "true" if x else "false"
        elif is_float(dtype):
            text = float_bits(float(x), computed(dtype))
        else:
            text = str(int(x))
        return (self.b.constant(f"dense<{text}>", self.type(dtype)),)

    def splat(self, scalar: str, dtype: str) -> str:
        """A scalar of the type that holds `dtype` in all lanes."""
        return self.b.value(f"vector.broadcast {scalar} : {computed(dtype)} to {self.type(dtype)}")

    def lane_numbers(self, dtype: str) -> Bundle:
        """0, 1, 2, ..."""
        numbers = ", ".join(map(str, range(self.lanes)))
        return (self.b.constant(f"dense<[{numbers}]>", self.type(dtype)),)

    # ---------------------------------------------------------------- choosing

    def select(self, mask: Bundle, x: Bundle, y: Bundle, dtype: str) -> Bundle:
        return self.each(f"arith.select {{}}, {{}}, {{}} : {self.type('i1')}, {self.type(dtype)}", mask, x, y)

    def compare(self, predicate: str, x: Bundle, y: Bundle, dtype: str) -> Bundle:
        op = "cmpf" if is_float(dtype) else "cmpi"
        return self.each(f"arith.{op} {predicate}, {{}}, {{}} : {self.type(dtype)}", x, y)

    def extreme(self, name: str, x: Bundle, y: Bundle, dtype: str) -> Bundle:
        """max, min, maxnum or minnum of floats. Either zero may come out where both are there."""
        v = self.floats(dtype)
        nearest = (v.larger if name.startswith("max") else v.smaller)(x, y)
        # One instruction gives y where either is NaN.
        if name.endswith("num"):
            return v.select(v.compare("uno", y, y), x, nearest)
        return v.select(v.compare("uno", x, x), x, nearest)

    # ---------------------------------------------------------------- one value

    def apply(self, value: Value, args: list[Bundle], operands: list[Value], live: Bundle | None) -> Bundle:
        """What `value` makes of `args`, which hold `operands`.

        live: a mask of the lanes that count; in the others division by zero must not trap."""
        op, dtype, types = value.op, value.dtype, [o.dtype for o in operands]
        if op in ("cast", "ucast", "bitcast"):
            return self.cast(op, args[0], types[0], dtype)
        if op == "cmp":
            return self.compare(str(value.attr), args[0], args[1], types[0])
        if op == "select":
            return self.select(args[0], args[1], args[2], dtype)
        if is_float(dtype):
            return self._float(op, args, dtype, operands)
        return self._integer(op, args, dtype, live)

    def _float(self, op: str, args: list[Bundle], dtype: str, operands: list[Value]) -> Bundle:
        v = self.floats(dtype)
        if op in _FLOAT_OPS:
            return self.each(f"arith.{_FLOAT_OPS[op]} {{}}, {{}} : {v.type}", *args)
        if op in ("max", "min", "maxnum", "minnum"):
            return self._float_extreme(op, args, dtype, operands)
        if op == "neg":
            return v.neg(args[0])
        if op == "fma":
            return v.fma(*args)
        if op in _MATH:
            return self.each(f"math.{_MATH[op]} {', '.join(['{}'] * len(args))} : {v.type}", *args)
        if op == "pow":
            return self._power(v, args, operands[1])
        return vector_math.apply(v, op, *args)

    def _float_extreme(self, op: str, args: list[Bundle], dtype: str, operands: list[Value]) -> Bundle:
        v = self.floats(dtype)
        x, y = args
        known = [o.op == "const" and o.number == o.number for o in operands]
        pick = v.larger if op.startswith("max") else v.smaller
        # What is known not to be NaN goes where the instruction takes the other one if that is: one instruction.
        if any(known):
            if known[1]:
                x, y = y, x
            return pick(y, x) if op.endswith("num") else pick(x, y)
        return self.extreme(op, x, y, dtype)

    def _power(self, v: Vectors, args: list[Bundle], exponent: Value) -> Bundle:
        """Powers that are products, quotients or roots, and all others."""
        x = args[0]
        known = exponent.number if exponent.op == "const" else None
        if known == 1.0:
            return x
        if known == 2.0:
            return v.mul(x, x)
        if known == 3.0:
            return v.mul(v.mul(x, x), x)
        if known == -1.0:
            return v.div(v.number(1.0), x)
        if known == 0.5:
            # (-0)^0.5 is +0, and (-inf)^0.5 is inf: what a root would not say.
            limit = v.compare("oeq", x, v.number(float("-inf")))
            return v.select(limit, v.number(float("inf")), v.sqrt(v.add(x, v.number(0.0))))
        return vector_math.apply(v, "powf", *args)

    def _integer(self, op: str, args: list[Bundle], dtype: str, live: Bundle | None) -> Bundle:
        if op == "abs":
            return self.each(f"math.absi {{}} : {self.type(dtype)}", args[0])
        if op in _DIVISIONS and live is not None:
            args = [args[0], self.select(live, args[1], self.number(1, dtype), dtype)]
        return self.each(f"arith.{_INT_OPS[op]} {{}}, {{}} : {self.type(dtype)}", *args)

    # ---------------------------------------------------------------- conversions

    def cast(self, op: str, x: Bundle, source: str, target: str) -> Bundle:
        """cast, ucast or bitcast of bodies."""
        if op == "bitcast":
            x = self.stored(x, source)
            there = f"vector<{self.lanes}x{target}>"
            x = self.each(f"arith.bitcast {{}} : vector<{self.lanes}x{source}> to {there}", x)
            return self.loaded(x, target)
        here, there = self.type(source), self.type(target)
        name = _conversion(source, target, op == "ucast")
        if name:
            x = self.each(f"arith.{name} {{}} : {here} to {there}", x)
        # A narrow float is what it is as soon as it is cast to.
        if target in ("f16", "bf16") and source != target:
            x = self.loaded(self.stored(x, target), target)
        return x

    def loaded(self, x: Bundle, dtype: str) -> Bundle:
        """Elements of `dtype` as they are held."""
        return self._floats["f32"].convert(x, dtype, "f32") if computed(dtype) != dtype else x

    def stored(self, x: Bundle, dtype: str) -> Bundle:
        """What is held for `dtype` as elements."""
        return self._floats["f32"].convert(x, "f32", dtype) if computed(dtype) != dtype else x


def _conversion(source: str, target: str, unsigned: bool) -> str | None:
    """The op of arith that makes a number of the type that holds `target` of one that holds `source`."""
    floats = is_float(source), is_float(target)
    source, target = computed(source), computed(target)
    if source == target:
        return None
    wider = ELEMENT_BYTES[target] > ELEMENT_BYTES[source] or source == "i1"
    if floats == (True, True):
        return "extf" if wider else "truncf"
    if floats == (False, False):
        return ("extui" if unsigned else "extsi") if wider and target != "i1" else "trunci"
    if floats[0]:
        return "fptoui" if unsigned else "fptosi"
    return "uitofp" if unsigned else "sitofp"
