"""Edges of padded images: what of a convolution's window finds zeros there.

While a module is lifted, a buffer that holds an image with zeros around it says so (`mark_borders`). A contraction
through whose input a window slides then knows which steps of the window find nothing but zeros, position by position.
Whether they may be left out depends on the filters (`with_edges`): infinities and NaN times zero are NaN.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from mlir import ir

from morello_mlir.spec import Spec

from .aliases import nested_ops
from .borders import BORDER, Padding
from .constants import FINITE, global_of
from .outcome import Lifted
from .writes import may_write


def mark_borders(padding: Padding) -> None:
    """Says on a buffer what is known of it, where it is zeros around an image and stays so."""
    if _is_zero(padding.constant) and _is_only_read(padding):
        ends = [offset + size for offset, size in zip(padding.offsets, padding.sizes, strict=True)]
        padding.buffer.owner.attributes[BORDER] = ir.DenseI64ArrayAttr.get([*padding.offsets, *ends])


def clear_borders(root: Any) -> None:
    """Takes off what `mark_borders` said under `root`."""
    for op in nested_ops(root):
        if BORDER in op.attributes:
            del op.attributes[BORDER]


def with_edges(lifted: Lifted) -> Lifted:
    """`lifted` with its edges where filters are known to be finite, else without them: what they multiply would not be
    zero."""
    spec = lifted.spec
    images = [i for i, t in enumerate(spec.operands) if t.window is not None and t.window.edges]
    if not images or all(_is_finite(lifted, 1 - i) for i in images):
        return lifted
    return replace(lifted, plan=replace(lifted.plan, spec=without_edges(spec)))


def without_edges(spec: Spec) -> Spec:
    """The Spec that multiplies all that there is."""
    operands = (replace(t, window=t.window and t.window.without_edges) for t in spec.operands)
    return replace(spec, operands=tuple(operands)).canonical()


def _is_finite(lifted: Lifted, operand: int) -> bool:
    """Whether an input holds finite numbers at all times."""
    value = lifted.values[lifted.plan.operands[operand].source]
    if isinstance(value.type.element_type, ir.IntegerType):
        return True
    found = global_of(value)
    if found is None or FINITE in found.attributes:
        return found is not None
    if "initial_value" not in found.attributes:
        return False
    contents = found.attributes["initial_value"]
    if not isinstance(contents, ir.DenseElementsAttr):
        return False
    try:
        return bool(np.isfinite(np.array(contents)).all())
    except (TypeError, ValueError, BufferError):  # an element type that numpy does not have
        return False


def _is_zero(value: Any) -> bool:
    """Whether a scalar is known to be zero."""
    if isinstance(value.owner, ir.Block) or value.owner.operation.name != "arith.constant":
        return False
    attribute = value.owner.operation.attributes["value"]
    return bool(attribute.value == 0) if isinstance(attribute, (ir.FloatAttr, ir.IntegerAttr)) else False


def _is_only_read(padding: Padding) -> bool:
    """Whether nobody writes to the buffer after its image has been copied into it."""
    frees = [use.owner.operation for use in padding.buffer.uses if use.owner.operation.name == "memref.dealloc"]
    return not may_write(padding.buffer, (padding.fill, padding.view, padding.copy, *frees))
