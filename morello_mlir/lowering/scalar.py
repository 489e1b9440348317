"""The kernel that takes anything: scalar multiply-adds."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ..spec import is_float
from .builder import Builder, Index
from .bundle import First
from .digits import place_of
from .finish import Finish, on_last
from .plan import Sizes
from .views import Flat, Operand


def _multiply_add(b: Builder, x: str, y: str, acc: str) -> str:
    """acc + x * y, scalars."""
    if not is_float(b.machine.dtype):
        return b.plus(acc, b.value(f"arith.muli {x}, {y} : {b.machine.dtype}"))
    product = b.value(f"arith.mulf {x}, {y} fastmath<contract> : {b.machine.dtype}")
    return b.value(f"arith.addf {acc}, {product} fastmath<contract> : {b.machine.dtype}")


def scalar(b: Builder, sizes: Sizes, operands: Sequence[Operand], first: First, finish: Finish | None = None) -> None:
    """Scalar multiply-adds in loops over b, m, n and k: anything, with any strides."""
    lhs, rhs, out = operands[:3]
    a, w, c = lhs.flat(b), rhs.flat(b), out.flat(b)
    with b.loop(0, sizes[0], 1) as batch, b.loop(0, sizes[1], 1) as i, b.loop(0, sizes[3], 1) as j:
        at = _offset(b, out, batch, i, j)
        start = _initial(b, c, at, first)
        row, column = _offset(b, lhs, batch, i, 0), _offset(b, rhs, batch, 0, j)
        with b.carrying_loop(0, sizes[2], 1, [start], b.machine.dtype) as (k, carried):
            x = b.read(a, b.add(row, _along(b, k, lhs, 2)))
            y = b.read(w, b.add(column, _along(b, k, rhs, 1)))
            carried.results = [_multiply_add(b, x, y, carried.args[0])]
        (total,) = carried.results
        results = partial(Finish.elements, b=b, operands=operands, places=[(batch, i, j)], sums=[total])
        on_last(b, finish, results, partial(b.write, total, c, at))


def _along(b: Builder, k: Index, operand: Operand, dim: int) -> Index:
    """Elements from the start of dim `dim`, which is not packed, to place `k` on it."""
    view = operand.view
    if view.of(dim):
        return place_of(b, view.digits(dim), k)
    if view.group == 1:
        return b.mul(k, view.stride(dim))
    group = b.div(k, view.group)
    within = b.add(k, b.mul(group, -view.group))
    return b.add(b.mul(group, view.stride(dim)), within)


def _initial(b: Builder, c: Flat, at: Index, first: First) -> str:
    """What the sum starts from."""
    if first is True:
        return b.zero()
    if first is False:
        return b.read(c, at)
    with b.branch(first, b.machine.dtype, [b.zero()]) as computed:
        computed.results = [b.read(c, at)]
    return computed.results[0]


def _offset(b: Builder, operand: Operand, batch: Index, i: Index, j: Index) -> Index:
    """The element offset of a logical index. Within a packed dim the index may cross panels."""
    view, at = operand.view, b.mul(batch, operand.view.stride(0))
    for dim, place in ((1, i), (2, j)):
        if view.packed and view.packed[0] == dim and view.sizes[dim] > view.packed[1]:
            panel = b.div(place, view.packed[1])
            at = b.add(at, b.mul(panel, view.strides[1]))
            place = b.add(place, b.mul(panel, -view.packed[1]))
        at = b.add(at, b.mul(place, view.stride(dim)))
    return at
