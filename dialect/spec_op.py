"""Loading the dialect, and typed access to `morello.spec`:

    "morello.spec"(%A, %B, %C) {
      function = "MatmulAccum", dims = array<i64: 1, 512, 512, 512>,
      operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial,
      limits = {VRF = 16 : i64}, schedule = ["..."], cost = 123 : i64, source = "search"
    } : (memref<512x512xf32>, memref<512x512xf32>, memref<512x512xf32>) -> ()

`function`, `dims` and `operands` are required. `serial` is a unit attribute (absent: parallel, on `threads`, an i64, or
all that the process may use), `far` and `forked` are others (see Spec). `limits` (memory to amount), `constants`
(constant operand to a name of its contents), `then` and `then_inputs` (see Spec), `schedule` (lines, or one string),
`cost` and `source` (where the schedule comes from) are optional. An op with more than three operands has their number
in its name: `morello.spec4`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import resources
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from morello_mlir.errors import SpecError

if TYPE_CHECKING:
    from morello_mlir.spec import Spec, Then

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


def is_spec(name: str) -> bool:
    """Whether an op of that name is a `morello.spec`, of any number of operands."""
    return name == OP_NAME or numbered(name, OP_NAME)


def loaded(context: Any) -> bool:
    """Whether an `mlir.ir.Context` knows the dialect."""
    return bool(context.is_registered_operation(OP_NAME))


def load(context: Any) -> None:
    """Make the dialect known to an `mlir.ir.Context`; a second time does nothing.

    Do it before parsing: MLIR does not survive the registration of an op that it has already seen as an unknown one.
    """
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


class SpecOp:
    """A view of a `morello.spec` op. Raises SpecError where it is given another op.

    The accessors raise SpecError, naming the attribute, where an attribute is missing or malformed.
    """

    #: What such ops are called, roughly.
    shown: ClassVar[str] = OP_NAME

    @staticmethod
    def is_named(name: str) -> bool:
        """Whether ops of that name are of this kind."""
        return is_spec(name)

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
        from mlir import ir

        attribute = self._required("dims")
        if not isinstance(attribute, ir.DenseI64ArrayAttr):
            raise SpecError(f"attribute 'dims': expected array<i64: ...>, not {attribute}")
        return tuple(ir.DenseI64ArrayAttr(attribute))

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
        return 0 if attribute is None else _integer("threads", attribute)

    @property
    def forked(self) -> bool:
        """Whether the threads are under way (see Spec)."""
        return self._unit("forked")

    @property
    def far(self) -> bool:
        """Whether the goal's footprint exceeds the last cache (see Spec)."""
        return self._unit("far")

    @property
    def limits(self) -> dict[str, int]:
        """The amount left of each memory that is limited; empty: all of the machine."""
        from mlir import ir

        attribute = self._optional("limits")
        if attribute is None:
            return {}
        if not isinstance(attribute, ir.DictAttr):
            raise SpecError(f"attribute 'limits': expected a dictionary, not {attribute}")
        return {named.name: _integer(f"limits.{named.name}", named.attr) for named in ir.DictAttr(attribute)}

    @property
    def constants(self) -> dict[str, str]:
        """Names of what constant operands hold, by operand: where name, shape and strides agree, so do the contents."""
        from mlir import ir

        attribute = self._optional("constants")
        if attribute is None:
            return {}
        if not isinstance(attribute, ir.DictAttr):
            raise SpecError(f"attribute 'constants': expected a dictionary, not {attribute}")
        return {named.name: string_of(f"constants.{named.name}", named.attr) for named in ir.DictAttr(attribute)}

    @property
    def then(self) -> Then | None:
        """What is done to the sums (see Spec): `then` is the text of a body, `then_inputs` the types of its inputs."""
        from mlir import ir

        from morello_mlir.spec import Then

        body, inputs = self._optional("then"), self._optional("then_inputs")
        if body is None and inputs is None:
            return None
        if body is None or inputs is None:
            raise SpecError("attributes 'then' and 'then_inputs': one without the other")
        if not isinstance(inputs, ir.ArrayAttr):
            raise SpecError(f"attribute 'then_inputs': expected an array of strings, not {inputs}")
        texts = [string_of("then_inputs", a) for a in ir.ArrayAttr(inputs)]
        try:
            return Then.make(string_of("then", body), texts)
        except SpecError as error:
            raise SpecError(f"attribute 'then': {error}") from error

    @property
    def extras(self) -> Sequence[Any]:
        """The operands of `then`, behind the others."""
        return list(self.operation.operands)[3:] if self._optional("then") is not None else []

    @property
    def spec(self) -> Spec:
        """The Spec that the attributes describe."""
        from morello_mlir.spec import FUNCTIONS, LIMITED, Spec, TensorSpec

        function, texts = self.function, self.operand_texts
        if function not in FUNCTIONS:
            raise SpecError(f"attribute 'function': unknown function '{function}' (have {', '.join(FUNCTIONS)})")
        declared = FUNCTIONS[function].operands
        if len(texts) != len(declared):
            raise SpecError(f"attribute 'operands': {function} has {len(declared)} operands, not {len(texts)}")
        tensors = []
        for index, (text, (name, dims)) in enumerate(zip(texts, declared, strict=True)):
            try:
                tensors.append(TensorSpec.parse(text, dims))
            except SpecError as error:
                raise SpecError(f"attribute 'operands', element {index} ({name}): {error}") from error
        expected = FUNCTIONS[function].dims
        if len(self.dims) != len(expected):
            raise SpecError(
                f"attribute 'dims': {function} has {len(expected)} dims [{', '.join(expected)}], not {len(self.dims)}"
            )
        if any(size < 0 for size in self.dims):
            raise SpecError(f"attribute 'dims': negative size in {list(self.dims)}")
        # A dictionary attribute is sorted by name; a Spec's limits have an order of their own.
        limits = self.limits
        ordered = sorted(limits.items(), key=lambda item: LIMITED.index(item[0]) if item[0] in LIMITED else -1)
        try:
            return Spec(
                function,
                self.dims,
                tuple(tensors),
                self.serial,
                tuple(ordered),
                self.far,
                self.threads,
                self.forked,
                self.then,
            )
        except SpecError as error:
            # What has not been checked by now is the limits and the threads.
            raise SpecError(f"attribute 'limits': {error}" if "limit" in str(error) else str(error)) from error

    # ---- the values -----------------------------------------------------------------------------------------------

    @property
    def operands(self) -> tuple[Any, ...]:
        """The SSA operands: memrefs, and the vectors of register-resident tensors."""
        return tuple(self.operation.operands)

    @property
    def results(self) -> tuple[Any, ...]:
        """The vectors of a register-resident output; empty otherwise."""
        return tuple(self.operation.results)

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
        return None if attribute is None else _integer("cost", attribute)

    @property
    def source(self) -> str | None:
        """Where the schedule comes from: `search`, `memo`, `shipped`, `measured` or `manual`."""
        attribute = self._optional("source")
        return None if attribute is None else string_of("source", attribute)

    def set_schedule(self, text: str | None, cost: int | None = None, source: str | None = None) -> None:
        """Replace schedule, cost and source; what is None is removed."""
        from mlir import ir

        context = self.operation.context
        lines = (
            None if text is None else ir.ArrayAttr.get([_text(line, context) for line in text.splitlines()], context)
        )
        amount = None if cost is None else ir.IntegerAttr.get(ir.IntegerType.get_signless(64, context), cost)
        origin = None if source is None else _text(source, context)
        for name, value in (("schedule", lines), ("cost", amount), ("source", origin)):
            if value is not None:
                self.operation.attributes[name] = value
            elif name in self.operation.attributes:
                del self.operation.attributes[name]

    # ---- helpers --------------------------------------------------------------------------------------------------

    def _required(self, name: str) -> Any:
        attribute = self._optional(name)
        if attribute is None:
            raise SpecError(f"attribute '{name}' is missing")
        return attribute

    def _unit(self, name: str) -> bool:
        from mlir import ir

        attribute = self._optional(name)
        if attribute is not None and not isinstance(attribute, ir.UnitAttr):
            raise SpecError(f"attribute '{name}': expected a unit attribute, not {attribute}")
        return attribute is not None

    def _optional(self, name: str) -> Any:
        return self.operation.attributes.get(name)


