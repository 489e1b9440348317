"""Comparing results with expectations: |got - want| <= atol + rtol * |want|, NaN equal to NaN, integers exactly."""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np

from morello_mlir.errors import InputError

# By size of the result's dtype: what rounding in another order may change.
_DEFAULTS = {
    np.dtype(np.float64): (1e-9, 1e-11),
    np.dtype(np.complex128): (1e-9, 1e-11),
    np.dtype(np.float32): (1e-4, 1e-5),
    np.dtype(np.complex64): (1e-4, 1e-5),
    np.dtype(np.float16): (1e-2, 1e-3),
    np.dtype(ml_dtypes.bfloat16): (3e-2, 1e-2),
}


@dataclass(frozen=True)
class Comparison:
    """How one array compares.

    max_abs, max_rel: the largest finite differences, absolute and relative to |want| where that is not zero.
    message: what is wrong, with the first place; empty if nothing is.
    """

    ok: bool
    max_abs: float
    max_rel: float
    message: str = ""


def with_dtype(want: np.ndarray, dtype: np.dtype, name: str) -> np.ndarray:
    """An expected array with the dtype of the result: bits of bf16 and i1, and signs of integers, are reinterpreted.

    Raises InputError where the dtype is another one.
    """
    if want.dtype == dtype:
        return want
    if dtype == np.bool_ and want.dtype == np.uint8:
        return want != 0
    custom = dtype.kind == "V" or dtype.type.__module__ == "ml_dtypes"
    same_size = want.dtype.itemsize == dtype.itemsize
    if same_size and want.dtype.kind in "iu" and (dtype.kind in "iu" or custom):
        return want.view(dtype)
    raise InputError(f"{name}: expected values have dtype {want.dtype.name}, the program gives {dtype.name}")


def compare(
    got: np.ndarray,
    want: np.ndarray,
    name: str,
    rtol: float | None = None,
    atol: float | None = None,
    *,
    scale: bool = False,
) -> Comparison:
    """Compare one array.

    rtol, atol: None for defaults by dtype; scale: multiply the default atol by the root mean square of `want` where
    that is above 1, for sums of many terms whose size is not known beforehand.
    Raises InputError: another shape or dtype.
    """
    if got.shape != want.shape:
        raise InputError(f"{name}: expected values have shape {want.shape}, the program gives {got.shape}")
    want = with_dtype(want, got.dtype, name)
    if got.dtype.kind in "iub":
        return _exact(got, want, name)
    default_rtol, default_atol = _DEFAULTS.get(got.dtype, (0.1, 0.1))
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    got, want = got.astype(wide), want.astype(wide)
    if scale and atol is None:
        finite = np.abs(want[np.isfinite(want)])
        rms = float(np.sqrt(np.mean(np.square(finite)))) if finite.size else 0.0
        default_atol *= max(1.0, rms)
    return _close(got, want, name, default_rtol if rtol is None else rtol, default_atol if atol is None else atol)


def _exact(got: np.ndarray, want: np.ndarray, name: str) -> Comparison:
    wrong = got != want
    if not wrong.any():
        return Comparison(True, 0.0, 0.0)
    difference = np.abs(got.astype(np.float64) - want.astype(np.float64))
    relative = difference / np.maximum(np.abs(want.astype(np.float64)), 1)
    return Comparison(False, float(difference.max()), float(relative.max()), _first(got, want, wrong, name))


def _close(got: np.ndarray, want: np.ndarray, name: str, rtol: float, atol: float) -> Comparison:
    with np.errstate(all="ignore"):
        difference = np.abs(got - want)
        same = (got == want) | (np.isnan(got) & np.isnan(want))
        # An infinity is close to nothing but itself, and the bound below would be infinite with it.
        finite = np.isfinite(got) & np.isfinite(want)
        good = same | (finite & (difference <= atol + rtol * np.abs(want)))
        measured = difference[finite]
        magnitude = np.abs(want[finite])
        relative = measured[magnitude > 0] / magnitude[magnitude > 0]
    largest = float(measured.max(initial=0.0))
    if good.all():
        return Comparison(True, largest, float(relative.max(initial=0.0)))
    return Comparison(False, largest, float(relative.max(initial=0.0)), _first(got, want, ~good, name))


def _first(got: np.ndarray, want: np.ndarray, wrong: np.ndarray, name: str) -> str:
    place = tuple(int(i) for i in np.argwhere(wrong)[0])
    at = f"[{', '.join(map(str, place))}]" if place else ""
    count = int(wrong.sum())
    return f"{name}{at}: got {got[place]}, expected {want[place]} ({count} of {wrong.size} elements differ)"
