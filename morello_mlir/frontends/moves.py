"""What torch's ops that rearrange elements mean, in slices, pads and reshapes, which are copies of whole rows: borders,
enlarged images, transposed convolutions, running sums. Beside `decompositions`, whose table has them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

_aten = torch.ops.aten
#: Borders of more elements than this are left to others: each of them is a copy of its own.
_BORDER = 16


def table() -> dict[Any, Callable[..., Any]]:
    """Our decompositions, by the op of torch that they stand for."""
    found: dict[Any, Callable[..., Any]] = {
        _aten.convolution.default: convolution,
        _aten.constant_pad_nd.default: constant_pad,
        _aten.cumsum.default: cumsum,
        _aten.cumprod.default: cumprod,
    }
    for rank in (1, 2, 3):
        found[getattr(_aten, f"reflection_pad{rank}d").default] = reflection_pad
        found[getattr(_aten, f"replication_pad{rank}d").default] = replication_pad
        nearest = getattr(_aten, f"upsample_nearest{rank}d")
        found[nearest.vec], found[nearest.default] = upsample_nearest, upsample_nearest
    for name in ("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d"):
        found[getattr(_aten, name).vec], found[getattr(_aten, name).default] = upsample_linear, upsample_linear
    return found


def in_single(x: Tensor) -> Tensor:
    """Half precision is computed in single."""
    return x.to(torch.float32) if x.dtype in (torch.float16, torch.bfloat16) else x


# ---------------------------------------------------------------- borders


def constant_pad(x: Tensor, pad: Sequence[int], value: float = 0) -> Tensor:
    """Negative borders are cut off, and then there are none."""
    if all(p >= 0 for p in pad):
        return NotImplemented
    for at, (low, high) in enumerate(zip(pad[::2], pad[1::2], strict=True)):
        dim = x.dim() - 1 - at
        start = max(-low, 0)
        x = x.narrow(dim, start, x.size(dim) - start - max(-high, 0))
    return functional.pad(x, [max(p, 0) for p in pad], value=value)


def reflection_pad(x: Tensor, pad: Sequence[int]) -> Tensor:
    """As aten.reflection_pad1d to 3d: what lies inside of a border, mirrored at it."""
    return _padded(x, pad, lambda low, at: low - at, lambda size, at: size - 2 - at)


def replication_pad(x: Tensor, pad: Sequence[int]) -> Tensor:
    """As aten.replication_pad1d to 3d: what lies at the border, repeated."""
    return _padded(x, pad, lambda low, at: 0, lambda size, at: size - 1)


def _padded(
    x: Tensor, pad: Sequence[int], before: Callable[[int, int], int], after: Callable[[int, int], int]
) -> Tensor:
    """before, after: which element, of all along a dim, the border's element `at` is. before has the border's size,
    after the dim's."""
    if any(not 0 <= p <= _BORDER for p in pad):
        return NotImplemented
    for number, (low, high) in enumerate(zip(pad[::2], pad[1::2], strict=True)):
        dim = x.dim() - 1 - number
        size = x.size(dim)
        parts = [x.narrow(dim, before(low, at), 1) for at in range(low)]
        parts += [x, *(x.narrow(dim, after(size, at), 1) for at in range(high))]
        x = torch.cat(parts, dim) if len(parts) > 1 else x
    return x


# ---------------------------------------------------------------- enlarged images


def upsample_nearest(x: Tensor, size: Sequence[int] | None, *more: Any) -> Tensor:
    """Of whole multiples of the sizes; `.vec` and the plain form say them in the same place, or by factors."""
    # The same size and twice the size are what they look like in torch, whatever the factor is.
    factors = _factors(x, size, more, plain=(1, 2))
    if factors is None:
        return NotImplemented
    return _interleaved(x, factors, lambda x, dim, factor, phase: x)


def upsample_linear(x: Tensor, size: Sequence[int] | None, align_corners: bool, *more: Any) -> Tensor:
    """As `upsample_nearest`, of floats and without `align_corners`."""
    factors = _factors(x, size, more)
    if factors is None or align_corners or not x.is_floating_point():
        return NotImplemented
    return _interleaved(in_single(x), factors, _between).to(x.dtype)


