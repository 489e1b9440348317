"""The bodies of linalg ops: which compute `out + lhs * rhs`, which a constant zero."""

from __future__ import annotations

from typing import Any

from mlir import ir

from morello_mlir.spec import accumulator

_ADD = ("arith.addf", "arith.addi")
_MUL = ("arith.mulf", "arith.muli")
#: Conversions that keep every value, and how the dtype of an 8-bit integer under them is called.
_WIDENING = ("arith.extf", "arith.extsi", "arith.extui")
_SUMS = {"bf16": "f32", "f16": "f32", "i8": "i32", "i16": "i32"}
# How element types that we have nothing for spell the same: i1 contractions are and/or, and anything may be converted.
_ANY_ADD = (*_ADD, "arith.ori", "complex.add")
_ANY_MUL = (*_MUL, "arith.andi", "complex.mul")
_ANY_CAST = (
    *_WIDENING,
    "arith.truncf",
    "arith.trunci",
    "arith.sitofp",
    "arith.uitofp",
    "arith.fptosi",
    "arith.fptoui",
)


def multiply_add_dtypes(block: Any) -> tuple[str, str, str] | None:
    """The dtypes of (a, b, acc) where a body with these arguments yields acc + a * b and does nothing else; else None.

    Factors and terms may go in either order. Fast-math flags do not matter: the order in which the k loop is summed
    is ours in any case, as it is a BLAS library's. Factors may be widened first: floats, or integers, whose dtype says
    by which sign. A sum of a wider type may be rounded, or cut off, to that of acc.
    """
    found = _parts(block, _ADD, _MUL, _WIDENING, ("arith.truncf", "arith.trunci"))
    if found is None:
        return None
    a, b, acc = (str(argument.type) for argument in block.arguments)
    dtypes = _dtype(a, found[0]), _dtype(b, found[1]), acc
    total = found[2]
    return dtypes if accumulator(dtypes[:2], acc) in (total, _sums(total)) else None


def _sums(total: str) -> str:
    """The type in which sums of `total` are added up: of narrow types a wider one."""
    return _SUMS.get(total, total)


def _dtype(element: str, casts: list[str]) -> str:
    """The dtype of a factor of MLIR's type `element`, given the conversions that follow; "" for one that has none."""
    if "arith.extui" not in casts:
        return element
    # After the first conversion without sign others do not matter; after one with a sign it would be neither.
    return "u8" if element == "i8" and casts[0] == "arith.extui" else ""


def is_multiply_add_of_other_types(block: Any) -> bool:
    """The same in any types, with any conversions: a contraction, though perhaps not one of ours."""
    return _parts(block, _ANY_ADD, _ANY_MUL, _ANY_CAST, _ANY_CAST) is not None


def _parts(
    block: Any, adds: tuple[str, ...], muls: tuple[str, ...], casts: tuple[str, ...], last: tuple[str, ...]
) -> tuple[list[str], list[str], str] | None:
    """Of a body that yields acc + a * b: the conversions of a and of b, innermost first, and the type of the sum; None
    of any other body. casts: ops that may convert factors and acc; last: what may convert the sum."""
    if len(block.arguments) != 3:
        return None
    a, b, acc = block.arguments
    used: list[Any] = []

    def origin(value: Any, names: tuple[str, ...]) -> tuple[Any, list[str]]:
        """What `value` was before conversions, and these."""
        found: list[str] = []
        while (op := _owner(value, names)) is not None:
            used.append(op)
            found.insert(0, op.name)
            value = op.operands[0]
        return value, found

    result = list(block.operations)[-1].operation
    if len(result.operands) != 1:
        return None
    total, _ = origin(result.operands[0], last)
    factors = _terms(total, acc, adds, muls, used, lambda value: origin(value, casts)[0])
    if factors is None:
        return None
    (x, x_casts), (y, y_casts) = (origin(f, casts) for f in factors)
    if {x, y} != {a, b} or len(set(used)) + 1 != len(list(block.operations)):
        return None
    return (x_casts, y_casts, str(total.type)) if x == a else (y_casts, x_casts, str(total.type))


def _terms(value: Any, acc: Any, adds: tuple[str, ...], muls: tuple[str, ...], used: list[Any], origin: Any) -> Any:
    """The two factors where `value` is acc + product, else None; appends the ops it is made of to `used`."""
    if (fma := _owner(value, ("math.fma",))) is not None:
        used.append(fma)
        return fma.operands[:2] if origin(fma.operands[2]) == acc else None
    add = _owner(value, adds)
    if add is None:
        return None
    used.append(add)
    for term, other in ((0, 1), (1, 0)):
        product = _owner(add.operands[term], muls)
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


def widening_casts(block: Any) -> list[Any] | None:
    """The conversions, innermost first, of a body that yields its first argument, perhaps widened; None of others."""
    ops = [op.operation for op in block.operations]
    value = block.arguments[0]
    for op in ops:
        if list(op.operands) != [value]:
            return None
        if op == ops[-1]:
            return ops[:-1]
        if op.name not in _WIDENING:
            return None
        value = op.results[0]
    return None


def yields_zero(op: Any) -> bool:
    """Whether the body of a structured linalg op yields a zero constant, whatever it reads: `fill`,
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
    """Whether a value is a scalar zero constant, or a dense tensor of zeros."""
    constant = _owner(value, ("arith.constant",))
    if constant is None:
        return False
    attribute = constant.attributes["value"]
    if isinstance(attribute, (ir.DenseFPElementsAttr, ir.DenseIntElementsAttr)) and attribute.is_splat:
        attribute = attribute.get_splat_value()
    return isinstance(attribute, (ir.FloatAttr, ir.IntegerAttr)) and bool(attribute.value == 0)
