"""Reductions in the bodies of linalg ops: what combines an element with what has been accumulated so far.

A combination is translated with the accumulators as x0 (and x1), and what does not depend on them as further inputs; it
is then one of a list of forms. Which NaN a form hands on matters: forms whose result depends on the order of the
elements once there are NaNs are taken only where fast-math flags say that there are none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import permutations
from typing import Any

from mlir import ir

from morello_mlir.nests import Body, BodyBuilder
from morello_mlir.nests.ops import is_float

from ..outcome import NotLifted
from .scalars import Scalars, constant_in, dtype_of
from .structured import Structured

_WIDE = {"f16": "f32", "bf16": "f32"}
_UNKNOWN = "it is no reduction that we know"
_LARGEST = {"max": "gt", "min": "lt"}


class Reductions:
    """The results of one reducing op as values of a nest's body.

    scalars: translates what does not depend on the accumulators. init: the value that result r starts from.
    """

    def __init__(self, op: Structured, scalars: Scalars, init: Callable[[int], int]):
        self.op = op
        self.b = scalars.b
        self._scalars = scalars
        self._init = init
        self._accumulators = list(op.block.arguments)[op.input_count :]

    def result(self, r: int) -> int:
        """The value of result r. Raises NotLifted."""
        used = self.accumulators_of(self.op.yielded[r])
        if used == {r}:
            return self._single(r)
        if len(used) == 2 and r in used:
            (other,) = used - {r}
            return self._position(other, r)
        raise NotLifted(_UNKNOWN)

    def accumulators_of(self, value: Any) -> set[int]:
        """The accumulators that a value in the op's body is made of."""
        found: set[int] = set()
        todo, seen = [value], set()
        while todo:
            here = todo.pop()
            if here in seen:
                continue
            seen.add(here)
            if here in self._accumulators:
                found.add(self._accumulators.index(here))
            elif not isinstance(here.owner, ir.Block) and here.owner.operation.block == self.op.block:
                todo += list(here.owner.operation.operands)
        return found

    def _form(self, accumulators: Sequence[int], results: Sequence[int]) -> tuple[Body, list[Any]]:
        """The combination that yields `results`, and the SSA values that its inputs after the accumulators are."""
        scratch = _Scratch(self, [self._accumulators[a] for a in accumulators])
        outputs = [scratch.value(self.op.yielded[r]) for r in results]
        return scratch.b.build(outputs).canonical(), scratch.leaves

    # ------------------------------------------------------------ one accumulator

    def _single(self, r: int) -> int:
        form, leaves = self._form([r], [r])
        dtype = dtype_of(self._accumulators[r].type)
        types = [dtype_of(v.type) for v in leaves]
        for name, signed, order in _match(form, dtype, tuple(types), self._without_nan()):
            terms = [self._scalars.value(leaves[i]) for i in order]
            value = self.b.op("mul", *terms) if len(terms) == 2 else terms[0]
            return self._reduced(name, self.b.op("neg", value) if signed and is_float(dtype) else value, r, signed)
        raise NotLifted(_UNKNOWN)

    def _reduced(self, name: str, value: int, r: int, signed: bool) -> int:
        """The reduction `name` of `value`, with what result r starts from. signed: it is taken off instead."""
        dtype = dtype_of(self._accumulators[r].type)
        if signed and not is_float(dtype):
            value = self.b.op("sub", self.b.const(0, dtype), value)
        wide = _WIDE.get(dtype, dtype) if name in ("sum", "prod") else dtype
        total = self.b.reduce(name, self.b.cast(value, wide))
        init = self._init(r)
        if not _is_identity(constant_in(self.b, init), name, dtype):
            op = {"sum": "add", "prod": "mul"}.get(name, name)
            total = self.b.op(op, self.b.cast(init, wide), total)
        return self.b.cast(total, dtype)

    def _without_nan(self) -> bool:
        """Whether flags say so of every comparison and selection in the body."""
        flags = [
            str(op.operation.attributes["fastmath"]) if "fastmath" in op.operation.attributes else ""
            for op in self.op.block.operations
            if op.operation.name == "arith.cmpf"
        ]
        return bool(flags) and all("nnan" in f or "fast>" in f for f in flags)

    # ------------------------------------------------------------ the position of an extremum

    def _position(self, of: int, r: int) -> int:
        """Result r, the position of the extremum that is result `of`."""
        form, leaves = self._form([of, r], [of, r])
        dtype, positions = (dtype_of(self._accumulators[a].type) for a in (of, r))
        found = next(_match_position(form, dtype, positions, [dtype_of(v.type) for v in leaves]), None)
        if found is None:
            raise NotLifted(_UNKNOWN)
        kind, extremum, (v, p) = found
        value, position = self._scalars.value(leaves[v]), self._scalars.value(leaves[p])
        if not self._counts(position):
            raise NotLifted("what it takes for positions are not those along one loop")
        init = self._init(of)
        start = constant_in(self.b, init)
        if start is None or start != start or constant_in(self.b, self._init(r)) != 0:
            raise NotLifted("an extremum and its position do not start from constants, the position 0")
        if kind == "until" and not self._without_nan():
            value = self._until_nan(extremum, value, position)
        passes_over = kind in ("until", "num") and is_float(dtype)
        if not _is_identity(start, extremum, dtype):
            # What is no better than the start is as good as it: the first of them is at 0, where the start is.
            value = self.b.op(f"{extremum}num" if passes_over else extremum, value, init)
        return self.b.reduce(f"arg{extremum}{'num' if passes_over else ''}", value, position)

    def _until_nan(self, extremum: str, value: int, position: int) -> int:
        """What comes before the first NaN, and after it what no extremum is."""
        b = self.b
        dtype, positions = b.dtype(value), b.dtype(position)
        far = b.const((1 << (31 if positions == "i32" else 63)) - 1, positions)
        first = b.reduce("min", b.op("select", b.cmp("uno", value, value), position, far))
        worst = b.const(float("-inf") if extremum == "max" else float("inf"), dtype)
        return b.op("select", b.cmp("slt", position, first), value, worst)

    def _counts(self, position: int) -> bool:
        """Whether a value counts the iterations of the op's only reducing loop from 0."""
        if len(self.op.reduced) != 1:
            return False
        value = self.b.value(position)
        while value.op == "cast":
            value = self.b.value(value.args[0])
        return value.op == "index"


