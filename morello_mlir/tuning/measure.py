"""Schedules timed on this machine, in a process of their own."""

from __future__ import annotations

import json
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import CompileError
from ..targets import Target, refusal
from . import progress
from .contest import Verdict, decide
from .kinds import Goal, schedule_text
from .worker import Job, is_checked

#: Without a word for so long, a worker hangs: compiling and running one schedule takes a fraction of it, and so does
#: timing all of them.
PATIENCE_SECONDS = 300.0
#: What a worker runs.
PROGRAM = "from morello_mlir.tuning.worker import main; main()"


@dataclass(frozen=True)
class Measured:
    """winner: the number of the schedule to take; 0, the first, where nobody is clearly faster.

    seconds: by number of the schedule; those missing were not timed, because they share the code of an earlier one or
    because of what `problems` says.
    """

    winner: int
    seconds: dict[int, float]
    ratio: float = 1.0
    margin: float = 0.0
    problems: tuple[str, ...] = ()


def measure_schedules(goal: Goal, schedules: Sequence[Any], target: Target, function: str = "") -> Measured:
    """Which of `schedules` of `goal` is the fastest here; the first is the one to beat. function: the text of the
    function that lifting made for the goal, if there is one: only that says where the places of windows lie.

    A schedule whose code crashes, hangs or computes something else is left out. Raises InputError where this machine
    cannot run code for `target`, SpecError or CompileError where nothing can be measured.
    """
    refused = refusal(target)
    if refused is not None:
        raise refused
    left = {i: schedule_text(goal, s) for i, s in enumerate(schedules)}
    problems: list[str] = []
    while True:
        answer, doing, died = _work(Job(str(goal), left, target, function))
        if answer is not None:
            break
        if doing is None or doing == 0:
            raise CompileError(f"not measured: the process that measures {died}")
        problems.append(f"schedule {doing + 1} {died}")
        del left[doing]
    than = "than the Spec says" if is_checked(goal) else "than the cheapest"
    problems += [f"schedule {number + 1} computes something else {than}" for number in answer["wrong"]]
    numbers: list[int] = answer["numbers"]
    if not answer["samples"]:
        return Measured(0, {}, problems=tuple(problems))
    verdict: Verdict = decide(np.array(answer["samples"]))
    return Measured(
        numbers[verdict.winner],
        dict(zip(numbers, verdict.seconds, strict=True)),
        verdict.ratios[verdict.winner],
        verdict.margin,
        tuple(problems),
    )


def _work(job: Job) -> tuple[dict[str, Any] | None, int | None, str]:
    """What a worker found. Where it ended without an answer: None, the schedule that it had in hand, and how it ended.

    Raises CompileError: what the worker reports.
    """
    process = _start()
    doing: int | None = None
    try:
        # Its standard input stays open: by that it knows that we are there.
        assert process.stdin is not None
        with suppress(BrokenPipeError):
            process.stdin.write(pickle.dumps(job))
            process.stdin.flush()
        for answer in _answers(process):
            if answer is None:
                return None, doing, f"did not end within {PATIENCE_SECONDS:.0f} s"
            if "error" in answer:
                raise CompileError(f"not measured: {answer['error']}")
            if "times" in answer:
                return answer["times"], doing, ""
            doing = answer["doing"]
            if doing is None:
                progress.stage("timing", len(job.schedules), len(job.schedules))
            else:
                progress.stage("compiling", list(job.schedules).index(doing), len(job.schedules))
        return None, doing, _how_it_ended(process.wait())
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            with suppress(OSError):
                stream.close()  # type: ignore[union-attr]


def _start() -> subprocess.Popen[bytes]:
    """A worker. Raises CompileError where no process can be started."""
    code = f"import sys; sys.path[:] = {sys.path!r}; {PROGRAM}"
    # Nothing beside the code under test may use the machine.
    quiet = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    try:
        return subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if os.environ.get("MORELLO_STRICT") else subprocess.DEVNULL,
            env={**os.environ, **quiet},
        )
    except OSError as error:
        raise CompileError(f"not measured: no process can be started: {error}") from error


def _answers(process: subprocess.Popen[bytes]) -> Iterator[dict[str, Any] | None]:
    """The worker's answers until it ends; None where it is silent for too long."""
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def read() -> None:
        assert process.stdout is not None
        with suppress(OSError, ValueError):
            for line in process.stdout:
                lines.put(line)
        lines.put(b"")

    threading.Thread(target=read, daemon=True).start()
    while True:
        try:
            line = lines.get(timeout=PATIENCE_SECONDS)
        except queue.Empty:
            yield None
            return
        if not line.endswith(b"\n"):
            return
        try:
            found = json.loads(line)
        except ValueError:
            # Something that this Python prints when it starts.
            continue
        if isinstance(found, dict):
            yield found


def _how_it_ended(status: int) -> str:
    with suppress(ValueError):
        if status < 0:
            return f"crashed ({signal.Signals(-status).name})"
    return f"ended with status {status}"
