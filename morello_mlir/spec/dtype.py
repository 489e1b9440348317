"""Element types of Specs."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import SpecError

#: Bytes per element. What a target has kernels for is the target's business.
DTYPE_BYTES = {"f32": 4, "f64": 8, "f16": 2, "bf16": 2, "i8": 1, "u8": 1, "i16": 2, "i32": 4, "i64": 8}


def dtype_bytes(name: str) -> int:
    """Bytes per element of dtype `name`. Raises SpecError for an unknown one."""
    try:
        return DTYPE_BYTES[name]
    except KeyError:
        raise SpecError(f"unknown dtype '{name}' (have {', '.join(DTYPE_BYTES)})") from None


def is_float(name: str) -> bool:
    """Whether elements of that dtype are floats."""
    return name in ("f64", "f32", "f16", "bf16")


def element_type(name: str) -> str:
    """The MLIR type of the elements of dtype `name`: MLIR's integers have no sign, ours say how they are widened."""
    return "i8" if name == "u8" else name


def accumulator(inputs: Sequence[str], out: str) -> str | None:
    """The dtype in which a contraction of `inputs` with output `out` is added up; None where there is none.

    Floats: f32, or f64 where the output is f64. Outputs narrower than that are rounded once, at the end. Integers: i32,
    or i64 where the output is that, and sums wrap around; of narrower outputs the upper bits are dropped, which gives
    what sums of that type are.
    """
    if any(name not in DTYPE_BYTES for name in (*inputs, out)):
        return None
    if is_float(out):
        wide = "f64" if out == "f64" else "f32"
        fits = all(is_float(x) and dtype_bytes(x) <= dtype_bytes(wide) for x in inputs)
        return wide if fits else None
    wide = "i64" if out == "i64" else "i32"
    fits = all(not is_float(x) and dtype_bytes(x) <= dtype_bytes(wide) for x in inputs)
    return wide if fits else None
