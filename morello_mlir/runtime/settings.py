"""What `compile()`, or a pipeline, was given that decides what code comes out, resolved."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


def _said(default: Any, text: str) -> Any:
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True)
class Settings:
    """The options of the pipeline `morello-default`; `morello_mlir.compile` says more of what they mean."""

    target: str = _said("host", "the machine to search for")
    memo: str = _said("", "the memo file, off, or empty for the default")
    threads: int = _said(0, "how many threads the code may use; 0 is one")
    optimize: bool = _said(True, "false leaves everything to upstream's passes")
    top_k: int | None = _said(None, "list the so many cheapest schedules (with measure: choose among them)")
    measure: bool = _said(False, "time the cheapest schedules on this machine, and take the fastest")
    pack_constants: bool = _said(True, "whether weights are packed once instead of in every call")
    nests: bool = _said(True, "whether elementwise ops, reductions and chains of them are lifted too")