def _factors(x: Tensor, size: Sequence[int] | None, more: Sequence[Any], plain: Sequence[int] = ()) -> list[int] | None:
    """How often each element comes along each dim, if that is always the same. plain: quotients of the sizes with which
    a factor of the caller's does not matter."""
    sizes = x.shape[2:]
    if size is None:
        size = [math.floor(n * factor) for n, factor in zip(sizes, more[0], strict=True)]
    for factor, n, m in zip(_flat(more), sizes, size, strict=False):
        # Not from the sizes, but with a factor of the caller's, which need not be whole.
        if factor is not None and factor * n != m and m not in [n * times for times in plain]:
            return None
    if any(m % n or not m for n, m in zip(sizes, size, strict=True)):
        return None
    return [m // n for n, m in zip(sizes, size, strict=True)]


def _flat(more: Sequence[Any]) -> list[Any]:
    return [f for each in more for f in (each if isinstance(each, (list, tuple)) else [each])]


def _interleaved(x: Tensor, factors: Sequence[int], make: Callable[[Tensor, int, int, int], Tensor]) -> Tensor:
    """Along each dim, in turns, what `make` makes of the elements for each phase."""
    for dim, factor in enumerate(factors, 2):
        if factor > 1:
            parts = [make(x, dim, factor, phase) for phase in range(factor)]
            x = torch.stack(parts, dim + 1).flatten(dim, dim + 1)
    return x


def _between(x: Tensor, dim: int, factor: int, phase: int) -> Tensor:
    """Between each element and its neighbour, which at the border is itself."""
    at = (phase + 0.5) / factor - 0.5
    if at == 0:
        return x
    rest = x.size(dim) - 1
    near = x.narrow(dim, 0, 1) if at < 0 else x.narrow(dim, rest, 1)
    parts = [near, x.narrow(dim, 0, rest)] if at < 0 else [x.narrow(dim, 1, rest), near]
    return x * (1 - abs(at)) + torch.cat(parts, dim) * abs(at)


# ---------------------------------------------------------------- transposed convolutions


def convolution(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Tensor:
    """A transposed one as a plain one, with a channel for each phase of the stride; the phases are then interleaved.

    An output at `t * stride + phase` is a sum over the inputs `t - j` with the weights at `phase + j * stride`: weights
    of every phase, backwards, are those of a convolution. No zeros are put between the inputs, but phases with fewer
    weights than others get zeros: there an infinite input makes a NaN that it does not make in torch.
    """
    rank = x.dim() - 2
    if not transposed or weight.numel() == 0:
        return NotImplemented
    stride, padding, dilation, output_padding = (
        list(each) * rank if len(each) == 1 else list(each) for each in (stride, padding, dilation, output_padding)
    )
    weight = _dilated(weight, dilation)
    kernel = list(weight.shape[2:])
    steps = [-(-k // s) for k, s in zip(kernel, stride, strict=True)]
    fill = [p for k, s, j in zip(kernel[::-1], stride[::-1], steps[::-1], strict=True) for p in (0, s * j - k)]
    weight = functional.pad(weight, fill) if any(fill) else weight
    # What is asked for, of all that there is.
    sizes = [
        (n - 1) * s - 2 * p + k + more
        for n, s, p, k, more in zip(x.shape[2:], stride, padding, kernel, output_padding, strict=True)
    ]
    made = [(n + j - 1) * s for n, j, s in zip(x.shape[2:], steps, stride, strict=True)]
    over = [max(p + n - m, 0) for p, n, m in zip(padding, sizes, made, strict=True)]
    phases = _phases(weight, stride, steps, groups)
    inside = bias is not None and not any(over)
    shift = bias.repeat_interleave(math.prod(stride)) if bias is not None and inside else None
    y = _aten.convolution.default(
        x, phases, shift, [1] * rank, [j - 1 for j in steps], [1] * rank, False, [0] * rank, groups
    )
    if math.prod(stride) > 1:
        y = _shuffled(y, stride)
    if any(over):
        y = functional.pad(y, [p for n in over[::-1] for p in (0, n)])
    for dim, (p, n) in enumerate(zip(padding, sizes, strict=True), 2):
        y = y.narrow(dim, p, n)
    return y if bias is None or inside else y + bias.view([-1] + [1] * rank)


def _dilated(weight: Tensor, dilation: Sequence[int]) -> Tensor:
    """Weights with the zeros between them that a dilation means."""
    for dim, step in enumerate(dilation, 2):
        if step > 1:
            count = weight.size(dim)
            wide = torch.stack([weight] + [torch.zeros_like(weight)] * (step - 1), dim + 1).flatten(dim, dim + 1)
            weight = wide.narrow(dim, 0, (count - 1) * step + 1)
    return weight


def _phases(weight: Tensor, stride: Sequence[int], steps: Sequence[int], groups: int) -> Tensor:
    """Weights [inputs, outputs / groups, steps * stride, ...] as those of a convolution whose outputs are those of
    every phase: [outputs * phases, inputs / groups, steps, ...]."""
    inputs, outputs = weight.shape[:2]
    rank = len(stride)
    w = weight.reshape(
        groups, inputs // groups, outputs, *(n for j, s in zip(steps, stride, strict=True) for n in (j, s))
    )
    w = w.flip([3 + 2 * d for d in range(rank)])
    w = w.permute(0, 2, *(4 + 2 * d for d in range(rank)), 1, *(3 + 2 * d for d in range(rank)))
    return w.reshape(groups * outputs * math.prod(stride), inputs // groups, *steps)


def _shuffled(y: Tensor, stride: Sequence[int]) -> Tensor:
    """[n, channels * phases, ...] with the phases of each dim beside one another in it."""
    rank, (n, channels), sizes = len(stride), y.shape[:2], y.shape[2:]
    outputs = channels // math.prod(stride)
    y = y.reshape(n, outputs, *stride, *sizes)
    y = y.permute(0, 1, *(d for i in range(rank) for d in (2 + rank + i, 2 + i)))
    return y.reshape(n, outputs, *(m * s for m, s in zip(sizes, stride, strict=True)))


# ---------------------------------------------------------------- running sums


def cumsum(x: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
    """As aten.cumsum: sums of all that comes before along `dim`, itself included; integers in int64."""
    x = x.to(dtype or (x.dtype if x.is_floating_point() else torch.int64))
    return _running(x, dim, torch.add, 0)


def cumprod(x: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
    """As aten.cumprod: the same of products."""
    x = x.to(dtype or (x.dtype if x.is_floating_point() else torch.int64))
    return _running(x, dim, torch.mul, 1)


def _running(x: Tensor, dim: int, combine: Callable[[Tensor, Tensor], Tensor], neutral: int) -> Tensor:
    """In passes, each of which combines twice as many elements."""
    if x.dim() == 0:
        return x.clone()
    y, dim, step = in_single(x), dim % x.dim(), 1
    while step < x.size(dim):
        border = [0, 0] * (x.dim() - 1 - dim) + [step, 0]
        before = functional.pad(y.narrow(dim, 0, x.size(dim) - step), border, value=neutral)
        y, step = combine(y, before), 2 * step
    return y.to(x.dtype)
