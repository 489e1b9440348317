"""Operands to run a Spec on: memref types and arrays whose layout, strides and dtype are what its tensor specs say.

A tensor spec gives the class of a row stride, not the stride: the closest rows of that class stand for all of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..aligned import PAGE, aligned
from ..errors import SpecError
from ..runtime.elements import element_of
from ..spec import Spec, dtype_bytes, element_type
from ..spec.spec import MAX_STRIDE_CLASS

#: Distance of neighbours in a row that has gaps.
_GAP = 2


@dataclass(frozen=True)
class Operand:
    """An operand in memory. shape, strides: logical, in elements. type: of its memref. array: a view of it."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    type: str
    array: np.ndarray

    @property
    def address(self) -> int:
        return int(self.array.ctypes.data)


def operand_strides(spec: Spec, i: int) -> tuple[int, ...]:
    """Strides of operand `i` in elements. Raises SpecError: it is not in GL, or packed, or no stride has its class."""
    tensor, shape = spec.operands[i], spec.operand_shape(i)
    name = spec.info.operands[i][0]
    if tensor.memory != "GL" or tensor.layout.is_packed:
        raise SpecError(f"{name} is {tensor.text(spec.operand_names(i))}: only unpacked operands in GL can be measured")
    order = [dim for dim, _ in tensor.layout.parts][::-1]
    inner = 1 if tensor.unit else _GAP
    out = {order[0]: inner}
    step = shape[order[0]] * inner
    if tensor.row_stride is not None:
        size = dtype_bytes(tensor.dtype)
        if tensor.row_stride % size:
            raise SpecError(f"{name}: no row stride of {tensor.dtype} elements has the class s{tensor.row_stride}")
        step = _of_class(max(step, 1), tensor.row_stride, tensor.row_stride // size)
    for dim in order[1:]:
        out[dim] = step
        step *= shape[dim]
    return tuple(out[d] for d in range(len(shape)))


def _of_class(least: int, wanted: int, step: int) -> int:
    """The least stride of at least `least` elements whose class is `wanted` bytes, which are `step` elements."""
    count = -(-least // step)
    if wanted < MAX_STRIDE_CLASS and count % 2 == 0:
        count += 1
    return count * step


def memref_types(spec: Spec) -> list[str]:
    """The memref types of the operands. Raises SpecError as `operand_strides`."""
    return [_memref(spec, i, operand_strides(spec, i)) for i in range(len(spec.operands))]


def _memref(spec: Spec, i: int, strides: Sequence[int]) -> str:
    shape = "x".join(map(str, spec.operand_shape(i)))
    return f"memref<{shape}x{element_type(spec.operands[i].dtype)}, strided<{list(strides)}>>"


def make_operands(spec: Spec, seed: int = 0) -> list[Operand]:
    """Operands for `spec` with random contents, each at the start of a page. Raises SpecError, MemoryError."""
    rng = np.random.default_rng(seed)
    out = []
    for i, tensor in enumerate(spec.operands):
        shape, strides = spec.operand_shape(i), operand_strides(spec, i)
        dtype = _numpy(tensor.dtype)
        extent = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) if math.prod(shape) else 0
        flat = _aligned(extent, dtype)
        array = np.lib.stride_tricks.as_strided(flat, shape, [s * dtype.itemsize for s in strides])
        array[...] = rng.integers(0, 4, shape) if dtype.kind in "iu" else rng.uniform(-1, 1, shape)
        out.append(Operand(shape, strides, _memref(spec, i, strides), array))
    return out


def _numpy(dtype: str) -> np.dtype:
    element = element_of(dtype.replace("u", "ui") if dtype.startswith("u") else dtype)
    if element is None:
        raise SpecError(f"there are no arrays of {dtype}")
    return element.dtype


def _aligned(count: int, dtype: np.dtype) -> np.ndarray:
    # A page more at the end: what measures beside it may write whole vectors.
    return aligned(count * dtype.itemsize, PAGE, beyond=PAGE).view(dtype)


def expected(spec: Spec, operands: Sequence[np.ndarray]) -> np.ndarray:
    """What the output must hold after one run on `operands`, in a type wide enough to compare with."""
    whole = operands[-1].dtype.kind in "iu"
    single = all(o.dtype == np.float32 for o in operands)
    wide = np.dtype("int64" if whole else "float32" if single else "float64")
    product: np.ndarray = operands[0].astype(wide) @ operands[1].astype(wide)
    return operands[2].astype(wide) + product if spec.info.accumulates else product


def is_close(spec: Spec, got: np.ndarray, want: np.ndarray) -> bool:
    """Whether an output is right, up to the rounding of its dtype."""
    if got.dtype.kind in "iu":
        return bool((got == want.astype(got.dtype)).all())
    import ml_dtypes

    eps = float(ml_dtypes.finfo(got.dtype).eps)
    slack = max(1e-3, 8 * eps * math.sqrt(max(spec.size("k"), 1)))
    return bool(np.allclose(got.astype(want.dtype), want, rtol=slack, atol=slack))
