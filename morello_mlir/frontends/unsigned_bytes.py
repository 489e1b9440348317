"""Unsigned bytes in torch's graphs: torch-mlir widens them by their sign, unless a cast says so."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Graph, Node

from morello_mlir.errors import CompileError, first_line

_aten = torch.ops.aten
#: What moves or casts elements, and so keeps unsigned bytes as they are.
_KEPT = {
    each.default
    for each in (
        *(_aten._to_copy, _aten.clone, _aten.alias, _aten.detach, _aten.view, _aten._unsafe_view, _aten.reshape),
        *(_aten.permute, _aten.transpose, _aten.t, _aten.expand, _aten.unsqueeze, _aten.flip, _aten.roll),
        *(_aten.bitwise_not, _aten.logical_not, _aten.repeat, _aten.slice_scatter, _aten.unfold),
    )
    if hasattr(each, "default")
}
_KEPT |= {_aten.slice.Tensor, _aten.select.int, _aten.squeeze.dim, _aten.squeeze.dims, _aten.index.Tensor}
_KEPT |= {_aten.view.dtype}
#: What is something else of signed bytes, and makes bytes: torch-mlir does not cast int32 back.
_REFUSED = {
    *(_aten.div.Tensor_mode, _aten.div.Scalar_mode, _aten.remainder.Tensor, _aten.remainder.Scalar),
    *(_aten.fmod.Tensor, _aten.fmod.Scalar, _aten.clamp.Tensor, _aten.clamp_min.Tensor, _aten.clamp_max.Tensor),
    *(_aten.max_pool2d_with_indices.default, _aten.max_pool3d_with_indices.default),
    *(_aten.adaptive_max_pool2d.default, _aten.adaptive_max_pool3d.default),
}


def widen(graph: Graph) -> None:
    """Compute in int32 whatever makes one tensor of another type out of unsigned bytes.

    Raises CompileError: an op that does not take int32, or that would make other bytes.
    """
    for node in list(graph.nodes):
        made = node.meta.get("val")
        if not isinstance(node.target, torch._ops.OpOverload) or node.target in _KEPT:
            continue
        if not any(_is_bytes(each) for each in node.all_input_nodes):
            continue
        makes_bytes = not isinstance(made, torch.Tensor) or made.dtype == torch.uint8
        if makes_bytes and node.target in _REFUSED:
            raise CompileError(f"'{node.target}' of unsigned bytes: torch-mlir's lowering takes them for signed ones")
        if not makes_bytes:
            _in_single_words(graph, node)


def _is_bytes(node: Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.dtype == torch.uint8


def _in_single_words(graph: Graph, node: Node) -> None:
    made = node.meta["val"]
    with graph.inserting_before(node):
        for each in node.all_input_nodes:
            if _is_bytes(each):
                node.replace_input_with(each, _cast(graph, each, torch.int32))
    args, kwargs = torch.fx.map_arg((node.args, node.kwargs), lambda n: n.meta["val"])
    try:
        node.meta["val"] = node.target(*args, **kwargs)
    except Exception as error:
        raise CompileError(f"'{node.target}' of unsigned bytes: {first_line(error)}") from error
    if node.meta["val"].dtype == made.dtype:
        return
    with graph.inserting_after(node):
        back = _cast(graph, node, made.dtype)
    node.replace_all_uses_with(back, delete_user_cb=lambda user: user is not back)


def _cast(graph: Graph, node: Node, dtype: torch.dtype) -> Any:
    cast = graph.call_function(_aten._to_copy.default, (node,), {"dtype": dtype})
    cast.meta["val"] = node.meta["val"].to(dtype)
    return cast
