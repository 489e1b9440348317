"""Executing the schedules of nests: every op becomes a call of a function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import ScheduleError
from ...lowering.execute import module_of, symbols
from ...lowering.splice import ROOT, splice
from ...search.schedule import Node, has_hole
from ...targets import Target
from ..actions import check_tree
from ..spec import NestSpec
from .builder import NestBuilder
from .emit import Functions


@dataclass(frozen=True, slots=True)
class NestRoot:
    """A nest op, and the legal schedule that is to be executed."""

    op: Any
    spec: NestSpec
    schedule: Node


def prepare_nest(op: Any, spec: NestSpec, schedule: Node, target: Target) -> NestRoot:
    """The root of a nest op. Raises ScheduleError where the schedule is not legal, or has holes."""
    if has_hole(schedule):
        raise ScheduleError("the schedule has holes: run morello-search before")
    check_tree(spec, schedule, target)
    return NestRoot(op.operation, spec, schedule)


def execute_nests(roots: Sequence[NestRoot], target: Target) -> None:
    """Replaces the ops of `roots` by calls; functions are added to their modules, equal ones once."""
    modules: dict[Any, list[NestRoot]] = {}
    for root in roots:
        modules.setdefault(module_of(root.op), []).append(root)
    for module, own in modules.items():
        functions = Functions(target, symbols(module))
        bodies = [_root_text(functions, root, i) for i, root in enumerate(own)]
        splice(module, [root.op for root in own], "\n".join(["module {", *bodies, *functions.texts.values(), "}"]))


def _root_text(functions: Functions, root: NestRoot, number: int) -> str:
    """The function whose body takes the place of the op."""
    b = NestBuilder()
    function = functions.nest(root.spec, root.schedule)
    types = [v.type for v in root.op.operands]
    args: list[str] = []
    for i, (operand, type_) in enumerate(zip(root.spec.operands, types, strict=True)):
        base, offset = b.name(), b.name()
        rank = type_.rank
        more = "".join(f", {b.name()}:{rank}" for _ in range(2)) if rank else ""
        results = ", ".join([f"memref<{operand.dtype}>", *["index"] * (1 + 2 * rank)])
        b.line(f"{base}, {offset}{more} = memref.extract_strided_metadata %arg{i} : {type_} -> {results}")
        args += [base, offset]
    b.line(f"func.call @{function.name}({', '.join(args)}) : ({', '.join(function.types)}) -> ()")
    parameters = ", ".join(f"%arg{i}: {t}" for i, t in enumerate(types))
    return f"func.func private @{ROOT}{number}({parameters}) {{\n{b.text()}\nreturn\n}}"
