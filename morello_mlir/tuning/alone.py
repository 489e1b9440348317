"""Measuring goals of any kind: each schedule as a program of its own, as `compile` makes it, on the same operands.

What the cheapest schedule computes is what the others are compared with.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..calibration.timing import Repeating, sample
from ..errors import CompileError, SpecError
from ..targets import CPUS, TARGETS, Target, get_target
from .kinds import Goal, threads_of

if TYPE_CHECKING:
    from .worker import Job

#: Of a dtype's rounding, how much results may differ: sums of thousands, added up in another order.
SLACK = 1 << 13
#: And at most so much, relative to the largest of a result.
MOST_SLACK = 0.03


def measure_alone(goal: Goal, job: Job, doing: Callable[[int | None], None]) -> dict[str, Any]:
    """As `worker.measure`, of any goal. Raises SpecError, ScheduleError, CompileError."""
    from .contest import run

    name, threads = name_of(job.target), threads_of(goal, job.target)
    codes: set[str] = set()
    calls: dict[int, Repeating] = {}
    wrong: list[int] = []
    operands: Operands | None = None
    for number, text in job.schedules.items():
        doing(number)
        compiled = _compiled(goal, text, job.function, name, threads)
        function = next(iter(compiled.functions.values()))
        code = function.program().build.ir
        if code in codes:
            continue
        codes.add(code)
        operands = operands or Operands(function.signature)
        call = compiled.bind(*operands.arrays)
        if operands.is_right(call):
            calls[number] = _over_and_over(call)
        else:
            wrong.append(number)
    doing(None)
    if len(calls) < 2 or operands is None:
        return {"numbers": list(calls), "samples": [], "wrong": wrong}
    samples = run(list(calls.values()), sampler=operands.sampler())
    return {"numbers": list(calls), "samples": samples.tolist(), "wrong": wrong}


def name_of(target: Target) -> str:
    """By what name programs are compiled for `target`. Raises SpecError: it has none."""
    wanted = target.fingerprint, target.narrow_fingerprint
    for name in ("host", "host-exact", *TARGETS, *CPUS):
        named = get_target(name)
        if (named.fingerprint, named.narrow_fingerprint) == wanted:
            return name
    raise SpecError(f"not measured: programs cannot be compiled for {target.name} as it is here")


def _compiled(goal: Goal, schedule: str, function: str, target: str, threads: int) -> Any:
    """The program of a goal alone. Raises SpecError, CompileError."""
    from ..api import compile as compile_module
    from ..runtime.alone import ENTRY, module_of

    try:
        module = module_of(goal, schedule, function)
    except SpecError:
        if not function:
            raise
        # It is no function that lifting made.
        module = module_of(goal, schedule)
    return compile_module(module, entry=ENTRY, target=target, threads=threads, memo="off", cache=False)


def _over_and_over(run: Callable[[], Any]) -> Repeating:
    def call(times: int) -> None:
        for _ in range(times):
            run()

    return call


class Operands:
    """Arrays for the arguments of a program, each at the start of a page, and what a run must leave in them."""

    def __init__(self, signature: Any):
        from ..aligned import PAGE, aligned
        from ..runtime import make_arguments

        self.before = [np.asarray(a) for a in make_arguments.make(signature, "random", 0)]
        self.arrays = []
        for array in self.before:
            own = aligned(array.nbytes, PAGE, beyond=PAGE).view(array.dtype).reshape(array.shape)
            own[...] = array
            self.arrays.append(own)
        self._want: list[np.ndarray] | None = None
        self._again = False

    def is_right(self, call: Callable[[], Any]) -> bool:
        """Whether a run leaves in the arrays what the first program did. Raises CompileError where one takes too
        long."""
        from . import worker

        self.restore()
        start = time.perf_counter()
        call()
        took = time.perf_counter() - start
        if took > worker.LONGEST_CALL:
            raise CompileError(f"one call takes {took:.1f} s: too long to be measured")
        got = [a.copy() for a in self.arrays]
        if self._want is None:
            self._want = got
            # Whether a second run finds other values: in place, or added up.
            call()
            self._again = not _close(self.arrays, got)
        return _close(got, self._want)

    def restore(self) -> None:
        """Puts back what was in the arrays."""
        for array, before in zip(self.arrays, self.before, strict=True):
            array[...] = before

    def sampler(self) -> Callable[[Repeating, int], float]:
        """Times calls; where they read what they wrote, from the same values each time."""

        def restored(call: Repeating, repeats: int) -> float:
            self.restore()
            return sample(call, repeats)

        return restored if self._again else sample


def _close(got: Sequence[np.ndarray], want: Sequence[np.ndarray]) -> bool:
    return all(_is_close(g, w) for g, w in zip(got, want, strict=True))


def _is_close(got: np.ndarray, want: np.ndarray) -> bool:
    """Whether two results differ by rounding alone."""
    if got.dtype.kind in "iub":
        return bool(np.array_equal(got, want))
    import ml_dtypes

    a, b = got.astype(np.float64), want.astype(np.float64)
    finite = np.abs(b[np.isfinite(b)])
    slack = min(MOST_SLACK, SLACK * float(ml_dtypes.finfo(got.dtype).eps))
    return bool(np.allclose(a, b, rtol=slack, atol=slack * float(finite.max(initial=0.0)), equal_nan=True))
