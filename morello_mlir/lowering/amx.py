"""Kernels on tile registers (AMX): tiles of sums are loaded, added to over all of k, and stored.

Tiles are named by number: LLVM's allocation of them would set their shapes in every function, which takes as long as
a dozen multiplications, and cannot always. Here the shapes are set once, above all loops, in each thread: 16 rows of
64 bytes for all. Kernels that have smaller tiles set theirs, and these again behind them. Nothing is masked: a tile is
as large as what it holds, except along k, where what lacks to whole rows is copied with zeros after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..actions import TILE_KERNELS, TileKernel, rows_at_once
from ..actions.amx import ROW_BYTES, SIDE
from ..spec import dtype_bytes
from .builder import Builder, Index
from .bundle import Bundle, First
from .finish import Finish, on_last
from .plan import Leaf, Parallel, Plan, Sizes, children
from .views import OUT, Flat, Operand

#: Tile registers, and bytes of the description of their shapes.
_TILES, _CONFIG = 8, 64
_KERNELS = {k.name: k for k in TILE_KERNELS}
_PRODUCTS = {
    ("bf16", "bf16"): "tdpbf16ps",
    ("u8", "i8"): "tdpbusd",
    ("i8", "u8"): "tdpbsud",
    ("i8", "i8"): "tdpbssd",
    ("u8", "u8"): "tdpbuud",
}


@dataclass(frozen=True, slots=True)
class _Block:
    """Rows of the output that are worked on at once: rows of each tile, and how many tiles are side by side."""

    rows: tuple[int, ...]
    across: int

    def sums(self, i: int, j: int) -> int:
        """The tile of sums of tile row `i` and tile column `j`."""
        return i * self.across + j

    def lhs(self, i: int) -> int:
        """The tile of tile row `i` of lhs."""
        return self._input(i, len(self.rows), self._taken, self._for_lhs)

    def rhs(self, j: int) -> int:
        """The tile of tile column `j` of rhs."""
        start = self._taken + self._for_lhs
        return self._input(j, self.across, start, _TILES - start)

    @property
    def _taken(self) -> int:
        return len(self.rows) * self.across

    @property
    def _for_lhs(self) -> int:
        """How many tiles lhs gets; rhs gets what is left."""
        return min(len(self.rows), _TILES - self._taken - min(self.across, 3))

    @staticmethod
    def _input(number: int, count: int, start: int, room: int) -> int:
        """The last of `count`, which may be smaller, has a tile to itself; the others take turns, where they must."""
        room = min(count, room)
        return start + (room - 1 if number == count - 1 else number % max(room - 1, 1))

    @property
    def shapes(self) -> list[int]:
        """The description of the tiles' shapes."""
        rows = dict.fromkeys(range(_TILES), SIDE)
        for i, count in enumerate(self.rows):
            rows[self.lhs(i)] = count
            rows |= {self.sums(i, j): count for j in range(self.across)}
        return _described(rows)


def _described(rows: Mapping[int, int]) -> list[int]:
    """What LDTILECFG takes: bytes of a row, and rows, of each tile."""
    out = [0] * _CONFIG
    out[0] = 1
    for tile, count in rows.items():
        out[16 + 2 * tile], out[48 + tile] = ROW_BYTES, count
    return out


_FULL = _described(dict.fromkeys(range(_TILES), SIDE))


def _cut(size: int) -> tuple[int, ...]:
    return tuple(min(SIDE, size - at) for at in range(0, size, SIDE))


def configure(b: Builder, shapes: Sequence[int] = _FULL) -> None:
    """Sets the shapes of the tiles. It takes memory on the stack: not in a loop."""
    type_, vector = f"memref<{_CONFIG}xi8>", f"vector<{_CONFIG}xi8>"
    room = Flat(b.value(f"memref.alloca() {{alignment = 64 : i64}} : {type_}"), type_, "i8")
    values = b.constant(f"dense<[{', '.join(map(str, shapes))}]>", vector)
    b.line(f"vector.store {values}, {room.name}[{b.index(0)}] : {type_}, {vector}")
    b.line(f'llvm.call_intrinsic "llvm.x86.ldtilecfg"({_pointer(b, _address(b, room))}) : (!llvm.ptr) -> ()')


def release(b: Builder) -> None:
    """Lets go of the tiles: the system need no longer save them."""
    b.line('llvm.call_intrinsic "llvm.x86.tilerelease"() : () -> ()')


