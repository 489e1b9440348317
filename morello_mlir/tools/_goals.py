"""The goals that a command is about: of a file, as lifting finds them, or of a text; and their schedules."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from ..report import Explained, Goal, explained
from ..targets import Target
from ..tuning.kinds import parse_goal
from ..tuning.tuner import Tuned, Tuner
from . import _cli


@dataclass(frozen=True)
class Asked:
    """A goal, and a schedule by hand, if it has one. calls: how often every call of the module does it; once: how often
    the first call does besides. where: the op it is of. function: the text of the function that lifting made for it;
    empty: there is none."""

    spec: Goal
    schedule: str | None = None
    calls: int = 1
    once: int = 0
    where: str = ""
    function: str = field(default="", repr=False)


@dataclass(frozen=True)
class Lifted:
    """What lifting found in a module: goals, remarks, and how many ops of each name are left to upstream."""

    goals: list[Asked]
    remarks: list[str] = field(default_factory=list)
    left: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Answer:
    """An explained goal; tuned: among which schedules it was chosen."""

    explained: Explained
    tuned: Tuned
    seconds: float = 0.0


def is_goal(text: str) -> bool:
    """Whether a command line argument is a goal and not a file."""
    return "(" in text and not os.path.lexists(text)


def goal(text: str, schedule: str | None) -> Asked:
    """A goal given as text. Raises SpecError."""
    return Asked(parse_goal(text), schedule)


def lifted(path: str, target: Target, threads: int, notebook: _cli.Notebook) -> Lifted:
    """The goals of the module in a file (- for stdin), those that are equal once. Raises CompileError, InputError."""
    from ..dialect import ChainOp, NestOp, chain_ops, goal_ops
    from ..passes.pipeline import run_pipeline
    from ..passes.pipelines import stages
    from ..passes.symbols import symbol_name
    from ..runtime.settings import Settings
    from ..runtime.statistics import linalg_ops
    from ._input import load

    notebook.note("loading MLIR")
    module, settings = load(path), Settings(target.name, threads=threads)
    with module.context:
        notebook.note("lifting")
        pieces = stages(settings)
        said = run_pipeline(module.operation, f"builtin.module({pieces['legalize']},{pieces['lift']})")
        found: dict[tuple[Goal, str | None], Asked] = {}
        calls, once = _calls(module)
        for op in (*goal_ops(module.operation), *chain_ops(module.operation)):
            spec = op.spec if isinstance(op, (NestOp, ChainOp)) else op.spec.canonical()
            key, function = (spec, op.schedule_text), _function(op.operation)
            name = symbol_name(function) or ""
            first = once[name]
            often = calls[name] or int(not first)
            if key in found:
                known = found[key]
                found[key] = replace(known, calls=known.calls + often, once=known.once + first)
            else:
                text = function.get_asm(use_local_scope=True)
                found[key] = Asked(*key, often, first, _place(op.operation.location), text)
        return Lifted(list(found.values()), list(map(str, said)), linalg_ops(module))


def _calls(module: Any) -> tuple[Counter[str], Counter[str]]:
    """How often each function is called in every call of the module, and how often in the first call besides; loops
    round calls do not count."""
    import mlir.ir as ir

    from ..lifting.once import runs_once
    from ..passes.symbols import all_ops

    counts: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    for op in all_ops(module):
        if op.name == "func.call":
            counts[runs_once(op)][ir.FlatSymbolRefAttr(op.attributes["callee"]).value] += 1
    return counts


def _function(op: Any) -> Any:
    """The function around an op."""
    while op.operation.name != "func.func":
        op = op.operation.parent
    return op.operation


def _place(location: Any) -> str:
    """`file:line:column` of an op, where it is known."""
    from ..diagnostics import place_of

    place = place_of(location)
    return str(place) if place.line else ""


def solve(asked: Asked, tuner: Tuner, notebook: _cli.Notebook) -> Answer:
    """The cheapest schedule of a goal (the fastest, as the tuner is told to), or that by hand with its holes filled.

    Raises SpecError, ScheduleError.
    """
    notebook.note(f"searching {asked.spec}")
    text = asked.schedule
    tuned = tuner.solve(asked.spec, asked.function) if text is None else tuner.complete(asked.spec, text)
    found = tuned.solution
    shown = explained(found.spec, found.schedule, tuner.target, found.source)
    shown = replace(shown, calls=asked.calls, once=asked.once, where=asked.where)
    return Answer(shown, tuned, found.seconds)
