"""JAX: XLA's CPU backend, called from Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..workloads import Data, Workload
from .base import Built, Peer

_RESULT = {"f32": "float32", "f64": "float64", "i32": "int32"}


class Jax(Peer):
    """A compiled dot_general; calls are dispatched and waited for at the end of a sample."""

    name = "JAX"
    module = "jax"

    def environment(self, threads: int, isa: str) -> Mapping[str, str]:
        flags = ["--xla_cpu_multi_thread_eigen=false"] if threads == 1 else []
        flags += [f"--xla_cpu_max_isa={isa.upper()}"] if isa != "native" else []
        return {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": " ".join(flags), "JAX_ENABLE_X64": "true"}

    def build(self, workload: Workload, data: Data) -> Built | None:
        import jax

        result = _RESULT[workload.types[2]]
        if workload.types[0] != workload.types[1] and workload.is_float:
            return None
        axis, batch = (2, ((0,), (0,))) if workload.batch else (1, ((), ()))
        dims = (((axis,), (axis - 1,)), batch)

        def product(a: Any, b: Any) -> Any:
            return jax.lax.dot_general(a, b, dims, preferred_element_type=result)

        lhs, rhs = jax.numpy.asarray(data.lhs), jax.numpy.asarray(data.rhs)
        if workload.ahead:
            call, arguments = jax.jit(lambda a: product(a, rhs)).lower(lhs).compile(), (lhs,)
        else:
            call, arguments = jax.jit(product).lower(lhs, rhs).compile(), (lhs, rhs)

        def run(times: int) -> None:
            for _ in range(times):
                last = call(*arguments)
            last.block_until_ready()

        return Built(run, lambda: np.asarray(call(*arguments)), python=True)


PEERS = (Jax(),)
