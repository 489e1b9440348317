"""Samples of several libraries in turns, each in a process of its own that is stopped while the others run."""

from __future__ import annotations

import contextlib
import json
import os
import random
import select
import signal
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .adapters import Peer
from .workloads import Workload

#: Seconds to build and check a workload, and for one sample, before a process is given up.
PREPARE_LIMIT, SAMPLE_LIMIT = 600, 120
#: Samples of one library for one workload together take no longer, though there are at least `FEWEST`.
BUDGET_S, FEWEST = 4.0, 3
#: Set by whoever works around bugs of old libraries on some machine: they would slow down current ones.
_UNSET = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "OMP_NUM_THREADS")


@dataclass
class Result:
    """What one library did with one workload. samples: seconds a run, in the order of the rounds; [] where there are
    none, and `why`."""

    peer: str
    samples: list[float] = field(default_factory=list)
    why: str = ""
    note: str = ""
    python: bool = False
    build_s: float = 0.0

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    @property
    def best(self) -> float:
        return min(self.samples)


class Process:
    """A worker process. It runs only while it is asked something: a library whose threads spin disturbs nobody."""

    def __init__(self, command: Sequence[str], threads: int, environment: Mapping[str, str], log: Path | None = None):
        """command: a module that answers lines of JSON, and its arguments."""
        self._command = command
        self._cpus = sorted(os.sched_getaffinity(0))[-threads:]
        self._env = {k: v for k, v in os.environ.items() if k not in _UNSET}
        self._env |= {"OMP_NUM_THREADS": str(threads), **environment}
        self._log = log
        self._child: subprocess.Popen[str] | None = None

    def ask(self, limit: float, **command: Any) -> dict[str, Any]:
        """The answer to a command, or why there is none. A process that died or hangs is replaced at the next one."""
        child = self._child or self._start()
        assert child.stdin and child.stdout
        try:
            os.kill(child.pid, signal.SIGCONT)
            child.stdin.write(json.dumps(command) + "\n")
            child.stdin.flush()
            ready, _, _ = select.select([child.stdout], [], [], limit)
            line = child.stdout.readline() if ready else ""
        except OSError:
            ready, line = [child], ""
        if line:
            os.kill(child.pid, signal.SIGSTOP)
            answer: dict[str, Any] = json.loads(line)
            return answer
        self.close()
        why = f"the process died ({child.returncode})" if ready else f"no answer in {limit} s"
        return {"ok": False, "why": why}

    def _start(self) -> subprocess.Popen[str]:
        with self._log.open("a") if self._log else contextlib.nullcontext(subprocess.DEVNULL) as log:
            self._child = subprocess.Popen(
                [sys.executable, "-m", *self._command],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, env=self._env,
                cwd=Path(__file__).parents[2],
            )  # fmt: skip
        os.sched_setaffinity(self._child.pid, self._cpus)
        return self._child

    def close(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            for pipe in (self._child.stdin, self._child.stdout):
                if pipe:
                    with contextlib.suppress(OSError):
                        pipe.close()
            self._child = None


class PeerProcess(Process):
    """The process of a library for contractions."""

    def __init__(self, peer: Peer, threads: int, isa: str, log: Path | None = None):
        command = ["benchmarks.peers.worker", peer.name, "--threads", str(threads), "--isa", isa]
        super().__init__(command, threads, peer.environment(threads, isa), log)
        self.peer = peer


def measure(
    workload: Workload,
    processes: Sequence[PeerProcess],
    rounds: int,
    seconds: float,
    window: Callable[[], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext,
) -> list[Result]:
    """One row: everything is built and checked first, then sampled in turns, in a new order each round.

    seconds: what a sample lasts. window: a context in which the samples of a round are taken.
    """
    results: dict[str, Result] = {}
    ready = []
    for process in processes:
        answer = process.ask(PREPARE_LIMIT, do="prepare", workload=workload.key, seconds=seconds)
        result = results[process.peer.name] = Result(process.peer.name)
        if answer["ok"]:
            ready.append(process)
            result.note, result.python, result.build_s = answer["note"], answer["python"], answer["build_s"]
        else:
            result.why = answer["why"]
    order = random.Random(workload.key)
    for number in range(rounds):
        order.shuffle(ready)
        with window():
            for process in list(ready):
                result = results[process.peer.name]
                if number >= FEWEST and sum(result.samples) and _spent(result, seconds) > BUDGET_S:
                    continue
                answer = process.ask(SAMPLE_LIMIT, do="sample")
                if "seconds" in answer:
                    result.samples.append(answer["seconds"])
                else:
                    result.samples, result.why = [], answer["why"]
                    ready.remove(process)
    return list(results.values())


def _spent(result: Result, seconds: float) -> float:
    return sum(max(s, seconds) for s in result.samples)


@contextlib.contextmanager
def running(peers: Sequence[Peer], threads: int, isa: str, log: Path | None = None) -> Iterator[list[PeerProcess]]:
    """The processes of several peers, ended on the way out."""
    processes = [PeerProcess(peer, threads, isa, log) for peer in peers]
    try:
        yield processes
    finally:
        for process in processes:
            process.close()
