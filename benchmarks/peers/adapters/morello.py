"""Our own code, entered as a C function would be."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from morello_mlir.runtime.objects import data_address

from ..native import NativeCall, repeat
from ..workloads import Data, Workload
from .base import Built, Peer, python_calls

_EXTENSION = {"f": "extf", "u": "extui", "i": "extsi"}
#: Element types as MLIR spells them: integers have no sign there.
_MLIR = {"u8": "i8", "u16": "i16"}


class Morello(Peer):
    """morello_mlir.compile."""

    name = "ours"
    module = "morello_mlir"
    distribution = "morello-mlir"

    def __init__(self) -> None:
        self._target, self._threads = "host", 1

    def start(self, threads: int, isa: str) -> None:
        self._target, self._threads = "host" if isa == "native" else isa, threads

    def about(self) -> str:
        from morello_mlir.targets import get_target

        return f"{super().about()}, target {get_target(self._target).name}"

    def build(self, workload: Workload, data: Data) -> Built | None:
        compiled = self._compile(workload, data)
        if compiled is None:
            return None
        arrays = _arguments(workload, data)
        program = compiled.mm.program()
        packet = np.array([data_address(a) for a in arrays], np.int64)
        run = repeat([NativeCall(program.entry_address, (packet,))])

        def kept(times: int, alive: Any = (compiled, arrays)) -> None:
            run(times)

        return Built(kept, lambda: data.out)

    def _compile(self, workload: Workload, data: Data) -> Any:
        """None where the contraction is not ours yet, but upstream's."""
        import morello_mlir
        from morello_mlir.search.solve import keep_memos

        compiled = morello_mlir.compile(module_text(workload, data), target=self._target, threads=self._threads)
        # What a search has solved is written by a thread beside the samples otherwise, on the one CPU that they have.
        keep_memos()
        return compiled if compiled.lifted and not compiled.left else None


class MorelloPython(Morello):
    """The same, called from Python."""

    name = "ours from Python"

    def build(self, workload: Workload, data: Data) -> Built | None:
        compiled = self._compile(workload, data)
        if compiled is None:
            return None
        return Built(python_calls(partial(compiled.mm, *_arguments(workload, data))), lambda: data.out, python=True)


PEERS = (Morello(), MorelloPython())


def _arguments(workload: Workload, data: Data) -> list[Any]:
    """The arrays of a call; a weight is part of the program."""
    return [data.lhs, data.out] if workload.ahead else [data.lhs, data.rhs, data.out]


def module_text(workload: Workload, data: Data) -> str:
    """A module with a function `mm` on memrefs that overwrites its last argument."""
    a, b, c = (_MLIR.get(t, t) for t in workload.types)
    shapes = ["x".join(map(str, s)) for s in workload.shapes]
    types = [f"memref<{s}x{t}>" for s, t in zip(shapes, (a, b, c), strict=True)]
    dims, lead = ("d0, d1, d2, d3", "d0, ") if workload.batch else ("d1, d2, d3", "")
    maps = ", ".join(f"affine_map<({dims}) -> ({lead}{d})>" for d in ("d1, d3", "d3, d2", "d1, d2"))
    iterators = ", ".join(f'"{k}"' for k in (["parallel"] * (3 if workload.batch else 2) + ["reduction"]))
    zero = f"arith.constant {'0.0' if workload.is_float else '0'} : {c}"
    kind = "f" if workload.is_float else "i"
    parameters, weight, constant = f"%a: {types[0]}, %b: {types[1]}, %c: {types[2]}", "", ""
    if workload.ahead:
        parameters = f"%a: {types[0]}, %c: {types[2]}"
        contents = np.ascontiguousarray(data.rhs).tobytes().hex().upper()
        constant = f'memref.global "private" constant @weight : {types[1]} = dense<"0x{contents}">'
        weight = f"%b = memref.get_global @weight : {types[1]}"
    widened = [_widened(v, t, c) for v, t in (("%x", workload.types[0]), ("%y", workload.types[1]))]
    body = "\n    ".join(line for _, line in widened if line)
    x, y = (value for value, _ in widened)
    return f"""
{constant}
func.func @mm({parameters}) {{
  {weight}
  %zero = {zero}
  linalg.fill ins(%zero : {c}) outs(%c : {types[2]})
  linalg.generic {{indexing_maps = [{maps}], iterator_types = [{iterators}]}}
      ins(%a, %b : {types[0]}, {types[1]}) outs(%c : {types[2]}) {{
  ^bb0(%x: {a}, %y: {b}, %z: {c}):
    {body}
    %product = arith.mul{kind} {x}, {y} : {c}
    %sum = arith.add{kind} %z, %product : {c}
    linalg.yield %sum : {c}
  }}
  return
}}
"""


def _widened(value: str, type_: str, to: str) -> tuple[str, str]:
    """The name of `value` in the element type of the result, and the op that makes it, if it takes one."""
    if _MLIR.get(type_, type_) == to:
        return value, ""
    extension = _EXTENSION["f" if type_[0] in "bf" else type_[0]]
    return f"{value}1", f"{value}1 = arith.{extension} {value} : {_MLIR.get(type_, type_)} to {to}"
