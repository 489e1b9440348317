"""Typed access to nests, `morello.nest2` and so on, and their verifier:

    "morello.nest2"(%x, %y) {
      function = "Softmax", dims = array<i64: 8, 2048>, scan = array<i64: 1>,
      operands = ["(f32, GL, [2048, 1])", "(f32, GL, [2048, 1])"],
      body = "m = max(x0); e = exp(sub(x0, m)); s = sum(e); y = div(e, s)", serial
    } : (memref<8x2048xf32>, memref<8x2048xf32>) -> ()

The name says how many operands there are: the inputs, then the outputs, memrefs of static sizes and strides, of any
rank. Where the elements of an operand are is up to the strides in `operands`, from the memref's first element on.
`scan` lists the dims that are reduced. `serial`, `threads`, `far`, `schedule`, `cost` and `source` are as in
`morello.spec`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from morello_mlir.errors import SpecError

from .goal_op import (
    MOST_OPERANDS,
    NEST,
    GoalOp,
    flags,
    load,
    numbered,
    ops_of,
    static_strides,
    string_of,
    text_attribute,
)
from .spec_op import SpecOp

if TYPE_CHECKING:
    from morello_mlir.nests import NestSpec

NEST_REQUIRED = ("function", "dims", "scan", "operands", "body")
NEST_OPTIONAL = ("serial", "threads", "far", "schedule", "cost", "source")


def is_nest(name: str) -> bool:
    """Whether ops of that name are nests."""
    return numbered(name, NEST)


class NestOp(GoalOp):
    """A view of a nest. Raises SpecError where it is given another op.

    The accessors raise SpecError, naming the attribute, where an attribute is missing or malformed.
    """

    shown: ClassVar[str] = NEST
    is_named = staticmethod(is_nest)

    @property
    def body_text(self) -> str:
        return string_of("body", self._required("body"))

    @property
    def scan_dims(self) -> tuple[int, ...]:
        return self._integers("scan")

    @property
    def spec(self) -> NestSpec:
        """The goal that the attributes describe."""
        from morello_mlir.nests import Body, NestSpec, Operand

        dims, scan = self.dims, self.scan_dims
        if any(not 0 <= d < len(dims) for d in scan) or len(set(scan)) < len(scan):
            raise SpecError(f"attribute 'scan': {list(scan)} are not dims of {list(dims)}")
        operands = []
        for index, text in enumerate(self.operand_texts):
            try:
                operands.append(Operand.parse(text))
            except SpecError as error:
                raise SpecError(f"attribute 'operands', element {index}: {error}") from error
        try:
            body = Body.parse(self.body_text, [o.dtype for o in operands])
        except SpecError as error:
            raise SpecError(f"attribute 'body': {error}") from error
        flags = tuple(d in scan for d in range(len(dims)))
        spec = NestSpec(dims, flags, tuple(operands), body, self.serial, self.threads, self.far)
        if spec.function != self.function:
            raise SpecError(f"attribute 'function': the body makes it a {spec.function}, not a {self.function}")
        return spec

    def set_spec(self, spec: NestSpec) -> None:
        """Says the goal in another way: operands and what they hold are the same."""
        attributes = self.operation.attributes
        for name in ("serial", "threads", "far"):
            if name in attributes:
                del attributes[name]
        for name, value in _goal_attributes(spec, self.operation.context).items():
            attributes[name] = value


def _goal_attributes(spec: NestSpec, context: Any) -> dict[str, Any]:
    from mlir import ir

    named: dict[str, Any] = {
        "function": text_attribute(spec.function, context),
        "dims": ir.DenseI64ArrayAttr.get(list(spec.dims), context),
        "scan": ir.DenseI64ArrayAttr.get(list(spec.scan_dims), context),
        "operands": ir.ArrayAttr.get([text_attribute(str(o), context) for o in spec.operands], context),
        "body": text_attribute(str(spec.body), context),
    }
    return named | flags(spec, context, "serial", "far")


def goal_ops(root: Any) -> Iterator[SpecOp | NestOp]:
    """Every `morello.spec` and every nest at or below an op (see `ops_of`)."""
    return ops_of(root, SpecOp, NestOp)


def nest_ops(root: Any) -> Iterator[NestOp]:
    """Every nest at or below an op."""
    return ops_of(root, NestOp)


def build_nest_op(
    spec: NestSpec,
    operands: Sequence[Any],
    schedule: str | None = None,
    *,
    attributes: Mapping[str, Any] | None = None,
    location: Any = None,
    insertion_point: Any = None,
) -> NestOp:
    """A new nest op, at the current (or given) insertion point and location.

    operands: SSA values, the outputs last. attributes: further ones (discardable, with a dotted name). Raises SpecError
    where there are too many operands (more than MOST_OPERANDS).
    """
    from mlir import ir

    context = operands[0].context if operands else ir.Context.current
    load(context)
    if not 1 <= len(operands) <= MOST_OPERANDS:
        raise SpecError(f"a nest has 1 to {MOST_OPERANDS} operands, not {len(operands)}")
    named = _goal_attributes(spec, context)
    op = ir.Operation.create(
        f"{NEST}{len(operands)}",
        operands=list(operands),
        attributes={**named, **(attributes or {})},
        loc=location or ir.Location.current,
        ip=insertion_point,
    )
    made = NestOp(op)
    if schedule is not None:
        made.set_schedule(schedule)
    return made


def nest_value_problems(view: NestOp, spec: NestSpec) -> list[str]:
    """Whether the SSA operands are memrefs that hold what the operands' strides reach."""
    values = [v.type for v in view.operands]
    if len(values) != len(spec.operands):
        return [f"takes {len(spec.operands)} operands, as many as attribute 'operands' has, not {len(values)}"]
    for index, (operand, kind) in enumerate(zip(spec.operands, values, strict=True)):
        complaint = _problem(operand.dtype, operand.span(spec.dims), kind)
        if complaint:
            return [f"operand {index}: {complaint}"]
    return []


def _problem(dtype: str, span: int, kind: Any) -> str:
    from mlir import ir

    if not isinstance(kind, ir.MemRefType):
        return f"expected a memref, not {kind}"
    memref = ir.MemRefType(kind)
    if str(memref.element_type) != dtype:
        return f"the element type {memref.element_type} is not {dtype}"
    strides = static_strides(memref)
    if isinstance(strides, str):
        return strides
    shape = list(memref.shape)
    held = 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    return f"{kind} holds {held} elements, and {span} are reached" if span > held else ""
