"""Recognises contractions among linalg ops: by indexing maps, iterators and body, never by op name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlir import ir
from mlir.dialects import linalg

from .body import is_multiply_add_of_other_types, multiply_add_dtypes
from .borders import pads_of
from .loops import Loop
from .outcome import NotLifted
from .views import View, view_of
from .windows import Pad

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
    #: The input through which a window slides: two loops together index one of its dims. None: there is none.
    window: int | None = None
    #: The padded dims of that input.
    pads: tuple[Pad, ...] = ()

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
    maps = [indices_of(m, what) for m, what in zip(indexing_maps(op), _NAMES, strict=True)]
    views = tuple(view_of(v.type, what) for v, what in zip(values, _NAMES, strict=True))
    if not views[2].injective:
        raise NotLifted(f"elements of the output overlap ({values[2].type})")
    loops = _loops(op, maps, views)
    window = _window(maps, loops)
    pads = () if window is None or isinstance(values[2].type, ir.RankedTensorType) else pads_of(values[window])
    return Contraction(dtypes, loops, values, views, window, pads)  # type: ignore[arg-type]


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
    indices = indices_of(affine, what)
    if any(map(_steps_over, indices)):
        raise NotLifted(f"not a contraction: {what} is indexed by a sum")
    return [index[0][0] if index else None for index in indices]


#: How a dim of an operand is indexed: (loop, factor) of each term of a sum. None where the map says 0.
_Index = list[tuple[int, int]]


def indices_of(affine: Any, what: str) -> list[_Index]:
    """The index of each dim of an operand. Raises NotLifted for what is no sum of loops times positive numbers."""
    indices = [_terms(expr) for expr in affine.results]
    for index, expr in zip(indices, affine.results, strict=True):
        if index is None:
            raise NotLifted(f"not a contraction: {what} is indexed by {expr}")
    loops = [loop for index in indices if index is not None for loop, _ in index]
    for loop in loops:
        if loops.count(loop) > 1:
            raise NotLifted(f"not a contraction: {what} is indexed twice by loop d{loop}")
    return [index for index in indices if index is not None]


def _terms(expr: Any) -> _Index | None:
    """The terms of a sum of loops times positive numbers; None of any other expression."""
    if isinstance(expr, ir.AffineDimExpr):
        return [(expr.position, 1)]
    if isinstance(expr, ir.AffineConstantExpr):
        return [] if expr.value == 0 else None
    if isinstance(expr, ir.AffineAddExpr):
        parts = [_terms(expr.lhs), _terms(expr.rhs)]
        return None if None in parts else [term for part in parts if part is not None for term in part]
    if isinstance(expr, ir.AffineMulExpr):
        for loop, factor in ((expr.lhs, expr.rhs), (expr.rhs, expr.lhs)):
            if isinstance(loop, ir.AffineDimExpr) and isinstance(factor, ir.AffineConstantExpr) and factor.value > 0:
                return [(loop.position, factor.value)]
    return None


def _steps_over(index: _Index) -> bool:
    """Whether an index is more than a loop."""
    return len(index) > 1 or any(factor > 1 for _, factor in index)


def _window(maps: list[list[_Index]], loops: tuple[Loop, ...]) -> int | None:
    """The input that has a dim indexed by a sum. Raises NotLifted where that is no convolution of many channels."""
    windows = [i for i in (0, 1) if any(map(_steps_over, maps[i]))]
    if not windows:
        return None
    if len(windows) > 1:
        raise NotLifted("not a contraction: windows slide through both inputs")
    other = "mn"[1 - windows[0]]
    if not any(loop.role == other for loop in loops):
        raise NotLifted(f"a window slides through {_NAMES[windows[0]]}, and no loop of the other one shares it")
    return windows[0]


def _loops(op: Any, maps: list[list[_Index]], views: tuple[View, ...]) -> tuple[Loop, ...]:
    if any(map(_steps_over, maps[2])):
        raise NotLifted("not a contraction: the output is indexed by a sum")
    if any(not index and size != 1 for index, size in zip(maps[2], views[2].sizes, strict=True)):
        raise NotLifted("not a contraction: only a slice of the output is written")
    count = indexing_maps(op)[0].n_dims
    kinds = declared_iterators(op, count)
    loops = []
    for d in range(count):
        at = [_place(indices, d) for indices in maps]
        size = _trips(d, maps, views)
        strides = tuple(None if p is None else v.strides[p[0]] * p[1] for v, p in zip(views, at, strict=True))
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


def _place(indices: list[_Index], loop: int) -> tuple[int, int] | None:
    """(dim, factor) where an operand is indexed by `loop`."""
    return next(((i, factor) for i, index in enumerate(indices) for d, factor in index if d == loop), None)


def _trips(loop: int, maps: list[list[_Index]], views: tuple[View, ...]) -> int:
    """The trip count of a loop: the size of the dim that it indexes by itself in some operand; 1 where it indexes none.

    Raises NotLifted where it is in sums alone: no size says how far it goes.
    """
    for indices, view in zip(maps, views, strict=True):
        for index, size in zip(indices, view.sizes, strict=True):
            if index == [(loop, 1)]:
                return size
    if any(_place(indices, loop) for indices in maps):
        raise NotLifted(f"not a contraction: no operand is indexed by loop d{loop} alone")
    return 1


def declared_iterators(op: Any, count: int) -> list[str] | None:
    """The declared iterator types; None for named ops, whose maps imply them."""
    attributes = op.operation.attributes
    if "iterator_types" not in attributes:
        return None
    kinds = [str(a).rpartition("<")[2].rstrip(">") for a in ir.ArrayAttr(attributes["iterator_types"])]
    return kinds if len(kinds) == count else None
