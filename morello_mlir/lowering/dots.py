"""The kernel of dot products, and how vectors of partial sums are summed up together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..actions import PAIRS_IN_FLIGHT, DotFma
from ..spec import element_type
from .builder import Builder, Index
from .bundle import Ask, First
from .finish import Finish, on_last
from .instructions import Instruction, bf16_pairs, byte_quads
from .plan import Sizes
from .views import Flat, Operand


def dot_fma(
    b: Builder,
    sizes: Sizes,
    operands: Sequence[Operand],
    first: First,
    finish: Finish | None = None,
    ask: Ask | None = None,
) -> None:
    """An m x n tile of dot products: vectors along k, several accumulators each, summed at the end.

    ask: the rows of lhs from there on are wanted next: of each as many lines as of its own.
    """
    _dots(b, sizes, operands, (first, finish, ask))


def dot_dpbf16(
    b: Builder,
    sizes: Sizes,
    operands: Sequence[Operand],
    first: First,
    finish: Finish | None = None,
    ask: Ask | None = None,
) -> None:
    """The same, two bf16 products for each lane of an instruction."""
    _dots(b, sizes, operands, (first, finish, ask), bf16_pairs())


def dot_dpbusd(
    b: Builder,
    sizes: Sizes,
    operands: Sequence[Operand],
    first: First,
    finish: Finish | None = None,
    ask: Ask | None = None,
) -> None:
    """The same, four products of bytes for each lane. Of two signed ones 128 is added to lhs (see `dpbusd`)."""
    lhs, rhs = operands[:2]
    _dots(b, sizes, operands, (first, finish, ask), byte_quads(lhs.view.dtype, rhs.view.dtype))


def _dots(
    b: Builder,
    sizes: Sizes,
    operands: Sequence[Operand],
    how: tuple[First, Finish | None, Ask | None],
    instruction: Instruction | None = None,
) -> None:
    """instruction: for groups along k; None: multiply-adds of elements in the type of the sums."""
    _, m, depth, n = sizes
    (first, finish, ask), (lhs, rhs, out) = how, operands[:3]
    lanes = b.machine.lanes * (instruction.group if instruction else 1)
    more = bool(instruction and instruction.offset)
    in_flight = PAIRS_IN_FLIGHT if instruction else b.machine.in_flight
    chains = int(DotFma.accumulators(m + more, n, b.machine.registers, in_flight))
    a, w, c = lhs.flat(b), rhs.flat(b), out.flat(b)
    strides = (lhs.view.stride(1), lhs.view.stride(2)), (rhs.view.stride(2), rhs.view.stride(1))
    dots = _Dots(b, a, w, *strides, m, n, instruction)
    sums = [b.zeros()] * ((m + more) * n * chains)
    each = len(sums) // chains
    whole = depth - depth % (lanes * chains)
    if whole:
        with b.carrying_loop(0, whole, lanes * chains, sums, b.machine.vector()) as (k, carried):
            values = list(carried.args)
            for chain in range(chains):
                at = b.add(k, chain * lanes)
                dots.step(values, chain * each, at, lanes)
                if ask:
                    dots.ask(b.add(at, ask.at))
            carried.results = values
        sums = list(carried.results)
    for chain, k in enumerate(range(whole, depth, lanes)):
        dots.step(sums, chain * each, k, min(lanes, depth - k))
    sums = [_tree(b, sums[i::each]) for i in range(each)]
    if more:
        t, extra = b.machine.vector(), sums[m * n :]
        sums = [b.value(f"arith.subi {x}, {extra[i % n]} : {t}") for i, x in enumerate(sums[: m * n])]
    rows = _rows(out, m, n) if finish is None else None
    if rows:
        _store_rows(b, sums, c, rows, first)
        return
    places = [(0, r, j) for r in range(m) for j in range(n)]
    offsets = [r * out.view.stride(1) + j * out.view.stride(2) for _, r, j in places]
    totals = [_added(b, x, c, at, first) for x, at in zip(_totals(b, sums), offsets, strict=True)]

    def store() -> None:
        for at, total in zip(offsets, totals, strict=True):
            b.write(total, c, at)

    on_last(b, finish, lambda f: f.elements(b, operands, places, totals), store)


@dataclass(frozen=True, slots=True)
class _Dots:
    """The operands of a tile of dot products; strides are (between vectors, along k)."""

    b: Builder
    a: Flat
    w: Flat
    lhs: tuple[int, int]
    rhs: tuple[int, int]
    m: int
    n: int
    instruction: Instruction | None = None

    def step(self, values: list[str], base: int, k: Index, width: int) -> None:
        """Adds `width` products to the accumulators from number `base` on: row by row, then for each column what the
        offset of lhs adds. The vectors of the lesser side are kept."""
        across = self.n < self.m
        kept = [self._vector(across, i, k, width) for i in range(self.n if across else self.m)]
        for i in range(self.m if across else self.n):
            passing = self._vector(not across, i, k, width)
            for j, held in enumerate(kept):
                x, y = (passing, held) if across else (held, passing)
                at = base + (i * self.n + j if across else j * self.n + i)
                values[at] = self._multiply(x, y, values[at])
            if not across:
                self._offset(values, base, i, passing)
        for j, held in enumerate(kept if across else ()):
            self._offset(values, base, j, held)

    def _offset(self, values: list[str], base: int, column: int, y: str) -> None:
        if self.instruction and self.instruction.offset:
            at = base + self.m * self.n + column
            values[at] = self._multiply(self.instruction.same(self.b), y, values[at])

    def _multiply(self, x: str, y: str, acc: str) -> str:
        return self.instruction.multiply(self.b, x, y, acc) if self.instruction else self.b.fma(x, y, acc)

    def ask(self, k: Index) -> None:
        """Asks for a line of every row of lhs."""
        for r in range(self.m):
            self.b.prefetch(self.a, self.b.add(k, r * self.lhs[0]), locality=2)

    def _vector(self, of_rhs: bool, i: int, k: Index, width: int) -> str:
        mem, strides = (self.w, self.rhs) if of_rhs else (self.a, self.lhs)
        at = self.b.add(self.b.mul(k, strides[1]), i * strides[0])
        if self.instruction is None:
            return self.b.vread(mem, at, width, stride=strides[1])
        lanes = self.b.machine.lanes * self.instruction.group
        x = self.b.vload(mem, at, width, lanes, stride=strides[1])
        return x if of_rhs else self.instruction.moved(self.b, x)


def _tree(b: Builder, vectors: list[str]) -> str:
    """The sum of vectors, by a tree."""
    while len(vectors) > 1:
        pairs = [b.add_vectors(x, y) for x, y in zip(vectors[::2], vectors[1::2], strict=False)]
        vectors = pairs + vectors[len(pairs) * 2 :]
    return vectors[0]


def _added(b: Builder, total: str, c: Flat, at: int, first: First) -> str:
    """`total`, or that and what is there."""
    if first is True:
        return total
    if first is False:
        return b.plus(b.read(c, at), total)
    with b.branch(first, b.machine.dtype, [total]) as computed:
        computed.results = [b.plus(b.read(c, at), total)]
    return computed.results[0]


# ---------------------------------------------------------------- sums of lanes


def folded(b: Builder, vectors: Sequence[str], lanes: int) -> tuple[str, int]:
    """A vector whose lane i is the sum of the lanes of `vectors[i]`, and how many lanes it has: a power of two, no less
    than there are vectors, which are no more than `lanes`.

    Two vectors whose halves are brought together are one vector of half as many partial sums for each: some three
    instructions a sum, where each by itself takes eight.
    """
    count = 1 << (len(vectors) - 1).bit_length()
    rows = [*vectors, *[vectors[0]] * (count - len(vectors))]
    span = lanes
    while len(rows) > 1:
        span //= 2
        rows = [_halves(b, x, y, span, lanes) for x, y in zip(rows[::2], rows[1::2], strict=True)]
    (total,) = rows
    while span > 1:
        span //= 2
        total = _halves(b, total, "", span, lanes)
        lanes //= 2
    return total, lanes


def _halves(b: Builder, x: str, y: str, half: int, lanes: int) -> str:
    """Of vectors of blocks of 2 `half` lanes: both halves of each block of x, then of y (if there is one), added up."""
    starts = [*range(0, lanes, 2 * half), *(range(lanes, 2 * lanes, 2 * half) if y else ())]
    # Even and odd lanes in place of the last halves but one: LLVM 22 takes a tree of halves of products of bytes for a
    # `vpdpbusd`, of the first four only where it knows that all but some of the first eight are zero.
    step, other = (2, 1) if half == 2 and not y and b.machine.dtype == "i32" else (1, half)
    low, high = (
        b.shuffle(x, y or x, [s + off + step * i for s in starts for i in range(half)], lanes, b.machine.dtype)
        for off in (0, other)
    )
    return b.add_vectors(low, high, half * len(starts))


def _totals(b: Builder, sums: Sequence[str]) -> list[str]:
    """The sum of the lanes of each of `sums`, as scalars."""
    out, lanes, dtype = [], b.machine.lanes, element_type(b.machine.dtype)
    for start in range(0, len(sums), lanes):
        some = sums[start : start + lanes]
        total, width = folded(b, some, lanes)
        t = b.machine.vector(width)
        out += [b.value(f"vector.extract {total}[{i}] : {dtype} from {t}") for i in range(len(some))]
    return out


@dataclass(frozen=True, slots=True)
class _Rows:
    """Where the sums of a tile go: `count` runs of `size` neighbours, `stride` apart."""

    count: int
    size: int
    stride: int

    @property
    def slot(self) -> int:
        """Lanes that a run takes in a vector."""
        return 1 << (self.size - 1).bit_length()


def _rows(out: Operand, m: int, n: int) -> _Rows | None:
    """The runs of an m x n output; None where sums have no neighbours."""
    row, column = out.view.stride(1), out.view.stride(2)
    if n > 1:
        return _Rows(m, n, row) if column == 1 else None
    return _Rows(1, m, 0) if m > 1 and row == 1 else None


def _store_rows(b: Builder, sums: Sequence[str], c: Flat, rows: _Rows, first: First) -> None:
    """Sums up the lanes of each of `sums` and writes (or adds) them, run by run."""
    lanes, slot = b.machine.lanes, rows.slot
    pieces = [
        (r * rows.stride + at, sums[r * rows.size + at : r * rows.size + min(rows.size, at + lanes)])
        for r in range(rows.count)
        for at in range(0, rows.size, lanes)
    ]
    width = min(slot, lanes)
    together = lanes // width
    for start in range(0, len(pieces), together):
        some = pieces[start : start + together]
        vectors = [x for _, piece in some for x in [*piece, *[piece[0]] * (width - len(piece))]]
        total, got = folded(b, vectors, lanes)
        for i, (at, piece) in enumerate(some):
            part = b.part(total, got, i * width, width)
            _store(b, part, width, c, (at, len(piece)), first)


def _store(b: Builder, part: str, lanes: int, c: Flat, run: tuple[int, int], first: First) -> None:
    """Writes the first lanes of `part` to the run (start, size), or adds them to what is there."""
    at, size = run

    def added() -> str:
        there = b.convert(b.vload(c, at, size, lanes), c.dtype, b.machine.dtype, lanes)
        return b.add_vectors(there, part, lanes)

    if isinstance(first, str):
        with b.branch(first, b.machine.vector(lanes), [part]) as computed:
            computed.results = [added()]
        part = computed.results[0]
    elif not first:
        part = added()
    b.vstore(b.convert(part, b.machine.dtype, c.dtype, lanes), c, at, size, lanes)
