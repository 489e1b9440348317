"""What torch's composite ops mean, in ops whose linalg is plain.

torch's own decompositions (and torch-mlir's) give the same numbers by detours: a softmax that knows where its maximum
was, variances in double precision, attention that scales both of its operands. These here are what a person would
write, so that what follows sees matrix products, reductions and elementwise ops, and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from . import extremes, moves, transformer
from .moves import in_single

_aten = torch.ops.aten
#: What torch-mlir takes for quantised numbers in products and convolutions.
BYTES = (torch.int8, torch.uint8)


@lru_cache(maxsize=1)
def table() -> dict[Any, Callable[..., Any]]:
    """What `ExportedProgram.run_decompositions` is given: torch-mlir's table with ours over it."""
    from torch_mlir.extras.fx_decomp_util import get_decomposition_table

    found = dict(get_decomposition_table())
    # Folded into the convolution before it, where there is one (see `fold`).
    for kept in (_aten._native_batch_norm_legit_no_training.default,):
        found.pop(kept, None)
    composed = extremes.table() | moves.table() | transformer.table()
    ours: dict[Any, Callable[..., Any]] = composed | {
        _aten.mm.default: _product,
        _aten.bmm.default: _product,
        _aten.addmm.default: _addmm,
        _aten._softmax.default: _softmax,
        _aten._log_softmax.default: _log_softmax,
        _aten._safe_softmax.default: _safe_softmax,
        _aten.native_layer_norm.default: _native_layer_norm,
        _aten.native_group_norm.default: _native_group_norm,
        _aten.var.correction: _var,
        _aten.var_mean.correction: _var_mean,
        _aten.reciprocal.default: _reciprocal,
        _aten.abs.default: _abs,
        _aten.gelu.default: _gelu,
        _aten.hardtanh.default: _hardtanh,
        _aten.scaled_dot_product_attention.default: _attention,
        _aten._scaled_dot_product_flash_attention_for_cpu.default: _flash_attention,
    }
    return found | {op: _either(mine, found[op]) if op in found else mine for op, mine in ours.items()}


def _either(ours: Callable[..., Any], theirs: Callable[..., Any]) -> Callable[..., Any]:
    """`ours`, and where it does not apply, `theirs`."""

    def decomposition(*args: Any, **kwargs: Any) -> Any:
        y = ours(*args, **kwargs)
        return theirs(*args, **kwargs) if y is NotImplemented else y

    return decomposition


def _product(a: Tensor, b: Tensor) -> Tensor:
    """Of bytes, which wrap around as torch's do: torch-mlir takes them for quantised numbers, and crashes."""
    if a.dtype not in BYTES:
        return NotImplemented
    return _exact_product(a, b).to(a.dtype)


