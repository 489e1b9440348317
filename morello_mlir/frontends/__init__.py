"""From the frameworks' models to compiled functions: `frontends.torch`, `frontends.jax`, `frontends.onnx`.

Each needs packages of its own (`pip install 'morello-mlir[torch]'`, `[jax]`, `[onnx]`), and takes what its framework
calls a model; what comes out takes and returns the framework's arrays. An importer gives linalg on tensors, and
`morello_mlir.compile` does the rest.
"""

from __future__ import annotations

import importlib
from typing import Any

#: `import morello_mlir` is enough for `morello_mlir.frontends.onnx`; the packages are imported with the frontend.
FRONTENDS = ("jax", "onnx", "torch")


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


def __getattr__(name: str) -> Any:
    """A frontend, imported when it is first used."""
    if name in FRONTENDS:
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *FRONTENDS})


class EagerFallback(UserWarning):
    """A graph runs in the framework itself, as it would without this package. The message says why."""
