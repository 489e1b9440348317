"""Bytes without a sign that 128 has been taken off, so that they have one: importers write quantised products so.

Kernels multiply bytes of which one has a sign and the other has none as they are; of two that have, they correct.
"""

from __future__ import annotations

from typing import Any

from mlir import ir
from mlir.dialects import arith

from .contraction import indexing_maps, is_structured, operands_of

#: How far apart the two readings of a byte are.
OFFSET = 128
#: What changes a byte by 128, whichever way: they are the same modulo 256.
_SHIFTS = ("arith.addi", "arith.subi", "arith.xori")


class UnsignedSources:
    """The bytes without a sign that tensors of signed ones were made of."""

    def __init__(self) -> None:
        self._known: dict[Any, Any] = {}

    def of(self, value: Any) -> Any:
        """The tensor x where `value` is x - 128 in every element, x read without a sign; else None. Padding is done on
        x instead, beside the padding that was there."""
        if value not in self._known and (source := self._source(value)) is not None:
            self._known[value] = source
        return self._known.get(value)

    def erase_unused(self) -> None:
        """Erases those ops that made the signed bytes and have no users left."""
        for value in reversed(list(self._known)):
            if not any(True for _ in value.uses):
                value.owner.operation.erase()
        self._known.clear()

    def _source(self, value: Any) -> Any:
        if isinstance(value.owner, ir.Block) or not isinstance(value.type, ir.RankedTensorType):
            return None
        if str(value.type.element_type) != "i8":
            return None
        op = value.owner.operation
        if op.name == "tensor.pad":
            source = self.of(op.operands[0])
            return None if source is None else _padded(op, source)
        shifted = (elementwise(value, name) for name in _SHIFTS)
        return next((operands_of(each)[0][0] for each in shifted if each is not None and _by_offset(each)), None)


def _by_offset(op: Any) -> bool:
    second = next(iter(op.regions[0].blocks[0].operations)).operation.operands[1]
    return number_of(second) == -OFFSET


def _padded(pad: Any, source: Any) -> Any:
    """What `pad` makes of x - 128, made of x (`source`) before 128 is taken off; None: of values that differ."""
    value = pad.regions[0].blocks[0].operations[-1].operation.operands[0]
    if isinstance(value.owner, ir.Block) or (around := number_of(value)) is None:
        return None
    with pad.location, ir.InsertionPoint(pad):
        wanted = arith.constant(value.type, around + OFFSET if around < 0 else around - OFFSET)
        copy = pad.clone()
        copy.operands[0] = source
        copy.regions[0].blocks[0].operations[-1].operation.operands[0] = wanted
    return copy.results[0]


def number_of(value: Any) -> int | None:
    """The number that a constant of an integer type is, with its sign; None for other values."""
    if isinstance(value.owner, ir.Block) or value.owner.operation.name != "arith.constant":
        return None
    attribute = value.owner.operation.attributes["value"]
    return ir.IntegerAttr(attribute).value if isinstance(attribute, ir.IntegerAttr) else None


def elementwise(value: Any, name: str) -> Any:
    """The op that makes a tensor, element by element as its first input lies, by one op called `name`, whose first
    operand that input is; else None."""
    if isinstance(value.owner, ir.Block) or not is_structured(value.owner):
        return None
    op = value.owner.operation
    inputs, outputs = operands_of(op)
    block = op.regions[0].blocks[0]
    body = [o.operation for o in block.operations]
    maps = indexing_maps(op)
    whole = ir.AffineMap.get_identity(maps[0].n_dims)
    plain = bool(inputs) and len(outputs) == 1 and maps[0] == maps[-1] == whole
    plain = plain and [o.name for o in body] == [name, "linalg.yield"]
    return op if plain and body[0].operands[0] == block.arguments[0] else None
