"""libxsmm: code generated for one small product. Systems package it as an archive, which is linked here first."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import platformdirs

from ..native import NativeCall, repeat
from ..workloads import Data, Workload
from .base import Built, Peer, system_library

#: It is for small products: beyond this many multiply-adds one kernel for all is not what its users do.
LARGEST = 256**3


class Libxsmm(Peer):
    """The kernel of libxsmm_smmdispatch, from a native loop."""

    name = "libxsmm"

    def available(self) -> bool:
        if system_library("libxsmm.so") is not None:
            return True
        return None not in (system_library("libxsmm.a"), system_library("libxsmmnoblas.a"), shutil.which("gcc"))

    def environment(self, threads: int, isa: str) -> Mapping[str, str]:
        return {"avx2": {"LIBXSMM_TARGET": "hsw"}}.get(isa, {})

    @cache  # noqa: B019 (one object a process)
    def load(self) -> ctypes.CDLL:
        shared = system_library("libxsmm.so") or _linked()
        library = ctypes.CDLL(str(shared))
        library.libxsmm_init()
        library.libxsmm_smmdispatch.restype = ctypes.c_void_p
        return library

    def about(self) -> str:
        library = self.load()
        library.libxsmm_get_target_arch.restype = ctypes.c_char_p
        return f"from the system ({library.libxsmm_get_target_arch().decode()})"

    def build(self, workload: Workload, data: Data) -> Built | None:
        w = workload
        if w.types != ("f32",) * 3 or w.ahead or w.m * w.k * w.n > LARGEST:
            return None
        # Column-major, as its world is: out^T = rhs^T @ lhs^T.
        leading = [ctypes.byref(ctypes.c_int(x)) for x in (w.n, w.k, w.n)]
        scales = [ctypes.byref(ctypes.c_float(x)) for x in (1.0, 0.0)]
        flags = [ctypes.byref(ctypes.c_int(0)), ctypes.byref(ctypes.c_int(0))]
        kernel = self.load().libxsmm_smmdispatch(w.n, w.m, w.k, *leading, *scales, *flags)
        if not kernel:
            return None
        items = zip(data.lhs, data.rhs, data.out, strict=True) if w.batch else [(data.lhs, data.rhs, data.out)]
        return Built(repeat([NativeCall(kernel, (b, a, c)) for a, b, c in items]), lambda: data.out)


def _linked() -> Path:
    """A shared library of the archives, made once a version of them."""
    archives = [p for p in (system_library("libxsmm.a"), system_library("libxsmmnoblas.a")) if p]
    stamp = "-".join(str(p.stat().st_mtime_ns) for p in archives)
    target = Path(platformdirs.user_cache_dir("morello-mlir")) / f"libxsmm-{stamp}.so"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        whole = ["-Wl,--whole-archive", str(archives[0]), "-Wl,--no-whole-archive", *map(str, archives[1:])]
        made = target.with_suffix(".part")
        command = ["gcc", "-shared", "-o", str(made), *whole, "-lpthread", "-lm", "-ldl", "-lrt"]
        subprocess.run(command, check=True, capture_output=True)
        made.replace(target)
    return target


PEERS = (Libxsmm(),)
