"""From the frameworks' models to compiled functions: `frontends.torch`, `frontends.jax`, `frontends.onnx`.

Each needs packages of its own (`pip install 'morello-mlir[torch]'`, `[jax]`, `[onnx]`), and takes what its framework
calls a model; what comes out takes and returns the framework's arrays. An importer gives linalg on tensors, and
`morello_mlir.compile` does the rest.
"""

from __future__ import annotations

import importlib
from typing import Any


def need(module: str, extra: str) -> Any:
    """A module of an optional package. extra: which of this package's extras brings it.

    Raises ImportError that says what to install.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(
            f"this needs '{package}', which cannot be imported ({error}): pip install 'morello-mlir[{extra}]'",
            name=package,
        ) from error


class EagerFallback(UserWarning):
    """A graph runs in the framework itself, as it would without this package. The message says why."""
