"""Intel's MKL (distribution mkl)."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from ..native import NativeCall, address_of, repeat
from ..workloads import Data, Workload
from .base import NO_TRANSPOSE, ROW_MAJOR, Built, CBlas, gemm, library_files

#: Everything but the matrix tiles (AMX).
_LIMITS = {"avx512": "AVX512_E3", "avx2": "AVX2"}
#: CblasFixOffset of cblas_gemm_s8u8s32.
_FIX_OFFSET = 173
#: CblasPacked, and the identifier of the right operand for cblas_sgemm_pack.
_PACKED, _B_MATRIX = 151, 162


class Mkl(CBlas):
    """cblas functions, from a native loop; batches through the strided batch; weights ahead packed by the library."""

    name = "MKL"
    distribution = "mkl"

    def available(self) -> bool:
        return bool(library_files("mkl", "libmkl_rt.so*"))

    def environment(self, threads: int, isa: str) -> Mapping[str, str]:
        layer = "SEQUENTIAL" if threads == 1 else "INTEL"
        limit = {"MKL_ENABLE_INSTRUCTIONS": _LIMITS[isa]} if isa in _LIMITS else {}
        return {
            "MKL_NUM_THREADS": str(threads), "MKL_DYNAMIC": "FALSE", "MKL_THREADING_LAYER": layer,
            "MKL_INTERFACE_LAYER": "LP64", **limit,
        }  # fmt: skip

    @cache  # noqa: B019 (one object a process)
    def load(self) -> ctypes.CDLL:
        for path in library_files("intel-openmp", "libiomp5.so"):
            ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
        return ctypes.CDLL(str(library_files("mkl", "libmkl_rt.so*")[-1]), mode=ctypes.RTLD_GLOBAL)

    def about(self) -> str:
        text = ctypes.create_string_buffer(256)
        self.load().mkl_get_version_string(text, 255)
        return text.value.decode().strip().removeprefix("Intel(R) oneAPI Math Kernel Library Version ")

    def build(self, workload: Workload, data: Data) -> Built | None:
        library = self.load()
        if workload.types == ("bf16", "bf16", "f32"):
            call = gemm(address_of(library.cblas_gemm_bf16bf16f32), workload, data.lhs, data.rhs, data.out)
            return Built(repeat([call]), lambda: data.out)
        if workload.types == ("u8", "i8", "i32"):
            return _integers(library, workload, data)
        if workload.types[2] == "f32" and workload.ahead:
            return _packed(library, workload, data)
        if workload.types == ("f32",) * 3 and workload.batch:
            return _batched(library, workload, data)
        return super().build(workload, data)


def _integers(library: Any, w: Workload, data: Data) -> Built:
    zero = np.zeros(1, np.int32)
    none = ("i8", "0")
    arguments = (
        ROW_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, _FIX_OFFSET, w.m, w.n, w.k, 1.0, data.lhs, w.k, none, data.rhs, w.n,
        none, 0.0, data.out, w.n, zero,
    )  # fmt: skip
    return Built(repeat([NativeCall(address_of(library.cblas_gemm_s8u8s32), arguments)]), lambda: data.out)


def _batched(library: Any, w: Workload, data: Data) -> Built:
    arguments = (
        ROW_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, w.m, w.n, w.k, 1.0, data.lhs, w.k, w.m * w.k, data.rhs, w.n, w.k * w.n,
        0.0, data.out, w.n, w.m * w.n, w.batch,
    )  # fmt: skip
    return Built(repeat([NativeCall(address_of(library.cblas_sgemm_batch_strided), arguments)]), lambda: data.out)


def _packed(library: Any, w: Workload, data: Data) -> Built:
    sizes = (w.m, w.n, w.k)
    wanted = library.cblas_sgemm_pack_get_size
    wanted.restype = ctypes.c_size_t
    packed = np.zeros(wanted(_B_MATRIX, *sizes), np.uint8)
    fill = NativeCall(
        address_of(library.cblas_sgemm_pack), (ROW_MAJOR, _B_MATRIX, NO_TRANSPOSE, *sizes, 1.0, data.rhs, w.n, packed)
    )
    repeat([fill])(1)
    call = NativeCall(
        address_of(library.cblas_sgemm_compute),
        (ROW_MAJOR, NO_TRANSPOSE, _PACKED, *sizes, data.lhs, w.k, packed, w.n, 0.0, data.out, w.n),
    )
    return Built(repeat([call]), lambda: data.out)


PEERS = (Mkl(),)
