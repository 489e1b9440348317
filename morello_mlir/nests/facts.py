"""What the body of a nest lets lowering do: multiply-adds, exponentials of differences, maxima that may lose NaN."""

from __future__ import annotations

from collections.abc import Sequence

from .body import Body
from .ops import is_float

#: Ops whose result is NaN wherever one of their operands is.
_PROPAGATES = frozenset(
    [
        "add",
        "sub",
        "mul",
        "div",
        "rem",
        "neg",
        "abs",
        "fma",
        "exp",
        "exp2",
        "expm1",
        "log",
        "log2",
        "log10",
        "log1p",
        "sqrt",
        "rsqrt",
        "sin",
        "cos",
        "tan",
        "tanh",
        "atan",
        "erf",
        "floor",
        "ceil",
        "round",
        "roundaway",
        "trunc",
        "cast",
        "max",
        "min",
        "reduce_sum",
        "reduce_prod",
    ]
)


class Facts:
    """products: by sum or difference, the product in it that nothing else uses: together a multiply-add. squares: by
    product that only a sum over the scan dims uses, its factors. differences: by exponential of x - m, m the maximum of
    x, (x, m). quiet: maxima whose own NaN nobody sees, since all that is made of them is NaN by another way."""

    def __init__(self, body: Body):
        self.body = body
        self.products: dict[int, int] = {}
        self.squares: dict[int, tuple[int, ...]] = {}
        self.differences: dict[int, tuple[int, int]] = {}
        for at, value in enumerate(body.values):
            if is_float(value.dtype):
                self._look(at)
        self.quiet = frozenset(r for r in body.reductions if self._is_quiet(r))

    @property
    def absorbed(self) -> frozenset[int]:
        """Products that are no instruction of their own."""
        return frozenset(self.products.values()) | frozenset(self.squares)

    def arguments(self, at: int, fuses: bool) -> Sequence[int]:
        """The values that `at` is computed from."""
        value = self.body.values[at]
        if at in self.differences:
            return self.differences[at]
        if fuses:
            product = self.products[at]
            return [*self.body.values[product].args, *(a for a in value.args if a != product)]
        return value.args

    def _look(self, at: int) -> None:
        body, value = self.body, self.body.values[at]
        if value.op in ("add", "sub") and value.args[0] != value.args[1]:
            single = [a for a in value.args if body.values[a].op == "mul" and self._is_single(a)]
            if single:
                self.products[at] = single[0]
        elif value.op == "mul" and self._is_single(at):
            (user,) = body.users[at]
            if body.values[user].op == "reduce_sum":
                self.squares[at] = value.args
        elif value.op == "exp" and value.dtype != "f64":
            inner = body.values[value.args[0]]
            if inner.op == "sub":
                x, m = inner.args
                if body.values[m].op in ("reduce_max", "reduce_maxnum") and body.values[m].args == (x,):
                    self.differences[at] = (x, m)

    def _is_single(self, at: int) -> bool:
        return len(self.body.users[at]) == 1 and at not in self.body.outputs

    def _is_quiet(self, r: int) -> bool:
        """Whether a sum of exp(x - m), m = max x, makes every output NaN that needs m, where x has NaN."""
        body = self.body
        if body.values[r].op not in ("reduce_max", "reduce_min"):
            return False
        x = body.values[r].args[0]
        # What is NaN wherever x is, element by element; then, what is NaN in all of the row.
        element = self._closure({x}, lambda at: at != r and not body.values[at].reduces)
        sums = {s for s in body.reductions if body.values[s].op == "reduce_sum" and body.values[s].args[0] in element}
        row = self._closure(sums, lambda at: True)
        return all(out in row for out in body.outputs if r in body.depends(out))

    def _closure(self, start: set[int], allowed) -> set[int]:  # type: ignore[no-untyped-def]
        out = set(start)
        for at, value in enumerate(self.body.values):
            if value.op in _PROPAGATES and is_float(value.dtype) and out.intersection(value.args) and allowed(at):
                out.add(at)
        return out
