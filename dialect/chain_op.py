"""Typed access to chains, `morello.chain4` and so on, and their verifier:

    "morello.chain4"(%q, %k, %v, %out) {
      function = "Chain", dims = array<i64: 12, 128>, serial,
      stages = ["t0 = Matmul([12, 128, 64, 128], ..., serial) of x0, x1",
                "t1 = Softmax([12, 128, 128 scan], ..., serial) of t0",
                "y = Matmul([12, 128, 128, 64], ..., serial) of t1, x2"]
    } : (memref<12x128x64xf32>, ...) -> ()

The name says how many operands there are: the inputs x0, x1, ..., then the output. Each is a memref of static sizes and
strides, as the first stage that reads it has it (contractions: three dims; nests: all of theirs, with stride 0 where it
does not vary). `serial`, `threads`, `schedule`, `cost` and `source` are as in `morello.spec`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from morello_mlir.errors import SpecError

from .goal_op import CHAIN, MOST_OPERANDS, GoalOp, flags, load, numbered, ops_of, string_of, text_attribute

if TYPE_CHECKING:
    from morello_mlir.chains import ChainSpec

CHAIN_REQUIRED = ("function", "dims", "stages")
CHAIN_OPTIONAL = ("serial", "threads", "schedule", "cost", "source")


def is_chain(name: str) -> bool:
    """Whether ops of that name are chains."""
    return numbered(name, CHAIN)


class ChainOp(GoalOp):
    """A view of a chain. Raises SpecError where it is given another op.

    The accessors raise SpecError, naming the attribute, where an attribute is missing or malformed.
    """

    shown: ClassVar[str] = CHAIN
    is_named = staticmethod(is_chain)

    @property
    def stage_texts(self) -> list[str]:
        from mlir import ir

        attribute = self._required("stages")
        items = list(ir.ArrayAttr(attribute)) if isinstance(attribute, ir.ArrayAttr) else [None]
        if not all(isinstance(item, ir.StringAttr) for item in items):
            raise SpecError(f"attribute 'stages': expected an array of strings, not {attribute}")
        return [string_of("stages", item) for item in items]

    @property
    def spec(self) -> ChainSpec:
        """The goal that the attributes describe."""
        from morello_mlir.chains import ChainSpec

        if self.function != "Chain":
            raise SpecError(f"attribute 'function': expected Chain, not {self.function}")
        try:
            spec = ChainSpec.of_lines(self.stage_texts, self.serial, self.threads)
        except SpecError as error:
            raise SpecError(f"attribute 'stages': {error}") from error
        if self.dims != spec.dims:
            raise SpecError(f"attribute 'dims': the stages make it {list(spec.dims)}, not {list(self.dims)}")
        return spec


def chain_ops(root: Any) -> Iterator[ChainOp]:
    """Every chain at or below an op (see `ops_of`)."""
    return ops_of(root, ChainOp)


def build_chain_op(spec: ChainSpec, operands: Sequence[Any], schedule: str | None = None) -> ChainOp:
    """A new chain, at the current insertion point and location. operands: SSA values, the output last.

    Raises SpecError where there are too many operands (more than MOST_OPERANDS).
    """
    from mlir import ir

    context = operands[0].context
    load(context)
    if len(operands) > MOST_OPERANDS:
        raise SpecError(f"a chain has up to {MOST_OPERANDS} operands, not {len(operands)}")
    named: dict[str, Any] = {
        "function": text_attribute(spec.function, context),
        "dims": ir.DenseI64ArrayAttr.get(list(spec.dims), context),
        "stages": ir.ArrayAttr.get([text_attribute(line, context) for line in spec.lines()], context),
    }
    named |= flags(spec, context, "serial")
    made = ChainOp(ir.Operation.create(f"{CHAIN}{len(operands)}", operands=list(operands), attributes=named))
    if schedule is not None:
        made.set_schedule(schedule)
    return made


def chain_problems(view: ChainOp) -> list[str]:
    """What is wrong with a chain and its operands, apart from its schedule."""
    from morello_mlir.lowering.chains import view_of

    known = (*CHAIN_REQUIRED, *CHAIN_OPTIONAL)
    found = [f"unknown attribute '{a}'" for a in view.operation.attributes if a not in known and "." not in a]
    try:
        spec = view.spec
    except SpecError as error:
        return [*found, str(error)]
    names = spec.names
    if len(view.operands) != len(names):
        return [*found, f"takes {len(names)} operands, {', '.join(names)}, not {len(view.operands)}"]
    for name, value in zip(names, view.operands, strict=True):
        try:
            view_of(spec, name, value.type)
        except SpecError as error:
            return [*found, str(error)]
    return found
