"""Specs that stay in the program: `morello.spec` ops with the schedule that remains."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from ..dialect import op_name
from ..search.schedule import Node, ToAccum, to_text
from ..spec import Spec
from .builder import Builder
from .bundle import First
from .finish import Finish, on_last
from .plan import Leftover
from .views import OUT, Operand


def emit_spec(
    b: Builder,
    plan: Leftover,
    operands: Sequence[Operand],
    first: First,
    constants: Mapping[str, str],
    finish: Finish | None = None,
) -> None:
    """A Spec on memrefs. Where only run time knows whether this is the first step, or the last, all forms stand in
    `scf.if`s."""
    left = {name for (name, _), t in zip(plan.spec.info.operands, plan.spec.operands, strict=True) if t.const}
    constants = {name: text for name, text in constants.items() if name in left}
    memrefs = [o.as_memref(b) for o in operands]

    def op(store: bool, finish: Finish | None) -> None:
        spec, schedule = _overwriting(plan) if store else (plan.spec, plan.schedule)
        own: Sequence[Operand] = memrefs[: OUT + 1]
        if finish is not None:
            if finish.apart and not store:
                # What was summed up before becomes an operand: results go elsewhere.
                spec, schedule = _overwriting(plan)
            spec = _with_then(spec, finish, store)
            out = finish.result(memrefs)
            before = [memrefs[OUT]] if finish.apart and not store else []
            own = [*memrefs[:OUT], out, *finish.extras(memrefs), *before]
        names, types = ", ".join(o.name for o in own), ", ".join(o.view.type for o in own)
        b.line(f'"{op_name(len(own))}"({names}) {attributes(spec, schedule, constants)} : ({types}) -> ()')

    def either(finish: Finish | None) -> None:
        if isinstance(first, str):
            b.line(f"scf.if {first} {{")
            op(True, finish)
            b.line("} else {")
            op(False, finish)
            b.line("}")
        else:
            op(first, finish)

    on_last(b, finish, either, lambda: either(None))


def _with_then(spec: Spec, finish: Finish, store: bool) -> Spec:
    then = finish.then.after() if finish.apart and not store else finish.then
    out = spec.operands[-1]
    if out.dtype != then.dtype:
        out = replace(out, dtype=then.dtype, row_stride=None)
    return replace(spec, operands=(*spec.operands[:-1], out), then=then).canonical()


def _overwriting(plan: Leftover) -> tuple[Spec, Node]:
    """The Spec that stores in its first step, and the schedule for it."""
    if not plan.spec.info.accumulates:
        return plan.spec, plan.schedule
    return replace(plan.spec, function=plan.spec.function.removesuffix("Accum")), ToAccum(plan.schedule)


def emit_vector_spec(b: Builder, plan: Leftover, lhs: Operand, rhs: Operand, values: Sequence[str]) -> list[str]:
    """A Spec whose output is in registers: takes and returns vectors."""
    memrefs = [o.as_memref(b) for o in (lhs, rhs)]
    vectors = ", ".join([b.machine.vector()] * len(values))
    types = ", ".join(o.view.type for o in memrefs)
    names = ", ".join([*(o.name for o in memrefs), *values])
    out = b.name()
    b.line(
        f'{out}:{len(values)} = "morello.spec"({names}) {attributes(plan.spec, plan.schedule)} : '
        f"({types}, {vectors}) -> ({vectors})"
    )
    return [f"{out}#{i}" for i in range(len(values))]


def attributes(spec: Spec, schedule: Node, constants: Mapping[str, str] = MappingProxyType({})) -> str:
    """The attribute dictionary of a `morello.spec`, as text."""
    tensors = [t.text(dims) for t, (_, dims) in zip(spec.operands, spec.info.operands, strict=True)]
    parts = [
        f'function = "{spec.function}"',
        f"dims = array<i64: {', '.join(map(str, spec.dims))}>",
        f"operands = {_strings(tensors)}",
    ]
    parts += [flag for flag in ("serial", "far", "forked") if getattr(spec, flag)]
    parts += [f"threads = {spec.threads} : i64"] if spec.threads else []
    if spec.limits:
        parts.append("limits = {" + ", ".join(f"{m} = {v} : i64" for m, v in spec.limits) + "}")
    if constants:
        parts.append("constants = {" + ", ".join(f"{n} = {json.dumps(c)}" for n, c in sorted(constants.items())) + "}")
    if spec.then is not None:
        inputs = [spec.then.sums, *map(str, spec.then.extras)]
        parts += [f"then = {json.dumps(str(spec.then.body))}", f"then_inputs = {_strings(inputs)}"]
    parts.append(f"schedule = {_strings(to_text(schedule).splitlines())}")
    return "{" + ", ".join(parts) + "}"


def _strings(items: Sequence[str]) -> str:
    return "[" + ", ".join(json.dumps(i) for i in items) + "]"
