"""The canonical form of a nest: equal goals become equal objects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .body import Body, BodyBuilder, Value
from .spec import NestSpec


def canonical(spec: NestSpec) -> NestSpec:
    """See `NestSpec.canonical`."""
    spec = replace(spec, body=spec.body.canonical())
    spec = _settled(_drop_ones(spec))
    while (merged := _merge(spec)) is not None:
        spec = merged
    spec = _reorder(spec, sorted(range(len(spec.dims)), key=lambda d: _rank(spec, d)))
    spec = replace(spec, body=spec.body.canonical())
    alone = spec.serial or spec.threads == 1
    return replace(spec, serial=alone, threads=0 if alone else spec.threads)


def _settled(spec: NestSpec) -> NestSpec:
    """Without reductions over no dims, and without scan dims where nothing is reduced."""
    if not spec.scan_dims and spec.body.reductions:
        b = BodyBuilder()
        made: list[int] = []
        for value in spec.body.values:
            # The one value there is, or its position.
            made.append(made[value.args[-1]] if value.reduces else b.add(value, [made[a] for a in value.args]))
        spec = replace(spec, body=b.build([made[v] for v in spec.body.outputs]))
    if spec.scan_dims and not spec.body.reductions:
        idle = [d for d in spec.scan_dims if not any(o.strides[d] for o in spec.outputs) and spec.dims[d]]
        spec = replace(spec, scan=tuple(s and d not in idle for d, s in enumerate(spec.scan)))
        kept = [d for d in range(len(spec.dims)) if d not in idle]
        if len({bool(o.strides[d]) for d in spec.scan_dims for o in spec.outputs}) <= 1 and kept:
            spec = replace(_reorder(spec, kept), scan=(False,) * len(kept))
    return spec


def _rank(spec: NestSpec, d: int) -> tuple[object, ...]:
    """Parallel dims first; the outputs' strides decide, then the inputs', the largest first."""
    order = (*spec.outputs, *spec.inputs)
    return (spec.scan[d], *(-o.strides[d] for o in order), -spec.dims[d], d)


def _positions(body: Body) -> set[int]:
    """Dims whose position the body uses."""
    return {int(v.attr or 0) for v in body.values if v.op == "index"}


def _drop_ones(spec: NestSpec) -> NestSpec:
    """Without dims of size one (but one, where there is no other): positions along them are 0."""
    kept = [d for d, n in enumerate(spec.dims) if n != 1]
    if kept:
        return _reorder(spec, kept)
    # A parallel dim of one step, along which nothing varies.
    still = tuple(o.picked(()).widened(0) for o in spec.operands)
    body = _renumbered(spec.body, {})
    return NestSpec((1,), (False,), still, body, spec.serial, spec.threads, spec.far, spec.among)


def _reorder(spec: NestSpec, kept: Sequence[int], dims: tuple[int, ...] | None = None) -> NestSpec:
    """The dims `kept`, in that order; dims: other sizes."""

    def pick(items: Sequence[int]) -> tuple[int, ...]:
        return tuple(items[d] for d in kept)

    operands = tuple(o.picked(kept) for o in spec.operands)
    scan = tuple(spec.scan[d] for d in kept)
    body = _renumbered(spec.body, {d: i for i, d in enumerate(kept)})
    return NestSpec(pick(dims or spec.dims), scan, operands, body, spec.serial, spec.threads, spec.far, spec.among)


def _renumbered(body: Body, dims: dict[int, int]) -> Body:
    """`body` with the dims of its positions renamed; 0 stands for the position along dims that are gone."""
    b = BodyBuilder()
    made: list[int] = []
    for value in body.values:
        if value.op == "index" and int(value.attr or 0) not in dims:
            made.append(b.const(0, value.dtype))
        elif value.op == "index":
            made.append(b.add(Value("index", (), value.dtype, dims[int(value.attr or 0)]), ()))
        else:
            made.append(b.add(value, [made[a] for a in value.args]))
    return b.build([made[v] for v in body.outputs])


def _merge(spec: NestSpec) -> NestSpec | None:
    """Two dims made one, where every operand steps through them as through one; None where there are none."""
    used = _positions(spec.body) | {d for o in spec.operands for b in o.borders for d, s in enumerate(b.steps) if s}
    for outer in range(len(spec.dims)):
        for inner in range(len(spec.dims)):
            if outer == inner or spec.scan[outer] != spec.scan[inner] or used & {outer, inner}:
                continue
            if all(o.strides[outer] == spec.dims[inner] * o.strides[inner] for o in spec.operands):
                return _merged(spec, outer, inner)
    return None


def _merged(spec: NestSpec, outer: int, inner: int) -> NestSpec:
    """The operands' strides along the inner dim serve for both."""
    dims = tuple(n * spec.dims[outer] if d == inner else n for d, n in enumerate(spec.dims))
    return _reorder(spec, [d for d in range(len(dims)) if d != outer], dims)
