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

#: Threads of the goals that are shipped, in two parts: what few cores need is there first.
SHIPPED_THREADS = ("1,2", "4,8,16")
#: Functions that can be precomputed.
FUNCTIONS = ("matmul",)
ALL_LAYOUTS = ",".join(f"{lhs}_major:{rhs}_major" for lhs in ("row", "col") for rhs in ("row", "col"))
#: What is shipped: these, and weights that are packed ahead, in whichever layout they come.
SHIPPED_LAYOUTS = f"{ALL_LAYOUTS},row_major:const"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--functions", default="matmul", metavar="NAME,...", help="what to cover (default: matmul)")
    parser.add_argument("--dtypes", default="f32", metavar="NAME,...",
                        help="f32, f64, or inputs that are added up in a wider type: bf16, f16, i8, u8i8 "
                        "(default: f32)")  # fmt: skip
    parser.add_argument("--max-size", type=int, metavar="N",
                        help="sizes 1, 2, 3, 4, 6, 8, 12, ... up to N (default: 1024; 4096 with --ship)")  # fmt: skip
    parser.add_argument("--layouts", default="", metavar="LHS:RHS,...",
                        help="default: all four of row_major and col_major, with --ship row_major:const besides; const "
                        "is for an operand that is packed ahead, besides the layout in which it comes")  # fmt: skip
    parser.add_argument("--threads", default="", metavar="N,...",
                        help="how many threads the goals are for (default: 1 and what MORELLO_NUM_THREADS or the cores "
                        f"of this process say; {','.join(SHIPPED_THREADS)} with --ship)")  # fmt: skip
    parser.add_argument("--targets", default="", metavar="NAME,...",
                        help="default: host; with --ship all that are shipped, the most common first")  # fmt: skip
    parser.add_argument("--memo", metavar="FILE", help="the memo to fill (default: MORELLO_MEMO, else the user's file)")
    parser.add_argument("--tables", action="store_true",
                        help="keep whole tables, which answer every part of these goals under any limits, not only the "
                        "states that their optima reach")  # fmt: skip
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="processes (default: CPUs)")
    parser.add_argument("--memory-cap", default="4G", metavar="SIZE", help="for all processes together (default: 4G)")
    parser.add_argument("--dask", metavar="ADDRESS", help="run on the Dask cluster of this scheduler instead")
    parser.add_argument("--ship", action="store_true",
                        help="go on with the memos that the package ships, for --targets and --threads; what is for "
                        "targets as they were is dropped")  # fmt: skip


def run(options: argparse.Namespace) -> int:
    from ..memo.locate import SHIPPED, user_path

    if options.max_size is None:
        options.max_size = 4096 if options.ship else 1024
    names = (options.targets or (",".join(SHIPPED) if options.ship else "host")).split(",")
    targets = [get_target(name) for name in names]
    if options.ship:
        _ship(options, targets)
        return 0
    if not options.threads:
        options.threads = f"1,{thread_count()}"
    path = user_path(options.memo)
    if path is None:
        raise InputError("the memo is off: name a file with --memo")
    for target in targets:
        _fill(options, target, path, options.threads)
    return 0


def _ship(options: argparse.Namespace, targets: list[Target]) -> None:
    """Goes on with the shipped memos. After each target they are whole files, which can be shipped as they are."""
    from ..memo import manage, precompute
    from ..memo.locate import shipped_path, shipped_targets
    from ..memo.store import Store
    from ..memo.version import space_of

    options.tables = False
    for path in {shipped_path(t): None for t in targets}:
        path.parent.mkdir(exist_ok=True)
        store = Store(path)
        manage.keep_spaces(store, {space_of(t) for t in shipped_targets(path.stem).values()})
        store.close()
    for threads in (options.threads,) if options.threads else SHIPPED_THREADS:
        for target in targets:
            path = shipped_path(target)
            if target.fingerprint not in {t.fingerprint for t in shipped_targets(path.stem).values()}:
                raise InputError(f"{target.cpu or target.name} is not among the targets that are shipped")
            _fill(options, target, path, threads)
            store = Store(path)
            # What an interrupted run has left is packed by the next.
            loose = manage.is_loose(store, space_of(target))
            if loose:
                manage.pack(store, space_of(target))
            store.close()
            if loose:
                precompute.compact(path)
                print(f"{path}: {path.stat().st_size} bytes", flush=True)


def _fill(options: argparse.Namespace, target: Target, path: Path, threads: str) -> None:
    """Fills the memo at `path` for `target` and so many threads."""
    from ..memo import precompute
    from ..memo.store import Store

    started = time.monotonic()
    store = Store(path)
    jobs, shared = precompute.share_memory(parse_size(options.memory_cap), options.jobs)
    tasks = precompute.tasks_of(_families(options, threads), target, store, options.tables, shared)
    goals = sum(t.goals for t in tasks)
    name = target.cpu or target.name
    with precompute.open_pool(jobs, options.dask) as pool, _progress(name, goals) as advance:
        precompute.run(tasks, pool, store, target, lambda task, records: advance(task.goals))
    if not store.writable:
        raise InputError(f"{path} cannot be written")
    store.close()
    seconds = time.monotonic() - started
    print(f"{path}: {goals} goals for {name} in {seconds:.0f} s, {path.stat().st_size} bytes", flush=True)


def _families(options: argparse.Namespace, threads: str) -> list[Any]:
    from ..memo.families import CONST, LAYOUTS, Family
    from ..memo.precompute import of_dtypes

    for name in options.functions.split(","):
        if name not in FUNCTIONS:
            raise InputError(f"cannot precompute '{name}' (have {', '.join(FUNCTIONS)})")
    if options.max_size < 1 or options.jobs < 1:
        raise InputError("--max-size and --jobs must be positive")
    layouts = options.layouts or (SHIPPED_LAYOUTS if options.ship else ALL_LAYOUTS)
    pairs = [tuple(pair.split(":")) for pair in layouts.split(",")]
    for pair in pairs:
        if len(pair) != 2 or any(layout not in (*LAYOUTS, CONST) for layout in pair):
            raise InputError(f"--layouts: expected LHS:RHS of {', '.join(LAYOUTS)} or {CONST}, not '{':'.join(pair)}'")
    counts = tuple(sorted({thread_count(text) for text in threads.split(",")}))
    family = Family(max_size=options.max_size, layouts=tuple((a, b) for a, b in pairs), threads=counts)
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
