"""morello-mlir: finds the provably cheapest implementation of linalg ops under a machine cost model, and runs it.

    import morello_mlir
    module = morello_mlir.compile("matmul.mlir")
    c = module.matmul(a, b)

Nothing heavy is imported until it is used: neither MLIR nor LLVM, nor numpy.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import frontends
    from .api import CompiledModule, compile

__all__ = ["CompiledModule", "__version__", "compile", "frontends"]

# In a checkout `dialect` and `passes` stand beside this folder, which Python sees first if it is started there.
# (Without pathlib: the command lines import this before anything else, and it takes ten times as long as all of it.)
if not os.path.isdir(os.path.join(os.path.dirname(__file__), "dialect")):  # noqa: PTH112, PTH118, PTH120
    __path__.append(os.path.dirname(os.path.dirname(__file__)))  # noqa: PTH120


def __getattr__(name: str) -> Any:
    if name in ("compile", "CompiledModule"):
        from . import api

        return getattr(api, name)
    if name == "__version__":
        from importlib.metadata import version

        return version("morello-mlir")
    if name == "frontends":
        from importlib import import_module

        return import_module(".frontends", __name__)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
