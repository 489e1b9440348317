"""The rows: contractions of every shape class and element type, their inputs, and what a right result is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

#: Up to this many multiply-adds every element of a result is checked; beyond, `SAMPLED_ROWS` rows of every batch item.
CHECK_ALL = 1 << 27
SAMPLED_ROWS = 48


@dataclass(frozen=True)
class Workload:
    """out[b, m, n] = lhs[b, m, k] @ rhs[b, k, n], row-major; without the first axis where batch is 0.

    types: element types of lhs, rhs and out (f32, f64, bf16, f16, u8, i8, i32).
    ahead: the right operand is known before the call (a weight), and may be packed by then.
    seven_bit: of unsigned bytes, only 0..127 occur.
    """

    group: str
    m: int
    k: int
    n: int
    batch: int = 0
    types: tuple[str, str, str] = ("f32", "f32", "f32")
    ahead: bool = False
    seven_bit: bool = False

    @property
    def label(self) -> str:
        batch = f"{self.batch} of " if self.batch else ""
        types = "" if self.types == ("f32",) * 3 else " " + "x".join(self.types[:2]) + "->" + self.types[2]
        marks = (" ahead" if self.ahead else "") + (" 7-bit" if self.seven_bit else "")
        return f"{batch}{self.m}x{self.k}x{self.n}{types}{marks}"

    @property
    def key(self) -> str:
        """Names the row among all: group/label."""
        return f"{self.group}/{self.label}"

    @property
    def operations(self) -> int:
        """Multiplications and additions."""
        return 2 * max(self.batch, 1) * self.m * self.k * self.n

    @property
    def bytes(self) -> int:
        """What has to be read or written at least."""
        a, b, c = (np.dtype(dtype_of(t)).itemsize for t in self.types)
        return max(self.batch, 1) * (self.m * self.k * a + self.k * self.n * b + self.m * self.n * c)

    @property
    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        lead = (self.batch,) if self.batch else ()
        return (*lead, self.m, self.k), (*lead, self.k, self.n), (*lead, self.m, self.n)

    @property
    def is_float(self) -> bool:
        return self.types[2] in ("f32", "f64")


def dtype_of(name: str) -> Any:
    """The numpy dtype of an element type; bf16's is from ml_dtypes."""
    if name == "bf16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype({"f16": "f2", "f32": "f4", "f64": "f8", "i8": "i1", "u8": "u1", "i16": "i2", "i32": "i4"}[name])


_PAGE = 4096


def aligned(shape: tuple[int, ...], dtype: Any, offset: int = 0) -> Any:
    """Zeroed memory that starts `offset` bytes into a page.

    Where operands lie within theirs decides whether loads of one wait for stores to another: it is to be the same for
    all.
    """
    dtype = np.dtype(dtype)
    size = int(np.prod(shape)) * dtype.itemsize
    raw = np.zeros(size + _PAGE + offset, np.uint8)
    start = -raw.ctypes.data % _PAGE + offset
    return raw[start : start + size].view(dtype).reshape(shape)


class Data:
    """The operands of one workload, the same in every process."""

    def __init__(self, workload: Workload, seed: int = 1):
        self.workload = workload
        rng = np.random.default_rng(seed)
        shapes = workload.shapes
        self.lhs = _random(rng, shapes[0], workload.types[0], workload.seven_bit)
        self.rhs = _random(rng, shapes[1], workload.types[1], workload.seven_bit, offset=1024 + 64)
        self.out = aligned(shapes[2], dtype_of(workload.types[2]), offset=2048 + 128)

    @cached_property
    def _rows(self) -> Any:
        """Which rows are compared."""
        w = self.workload
        if w.operations // 2 <= CHECK_ALL or w.m <= SAMPLED_ROWS:
            return np.arange(w.m)
        chosen = np.random.default_rng(2).choice(w.m, SAMPLED_ROWS - 2, replace=False)
        return np.unique([0, w.m - 1, *chosen])

    @cached_property
    def _want(self) -> Any:
        return self.lhs[..., self._rows, :].astype(np.float64) @ self.rhs.astype(np.float64)

    def error(self, got: Any, rounded_to: str | None = None) -> str | None:
        """What is wrong with a result, or None. rounded_to: the element type that a library gives where it is not the
        one asked for."""
        w = self.workload
        if got.shape != w.shapes[2]:
            return f"shape {got.shape}"
        rows = got[..., self._rows, :].astype(np.float64)
        worst = float(np.abs(rows - self._want).max()) if rows.size else 0.0
        limit = 0.0
        if w.is_float:
            scale = max(1.0, float(np.abs(self._want).max()))
            limit = float(np.finfo(dtype_of(w.types[2])).eps) * 4 * max(w.k, 16) ** 0.5 * scale
            if rounded_to:
                import ml_dtypes

                limit += float(ml_dtypes.finfo(dtype_of(rounded_to)).eps) * scale
        return None if worst <= limit else f"off by {worst:.3g}"


