"""The libraries we are compared with, one class each. A new one is a file here and a line in `_MODULES`."""

from __future__ import annotations

import importlib

from .base import Built, Peer

_MODULES = (
    "morello",
    "roofline",
    "numpy_",
    "openblas",
    "mkl",
    "aocl",
    "blis",
    "libxsmm",
    "torch_",
    "onnxruntime_",
    "xnnpack",
    "jax_",
)


def peers() -> dict[str, Peer]:
    """Every peer we know of by name, installed or not; ours first."""
    found: dict[str, Peer] = {}
    for module in _MODULES:
        for peer in importlib.import_module(f"{__name__}.{module}").PEERS:
            found[peer.name] = peer
    return found


__all__ = ["Built", "Peer", "peers"]