def _addmm(c: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    if a.dtype not in BYTES:
        return NotImplemented
    return (c.to(torch.int32) * int(beta) + _exact_product(a, b) * int(alpha)).to(a.dtype)


def _exact_product(a: Tensor, b: Tensor) -> Tensor:
    """Of bytes, in i32."""
    return torch.matmul(a.to(torch.int32), b.to(torch.int32))


def _softmax(x: Tensor, dim: int, half_to_float: bool) -> Tensor:
    wide = in_single(x)
    e = torch.exp(wide - _largest(wide, dim) if x.numel() else wide)
    return (e / torch.sum(e, dim, keepdim=True)).to(torch.float32 if half_to_float else x.dtype)


def _log_softmax(x: Tensor, dim: int, half_to_float: bool) -> Tensor:
    wide = in_single(x)
    shifted = wide - _largest(wide, dim) if x.numel() else wide
    y = shifted - torch.log(torch.sum(torch.exp(shifted), dim, keepdim=True))
    return y.to(torch.float32 if half_to_float else x.dtype)


def _safe_softmax(x: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    """Zeros where everything is masked."""
    y = torch.softmax(x, dim, dtype)
    return torch.where(_largest(x, dim) == -math.inf, 0.0, y)


def _native_layer_norm(
    x: Tensor, shape: list[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    dims = list(range(x.dim() - len(shape), x.dim()))
    count = math.prod(shape)
    wide = in_single(x)
    mean = torch.sum(wide, dims, keepdim=True) * (1 / count)
    centred = wide - mean
    rstd = torch.rsqrt(torch.sum(centred * centred, dims, keepdim=True) * (1 / count) + eps)
    y = centred * rstd
    if weight is not None:
        y = y * weight
    if bias is not None:
        y = y + bias
    return y.to(x.dtype), mean, rstd


def _native_group_norm(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, n: int, channels: int, size: int, groups: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    if not x.numel():
        return NotImplemented
    wide = in_single(x).reshape(n, groups, -1)
    variance, mean = _var_mean(wide, [2], correction=0, keepdim=True)
    rstd = torch.rsqrt(variance + eps)
    y = ((wide - mean) * rstd).reshape(n, channels, size)
    if weight is not None:
        y = y * weight[:, None]
    if bias is not None:
        y = y + bias[:, None]
    return y.to(x.dtype).reshape(x.shape), mean.flatten(1), rstd.flatten(1)


def _var(x: Tensor, dim: list[int] | None = None, *, correction: float | None = None, keepdim: bool = False) -> Tensor:
    found = _var_mean(x, dim, correction=correction, keepdim=keepdim)
    return found if found is NotImplemented else found[0]


def _var_mean(
    x: Tensor, dim: list[int] | None = None, *, correction: float | None = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    if not x.is_floating_point() or not x.dim():
        return NotImplemented
    dims = [d % x.dim() for d in dim] if dim else list(range(x.dim()))
    count = math.prod(x.size(d) for d in dims)
    divisor = count - (1 if correction is None else correction)
    if not count or divisor <= 0:
        return NotImplemented
    wide = in_single(x)
    mean = torch.sum(wide, dims, keepdim=True) * (1 / count)
    centred = wide - mean
    variance = torch.sum(centred * centred, dims, keepdim=keepdim) * (1 / divisor)
    return variance.to(x.dtype), (mean if keepdim else _without(mean, dims)).to(x.dtype)


def _without(x: Tensor, dims: list[int]) -> Tensor:
    """`x` without these dims, all of size one."""
    return x.reshape([n for d, n in enumerate(x.shape) if d not in dims])


def _reciprocal(x: Tensor) -> Tensor:
    """torch-mlir's stops at a zero."""
    return torch.ones_like(x) / x


def _abs(x: Tensor) -> Tensor:
    """MLIR's integers have no sign: torch-mlir would negate the upper half of unsigned ones."""
    return x.clone() if x.dtype == torch.uint8 else NotImplemented


def _gelu(x: Tensor, approximate: str = "none") -> Tensor:
    wide = in_single(x)
    if approximate == "tanh":
        inner = (wide + 0.044715 * (wide * wide * wide)) * math.sqrt(2 / math.pi)
        y = 0.5 * wide * (torch.tanh(inner) + 1)
    else:
        y = 0.5 * wide * (torch.erf(wide * math.sqrt(0.5)) + 1)
    return y.to(x.dtype)


def _hardtanh(x: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    return torch.clamp(x, min_val, max_val)


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    if dropout_p:
        return NotImplemented
    if enable_gqa:
        groups = query.size(-3) // key.size(-3)
        key, value = (torch.repeat_interleave(t, groups, -3) for t in (key, value))
    factor = 1 / math.sqrt(query.size(-1)) if scale is None else scale
    half = query.dtype in (torch.bfloat16, torch.float16)
    if half:
        # Scores and weights are single precision up to the weights' product with the values, as in torch's own kernels.
        scores = torch.matmul(in_single(query), in_single(key).transpose(-2, -1)) * factor
    else:
        scores = torch.matmul(query * factor, key.transpose(-2, -1))
    if is_causal:
        allowed = torch.ones(scores.shape[-2:], dtype=torch.bool, device=query.device).tril()
        scores = torch.where(allowed, scores, -math.inf)
    elif attn_mask is not None and attn_mask.dtype == torch.bool:
        scores = torch.where(attn_mask, scores, -math.inf)
    elif attn_mask is not None:
        scores = scores + attn_mask
    # Only a mask of the caller's can leave nothing to attend to.
    weights = torch.softmax(scores, -1) if attn_mask is None else _safe_softmax(scores, -1)
    return torch.matmul(weights.to(value.dtype), value)


def _flash_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    """The second result is for the backward pass; nobody reads it in inference."""
    y = _attention(query, key, value, attn_mask, dropout_p, is_causal, scale=scale)
    return y, query.new_zeros(query.shape[:-1])


def _largest(x: Tensor, dim: int) -> Tensor:
    return torch.amax(x, dim, keepdim=True)
