"""Random programs of elementwise ops, reductions, transposes and reshapes: their nests compute the same."""

import numpy as np
import pytest
from nest_program_support import Program, numbers

import morello_mlir

_UNARY = ["math.exp %a", "arith.negf %a", "math.tanh %a", "math.absf %a", "arith.addf %a, %a"]
_BINARY = ["arith.addf %a, %b", "arith.subf %a, %b", "arith.mulf %a, %b", "arith.maximumf %a, %b"]
_REDUCING = [
    ("%y = arith.addf %a, %o : f32", "0.0"),
    ("%y = arith.maximumf %a, %o : f32", "0xFF800000"),
    ("%q = arith.mulf %a, %a : f32\n%y = arith.addf %o, %q : f32", "1.0"),
]


def add_op(rng, p, values):
    """One more op on the last value or an earlier one; its result, or None where the one drawn does not fit."""
    x = values[-1] if rng.random() < 0.7 else values[rng.integers(len(values))]
    rank = len(x.shape)
    kind = rng.choice(["unary", "binary", "reduce", "transpose", "reshape"], p=[0.3, 0.3, 0.2, 0.1, 0.1])
    if kind == "unary":
        return p.map(f"%y = {rng.choice(_UNARY)} : f32", x, shape=x.shape)
    if kind == "binary":
        return _binary(rng, p, x, values[rng.integers(len(values))])
    if kind == "reduce" and rank:
        dims = sorted(rng.choice(rank, size=rng.integers(1, rank + 1), replace=False).tolist())
        body, init = _REDUCING[rng.integers(len(_REDUCING))]
        return p.reduce(body, x, dims, init, keep=bool(rng.random() < 0.5))
    if kind == "transpose" and rank > 1:
        order = rng.permutation(rank).tolist()
        inverse = ", ".join(f"d{order.index(i)}" for i in range(rank))
        return p.map("%y = arith.negf %a : f32", x, shape=[x.shape[d] for d in order], maps=[f"({inverse})"])
    if kind == "reshape" and rank > 1:
        at = int(rng.integers(rank - 1))
        groups = [[d] for d in range(at)] + [[at, at + 1]] + [[d] for d in range(at + 2, rank)]
        shape = (*x.shape[:at], x.shape[at] * x.shape[at + 1], *x.shape[at + 2 :])
        return p.reshaped(x, groups, shape)
    return None


def _binary(rng, p, x, y):
    big, small = (x, y) if len(x.shape) >= len(y.shape) else (y, x)
    for shift in (len(big.shape) - len(small.shape), 0):
        if all(n in (1, big.shape[shift + i]) for i, n in enumerate(small.shape)):
            dims = ", ".join("0" if n == 1 else f"d{shift + i}" for i, n in enumerate(small.shape))
            return p.map(f"%y = {rng.choice(_BINARY)} : f32", big, small, shape=big.shape, maps=["", f"({dims})"])
    return None


@pytest.mark.parametrize("seed", range(8))
def test_random_programs(seed):
    rng = np.random.default_rng(seed)
    p = Program()
    sizes = [int(rng.choice([1, 2, 3, 5, 8])) for _ in range(3)]
    arguments = [p.argument(*sizes), p.argument(*sizes), p.argument(sizes[-1])]
    values = list(arguments)
    for _ in range(9):
        made = add_op(rng, p, values)
        values += [made] if made is not None else []
    made = values[len(arguments) :]
    results = list(dict.fromkeys([made[-1], *(v for v in made if rng.random() < 0.2)]))
    text = p.text(*results)
    inputs = [numbers(a.shape, seed=i) for i, a in enumerate(arguments)]
    lifted, plain = morello_mlir.compile(text, memo="off"), morello_mlir.compile(text, optimize=False)
    assert lifted.left == 0
    with np.errstate(all="ignore"):
        pairs = zip(
            *(np.atleast_1d(m.f(*inputs)) if len(results) == 1 else m.f(*inputs) for m in (lifted, plain)), strict=True
        )
        for got, expected in pairs:
            np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)
