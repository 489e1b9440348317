"""Modules from files."""

from __future__ import annotations

from typing import Any

from . import _cli


def load(path: str) -> Any:
    """The module (an `mlir.ir.Module`) in a file, or on stdin for `-`. Raises InputError, CompileError."""
    from ..runtime.context import parse_file, parse_text

    return parse_text(_cli.read_bytes("-")) if path == "-" else parse_file(path)
