"""Elementwise bodies as code: every op once, on vectors or on scalars."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from ..nests.body import Body, Value
from ..nests.ops import element_bytes, is_float, numpy_type

#: Ops of one type by name: what they are called for floats, and for integers.
_NAMES = {
    **{name: (f"arith.{name}f", f"arith.{name}i") for name in ("add", "sub", "mul")},
    "div": ("arith.divf", "arith.divsi"),
    "rem": ("arith.remf", "arith.remsi"),
    "max": ("arith.maximumf", "arith.maxsi"),
    "min": ("arith.minimumf", "arith.minsi"),
    "neg": ("arith.negf", ""),
    "abs": ("math.absf", "math.absi"),
    "maxnum": ("arith.maxnumf", ""),
    "minnum": ("arith.minnumf", ""),
    "pow": ("math.powf", ""),
    "atan2": ("math.atan2", ""),
    "copysign": ("math.copysign", ""),
    "fma": ("math.fma", ""),
    "round": ("math.roundeven", ""),
    "roundaway": ("math.round", ""),
    "umax": ("", "arith.maxui"),
    "umin": ("", "arith.minui"),
    "and": ("", "arith.andi"),
    "or": ("", "arith.ori"),
    "xor": ("", "arith.xori"),
    "shl": ("", "arith.shli"),
    "shr": ("", "arith.shrsi"),
    "ushr": ("", "arith.shrui"),
    "udiv": ("", "arith.divui"),
    "urem": ("", "arith.remui"),
}
_DECIMAL = re.compile(r"-?[0-9]+\.[0-9]*(e[-+]?[0-9]+)?")


class Text(Protocol):
    """What takes the text of ops; see `Builder`."""

    def value(self, text: str) -> str: ...

    def constant(self, text: str, type_: str) -> str: ...


def emit(b: Text, body: Body, inputs: Sequence[str], lanes: int = 0) -> list[str]:
    """The outputs of an elementwise `body`, given the names of its inputs: vectors of `lanes`, or scalars (0)."""
    made: list[str] = []
    for value in body.values:
        if value.op == "input":
            made.append(inputs[int(value.attr or 0)])
        elif value.op == "const":
            made.append(constant(b, value, lanes))
        else:
            types = [body.values[a].dtype for a in value.args]
            made.append(_op(b, value, [made[a] for a in value.args], types, lanes))
    return [made[v] for v in body.outputs]


def type_of(dtype: str, lanes: int) -> str:
    """The MLIR type of a vector of `lanes` elements, or of a scalar (0)."""
    return f"vector<{lanes}x{dtype}>" if lanes else dtype


def constant(b: Text, value: Value, lanes: int) -> str:
    """A constant in all lanes (0: a scalar); its SSA name."""
    text = _literal(value)
    return b.constant(f"dense<{text}>" if lanes else text, type_of(value.dtype, lanes))


def _literal(value: Value) -> str:
    """A constant as MLIR reads it: the bits, where it has no plain decimal form."""
    text = str(value.attr)
    if value.dtype == "i1":
        return "true" if value.number else "false"
    if not is_float(value.dtype) or _DECIMAL.fullmatch(text):
        return text
    bits = np.array(value.number, numpy_type(value.dtype)).tobytes()[::-1].hex()
    return f"0x{bits.upper()}"


def _op(b: Text, value: Value, args: list[str], types: list[str], lanes: int) -> str:
    own = type_of(value.dtype, lanes)
    if value.op == "cmp":
        kind = "cmpf" if is_float(types[0]) else "cmpi"
        return b.value(f"arith.{kind} {value.attr}, {args[0]}, {args[1]} : {type_of(types[0], lanes)}")
    if value.op == "select":
        condition = f"{type_of('i1', lanes)}, " if lanes else ""
        return b.value(f"arith.select {', '.join(args)} : {condition}{own}")
    if value.op in ("cast", "ucast", "bitcast"):
        return _cast(b, value.op, args[0], types[0], value.dtype, lanes)
    if value.op == "neg" and not is_float(value.dtype):
        zero = b.constant("dense<0>" if lanes else "0", own)
        return b.value(f"arith.subi {zero}, {args[0]} : {own}")
    floats, integers = _NAMES.get(value.op, (f"math.{value.op}", ""))
    return b.value(f"{floats if is_float(value.dtype) else integers} {', '.join(args)} : {own}")


def _cast(b: Text, kind: str, x: str, source: str, target: str, lanes: int) -> str:
    if kind == "bitcast":
        name = "bitcast"
    elif is_float(source) and is_float(target):
        if element_bytes(source) == element_bytes(target):
            # Two kinds of 16 bits: by way of what holds both.
            return _cast(b, kind, _cast(b, kind, x, source, "f32", lanes), "f32", target, lanes)
        name = "extf" if element_bytes(target) > element_bytes(source) else "truncf"
    elif is_float(source):
        name = "fptoui" if kind == "ucast" else "fptosi"
    elif is_float(target):
        name = "uitofp" if kind == "ucast" else "sitofp"
    elif _bits(target) < _bits(source):
        name = "trunci"
    else:
        name = "extui" if kind == "ucast" else "extsi"
    return b.value(f"arith.{name} {x} : {type_of(source, lanes)} to {type_of(target, lanes)}")


def _bits(dtype: str) -> int:
    return 1 if dtype == "i1" else 8 * element_bytes(dtype)