def _random(rng: Any, shape: tuple[int, ...], type_: str, seven_bit: bool, offset: int = 0) -> Any:
    """Centred, without denormals; integers over their whole range."""
    out = aligned(shape, dtype_of(type_), offset)
    if type_ in ("u8", "i8"):
        low, high = (0, 128 if seven_bit else 256) if type_ == "u8" else (-128, 128)
        out[...] = rng.integers(low, high, shape)
    else:
        out[...] = rng.uniform(-0.5, 0.5, shape)
    return out


_BF16, _MIXED = ("bf16", "bf16", "f32"), ("f32", "bf16", "f32")
_BYTES = ("u8", "i8", "i32")

WORKLOADS: tuple[Workload, ...] = (
    *(Workload("square", n, n, n) for n in (16, 32, 64, 100, 128, 256, 384, 512, 768, 1000, 1024, 2048, 4096)),
    *(
        Workload("odd", *s)
        for s in (
            (1, 2048, 16384), (16, 2048, 512), (197, 768, 768), (49, 1024, 4096), (64, 1024, 1024), (1000, 37, 53),
            (509, 503, 499),
        )
    ),
    *(Workload("tiny", n, n, n) for n in (4, 8, 12, 24, 48)),
    *(Workload("tiny", *s) for s in ((5, 7, 3), (13, 13, 13), (31, 17, 29))),
    *(
        Workload("skinny", *s)
        for s in (
            (2048, 2048, 1), (1, 2048, 2048), (2, 2048, 2048), (4, 2048, 2048), (8, 2048, 2048), (16, 1024, 1024),
            (2048, 2048, 2), (2048, 2048, 4), (2048, 2048, 8), (1024, 1024, 16),
            (1024, 1, 1024), (1024, 4, 1024), (1024, 16, 1024),
            (1, 100000, 1), (4, 100000, 4), (16, 100000, 16), (64, 100000, 64), (100000, 16, 16), (16, 16, 100000),
        )
    ),
    *(Workload("outer", *s) for s in ((4096, 1, 4096), (4096, 4, 4096), (4096, 16, 4096), (4096, 64, 4096))),
    *(
        Workload("batched", m, k, n, batch)
        for batch, m, k, n in (
            (512, 8, 8, 8), (256, 16, 16, 16), (64, 32, 32, 32), (64, 64, 64, 64), (12, 128, 64, 128),
            (12, 128, 128, 64), (128, 1, 64, 256), (100, 7, 13, 11),
        )
    ),
    *(Workload("ahead", m, 768, 3072, ahead=True) for m in (1, 4, 16, 64, 128)),
    *(Workload("bf16", 1, 2048, 16384, types=t) for t in (_BF16, _MIXED)),
    *(Workload("bf16", n, n, n, types=_BF16) for n in (256, 512, 1024)),
    *(
        Workload("int8", n, n, n, types=_BYTES, seven_bit=seven)
        for seven in (False, True)
        for n in (64, 128, 256, 512, 1024)
    ),
    *(Workload("f64", n, n, n, types=("f64",) * 3) for n in (64, 512, 1000)),
)  # fmt: skip


def selected(only: str) -> list[Workload]:
    """The workloads whose key contains one of the comma-separated parts of `only`; all for an empty one."""
    parts = [part for part in only.split(",") if part]
    return [w for w in WORKLOADS if not parts or any(part in w.key for part in parts)]
