"""What torch's fused ops of whole layers mean: `nn.TransformerEncoderLayer` and `nn.MultiheadAttention` call them where
no gradients are wanted. Beside `decompositions`, whose table has them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from .moves import in_single

_aten = torch.ops.aten


def table() -> dict[Any, Callable[..., Any]]:
    """Our decompositions, by the op of torch that they stand for."""
    return {
        _aten._transformer_encoder_layer_fwd.default: encoder_layer,
        _aten._native_multi_head_attention.default: attention,
    }


def encoder_layer(
    src: Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    *rest: Any,
) -> Tensor:
    """`rest`: weights and biases of two normalisations, then of two linear layers; mask and its type (`attention`)."""
    norms = (rest[0], rest[1]), (rest[2], rest[3])
    first, second = (rest[4], rest[5]), (rest[6], rest[7])

    def normed(x: Tensor, which: int) -> Tensor:
        return functional.layer_norm(x, (embed_dim,), *norms[which], eps)

    def attended(x: Tensor) -> Tensor:
        weights = (qkv_weight, qkv_bias, proj_weight, proj_bias)
        mask, kind = (*rest[8:], None, None)[:2]
        return attention(x, x, x, embed_dim, num_heads, *weights, mask, need_weights=False, mask_type=kind)[0]

    def fed(x: Tensor) -> Tensor:
        y = functional.linear(x, *first)
        return functional.linear(functional.gelu(y) if use_gelu else functional.relu(y), *second)

    if norm_first:
        x = src + attended(normed(src, 0))
        return x + fed(normed(x, 1))
    x = normed(src + attended(src), 0)
    return normed(x + fed(x), 1)


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim: int,
    num_head: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    mask: Tensor | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Query, key and value, [n, length, embed_dim], are one tensor in modules. The mask is not zero where a column is
    left out: of type 0 [length, length], 1 [n, length], 2 [n, heads, length, length]. Returns the weights
    too, of all heads or their mean, where they are wanted.
    """
    n, length = query.shape[:2]
    if query is key and key is value:
        projected = functional.linear(query, qkv_weight, qkv_bias).chunk(3, -1)
    else:
        parts = zip((query, key, value), qkv_weight.chunk(3), qkv_bias.chunk(3), strict=True)
        projected = tuple(functional.linear(x, weight, bias) for x, weight, bias in parts)
    q, k, v = (x.reshape(n, x.size(1), num_head, embed_dim // num_head).transpose(1, 2) for x in projected)
    if mask is None and not need_weights:
        y, weights = functional.scaled_dot_product_attention(q, k, v), query.new_empty(0)
    else:
        scores = torch.matmul(in_single(q) * (embed_dim // num_head) ** -0.5, in_single(k).transpose(-2, -1))
        if mask is not None:
            left_out = mask.to(torch.bool)
            scores = scores.masked_fill(left_out[:, None, None, :] if mask_type == 1 else left_out, -torch.inf)
        # Not the safe one: where nothing is left to attend to, this op has NaN.
        weights = torch.softmax(scores, -1).to(v.dtype)
        y = torch.matmul(weights, v)
        weights = weights.mean(1) if average_attn_weights else weights
    return functional.linear(y.transpose(1, 2).reshape(n, length, embed_dim), proj_weight, proj_bias), weights
