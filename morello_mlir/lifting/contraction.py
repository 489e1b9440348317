"""Recognises contractions among linalg ops: by indexing maps, iterators and body, never by op name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlir import ir
from mlir.dialects import linalg

from .body import is_multiply_add_of_other_types, multiply_add_dtypes
from .outcome import NotLifted
from .plan import Loop
from .views import View, view_of

_NAMES = ("the first input", "the second input", "the output")
_ROLE: dict[tuple[bool, ...], str] = {
    (True, True, True): "b",
    (True, False, True): "m",
    (False, True, True): "n",
    (True, True, False): "k",
}


@dataclass(frozen=True)
class Contraction:
    """`out[...] (+)= lhs[...] * rhs[...]` over `loops` (all of them, also of one trip). The dtypes, values and views go
    (lhs, rhs, out), which are the linalg op's operands in order."""

    dtypes: tuple[str, str, str]
    loops: tuple[Loop, ...]
    values: tuple[Any, Any, Any]
    views: tuple[View, View, View]

    @property
    def on_tensors(self) -> bool:
        return isinstance(self.values[2].type, ir.RankedTensorType)


def is_structured(op: Any) -> bool:
    """Whether an op is a linalg op with indexing maps and a body (so not `linalg.pack`, `linalg.yield`, ...)."""
    o = op.operation
    if not o.name.startswith("linalg.") or len(o.regions) != 1 or len(o.regions[0].blocks) != 1:
        return False
    body = list(o.regions[0].blocks[0].operations)
    return bool(body) and body[-1].operation.name == "linalg.yield" and linalg.get_indexing_maps(o) is not None


def indexing_maps(op: Any) -> list[Any]:
    """The affine maps of a structured linalg op, inputs first. (A list: MLIR aborts on a negative index of its own.)"""
    return [m.value for m in linalg.get_indexing_maps(op.operation)]


def operands_of(op: Any) -> tuple[list[Any], list[Any]]:
    """(inputs, outputs) of a structured linalg op."""
    o = op.operation
    operands = list(o.operands)
    maps = len(indexing_maps(o))
    if "operandSegmentSizes" in o.attributes:
        inputs = ir.DenseI32ArrayAttr(o.attributes["operandSegmentSizes"])[0]
    elif o.name == "linalg.reduce":
        inputs = maps // 2
    else:  # map, transpose, broadcast: one output, the last
        inputs = maps - 1
    return operands[:inputs], operands[inputs:]


def recognise(op: Any) -> Contraction:
    """The contraction that `op` computes. Raises NotLifted with the reason where it is none, or none of ours."""
    if not is_structured(op):
        raise NotLifted("it is not a contraction")
    inputs, outputs = operands_of(op)
    if len(inputs) != 2 or len(outputs) != 1:
        raise NotLifted(f"not a contraction: it has {_count(inputs, 'input')} and {_count(outputs, 'output')}")
    dtypes = _dtypes(op)
    values = (*inputs, *outputs)
    maps = [dims_of(m, what) for m, what in zip(indexing_maps(op), _NAMES, strict=True)]
    views = tuple(view_of(v.type, what) for v, what in zip(values, _NAMES, strict=True))
    if not views[2].injective:
        raise NotLifted(f"elements of the output overlap ({values[2].type})")
    loops = _loops(op, maps, views)
    return Contraction(dtypes, loops, values, views)  # type: ignore[arg-type]


def _count(values: list[Any], noun: str) -> str:
    return f"{len(values)} {noun}{'' if len(values) == 1 else 's'}"


def _dtypes(op: Any) -> tuple[str, str, str]:
    """The dtypes of lhs, rhs and out. Raises NotLifted where the body is no multiply-add of types that we have."""
    block = op.operation.regions[0].blocks[0]
    dtypes = multiply_add_dtypes(block)
    if dtypes is not None:
        return dtypes
    if is_multiply_add_of_other_types(block):
        lhs, rhs, out = (str(a.type) for a in block.arguments)
        raise NotLifted(f"element types {lhs} x {rhs} -> {out}: no kernel adds these up")
    raise NotLifted("not a contraction: the body is not out + lhs * rhs")


def dims_of(affine: Any, what: str) -> list[int | None]:
    """The loop of each dim of an operand; None where the map says 0. Raises NotLifted for anything else."""
    dims: list[int | None] = []
    for expr in affine.results:
        if isinstance(expr, ir.AffineDimExpr):
            if expr.position in dims:
                raise NotLifted(f"not a contraction: {what} is indexed twice by loop d{expr.position}")
            dims.append(expr.position)
        elif isinstance(expr, ir.AffineConstantExpr) and expr.value == 0:
            dims.append(None)
        else:
            raise NotLifted(f"not a contraction: {what} is indexed by {expr}")
    return dims


def _loops(op: Any, maps: list[list[int | None]], views: tuple[View, ...]) -> tuple[Loop, ...]:
    if any(dim is None and size != 1 for dim, size in zip(maps[2], views[2].sizes, strict=True)):
        raise NotLifted("not a contraction: only a slice of the output is written")
    count = indexing_maps(op)[0].n_dims
    kinds = declared_iterators(op, count)
    loops = []
    for d in range(count):
        at = [dims.index(d) if d in dims else None for dims in maps]
        size = next((v.sizes[i] for v, i in zip(views, at, strict=True) if i is not None), 1)
        strides = tuple(None if i is None else v.strides[i] for v, i in zip(views, at, strict=True))
        present = tuple(s is not None for s in strides)
        role = _ROLE.get(present)
        if size == 1 and role is None:
            continue  # a loop of one trip does nothing, wherever it occurs
        if role is None:
            where = [what for what, p in zip(_NAMES, present, strict=True) if p]
            raise NotLifted(f"not a contraction: loop d{d} indexes {' and '.join(where) or 'no operand'} alone")
        expected = "reduction" if role == "k" else "parallel"
        if size != 1 and kinds is not None and kinds[d] != expected:
            raise NotLifted(f"not a contraction: loop d{d} is declared {kinds[d]} and indexed as {expected}")
        loops.append(Loop(role, size, strides))
    if not any(loop.role == "k" for loop in loops):
        raise NotLifted("not a contraction: no loop is reduced")
    return tuple(loops)


def declared_iterators(op: Any, count: int) -> list[str] | None:
    """The declared iterator types; None for named ops, whose maps imply them."""
    attributes = op.operation.attributes
    if "iterator_types" not in attributes:
        return None
    kinds = [str(a).rpartition("<")[2].rstrip(">") for a in ir.ArrayAttr(attributes["iterator_types"])]
    return kinds if len(kinds) == count else None
