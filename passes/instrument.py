"""What can watch a pipeline run: printing the IR after every pass, timing, noting which pass is running."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TextIO

from .pipeline_text import Element


class Instrument:
    """Hooks around every pass and nest of a run; the base does nothing."""

    def configure_native(self, manager: Any) -> None:
        """Called with every native `PassManager` before it runs."""

    def before(self, element: Element, op: Any) -> None:
        """`element` is about to run on (the children of) `op`."""

    def after(self, element: Element, op: Any, failed: bool) -> None:
        """`element` has run, or has failed."""


class PrintAfterAll(Instrument):
    """`--mlir-print-ir-after-all`: upstream prints for its passes, this for ours, in the same form.

    The context must not be multi-threaded (upstream's printing asserts that).
    """

    def __init__(self, stream: TextIO | None = None, *, generic: bool = False, debug_info: bool = False):
        self.stream = stream or sys.stderr
        self.generic = generic
        self.debug_info = debug_info

    def configure_native(self, manager: Any) -> None:
        manager.enable_ir_printing(
            print_after_all=True, print_generic_op_form=self.generic, enable_debug_info=self.debug_info
        )

    def after(self, element: Element, op: Any, failed: bool) -> None:
        from . import registry

        if failed or element.is_nest or not registry.known(element.name):
            return
        title = registry.lookup(element.name)
        class_name = getattr(title, "__name__", element.name)
        text = op.get_asm(print_generic_op_form=self.generic, enable_debug_info=self.debug_info)
        print(f"// -----// IR Dump After {class_name} ({element.name}) //----- //\n{text}\n", file=self.stream)
        self.stream.flush()


class Progress(Instrument):
    """Calls `note(name)` when a pass starts and `note("")` when it has ended: who is at fault if the process dies."""

    def __init__(self, note: Callable[[str], None]):
        self.note = note

    def before(self, element: Element, op: Any) -> None:
        if not element.is_nest:
            self.note(element.name)

    def after(self, element: Element, op: Any, failed: bool) -> None:
        if not element.is_nest:
            self.note("")


@dataclass
class Timer:
    """A node of the timing tree: seconds spent, in all runs of it."""

    name: str
    seconds: float = 0.0
    children: dict[str, Timer] = field(default_factory=dict)

    def child(self, name: str) -> Timer:
        return self.children.setdefault(name, Timer(name))


class Timing(Instrument):
    """`--mlir-timing`: wall time as a tree. `phase` adds what is not a pass (parsing, printing)."""

    def __init__(self) -> None:
        self.root = Timer("Total")
        self._started = time.perf_counter()
        self._stack: list[tuple[Timer, float]] = []

    def _enter(self, name: str) -> None:
        parent = self._stack[-1][0] if self._stack else self.root
        self._stack.append((parent.child(name), time.perf_counter()))

    def _leave(self) -> None:
        timer, started = self._stack.pop()
        timer.seconds += time.perf_counter() - started

    def before(self, element: Element, op: Any) -> None:
        self._enter(f"'{element.name}' Pipeline" if element.is_nest else element.name)

    def after(self, element: Element, op: Any, failed: bool) -> None:
        self._leave()

    def phase(self, name: str) -> _Phase:
        """A context manager that times a phase."""
        return _Phase(self, name)

    def report(self) -> str:
        """The report in the form of MLIR's own."""
        total = time.perf_counter() - self._started
        rest = total - sum(t.seconds for t in self.root.children.values())
        lines = [
            "===" + "-" * 73 + "===",
            " " * 25 + "... Execution time report ...",
            "===" + "-" * 73 + "===",
            f"  Total Execution Time: {total:.4f} seconds",
            "",
            "  ----Wall Time----  ----Name----",
        ]

        def row(seconds: float, name: str, depth: int) -> None:
            share = 100 * seconds / total if total else 0.0
            lines.append(f"  {seconds:8.4f} ({share:5.1f}%)  {'  ' * depth}{name}")

        def rows(timer: Timer, depth: int) -> None:
            for child in timer.children.values():
                row(child.seconds, child.name, depth)
                rows(child, depth + 1)

        rows(self.root, 0)
        row(rest, "Rest", 0)
        row(total, "Total", 0)
        return "\n".join(lines) + "\n"


class _Phase:
    def __init__(self, timing: Timing, name: str):
        self.timing = timing
        self.name = name

    def __enter__(self) -> None:
        self.timing._enter(self.name)

    def __exit__(self, *_: object) -> None:
        self.timing._leave()
