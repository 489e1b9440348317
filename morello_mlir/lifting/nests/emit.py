"""Builds the IR of a lifted nest: a private function around one `morello.nest`, and calls of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mlir import ir
from mlir.dialects import arith, builtin, func, memref

from morello_mlir.nests import NestSpec

from ..emit import given_schedule, may_share, metadata
from .lift import LiftedNest


class NestFunctions:
    """The private functions made so far for one module; equal Specs share one. threads: how many each Spec has."""

    def __init__(self, module: Any, threads: int = 1):
        self._module = module
        self._threads = threads
        self._made: dict[Any, str] = {}
        body = module.regions[0].blocks[0]
        self._taken = {str(op.attributes["sym_name"]) for op in body.operations if "sym_name" in op.attributes}

    def call(self, op: Any, lifted: LiftedNest, holder: Any = None) -> None:
        """Puts a call in place of `op`, which stays for the caller to erase. holder: what a schedule by hand is an
        attribute of, where that is not `op`.

        A function takes each memref's base pointer as one of rank 0, and the offsets that are not zero (see
        `emit.Functions`).
        """
        values = list(dict.fromkeys(lifted.values))
        shifted = tuple(v.type.get_strides_and_offset()[1] != 0 for v in values)
        sources = tuple(values.index(v) for v in lifted.values)
        schedule = given_schedule(op if holder is None else holder)
        spec = lifted.spec
        if self._threads > 1 and may_share(schedule):
            spec = replace(spec, serial=False, threads=self._threads).canonical()
        elements = tuple(str(v.type.element_type) for v in values)
        key = (spec, sources, lifted.starts, shifted, elements, schedule)
        if key not in self._made:
            self._made[key] = self._unused_name(spec)
            with op.location, ir.InsertionPoint(self._module.regions[0].blocks[0]):
                _build(self._made[key], spec, sources, lifted.starts, shifted, elements, schedule)
        with op.location, ir.InsertionPoint(op):
            parts = [metadata(v) for v in values]
            offsets = [offset for (_, offset), s in zip(parts, shifted, strict=True) if s]
            func.CallOp([], self._made[key], [base for base, _ in parts] + offsets)

    def _unused_name(self, spec: NestSpec) -> str:
        dtypes = "_".join(dict.fromkeys(o.dtype for o in spec.operands))
        stem = f"morello_{spec.function.lower()}_{'x'.join(map(str, spec.dims))}_{dtypes}"
        name, count = stem, 0
        while f'"{name}"' in self._taken:
            count += 1
            name = f"{stem}_{count}"
        self._taken.add(f'"{name}"')
        return name


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

    kinds = [ir.MemRefType.get([], ir.Type.parse(e)) for e in elements]
    function = func.FuncOp(name, ([*kinds, *[ir.IndexType.get()] * sum(shifted)], []), visibility="private")
    function.attributes["llvm.linkage"] = ir.Attribute.parse("#llvm.linkage<internal>")
    block = function.add_entry_block()
    with ir.InsertionPoint(block):
        rest = iter(list(block.arguments)[len(kinds) :])
        offsets = [next(rest) if s else None for s in shifted]
        bases = [in_bytes(base) for base in list(block.arguments)[: len(kinds)]]
        views = []
        for k, (source, start) in enumerate(zip(sources, starts, strict=True)):
            offset = offsets[source]
            if start and offset is not None:
                offset = arith.addi(offset, arith.constant(ir.IndexType.get(), start))
            views.append(_view(bases[source], spec, k, start if offset is None else offset))
        build_nest_op(spec, views, schedule=schedule)
        func.ReturnOp([])


def in_bytes(base: Any) -> Any:
    """A memref of i1 as one of i8: that is how memory has it, once `morello-legalize-int-memory` has run."""
    if str(base.type.element_type) != "i1":
        return base
    kind = ir.MemRefType.get([], ir.IntegerType.get_signless(8))
    return builtin.UnrealizedConversionCastOp([kind], [base]).results[0]


def _view(base: Any, spec: NestSpec, k: int, offset: Any) -> Any:
    """Operand k as a memref whose dims are those of the nest along which it has a stride. offset: a number or a
    value."""
    strides = spec.operands[k].strides
    dims = [d for d, s in enumerate(strides) if s]
    sizes, steps = [spec.dims[d] for d in dims], [strides[d] for d in dims]
    static = isinstance(offset, int)
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    layout = ir.StridedLayoutAttr.get(offset if static else dynamic, steps)
    kind = ir.MemRefType.get(sizes, base.type.element_type, layout)
    return memref.ReinterpretCastOp(
        kind,
        base,
        [] if static else [offset],
        [],
        [],
        ir.DenseI64ArrayAttr.get([offset if static else dynamic]),
        ir.DenseI64ArrayAttr.get(sizes),
        ir.DenseI64ArrayAttr.get(steps),
    ).result
