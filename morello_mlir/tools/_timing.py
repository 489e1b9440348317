"""Goals timed on this machine, each alone, in turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..calibration.timing import in_turns
from ..errors import MorelloError
from ..report import Explained
from . import _cli

#: Rounds, and seconds of a sample of one goal in one of them.
ROUNDS, SAMPLE_SECONDS = 15, 0.002
_NOTHING = "nothing"


def timed(goals: Sequence[tuple[Explained, str]], target: str, notebook: _cli.Notebook) -> list[Explained]:
    """The goals with what one call of each takes here on random operands, or why it was not timed.

    goals: each with the text of the function that does it (empty: there is none). target: the name of theirs.
    """
    # Entering a program and leaving it is no part of a goal.
    calls = {_NOTHING: _nothing()}
    why: dict[str, str] = {}
    for number, (goal, function) in enumerate(goals):
        notebook.note(f"compiling {goal.spec}, alone")
        try:
            calls[str(number)] = _repeating(goal, function, target)
        except MorelloError as error:
            why[str(number)] = next(iter(str(error).splitlines()), "not compiled")
    notebook.note("the code of one of the goals, while they were timed,")
    seconds = in_turns(calls, ROUNDS, SAMPLE_SECONDS)
    entering = seconds.pop(_NOTHING)
    for name, took in list(seconds.items()):
        seconds[name] = took - entering
        if seconds[name] < entering / 4:
            why[name] = f"it takes less than can be told from entering it, {1e9 * entering:.0f} ns"
            del seconds[name]
    names = map(str, range(len(goals)))
    return [
        replace(goal, measured_s=seconds.get(name), why=why.get(name, ""))
        for name, (goal, _) in zip(names, goals, strict=True)
    ]


def _nothing() -> Callable[[int], None]:
    """`call(times)` of a program that does nothing."""
    from ..api import compile as compile_module
    from ..runtime.alone import ENTRY

    compiled = compile_module(f"func.func @{ENTRY}(%x: memref<1xf32>) {{ return }}", optimize=False)
    return _over_and_over(compiled.bind(np.zeros(1, np.float32)))


def _repeating(goal: Explained, function: str, target: str) -> Callable[[int], None]:
    """`call(times)`. Raises SpecError, CompileError."""
    from ..api import compile as compile_module
    from ..runtime import make_arguments
    from ..runtime.alone import ENTRY, module_of

    module = module_of(goal.spec, goal.schedule, function)
    compiled = compile_module(module, entry=ENTRY, target=target, threads=goal.threads)
    return _over_and_over(compiled.bind(*make_arguments.make(compiled.functions[ENTRY].signature, "random", 0)))


def _over_and_over(run: Callable[[], Any]) -> Callable[[int], None]:
    def call(times: int) -> None:
        for _ in range(times):
            run()

    return call
