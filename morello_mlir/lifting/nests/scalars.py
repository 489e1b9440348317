"""The scalar ops in the bodies of linalg ops, as values of a nest's body.

`index` is an i64 here. An i1 counts as 0 or 1 in a nest, so what takes it as a number with a sign is said by `select`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from mlir import ir

from morello_mlir.nests import BodyBuilder
from morello_mlir.nests.ops import is_float

from ..outcome import NotLifted
from ..tables import LOADS

#: Element types of nests by MLIR's spelling.
DTYPES = {t: t for t in ("f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8", "i1")} | {"index": "i64"}

_SAME = {
    "arith.addf": "add",
    "arith.subf": "sub",
    "arith.mulf": "mul",
    "arith.divf": "div",
    "arith.remf": "rem",
    "arith.negf": "neg",
    "arith.maximumf": "max",
    "arith.minimumf": "min",
    "arith.maxnumf": "maxnum",
    "arith.minnumf": "minnum",
    "arith.addi": "add",
    "arith.subi": "sub",
    "arith.muli": "mul",
    "arith.divsi": "div",
    "arith.divui": "udiv",
    "arith.remsi": "rem",
    "arith.remui": "urem",
    "arith.andi": "and",
    "arith.ori": "or",
    "arith.xori": "xor",
    "arith.shli": "shl",
    "arith.shrsi": "shr",
    "arith.shrui": "ushr",
    "arith.maxsi": "max",
    "arith.minsi": "min",
    "arith.maxui": "umax",
    "arith.minui": "umin",
    "math.absf": "abs",
    "math.absi": "abs",
    "math.powf": "pow",
    "math.roundeven": "round",
    "math.round": "roundaway",
    **{
        f"math.{name}": name
        for name in (
            *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "sin", "cos", "tan", "tanh"),
            *("atan", "atan2", "erf", "floor", "ceil", "trunc", "fma", "copysign"),
        )
    },
}
#: The same of i1, where they mean something there.
_BOOLEAN = {
    **{name: name.partition(".")[2][:-1] for name in ("arith.andi", "arith.xori")},
    "arith.ori": "or",
    "arith.addi": "xor",
    "arith.subi": "xor",
    "arith.muli": "and",
    "arith.maxui": "or",
    "arith.minui": "and",
    "arith.maxsi": "and",
    "arith.minsi": "or",
}
_SIGNED_CASTS = (
    *("arith.extf", "arith.truncf", "arith.extsi", "arith.trunci", "arith.sitofp", "arith.fptosi"),
    "arith.index_cast",
)
_UNSIGNED_CASTS = ("arith.extui", "arith.uitofp", "arith.fptoui", "arith.index_castui")
#: By number, as the attributes of `arith.cmpf` and `arith.cmpi` count.
CMPF = ("", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "")
CMPI = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
_MAX_POWER = 8
#: Constants that change nothing. (Zero is none for floats that are added to it: -0 would become 0.)
_NEUTRAL = {
    float("-inf"): ("arith.maximumf",),
    float("inf"): ("arith.minimumf",),
    1: ("arith.mulf", "arith.muli", "arith.divf", "arith.divsi", "arith.divui"),
    0: ("arith.addi", "arith.subi", "arith.ori", "arith.xori"),
}
_ORDERED = ("arith.divf", "arith.divsi", "arith.divui", "arith.subi")


def dtype_of(kind: Any) -> str:
    """The dtype of a scalar type. Raises NotLifted."""
    try:
        return DTYPES[str(kind)]
    except KeyError:
        raise NotLifted(f"nests have no elements of type {kind}") from None


class Scalars:
    """Translates ops into values of `builder`. loop: the value of the number of an iteration of a loop (an i64);
    values: what arguments and results are that have been met."""

    def __init__(self, builder: BodyBuilder, values: dict[Any, int], loop: Callable[[int], int]):
        self.b = builder
        self.values = values
        self._loop = loop

    def leaf(self, v: Any) -> int | None:
        """The body's value of an SSA value that needs no translation; None for others."""
        return None

    def element(self, op: Any, places: Sequence[int]) -> int:
        """What an op reads of a table at `places`. Raises NotLifted."""
        raise NotLifted(f"its body has '{op.name}'")

    def value(self, v: Any) -> int:
        """The body's value of an SSA value; translates what defines it. Raises NotLifted."""
        todo = [v]
        while todo:  # no recursion: expressions may be long
            here = todo[-1]
            known = self.values[here] if here in self.values else self.leaf(here)
            if known is None:
                if isinstance(here.owner, ir.Block):
                    raise NotLifted("its body reads a scalar that is no constant")
                operands = [o for o in here.owner.operation.operands if not isinstance(o.type, ir.ShapedType)]
                missing = [o for o in operands if o not in self.values]
                if missing and not len(here.owner.operation.regions):
                    todo += reversed(missing)
                    continue
                known = self._translate(here.owner.operation)
            self.values[here] = known
            todo.pop()
        return self.values[v]

    def _translate(self, op: Any) -> int:
        name = op.name
        if name == "arith.constant":
            return constant(self.b, op.attributes["value"])
        if name in LOADS:
            return self.element(op, [self.values[o] for o in list(op.operands)[1:]])
        if name == "linalg.index":
            return self._loop(int(ir.IntegerAttr(op.attributes["dim"]).value))
        if len(op.results) != 1 or len(op.regions) or not name.startswith(("arith.", "math.")):
            raise NotLifted(f"its body has '{name}'")
        kind = dtype_of(op.results[0].type)
        args = [self.values[o] for o in op.operands]
        types = [self.b.dtype(a) for a in args]
        if name in ("arith.cmpf", "arith.cmpi"):
            return self._compare(op, args, types)
        if name == "arith.select":
            return self._select(args)
        if name in _SIGNED_CASTS or name in _UNSIGNED_CASTS:
            return self._cast(name, args[0], types[0], kind)
        if name == "arith.bitcast" and "i1" not in (kind, types[0]):
            return self.b.cast(args[0], kind, bits=True)
        if name in ("math.powf", "math.fpowi") and (power := self._power(args)) is not None:
            return power
        if len(args) == 2 and (same := self._unchanged(name, args)) is not None:
            return same
        table = _BOOLEAN if kind == "i1" else _SAME
        if name not in table:
            raise NotLifted(f"its body has '{name}'{' of i1' if kind == 'i1' else ''}")
        return self.b.op(table[name], *args)

    def _unchanged(self, name: str, args: list[int]) -> int | None:
        """The operand that the other, a constant, leaves as it is, whatever it is."""
        for neutral, ops in _NEUTRAL.items():
            if name in ops:
                for value, other in ((args[0], args[1]), (args[1], args[0]))[: 1 if name in _ORDERED else 2]:
                    if constant_in(self.b, other) == neutral:
                        return value
        return None

    def _select(self, args: list[int]) -> int:
        """A selection; of the larger of a value and a constant, `max`, which says the same."""
        compared, *chosen = args
        cmp = self.b.value(compared)
        limit = constant_in(self.b, chosen[1])
        # Of zeros, it chooses the constant: that must be the one that max prefers. NaN (the constant is none) it keeps.
        constant = limit is not None and limit == limit and (limit != 0 or math.copysign(1, limit) > 0)
        if (cmp.op, cmp.attr, cmp.args) == ("cmp", "ugt", tuple(chosen)) and constant:
            return self.b.op("max" if is_float(self.b.dtype(chosen[0])) else "umax", *chosen)
        return self.b.op("select", *args)

    def _compare(self, op: Any, args: list[int], types: list[str]) -> int:
        predicate = int(ir.IntegerAttr(op.attributes["predicate"]).value)
        if op.name == "arith.cmpf":
            if not CMPF[predicate]:
                return self.b.const(int(predicate > 0), "i1")
            return self.b.cmp(CMPF[predicate], *args)
        name = CMPI[predicate]
        if types[0] != "i1":
            return self.b.cmp(name, *args)
        if name not in ("eq", "ne"):
            raise NotLifted("its body orders i1")
        different = self.b.op("xor", *args)
        return different if name == "ne" else self.b.op("xor", different, self.b.const(1, "i1"))

    def _cast(self, name: str, value: int, source: str, kind: str) -> int:
        if source == kind:
            return value
        number = constant_in(self.b, value)
        if number is not None and is_float(source) and is_float(kind):
            return self.b.const(number, kind)
        if kind == "i1":  # the lowest bit
            if name != "arith.trunci":
                raise NotLifted(f"its body has '{name}' to i1")
            bit = self.b.op("and", value, self.b.const(1, source))
            return self.b.cmp("ne", bit, self.b.const(0, source))
        if source == "i1":
            one = 1 if name in _UNSIGNED_CASTS else -1
            return self.b.op("select", value, self.b.const(one, kind), self.b.const(0, kind))
        return self.b.cast(value, kind, unsigned=name in _UNSIGNED_CASTS)

    def _power(self, args: list[int]) -> int | None:
        """A small whole power, as products."""
        exponent = constant_in(self.b, args[1])
        largest = _MAX_POWER if self.b.dtype(args[0]) in ("f32", "f64") else 2  # narrower ones round every product
        if exponent is None or not 1 <= exponent <= largest or exponent != int(exponent):
            return None
        bits = f"{int(exponent):b}"
        total = args[0]
        for bit in bits[1:]:
            total = self.b.op("mul", total, total)
            if bit == "1":
                total = self.b.op("mul", total, args[0])
        return total