class _Scratch(Scalars):
    """Translates a combination into a body of its own."""

    def __init__(self, owner: Reductions, accumulators: list[Any]):
        builder = BodyBuilder()
        known = {a: builder.input(i, dtype_of(a.type)) for i, a in enumerate(accumulators)}
        super().__init__(builder, known, lambda loop: 0)
        self._owner = owner
        self._first = len(accumulators)
        self.leaves: list[Any] = []

    def leaf(self, v: Any) -> int | None:
        if self._owner.accumulators_of(v):
            return None
        self.leaves.append(v)
        return self.b.input(self._first + len(self.leaves) - 1, dtype_of(v.type))


def _is_identity(value: float | int | None, name: str, dtype: str) -> bool:
    """Whether `value`, a constant or None, changes nothing as the start of a reduction."""
    if value is None:
        return False
    if name in ("sum", "or", "xor"):
        return value == 0
    if name == "prod":
        return value == 1
    if is_float(dtype):
        return value == (float("-inf") if name.startswith("max") else float("inf"))
    bits = 1 if dtype == "i1" else int(dtype[1:])
    least, largest = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    wanted = {"max": least, "min": largest, "umax": 0, "umin": -1, "and": 1 if dtype == "i1" else -1}
    return value == wanted.get(name)


# ---------------------------------------------------------------- the forms


def _match(
    form: Body, dtype: str, types: tuple[str, ...], without_nan: bool
) -> Iterator[tuple[str, bool, tuple[int, ...]]]:
    """(reduction, whether it is taken off, the order of the inputs that the form has them in)."""
    for text, name, signed, nan in _singles(dtype):
        if nan and not without_nan:
            continue
        for order in permutations(range(len(types))):
            # Input 1 + j of the text is input 1 + order[j] of the form.
            inputs = [dtype, *types]
            for j, i in enumerate(order):
                inputs[1 + j] = types[i]
            known = _parsed(text, tuple(inputs))
            if known is not None and _renamed(known, (0, *(1 + i for i in order))) == form:
                yield name, signed, order


