"""The output tile in registers: loads and stores round a body that works on SSA vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from ..spec import dtype_bytes
from .builder import Builder, Index
from .bundle import Ask, Bundle, First
from .finish import Finish, on_last
from .kernels import REGISTER_KERNELS
from .leftover import emit_vector_spec
from .plan import DIMS, Leaf, Leftover, Loop, Plan, Registers
from .transpose import transposed
from .views import LHS, OUT, RHS, Flat, Operand, View

_LINE = 64
#: Multiply-adds of a tile for each of its lines that make asking for the lines ahead worth its time: a sixteenth of the
#: loads that may start meanwhile.
_WORTH = 16


def emit_registers(
    b: Builder,
    plan: Registers,
    operands: Sequence[Operand],
    first: First,
    looped: Index | None = None,
    finish: Finish | None = None,
    ask: Ask | None = None,
) -> None:
    """`out` to registers, the body, and back.

    The body starts from zero and what was in memory is added at the end: the loads are then folded into the additions,
    and wait for nothing, their lines having been prefetched before the k loop. Where the first step stores they are
    skipped: memory may hold anything, NaN included. Where neighbours in memory are rows of the tile it is transposed
    first. looped, ask: see `broadcast_fma`. finish: what is done to the sums
    before they are stored, where this is the last step. Tiles that are written past the caches ask for no lines.
    """
    _, m, depth, n = plan.sizes
    out = operands[OUT]
    rows, vectors, tail = Bundle.shape(m, n, b.machine.lanes)
    c = out.flat(b)
    flipped = out.view.has_unit(1) and not out.view.has_unit(2)
    count = n * -(-m // b.machine.lanes) if flipped else rows * vectors
    room = finish.room(b, count) if finish else None
    lines = _lines(out.view.exchanged(), n, m) if flipped else _lines(out.view, m, n)
    if not plan.streams and (looped is not None or depth * rows * vectors >= _WORTH * len(lines)):
        for at in lines:
            b.prefetch(c, at, "write")
    tile = Bundle(rows, vectors, tail, [b.zeros()] * (rows * vectors))
    tile = emit_body(b, plan.body, operands[LHS], operands[RHS], tile, looped, ask)
    if flipped:
        tile = _transposed(b, tile)
        operands = [*operands[:OUT], *(o.exchanged(b) for o in operands[OUT:])]
    sums = _with_memory(b, operands[OUT], tile, first)
    if plan.streams and first is True:
        _streamed(b, operands, sums, finish, room)
    else:
        _stored(b, operands, sums, finish, room)


def _with_memory(b: Builder, out: Operand, tile: Bundle, first: First) -> Bundle:
    """The tile, and what is in memory unless this is the first step."""
    if isinstance(first, str):
        with b.branch(first, b.machine.vector(), list(tile.values)) as computed:
            computed.results = _added(b, out.flat(b), out, tile)
        return tile.with_values(computed.results)
    return tile if first else tile.with_values(_added(b, out.flat(b), out, tile))


#: Vectors of a row of sums that are added up together.
_TOGETHER = 4


def add_up(b: Builder, sums: Operand, operands: Sequence[Operand], first: First, finish: Finish | None) -> None:
    """Adds the sums of all threads (the batches of `sums`) up, in order, and puts them where the output is, as register
    tiles are put there."""
    if not sums.view.has_unit(2):
        sums = sums.exchanged(b)
        operands = [*operands[:OUT], *(o.exchanged(b) for o in operands[OUT:])]
    _, rows, columns = sums.view.sizes
    lanes = b.machine.lanes
    width = min(_TOGETHER * lanes, columns)
    room = finish.room(b, -(-width // lanes)) if finish else None
    sums = sums.as_memref(b)
    places = [o.as_memref(b) for o in operands[OUT:]]

    def part(at: Index, size: int, row: Index) -> None:
        here = [o.tile(b, 1, row, 1).tile(b, 2, at, size) for o in (sums, *places)]
        _, vectors, tail = Bundle.shape(1, size, lanes)
        memory = here[0].flat(b)
        widths = [lanes] * (vectors - 1) + [tail]
        values = []
        for v, count in enumerate(widths):
            total = b.vread(memory, v * lanes, count)
            for thread in range(1, sums.view.sizes[0]):
                total = b.add_vectors(total, b.vread(memory, thread * sums.view.strides[0] + v * lanes, count))
            values.append(total)
        own = [*operands[:OUT], *here[1:]]
        _stored(b, own, _with_memory(b, own[OUT], Bundle(1, vectors, tail, values), first), finish, room)

    with b.loop(0, rows, 1) as row:
        full = columns - columns % width
        with b.loop(0, full, width) as at:
            part(at, width, row)
        if columns > full:
            part(full, columns - full, row)


def _transposed(b: Builder, tile: Bundle) -> Bundle:
    """The tile with its columns as rows."""
    lanes = b.machine.lanes
    columns = (tile.vectors - 1) * lanes + tile.tail
    _, vectors, tail = Bundle.shape(columns, tile.rows, lanes)
    values = [""] * (columns * vectors)
    for v, first in product(range(tile.vectors), range(0, tile.rows, lanes)):
        rows = tile.values[first * tile.vectors + v : (first + lanes) * tile.vectors : tile.vectors]
        block = [*rows, *[b.zeros()] * (lanes - len(rows))]
        for lane, column in enumerate(transposed(b, block, lanes, b.machine.dtype)[: columns - v * lanes]):
            values[(v * lanes + lane) * vectors + first // lanes] = column
    return Bundle(columns, vectors, tail, values)


def _streamed(b: Builder, operands: Sequence[Operand], sums: Bundle, finish: Finish | None, room: Flat | None) -> None:
    """As `_stored`, past the caches where the output turns out to begin at a line."""
    at = len(operands) - 1 if finish and finish.apart else OUT
    result = operands[at]
    dtype = finish.then.dtype if finish else b.machine.dtype
    size = dtype_bytes(result.view.dtype)
    lines = result.view.has_unit(2) and (result.view.sizes[1] == 1 or result.view.stride(1) * size % _LINE == 0)
    if not lines or dtype_bytes(dtype) != dtype_bytes(b.machine.dtype):
        _stored(b, operands, sums, finish, room)
        return
    address = b.value(f"llvm.ptrtoint {result.pointer(b)} : !llvm.ptr to i64")
    within = b.value(f"arith.andi {address}, {b.constant(str(_LINE - 1), 'i64')} : i64")
    aligned = b.value(f"arith.cmpi eq, {within}, {b.constant('0', 'i64')} : i64")
    b.line(f"scf.if {aligned} {{")
    _stored(b, [*operands[:at], replace(result, streams=True), *operands[at + 1 :]], sums, finish, room)
    b.line("} else {")
    _stored(b, operands, sums, finish, room)
    b.line("}")


def _stored(b: Builder, operands: Sequence[Operand], tile: Bundle, finish: Finish | None, room: Flat | None) -> None:
    """Stores the tile of sums, or what `finish` makes of it."""
    out = operands[OUT]
    on_last(b, finish, lambda f: f.tile(b, operands, tile, room), lambda: _stored_sums(b, out, tile))


def _stored_sums(b: Builder, out: Operand, tile: Bundle) -> None:
    c = out.flat(b)
    for at, width, value in zip(*_places(b, out, tile), tile.values, strict=True):
        b.vwrite(value, c, at, width, stride=out.view.stride(2))


def _places(b: Builder, out: Operand, tile: Bundle) -> tuple[list[int], list[int]]:
    """Element offset and width of every vector of the tile."""
    row, lane, lanes = out.view.stride(1), out.view.stride(2), b.machine.lanes
    cells = [(r, v) for r in range(tile.rows) for v in range(tile.vectors)]
    offsets = [r * row + v * lanes * lane for r, v in cells]
    return offsets, [tile.tail if v == tile.vectors - 1 else lanes for _, v in cells]


def _added(b: Builder, c: Flat, out: Operand, tile: Bundle) -> list[str]:
    """The tile plus what is in memory."""
    stride = out.view.stride(2)
    return [
        b.add_vectors(b.vread(c, at, width, stride=stride), value)
        for at, width, value in zip(*_places(b, out, tile), tile.values, strict=True)
    ]


def _lines(out: View, m: int, n: int) -> list[int]:
    """Element offsets that touch every line of the tile, wherever it starts; [] where rows have no unit stride."""
    if not out.has_unit(2):
        return []
    step, row = _LINE // dtype_bytes(out.dtype), out.stride(1)
    runs = [(0, (m - 1) * row + n)] if row == n else [(r * row, n) for r in range(m)]
    # The last element of a run may lie in one more line.
    return [start + at for start, size in runs for at in sorted({*range(0, size, step), size - 1})]


def emit_body(
    b: Builder,
    plan: Plan,
    lhs: Operand,
    rhs: Operand,
    tile: Bundle,
    looped: Index | None = None,
    ask: Ask | None = None,
) -> Bundle:
    """A Spec whose output is a bundle of vectors: takes it and returns it."""
    if isinstance(plan, Leaf):
        more = (ask,) if ask else ()
        return REGISTER_KERNELS[plan.kernel](b, plan.sizes, lhs, rhs, tile, looped, *more)
    if isinstance(plan, Leftover):
        return tile.with_values(emit_vector_spec(b, plan, lhs, rhs, tile.values))
    assert isinstance(plan, Loop) and plan.dim == "k", "only reduction loops stand under registers"
    return _reduction_loop(b, plan, lhs, rhs, tile)


def _reduction_loop(b: Builder, plan: Loop, lhs: Operand, rhs: Operand, tile: Bundle) -> Bundle:
    lhs, rhs = lhs.as_memref(b), rhs.as_memref(b)
    with b.carrying_loop(0, plan.full, plan.size, list(tile.values), b.machine.vector()) as (k, carried):
        x, y = lhs.tile(b, 2, k, plan.size), rhs.tile(b, 1, k, plan.size)
        carried.results = list(emit_body(b, plan.body, x, y, tile.with_values(carried.args)).values)
    tile = tile.with_values(carried.results)
    if plan.rest is None:
        return tile
    left = plan.sizes[DIMS.index("k")] - plan.full
    x, y = lhs.tile(b, 2, plan.full, left), rhs.tile(b, 1, plan.full, left)
    return emit_body(b, plan.rest, x, y, tile)
