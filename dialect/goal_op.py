"""What ops that are goals have in common: their names, loading the dialect, and typed access to their attributes.

`morello.spec` (see `spec_op`), nests (`nest_op`) and chains (`chain_op`) have `function` and `dims`; `serial`, a unit
attribute (absent: parallel, on `threads`, an i64, or all that the process may use); `schedule` (lines, or one string),
`cost` and `source` (where the schedule comes from).
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from importlib import resources
from types import ModuleType
from typing import Any, ClassVar, TypeVar

from morello_mlir.errors import SpecError

from .dense import admit_all_elements

DIALECT = "morello"
OP_NAME = f"{DIALECT}.spec"
#: Nests (see `nest_op`) have the number of their operands in their names: `morello.nest2`.
NEST = "morello.nest"
#: And so have chains (see `chain_op`).
CHAIN = "morello.chain"
#: Operands beyond three are of types of their own: such an op is called `morello.spec4`, `morello.spec5`, ...
MOST_OPERANDS = 64


def op_name(operands: int) -> str:
    """The name of an op with so many operands on memrefs."""
    if operands > MOST_OPERANDS:
        raise SpecError(f"{operands} operands are more than {MOST_OPERANDS}")
    return OP_NAME if operands <= 3 else f"{OP_NAME}{operands}"


def loaded(context: Any) -> bool:
    """Whether an `mlir.ir.Context` knows the dialect."""
    return bool(context.is_registered_operation(OP_NAME))


def load(context: Any) -> None:
    """Make the dialect known to an `mlir.ir.Context`; a second time does nothing.

    Do it before parsing: MLIR does not survive the registration of an op that it has already seen as an unknown one.
    """
    admit_all_elements()
    # Loading a dialect twice would abort the process.
    if loaded(context):
        return
    # MLIR's bindings look for a module of the dialect at every op that they meet, until they find one.
    sys.modules.setdefault(f"mlir.dialects.{DIALECT}", ModuleType(DIALECT))
    from mlir import ir
    from mlir.dialects import irdl

    definition = resources.files(__package__).joinpath("morello.irdl.mlir").read_text(encoding="utf-8")
    more = [_with_operands(op_name(n), n, ("operands",)) for n in range(4, MOST_OPERANDS + 1)]
    more += [_with_operands(f"{NEST}{n}", n, ("operands", "scan", "body")) for n in range(1, MOST_OPERANDS + 1)]
    more += [_with_operands(f"{CHAIN}{n}", n, ("stages",)) for n in range(2, MOST_OPERANDS + 1)]
    definition = definition.replace("// MORE", "\n".join(more))
    with context, ir.Location.unknown():
        irdl.load_dialects(ir.Module.parse(definition))


def _with_operands(name: str, count: int, attributes: Sequence[str]) -> str:
    """The definition of the op `name` of so many operands, with more attributes than all have."""
    operands = [f"operand{i}: %any{i}" for i in range(count)]
    required = ["function", "dims", *attributes]
    lines = [
        *(f"%any{i} = irdl.any" for i in range(count)),
        *(f"%{attribute} = irdl.any" for attribute in required),
        f"irdl.operands({', '.join(operands)})",
        f"irdl.attributes {{ {', '.join(f'{a!r} = %{a}' for a in required)} }}".replace("'", '"'),
    ]
    return f"irdl.operation @{name.partition('.')[2]} {{\n" + "\n".join(lines) + "\n}"


class GoalOp(ABC):
    """A view of an op that is a goal. Raises SpecError where it is given another op.

    The accessors raise SpecError, naming the attribute, where an attribute is missing or malformed.
    """

    #: What such ops are called, roughly.
    shown: ClassVar[str]

    @staticmethod
    @abstractmethod
    def is_named(name: str) -> bool:
        """Whether ops of that name are of this kind."""

    def __init__(self, op: Any):
        self.operation = op.operation
        if not self.is_named(self.operation.name):
            raise SpecError(f"expected a '{self.shown}' op, not '{self.operation.name}'")

    # ---- the goal -------------------------------------------------------------------------------------------------

    @property
    def function(self) -> str:
        return string_of("function", self._required("function"))

    @property
    def dims(self) -> tuple[int, ...]:
        return self._integers("dims")

    @property
    def operand_texts(self) -> tuple[str, ...]:
        """The tensor specs as they are written in the attribute."""
        from mlir import ir

        attribute = self._required("operands")
        if not isinstance(attribute, ir.ArrayAttr):
            raise SpecError(f"attribute 'operands': expected an array of strings, not {attribute}")
        return tuple(string_of("operands", a) for a in ir.ArrayAttr(attribute))

    @property
    def serial(self) -> bool:
        return self._unit("serial")

    @property
    def threads(self) -> int:
        """How many threads a parallel goal has; 0: as many as the process may use."""
        attribute = self._optional("threads")
        return 0 if attribute is None else integer_of("threads", attribute)

    @property
    def far(self) -> bool:
        """Whether the goal's footprint exceeds the last cache (see Spec)."""
        return self._unit("far")

    @property
    @abstractmethod
    def spec(self) -> Any:
        """The goal that the attributes describe."""

    # ---- the values -----------------------------------------------------------------------------------------------

    @property
    def operands(self) -> tuple[Any, ...]:
        """The SSA operands: memrefs, and the vectors of register-resident tensors."""
        return tuple(self.operation.operands)

    # ---- the schedule ---------------------------------------------------------------------------------------------

    @property
    def schedule_text(self) -> str | None:
        """The schedule as text of one or more lines, or None where there is none."""
        from mlir import ir

        attribute = self._optional("schedule")
        if attribute is None:
            return None
        if isinstance(attribute, ir.ArrayAttr):
            return "\n".join(string_of("schedule", line) for line in ir.ArrayAttr(attribute))
        return string_of("schedule", attribute)

    @property
    def cost(self) -> int | None:
        attribute = self._optional("cost")
        return None if attribute is None else integer_of("cost", attribute)

    @property
    def source(self) -> str | None:
        """Where the schedule comes from: `search`, `memo`, `shipped`, `measured` or `manual`."""
        attribute = self._optional("source")
        return None if attribute is None else string_of("source", attribute)

    def set_schedule(self, text: str | None, cost: int | None = None, source: str | None = None) -> None:
        """Replace schedule, cost and source; what is None is removed."""
        from mlir import ir

        context = self.operation.context
        attributes = self.operation.attributes
        for name, value in (("schedule", text), ("cost", cost), ("source", source)):
            if value is None and name in attributes:
                del attributes[name]
        if text is not None:
            lines = [text_attribute(line, context) for line in text.splitlines()]
            attributes["schedule"] = ir.ArrayAttr.get(lines, context)
        if cost is not None:
            attributes["cost"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64, context), cost)
        if source is not None:
            attributes["source"] = text_attribute(source, context)

    # ---- helpers --------------------------------------------------------------------------------------------------

    def _required(self, name: str) -> Any:
        attribute = self._optional(name)
        if attribute is None:
            raise SpecError(f"attribute '{name}' is missing")
        return attribute

    def _integers(self, name: str) -> tuple[int, ...]:
        from mlir import ir

        attribute = self._required(name)
        if not isinstance(attribute, ir.DenseI64ArrayAttr):
            raise SpecError(f"attribute '{name}': expected array<i64: ...>, not {attribute}")
        return tuple(ir.DenseI64ArrayAttr(attribute))

    def _unit(self, name: str) -> bool:
        from mlir import ir

        attribute = self._optional(name)
        if attribute is not None and not isinstance(attribute, ir.UnitAttr):
            raise SpecError(f"attribute '{name}': expected a unit attribute, not {attribute}")
        return attribute is not None

    def _optional(self, name: str) -> Any:
        return self.operation.attributes.get(name)


