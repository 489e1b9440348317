"""What a body computes, with less: comparisons in the type that they are about, bits that are known, products for
quotients."""

from __future__ import annotations

import math

import numpy as np

from .body import Body, BodyBuilder, Value
from .ops import is_float, numpy_type

#: Floats that hold every value of another.
_WIDER = {"f16": ("f32", "f64"), "bf16": ("f32", "f64"), "f32": ("f64",)}


def simplified(body: Body) -> Body:
    """`body` with comparisons of widened values done before they are widened, without `and` and `or` of what is known,
    and with products in place of quotients by powers of two: what is rounded is the same number.

    Frontends compare with numbers of Python's, which are f64. The same object where there is nothing to do.
    """
    if not any(_concerns(v) for v in body.values):
        return body
    b = BodyBuilder()
    made: list[int] = []
    for value in body.values:
        args = [made[a] for a in value.args]
        if value.op == "cmp":
            made.append(b.cmp(str(value.attr), *_narrow(b, args)))
        elif value.op in ("and", "or") and value.dtype == "i1":
            made.append(_bits(b, value, args))
        elif value.op == "div" and (inverse := _inverse(b.value(args[1]))) is not None:
            made.append(b.op("mul", args[0], b.const(inverse, value.dtype)))
        else:
            made.append(b.add(value, args))
    return b.build([made[v] for v in body.outputs])


def _concerns(value: Value) -> bool:
    return value.op in ("cmp", "div") or (value.op in ("and", "or") and value.dtype == "i1")


def _inverse(value: Value) -> float | None:
    """One over a constant that is a power of two, where that is a normal number as well; None of others."""
    if value.op != "const" or value.dtype not in ("f32", "f64", "bf16"):
        return None
    number = float(value.number)
    mantissa, exponent = math.frexp(number) if math.isfinite(number) else (0.0, 0)
    return 1 / number if abs(mantissa) == 0.5 and abs(exponent) < 100 else None


def _narrow(b: BodyBuilder, args: list[int]) -> list[int]:
    """The operands of a comparison, in the narrowest type that has both; their order is the same in it."""
    casts = [b.value(a) for a in args if b.value(a).op == "cast"]
    if not casts or not is_float(b.dtype(args[0])):
        return args
    dtype = b.dtype(casts[0].args[0])
    if b.dtype(args[0]) not in _WIDER.get(dtype, ()):
        return args
    out = []
    for at in args:
        value = b.value(at)
        if value.op == "cast" and b.dtype(value.args[0]) == dtype:
            out.append(value.args[0])
        elif value.op == "const" and _holds(dtype, value):
            out.append(b.const(value.number, dtype))
        else:
            return args
    return out


def _holds(dtype: str, constant: Value) -> bool:
    """Whether `dtype` has exactly that number."""
    number = float(constant.number)
    with np.errstate(over="ignore"):  # one that is too large becomes infinite
        return number != number or float(numpy_type(dtype).type(number)) == number


def _bits(b: BodyBuilder, value: Value, args: list[int]) -> int:
    """`and` or `or` of i1."""
    for at, other in (args, args[::-1]):
        known = b.value(at)
        if known.op == "const":
            return other if bool(known.number) == (value.op == "and") else at
    return b.add(value, args)
