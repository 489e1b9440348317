"""`morello precompute`: fills a memo for a family of goals, so that they need no search later."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..memo.locate import PACKAGED, SHIPPED
from ..targets import Target, called, get_target, thread_count
from ._progress import now_and_then

#: Functions that can be precomputed.
FUNCTIONS = ("matmul",)
ALL_LAYOUTS = ",".join(f"{lhs}_major:{rhs}_major" for lhs in ("row", "col") for rhs in ("row", "col"))


@dataclass(frozen=True)
class Part:
    """Some of what is shipped: contractions of some element types up to a size, in some layouts, for some threads.

    targets: for which; all where none are named.
    """

    dtypes: tuple[str, ...]
    max_size: int = 1024
    #: As networks have theirs; weights may be packed ahead.
    layouts: str = "row_major:row_major,row_major:col_major,row_major:const"
    threads: str = "1,2"
    targets: tuple[str, ...] = ()

    def is_for(self, target: Target) -> bool:
        return not self.targets or target.fingerprint in {get_target(n).fingerprint for n in self.targets}


_F32 = Part(("f32",), 4096, f"{ALL_LAYOUTS},row_major:const", "1,2,4,8")
#: What is shipped, in order: what most machines and models need is there first. Other element types are for as many
#: targets as fit a file.
SHIPPED_PARTS = (
    replace(_F32, targets=PACKAGED),
    Part(("bf16", "u8i8", "i8", "bf16:bf16:bf16"), targets=PACKAGED),
    Part(("f16", "f32:bf16:f32", "f64"), 512, targets=("znver5", "avx2")),
    replace(_F32, threads="1,2", targets=SHIPPED[len(PACKAGED) :]),
)
#: Of a shipped file.
LARGEST_FILE = 8 << 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--functions", default="matmul", metavar="NAME,...", help="what to cover (default: matmul)")
    parser.add_argument("--dtypes", default="", metavar="NAME,...",
                        help="f32, f64, inputs that are added up in a wider type: bf16, f16, i8, u8i8, or as "
                        "LHS:RHS:OUT (default: f32; with --ship all that are shipped)")  # fmt: skip
    parser.add_argument("--max-size", type=int, metavar="N",
                        help="sizes 1, 2, 3, 4, 6, 8, 12, ... up to N (default: 1024; with --ship 4096 for "
                        "f32)")  # fmt: skip
    parser.add_argument("--layouts", default="", metavar="LHS:RHS,...",
                        help="default: all four of row_major and col_major, with --ship row_major:const besides; const "
                        "is for an operand that is packed ahead, besides the layout in which it comes")  # fmt: skip
    parser.add_argument("--threads", default="", metavar="N,...",
                        help="how many threads the goals are for (default: 1 and what MORELLO_NUM_THREADS or the cores "
                        "of this process say; with --ship 1,2, for some also 4,8)")  # fmt: skip
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
    from ..memo.locate import user_path

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
    part = Part(tuple((options.dtypes or "f32").split(",")), 1024, ALL_LAYOUTS, options.threads)
    families = _families(options, part)
    for target in targets:
        _fill(options, target, path, families)
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
        manage.keep_only(store, shipped_targets(path.stem).values())
        store.close()
    for part in _parts(options):
        families = _families(options, part)
        for target in filter(part.is_for, targets):
            path = shipped_path(target)
            if target.fingerprint not in {t.fingerprint for t in shipped_targets(path.stem).values()}:
                raise InputError(f"{target.cpu or target.name} is not among the targets that are shipped")
            before = path.read_bytes()
            _fill(options, target, path, families)
            store = Store(path)
            # What an interrupted run has left is packed by the next.
            loose = manage.is_loose(store, space_of(target))
            if loose:
                manage.pack(store, space_of(target))
            store.close()
            if loose:
                precompute.compact(path)
                _print_size(path, before)


def _print_size(path: Path, before: bytes) -> None:
    """Says how large a shipped file is; one that is too large becomes what it was."""
    size = path.stat().st_size
    if size > LARGEST_FILE:
        path.write_bytes(before)
        print(f"{path}: with this it would have {size} bytes, {LARGEST_FILE} are the most: left out", flush=True)
    else:
        print(f"{path}: {size} bytes", flush=True)


def _parts(options: argparse.Namespace) -> list[Part]:
    """What the options ask for of SHIPPED_PARTS, and what else."""
    parts = list(SHIPPED_PARTS)
    if options.threads:
        parts = [replace(part, threads=options.threads) for part in parts]
    if options.dtypes:
        wanted = options.dtypes.split(",")
        known = {dtype for p in parts for dtype in p.dtypes}
        # What is asked for by name is for every target that is.
        parts = [replace(p, dtypes=tuple(d for d in p.dtypes if d in wanted), targets=()) for p in parts[:-1]]
        parts += [Part((dtype,), threads=options.threads or Part.threads) for dtype in wanted if dtype not in known]
    return [p for p in parts if p.dtypes]


def _fill(options: argparse.Namespace, target: Target, path: Path, families: list[Any]) -> None:
    """Fills the memo at `path` for `target`."""
    from ..memo import precompute
    from ..memo.examine import examine
    from ..memo.store import Store

    started = time.monotonic()
    store = Store(path)
    examine(store)
    jobs, shared = precompute.share_memory(parse_size(options.memory_cap), options.jobs)
    tasks = precompute.tasks_of(families, target, store, options.tables, shared)
    goals = sum(t.goals for t in tasks)
    name = called(target)
    with precompute.open_pool(jobs, options.dask) as pool, _progress(name, goals) as advance:
        precompute.run(tasks, pool, store, target, lambda task, records: advance(task.goals))
    if not store.writable:
        raise InputError(f"{path} cannot be written")
    store.close()
    seconds = time.monotonic() - started
    print(f"{path}: {goals} goals for {name} in {seconds:.0f} s, {path.stat().st_size} bytes", flush=True)


def _families(options: argparse.Namespace, part: Part) -> list[Any]:
    """The goals of `part`; where the options say so, of other sizes and layouts."""
    from ..memo.families import Family, element_types
    from ..memo.states import LARGEST
    from ..spec.spec import MAX_STEPS

    for name in options.functions.split(","):
        if name not in FUNCTIONS:
            raise InputError(f"cannot precompute '{name}' (have {', '.join(FUNCTIONS)})")
    largest = part.max_size if options.max_size is None else options.max_size
    if largest < 1 or options.jobs < 1:
        raise InputError("--max-size and --jobs must be positive")
    # The largest goal is a cube.
    most = min(LARGEST, int(MAX_STEPS ** (1 / 3)))
    if largest > most:
        raise InputError(f"--max-size is {most} at most")
    counts = tuple(sorted({thread_count(text) for text in part.threads.split(",")}))
    for dtype in part.dtypes:
        element_types(dtype)
    return [Family(dtype, largest, _pairs(options.layouts or part.layouts), counts) for dtype in part.dtypes]


def _pairs(layouts: str) -> tuple[tuple[str, str], ...]:
    """Layouts of lhs and rhs, as `--layouts` has them."""
    from ..memo.families import CONST, LAYOUTS

    out = []
    for pair in layouts.split(","):
        lhs, colon, rhs = pair.partition(":")
        if not colon or any(layout not in (*LAYOUTS, CONST) for layout in (lhs, rhs)):
            raise InputError(f"--layouts: expected LHS:RHS of {', '.join(LAYOUTS)} or {CONST}, not '{pair}'")
        out.append((lhs, rhs))
    return tuple(out)


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
    """A bar with the time that is left on a terminal, else a line now and then; yields what advances it."""
    if not total:
        yield lambda goals: None
        return
    if not sys.stderr.isatty():
        done = 0

        def advance(goals: int) -> None:
            nonlocal done
            done += goals

        with now_and_then(lambda: f"{name}: {done} of {total} goals"):
            yield advance
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
