"""Where the time of a compiled function goes: measured in the program itself, goal by goal."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from morello_mlir.errors import CompileError
from morello_mlir.passes.morello_profile import SYMBOL

if TYPE_CHECKING:
    from .program import Program

#: Shares of less than this are not listed one by one.
_LEAST = 0.001
_WHAT = {"upstream": "lowered by upstream", "copy": "copies", "memory": "buffers made and freed"}


@dataclass(frozen=True)
class Part:
    """kind: `goal` (code of ours), `upstream`, `copy` or `memory`. name: the Spec, or the op. times: in one run of the
    whole. seconds: of these together."""

    kind: str
    name: str
    times: float
    seconds: float


@dataclass(frozen=True)
class Profile:
    """seconds: of one run. parts: the slowest first; what is missing to the whole is what stands between
    them: the way in, loops, and the counting."""

    seconds: float
    parts: tuple[Part, ...]

    def share(self, kind: str = "goal") -> float:
        """What parts of a kind take of the whole, of 1; `goal`: code of ours. 0 where nothing was measured."""
        taken = sum(part.seconds for part in self.parts if part.kind == kind)
        return taken / self.seconds if self.seconds else 0.0

    def __str__(self) -> str:
        lines = [f"{1e6 * self.seconds:.2f} us a run"]
        named = [("goal", f"{self.share():6.1%}  in code of ours")]
        named += [(kind, f"{self.share(kind):6.1%}  {what}") for kind, what in _WHAT.items()]
        lines += [text for kind, text in named if kind == "goal" or any(part.kind == kind for part in self.parts)]
        rest = 1 - sum(self.share(kind) for kind, _ in named)
        lines.append(f"{max(rest, 0.0):6.1%}  between these")
        for part in self.parts:
            share = part.seconds / self.seconds if self.seconds else 0.0
            if share >= _LEAST:
                lines.append(
                    f"{share:6.1%}  {part.times:3.0f} x {1e6 * part.seconds / part.times:10.2f} us  {part.name}"
                )
        return "\n".join(lines)


def profile(program: Program, args: Sequence[Any], seconds: float) -> Profile:
    """Runs a program that counts cycles with these arguments for so many seconds, three times at least, after a first
    run that does not count."""
    build = program.build
    counters = build.constants[SYMBOL].view(np.int64).reshape(-1, 2)
    program.call(*args)
    counters[:] = 0
    started, count = time.perf_counter(), 0
    while count < 3 or time.perf_counter() - started < seconds:
        program.call(*args)
        count += 1
    elapsed = time.perf_counter() - started
    cycles, times = counters.T
    if not cycles[0]:
        raise CompileError("nothing was counted: the function does not return")
    # All that is known of a cycle of the counter is how many there were in all of that time.
    scale = elapsed / cycles[0]
    parts = [
        Part(kind, build.functions.get(name, name), float(times[i] / count), float(cycles[i] * scale / count))
        for i, (kind, _, name) in enumerate(what.partition(" ") for what in build.counted)
        if i and times[i]
    ]
    return Profile(elapsed / count, tuple(sorted(parts, key=lambda part: -part.seconds)))
