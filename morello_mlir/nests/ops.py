"""What the body of a nest is made of: element types, elementwise ops and reductions, and what types they take.

Integers have no sign: ops that tell signs apart come in two kinds (`div` and `udiv`, `cast` and `ucast`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..errors import SpecError

#: Bytes per element in memory; i1 lies in a byte.
ELEMENT_BYTES = {"f64": 8, "f32": 4, "f16": 2, "bf16": 2, "i64": 8, "i32": 4, "i16": 2, "i8": 1, "i1": 1}
FLOATS = ("f64", "f32", "f16", "bf16")


def element_bytes(dtype: str) -> int:
    """Raises SpecError for an unknown element type."""
    try:
        return ELEMENT_BYTES[dtype]
    except KeyError:
        raise SpecError(f"unknown element type '{dtype}' (have {', '.join(ELEMENT_BYTES)})") from None


def is_float(dtype: str) -> bool:
    """Whether values of that dtype are floats."""
    return dtype in FLOATS


def numpy_type(dtype: str) -> np.dtype:
    """The NumPy type that holds elements of `dtype`."""
    if dtype == "bf16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    names = {"f64": "f8", "f32": "f4", "f16": "f2", "i64": "i8", "i32": "i4", "i16": "i2", "i8": "i1", "i1": "?"}
    return np.dtype(names[dtype])


@dataclass(frozen=True, slots=True)
class Op:
    """kind: which element types its operands have (`float`, `int` or `any`, all of one type, which is the result's).
    commutes: the order of its operands does not matter."""

    name: str
    arity: int
    kind: str
    commutes: bool = False


def _table() -> dict[str, Op]:
    unary = (
        "exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan tanh atan erf floor ceil round roundaway trunc neg"
    )
    out = [Op(name, 1, "float") for name in unary.split()]
    out += [Op("abs", 1, "any")]
    out += [Op(name, 2, "any", True) for name in ("add", "mul", "max", "min")]
    out += [Op(name, 2, "float", True) for name in ("maxnum", "minnum")]
    out += [Op(name, 2, "int", True) for name in ("umax", "umin", "and", "or", "xor")]
    out += [Op(name, 2, "any") for name in ("sub", "div", "rem")]
    out += [Op(name, 2, "float") for name in ("pow", "atan2", "copysign")]
    out += [Op(name, 2, "int") for name in ("udiv", "urem", "shl", "shr", "ushr")]
    out += [Op("fma", 3, "float")]
    return {op.name: op for op in out}


#: Elementwise ops whose operands and result have one type. `max`, `min` of floats are NaN where either is (arith's
#: maximumf), `maxnum`, `minnum` the other where one is; of integers, signed. `round` goes to the even neighbour.
ELEMENTWISE = _table()
#: Ops with a type, a predicate, or operands of several types. gather: an element of a table (see `tables`). cast: a
#: number to the nearest of another type (signed; floats to integers towards zero); bitcast: the same bits.
SPECIAL = ("input", "gather", "const", "index", "cast", "ucast", "bitcast", "cmp", "select")
#: Reductions over all scan dims, by the name of their text, and which types they take. Of no elements: 0, 1, the least,
#: the largest. `argmax(v, p)`: the smallest p where v is largest (NaN is larger and smaller than all, the first of
#: several by p); the `num` kinds pass over NaN, and are 0 where nothing is larger (smaller) than -inf (inf).
REDUCTIONS = {
    "sum": "any",
    "prod": "any",
    "max": "any",
    "min": "any",
    "maxnum": "float",
    "minnum": "float",
    "umax": "int",
    "umin": "int",
    "and": "int",
    "or": "int",
    "xor": "int",
    "argmax": "any",
    "argmin": "any",
    "argmaxnum": "float",
    "argminnum": "float",
}
REDUCE = "reduce_"
FLOAT_PREDICATES = (
    *("oeq", "ogt", "oge", "olt", "ole", "one", "ord"),
    *("ueq", "ugt", "uge", "ult", "ule", "une", "uno"),
)
INT_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")


def literal(value: float, dtype: str) -> str:
    """The text of a constant: the shortest that reads back as the same value of `dtype`. Raises SpecError."""
    if dtype == "i1":
        return str(int(bool(value)))
    if not is_float(dtype):
        bits = 8 * element_bytes(dtype)
        if int(value) != value or not -(1 << (bits - 1)) <= value < 1 << bits:
            raise SpecError(f"{value} is no {dtype}")
        value = int(value) & ((1 << bits) - 1)
        return str(value - (1 << bits) if value >> (bits - 1) else value)
    with np.errstate(over="ignore"):
        rounded = numpy_type(dtype).type(value)
    if math.isnan(float(rounded)):
        return "nan"
    return repr(float(rounded)) if dtype in ("f64", "bf16") or math.isinf(float(rounded)) else str(rounded)


def number(text: str, dtype: str) -> float | int:
    """The value of a constant's text. Raises SpecError."""
    try:
        return float(text) if is_float(dtype) else int(text)
    except ValueError:
        raise SpecError(f"'{text}' is no {dtype}") from None