@lru_cache(maxsize=64)
def _singles(dtype: str) -> list[tuple[str, str, bool, bool]]:
    """(form, reduction, whether it is taken off, whether it needs the absence of NaNs)."""
    of_type = ("maxnum", "minnum") if is_float(dtype) else ("umax", "umin", "and", "or", "xor")
    plain = ("add", "mul", "max", "min", *of_type)
    names = {"add": "sum", "mul": "prod"}
    forms = [(f"y = {op}(x0, x1)", names.get(op, op), False, False) for op in plain]
    forms.append(("y = sub(x0, x1)", "sum", True, False))
    if is_float(dtype):
        forms.append(("y = fma(x1, x2, x0)", "sum", False, False))
    if dtype in _WIDE:
        wide = _WIDE[dtype]
        for inner in (f"add(cast(x0, {wide}), x1)", f"fma(x1, x2, cast(x0, {wide}))"):
            forms.append((f"y = cast({inner}, {dtype})", "sum", False, False))
    for name, test in _LARGEST.items():
        unsigned = [] if is_float(dtype) else [(f"u{name}", f"u{t}") for t in (test, test[0] + "e")]
        own = [(name, p + t) for p in ("ou" if is_float(dtype) else "s") for t in (test, test[0] + "e")]
        for kind, predicate in (*own, *unsigned):
            for a, b in (("x0", "x1"), ("x1", "x0")):
                forms.append((f"y = select(cmp({predicate}, {a}, {b}), {a}, {b})", kind, False, is_float(dtype)))
                mirrored = predicate.replace("g", "?").replace("l", "g").replace("?", "l")
                forms.append((f"y = select(cmp({mirrored}, {a}, {b}), {b}, {a})", kind, False, is_float(dtype)))
    return forms


def _match_position(
    form: Body, dtype: str, positions: str, types: Sequence[str]
) -> Iterator[tuple[str, str, tuple[int, int]]]:
    """(what becomes of NaNs: `until` the first one, `num`: they are passed over, `first`: the first one is it; max or
    min; the inputs that are value and position)."""
    for text, kind, extremum in _pairs(is_float(dtype)) if len(types) == 2 else ():
        for v, p in permutations(range(2)):
            known = _parsed(text, (dtype, positions, types[v], types[p]))
            if known is not None and _renamed(known, (0, 1, 2 + v, 2 + p)) == form:
                yield kind, extremum, (v, p)


@lru_cache(maxsize=2)
def _pairs(floats: bool) -> list[tuple[str, str, str]]:
    """Forms of (extremum, position): x0, x1 are what has been found, x2, x3 an element and its position."""
    forms = []
    for name, test in _LARGEST.items():
        other = {"gt": "lt", "lt": "gt"}[test]
        sign = "o" if floats else "s"
        for better in (f"cmp({sign}{test}, x2, x0)", f"cmp({sign}{other}, x0, x2)"):
            position = f"y1 = select({better}, x3, x1)"
            forms.append((f"y0 = {name}(x0, x2); {position}", "until" if floats else "first", name))
            forms.append((f"y0 = select({better}, x2, x0); {position}", "num" if floats else "first", name))
            if floats:
                forms.append((f"y0 = {name}num(x0, x2); {position}", "num", name))
        if floats:
            # TOSA's: NaN is better than any number, and nothing better than NaN.
            better = f"and(cmp(u{test}, x2, x0), cmp(ord, x0, x0))"
            forms.append((f"k = {better}; y0 = select(k, x2, x0); y1 = select(k, x3, x1)", "first", name))
        keep = f"cmp({sign}{test}, x0, x2)"
        same = "cmp(oeq, x0, x2)" if floats else "cmp(eq, x0, x2)"
        if floats:
            keep = f"or({keep}, cmp(une, x0, x0))"
        earlier = f"select(or(k, and({same}, cmp(slt, x1, x3))), x1, x3)"
        forms.append((f"k = {keep}; y0 = select(k, x0, x2); y1 = {earlier}", "first", name))
    return forms


@lru_cache(maxsize=512)
def _parsed(text: str, inputs: tuple[str, ...]) -> Body | None:
    from morello_mlir.errors import SpecError

    try:
        return Body.parse(text, inputs)
    except SpecError:  # of other types
        return None


def _renamed(body: Body, inputs: Sequence[int]) -> Body:
    """`body` with other numbers for its inputs, canonical. Raises IndexError where it has more."""
    b = BodyBuilder()
    made: list[int] = []
    for value in body.values:
        if value.op == "input":
            made.append(b.input(inputs[int(value.attr or 0)], value.dtype))
        else:
            made.append(b.add(value, [made[a] for a in value.args]))
    return b.build([made[v] for v in body.outputs]).canonical()
