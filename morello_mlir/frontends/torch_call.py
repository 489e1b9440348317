"""Calling compiled code with torch tensors: their memory is passed as it lies, and results are new tensors."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Container, Sequence
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
        written = {place for place, _ in graph.mutated if isinstance(place, int)}
        self._touched = sorted({*graph.inputs, *written})
        self._written = {self._touched.index(place) for place in written}

    def writes_into_others(self, inputs: Sequence[Any]) -> bool:
        """Whether an input that the graph writes to has memory in common with another one: the code reads all of them
        before it writes to any."""
        return bool(self._written) and overlapping([inputs[i] for i in self._touched], self._written)

    def __call__(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """Raises InputError: an input that is no dense tensor on the CPU. AssertionFailed."""
        # Copies that are made for the call live until its end.
        kept = [plain(inputs[i]) for i in self._inputs]
        made = [torch.empty(shape, dtype=dtype) for shape, dtype in self._results]
        packet = self._packet(*[t.data_ptr() for t in kept], *[t.data_ptr() for t in made])
        self._enter(ctypes.addressof(packet))
        if self._status is not None and packet[self._status]:
            raise AssertionFailed(f"assertion failed: {self._program.build.assertions[packet[self._status] - 1]}")
        for place, number in self._mutated:
            (inputs[place] if isinstance(place, int) else place).copy_(made[number])
        return self._assemble(made, inputs)


def plain(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, or a copy, with its elements in memory row by row as they are: not negated or conjugated by whoever
    reads them."""
    if tensor.is_neg() or tensor.is_conj():
        tensor = tensor.resolve_conj().resolve_neg()
    return tensor if tensor.is_contiguous() else tensor.contiguous()


def overlapping(values: Sequence[Any], written: Container[int]) -> bool:
    """Whether one of the tensors that are written to (by number) may have memory in common with another one."""
    spans = [(*_span(v), i in written) for i, v in enumerate(values) if isinstance(v, torch.Tensor) and v.numel()]
    end = written_end = 0
    for start, stop, is_written in sorted(spans):
        if start < (end if is_written else written_end):
            return True
        end = max(end, stop)
        if is_written:
            written_end = max(written_end, stop)
    return False


def _span(tensor: torch.Tensor) -> tuple[int, int]:
    """Where the elements of a tensor lie: the first byte, and that after the last."""
    start = tensor.data_ptr()
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return start, start + (last + 1) * tensor.element_size()


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
