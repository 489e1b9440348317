"""Products of the steps of a sequence, each with the same weights, are one product.

A recurrent cell multiplies what is new in each step by weights of its own. Only the products of its state need wait
for one another; the others, together, read the weights once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.fx import Graph, Node

from .fold import call

_aten = torch.ops.aten


def join_steps(graph: Graph) -> None:
    """Rewrite products `mm(x[:, i], w)`, or `mm(x[i], w)`, of most steps i of one tensor to steps of one product."""
    groups: dict[tuple[Node, int, Node], list[tuple[Node, int]]] = {}
    for node in graph.nodes:
        if node.op != "call_function" or node.target is not _aten.mm.default or not isinstance(node.args[1], Node):
            continue
        for source, dim, at in _step(node.args[0]):
            groups.setdefault((source, dim, node.args[1]), []).append((node, at))
    for (source, dim, weights), products in groups.items():
        if _is_worth_it(source.meta["val"], dim, weights.meta["val"], len(products)):
            _join(graph, source, dim, weights, products)
    graph.eliminate_dead_code()


def _step(node: Any) -> Iterator[tuple[Node, int, int]]:
    """(tensor of three dims, dim, place) where a matrix is one step of a tensor."""
    if not isinstance(node, Node) or node.op != "call_function":
        return
    source, dim, at = None, 0, 0
    if node.target is _aten.select.int:
        source, dim, at = node.args
    elif node.target is torch.ops.prims.squeeze.default and isinstance(node.args[0], Node):
        inner = node.args[0]
        if inner.target is _aten.slice.Tensor and len(inner.args) == 4:
            source, dim, at, end = inner.args
            if list(node.args[1]) != [dim] or not isinstance(at, int) or end != at + 1:
                return
    if isinstance(source, Node) and source.meta["val"].dim() == 3 and dim in (0, 1) and at >= 0:
        yield source, dim, at


def _is_worth_it(source: Any, dim: int, weights: Any, count: int) -> bool:
    """Whether most steps are there, and reading the weights for each is more than what a step itself reads."""
    sizes = (*source.shape, *weights.shape)
    if not all(isinstance(size, int) for size in sizes) or not source.is_contiguous():
        return False
    return count > 1 and 2 * count > source.shape[dim] and source.shape[1 - dim] < weights.shape[1]


def _join(graph: Graph, source: Node, dim: int, weights: Node, products: list[tuple[Node, int]]) -> None:
    first, second, width = source.meta["val"].shape
    with graph.inserting_before(products[0][0]):
        rows = call(graph, _aten.view.default, source, [first * second, width])
        together = call(graph, _aten.mm.default, rows, weights)
        steps = call(graph, _aten.view.default, together, [first, second, weights.meta["val"].shape[1]])
        for product, at in products:
            part = call(graph, _aten.slice.Tensor, steps, dim, at, at + 1)
            product.replace_all_uses_with(call(graph, torch.ops.prims.squeeze.default, part, [dim]))
            graph.erase_node(product)
