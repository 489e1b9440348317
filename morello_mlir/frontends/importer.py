"""Between the frameworks' MLIR and ours: modules come and go as text."""

from __future__ import annotations

import re
from typing import Any

from morello_mlir.errors import CompileError

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


def run(module: Any, pipelines: tuple[str, ...], what: str) -> None:
    """Run pipelines on a module of torch-mlir's. what: what is imported, for the message.

    Raises CompileError with the diagnostics: an op that nothing there lowers.
    """
    from torch_mlir.passmanager import PassManager

    with module.context as context:
        # Some passes report without failing, which ends in an abort later.
        context.emit_error_diagnostics = True
        said: list[str] = []

        def keep(diagnostic: Any) -> bool:
            said.append(diagnostic.message)
            return True

        handler = context.attach_diagnostic_handler(keep)
        try:
            for pipeline in pipelines:
                PassManager.parse(pipeline).run(module.operation)
        except Exception as error:
            first = next(iter(said), str(error).strip())
            raise CompileError(f"torch-mlir cannot lower {what}: {first}", tuple(said)) from error
        finally:
            handler.detach()


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
