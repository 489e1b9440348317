"""Element types of Specs."""

from __future__ import annotations

from ..errors import SpecError

#: Bytes per element. What a target has kernels for is the target's business.
DTYPE_BYTES = {"f32": 4, "f64": 8, "f16": 2, "bf16": 2, "i8": 1, "u8": 1, "i16": 2, "i32": 4, "i64": 8}


def dtype_bytes(name: str) -> int:
    """Bytes per element of dtype `name`. Raises SpecError for an unknown one."""
    try:
        return DTYPE_BYTES[name]
    except KeyError:
        raise SpecError(f"unknown dtype '{name}' (have {', '.join(DTYPE_BYTES)})") from None
