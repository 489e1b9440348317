"""The process in which schedules are measured: compiled code that crashes or hangs ends it, and not the compiler.

The job comes as a pickle on standard input; answers go to standard output, a JSON object a line: `doing` (a schedule's
number, before it is compiled and run the first time; null once all have been), then `times` or `error`.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import CompileError, MorelloError, SpecError
from ..spec import Spec
from ..targets import Target

if TYPE_CHECKING:
    from ..calibration.code import Code

#: A single call that takes longer is not worth being timed dozens of times.
LONGEST_CALL = 2.0
_NAME = "measured"


@dataclass(frozen=True)
class Job:
    """Schedules of the goal `spec` by number, as text; the first is what the others are compared with. function: the
    text of the function that lifting made for the goal, if there is one."""

    spec: str
    schedules: dict[int, str]
    target: Target
    function: str = ""


def main() -> None:
    """Does the job on standard input. Ends the process when the parent closes it, or is gone."""
    job: Job = pickle.load(sys.stdin.buffer)
    # What libraries print must not get among the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    threading.Thread(target=_end_with_parent, daemon=True).start()

    def tell(**what: Any) -> None:
        answers.write(json.dumps(what) + "\n")
        answers.flush()

    try:
        tell(times=measure(job, lambda number: tell(doing=number)))
    except MorelloError as error:
        tell(error=str(error))
    except MemoryError:
        tell(error="out of memory")
    except Exception as error:
        if os.environ.get("MORELLO_STRICT"):
            raise
        tell(error=f"{type(error).__name__}: {error}")
    os._exit(0)


def _end_with_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(1)


def measure(job: Job, doing: Callable[[int | None], None]) -> dict[str, Any]:
    """numbers: of the schedules that were timed, no two of them with the same code; samples: seconds `[rounds,
    len(numbers) + 1]` (see `contest.run`); wrong: numbers of those that compute something else.

    Raises SpecError, ScheduleError, CompileError.
    """
    from ..calibration.operands import make_operands
    from .contest import run
    from .kinds import parse_goal

    spec = parse_goal(job.spec)
    if isinstance(spec, Spec) and spec.forked:
        raise SpecError("its threads are under way already: only a whole goal can be measured")
    if not is_checked(spec):
        from .alone import measure_alone

        return measure_alone(spec, job, doing)
    assert isinstance(spec, Spec)
    operands = make_operands(spec)
    pointers = [o.address for o in operands]
    calls: dict[int, Callable[[int], None]] = {}
    # Compiled code lives as long as its object.
    codes: dict[bytes, Code] = {}
    wrong = []
    for number, text in job.schedules.items():
        doing(number)
        code = _compiled(spec, text, job.target)
        if code.object_code in codes:
            continue
        codes[code.object_code] = code
        call = code.repeating(_NAME, pointers)
        if _right(spec, call, [o.array for o in operands]):
            calls[number] = call
        else:
            wrong.append(number)
    doing(None)
    if next(iter(job.schedules)) not in calls:
        raise CompileError("the cheapest schedule computes something else than the Spec says")
    samples = run(list(calls.values())) if len(calls) > 1 else None
    return {"numbers": list(calls), "samples": samples.tolist() if samples is not None else [], "wrong": wrong}


def is_checked(goal: object) -> bool:
    """Whether results are compared with what the goal says: contractions without windows. Those of other goals are
    compared with those of the cheapest schedule."""
    return isinstance(goal, Spec) and not any(t.window for t in goal.operands)


def _compiled(spec: Spec, text: str, target: Target) -> Code:
    from ..calibration.code import compile_functions, repeating_function
    from ..search.schedule import parse

    return compile_functions([repeating_function(_NAME, spec, parse(text))], target)


def _right(spec: Spec, call: Callable[[int], None], arrays: list[Any]) -> bool:
    """Whether a call computes what `spec` says. Raises CompileError where one takes too long."""
    from ..calibration.operands import expected, is_close

    out = arrays[-1]
    before = out.copy()
    if not spec.info.accumulates:
        out[...] = out.dtype.type(77)
    start = time.perf_counter()
    call(1)
    took = time.perf_counter() - start
    if took > LONGEST_CALL:
        raise CompileError(f"one call takes {took:.1f} s: too long to be measured")
    got = out.copy()
    out[...] = before
    return is_close(spec, got, expected(spec, arrays))
