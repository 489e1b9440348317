"""OpenBLAS as SciPy builds it (distribution scipy-openblas32)."""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Mapping
from functools import cache

from .base import CBlas


def coretype(isa: str) -> dict[str, str]:
    """The variable that limits OpenBLAS to an instruction set."""
    return {"avx2": {"OPENBLAS_CORETYPE": "Haswell"}, "avx512": {"OPENBLAS_CORETYPE": "SkylakeX"}}.get(isa, {})


class OpenBlas(CBlas):
    """cblas_sgemm and cblas_dgemm, from a native loop."""

    name = "OpenBLAS"
    module = "scipy_openblas32"
    distribution = "scipy-openblas32"
    prefix = "scipy_"

    def environment(self, threads: int, isa: str) -> Mapping[str, str]:
        return {"OPENBLAS_NUM_THREADS": str(threads), **coretype(isa)}

    @cache  # noqa: B019 (one object a process)
    def load(self) -> ctypes.CDLL:
        package = importlib.import_module(self.module)
        return ctypes.CDLL(f"{package.get_lib_dir()}/lib{package.get_library()}.so")

    def about(self) -> str:
        core = self.load().scipy_openblas_get_corename
        core.restype = ctypes.c_char_p
        return f"{super().about()} ({core().decode()})"


PEERS = (OpenBlas(),)
