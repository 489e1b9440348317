"""Which nests on memrefs become Specs: functions that `outline` made, by their calls, and single linalg ops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlir import ir

from morello_mlir.errors import SpecError
from morello_mlir.nests import NestSpec

from ..aliases import Aliases, nested_ops
from ..explain import check_place
from ..fills import fill_before, filled_with
from ..outcome import NotLifted, Rejected
from .choose import is_contraction
from .group import Surroundings, build
from .outline import ROOT
from .record import NEST, Access, Record
from .structured import structured

#: A reason: contractions say better ones.
IS_CONTRACTION = "it is a contraction"


@dataclass(frozen=True)
class LiftedNest:
    """A call or an op can be lifted. values: a memref for each operand of the Spec, which starts so many elements
    behind it as `starts` says. name: of the op that it is reported as. fill: the op whose constants it makes
    superfluous. whole: the Spec before dims were merged that step as one in all operands."""

    spec: NestSpec
    values: tuple[Any, ...]
    starts: tuple[int, ...]
    name: str
    fill: Any
    whole: NestSpec


def calls(root: Any) -> list[tuple[Any, Any]]:
    """The calls under an op of functions around nests: (call, function)."""
    functions = {}
    found = []
    ops = list(nested_ops(root))
    for op in ops:
        if op.name == "func.func" and NEST in op.attributes and len(op.regions[0].blocks):
            functions[ir.StringAttr(op.attributes["sym_name"]).value] = op
    for op in ops:
        if op.name == "func.call":
            callee = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
            if callee in functions:
                found.append((op, functions[callee]))
    return found


def explain_call(call: Any, function: Any, aliases: Aliases) -> LiftedNest | Rejected:
    """Whether and as what a call of a function around a nest can be lifted."""
    try:
        record = Record.of(function.attributes[NEST])
        numbers = [int(access.where) for access in record.accesses]
        if any(n >= len(call.operands) for n in numbers):
            raise NotLifted(f"its attribute '{NEST}' is malformed")
        name = ir.StringAttr(function.attributes[ROOT]).value if ROOT in function.attributes else "linalg.generic"
        return _lifted(record, [call.operands[n] for n in numbers], aliases, name)
    except NotLifted as reason:
        return Rejected(str(reason))


def explain_op(op: Any, aliases: Aliases) -> LiftedNest | Rejected:
    """Whether and as what a single linalg op on memrefs can be lifted, where it is no contraction."""
    try:
        check_place(op)
        facts = structured(op)
        if is_contraction(facts):
            raise NotLifted(IS_CONTRACTION)
        fill = None
        if facts.reduced and len(facts.outputs) == 1:
            fill = fill_before(op, facts.outputs[0], aliases, lambda other: filled_with(other) is not None)
        constant = None if fill is None else filled_with(fill)
        nest = build(facts, Surroundings(lambda other: None, start=lambda value: constant))
        inputs = [Access(_dtype(nest, k), "", read.indices) for k, read in enumerate(nest.inputs)]
        outputs = [Access(_dtype(nest, None, k), "", w.indices) for k, w in enumerate(nest.outputs)]
        record = Record(nest.space.sizes, nest.space.scan, nest.body, (*inputs, *outputs))
        values = [*(read.value for read in nest.inputs), *(facts.outputs[w.result] for w in nest.outputs)]
        return _lifted(record, values, aliases, op.name, fill)
    except NotLifted as reason:
        return Rejected(str(reason))


def _dtype(nest: Any, k: int | None, output: int = 0) -> str:
    if k is not None:
        return str(nest.body.values[nest.body.inputs[k]].dtype)
    return str(nest.body.values[nest.body.outputs[output]].dtype)


def _lifted(record: Record, values: list[Any], aliases: Aliases, name: str, fill: Any = None) -> LiftedNest:
    """Raises NotLifted."""
    places = _aliases(record, values, aliases)
    try:
        spec, starts = record.spec([v.type for v in values], places)
    except SpecError as error:
        raise NotLifted(str(error)) from None
    return LiftedNest(spec.canonical(), tuple(values), tuple(starts), name, fill, spec)


def _aliases(record: Record, values: list[Any], aliases: Aliases) -> list[int | None]:
    """By output: the input that lies in the same place, element for element. Raises NotLifted where one overlaps an
    input in another way, or another output: nests are blocked, and read inputs after they have written parts of
    outputs."""
    count = len(record.inputs)
    places: list[int | None] = []
    for o in range(count, len(values)):
        found = None
        for k in range(count):
            if not aliases.may_overlap(values[k], values[o]):
                continue
            if values[k] != values[o] or record.accesses[k].indices != record.accesses[o].indices or found is not None:
                raise NotLifted("the output may overlap an input")
            found = k
        if any(aliases.may_overlap(values[other], values[o]) for other in range(count, o)):
            raise NotLifted("its outputs may overlap")
        places.append(found)
    return places
