"""numpy: the BLAS that its wheel brings, called from Python."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from ..workloads import Data, Workload
from .base import Built, Peer, python_calls
from .openblas import coretype


class Numpy(Peer):
    """numpy.matmul into an array that is there already."""

    name = "numpy"
    module = "numpy"

    def environment(self, threads: int, isa: str) -> Mapping[str, str]:
        return {"OPENBLAS_NUM_THREADS": str(threads), **coretype(isa)}

    def about(self) -> str:
        import threadpoolctl

        blas = next((p for p in threadpoolctl.threadpool_info() if p["user_api"] == "blas"), {})
        return f"{super().about()}, {blas.get('internal_api')} {blas.get('version')} ({blas.get('architecture')})"

    def build(self, workload: Workload, data: Data) -> Built | None:
        import numpy as np

        if workload.types not in (("f32",) * 3, ("f64",) * 3) or workload.ahead:
            return None
        call = partial(np.matmul, data.lhs, data.rhs, out=data.out)
        return Built(python_calls(call), lambda: data.out, python=True)


PEERS = (Numpy(),)
