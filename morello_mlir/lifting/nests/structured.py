"""What is to be known of one linalg op before it becomes (part of) a nest: loops, sizes, where operands are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlir import ir

from ..contraction import declared_iterators, indexing_maps, is_structured, operands_of
from ..outcome import NotLifted
from ..tables import LOADS, check_table
from .index import Index

#: Reshapes, which move nothing.
VIEWS = ("tensor.expand_shape", "tensor.collapse_shape")
_PURE = ("arith.", "math.", "linalg.index", "linalg.yield")


@dataclass(frozen=True, eq=False)
class Structured:
    """A linalg op whose sizes are static. Loops of one trip have gone from the indices.

    input_count: of its operands, which are the inputs, then the outputs. maps: by operand, the index along each of its
    dims, in loops. written: the loops that index the outputs; reduced: the others of more than one trip, in order.
    """

    op: Any
    input_count: int
    maps: tuple[tuple[Index, ...], ...]
    sizes: tuple[int, ...]
    written: frozenset[int]
    reduced: tuple[int, ...]

    @property
    def operands(self) -> list[Any]:
        """As they are now: other nests' results may have taken the place of what they were."""
        return list(self.op.operands)

    @property
    def inputs(self) -> list[Any]:
        return self.operands[: self.input_count]

    @property
    def outputs(self) -> list[Any]:
        return self.operands[self.input_count :]

    @property
    def block(self) -> Any:
        return self.op.regions[0].blocks[0]

    @property
    def yielded(self) -> list[Any]:
        return list(list(self.block.operations)[-1].operation.operands)

    def output_maps(self) -> tuple[tuple[Index, ...], ...]:
        return self.maps[self.input_count :]


def structured(op: Any) -> Structured:
    """Raises NotLifted with the reason where a linalg op is of no form that we know."""
    if not is_structured(op):
        raise NotLifted("it has no loops and body that we know")
    inputs, outputs = operands_of(op)
    affine = indexing_maps(op)
    for value in (*inputs, *outputs):
        _check_type(value)
    _check_body(op.regions[0].blocks[0])
    count = affine[0].n_dims
    exprs = [[_linear(e) for e in m.results] for m in affine]
    sizes = _sizes(op, count, exprs, (*inputs, *outputs))
    one = [Index.dim(d) if n != 1 else Index() for d, n in enumerate(sizes)]
    maps = tuple(tuple(e.substitute(one) for e in m) for m in exprs)
    written = _written(maps[len(inputs) :], outputs, sizes)
    reduced = tuple(d for d in range(count) if sizes[d] != 1 and d not in written)
    _check_iterators(op, count, sizes, written)
    return Structured(op, len(inputs), maps, sizes, written, reduced)


def _check_type(value: Any) -> None:
    kind = value.type
    if not isinstance(kind, (ir.RankedTensorType, ir.MemRefType)):
        return
    if not kind.has_static_shape:
        raise NotLifted(f"it has dynamic sizes ({kind})")
    if 0 in list(kind.shape):
        raise NotLifted(f"it is empty ({kind})")
    if isinstance(kind, ir.RankedTensorType) and kind.encoding is not None:
        raise NotLifted(f"a tensor has an encoding ({kind})")


def _check_body(block: Any) -> None:
    """Raises NotLifted where a body does more than compute and read tables: assertions, other accesses of memory."""
    for op in block.operations:
        name = op.operation.name
        if name in LOADS:
            _check_load(op.operation)
        elif not name.startswith(_PURE) or len(op.operation.regions):
            raise NotLifted(f"its body has '{name}'")


def _check_load(op: Any) -> None:
    """Raises NotLifted where an op in a body reads an element of what cannot be an operand of a nest."""
    if (why := check_table(op.operands[0].type)) is not None:
        raise NotLifted(why)
    _check_type(op.operands[0])


def _linear(expr: Any) -> Index:
    """An affine expression as an Index. Raises NotLifted."""
    if isinstance(expr, ir.AffineDimExpr):
        return Index.dim(expr.position)
    if isinstance(expr, ir.AffineConstantExpr):
        return Index(expr.value)
    if isinstance(expr, ir.AffineAddExpr):
        return _linear(expr.lhs) + _linear(expr.rhs)
    if isinstance(expr, ir.AffineMulExpr):
        a, b = _linear(expr.lhs), _linear(expr.rhs)
        if not a.terms or not b.terms:
            return b.times(a.base) if not a.terms else a.times(b.base)
    raise NotLifted(f"an operand is indexed by {expr}")


def _sizes(op: Any, count: int, exprs: list[list[Index]], operands: tuple[Any, ...]) -> tuple[int, ...]:
    sizes: list[int | None] = [None] * count
    for m, value in zip(exprs, operands, strict=True):
        for index, size in zip(m, _shape(value), strict=True):
            if index.base == 0 and len(index.terms) == 1 and index.terms[0][1] == 1:
                sizes[index.terms[0][0]] = size
    if None in sizes:
        raise NotLifted(f"no operand says how long loop d{sizes.index(None)} is")
    return tuple(sizes)  # type: ignore[arg-type]


def _shape(value: Any) -> list[int]:
    return list(value.type.shape) if isinstance(value.type, ir.ShapedType) else []


def _written(maps: tuple[tuple[Index, ...], ...], outputs: list[Any], sizes: tuple[int, ...]) -> frozenset[int]:
    """The loops that index the outputs. Raises NotLifted unless each output is indexed by all of them, one by one."""
    found: frozenset[int] | None = None
    for m, value in zip(maps, outputs, strict=True):
        dims = [d for index in m for d in index.dims]
        plain = all(not index.terms or index.terms[0][1] == 1 for index in m)
        if len(dims) != len(set(dims)) or not plain or any(len(index.terms) > 1 for index in m):
            raise NotLifted("an output is not indexed by one loop a dim")
        if any(index.base or (not index.terms and size != 1) for index, size in zip(m, value.type.shape, strict=True)):
            raise NotLifted("only a slice of an output is written")
        if any(sizes[d] != size for index, size in zip(m, value.type.shape, strict=True) for d in index.dims):
            raise NotLifted("only a part of an output is written")
        if found is not None and found != frozenset(dims):
            raise NotLifted("its outputs have different loops")
        found = frozenset(dims)
    if found is None:
        raise NotLifted("it has no output")
    return found


def _check_iterators(op: Any, count: int, sizes: tuple[int, ...], written: frozenset[int]) -> None:
    kinds = declared_iterators(op, count) or []
    for d in range(len(kinds)):
        expected = "parallel" if d in written else "reduction"
        if sizes[d] != 1 and kinds[d] != expected:
            raise NotLifted(f"loop d{d} is declared {kinds[d]} and indexed as {expected}")
