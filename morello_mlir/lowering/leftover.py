"""Specs that stay in the program: `morello.spec` ops with the schedule that remains."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from ..search.schedule import Node, ToAccum, to_text
from ..spec import Spec
from .builder import Builder
from .kernels import First
from .plan import Leftover
from .views import Operand


def emit_spec(
    b: Builder, plan: Leftover, operands: Sequence[Operand], first: First, constants: Mapping[str, str]
) -> None:
    """A Spec on memrefs. Where only run time knows whether this is the first step, both forms stand in an `scf.if`."""
    left = {name for (name, _), t in zip(plan.spec.info.operands, plan.spec.operands, strict=True) if t.const}
    constants = {name: text for name, text in constants.items() if name in left}
    memrefs = [o.as_memref(b) for o in operands]
    types = ", ".join(o.view.type for o in memrefs)
    names = ", ".join(o.name for o in memrefs)

    def op(store: bool) -> str:
        spec, schedule = _overwriting(plan) if store else (plan.spec, plan.schedule)
        return f'"morello.spec"({names}) {attributes(spec, schedule, constants)} : ({types}) -> ()'

    if isinstance(first, str):
        b.line(f"scf.if {first} {{")
        b.line(op(True))
        b.line("} else {")
        b.line(op(False))
        b.line("}")
    else:
        b.line(op(first))


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
    parts.append(f"schedule = {_strings(to_text(schedule).splitlines())}")
    return "{" + ", ".join(parts) + "}"


def _strings(items: Sequence[str]) -> str:
    return "[" + ", ".join(json.dumps(i) for i in items) + "]"
