"""Measuring schedules: cycles of many schedules of one Spec, each beside a reference schedule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import CompileError
from ..search.schedule import Node
from ..search.solve import Search
from ..spec import Spec
from ..targets import Target
from .code import CHAIN, chain_function, compile_functions, schedule_function
from .kernel_table import FMA_LATENCY
from .operands import expected, is_close, make_operands
from .sampler import Sample, random_samples
from .timing import in_turns

#: Functions compiled together: enough to share what compiling costs at least, few enough to show progress.
BATCH = 8
#: Time that one sample lasts, and how many there are of each schedule.
SECONDS = 0.002
ROUNDS = 25

#: Told after every batch how many schedules have been measured.
Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Measured:
    """A random schedule and how many cycles it takes."""

    sample: Sample
    cycles: float


@dataclass(frozen=True, slots=True)
class SpecMeasurements:
    """Random schedules of one Spec, and the schedule that the search chooses with the coefficients so far."""

    spec: Spec
    reference: Node
    samples: tuple[Measured, ...]


def measure_random(
    spec: Spec, target: Target, count: int, seed: int, *, rounds: int = ROUNDS, progress: Progress = lambda n: None
) -> SpecMeasurements:
    """`count` random schedules of `spec`, measured. Raises CompileError where one computes something else."""
    spec = spec.canonical()
    reference = Search(target).solve(spec).schedule
    samples = random_samples(spec, target, count, seed)
    cycles = measure_schedules(spec, reference, [s.schedule for s in samples], target, rounds=rounds, progress=progress)
    measured = tuple(Measured(s, c) for s, c in zip(samples, cycles[1:], strict=True))
    return SpecMeasurements(spec, reference, measured)


def measure_schedules(
    spec: Spec,
    reference: Node,
    schedules: Sequence[Node],
    target: Target,
    *,
    rounds: int = ROUNDS,
    progress: Progress = lambda n: None,
) -> list[float]:
    """Cycles of `reference`, then of each of `schedules`, which are timed beside it.

    Raises ScheduleError for one that is not legal, CompileError for one that computes something else, SpecError for a
    Spec that no operands can be made for.
    """
    operands = make_operands(spec)
    pointers = [o.address for o in operands]
    ratios: list[float] = []
    chains: list[float] = []
    for start in range(0, len(schedules), BATCH):
        batch = {f"s{start + i}": s for i, s in enumerate(schedules[start : start + BATCH])}
        functions = [schedule_function(n, spec, s) for n, s in {"reference": reference, **batch}.items()]
        chain = chain_function("chain", spec.operands[0].dtype, target)
        code = compile_functions([*functions, chain], target)
        calls = {f.name: code.plain(f.name, pointers) for f in functions}
        _check(spec, calls, [o.array for o in operands])
        took = in_turns(calls | {"chain": code.repeating("chain", pointers)}, rounds, SECONDS)
        ratios += [took[n] / took["reference"] for n in batch]
        chains.append(took["chain"] / took["reference"])
        progress(len(ratios))
    cycles = CHAIN * FMA_LATENCY / float(np.median(chains))
    return [cycles, *(r * cycles for r in ratios)]


def _check(spec: Spec, calls: dict[str, Callable[[int], None]], operands: Sequence[np.ndarray]) -> None:
    """All functions compute the right thing, up to rounding."""
    out, start = operands[-1], operands[-1].copy()
    want = expected(spec, operands)
    for name, call in calls.items():
        out[...] = start
        call(1)
        if not is_close(spec, out, want):
            raise CompileError(f"schedule {name} computes something else than the Spec says")
