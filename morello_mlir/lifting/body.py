"""The bodies of linalg ops: which compute `out + lhs * rhs`, which a constant zero."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlir import ir

_FLOAT = {"add": ("arith.addf",), "mul": ("arith.mulf",), "fma": ("math.fma",)}
# How other element types spell the same: i1 contractions are and/or, and inputs may be widened first.
_ANY = {
    "add": ("arith.addf", "arith.addi", "arith.ori", "complex.add"),
    "mul": ("arith.mulf", "arith.muli", "arith.andi", "complex.mul"),
    "fma": ("math.fma",),
}
_CASTS = (
    "arith.extf",
    "arith.truncf",
    "arith.extsi",
    "arith.extui",
    "arith.trunci",
    "arith.sitofp",
    "arith.uitofp",
    "arith.fptosi",
    "arith.fptoui",
)


def is_multiply_add(block: Any) -> bool:
    """Whether a body with arguments (a, b, acc) yields acc + a * b in floating point, and does nothing else.

    Factors and terms may go in either order. Fast-math flags do not matter: the order in which the k loop is summed
    is ours in any case, as it is a BLAS library's.
    """
    return _matches(block, _FLOAT, casts=())


def is_multiply_add_of_other_types(block: Any) -> bool:
    """The same in integers, complex numbers, or with conversions: a contraction, though not one of ours yet."""
    return _matches(block, _ANY, casts=_CASTS)


def _matches(block: Any, names: Mapping[str, tuple[str, ...]], casts: tuple[str, ...]) -> bool:
    if len(block.arguments) != 3:
        return False
    a, b, acc = block.arguments
    used: list[Any] = []

    def origin(value: Any) -> Any:
        """`value`, or what it was before conversions."""
        while (op := _owner(value, casts)) is not None:
            used.append(op)
            value = op.operands[0]
        return value

    result = list(block.operations)[-1].operation
    if len(result.operands) != 1:
        return False
    factors = _terms(origin(result.operands[0]), acc, names, used, origin)
    if factors is None or {origin(f) for f in factors} != {a, b}:
        return False
    return len(set(used)) + 1 == len(list(block.operations))


def _terms(value: Any, acc: Any, names: Mapping[str, tuple[str, ...]], used: list[Any], origin: Any) -> Any:
    """The two factors where `value` is acc + product, else None; appends the ops it is made of to `used`."""
    if (fma := _owner(value, names["fma"])) is not None:
        used.append(fma)
        return fma.operands[:2] if origin(fma.operands[2]) == acc else None
    add = _owner(value, names["add"])
    if add is None:
        return None
    used.append(add)
    for term, other in ((0, 1), (1, 0)):
        product = _owner(add.operands[term], names["mul"])
        if product is not None and origin(add.operands[other]) == acc:
            used.append(product)
            return list(product.operands)
    return None


def _owner(value: Any, names: tuple[str, ...]) -> Any:
    """The op of one of `names` that defines `value`, else None."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return None
    return owner.operation if owner.operation.name in names else None


def yields_zero(op: Any) -> bool:
    """Whether the body of a structured linalg op yields a floating-point zero constant, whatever it reads: `fill`,
    or a generic that does the same."""
    block = op.operation.regions[0].blocks[0]
    operations = list(block.operations)
    if len(operations) != 1 or len(operations[0].operation.operands) != 1:
        return False
    value = operations[0].operation.operands[0]
    if isinstance(value.owner, ir.Block) and value.owner == block:
        # A scalar operand of the op, as in `linalg.fill ins(%zero : f32)`.
        number = ir.BlockArgument(value).arg_number
        value = op.operation.operands[number]
    return is_zero(value)


def is_zero(value: Any) -> bool:
    """Whether a value is a scalar floating-point zero constant, or a dense tensor of zeros."""
    constant = _owner(value, ("arith.constant",))
    if constant is None:
        return False
    attribute = constant.attributes["value"]
    if isinstance(attribute, ir.FloatAttr):
        return bool(attribute.value == 0)
    if isinstance(attribute, ir.DenseFPElementsAttr) and attribute.is_splat:
        splat = attribute.get_splat_value()
        return isinstance(splat, ir.FloatAttr) and bool(splat.value == 0)
    return False
