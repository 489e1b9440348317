"""Builds the IR of a lifted nest: a private function around one `morello.nest`, and calls of it."""

from __future__ import annotations

from typing import Any

from mlir import ir
from mlir.dialects import func

from morello_mlir.nests import NestSpec

from ..emit import for_threads, given_schedule, metadata
from ..private import Names, in_bytes, plus, private_function, strided_view
from .lift import LiftedNest


class NestFunctions:
    """The private functions made so far for one module; equal Specs share one. threads: how many each Spec has."""

    def __init__(self, module: Any, threads: int = 1):
        self._module = module
        self._threads = threads
        self._made: dict[Any, str] = {}
        self.names = Names(module)

    def call(self, op: Any, lifted: LiftedNest, holder: Any = None) -> None:
        """Puts a call in place of `op`, which stays for the caller to erase. holder: what a schedule by hand is an
        attribute of, where that is not `op`.

        A function takes each memref's base pointer, and the offsets that are not zero (see `private`).
        """
        values = list(dict.fromkeys(lifted.values))
        shifted = tuple(v.type.get_strides_and_offset()[1] != 0 for v in values)
        sources = tuple(values.index(v) for v in lifted.values)
        schedule = given_schedule(op if holder is None else holder)
        spec = for_threads(lifted.spec, self._threads, schedule)
        elements = tuple(str(v.type.element_type) for v in values)
        key = (spec, sources, lifted.starts, shifted, elements, schedule)
        if key not in self._made:
            self._made[key] = self.names.unused(_stem(spec))
            with op.location, ir.InsertionPoint(self._module.regions[0].blocks[0]):
                _build(self._made[key], spec, sources, lifted.starts, shifted, elements, schedule)
        with op.location, ir.InsertionPoint(op):
            parts = [metadata(v) for v in values]
            offsets = [offset for (_, offset), s in zip(parts, shifted, strict=True) if s]
            func.CallOp([], self._made[key], [base for base, _ in parts] + offsets)


def _stem(spec: NestSpec) -> str:
    dtypes = "_".join(dict.fromkeys(o.dtype for o in spec.operands))
    return f"morello_{spec.function.lower()}_{'x'.join(map(str, spec.dims))}_{dtypes}"


def _build(
    name: str,
    spec: NestSpec,
    sources: tuple[int, ...],
    starts: tuple[int, ...],
    shifted: tuple[bool, ...],
    elements: tuple[str, ...],
    schedule: str | None,
) -> None:
    from morello_mlir.dialect import build_nest_op

    with private_function(name, [ir.Type.parse(e) for e in elements], shifted) as (given, offsets):
        bases = [in_bytes(base) for base in given]
        views = [
            _view(bases[source], spec, k, plus(offsets[source], start))
            for k, (source, start) in enumerate(zip(sources, starts, strict=True))
        ]
        build_nest_op(spec, views, schedule=schedule)


def _view(base: Any, spec: NestSpec, k: int, offset: Any) -> Any:
    """Operand k as a memref whose dims are those of the nest along which it has a stride. offset: a number or a
    value."""
    operand = spec.operands[k]
    if operand.borders or operand.axes:  # where its dims would begin and end there may be nothing, or anything
        return strided_view(base, offset, [operand.span(spec.dims)], [1])
    strides = operand.strides
    dims = [d for d, s in enumerate(strides) if s]
    return strided_view(base, offset, [spec.dims[d] for d in dims], [strides[d] for d in dims])
