"""The one MLIR context of the process, and reading modules into it."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from morello_mlir import diagnostics
from morello_mlir.errors import CompileError, InputError
from morello_mlir.locks import IMPORTING, in_mlir, lock, once

#: MLIR objects of one context are not safe to change from two threads: whoever builds holds this.
LOCK = lock()

_BYTECODE = b"ML\xefR"
#: What MLIR's bindings import when they first meet an op of these dialects. Then would be a bad moment where a process
#: forks: a child waits for ever for a module that another thread was importing.
_DIALECTS = (
    *("affine", "arith", "bufferization", "cf", "complex", "func", "index", "linalg", "llvm", "math", "memref"),
    *("ml_program", "scf", "tensor", "tosa", "ub", "vector"),
)


def is_onnx(path: str | Path) -> bool:
    """Whether a file is called like an ONNX model."""
    return str(path).endswith(".onnx")


@once
def shared_context() -> Any:
    """The process's `mlir.ir.Context`: making one costs milliseconds, and attributes of ops nobody knows are welcome.

    Single-threaded: compile times gain nothing from MLIR's thread pool, and a forked child would lack its threads.
    """
    import mlir.ir as ir

    from morello_mlir.dialect import load

    for name in _DIALECTS:
        importlib.import_module(f"mlir.dialects.{name}")
    context = ir.Context()
    context.enable_multithreading(False)
    # Foreign ops in functions that the entry does not reach must not matter; those it does reach are reported later.
    context.allow_unregistered_dialects = True
    # Before anything is parsed: a `morello.spec` met first as an unknown op could not be registered any more.
    load(context)
    return context


def parse_file(path: str | Path) -> Any:
    """Parse and verify the module in a file, MLIR text or bytecode.

    Returns an `mlir.ir.Module` in the shared context. Raises InputError (no such file, not text), CompileError with
    MLIR's diagnostics.
    """
    import mlir.ir as ir

    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot read the module: {error.strerror or error}") from error
    if is_onnx(path):
        raise InputError(f"{path}: an ONNX model: morello_mlir.frontends.onnx.compile takes it")
    if not data.startswith(_BYTECODE):
        try:
            data.decode("utf-8")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            column = error.start - data.rfind(b"\n", 0, error.start)
            raise InputError(f"{path}:{line}:{column}: error: the file is not UTF-8 text") from error
    name = os.fsencode(path).decode("utf-8", errors="backslashreplace")
    # MLIR's bindings take names that are text only.
    return _parsed(lambda: ir.Module.parseFile(name) if name == str(path) else ir.Module.parse(data), name)


def parse_text(source: str | bytes) -> Any:
    """Parse and verify a module given as MLIR text or bytecode.

    Returns an `mlir.ir.Module` in the shared context. Raises CompileError with MLIR's diagnostics, whose file is `-`.
    """
    import mlir.ir as ir

    return _parsed(lambda: ir.Module.parse(source), "-")


def _parsed(parse: Callable[[], Any], name: str) -> Any:
    with IMPORTING:
        import mlir.ir as ir

    in_mlir.here()
    # The lock first: two threads that come first must not make a context each.
    with LOCK, IMPORTING, shared_context() as context, diagnostics.capture(context) as sink:
        try:
            return parse()
        except (ir.MLIRError, ValueError) as error:
            lines = tuple(str(d) for d in sink.diagnostics if d.severity == diagnostics.ERROR)
            if not lines:
                lines = (f"{name}: error: {str(error).strip() or 'the module cannot be parsed'}",)
            raise CompileError("\n".join(lines), lines) from error
