"""PyTorch, called from Python: MKL for floats, oneDNN for bf16 and bytes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from ..workloads import Data, Workload
from .base import Built, Peer, python_calls

#: Everything but the matrix tiles (AMX).
_ONEDNN = {"avx512": "AVX512_CORE_FP16", "avx2": "AVX2"}
_MKL = {"avx512": "AVX512_E3", "avx2": "AVX2"}
_FLOATS = (("f32",) * 3, ("f64",) * 3)


class Torch(Peer):
    """torch.mm, torch.bmm, torch._int_mm; a linear layer with packed weights where they are known ahead."""

    name = "torch"
    module = "torch"

    def environment(self, threads: int, isa: str) -> Mapping[str, str]:
        limits = {}
        if isa in _ONEDNN:
            limits = {
                "ONEDNN_MAX_CPU_ISA": _ONEDNN[isa], "MKL_ENABLE_INSTRUCTIONS": _MKL[isa], "ATEN_CPU_CAPABILITY": isa,
            }  # fmt: skip
        return {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads), **limits}

    def start(self, threads: int, isa: str) -> None:
        import torch

        torch.set_num_threads(threads)
        torch.set_num_interop_threads(1)
        torch.set_grad_enabled(False)

    def about(self) -> str:
        import torch

        return f"{torch.__version__} ({torch.backends.cpu.get_cpu_capability()})"

    def build(self, workload: Workload, data: Data) -> Built | None:
        import torch

        if workload.ahead:
            return _ahead(torch, data)
        lhs, rhs = _tensor(torch, data.lhs), _tensor(torch, data.rhs)
        if workload.types in _FLOATS:
            out = torch.from_numpy(data.out)
            call = partial(torch.bmm if workload.batch else torch.mm, lhs, rhs, out=out)
            return Built(python_calls(call), lambda: data.out, python=True)
        if workload.types == ("bf16", "bf16", "f32"):
            call = partial(torch.mm, lhs, rhs)
            note = "result in bf16: it has no other"
            return Built(python_calls(call), lambda: call().float().numpy(), rounded_to="bf16", python=True, note=note)
        if workload.types == ("u8", "i8", "i32") and workload.seven_bit:
            signed = lhs.to(torch.int8)
            call = partial(torch._int_mm, signed, rhs)
            return Built(python_calls(call), lambda: call().numpy(), python=True, note="i8 x i8")
        return None


def _tensor(torch: Any, array: Any) -> Any:
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _ahead(torch: Any, data: Data) -> Built:
    weight = torch.from_numpy(np.ascontiguousarray(data.rhs.T))
    packed = torch.ops.mkldnn._reorder_linear_weight(weight, data.workload.m)
    lhs = torch.from_numpy(data.lhs)
    call = partial(torch.ops.mkldnn._linear_pointwise, lhs, packed, None, "none", [], "")
    return Built(python_calls(call), lambda: call().numpy(), python=True)


PEERS = (Torch(),)
