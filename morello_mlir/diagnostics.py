"""Diagnostics as values: collected from MLIR and from our own passes alike, printed in MLIR's style.

The bindings deliver MLIR's errors in two ways (in the exception, or to handlers) and offer no way to emit a remark.
Here is the one place that knows: inside `capture(context)` everything that MLIR or a pass of ours says arrives, in
order, in one list of `Diagnostic`. Outside of it, `emit` prints to stderr.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

ERROR = "error"
WARNING = "warning"
REMARK = "remark"
NOTE = "note"


@dataclass(frozen=True)
class Place:
    """A position in a source file; `file` is empty where MLIR knows none."""

    file: str = ""
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.file else "<unknown>:0"


@dataclass(frozen=True)
class Diagnostic:
    """One message: `severity` is `error`, `warning`, `remark` or `note`; `notes` are attached to it."""

    severity: str
    message: str
    place: Place = Place()
    notes: tuple[Diagnostic, ...] = field(default=())

    def __str__(self) -> str:
        lines = [f"{self.place}: {self.severity}: {self.message}"]
        lines += [str(note) for note in self.notes]
        return "\n".join(lines)


def place_of(location: Any) -> Place:
    """The source position that best stands for an `mlir.ir.Location`: the first file position found in it."""
    if location.is_a_file():
        return Place(location.filename, location.start_line, location.start_col)
    inner: list[Any] = []
    if location.is_a_name():
        inner = [location.child_loc]
    elif location.is_a_callsite():
        inner = [location.callee, location.caller]
    elif location.is_a_fused():
        inner = list(location.locations)
    for candidate in inner:
        place = place_of(candidate)
        if place.file:
            return place
    return Place()


class Sink:
    """Where diagnostics are collected. `errors` counts the errors among them."""

    def __init__(self) -> None:
        self.diagnostics: list[Diagnostic] = []
        self.errors = 0

    def add(self, diagnostic: Diagnostic) -> None:
        self.diagnostics.append(diagnostic)
        self.errors += diagnostic.severity == ERROR

    def since(self, mark: int) -> tuple[Diagnostic, ...]:
        """Those added after the list was `mark` long."""
        return tuple(self.diagnostics[mark:])


class _Sinks(threading.local):
    def __init__(self) -> None:
        self.stack: list[Sink] = []


_sinks = _Sinks()


def collecting() -> bool:
    """Whether a `capture` is active in this thread."""
    return bool(_sinks.stack)


def add(diagnostic: Diagnostic) -> None:
    """Hand a diagnostic to the innermost `capture` of this thread, or print it to stderr where there is none."""
    if _sinks.stack:
        _sinks.stack[-1].add(diagnostic)
    else:
        print(diagnostic, file=sys.stderr)


def emit(severity: str, message: str, location: Any = None, notes: tuple[Diagnostic, ...] = ()) -> Diagnostic:
    """Report something at an `mlir.ir.Location`: to the innermost `capture` of this thread, else to stderr."""
    place = place_of(location) if location is not None else Place()
    diagnostic = Diagnostic(severity, message, place, notes)
    add(diagnostic)
    return diagnostic


def from_mlir(native: Any) -> Diagnostic:
    """A `Diagnostic` from MLIR's own `Diagnostic` or `DiagnosticInfo`."""
    severity = native.severity.name.lower()
    return Diagnostic(severity, native.message, place_of(native.location), tuple(from_mlir(n) for n in native.notes))


@contextmanager
def capture(context: Any) -> Iterator[Sink]:
    """Collect all that MLIR (in `context`) and our passes (in this thread) report within the `with` block.

    MLIR's exceptions are bare inside: their diagnostics are in the sink instead. A nested capture takes precedence.
    """
    sink = Sink()

    def handler(native: Any) -> bool:
        # MLIR may call from a worker thread, holding the interpreter lock; it orders errors itself.
        sink.add(from_mlir(native))
        return True

    before = context.emit_error_diagnostics
    handle = context.attach_diagnostic_handler(handler)
    context.emit_error_diagnostics = True
    _sinks.stack.append(sink)
    try:
        yield sink
    finally:
        _sinks.stack.remove(sink)
        context.emit_error_diagnostics = before
        handle.detach()
