"""From a torch module to linalg: exported, decomposed, folded, and imported by torch-mlir."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx import Graph, Node

from morello_mlir.errors import CompileError, first_line
from morello_mlir.memo.memo import undisturbed

from . import decompositions, fold, importer, isolated, steps, unsigned_bytes

ENTRY = "main"


class NothingToCompute(CompileError):
    """A graph whose results are its inputs and constants."""


@dataclass(frozen=True)
class Output:
    """One result of the module.

    kind: `result` of the compiled function, `input` or `constant` (the tensor itself), or `value` (no tensor).
    at:   the number of the result or input, or the thing itself.
    """

    kind: str
    at: Any


@dataclass(frozen=True)
class Graphed:
    """A module as linalg.

    text:      MLIR; the function is `main`.
    constants: contents of arguments of `main`, by position.
    inputs:    which input of the module (of those that are tensors and scalars, flattened) each other argument is.
    results:   shape and dtype of each result of `main`.
    outputs:   the module's, flattened.
    mutated:   (what is written to, the result that goes there), where what is a number of an input or a tensor.
    program:   what was exported.
    """

    text: str
    constants: dict[int | str, np.ndarray]
    inputs: tuple[int, ...]
    results: tuple[tuple[torch.Size, torch.dtype], ...]
    outputs: tuple[Output, ...]
    mutated: tuple[tuple[int | torch.Tensor, int], ...]
    program: ExportedProgram


def graph_of(
    module: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None = None,
    fixed: Mapping[int, torch.Tensor] | None = None,
) -> Graphed:
    """A module as linalg, for arguments of these shapes. Its parameters and buffers are constants.

    fixed: inputs (by number, flattened) whose contents are constants too, and these.
    Raises CompileError: what torch cannot export, or torch-mlir not lower.
    """
    isolated.prepare()
    program = _exported(module, args, dict(kwargs or {}))
    graph: Graph = program.graph_module.graph
    places = _Places(program, graph, fixed or {})
    _refuse(graph)
    unsigned_bytes.widen(graph)
    fold.fill_empty(graph)
    fold.fold_batch_norms(graph, places.constants)
    fold.fold_constants(graph, places.constants)
    steps.join_steps(graph)
    outputs, mutated, results = places.outputs()
    for node in [n for n in graph.nodes if n.op == "placeholder" and not n.users]:
        graph.erase_node(node)
        places.constants.pop(node, None)
    order = [n for n in graph.nodes if n.op == "placeholder"]
    constants: dict[int | str, np.ndarray] = {
        i: _array(places.constants[n]) for i, n in enumerate(order) if n in places.constants
    }
    inputs = tuple(places.numbers[n] for n in order if n not in places.constants)
    metas = tuple((r.meta["val"].shape, r.meta["val"].dtype) for r in results)
    return Graphed(_imported(graph), constants, inputs, metas, outputs, mutated, program)


def _exported(module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> ExportedProgram:
    try:
        with warnings.catch_warnings(), torch.inference_mode(False), torch.no_grad():
            # torch's own, about its own.
            warnings.simplefilter("ignore")
            with undisturbed():
                program = torch.export.export(module, args, kwargs, strict=False)
            return program.run_decompositions(decompositions.table())
    except Exception as error:
        raise CompileError(f"torch cannot export the module: {first_line(error)}") from error


class _Places:
    """Which placeholder and which output of an exported graph is what.

    constants: the placeholders with known contents. numbers: the number of the input of each other one.
    """

    def __init__(self, program: ExportedProgram, graph: Graph, fixed: Mapping[int, torch.Tensor]):
        self._graph = graph
        self._signature = program.graph_signature
        self.constants: dict[Node, torch.Tensor] = {}
        self.numbers: dict[Node, int] = {}
        self._tensors: dict[str, torch.Tensor] = {}
        written = set(self._signature.buffers_to_mutate.values())
        nodes = [n for n in graph.nodes if n.op == "placeholder"]
        for node, spec in zip(nodes, self._signature.input_specs, strict=True):
            if spec.kind == InputKind.USER_INPUT:
                number = len(self.numbers)
                self.numbers[node] = number
                # What is written to is no constant, whoever says so.
                if number in fixed and node.name not in self._signature.user_inputs_to_mutate.values():
                    self.constants[node] = fixed[number].detach()
                continue
            source = program.constants if spec.kind == InputKind.CONSTANT_TENSOR else program.state_dict
            value = source.get(spec.target)
            if value is None:
                value = program.constants.get(spec.target)
            if not isinstance(value, torch.Tensor):
                raise CompileError(f"the module's input '{spec.target}' is no tensor")
            if spec.target in written:
                raise CompileError(f"the module writes to its buffer '{spec.target}'")
            self._tensors[node.name] = value
            self.constants[node] = value.detach()

    def outputs(self) -> tuple[tuple[Output, ...], tuple[tuple[int | torch.Tensor, int], ...], list[Node]]:
        """The outputs, what is written to, and the nodes that the compiled function returns: each once, and in the
        graph nothing else."""
        end = next(n for n in self._graph.nodes if n.op == "output")
        results: list[Node] = []
        outputs: list[Output] = []
        mutated: list[tuple[int | torch.Tensor, int]] = []
        by_name = {n.name: n for n in self.numbers}

        def result(node: Node) -> int:
            if node not in results:
                results.append(node)
            return results.index(node)

        for node, spec in zip(end.args[0], self._signature.output_specs, strict=True):
            if spec.kind == OutputKind.USER_INPUT_MUTATION:
                mutated.append((self.numbers[by_name[spec.target]], result(node)))
            elif spec.kind != OutputKind.USER_OUTPUT:
                raise CompileError(f"the module writes to its buffer '{spec.target}'")
            elif not isinstance(node, Node):
                outputs.append(Output("value", node))
            elif node in self.constants:
                outputs.append(Output("constant", self._tensors.get(node.name, self.constants[node])))
            elif node in self.numbers:
                outputs.append(Output("input", self.numbers[node]))
            else:
                outputs.append(Output("result", result(node)))
        end.args = (tuple(results),)
        if not results:
            raise NothingToCompute("there is nothing to compute")
        return tuple(outputs), tuple(mutated), results


def _refuse(graph: Graph) -> None:
    """Raises CompileError for what would compile to something else than torch does, or crash torch-mlir."""
    for node in graph.nodes:
        target = node.target
        if isinstance(target, torch._ops.OpOverload) and torch.Tag.nondeterministic_seeded in target.tags:
            raise CompileError(f"'{target}' draws random numbers, which are torch's own")
        if isinstance(target, torch._ops.HigherOrderOperator):
            raise CompileError(f"'{target}' has a graph of its own inside")
        if target is torch.ops.aten.convolution.default and node.meta["val"].dtype in decompositions.BYTES:
            raise CompileError(f"'{target}' of bytes: torch-mlir's lowering takes them for quantised numbers")


def _array(tensor: torch.Tensor) -> np.ndarray:
    """The contents as a read-only array on the same memory; bf16 as its bits."""
    from morello_mlir.runtime.arguments import as_array

    array = as_array(tensor.detach().resolve_conj().resolve_neg().contiguous(), "a constant")
    array.flags.writeable = False
    return array


def _imported(graph: Graph) -> str:
    from torch_mlir.dialects import torch as torch_dialect
    from torch_mlir.extras.fx_importer import FxImporter
    from torch_mlir.ir import Context

    context = Context()
    torch_dialect.register_dialect(context)
    fx_importer = FxImporter(context=context)
    try:
        fx_importer.import_stateless_graph(graph, func_name=ENTRY)
    except Exception as error:
        raise CompileError(f"torch-mlir cannot import the graph: {first_line(error)}") from error
    return importer.run(fx_importer.module, importer.FROM_TORCH, "the graph")


def shapes_of(args: Sequence[Any], fixed: Set[int]) -> tuple[Any, ...]:
    """What code is specialised on: shape and dtype of every tensor that is no constant, the value of anything else."""
    return tuple(
        None if i in fixed else (tuple(a.shape), a.dtype) if isinstance(a, torch.Tensor) else a
        for i, a in enumerate(args)
    )
