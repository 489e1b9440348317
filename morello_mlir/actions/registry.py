"""All kernels, by name."""

from __future__ import annotations

from dataclasses import dataclass

from .amx import TILE_KERNELS
from .broadcast import BroadcastFma
from .dots import DOT_KERNELS
from .kernel import KernelAction, Scalar
from .pairs import PAIR_KERNELS


@dataclass(frozen=True)
class _Registry:
    kernels: tuple[KernelAction, ...]

    def __getitem__(self, name: str) -> KernelAction | None:
        return next((k for k in self.kernels if k.name == name), None)


#: Kernels of every CPU target, in order of preference among equal costs.
KERNELS = _Registry((BroadcastFma(), *TILE_KERNELS, *PAIR_KERNELS, *DOT_KERNELS, Scalar()))
