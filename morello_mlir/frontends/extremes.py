"""Where the largest and the smallest elements are, as torch defines it: a NaN is both, and the first one counts.

torch-mlir compares elements with `>`, which a NaN never is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

_aten = torch.ops.aten


def table() -> dict[Any, Callable[..., Any]]:
    """What each op is made of; `NotImplemented` where torch-mlir's form is right."""
    return {
        _aten.argmax.default: lambda x, dim=None, keepdim=False: _index(torch.amax, x, dim, keepdim),
        _aten.argmin.default: lambda x, dim=None, keepdim=False: _index(torch.amin, x, dim, keepdim),
        _aten.max.dim: lambda x, dim, keepdim=False: _with_index(torch.amax, x, dim, keepdim),
        _aten.min.dim: lambda x, dim, keepdim=False: _with_index(torch.amin, x, dim, keepdim),
    }


def _index(extreme: Callable[..., Tensor], x: Tensor, dim: int | None, keepdim: bool) -> Tensor:
    if dim is None:
        found = _index(extreme, x.reshape(-1), 0, False) if x.dim() else NotImplemented
        return found.reshape([1] * x.dim()) if keepdim and found is not NotImplemented else found
    found = _with_index(extreme, x, dim, keepdim)
    return found if found is NotImplemented else found[1]


def _with_index(extreme: Callable[..., Tensor], x: Tensor, dim: int, keepdim: bool) -> Any:
    """The extreme elements along `dim` and where the first of them are, int64; `x` of floating point."""
    if not x.is_floating_point() or not x.dim() or not x.numel():
        return NotImplemented
    value = extreme(x, dim, True)
    # Where the extreme is a NaN, nothing equals it; and only then are there NaNs.
    here = (x == value) | (x != x)
    size = x.shape[dim]
    places = torch.arange(size, dtype=torch.int32, device=x.device)
    places = places.reshape([size if each == dim % x.dim() else 1 for each in range(x.dim())])
    index = torch.where(here, places, size - 1).amin(dim, keepdim).to(torch.int64)
    return (value if keepdim else value.squeeze(dim)), index
