"""The search for nests."""

from __future__ import annotations

from ..search.nest_steps import Pass, Rows
from ..search.schedule import Node, Parallel
from ..targets import Target
from .plan import goals, value_of
from .spec import NestSpec


def vector_dim(spec: NestSpec) -> int:
    """A dim along which most operands are contiguous."""
    score = [sum(2 * (o.strides[d] == 1) - (o.strides[d] > 1) for o in spec.operands) for d in range(len(spec.dims))]
    return max(range(len(spec.dims)), key=lambda d: (score[d], min(spec.dims[d], 64), d))


def default(spec: NestSpec, target: Target) -> Node:
    """A legal schedule: every reduction in a pass of its own, then the outputs."""
    from .plan import swept_outputs

    swept = len(swept_outputs(spec))
    names = goals(spec)
    split = len(names) - swept
    passes = [Pass((name,)) for name in sorted(names[:split], key=lambda n: value_of(n, spec))]
    if swept:
        passes.append(Pass(names[split:]))
    rows = Rows(f"d{vector_dim(spec)}", 1, (), 0, tuple(passes))
    if spec.serial:
        return rows
    from ..search.schedule import Serial

    for d in spec.parallel_dims:
        if spec.dims[d] > 1 and spec.dims[d] % 2 == 0:
            return Parallel(f"d{d}", spec.dims[d] // 2, rows, None)
    return Serial(rows)
