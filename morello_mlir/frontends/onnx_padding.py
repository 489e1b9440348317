"""ONNX: quantised convolutions that pad two sides differently: torch-mlir's lowering of them crashes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from morello_mlir.errors import CompileError

#: Per op, which inputs are the weights and the zero point of the image.
_OPERANDS = {"QLinearConv": (3, 2), "ConvInteger": (1, 2)}
#: The first version of ONNX whose `Pad` takes any type, and its widths as an operand.
_PAD = 11


def pad_ahead(model: Any) -> None:
    """Have such convolutions of a model, in place, read images that a `Pad` has given their borders.

    Raises CompileError: a size that borders follow from is not known, or the model is of an old version of ONNX.
    """
    found = [node for node in model.graph.node if node.op_type in _OPERANDS]
    if not found:
        return
    shapes = _shapes(model)
    for node in found:
        pads = _pads(node, shapes)
        half = len(pads) // 2
        if pads[:half] == pads[half:]:
            _set_pads(node, pads)
            continue
        if not any(each.version >= _PAD for each in model.opset_import if not each.domain):
            raise CompileError(f"'{node.op_type}' with different borders needs ONNX's opset {_PAD} or later")
        _insert(model.graph, node, [0, 0, *pads[:half], 0, 0, *pads[half:]])
        _set_pads(node, [0] * len(pads))


def _shapes(model: Any) -> dict[str, tuple[int | None, ...]]:
    """The sizes of values by name, as far as they are known."""
    graph = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    shapes: dict[str, tuple[int | None, ...]] = {t.name: tuple(t.dims) for t in graph.initializer}
    for each in (*graph.input, *graph.value_info, *graph.output):
        dims = each.type.tensor_type.shape.dim
        shapes[each.name] = tuple(d.dim_value if d.HasField("dim_value") else None for d in dims)
    return shapes


def _pads(node: Any, shapes: dict[str, tuple[int | None, ...]]) -> list[int]:
    """What a convolution adds: before each spatial dimension, then after each."""
    known = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    weights, _ = _OPERANDS[node.op_type]
    kernel = known.get("kernel_shape") or shapes.get(node.input[weights], (None, None))[2:]
    same = known.get("auto_pad", b"NOTSET")
    if same not in (b"SAME_UPPER", b"SAME_LOWER"):
        return list(known.get("pads") or [0] * 2 * len(kernel))
    sizes = shapes.get(node.input[0], ())[2:]
    if None in (*sizes, *kernel) or len(sizes) != len(kernel):
        raise CompileError(f"'{node.op_type}': its borders follow from a size that is not known")
    strides, dilations = (known.get(name) or [1] * len(kernel) for name in ("strides", "dilations"))
    before, after = [], []
    for size, k, stride, dilation in zip(sizes, kernel, strides, dilations, strict=True):
        assert size is not None and k is not None
        total = max((-(-size // stride) - 1) * stride + (k - 1) * dilation + 1 - size, 0)
        less, more = total // 2, total - total // 2
        before.append(less if same == b"SAME_UPPER" else more)
        after.append(more if same == b"SAME_UPPER" else less)
    return [*before, *after]


def _set_pads(node: Any, pads: Sequence[int]) -> None:
    kept = [a for a in node.attribute if a.name not in ("pads", "auto_pad")]
    del node.attribute[:]
    node.attribute.extend([*kept, helper.make_attribute("pads", list(pads))])


def _insert(graph: Any, node: Any, widths: list[int]) -> None:
    """Put a `Pad` before a convolution: the border of an image is its zero point."""
    _, zero = _OPERANDS[node.op_type]
    padded = f"{node.output[0]}/padded"
    graph.initializer.append(numpy_helper.from_array(np.array(widths, np.int64), f"{padded}/widths"))
    value = [node.input[zero]] if len(node.input) > zero and node.input[zero] else []
    pad = helper.make_node("Pad", [node.input[0], f"{padded}/widths", *value], [padded])
    graph.node.insert(list(graph.node).index(node), pad)
    node.input[0] = padded
