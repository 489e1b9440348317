"""Nests: elementwise ops, reductions and chains of them over one iteration space (docs/nests.md). Imports no MLIR."""

from .body import Body, BodyBuilder, Value
from .ops import ELEMENT_BYTES, ELEMENTWISE, REDUCE, REDUCTIONS, element_bytes
from .spec import FUNCTIONS, NestSpec, Operand, is_nest

__all__ = [
    "ELEMENTWISE",
    "ELEMENT_BYTES",
    "FUNCTIONS",
    "REDUCE",
    "REDUCTIONS",
    "Body",
    "BodyBuilder",
    "NestSpec",
    "Operand",
    "Value",
    "element_bytes",
    "is_nest",
]
