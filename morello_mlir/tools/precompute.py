"""`morello precompute`: fills a memo for a family of goals, so that they need no search later."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..targets import Target, get_target, thread_count

#: Threads of the goals that are shipped.
SHIPPED_THREADS = "1,2,4,8"
#: Functions that can be precomputed.
FUNCTIONS = ("matmul",)
ALL_LAYOUTS = ",".join(f"{lhs}_major:{rhs}_major" for lhs in ("row", "col") for rhs in ("row", "col"))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--functions", default="matmul", metavar="NAME,...", help="what to cover (default: matmul)")
    parser.add_argument("--dtypes", default="f32", metavar="NAME,...", help="default: f32")
    parser.add_argument("--max-size", type=int, metavar="N",
                        help="sizes 1, 2, 3, 4, 6, 8, 12, ... up to N (default: 1024; 4096 with --ship)")  # fmt: skip
    parser.add_argument("--layouts", default=ALL_LAYOUTS, metavar="LHS:RHS,...",
                        help="default: all four of row_major and col_major; const for an operand that is packed ahead, "
                        "besides the layout in which it comes")  # fmt: skip
    parser.add_argument("--threads", default="", metavar="N,...",
                        help="how many threads the goals are for (default: 1 and what MORELLO_NUM_THREADS or the cores "
                        f"of this process say; {SHIPPED_THREADS} with --ship)")  # fmt: skip
    parser.add_argument("--targets", default="host", metavar="NAME,...", help="default: host")
    parser.add_argument("--memo", metavar="FILE", help="the memo to fill (default: MORELLO_MEMO, else the user's file)")
    parser.add_argument("--tables", action="store_true",
                        help="keep whole tables, which answer every part of these goals under any limits, not only the "
                        "states that their optima reach")  # fmt: skip
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="processes (default: CPUs)")
    parser.add_argument("--memory-cap", default="4G", metavar="SIZE", help="for all processes together (default: 4G)")
    parser.add_argument("--dask", metavar="ADDRESS", help="run on the Dask cluster of this scheduler instead")
    parser.add_argument("--ship", action="store_true",
                        help="rebuild the memos that the package ships, for --targets")  # fmt: skip


def run(options: argparse.Namespace) -> int:
    from ..memo.locate import shipped_path, user_path

    if options.max_size is None:
        options.max_size = 4096 if options.ship else 1024
    if options.ship:
        options.tables = False
    for target in map(get_target, options.targets.split(",")):
        path = shipped_path(target) if options.ship else user_path(options.memo)
        if path is None:
            raise InputError("the memo is off: name a file with --memo")
        _fill(options, target, path)
    return 0


def _fill(options: argparse.Namespace, target: Target, path: Path) -> None:
    """Fills the memo at `path` for `target`."""
    from ..memo import manage, precompute
    from ..memo.store import Store
    from ..memo.version import space_of

    started = time.monotonic()
    if options.ship:
        path.parent.mkdir(exist_ok=True)
        _forget_others(path, space_of(target))
    store = Store(path)
    jobs, shared = precompute.share_memory(parse_size(options.memory_cap), options.jobs)
    tasks = precompute.tasks_of(_families(options), target, store, options.tables, shared)
    goals = sum(t.goals for t in tasks)
    with precompute.open_pool(jobs, options.dask) as pool, _progress(target.name, goals) as advance:
        precompute.run(tasks, pool, store, target, lambda task, records: advance(task.goals))
    if not store.writable:
        raise InputError(f"{path} cannot be written")
    if options.ship:
        manage.pack(store)
    store.close()
    if options.ship:
        precompute.compact(path)
    print(f"{path}: {goals} goals for {target.name} in {time.monotonic() - started:.0f} s, {path.stat().st_size} bytes")


def _forget_others(path: Path, space: str) -> None:
    """A shipped memo holds answers for one target as it is now; what is there of it is continued."""
    from ..memo.store import Store

    store = Store(path, writable=False)
    stale = any(row.space != space for row in store.rows())
    store.close()
    if stale:
        path.unlink()


def _families(options: argparse.Namespace) -> list[Any]:
    from ..memo.families import CONST, LAYOUTS, Family
    from ..memo.precompute import of_dtypes

    for name in options.functions.split(","):
        if name not in FUNCTIONS:
            raise InputError(f"cannot precompute '{name}' (have {', '.join(FUNCTIONS)})")
    if options.max_size < 1 or options.jobs < 1:
        raise InputError("--max-size and --jobs must be positive")
    pairs = [tuple(pair.split(":")) for pair in options.layouts.split(",")]
    for pair in pairs:
        if len(pair) != 2 or any(layout not in (*LAYOUTS, CONST) for layout in pair):
            raise InputError(f"--layouts: expected LHS:RHS of {', '.join(LAYOUTS)} or {CONST}, not '{':'.join(pair)}'")
    if not options.threads:
        options.threads = SHIPPED_THREADS if options.ship else f"1,{thread_count()}"
    threads = tuple(sorted({thread_count(text) for text in options.threads.split(",")}))
    family = Family(max_size=options.max_size, layouts=tuple((a, b) for a, b in pairs), threads=threads)
    return of_dtypes(family, options.dtypes.split(","))


def parse_size(text: str) -> int:
    """Bytes as `800M`, `4G` or a plain number. Raises InputError."""
    units = {"K": 10, "M": 20, "G": 30}
    number, shift = (text[:-1], units[text[-1].upper()]) if text[-1:].upper() in units else (text, 0)
    try:
        return int(float(number) * (1 << shift))
    except ValueError:
        raise InputError(f"cannot read the size '{text}' (examples: 800M, 4G)") from None


@contextmanager
def _progress(name: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar with the time that is left on a terminal, else nothing; yields what advances it."""
    if not sys.stderr.isatty():
        yield lambda goals: None
        return
    from rich import progress as bars
    from rich.console import Console

    columns = (
        bars.TextColumn(name),
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        bars.TextColumn("goals"),
        bars.TimeElapsedColumn(),
        bars.TimeRemainingColumn(),
    )
    with bars.Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(name, total=total)
        yield lambda goals: progress.advance(task, goals)
