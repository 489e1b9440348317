"""What it costs that threads share a nest, beside what each of them does (docs/nests.md)."""

from __future__ import annotations

import math

from ..search.schedule import Node, Parallel
from ..targets import LINE, PAGE, Target, fixed
from .ops import element_bytes
from .spec import NestSpec

#: The shortest run that is followed past its end, as what goes on is asked for ahead: bytes.
FOLLOWED = PAGE // 2
#: Cycles of a run that is too short for that: threads meet in a line where outputs do not begin at one.
MEETING = 2.0


def runs_beside(spec: NestSpec, d: int, size: int) -> list[tuple[int, bool]]:
    """By output: how many runs a thread writes beside another's, where threads share the steps of dim `d` in turns of
    `size`: every row along what is inside of `d` is in part one thread's, in part the other's. The one run that any
    two parts have in common is not counted. And whether these runs are followed past their ends."""
    out = []
    for o in spec.outputs:
        runs = math.prod(n for n, s in zip(spec.dims, o.strides, strict=True) if s > o.strides[d])
        # Where inputs go across a row, several are written at a time, none of which is followed.
        along = next((e for e, s in enumerate(o.strides) if s == 1), d)
        across = any(i.strides[along] > 1 for i in spec.inputs)
        out.append((runs - 1, not across and size * o.strides[d] * element_bytes(o.dtype) >= FOLLOWED))
    return out


def own_cost(spec: NestSpec, node: Node, target: Target) -> int:
    """What a step other than `rows` costs itself, beside the goals that it leaves."""
    if not isinstance(node, Parallel):
        return 0
    runs = runs_beside(spec, int(node.dim[1:]), node.size) if target.streams.beside else []
    beside = max((n * (target.streams.beside if followed else MEETING) for n, followed in runs), default=0.0)
    own = fixed(target.costs.fork_join) + fixed(beside)
    if not spec.far:
        return own
    # With all threads at it, the whole takes no less than DRAM does, whatever each would take by itself.
    crowded = max(0.0, 1 / target.costs.far_streams - 1 / spec.threads)
    return own + fixed(spec.bytes / LINE * target.streams.read.dram * crowded)
