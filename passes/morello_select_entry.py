"""The pass `morello-select-entry`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import mlir.ir as ir

from .base import Pass, option
from .symbols import entry_function, symbol_name, symbols_used_by


@dataclass(frozen=True)
class SelectEntry(Pass):
    """Keep one function and what it reaches; drop the rest of the module.

    Afterwards the entry is the only public symbol. Drivers that print, declarations nobody calls, nested modules and
    ops of dialects nobody knows disappear unless the entry needs them.
    """

    name: ClassVar[str] = "morello-select-entry"
    summary: ClassVar[str] = "Keep one function and what it reaches, drop the rest of the module"
    entry: str = option("", help="the function to keep (default: the only public one with a body)")

    def run(self, op: Any) -> None:
        try:
            entry = entry_function(op, self.entry)
        except ValueError as error:
            self.fail(op, str(error))
        kept = reachable(op, symbol_name(entry) or "")
        for each in list(op.operation.regions[0].blocks[0]):
            name = symbol_name(each)
            if name not in kept:
                each.operation.erase()
            elif name == symbol_name(entry):
                if "sym_visibility" in each.operation.attributes:
                    del each.operation.attributes["sym_visibility"]
            elif not _is_external(each):
                each.operation.attributes["sym_visibility"] = ir.StringAttr.get("private")


def _is_external(op: Any) -> bool:
    """A global that is defined elsewhere: a private one would be lowered to one of our own."""
    return op.operation.name == "memref.global" and "initial_value" not in op.operation.attributes


def reachable(module: Any, entry: str) -> set[str | None]:
    """The names of the top-level symbols that `entry` refers to, directly or not, with itself."""
    table = {symbol_name(op): op for op in module.operation.regions[0].blocks[0]}
    kept: set[str | None] = set()
    pending = {entry}
    while pending:
        name = pending.pop()
        if name in table and name not in kept:
            kept.add(name)
            pending |= symbols_used_by(table[name])
    return kept
