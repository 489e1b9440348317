"""Filling a memo for families of goals, in parallel processes or on a Dask cluster.

The work is cut into tasks whose tables overlap (`Family.tasks`). What a finished task found is written at once and as a
whole; what the file answers already is not done again.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Protocol

from ..errors import InputError
from ..search.catalog import Catalog
from ..search.tables import AXES, Tables
from ..targets import Target
from .coordinates import key_text, memo_key, parse_key
from .database import vacuum
from .families import Family, Root
from .memo import Layer
from .reach import Reach, SharedTables
from .record import Record, decode, encode
from .store import Store
from .table import reached_record, records_of, states_of

#: What one process takes at least, for the tables of one root and their policies.
PROCESS_BYTES = 700 << 20


@dataclass(frozen=True)
class Task:
    """Roots to be solved by one worker.

    tables: keep whole tables, of all sizes up to `largest` whatever the row strides, so that they serve strided arrays
    and goals off the scale too; not only what the optima of the goals reach.
    """

    target: Target
    roots: tuple[Root, ...]
    tables: bool
    shared_bytes: int
    largest: int = 0

    @property
    def goals(self) -> int:
        return sum(len(r.sizes) for r in self.roots)


class Pool(Protocol):
    """What runs tasks: the executors of concurrent.futures, and a Dask client."""

    def submit(self, fn: Callable[[Task], Any], task: Task, /) -> Any: ...


def tasks_of(families: Iterable[Family], target: Target, store: Store, tables: bool, shared_bytes: int) -> list[Task]:
    """The tasks that `store` does not answer yet, the largest first."""
    layer = Layer(store, "memo", target)
    out = []
    for family in families:
        for roots in family.tasks(target):
            todo = tuple(r for r in roots if not _is_answered(layer, r, tables))
            if todo:
                out.append(Task(target, todo, tables, shared_bytes, family.sizes()[-1]))
    return sorted(out, key=lambda t: -t.goals)


def _is_answered(layer: Layer, root: Root, tables: bool) -> bool:
    """A root is written last, after all that it leads to."""
    axis = root.key.limit_axis()
    top = layer.target.limits[axis] // layer.target.cache(axis).step if axis else 0
    for record in layer.records(root.key):
        points = [record.point(dict(zip("mkn", size, strict=True)), top) for size in root.sizes]
        if all(p is not None and record.boxes.find(p) >= 0 for p in points) and (record.complete or not tables):
            return True
    return False


# ---------------------------------------------------------------- in the worker


def work(task: Task) -> list[tuple[str, bytes]]:
    """Solves `task`; returns records as (key, bytes). Runs in a worker process, perhaps on another machine."""
    target = task.target
    shared = SharedTables(task.shared_bytes)
    if task.tables:
        return list(_whole_tables(task, target, shared))
    reach = Reach(target)
    for root in task.roots:
        reach.add(root, shared)
    records = (reached_record(key, states, target) for key, states in reach.tabled())
    return [(r.key, encode(r)) for r in records]


def _whole_tables(task: Task, target: Target, shared: SharedTables) -> Iterator[tuple[str, bytes]]:
    """Every table of every root, each once, those that others need first."""
    done: set[str] = set()
    catalog = Catalog(target)
    for root in task.roots:
        tables = Tables(dict.fromkeys(AXES, task.largest), target.limits, target, source=shared, catalog=catalog)
        tables.table(root.key)
        for key in list(tables.tables):
            name = key_text(memo_key(key, target))
            if "VRF" not in key.memories and name not in done:
                done.add(name)
                for record in records_of(tables, key):
                    yield record.key, encode(record)


# ---------------------------------------------------------------- in the parent


def keep(store: Store, target: Target, results: Iterable[tuple[str, bytes]]) -> int:
    """Writes the records of a task, all or none; what was reached is added to what had been. Returns how many."""
    layer = Layer(store, "memo", target)
    records = [decode(key, data) for key, data in results]
    joined = [r if r.complete else joined_with(r, layer.records(parse_key(r.key)), target) for r in records]
    store.put(layer.space, target.name, joined)
    return len(joined)


def joined_with(record: Record, known: Iterable[Record], target: Target) -> Record:
    """`record`, with what incomplete records of the same key know besides."""
    return reached_record(parse_key(record.key), states_of([*(r for r in known if not r.complete), record]), target)


def run(
    tasks: list[Task], pool: Pool, store: Store, target: Target, done: Callable[[Task, int], None] = lambda t, n: None
) -> None:
    """Runs `tasks` on `pool`, writing each as it is finished; `done(task, records)` is called after each."""
    waiting: dict[Future[Any], Task] = {pool.submit(work, task): task for task in tasks}
    for future in _as_completed(pool, list(waiting)):
        done(waiting[future], keep(store, target, future.result()))


def _as_completed(pool: Pool, futures: list[Any]) -> Iterator[Any]:
    if not isinstance(pool, ProcessPoolExecutor):
        from distributed import as_completed

        yield from as_completed(futures)
        return
    left = set(futures)
    while left:
        finished, left = wait(left, return_when=FIRST_COMPLETED)
        yield from finished


@contextmanager
def open_pool(jobs: int, dask: str | None = None) -> Iterator[Pool]:
    """`jobs` processes, or the Dask cluster with its scheduler at `dask`. Raises InputError where nothing answers."""
    if dask is None:
        # Spawned: a fork would copy the threads of the progress bar and of numba in whatever state they are.
        pool = ProcessPoolExecutor(jobs, get_context("spawn"), _be_polite, (os.getpid(),))
        try:
            yield pool
        except BaseException:
            _stop(pool)
            raise
        pool.shutdown()
        return
    try:
        from distributed import Client
    except ImportError:
        raise InputError("--dask needs the 'dask' extra: pip install morello-mlir[dask]") from None
    try:
        client = Client(dask, timeout=10)
    except (OSError, ValueError) as error:
        raise InputError(f"no Dask scheduler answers at '{dask}': {error}") from error
    with client:
        yield client


def _stop(pool: ProcessPoolExecutor) -> None:
    """Ends the workers now: what they have in hand would keep an interrupted tool waiting."""
    workers = list(getattr(pool, "_processes", None) or ())
    pool.shutdown(wait=False, cancel_futures=True)
    for pid in workers:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)


def _be_polite(parent: int) -> None:
    """Workers give way to whoever uses the machine, leave interrupts to the parent, and end when it does."""
    os.nice(10)
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def share_memory(cap: int, jobs: int) -> tuple[int, int]:
    """How many processes fit `cap` bytes, and what each may keep of shared tables."""
    count = max(1, min(jobs, cap // PROCESS_BYTES))
    return count, max(64 << 20, cap // count - PROCESS_BYTES)


def compact(path: Path) -> None:
    """Has a finished file stand by itself, without a write-ahead log, as small as it gets."""
    vacuum(path, alone=True)
