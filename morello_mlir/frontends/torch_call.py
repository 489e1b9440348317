"""Calling compiled code with torch tensors: their memory is passed as it lies, and results are new tensors."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import torch

from morello_mlir.api import CompiledModule
from morello_mlir.errors import CompileError, InputError
from morello_mlir.runtime.program import AssertionFailed, Program

from .fx import ENTRY, Graphed


class TorchCall:
    """`call(inputs)` runs a graph that is compiled; returns its outputs, flattened.

    Safe from several threads. Inputs have the shapes and dtypes that the graph was made for; the caller sees to it.
    """

    def __init__(self, graph: Graphed, compiled: CompiledModule):
        program: Program = compiled.functions[ENTRY].program()
        signature = program.signature
        if signature.results or not all(p.is_plain for p in signature.parameters):
            raise CompileError("the graph has results of a size that is not known")
        self.compiled = compiled
        self._program = program
        self._status = program.build.layout.status
        self._enter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(program.entry_address)
        self._packet = ctypes.c_int64 * max(program.build.layout.size, 1)
        self._inputs = graph.inputs
        self._results = graph.results
        self._mutated = graph.mutated
        self._assemble = _assembler(graph)

    def __call__(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """Raises InputError: an input that is no dense tensor on the CPU. AssertionFailed."""
        # Copies that are made for the call live until its end.
        kept = [_contiguous(inputs[i]) for i in self._inputs]
        made = [torch.empty(shape, dtype=dtype) for shape, dtype in self._results]
        packet = self._packet(*[t.data_ptr() for t in kept], *[t.data_ptr() for t in made])
        self._enter(ctypes.addressof(packet))
        if self._status is not None and packet[self._status]:
            raise AssertionFailed(f"assertion failed: {self._program.build.assertions[packet[self._status] - 1]}")
        for place, number in self._mutated:
            (inputs[place] if isinstance(place, int) else place).copy_(made[number])
        return self._assemble(made, inputs)


def _contiguous(tensor: torch.Tensor) -> torch.Tensor:
    return tensor if tensor.is_contiguous() else tensor.contiguous()


def check_dense(tensor: torch.Tensor, where: str) -> None:
    """Raises InputError for a tensor that is not in this machine's memory, element after element."""
    if tensor.device.type != "cpu" or tensor.layout != torch.strided:
        raise InputError(f"{where}: expected a dense tensor on the CPU, got {tensor.layout} on '{tensor.device}'")


def _assembler(graph: Graphed) -> Callable[[list[torch.Tensor], Sequence[Any]], tuple[Any, ...]]:
    """From the results and inputs of a call to the outputs."""
    outputs = graph.outputs
    if [(o.kind, o.at) for o in outputs] == [("result", i) for i in range(len(graph.results))]:
        return lambda made, inputs: tuple(made)

    def assemble(made: list[torch.Tensor], inputs: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(made[o.at] if o.kind == "result" else inputs[o.at] if o.kind == "input" else o.at for o in outputs)

    return assemble
