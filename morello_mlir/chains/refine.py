"""Nests as stages of chains: their dims split and ordered as b, m and columns."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..nests import NestSpec


@dataclass(frozen=True, slots=True)
class Part:
    """Part of dim `dim` of a nest: every `steps` of its steps, `size` times."""

    dim: int
    steps: int
    size: int


def as_stage(nest: NestSpec, shape: tuple[int, int, int], reads: int) -> NestSpec | None:
    """`nest` with the dims b, m and columns of `shape`, the shape of the dense tensor that its input number `reads` is;
    b stays several dims where the nest has it so. None where its dims do not fall into these."""
    # What the tensor's dims are worth in elements, and the nest's own dims as parts of them.
    b, m, n = shape
    wanted = ((m * n, b), (n, m), (1, n))
    parts: list[list[Part]] = [[], [], []]
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
                parts[at].append(Part(d, stride // strides[d], count))
                size //= count
                stride *= count
            elif at == 0 and stride % step == 0 and count % size == 0:
                parts[at].append(Part(d, stride // strides[d], size))
                size = 1
        if size != 1:
            return None
    batch = sorted(parts[0], key=lambda p: -strides[p.dim] * p.steps)
    step = m * n
    for part in reversed(batch):
        if strides[part.dim] * part.steps != step:
            return None
        step *= part.size
    if step != b * m * n or any(len(p) != (count > 1) for p, (_, count) in zip(parts[1:], wanted[1:], strict=True)):
        return None
    dims = (*[p.size for p in batch], m, n) if batch else shape
    return _split(nest, dims, [*(batch or (None,)), *(p[0] if p else None for p in parts[1:])])


def _split(nest: NestSpec, dims: tuple[int, ...], parts: list[Part | None]) -> NestSpec | None:
    """parts: by new dim, what it is; None: it has one element."""
    if any(v.op == "index" for v in nest.body.values):
        return None
    scan = tuple(p is not None and nest.scan[p.dim] for p in parts)
    # A dim that is scanned is the columns alone.
    if any(scan[:-1]) or any(s and d not in [p.dim for p in parts if p] for d, s in enumerate(nest.scan)):
        return None
    operands = tuple(
        replace(o, strides=tuple(o.strides[p.dim] * p.steps if p else 0 for p in parts)) for o in nest.operands
    )
    return NestSpec(dims, scan, operands, nest.body)