#: Sets the shapes that all kernels expect, in a function of its own: what is on its stack is gone when it returns.
CONFIGURE = "morello_tiles"


def on_tiles(plan: Plan, forked: bool = False) -> bool:
    """Whether some kernel on tiles runs in `plan`, on this thread. forked: inside of what threads share as well."""
    if isinstance(plan, Leaf):
        return plan.kernel in _KERNELS
    if isinstance(plan, Parallel) and not forked:
        return False
    return any(on_tiles(child, forked) for child in children(plan))


def tile_kernel(name: str):  # type: ignore[no-untyped-def]
    """What emits the kernel `name`."""
    kernel = _KERNELS[name]

    def emit(b: Builder, sizes: Sizes, operands: Sequence[Operand], first: First, finish: Finish | None = None) -> None:
        _Emission(b, kernel, sizes, operands, first, finish).run()

    return emit


class _Emission:
    """One kernel: `m` x `n` x `depth`, reading lhs as it lies and a panel of rhs. operands, first, finish: as those of
    other kernels."""

    def __init__(
        self,
        b: Builder,
        kernel: TileKernel,
        sizes: Sizes,
        operands: Sequence[Operand],
        first: First,
        finish: Finish | None,
    ):
        self.b, self.kernel, self.first, self.finish = b, kernel, first, finish
        self.operands = operands
        _, self.m, self.depth, self.n = sizes
        self.lhs, self.rhs, self.out = operands[:3]
        self.a, self.w, self.c = (o.flat(b) for o in operands[:3])
        self.starts = [_address(b, x) for x in (self.a, self.w, self.c)]
        assert self.rhs.view.packed is not None
        #: Bytes of a row of the panel, which holds a group for each place.
        self.rhs_row = self.rhs.view.packed[1] * 4
        self.product = _PRODUCTS[self.lhs.view.dtype, self.rhs.view.dtype]
        alike = self.out.view.has_unit(2) and self.out.view.dtype == b.machine.dtype
        #: Tile columns of sums that are loaded from the output and stored to it; the others go by way of a copy.
        self.direct = [alike and columns == SIDE for columns in _cut(self.n)]

    def run(self) -> None:
        b, across = self.b, len(self.direct)
        high = rows_at_once(across)
        rows = min(high, self.m)
        finishes = self.finish is not None and self.finish.last is not False
        if finishes or not all(self.direct):
            self.copy = self._room(b.machine.dtype, across * rows * SIDE)
        if self.depth % self.kernel.depth:
            self.lhs_tail = self._room(self.lhs.view.dtype, rows * self.kernel.depth)
            self.rhs_tail = self._room(self.rhs.view.dtype, across * SIDE * self.kernel.depth)
            self._copy_rhs_tail()
        whole = self.m - self.m % high
        shapes = _FULL
        for low, upper, rows in ((0, whole, high), (whole, self.m, self.m - whole)):
            if low == upper:
                continue
            block = _Block(_cut(rows), across)
            if block.shapes != shapes:
                shapes = block.shapes
                configure(b, shapes)
            with b.loop(low, upper, rows) as row:
                self._block(block, row, rows)
        if shapes != _FULL:
            configure(b, _FULL)

    # ---------------------------------------------------------------- memory

    def _room(self, dtype: str, elements: int) -> Flat:
        """Memory on the stack."""
        type_ = f"memref<{elements}x{'i8' if dtype == 'u8' else dtype}>"
        return Flat(self.b.value(f"memref.alloca() {{alignment = 64 : i64}} : {type_}"), type_, dtype)

    def _copy_rhs_tail(self) -> None:
        """The last rows of the panel, tile by tile, and zeros after them."""
        b, group = self.b, self.kernel.group
        tail, width, lanes = self.depth % self.kernel.depth, self.rhs_row // 4 * group, SIDE * group
        start = (self.depth - tail) // group * width
        for j in range(-(-self.n // SIDE)):
            for row in range(SIDE):
                have = min(lanes, width - j * lanes)
                if row * group < tail:
                    x = b.vload(self.w, start + row * width + j * lanes, have, lanes)
                else:
                    x = b.zeros(lanes, self.rhs_tail.dtype)
                b.vstore(x, self.rhs_tail, (j * SIDE + row) * lanes, lanes, lanes)

    def _copy_lhs_tail(self, row: Index, rows: int) -> None:
        b, depth = self.b, self.kernel.depth
        tail, stride = self.depth % depth, self.lhs.view.stride(1)
        start = b.add(b.mul(row, stride), self.depth - tail)
        with b.loop(0, rows, 1) as r:
            x = b.vload(self.a, b.add(start, b.mul(r, stride)), tail, depth)
            b.vstore(x, self.lhs_tail, b.mul(r, depth), depth, depth)

    # ---------------------------------------------------------------- tiles

    def _tile(self, name: str, tile: int, start: str, at: Index, stride: int) -> None:
        """Loads or stores a tile `at` bytes from an address, its rows `stride` bytes apart."""
        b = self.b
        where = _pointer(b, b.value(f"arith.addi {start}, {b.index(at)} : index") if at != 0 else start)
        values = f"{b.constant(str(tile), 'i8')}, {where}, {b.constant(str(stride), 'i64')}"
        b.line(f'llvm.call_intrinsic "llvm.x86.{name}"({values}) : (i8, !llvm.ptr, i64) -> ()')

    def _block(self, block: _Block, row: Index, rows: int) -> None:
        """`rows` rows of the output from `row` on."""
        b, depth = self.b, self.kernel.depth
        whole = self.depth - self.depth % depth
        self._start(block, row)
        lhs_bytes = dtype_bytes(self.lhs.view.dtype)
        stride = self.lhs.view.stride(1) * lhs_bytes
        if whole:
            with b.loop(0, whole, depth) as k:
                at = b.add(b.mul(row, stride), b.mul(k, lhs_bytes))
                self._step(
                    block, (self.starts[0], at, stride), (self.starts[1], b.mul(k, self.rhs_row // self.kernel.group))
                )
        if whole < self.depth:
            self._copy_lhs_tail(row, rows)
            self._step(block, (_address(b, self.lhs_tail), 0, ROW_BYTES), (_address(b, self.rhs_tail), 0), tail=True)
        self._finish(block, row, rows)

    def _step(self, block: _Block, lhs: tuple[str, Index, int], rhs: tuple[str, Index], tail: bool = False) -> None:
        """A step along k: every tile of lhs and rhs is loaded once. lhs: address, offset and bytes between rows; rhs:
        address and offset."""
        b = self.b
        start, at, stride = lhs

        def load_lhs(i: int) -> None:
            self._tile("tileloadd64", block.lhs(i), start, b.add(at, i * SIDE * stride), stride)

        def load_rhs(j: int) -> None:
            row, further = (ROW_BYTES, j * SIDE * ROW_BYTES) if tail else (self.rhs_row, j * ROW_BYTES)
            self._tile("tileloadd64", block.rhs(j), rhs[0], b.add(rhs[1], further), row)

        def multiply(i: int, j: int) -> None:
            numbers = (block.sums(i, j), block.lhs(i), block.rhs(j))
            values = ", ".join(b.constant(str(n), "i8") for n in numbers)
            b.line(f'llvm.call_intrinsic "llvm.x86.{self.product}"({values}) : (i8, i8, i8) -> ()')

        high, across = len(block.rows), block.across
        if high <= across:
            # Tiles of lhs stay, those of rhs pass.
            for j in range(across):
                load_rhs(j)
                for i in range(high):
                    if j == 0:
                        load_lhs(i)
                    multiply(i, j)
            return
        for i in range(high):
            load_lhs(i)
            for j in range(across):
                if i == 0:
                    load_rhs(j)
                multiply(i, j)

    def _start(self, block: _Block, row: Index) -> None:
        """The tiles of sums: zeros, or what is in the output."""
        b = self.b

        def clear(direct: bool) -> None:
            for i in range(len(block.rows)):
                for j in (j for j, each in enumerate(self.direct) if each is direct):
                    tile = b.constant(str(block.sums(i, j)), "i8")
                    b.line(f'llvm.call_intrinsic "llvm.x86.tilezero"({tile}) : (i8) -> ()')

        clear(False)
        if self.first is True or not any(self.direct):
            clear(True)
        elif self.first is False:
            self._sums("tileloadd64", block, row)
        else:
            b.line(f"scf.if {self.first} {{")
            clear(True)
            b.line("} else {")
            self._sums("tileloadd64", block, row)
            b.line("}")

    def _sums(self, name: str, block: _Block, row: Index) -> None:
        """Loads tiles of sums from the output, or stores them there."""
        stride = self.out.view.stride(1) * 4
        at = self.b.mul(row, stride)
        for i in range(len(block.rows)):
            for j in (j for j, direct in enumerate(self.direct) if direct):
                further = i * SIDE * stride + j * ROW_BYTES
                self._tile(name, block.sums(i, j), self.starts[2], self.b.add(at, further), stride)

    def _finish(self, block: _Block, row: Index, rows: int) -> None:
        """Stores the sums, or what is made of them."""

        def results(finish: Finish) -> None:
            self._results(finish, block, row, rows)

        on_last(self.b, self.finish, results, lambda: self._store(block, row, rows))

    def _store(self, block: _Block, row: Index, rows: int) -> None:
        """Stores the sums; those of no whole tile, or that are rounded or lie apart, by way of a copy."""
        self._sums("tilestored64", block, row)
        columns = [j for j, direct in enumerate(self.direct) if not direct]
        if not columns:
            return
        b, out = self.b, self.out.view
        self._to_copy(block, columns, rows)
        with b.loop(0, rows, 1) as r:
            for j in columns:
                x, at = self._of_copy(row, r, j, rows)
                b.vwrite(x, self.c, at, self._width(j), stride=out.stride(2))

    def _results(self, finish: Finish, block: _Block, row: Index, rows: int) -> None:
        """Writes what is made of the sums: row by row, by way of a copy."""
        b, columns = self.b, list(range(block.across))
        self._to_copy(block, columns, rows)
        operands = [o.as_memref(b) for o in self.operands]
        with b.loop(0, rows, 1) as r:
            sums = [self._of_copy(row, r, j, rows)[0] for j in columns]
            at = b.add(row, r)
            here = [*operands[:OUT], *(o.tile(b, 1, at, 1) for o in operands[OUT:])]
            finish.tile(b, here, Bundle(1, block.across, self._width(columns[-1]), sums), None)

    def _width(self, j: int) -> int:
        """Columns of tile column `j`."""
        return min(SIDE, self.n - j * SIDE)

    def _to_copy(self, block: _Block, columns: Sequence[int], rows: int) -> None:
        """Stores the sums of some tile columns to the copy, one column of tiles after the other."""
        copy = _address(self.b, self.copy)
        for j in columns:
            for i in range(len(block.rows)):
                at = (j * rows + i * SIDE) * ROW_BYTES
                self._tile("tilestored64", block.sums(i, j), copy, at, ROW_BYTES)

    def _of_copy(self, row: Index, r: Index, j: int, rows: int) -> tuple[str, Index]:
        """Sums of row `r` of the block at `row`, tile column `j`, with what was in the output, and where they are
        there."""
        b, out = self.b, self.out.view
        at = b.add(b.add(b.mul(row, out.stride(1)), b.mul(r, out.stride(1))), j * SIDE * out.stride(2))
        x = b.vload(self.copy, b.add(b.mul(r, SIDE), j * rows * SIDE), SIDE)
        if self.direct[j] or self.first is True:
            return x, at
        if self.first is False:
            return self._added(x, at, self._width(j)), at
        with b.branch(self.first, b.machine.vector(), [x]) as computed:
            computed.results = [self._added(x, at, self._width(j))]
        return computed.results[0], at

    def _added(self, x: str, at: Index, columns: int) -> str:
        """`x` plus what is in the output."""
        return self.b.add_vectors(self.b.vread(self.c, at, columns, stride=self.out.view.stride(2)), x)


def _address(b: Builder, mem: Flat) -> str:
    """The address of the first element, as an index."""
    base, offset = b.name(), b.name()
    size, stride = b.name(), b.name()
    element = mem.type.split("x", 1)[1].split(",")[0].rstrip(">")
    b.line(
        f"{base}, {offset}, {size}, {stride} = memref.extract_strided_metadata {mem.name} : {mem.type} -> "
        f"memref<{element}>, index, index, index"
    )
    start = b.value(f"memref.extract_aligned_pointer_as_index {base} : memref<{element}> -> index")
    bits = {"bf16": 2, "f16": 2}.get(element, 1 if element == "i8" else 4)
    return b.value(f"arith.addi {start}, {b.index(b.mul(offset, bits))} : index")


def _pointer(b: Builder, address: str) -> str:
    return b.value(f"llvm.inttoptr {b.value(f'arith.index_cast {address} : index to i64')} : i64 to !llvm.ptr")


#: What emits each kernel.
AMX_KERNELS = {name: tile_kernel(name) for name in _KERNELS}
