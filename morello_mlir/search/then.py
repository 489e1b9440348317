"""What `then` costs: a constant of the goal. Every vector of the output gets it exactly once, whatever the schedule."""

from __future__ import annotations

import math

from ..actions import key_of
from ..spec import Extra, Spec, dtype_bytes
from ..targets import COST_UNITS, Target

_LINE = 64
#: Cycles of the ops that are no single instruction, per vector: polynomials, divisions, roots.
_FUNCTIONS = {
    **dict.fromkeys(("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "erf"), 12.0),
    **dict.fromkeys(("tan", "tanh", "atan", "atan2", "pow"), 25.0),
    **dict.fromkeys(("div", "udiv", "rem", "urem", "sqrt", "rsqrt"), 5.0),
}
#: Cycles of the others: two start per cycle.
_SIMPLE = 0.5


def then_cost(spec: Spec, target: Target) -> int:
    """In integer units; 0 for a Spec without `then`."""
    if spec.then is None:
        return 0
    b, m, _, n = spec.dims
    vectors = b * m * math.ceil(n / target.lanes(spec.then.sums))
    ops = sum(_FUNCTIONS.get(v.op, _SIMPLE) for v in spec.then.body.values if not v.is_leaf)
    loads = len(spec.then.extras) / target.costs.loads_per_cycle
    costs = target.costs
    line = (costs.far_to_l2 if spec.far else costs.gl_to_l2).long_rows
    lines = sum(_bytes(spec, e) / _LINE for e in spec.then.extras)
    threads = max(1, key_of(spec.plain, target).threads)
    return int((vectors * (ops + loads) + lines * line) / threads * COST_UNITS)


def then_bytes(spec: Spec) -> int:
    """Of what `then` reads beside the sums, each element once."""
    return sum(_bytes(spec, e) for e in spec.then.extras) if spec.then else 0


def _bytes(spec: Spec, extra: Extra) -> int:
    return dtype_bytes(extra.dtype) * math.prod(spec.size(d) for d in extra.dims)
