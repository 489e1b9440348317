"""Element types: how a value of an MLIR type looks to numpy and to LLVM."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np


@dataclass(frozen=True)
class Element:
    """One element type.

    mlir:     its MLIR spelling, `f32`.
    dtype:    what results have.
    accepts:  what arguments may have (the same size and meaning; bf16 as its bits in uint16, i1 as uint8 0/1).
    llvm:     the LLVM type of a value in a register.
    """

    mlir: str
    dtype: np.dtype
    llvm: str
    accepts: tuple[np.dtype, ...] = field(default=())

    @property
    def size(self) -> int:
        """Bytes of one element in memory."""
        return self.dtype.itemsize

    def describe(self) -> str:
        """The dtypes an argument may have, in words."""
        return " or ".join(d.name for d in self.accepts)


_FLOATS: dict[str, tuple[Any, str]] = {
    "f16": (np.float16, "half"),
    "bf16": (ml_dtypes.bfloat16, "bfloat"),
    "f32": (np.float32, "float"),
    "f64": (np.float64, "double"),
    "f8E4M3FN": (ml_dtypes.float8_e4m3fn, "i8"),
    "f8E5M2": (ml_dtypes.float8_e5m2, "i8"),
    "f8E4M3FNUZ": (ml_dtypes.float8_e4m3fnuz, "i8"),
    "f8E5M2FNUZ": (ml_dtypes.float8_e5m2fnuz, "i8"),
}
_COMPLEX: dict[str, tuple[Any, str]] = {
    "complex<f32>": (np.complex64, "{ float, float }"),
    "complex<f64>": (np.complex128, "{ double, double }"),
}


@cache
def element_of(mlir: str) -> Element | None:
    """The element type of that MLIR spelling, or None where arrays cannot hold it."""
    if mlir in _FLOATS:
        kind, llvm = _FLOATS[mlir]
        dtype = np.dtype(kind)
        bits = np.dtype(f"uint{8 * dtype.itemsize}") if dtype.itemsize <= 2 else None
        if bits is None or mlir == "f16":
            return Element(mlir, dtype, llvm, (dtype,))
        return Element(mlir, dtype, llvm, (dtype, bits))
    if mlir in _COMPLEX:
        kind, llvm = _COMPLEX[mlir]
        return Element(mlir, np.dtype(kind), llvm, (np.dtype(kind),))
    return _integer(mlir)


def _integer(mlir: str) -> Element | None:
    if mlir == "index":
        return Element("index", np.dtype(np.int64), "i64", (np.dtype(np.int64), np.dtype(np.uint64)))
    match = re.fullmatch(r"(s|u)?i([0-9]+)", mlir)
    if not match or not 1 <= int(match[2]) <= 64:
        return None
    width = int(match[2])
    if width == 1:
        return Element(mlir, np.dtype(bool), "i1", (np.dtype(bool), np.dtype(np.uint8)))
    stored = next(w for w in (8, 16, 32, 64) if w >= width)
    signed, unsigned = np.dtype(f"int{stored}"), np.dtype(f"uint{stored}")
    dtype = unsigned if match[1] == "u" else signed
    # Signless: the bits are what counts, and upstream's own tools print them as signed.
    return Element(mlir, dtype, f"i{width}", (signed, unsigned))
