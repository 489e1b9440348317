"""What is known of a graph before it runs: batch normalisation goes into the convolution before it, and what depends on
weights alone is computed once, with torch."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import torch
from torch.fx import Graph, Node

_aten = torch.ops.aten
_BATCH_NORM = _aten._native_batch_norm_legit_no_training.default
#: Ops that fill a tensor: cheaper where they are than as data.
_FILLS = ("full", "zeros", "ones", "empty", "scalar_tensor", "fill")
_LIKES = tuple(f"{name}_like" for name in _FILLS)
#: What masks are made of: left in the graph where they are made of positions alone, so that it can be seen which.
_OF_POSITIONS = ("arange", "unsqueeze", "view", "expand", "add", "sub", "le", "lt", "ge", "gt", "logical_and")
_CASTS = (torch.ops.prims.convert_element_type.default, _aten._to_copy.default)
#: A result that is so much larger than what it is made from is no constant worth keeping (elements).
_GROWTH, _SMALL = 2, 1 << 16


def fold_batch_norms(graph: Graph, constants: dict[Node, torch.Tensor]) -> None:
    """Rewrite every batch normalisation of inference to a convolution with other weights, or to a factor and a sum.

    constants: placeholders with known contents. The arithmetic on them is left in the graph, for `fold_constants`.
    """
    for node in list(graph.nodes):
        if node.op == "call_function" and node.target is _BATCH_NORM:
            users = [user for user in node.users if user.args[1] == 0]
            with graph.inserting_before(node):
                y = _batch_norm(graph, node, constants)
            for user in users:
                user.replace_all_uses_with(y)
                graph.erase_node(user)
            if not node.users:
                graph.erase_node(node)
    graph.eliminate_dead_code()


def _batch_norm(graph: Graph, node: Node, constants: dict[Node, torch.Tensor]) -> Node:
    x, weight, bias, mean, variance, _, eps = node.args
    rstd = call(graph, _aten.rsqrt.default, call(graph, _aten.add.Scalar, variance, eps))
    factor = rstd if weight is None else call(graph, _aten.mul.Tensor, rstd, weight)
    if _is_foldable(x, constants):
        assert isinstance(x, Node)
        y, kernel, old = x.args[0], x.args[1], x.args[2]
        shape = [-1] + [1] * (_value(kernel).dim() - 1)
        scaled = call(graph, _aten.mul.Tensor, kernel, call(graph, _aten.view.default, factor, shape))
        shift = _shift(graph, mean if old is None else call(graph, _aten.sub.Tensor, mean, old), factor, bias)
        return call(graph, _aten.convolution.default, y, scaled, shift, *x.args[3:])
    shape = [-1] + [1] * (_value(x).dim() - 2)
    shift = _shift(graph, mean, factor, bias)
    scale, offset = (call(graph, _aten.view.default, each, shape) for each in (factor, shift))
    return call(graph, _aten.add.Tensor, call(graph, _aten.mul.Tensor, x, scale), offset)


def _shift(graph: Graph, mean: Any, factor: Node, bias: Any) -> Node:
    """bias - mean * factor."""
    scaled = call(graph, _aten.mul.Tensor, mean, factor)
    return call(graph, _aten.neg.default, scaled) if bias is None else call(graph, _aten.sub.Tensor, bias, scaled)


def _is_foldable(x: Any, constants: dict[Node, torch.Tensor]) -> bool:
    """Whether it is a convolution whose weights are known and whose result nobody else needs."""
    if not isinstance(x, Node) or x.target is not _aten.convolution.default or len(x.users) != 1:
        return False
    transposed = x.args[6]
    return not transposed and x.args[1] in constants and (x.args[2] is None or x.args[2] in constants)


def call(graph: Graph, target: Any, *args: Any) -> Node:
    """A node for a call, with what its value looks like."""
    node = graph.call_function(target, args)
    seen = torch.fx.map_arg(args, _value)
    node.meta["val"] = target(*seen)
    return node


def _value(node: Any) -> Any:
    return node.meta["val"]


def fill_empty(graph: Graph) -> None:
    """What has no elements is known whatever it is computed from. (torch-mlir crashes on views of it.)"""
    for node in list(graph.nodes):
        value = node.meta.get("val")
        if node.op != "call_function" or not isinstance(value, torch.Tensor) or value.numel():
            continue
        with graph.inserting_before(node):
            empty = graph.call_function(_aten.full.default, (list(value.shape), 0), {"dtype": value.dtype})
        empty.meta["val"] = value
        node.replace_all_uses_with(empty)
        graph.erase_node(node)
    graph.eliminate_dead_code()


def fold_constants(graph: Graph, constants: dict[Node, torch.Tensor]) -> None:
    """Compute what depends on constants alone; its place is taken by new placeholders, which join `constants`.

    What is computed from the same constants in the same way is one constant: a cell that is applied to every step of a
    sequence transposes its weights in each. Constants that are then of no use leave the graph.
    """
    _merge_equal(graph, constants)
    known: dict[Node, torch.Tensor] = dict(constants)
    positions: set[Node] = set()
    for node in graph.nodes:
        if node.op == "call_function" and _is_known(node, known):
            value = node.target(*torch.fx.map_arg(node.args, known.get), **torch.fx.map_arg(node.kwargs, known.get))
            if isinstance(value, torch.Tensor) and not _grows(node, value, known):
                known[node] = value
                if _is_of_positions(node, positions):
                    positions.add(node)
    # Products widen matrices as they read them, and have instructions for narrow ones.
    for node in reversed(list(known)):
        if _widens(node, known) and any(user not in known for user in node.users):
            del known[node]
    first = next(iter(graph.nodes))
    for node in list(known):
        if node.op == "placeholder" or node in positions:
            continue
        users = [user for user in node.users if user not in known]
        if users:
            with graph.inserting_before(first):
                place = graph.placeholder(f"folded_{node.name}")
            place.meta["val"] = node.meta["val"].contiguous()
            node.replace_all_uses_with(place, delete_user_cb=lambda user: user not in known)
            constants[place] = known[node].contiguous()
    graph.eliminate_dead_code()
    for node in list(constants):
        if not node.users:
            graph.erase_node(node)
            del constants[node]


def _merge_equal(graph: Graph, constants: dict[Node, torch.Tensor]) -> None:
    """Let constants that are the same memory be one, and what is computed from them alone by the same op."""
    known: dict[Node, None] = {}
    first: dict[Any, Node] = {}
    for node in list(graph.nodes):
        if node in constants:
            tensor = constants[node]
            key: Any = tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride()
        elif node.op == "call_function" and _is_known(node, known):
            key = node.target, repr(node.args), repr(node.kwargs)
        else:
            continue
        known[node] = None
        same = first.setdefault(key, node)
        if same is not node:
            node.replace_all_uses_with(same)
            if node.op == "call_function":
                graph.erase_node(node)


def _is_known(node: Node, known: Container[Node]) -> bool:
    """Whether an op can be computed now: nothing random, and everything that it reads is there."""
    target = node.target
    if not isinstance(target, torch._ops.OpOverload) or torch.Tag.nondeterministic_seeded in target.tags:
        return False
    return all(each in known for each in node.all_input_nodes)


def _widens(node: Node, known: dict[Node, torch.Tensor]) -> bool:
    """Whether it is the same matrix in a wider floating type."""
    if node.target not in _CASTS or known[node].dim() < 2:
        return False
    source, value = known[node.all_input_nodes[0]], known[node]
    floats = source.is_floating_point() and value.is_floating_point()
    return floats and value.element_size() > source.element_size()


def _grows(node: Node, value: torch.Tensor, known: dict[Node, torch.Tensor]) -> bool:
    read = sum(known[each].numel() for each in node.all_input_nodes)
    return value.numel() > max(_GROWTH * read, _SMALL)


def _is_of_positions(node: Node, positions: Container[Node]) -> bool:
    """Whether it is a fill, or integers or truth values that follow from where they are."""
    assert isinstance(node.target, torch._ops.OpOverload)
    name = node.target._schema.name.removeprefix("aten::")
    if name in _FILLS + _LIKES:
        return True
    inside = name in _OF_POSITIONS and all(each in positions for each in node.all_input_nodes)
    return inside and not node.meta["val"].is_floating_point()
