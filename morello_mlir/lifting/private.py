"""The private functions that goals are put into: their names, and views of what they are given.

Such a function takes the base pointers of memrefs as memrefs of rank 0, because a view at an offset does not survive
the bare-pointer calling convention; offsets other than zero follow as `index` arguments.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mlir import ir
from mlir.dialects import arith, builtin, func, memref


class Names:
    """The symbols of a module: those that it has, and those given out."""

    def __init__(self, module: Any):
        body = module.regions[0].blocks[0]
        attribute = "sym_name"
        self._taken = {
            ir.StringAttr(op.attributes[attribute]).value for op in body.operations if attribute in op.attributes
        }

    def unused(self, stem: str) -> str:
        """`stem`, or `stem_1` and so on; taken from now on."""
        name, count = stem, 0
        while name in self._taken:
            count += 1
            name = f"{stem}_{count}"
        self._taken.add(name)
        return name


@contextmanager
def private_function(
    name: str, elements: Sequence[Any], shifted: Sequence[bool]
) -> Iterator[tuple[list[Any], list[Any]]]:
    """The body of a new function, made at the insertion point: gives the bases of memrefs with these element types, and
    for each of `shifted` an offset, or None where it is zero."""
    inputs = [*(ir.MemRefType.get([], e) for e in elements), *[ir.IndexType.get()] * sum(shifted)]
    function = func.FuncOp(name, (inputs, []), visibility="private")
    function.attributes["llvm.linkage"] = ir.Attribute.parse("#llvm.linkage<internal>")
    arguments = list(function.add_entry_block().arguments)
    given = iter(arguments[len(elements) :])
    with ir.InsertionPoint(function.entry_block):
        yield arguments[: len(elements)], [next(given) if s else None for s in shifted]
        func.ReturnOp([])


def plus(offset: Any, start: int) -> Any:
    """An offset (None: zero) and so many elements: a number where it is known."""
    if offset is None:
        return start
    return arith.addi(offset, arith.constant(ir.IndexType.get(), start)) if start else offset


def strided_view(base: Any, offset: Any, sizes: Sequence[int], strides: Sequence[int], dense: bool = False) -> Any:
    """A memref of a base. offset: a number or a value. dense: the type leaves strides and offset out, which are what it
    means without them."""
    static = isinstance(offset, int)
    place = offset if static else ir.ShapedType.get_dynamic_stride_or_offset()
    layout = None if dense else ir.StridedLayoutAttr.get(place, list(strides))
    return memref.ReinterpretCastOp(
        ir.MemRefType.get(list(sizes), base.type.element_type, layout),
        base,
        [] if static else [offset],
        [],
        [],
        ir.DenseI64ArrayAttr.get([place]),
        ir.DenseI64ArrayAttr.get(list(sizes)),
        ir.DenseI64ArrayAttr.get(list(strides)),
    ).result


def in_bytes(base: Any) -> Any:
    """A memref of i1 as one of i8: that is how memory has it, once `morello-legalize-int-memory` has run."""
    if str(base.type.element_type) != "i1":
        return base
    kind = ir.MemRefType.get([], ir.IntegerType.get_signless(8))
    return builtin.UnrealizedConversionCastOp([kind], [base]).results[0]
