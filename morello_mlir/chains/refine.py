"""Nests as stages of chains: their dims split and ordered as b, m and columns."""

from __future__ import annotations

from dataclasses import replace

from ..nests import NestSpec


def as_stage(nest: NestSpec, shape: tuple[int, int, int], reads: int) -> NestSpec | None:
    """`nest` with the dims b, m and columns of `shape`, the shape of the dense tensor that its input number `reads` is.
    None where its dims do not fall into these."""
    # What the tensor's dims are worth in elements, and the nest's own dims as parts of them.
    b, m, n = shape
    wanted = ((m * n, b), (n, m), (1, n))
    parts: list[list[tuple[int, int]]] = [[], [], []]
    strides = nest.operands[reads].strides
    for d, size in enumerate(nest.dims):
        stride = strides[d]
        if size == 1:
            continue
        if not stride:
            return None
        for at, (step, count) in reversed(list(enumerate(wanted))):
            if count == 1 or size == 1:
                continue
            if stride == step and (size == count or (size % count == 0 and size > count)):
                parts[at].append((d, stride // strides[d]))
                size //= count
                stride *= count
        if size != 1:
            return None
    if any(len(p) != (count > 1) for p, (_, count) in zip(parts, wanted, strict=True)):
        return None
    return _split(nest, shape, [p[0] if p else None for p in parts])


def _split(nest: NestSpec, shape: tuple[int, int, int], parts: list[tuple[int, int] | None]) -> NestSpec | None:
    """parts: by new dim, the dim that it is part of, and how many steps of that it steps; None: it has one element."""
    if any(v.op == "index" for v in nest.body.values):
        return None
    scan = tuple(p is not None and nest.scan[p[0]] for p in parts)
    # A dim that is scanned is the columns alone.
    if any(scan[:2]) or any(s and d not in [p[0] for p in parts if p] for d, s in enumerate(nest.scan)):
        return None
    operands = tuple(
        replace(o, strides=tuple(o.strides[p[0]] * p[1] if p else 0 for p in parts)) for o in nest.operands
    )
    return NestSpec(shape, scan, operands, nest.body)
