"""What a tensor or memref type says about where its elements are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlir import ir

from morello_mlir.spec import dense_strides

from .outcome import NotLifted

#: Elements: upstream counts them, and bytes and bits, in signed 64-bit numbers.
MOST_ELEMENTS = 1 << 56


@dataclass(frozen=True)
class View:
    """Element (i, j, ...) is at `offset + i * strides[0] + j * strides[1] + ...` from the base pointer, in elements.

    offset: None where it is known at run time only.
    """

    dtype: str
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int | None

    @property
    def span(self) -> int:
        """One more than the distance from the first element to the last."""
        return 1 + sum((n - 1) * s for n, s in zip(self.sizes, self.strides, strict=True))

    @property
    def injective(self) -> bool:
        """Whether no two elements certainly share a place. (Sufficient, not necessary: each stride exceeds the
        extent of all smaller ones.)"""
        steps = sorted((s, n) for s, n in zip(self.strides, self.sizes, strict=True) if n > 1)
        extent = 1
        for stride, size in steps:
            if stride < extent:
                return False
            extent += (size - 1) * stride
        return True


def view_of(kind: Any, what: str) -> View:
    """The View of a ranked tensor (taken as dense) or memref type; `what` names the operand in reasons.

    Raises NotLifted: dynamic, empty, not strided, in another memory space, beyond any memory, or an encoding.
    """
    if not isinstance(kind, (ir.RankedTensorType, ir.MemRefType)):
        raise NotLifted(f"{what} is of type {kind}, neither a ranked tensor nor a memref")
    if not kind.has_static_shape:
        raise NotLifted(f"{what} has dynamic sizes ({kind})")
    sizes = tuple(kind.shape)
    if 0 in sizes:
        raise NotLifted(f"{what} is empty ({kind})")
    dtype = str(kind.element_type)
    if isinstance(kind, ir.RankedTensorType):
        if kind.encoding is not None:
            raise NotLifted(f"{what} has an encoding ({kind})")
        return View(dtype, sizes, dense_strides(sizes), 0)
    if kind.memory_space is not None:
        raise NotLifted(f"{what} is in memory space {kind.memory_space}")
    return _strided(kind, dtype, sizes, what)


def _strided(kind: ir.MemRefType, dtype: str, sizes: tuple[int, ...], what: str) -> View:
    try:
        strides, offset = kind.get_strides_and_offset()
    except RuntimeError:  # an affine layout that no strides can express
        raise NotLifted(f"{what} has a layout without strides ({kind})") from None
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    if dynamic in strides:
        raise NotLifted(f"{what} has dynamic strides ({kind})")
    if any(s < 0 for s in strides):
        raise NotLifted(f"{what} has negative strides ({kind})")
    if max(strides, default=0) * max(sizes, default=1) >= MOST_ELEMENTS:
        raise NotLifted(f"{what} reaches beyond any memory ({kind})")
    return View(dtype, sizes, tuple(strides), None if offset == dynamic else offset)


def box_in(view: View, shape: tuple[int, ...]) -> list[tuple[int, int, int]] | None:
    """The view as a box of index triples (first, count, step), one per dim of a dense buffer of `shape`.

    None where it is no such box: two dims of the view walk along one dim of the buffer, or a walk wraps around.
    """
    if view.offset is None:
        return None
    radix = dense_strides(shape)
    box = []
    rest = view.offset
    for stride in radix:
        box.append((rest // stride, 1, 1))
        rest %= stride
    for size, stride in zip(view.sizes, view.strides, strict=True):
        if size == 1:
            continue
        # The slowest buffer dim that the stride steps along; a multiple of its stride, or the walk wraps.
        dim = next((d for d, r in enumerate(radix) if r <= stride and shape[d] > 1), None)
        if dim is None or stride % radix[dim] or box[dim][1] != 1:
            return None
        box[dim] = (box[dim][0], size, stride // radix[dim])
    if any(first + (count - 1) * step >= n for (first, count, step), n in zip(box, shape, strict=True)):
        return None
    return box


def boxes_disjoint(a: list[tuple[int, int, int]], b: list[tuple[int, int, int]]) -> bool:
    """Whether two boxes of one buffer share no element: along some dim their indices never meet."""
    return any(not _meet(x, y) for x, y in zip(a, b, strict=True))


def _meet(a: tuple[int, int, int], b: tuple[int, int, int]) -> bool:
    """Whether two index progressions may share an index."""
    (first_a, count_a, step_a), (first_b, count_b, step_b) = a, b
    if first_a + (count_a - 1) * step_a < first_b or first_b + (count_b - 1) * step_b < first_a:
        return False
    same_comb = step_a == step_b and count_a > 1 and count_b > 1
    return not (same_comb and (first_a - first_b) % step_a)
