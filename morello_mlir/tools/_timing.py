"""Goals timed on this machine, each alone, in turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ..calibration.timing import in_turns
from ..errors import MorelloError
from ..report import Explained
from . import _cli

#: Rounds, and seconds of a sample of one goal in one of them.
ROUNDS, SAMPLE_SECONDS = 15, 0.002


def timed(goals: Sequence[tuple[Explained, str]], target: str, notebook: _cli.Notebook) -> list[Explained]:
    """The goals with what one call of each takes here on random operands, or why it was not timed.

    goals: each with the text of the function that does it (empty: there is none). target: the name of theirs.
    """
    calls: dict[str, Callable[[int], None]] = {}
    why: dict[str, str] = {}
    for number, (goal, function) in enumerate(goals):
        notebook.note(f"compiling {goal.spec}, alone")
        try:
            calls[str(number)] = _repeating(goal, function, target)
        except MorelloError as error:
            why[str(number)] = next(iter(str(error).splitlines()), "not compiled")
    notebook.note("the code of one of the goals, while they were timed,")
    seconds = in_turns(calls, ROUNDS, SAMPLE_SECONDS)
    names = map(str, range(len(goals)))
    return [
        replace(goal, measured_s=seconds.get(name), why=why.get(name, ""))
        for name, (goal, _) in zip(names, goals, strict=True)
    ]


def _repeating(goal: Explained, function: str, target: str) -> Callable[[int], None]:
    """`call(times)`. Raises SpecError, CompileError."""
    from ..api import compile as compile_module
    from ..runtime import make_arguments
    from ..runtime.alone import ENTRY, module_of

    module = module_of(goal.spec, goal.schedule, function)
    compiled = compile_module(module, entry=ENTRY, target=target, threads=goal.threads)
    run = compiled.bind(*make_arguments.make(compiled.functions[ENTRY].signature, "random", 0))

    def call(times: int) -> None:
        for _ in range(times):
            run()

    return call
