"""The process that one library runs in. Commands are lines of JSON on standard input, answers go to standard output.

{"do": "prepare", "workload": KEY, "seconds": S}   -> {"ok": true, "note", "python", "repeats", "build_s"}
                                                          or {"ok": false, "why"}
{"do": "sample"}                                   -> {"seconds": per run}
{"do": "about"}                                    -> {"about"}
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from typing import Any

from .adapters import Built, Peer, peers
from .workloads import WORKLOADS, Data

#: A sample has no more runs; a library is warmed up for this part of its length first.
LONGEST_REPEATS, WARM_UP = 1 << 30, 0.15


class Worker:
    """One library, and the workload it was last given."""

    def __init__(self, peer: Peer):
        self.peer = peer
        self._built: Built | None = None
        self._repeats = 1

    def prepare(self, key: str, seconds: float) -> dict[str, Any]:
        """Builds a workload, checks its result, and finds how many runs last `seconds`."""
        self._built = None
        workload = next(w for w in WORKLOADS if w.key == key)
        data = Data(workload)
        started = time.perf_counter()
        built = self.peer.build(workload, data)
        if built is None:
            return {"ok": False, "why": "has nothing for it"}
        build_s = time.perf_counter() - started
        data.out.fill(0)
        built.run(1)
        got = built.result()
        wrong = None if got is None else data.error(got, built.rounded_to)
        if wrong:
            return {"ok": False, "why": f"wrong result: {wrong}"}
        self._built, self._repeats = built, _repeats(built, seconds)
        return {
            "ok": True, "note": built.note, "python": built.python, "repeats": self._repeats, "build_s": build_s,
        }  # fmt: skip

    def sample(self) -> dict[str, Any]:
        assert self._built is not None
        run = self._built.run
        # Others had the core and its caches; of a long run that is not noticed.
        if self._repeats > 1:
            run(max(1, round(self._repeats * WARM_UP)))
        start = time.perf_counter()
        run(self._repeats)
        return {"seconds": (time.perf_counter() - start) / self._repeats}

    def answer(self, command: dict[str, Any]) -> dict[str, Any]:
        what = command["do"]
        if what == "prepare":
            return self.prepare(command["workload"], command["seconds"])
        return self.sample() if what == "sample" else {"about": self.peer.about()}


def _repeats(built: Built, seconds: float) -> int:
    repeats = 1
    while True:
        start = time.perf_counter()
        built.run(repeats)
        took = time.perf_counter() - start
        if took >= seconds / 2 or repeats >= LONGEST_REPEATS:
            return max(1, round(repeats * seconds / max(took, 1e-9)))
        repeats *= min(64, max(2, int(seconds / max(took, 1e-9) / 2)))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("peer")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--isa", default="native")
    options = parser.parse_args()
    # Libraries print where they like; the answers go where only we write.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    peer = peers()[options.peer]
    peer.start(options.threads, options.isa)
    worker = Worker(peer)
    for line in sys.stdin:
        try:
            answer = worker.answer(json.loads(line))
        except Exception as error:  # whatever a library throws: the run goes on without it
            answer = {"ok": False, "why": f"{type(error).__name__}: {error}".splitlines()[0][:300]}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
