"""Results of a graph of torch.compile's that share memory with its inputs, or with one another.

Whoever calls a graph may write to one of them (after a graph break, torch itself does), and must find it in the others.
So only what they are views of is compiled; torch makes the views, as it would without us.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

_GIVEN = ("placeholder", "get_attr")


@dataclass(frozen=True)
class Parts:
    """A graph in two parts.

    compute: from the inputs to results that are tensors of their own.
    finish:  from the inputs and these results, in a row, to the results of the graph; None where they are the same.
    """

    compute: GraphModule
    finish: GraphModule | None


class UnknownView(Exception):
    """A result is a view of an input, of a form that depends on other tensors."""


def split(graph: GraphModule) -> Parts:
    """`graph`, as torch.compile gives it to a backend, in its two parts. Raises UnknownView."""
    end = next(n for n in graph.graph.nodes if n.op == "output")
    outputs = list(end.args[0]) if isinstance(end.args[0], (tuple, list)) else end.args
    nodes = list(dict.fromkeys(o for o in outputs if isinstance(o, Node)))
    bases = {node: _base(node) for node in nodes}
    shared = [node for node in nodes if _is_shared(node, bases)]
    if not shared:
        return Parts(graph, None)
    results = list(dict.fromkeys(bases[n] if n in shared else n for n in nodes))
    results = [r for r in results if r.op not in _GIVEN]
    return Parts(_with_results(graph, results), _finish(graph, outputs, shared, results))


def _is_shared(node: Node, bases: dict[Node, Node]) -> bool:
    """Whether a result has its memory from an input or with another result."""
    base = bases[node]
    if base.op in _GIVEN:
        return base is not node
    # The compiled code's results lie row by row. What torch has otherwise has other views.
    value = _value(base)
    return sum(b is base for b in bases.values()) > 1 and isinstance(value, torch.Tensor) and value.is_contiguous()


def _base(node: Node) -> Node:
    """What a node is a view of, or the same as, in the end: an input, or what has memory of its own."""
    while (source := _source(node)) is not None:
        node = source
    return node


def _source(node: Node) -> Node | None:
    """The operand whose memory the value of a node is."""
    memory = _memory(_value(node))
    if memory is None:
        return None
    return next((each for each in node.all_input_nodes if _memory(_value(each)) == memory), None)


def _value(node: Node) -> Any:
    return node.meta.get("example_value")


def _memory(value: Any) -> int | None:
    """What tells the memory of a tensor (or of several, all the same) from that of others; None where it has none."""
    if isinstance(value, (tuple, list)):
        found = {_memory(each) for each in value}
        return found.pop() if len(found) == 1 else None
    if not isinstance(value, torch.Tensor):
        return None
    try:
        return int(value.untyped_storage()._cdata)
    except (NotImplementedError, RuntimeError):  # a tensor without elements in a row, or a wrapper
        return None


def _with_results(graph: GraphModule, results: list[Node]) -> GraphModule:
    made = Graph()
    copies: dict[Node, Node] = {}
    made.graph_copy(graph.graph, copies)
    made.output(tuple(copies[r] for r in results))
    return GraphModule(graph, made)


def _finish(graph: GraphModule, outputs: Sequence[Any], shared: list[Node], results: list[Node]) -> GraphModule:
    made = Graph()
    known: dict[Node, Any] = {}
    for node in graph.graph.nodes:
        if node.op == "placeholder":
            known[node] = made.node_copy(node)
    for number, result in enumerate(results):
        known[result] = made.placeholder(f"result_{number}")

    def again(node: Node) -> Any:
        """The node in the new graph."""
        if node not in known:
            source = _source(node)
            if source is not None and _value(node) is _value(source):
                known[node] = again(source)  # What is written to in place, or was so already.
            else:
                for each in node.all_input_nodes:
                    if each is not source and isinstance(_value(each), (torch.Tensor, tuple, list)):
                        raise UnknownView(f"a result is a view by '{node.target}', which reads other tensors")
                for each in node.all_input_nodes:
                    again(each)
                known[node] = made.node_copy(node, known.__getitem__)
        return known[node]

    for node in shared:
        again(node)
    made.output(tuple(known[o] if isinstance(o, Node) else o for o in outputs))
    return GraphModule(graph, made)