View = TypeVar("View", bound=SpecOp)


def ops_of(root: Any, *kinds: type[View]) -> Iterator[View]:
    """Views of the ops of these kinds at or below an op, in order; the list is taken before the first is handed out."""
    from mlir import ir

    found: list[View] = []

    def visit(op: Any) -> Any:
        found.extend(kind(op) for kind in kinds if kind.is_named(op.name))
        return ir.WalkResult.ADVANCE

    root.operation.walk(visit)
    return iter(found)


def spec_ops(root: Any) -> Iterator[SpecOp]:
    """Every `morello.spec` at or below an op (see `ops_of`)."""
    return ops_of(root, SpecOp)


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


def build_spec_op(
    spec: Spec,
    operands: Sequence[Any],
    results: Sequence[Any] = (),
    schedule: str | None = None,
    *,
    constants: Mapping[str, str] | None = None,
    attributes: Mapping[str, Any] | None = None,
    location: Any = None,
    insertion_point: Any = None,
) -> SpecOp:
    """A new `morello.spec` for a Spec, at the current (or given) insertion point and location.

    operands, results: SSA values and result types. constants: see `SpecOp.constants`. attributes: further ones
    (discardable, with a dotted name).
    """
    from mlir import ir

    context = operands[0].context if operands else ir.Context.current
    load(context)
    named = _goal_attributes(spec, context)
    if constants:
        named["constants"] = ir.DictAttr.get({n: _text(c, context) for n, c in constants.items()}, context)
    op = ir.Operation.create(
        OP_NAME if results else op_name(len(operands)),
        results=list(results),
        operands=list(operands),
        attributes={**named, **(attributes or {})},
        loc=location or ir.Location.current,
        ip=insertion_point,
    )
    made = SpecOp(op)
    if schedule is not None:
        made.set_schedule(schedule)
    return made


def _goal_attributes(spec: Spec, context: Any) -> dict[str, Any]:
    """What says that an op is for `spec`."""
    from mlir import ir

    def texts(values: Iterable[str]) -> Any:
        return ir.ArrayAttr.get([_text(value, context) for value in values], context)

    operands = zip(spec.operands, spec.info.operands, strict=True)
    named: dict[str, Any] = {
        "function": _text(spec.function, context),
        "dims": ir.DenseI64ArrayAttr.get(list(spec.dims), context),
        "operands": texts(t.text(dims) for t, (_, dims) in operands),
    }
    named |= flags(spec, context, "serial", "forked", "far")
    if spec.limits:
        i64 = ir.IntegerType.get_signless(64, context)
        named["limits"] = ir.DictAttr.get({m: ir.IntegerAttr.get(i64, v) for m, v in spec.limits}, context)
    if spec.then is not None:
        named["then"] = _text(str(spec.then.body), context)
        named["then_inputs"] = texts([spec.then.sums, *map(str, spec.then.extras)])
    return named


def _text(value: str, context: Any) -> Any:
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


def _integer(name: str, attribute: Any) -> int:
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
