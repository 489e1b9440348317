"""BLIS as the system packages it."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from functools import cache

from .base import CBlas, system_library

_NAMES = ("blis-openmp/libblis.so.4", "libblis.so.4", "libblis.so")


class Blis(CBlas):
    """cblas_sgemm and cblas_dgemm, from a native loop."""

    name = "BLIS"

    def available(self) -> bool:
        return system_library(*_NAMES) is not None

    def environment(self, threads: int, isa: str) -> Mapping[str, str]:
        # It tells the kernel set by the CPU's name, which virtual machines hide.
        from morello_mlir.targets import get_target

        wide = isa == "avx512" or (isa == "native" and get_target("host").name.startswith("avx512"))
        return {"BLIS_NUM_THREADS": str(threads), "BLIS_ARCH_TYPE": "skx" if wide else "haswell"}

    @cache  # noqa: B019 (one object a process)
    def load(self) -> ctypes.CDLL:
        return ctypes.CDLL(str(system_library(*_NAMES)))

    def about(self) -> str:
        library = self.load()
        library.bli_info_get_version_str.restype = library.bli_arch_string.restype = ctypes.c_char_p
        arch = library.bli_arch_string(library.bli_arch_query_id()).decode()
        return f"{library.bli_info_get_version_str().decode()} ({arch})"


PEERS = (Blis(),)