def constant(b: BodyBuilder, attribute: Any) -> int:
    """A constant of the body for the attribute of an `arith.constant`, a splat for all of its elements. Raises
    NotLifted."""
    if isinstance(attribute, (ir.DenseFPElementsAttr, ir.DenseIntElementsAttr)) and attribute.is_splat:
        attribute = attribute.get_splat_value()
    if isinstance(attribute, ir.BoolAttr):
        return b.const(int(attribute.value), "i1")
    if not isinstance(attribute, (ir.FloatAttr, ir.IntegerAttr)):
        raise NotLifted("its body has a constant that is no number")
    return b.const(attribute.value, dtype_of(attribute.type))


def constant_in(b: BodyBuilder, value: int) -> float | int | None:
    """The number that a value of the body is; None for what is no constant."""
    if b.dtype(value) == "i1":
        return None
    found = b.value(value)
    return found.number if found.op == "const" else None


def ops_of(values: Sequence[Any], block: Any) -> int:
    """How many ops in `block` it takes to compute `values`, but for the places of what is read of tables."""
    seen: set[Any] = set()
    todo = list(values)
    while todo:
        owner = todo.pop().owner
        if isinstance(owner, ir.Block) or owner.operation in seen or owner.operation.block != block:
            continue
        if owner.operation.name != "arith.constant":
            seen.add(owner.operation)
        if owner.operation.name in LOADS:  # where an element is, is computed for rows of them
            continue
        todo += list(owner.operation.operands)
    return len(seen)
