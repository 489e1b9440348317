"""What a body means, in NumPy: the reference that everything else is tested against."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import SpecError
from .body import Body, Value
from .ops import REDUCE, element_bytes, is_float, numpy_type
from .tables import gathered

_erf = np.vectorize(math.erf, otypes=[float])

_UNARY: dict[str, Callable[[Any], Any]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "tanh": np.tanh,
    "atan": np.arctan,
    "erf": lambda x: _erf(x) if np.size(x) else x,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "roundaway": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
    "trunc": np.trunc,
    "neg": np.negative,
    "abs": np.abs,
}
_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "maxnum": np.fmax,
    "minnum": np.fmin,
    "pow": np.power,
    "atan2": np.arctan2,
    "copysign": np.copysign,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
_PREDICATES: dict[str, Callable[[Any, Any], Any]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def evaluate(
    body: Body, arrays: Sequence[np.ndarray], scan_axes: Sequence[int], *, wide: bool = False
) -> list[np.ndarray]:
    """The outputs of `body`. arrays: the inputs, all of one rank, of size 1 along axes along which they do not vary (of
    at least one the size elsewhere); tables have their own as further ones. scan_axes: what reductions run over;
    these axes have size 1 in their results.

    wide: floats are computed and returned in f64. f16 and bf16 are computed in f32 and rounded after every op; their
    sums and products are rounded once, at the end.
    """
    axes = {body.values[v].attr: len(body.values[v].args) for v in body.gathers}
    shapes = [a.shape[: a.ndim - axes.get(k, 0)] for k, a in enumerate(arrays)]
    if len({len(s) for s in shapes}) > 1:
        raise SpecError("the arrays must have one rank")
    shape = np.broadcast_shapes(*shapes)
    run = _Run(shape, tuple(scan_axes), wide)
    values: list[np.ndarray] = []
    with np.errstate(all="ignore"):
        for value in body.values:
            values.append(run.value(value, [values[a] for a in value.args], arrays))
    return [values[v] for v in body.outputs]


class _Run:
    def __init__(self, shape: tuple[int, ...], scan: tuple[int, ...], wide: bool):
        self.shape = shape
        self.scan = scan
        self.wide = wide

    def type(self, dtype: str) -> np.dtype:
        return np.dtype("f8") if self.wide and is_float(dtype) else numpy_type(dtype)

    def compute(self, array: np.ndarray) -> np.ndarray:
        """`array` in the type that NumPy computes in."""
        return array.astype("f4") if array.dtype in (np.dtype("f2"), numpy_type("bf16")) else array

    def value(self, value: Value, args: list[np.ndarray], arrays: Sequence[np.ndarray]) -> np.ndarray:
        out = self.type(value.dtype)
        if value.op == "input":
            return np.asarray(arrays[int(value.attr or 0)]).astype(out)
        if value.op == "gather":
            return gathered(np.asarray(arrays[int(value.attr or 0)]), args).astype(out)
        if value.op == "const":
            one = np.array(value.number, np.int64 if not is_float(value.dtype) else np.float64)
            return one.astype(out).reshape((1,) * len(self.shape))
        if value.op == "index":
            at = int(value.attr or 0)
            return np.arange(self.shape[at], dtype=out).reshape([-1 if d == at else 1 for d in range(len(self.shape))])
        if value.op == "bitcast":
            # Bits are those of the declared types, whatever is computed in.
            return args[0].astype(self.narrow(value, args)).view(numpy_type(value.dtype)).astype(out)
        if value.reduces:
            return self.reduction(value.op.removeprefix(REDUCE), [self.compute(a) for a in args]).astype(out)
        return np.asarray(self.elementwise(value, [self.compute(a) for a in args])).astype(out)

    def narrow(self, value: Value, args: list[np.ndarray]) -> np.dtype:
        size = element_bytes(value.dtype)
        if args[0].dtype.itemsize == size or args[0].dtype.kind != "f":
            return args[0].dtype
        return np.dtype(f"f{size}")

    def elementwise(self, value: Value, args: list[np.ndarray]) -> Any:
        op = value.op
        if op in _UNARY:
            return _UNARY[op](args[0])
        if op in _BINARY:
            return _BINARY[op](*args)
        if op == "fma":
            return (
                np.asarray(args[0], "f8") * args[1] + args[2] if value.dtype != "f64" else args[0] * args[1] + args[2]
            )
        if op == "select":
            return np.where(*args)
        if op == "cmp":
            return _compare(str(value.attr), *args)
        if op in ("cast", "ucast"):
            return _cast(args[0], value.dtype, op == "ucast")
        return _integer_or_division(op, *args)

    def reduction(self, name: str, args: list[np.ndarray]) -> np.ndarray:
        v = args[0]
        full = [s if d in self.scan else v.shape[d] for d, s in enumerate(self.shape)]
        v = np.broadcast_to(v, full)
        if name.startswith("arg"):
            return self.arg(name, v, np.broadcast_to(args[1], np.broadcast_shapes(args[1].shape, v.shape)))
        low, high = _bounds(v.dtype)
        kept: dict[str, Any] = {"axis": self.scan, "keepdims": True}
        if name == "sum":
            return np.sum(v, dtype=v.dtype, **kept)
        if name == "prod":
            return np.prod(v, dtype=v.dtype, **kept)
        if name in ("and", "or", "xor"):
            combine: Any = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[name]
            return combine.reduce(v, **kept)
        if name in ("umax", "umin"):
            u = v.view(v.dtype.str.replace("i", "u")) if v.dtype.kind == "i" else v
            first = np.array(0 if name == "umax" else -1).astype(v.dtype).view(u.dtype)[()]
            unsigned: Any = np.maximum if name == "umax" else np.minimum
            return unsigned.reduce(u, initial=first, **kept).view(v.dtype)
        ufunc: Any = {"max": np.maximum, "min": np.minimum, "maxnum": np.fmax, "minnum": np.fmin}[name]
        return ufunc.reduce(v, initial=low if name.startswith("max") else high, **kept)

    def arg(self, name: str, v: np.ndarray, payload: np.ndarray) -> np.ndarray:
        v = np.broadcast_to(v, payload.shape)
        low, high = _bounds(v.dtype)
        largest = name.startswith("argmax")
        first = low if largest else high
        if name.endswith("num"):
            v = np.where(np.isnan(v), first, v)
        best = (np.maximum if largest else np.minimum).reduce(v, axis=self.scan, keepdims=True, initial=first)
        at = (v == best) | (np.isnan(v) if v.dtype.kind == "f" else False)
        at &= (best != first) if name.endswith("num") else True
        if v.dtype.kind == "f":
            at &= np.isnan(v) | ~np.isnan(best)
        _, top = _bounds(payload.dtype)
        found = np.minimum.reduce(np.where(at, payload, top), axis=self.scan, keepdims=True, initial=top)
        return np.where(at.any(axis=self.scan, keepdims=True), found, 0)


def _bounds(dtype: np.dtype) -> tuple[Any, Any]:
    if dtype.kind == "f":
        return -np.inf, np.inf
    if dtype.kind == "b":
        return False, True
    info = np.iinfo(dtype)
    return info.min, info.max


def _unsigned(a: np.ndarray) -> np.ndarray:
    return a.view(a.dtype.str.replace("i", "u")) if a.dtype.kind == "i" else a


def _compare(predicate: str, a: np.ndarray, b: np.ndarray) -> Any:
    if a.dtype.kind != "f":
        if predicate[0] == "u":
            a, b = _unsigned(a), _unsigned(b)
        return _PREDICATES[predicate.lstrip("su") if predicate not in ("eq", "ne") else predicate](a, b)
    unordered = np.isnan(a) | np.isnan(b)
    if predicate in ("ord", "uno"):
        return unordered if predicate == "uno" else ~unordered
    holds = _PREDICATES[predicate[1:]](a, b)
    return holds | unordered if predicate[0] == "u" else holds & ~unordered


def _cast(a: np.ndarray, dtype: str, unsigned: bool) -> np.ndarray:
    if unsigned and a.dtype.kind == "i":
        return _unsigned(a)
    # i1 is -1 where it has a sign.
    if a.dtype.kind == "b" and not unsigned:
        return -a.astype("i8")
    if dtype == "i1" and a.dtype.kind == "i":
        return (a & 1).astype(bool)
    return np.trunc(a) if a.dtype.kind == "f" and not is_float(dtype) else a


def _integer_or_division(op: str, a: np.ndarray, b: np.ndarray) -> Any:
    if a.dtype.kind == "f":
        return np.divide(a, b) if op == "div" else np.fmod(a, b)
    if op[0] == "u":
        a, b = _unsigned(a), _unsigned(b)
        op = op.removeprefix("u")
        name = {
            "max": np.maximum,
            "min": np.minimum,
            "div": np.floor_divide,
            "rem": np.remainder,
            "shr": np.right_shift,
        }
        out = name[op](a, b) if a.dtype.kind != "b" or op in ("max", "min") else a & ~b if op == "rem" else a
        return out.view(out.dtype.str.replace("u", "i")) if out.dtype.kind == "u" else out
    if op == "div":
        whole = np.floor_divide(a, b)
        return whole + ((np.remainder(a, b) != 0) & ((a < 0) != (b < 0)))
    if op == "rem":
        return np.fmod(a, b)
    return np.left_shift(a, b) if op == "shl" else np.right_shift(a, b)
