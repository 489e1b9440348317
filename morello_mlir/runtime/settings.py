"""What `compile()` was given that decides what code comes out, resolved."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """The options of `passes.pipelines.stages`, by the same names; `morello_mlir.compile` says what they mean."""

    target: str = "host"
    memo: str = ""
    threads: int = 0
    optimize: bool = True
    top_k: int | None = None
    measure: bool = False
    pack_constants: bool = True
