"""Typed access to `morello.spec`:

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

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from morello_mlir.errors import SpecError

from .goal_op import OP_NAME, GoalOp, flags, integer_of, load, numbered, op_name, ops_of, string_of, text_attribute

if TYPE_CHECKING:
    from morello_mlir.spec import Spec, Then


def is_spec(name: str) -> bool:
    """Whether an op of that name is a `morello.spec`, of any number of operands."""
    return name == OP_NAME or numbered(name, OP_NAME)


class SpecOp(GoalOp):
    """A view of a `morello.spec` op. Raises SpecError where it is given another op.

    The accessors raise SpecError, naming the attribute, where an attribute is missing or malformed.
    """

    shown: ClassVar[str] = OP_NAME
    is_named = staticmethod(is_spec)

    @property
    def forked(self) -> bool:
        """Whether the threads are under way (see Spec)."""
        return self._unit("forked")

    @property
    def limits(self) -> dict[str, int]:
        """The amount left of each memory that is limited; empty: all of the machine."""
        from mlir import ir

        attribute = self._optional("limits")
        if attribute is None:
            return {}
        if not isinstance(attribute, ir.DictAttr):
            raise SpecError(f"attribute 'limits': expected a dictionary, not {attribute}")
        return {named.name: integer_of(f"limits.{named.name}", named.attr) for named in ir.DictAttr(attribute)}

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

    @property
    def results(self) -> tuple[Any, ...]:
        """The vectors of a register-resident output; empty otherwise."""
        return tuple(self.operation.results)


def spec_ops(root: Any) -> Iterator[SpecOp]:
    """Every `morello.spec` at or below an op (see `ops_of`)."""
    return ops_of(root, SpecOp)


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
        named["constants"] = ir.DictAttr.get({n: text_attribute(c, context) for n, c in constants.items()}, context)
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
        return ir.ArrayAttr.get([text_attribute(value, context) for value in values], context)

    operands = zip(spec.operands, spec.info.operands, strict=True)
    named: dict[str, Any] = {
        "function": text_attribute(spec.function, context),
        "dims": ir.DenseI64ArrayAttr.get(list(spec.dims), context),
        "operands": texts(t.text(dims) for t, (_, dims) in operands),
    }
    named |= flags(spec, context, "serial", "forked", "far")
    if spec.limits:
        i64 = ir.IntegerType.get_signless(64, context)
        named["limits"] = ir.DictAttr.get({m: ir.IntegerAttr.get(i64, v) for m, v in spec.limits}, context)
    if spec.then is not None:
        named["then"] = text_attribute(str(spec.then.body), context)
        named["then_inputs"] = texts([spec.then.sums, *map(str, spec.then.extras)])
    return named
