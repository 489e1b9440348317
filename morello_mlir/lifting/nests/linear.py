"""Integers in the body of a nest that are linear in the positions along its dims: which places of a table are known."""

from __future__ import annotations

from collections.abc import Sequence

from morello_mlir.nests import BodyBuilder

from .index import Index

#: Types of places, and of what they are computed from.
_WHOLE = ("i32", "i64")


def linear(b: BodyBuilder, at: int, sizes: Sequence[int]) -> Index | None:
    """An integer of a nest's body as a linear expression of its dims; None where it is none, or might not be. sizes: of
    the dims."""
    value = b.value(at)
    if value.op == "const":
        return Index(int(value.number)) if value.dtype in _WHOLE else None
    if value.op == "index":
        return Index.dim(int(value.attr or 0))
    if value.op == "select":
        holds = _compared(b, value.args[0], sizes)
        return None if holds is None else linear(b, value.args[1 if holds else 2], sizes)
    if value.op not in ("cast", "add", "sub", "mul", "max", "min", "umax", "umin"):
        return None
    args = [linear(b, a, sizes) for a in value.args]
    found = [a for a in args if a is not None]
    if len(found) < len(args):
        return None
    out = _combined(value.op, found, sizes)
    if out is None or value.dtype not in _WHOLE:
        return None
    low, high = bounds(out, sizes)
    limit = 1 << 31
    return out if -limit <= low and high < limit else None


def _combined(op: str, args: Sequence[Index], sizes: Sequence[int]) -> Index | None:
    if op == "cast":
        return args[0]
    x, y = args
    if op == "add":
        return x + y
    if op == "sub":
        return x + y.times(-1)
    if op == "mul":
        return x.times(y.base) if not y.terms else y.times(x.base) if not x.terms else None
    (low, high), (least, most) = bounds(x, sizes), bounds(y, sizes)
    if op[0] == "u" and min(low, least) < 0:
        return None
    if high <= least:
        return y if op.endswith("max") else x
    return (x if op.endswith("max") else y) if low >= most else None


def _compared(b: BodyBuilder, at: int, sizes: Sequence[int]) -> bool | None:
    """Whether a comparison (`slt`, `sge`) holds, where it does at all points, or at none."""
    value = b.value(at)
    if value.op != "cmp" or value.attr not in ("slt", "sge"):
        return None
    x, y = (linear(b, a, sizes) for a in value.args)
    if x is None or y is None:
        return None
    (low, high), (least, most) = bounds(x, sizes), bounds(y, sizes)
    if high < least:
        return bool(value.attr == "slt")
    return bool(value.attr == "sge") if low >= most else None


def bounds(index: Index, sizes: Sequence[int]) -> tuple[int, int]:
    """The smallest and the largest value."""
    reach = [c * (sizes[d] - 1) for d, c in index.terms]
    return index.base + sum(min(0, r) for r in reach), index.base + sum(max(0, r) for r in reach)


def is_in(index: Index, extent: int, sizes: Sequence[int]) -> bool:
    """Whether all places are among `extent` ones, and go forwards."""
    low, high = bounds(index, sizes)
    return low >= 0 and high < extent and all(c > 0 for _, c in index.terms)
