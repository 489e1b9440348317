"""The body of a nest: elementwise ops and reductions in single assignment form.

    m = max(x0); e = exp(sub(x0, m)); s = sum(e); y = div(e, s)

`x0`, `x1`, ... are the inputs; `y` (or `y0`, `y1`, ...) the outputs; a reduction is an op with one operand fewer than
its elementwise namesake. Constants carry their type (`1.5:f32`), `cast(x0, f64)`, `cmp(olt, x0, x1)`, `index(1, i64)`
(the position along dim d1) say what else they need.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container, Sequence
from dataclasses import dataclass

from ..cached import cached_property
from ..errors import SpecError
from .ops import (
    ELEMENTWISE,
    FLOAT_PREDICATES,
    INT_PREDICATES,
    REDUCE,
    REDUCTIONS,
    SPECIAL,
    element_bytes,
    is_float,
    literal,
    number,
)

#: What reads an input.
READS = ("input", "gather")

#: Values of the largest bodies.
MAX_VALUES = 2000


@dataclass(frozen=True, slots=True)
class Value:
    """One value: `op` of the values with the numbers `args`. attr: which input (input, gather), the text of a
    constant (const), the dim (index), the predicate (cmp); None elsewhere. Reductions are called `reduce_sum` and so
    on."""

    op: str
    args: tuple[int, ...]
    dtype: str
    attr: int | str | None = None

    @property
    def reduces(self) -> bool:
        return self.op.startswith(REDUCE)

    @property
    def is_leaf(self) -> bool:
        return self.op in ("input", "gather", "const", "index")

    @property
    def number(self) -> float | int:
        """The value of a constant."""
        assert self.op == "const"
        return number(str(self.attr), self.dtype)


@dataclass(frozen=True)
class Body:
    """values: operands come before what uses them. outputs: the numbers of the values that are written, in order.

    Raises SpecError where a type does not fit an op, or a number refers to nothing.
    """

    values: tuple[Value, ...]
    outputs: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.values) > MAX_VALUES:
            raise SpecError(f"the body has more than {MAX_VALUES} values")
        for at, value in enumerate(self.values):
            if any(not 0 <= a < at for a in value.args):
                raise SpecError(f"the body's value {at} refers to a value that does not come before it")
            _check(value, [self.values[a] for a in value.args])
        if not self.outputs or any(not 0 <= v < len(self.values) for v in self.outputs):
            raise SpecError("the body needs outputs, and each must be one of its values")
        types: dict[int | str | None, str] = {}
        for value in self.values:
            if value.op in READS and types.setdefault(value.attr, value.dtype) != value.dtype:
                raise SpecError(f"input x{value.attr} has two types")
        tables = [v.attr for v in self.values if v.op == "gather"]
        if len(set(tables)) < len(tables) or any(v.op == "input" and v.attr in tables for v in self.values):
            raise SpecError("a table is read at one place: it is an input again for another")

    # ------------------------------------------------------------ questions

    @cached_property
    def reductions(self) -> tuple[int, ...]:
        return tuple(i for i, v in enumerate(self.values) if v.reduces)

    @cached_property
    def users(self) -> tuple[tuple[int, ...], ...]:
        """By value: the values that have it as an operand, ascending (outputs do not count)."""
        out: list[list[int]] = [[] for _ in self.values]
        for at, value in enumerate(self.values):
            for arg in dict.fromkeys(value.args):
                out[arg].append(at)
        return tuple(tuple(u) for u in out)

    @cached_property
    def inputs(self) -> dict[int, int]:
        """The value of each input that is used."""
        return {int(v.attr or 0): i for i, v in enumerate(self.values) if v.op in READS}

    @cached_property
    def gathers(self) -> tuple[int, ...]:
        return tuple(i for i, v in enumerate(self.values) if v.op == "gather")

    @cached_property
    def places(self) -> frozenset[int]:
        """Values that only say which places of tables are read."""
        if not self.gathers:
            return frozenset()
        elements: set[int] = set()
        todo = list(self.outputs)
        while todo:
            at = todo.pop()
            if at not in elements:
                elements.add(at)
                todo += () if self.values[at].op == "gather" else self.values[at].args
        return frozenset(range(len(self.values))) - elements

    def depends(self, value: int) -> frozenset[int]:
        """The values that `value` is made of, itself included."""
        seen, todo = {value}, [value]
        while todo:
            for arg in self.values[todo.pop()].args:
                if arg not in seen:
                    seen.add(arg)
                    todo.append(arg)
        return frozenset(seen)

    def varies(self, inputs: Sequence[frozenset[int]], scan: frozenset[int]) -> tuple[frozenset[int], ...]:
        """By value: the dims along which it varies. inputs: those of each input; scan: the dims that are reduced."""
        out: list[frozenset[int]] = []
        for value in self.values:
            if value.op == "input":
                out.append(inputs[int(value.attr or 0)])
            elif value.op == "index":
                out.append(frozenset((int(value.attr or 0),)))
            elif value.op == "gather":
                out.append(inputs[int(value.attr or 0)].union(*(out[a] for a in value.args)))
            else:
                along = frozenset().union(*(out[a] for a in value.args))
                out.append(along - scan if value.reduces else along)
        return tuple(out)

    # ------------------------------------------------------------ forms

    def canonical(self) -> Body:
        """The same body without dead values, with one value per expression, operands of commuting ops and values in a
        fixed order, simplified: equal bodies are equal objects."""
        from .simplify import simplified

        return simplified(self)._ordered()

    def _ordered(self) -> Body:
        """As `canonical`, of a body that is simplified."""
        b = BodyBuilder()
        made: dict[int, int] = {}
        for at in self._post_order(_digests(self)):
            value = self.values[at]
            made[at] = b.add(value, [made[a] for a in self._arguments(at, _digests(self))])
        return b.build([made[v] for v in self.outputs])

    def _arguments(self, at: int, digests: Sequence[str]) -> tuple[int, ...]:
        """The operands of a value, those of commuting ops in a fixed order: results, then inputs, then constants."""
        value = self.values[at]
        op = ELEMENTWISE.get(value.op)
        if op is None or not op.commutes:
            return value.args
        kinds = {"input": 1, "gather": 1, "index": 1, "const": 2}
        return tuple(sorted(value.args, key=lambda a: (kinds.get(self.values[a].op, 0), digests[a])))

    def _post_order(self, digests: Sequence[str]) -> list[int]:
        """What the outputs need, operands first, in the order in which they are met."""
        out: list[int] = []
        seen: set[int] = set()
        todo = [(v, False) for v in reversed(self.outputs)]
        while todo:
            at, ready = todo.pop()
            if ready:
                out.append(at)
            elif at not in seen:
                seen.add(at)
                todo.append((at, True))
                todo += [(a, False) for a in reversed(self._arguments(at, digests)) if a not in seen]
        # A value may have been put aside twice before it was met.
        return list(dict.fromkeys(out))

    def __str__(self) -> str:
        from .text import to_text

        return to_text(self)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """A name for every value; see `text.names_of`."""
        from .text import names_of

        return names_of(self)

    def named(self, name: str) -> int:
        """The value called `name`. Raises SpecError."""
        for at, own in enumerate(self.names):
            if own == name:
                return at
        many = len(self.outputs) > 1
        aliases = {f"y{k}" if many else "y": v for k, v in enumerate(self.outputs)}
        if name in aliases:
            return aliases[name]
        have = ", ".join(n for n, v in zip(self.names, self.values, strict=True) if n and not v.is_leaf)
        raise SpecError(f"the body has no value '{name}' (have {have})")

    @staticmethod
    def parse(text: str, inputs: Sequence[str]) -> Body:
        """The canonical body that `text` says, as `str` prints it. inputs: their element types. Raises SpecError."""
        from .text import parse

        return parse(text, inputs).canonical()


def _digests(body: Body) -> list[str]:
    """By value: a name of what it computes, the same in all bodies that compute it."""
    out: list[str] = []
    for value in body.values:
        args = [out[a] for a in value.args]
        op = ELEMENTWISE.get(value.op)
        if op is not None and op.commutes:
            args.sort()
        parts = repr((value.op, value.dtype, value.attr, args))
        out.append(hashlib.sha256(parts.encode()).hexdigest()[:16])
    return out


def _check(value: Value, args: Sequence[Value]) -> None:
    """Raises SpecError where the types or the number of operands do not fit the op."""
    element_bytes(value.dtype)
    name = value.op.removeprefix(REDUCE)
    types = [a.dtype for a in args]

    def need(ok: bool, why: str) -> None:
        if not ok:
            raise SpecError(f"{name}({', '.join(types)}): {why}")

    if value.reduces:
        need(name in REDUCTIONS, "no such reduction")
        need(len(types) == (2 if name.startswith("arg") else 1), "wrong number of operands")
        _need_kind(need, REDUCTIONS[name], types[0])
        need(value.dtype == types[-1], f"the result has the type {types[-1]}")
    elif value.op in ELEMENTWISE:
        op = ELEMENTWISE[value.op]
        need(len(types) == op.arity, f"takes {op.arity} operands")
        need(len({value.dtype, *types}) == 1, "operands and result have one type")
        _need_kind(need, op.kind, value.dtype)
    else:
        need(value.op in SPECIAL, "no such op")
        _check_special(value, types, need)


def _need_kind(need, kind: str, dtype: str) -> None:  # type: ignore[no-untyped-def]
    need(kind == "any" or is_float(dtype) == (kind == "float"), f"takes {kind}s")


def _check_special(value: Value, types: Sequence[str], need) -> None:  # type: ignore[no-untyped-def]
    if value.op == "gather":
        need(isinstance(value.attr, int) and value.attr >= 0, "needs the number of an input")
        need(len(types) > 0 and set(types) <= {"i32", "i64"}, "places are i32 or i64, one for each axis")
        return
    counts = {"cast": 1, "ucast": 1, "bitcast": 1, "cmp": 2, "select": 3}
    need(len(types) == counts.get(value.op, 0), "wrong number of operands")
    if value.op in ("input", "index"):
        need(isinstance(value.attr, int) and value.attr >= 0, "needs a number")
        need(value.op == "input" or value.dtype in ("i32", "i64"), "the position is an i32 or i64")
    elif value.op == "const":
        need(literal(number(str(value.attr), value.dtype), value.dtype) == value.attr, f"unusual text {value.attr}")
    elif value.op == "ucast":
        need(not (is_float(types[0]) and is_float(value.dtype)), "one of the types must be an integer")
    elif value.op == "bitcast":
        same = element_bytes(types[0]) == element_bytes(value.dtype)
        need(same and "i1" not in (types[0], value.dtype), "the types must have one size")
    elif value.op == "cmp":
        have = FLOAT_PREDICATES if is_float(types[0]) else INT_PREDICATES
        need(value.attr in have, f"no predicate {value.attr} (have {', '.join(have)})")
        need(types[0] == types[1] and value.dtype == "i1", "compares one type and gives i1")
    elif value.op == "select":
        need(types[0] == "i1" and types[1] == types[2] == value.dtype, "takes an i1 and two of the result's type")


class BodyBuilder:
    """Makes bodies value by value; equal expressions become one value. Values are their numbers.

    Methods raise SpecError where types do not fit.
    """

    def __init__(self) -> None:
        self._values: list[Value] = []
        self._known: dict[Value, int] = {}

    def add(self, value: Value, args: Sequence[int]) -> int:
        """`value` with other operands."""
        new = Value(value.op, tuple(args), value.dtype, value.attr)
        _check(new, [self._values[a] for a in args])
        if new.op in ("cast", "ucast", "bitcast") and new.dtype == self._values[args[0]].dtype:
            return args[0]
        if new not in self._known:
            self._known[new] = len(self._values)
            self._values.append(new)
        return self._known[new]

    def dtype(self, value: int) -> str:
        return self._values[value].dtype

    def value(self, value: int) -> Value:
        return self._values[value]

    def input(self, k: int, dtype: str) -> int:
        return self.add(Value("input", (), dtype, k), ())

    def gather(self, k: int, places: Sequence[int], dtype: str) -> int:
        """The element of input `k`, a table, at these places along its axes."""
        return self.add(Value("gather", (), dtype, k), places)

    def const(self, value: float, dtype: str) -> int:
        return self.add(Value("const", (), dtype, literal(value, dtype)), ())

    def index(self, dim: int, dtype: str = "i64") -> int:
        """The position along dim `dim`."""
        return self.add(Value("index", (), dtype, dim), ())

    def op(self, name: str, *args: int) -> int:
        """An elementwise op of ELEMENTWISE, or `select`."""
        if name not in ELEMENTWISE and name != "select":
            raise SpecError(f"unknown op '{name}' (have {', '.join(ELEMENTWISE)}, select)")
        if not args:
            raise SpecError(f"{name}(): wrong number of operands")
        return self.add(Value(name, (), self.dtype(args[-1])), args)

    def cast(self, value: int, dtype: str, *, unsigned: bool = False, bits: bool = False) -> int:
        kind = "bitcast" if bits else "ucast" if unsigned else "cast"
        return self.add(Value(kind, (), dtype), (value,))

    def cmp(self, predicate: str, a: int, b: int) -> int:
        return self.add(Value("cmp", (), "i1", predicate), (a, b))

    def reduce(self, name: str, *args: int) -> int:
        """A reduction of REDUCTIONS over all scan dims."""
        if not args:
            raise SpecError(f"{name}(): wrong number of operands")
        return self.add(Value(REDUCE + name, (), self.dtype(args[-1])), args)

    def only(self, outputs: Sequence[int]) -> Body:
        """The body of what the outputs need, values renumbered: others may be left of attempts that came to nothing."""
        needed = needed_values(self._values, outputs)
        number = {at: i for i, at in enumerate(needed)}
        values = (self._values[at] for at in needed)
        renumbered = tuple(Value(v.op, tuple(number[a] for a in v.args), v.dtype, v.attr) for v in values)
        return Body(renumbered, tuple(number[v] for v in outputs))

    def build(self, outputs: Sequence[int]) -> Body:
        return Body(tuple(self._values), tuple(outputs))


def needed_values(values: Sequence[Value], outputs: Sequence[int], given: Container[int] = ()) -> list[int]:
    """The numbers of the values that `outputs` need, themselves among them, in order; not what only those in `given`
    need."""
    needed: set[int] = set()
    todo = list(outputs)
    while todo:
        at = todo.pop()
        if at not in needed:
            needed.add(at)
            todo += () if at in given else values[at].args
    return sorted(needed)
