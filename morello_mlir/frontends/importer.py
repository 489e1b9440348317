"""Between the frameworks' MLIR and ours: modules come as text."""

from __future__ import annotations

import re
from typing import Any

from morello_mlir.errors import CompileError

from . import isolated

#: A graph of torch ops, as the importers make it, to linalg on tensors.
FROM_TORCH = (
    "builtin.module(func.func(torch-match-quantized-custom-ops),torchdynamo-export-to-torch-backend-pipeline)",
    "builtin.module(torch-backend-to-linalg-on-tensors-backend-pipeline{allow-non-finites=true})",
)
#: A graph of ONNX ops.
FROM_ONNX = (
    "builtin.module(func.func(convert-torch-onnx-to-torch))",
    "builtin.module(torch-lower-to-backend-contract)",
    *FROM_TORCH[1:],
)


def run(module: Any, pipelines: tuple[str, ...], what: str) -> str:
    """What pipelines make of a module of torch-mlir's, as text. what: what is imported, for the message.

    Raises CompileError with the diagnostics: an op that nothing there lowers, or one that they crash on.
    """
    outcome = isolated.lower(module, pipelines)
    if outcome.error is not None:
        raise CompileError(f"torch-mlir cannot lower {what}: {outcome.error}", outcome.said)
    return outcome.text


_PRIVATE = re.compile(r"\btm_tensor\.(?!yield)(\w+)")
#: In ours: one function without calls, and nothing in it that nobody needs.
_CLEAN = "builtin.module(inline,morello-tidy,symbol-dce)"


def clean(text: str) -> Any:
    """What an importer wrote as a module (an `mlir.ir.Module`) to compile. Raises CompileError: unknown ops."""
    from morello_mlir.passes.pipeline import run_pipeline
    from morello_mlir.runtime.context import LOCK, parse_text

    # Ops of torch-mlir's own, of which only its own backend has code.
    if (found := _PRIVATE.search(text)) is not None:
        raise CompileError(f"torch-mlir does not lower '{found[1]}' to linalg")
    module = parse_text(text)
    with LOCK, module.context:
        run_pipeline(module.operation, _CLEAN)
    return module
