"""Instructions that multiply groups of neighbours along k and add them up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from .builder import Builder

#: Adds to an accumulator the products of two vectors of groups, given as SSA names: (builder, lhs, rhs, accumulator).
Multiply: TypeAlias = Callable[[Builder, str, str, str], str]


@dataclass(frozen=True, slots=True)
class Instruction:
    """dtype, group: of the elements, as the instruction takes them, and how many are a group. offset: what is to be
    added to elements of lhs first; its products with rhs are then taken off."""

    dtype: str
    group: int
    multiply: Multiply
    offset: int = 0

    def moved(self, b: Builder, x: str) -> str:
        """A vector of lhs, `offset` added to its elements: a flip of their upper bits."""
        if not self.offset:
            return x
        t = b.machine.vector(b.machine.lanes * self.group, self.dtype)
        return b.value(f"arith.xori {x}, {self.same(b)} : {t}")

    def same(self, b: Builder) -> str:
        """A vector of offsets."""
        signed = self.offset - 256 if self.offset > 127 else self.offset
        return b.constant(f"dense<{signed}>", b.machine.vector(b.machine.lanes * self.group, self.dtype))


def bf16_pairs() -> Instruction:
    """Two bf16 products."""

    def multiply(b: Builder, x: str, y: str, acc: str) -> str:
        return _intrinsic(b, "avx512bf16.dpbf16ps", (acc, x, y), ("bf16", 2))

    return Instruction("bf16", 2, multiply)


def short_pairs(vector_bytes: int) -> Instruction:
    """Two i16 products."""
    name = "avx512.pmaddw.d" if vector_bytes == 64 else "avx2.pmadd.wd"

    def multiply(b: Builder, x: str, y: str, acc: str) -> str:
        return b.add_vectors(_intrinsic(b, name, (x, y), ("i16", 2)), acc)

    return Instruction("i16", 2, multiply)


def byte_quads(lhs: str, rhs: str) -> Instruction:
    """Four products of bytes of these dtypes, not both u8. Where both are signed, 128 is to be added to lhs."""

    def multiply(b: Builder, x: str, y: str, acc: str) -> str:
        return _intrinsic(b, "avx512.vpdpbusd", (acc, y, x) if rhs == "u8" else (acc, x, y), ("i8", 4))

    return Instruction("i8", 4, multiply, offset=128 if lhs == rhs == "i8" else 0)


def _intrinsic(b: Builder, name: str, values: Sequence[str], groups: tuple[str, int]) -> str:
    """A call of the LLVM intrinsic `name` of the machine's vector width: sums first, if there are three values."""
    dtype, group = groups
    sums, vector = b.machine.vector(), b.machine.vector(b.machine.lanes * group, dtype)
    width = "" if name.startswith("avx2.") else f".{b.machine.vector_bytes * 8}"
    types = ", ".join([sums, vector, vector][-len(values) :])
    return b.value(f'llvm.call_intrinsic "llvm.x86.{name}{width}"({", ".join(values)}) : ({types}) -> {sums}')
