"""What a nest is, written onto the ops that it stands for, from where it was found on tensors to where it is lifted.

    {dims = array<i64: 8, 128>, scan = array<i64: 1>, body = "...",
     operands = ["f32 0 [d0, d1]", "f32 1 [d0, d1]"]}    (a table: "f32 2 [?, d1]")

scan: which dims. operands: inputs then outputs; the dtype, which memref (an argument of the function that has this
attribute), and the index along each of its dims.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mlir import ir

from morello_mlir.errors import SpecError
from morello_mlir.nests import Body, NestSpec, Operand
from morello_mlir.nests.tables import Axis

from ..outcome import NotLifted
from ..views import view_of
from .index import Index

#: The attribute: on the root of a nest, then on the private function around it.
NEST = "morello.nest"
#: On an op of a nest: its number there.
MEMBER = "morello.member"
_OPERAND = re.compile(r"(\w+) (\d+(?:\.\d+)?) \[(.*)\]")


@dataclass(frozen=True)
class Access:
    """where: names the memref: an argument's number, or `member.operand`; of an output not yet bufferized, a
    result's. indices: None where the body says the place, the number along an axis of a table."""

    dtype: str
    where: str
    indices: tuple[Index | None, ...]

    def __str__(self) -> str:
        return f"{self.dtype} {self.where} [{', '.join('?' if i is None else str(i) for i in self.indices)}]"

    @staticmethod
    def parse(text: str) -> Access:
        match = _OPERAND.fullmatch(text)
        if match is None:
            raise ValueError(text)
        texts = match[3].split(",") if match[3] else []
        indices = tuple(None if t.strip() == "?" else Index.parse(t) for t in texts)
        return Access(match[1], match[2], indices)


@dataclass(frozen=True)
class Record:
    """A nest without its memory. accesses: the inputs, then the outputs."""

    sizes: tuple[int, ...]
    scan: tuple[bool, ...]
    body: Body
    accesses: tuple[Access, ...]

    @property
    def inputs(self) -> tuple[Access, ...]:
        return self.accesses[: len(self.accesses) - len(self.body.outputs)]

    @property
    def outputs(self) -> tuple[Access, ...]:
        return self.accesses[len(self.accesses) - len(self.body.outputs) :]

    def attribute(self) -> Any:
        """The dictionary attribute."""
        scanned = [d for d, s in enumerate(self.scan) if s]
        return ir.DictAttr.get(
            {
                "dims": ir.DenseI64ArrayAttr.get(list(self.sizes)),
                "scan": ir.DenseI64ArrayAttr.get(scanned),
                "body": ir.StringAttr.get(str(self.body)),
                "operands": ir.ArrayAttr.get([ir.StringAttr.get(str(a)) for a in self.accesses]),
            }
        )

    @staticmethod
    def of(attribute: Any) -> Record:
        """Reads the attribute. Raises NotLifted where it is malformed."""
        try:
            parts = {named.name: named.attr for named in ir.DictAttr(attribute)}
            sizes = tuple(ir.DenseI64ArrayAttr(parts["dims"]))
            scanned = set(ir.DenseI64ArrayAttr(parts["scan"]))
            accesses = tuple(Access.parse(ir.StringAttr(a).value) for a in ir.ArrayAttr(parts["operands"]))
            body = Body.parse(ir.StringAttr(parts["body"]).value, [a.dtype for a in accesses])
        except (KeyError, ValueError, SpecError) as error:
            raise NotLifted(f"its attribute '{NEST}' is malformed ({error})") from None
        return Record(sizes, tuple(d in scanned for d in range(len(sizes))), body, accesses)

    def spec(self, kinds: Sequence[Any], aliases: Sequence[int | None] | None = None) -> tuple[NestSpec, list[int]]:
        """(the Spec on memrefs or dense tensors of the types `kinds`, how many elements each operand starts behind what
        its type says). aliases: by output, the input in whose place it is. Raises NotLifted, SpecError."""
        sizes, scan = self.sizes or (1,), self.scan or (False,)
        operands, starts = [], []
        for k, (access, kind) in enumerate(zip(self.accesses, kinds, strict=True)):
            view = view_of(kind, f"operand {k}")
            strides, start, axes = [0] * len(sizes), 0, []
            for index, stride, extent in zip(access.indices, view.strides, kind.shape, strict=True):
                if index is None:
                    axes.append(Axis(stride, extent))
                    continue
                start += index.base * stride
                for d, c in index.terms:
                    strides[d] += c * stride
            starts.append(start)
            output = k - len(self.inputs)
            alias = aliases[output] if aliases is not None and output >= 0 else None
            operands.append(Operand(access.dtype, "GL", tuple(strides), alias, axes=tuple(axes)))
        return NestSpec(tuple(sizes), tuple(scan), tuple(operands), self.body), starts
