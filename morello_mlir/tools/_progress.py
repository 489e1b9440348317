"""What commands that measure say while they do: a bar on a terminal, else a line for every goal; on standard error."""

from __future__ import annotations

import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from ..tuning import progress

#: Characters of a goal that fit beside a bar.
WIDTH = 60
#: Seconds between two lines about something long, where no terminal shows a bar.
PACE = 10.0


class Lines:
    """A line for every goal."""

    def __init__(self, stream: TextIO):
        self.stream = stream

    def begin(self, goal: str) -> None:
        print(f"measuring {goal}", file=self.stream, flush=True)

    def stage(self, what: str, at: int, of: int) -> None:
        """Nothing: lines that are written stay."""

    def end(self) -> None:
        """Nothing: what was found is reported by whoever asked for it."""


class Bars:
    """A bar that shows the goal at hand, how many of its schedules have been compiled, and the time."""

    def __init__(self, bars: Any):
        self.bars = bars
        self.task: Any = None

    def begin(self, goal: str) -> None:
        short = textwrap.shorten(goal, WIDTH, placeholder=" ...")
        self.task = self.bars.add_task(short, total=None, what="finding schedules")

    def stage(self, what: str, at: int, of: int) -> None:
        self.bars.update(self.task, what=what, completed=at, total=of)

    def end(self) -> None:
        self.bars.remove_task(self.task)


@contextmanager
def bars(*columns: Any) -> Iterator[Any]:
    """Bars of rich on standard error, gone when they end; columns: beside a description, a bar and the time."""
    from rich import progress as rich_bars
    from rich.console import Console

    shown = (
        rich_bars.TextColumn("{task.description}", markup=False),
        rich_bars.BarColumn(bar_width=20),
        *columns,
        rich_bars.TimeElapsedColumn(),
    )
    with rich_bars.Progress(*shown, console=Console(stderr=True), transient=True) as found:
        yield found


@contextmanager
def measuring(asked: bool = True) -> Iterator[None]:
    """Says what is measured within, where it is `asked` for."""
    if not asked:
        yield
    elif not sys.stderr.isatty():
        with progress.listening(Lines(sys.stderr)):
            yield
    else:
        from rich.progress import MofNCompleteColumn, TextColumn

        with bars(MofNCompleteColumn(), TextColumn("{task.fields[what]}")) as found, progress.listening(Bars(found)):
            yield


@contextmanager
def counting(what: str, total: int) -> Iterator[Any]:
    """`say(name)`: item `name` of `total` is begun: a bar on a terminal, else a line each."""
    if not sys.stderr.isatty():
        yield lambda name: print(f"{what} {name}", file=sys.stderr, flush=True)
        return
    from rich.progress import MofNCompleteColumn

    with bars(MofNCompleteColumn()) as found:
        task = found.add_task(what, total=total)
        begun = 0

        def say(name: str) -> None:
            nonlocal begun
            found.update(task, description=f"{what} {name}", completed=begun)
            begun += 1

        yield say


@contextmanager
def now_and_then(line: Callable[[], str]) -> Iterator[None]:
    """Prints what `line` says, and for how many seconds it has been going on, at the beginning and every `PACE` seconds
    until the end."""
    begun, ended = time.monotonic(), threading.Event()

    def say() -> None:
        print(f"{line()}, {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)

    def go_on() -> None:
        while not ended.wait(PACE):
            say()

    say()
    thread = threading.Thread(target=go_on, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
