"""AMD's BLIS, as the distribution aoclda bundles it."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from functools import cache

from .base import CBlas, library_files


class Aocl(CBlas):
    """cblas_sgemm and cblas_dgemm, from a native loop. It tells the kernel set by the CPU's features."""

    name = "AOCL"
    distribution = "aoclda"

    def available(self) -> bool:
        return bool(library_files("aoclda", "libblis-mt*.so*"))

    def environment(self, threads: int, isa: str) -> Mapping[str, str]:
        limit = {"avx512": "skx", "avx2": "zen3"}
        return {"BLIS_NUM_THREADS": str(threads), **({"BLIS_ARCH_TYPE": limit[isa]} if isa in limit else {})}

    @cache  # noqa: B019 (one object a process)
    def load(self) -> ctypes.CDLL:
        # Its own libraries are found only where they are there already.
        for needed in ("libomp-*.so", "libaoclutils-*.so"):
            for path in library_files("aoclda", needed):
                ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
        return ctypes.CDLL(str(library_files("aoclda", "libblis-mt*.so*")[-1]))

    def about(self) -> str:
        library = self.load()
        library.bli_info_get_version_str.restype = library.bli_arch_string.restype = ctypes.c_char_p
        arch = library.bli_arch_string(library.bli_arch_query_id()).decode()
        return f"{library.bli_info_get_version_str().decode()} ({arch})"


PEERS = (Aocl(),)