View = TypeVar("View", bound=GoalOp)


def ops_of(root: Any, *kinds: type[View]) -> Iterator[View]:
    """Views of the ops of these kinds at or below an op, in order; the list is taken before the first is handed out."""
    from mlir import ir

    found: list[View] = []

    def visit(op: Any) -> Any:
        found.extend(kind(op) for kind in kinds if kind.is_named(op.name))
        return ir.WalkResult.ADVANCE

    root.operation.walk(visit)
    return iter(found)


def flags(goal: Any, context: Any, *units: str) -> dict[str, Any]:
    """The attributes `threads` and, of `units`, those that are true of a goal."""
    from mlir import ir

    named: dict[str, Any] = {unit: ir.UnitAttr.get(context) for unit in units if getattr(goal, unit)}
    if goal.threads:
        named["threads"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64, context), goal.threads)
    return named


def numbered(name: str, prefix: str) -> bool:
    """Whether the name of an op is `prefix` and a number of operands."""
    return name.startswith(prefix) and name[len(prefix) :].isdecimal()


def text_attribute(value: str, context: Any) -> Any:
    from mlir import ir

    return ir.StringAttr.get(value, context)


def string_of(name: str, attribute: Any) -> str:
    """The text of attribute `name`. Raises SpecError where it is no string, or its bytes are no text."""
    from mlir import ir

    if not isinstance(attribute, ir.StringAttr):
        raise SpecError(f"attribute '{name}': expected a string, not {attribute}")
    try:
        return str(ir.StringAttr(attribute).value)
    except (RuntimeError, UnicodeError):
        raise SpecError(f"attribute '{name}': {attribute} is not UTF-8") from None


def integer_of(name: str, attribute: Any) -> int:
    from mlir import ir

    # A BoolAttr is an IntegerAttr of type i1, and no amount of anything.
    if not isinstance(attribute, ir.IntegerAttr) or isinstance(attribute, ir.BoolAttr):
        raise SpecError(f"attribute '{name}': expected an integer, not {attribute}")
    return int(ir.IntegerAttr(attribute).value)


def static_strides(kind: Any) -> Sequence[int] | str:
    """The strides of a memref type, or what is wrong: its sizes and strides must be known."""
    from mlir import ir

    if not kind.has_static_shape:
        return f"{kind} does not have static sizes"
    try:
        strides, _ = kind.get_strides_and_offset()
    except (RuntimeError, ValueError):
        return f"{kind} is not a strided memref"
    if any(s == ir.ShapedType.get_dynamic_stride_or_offset() for s in strides):
        return f"{kind} does not have static strides"
    return list(strides)
