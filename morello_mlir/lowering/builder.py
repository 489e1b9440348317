"""Writes the MLIR text of one function: SSA names, constants pooled at its top, loops, vector memory access.

Text and MLIR's own parser are several times faster than building op by op through the bindings (docs/decisions), and
the text is what one reads while debugging.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from ..spec import dtype_bytes, element_type, is_float
from .machine import Machine

if TYPE_CHECKING:
    from .views import Flat

#: An index: a number known now, or the SSA name of one that run time knows.
Index: TypeAlias = int | str


class Carried:
    """The values that a loop carries: `args` inside; set `results` before the loop's block ends; afterwards `results`
    names the loop's results."""

    def __init__(self, args: list[str]):
        self.args = args
        self.results: list[str] = args


class Builder:
    """The body of one function. machine: what registers of sums are; text that has none needs none."""

    def __init__(self, machine: Machine | None = None):
        if machine is not None:
            self.machine = machine
        self.lines: list[str] = []
        self._constants: dict[str, str] = {}
        self._count = 0

    # ---------------------------------------------------------------- names and lines

    def name(self) -> str:
        self._count += 1
        return f"%v{self._count}"

    def line(self, text: str) -> None:
        self.lines.append(text)

    def value(self, text: str) -> str:
        """The name of the value that the op `text` defines."""
        name = self.name()
        self.lines.append(f"{name} = {text}")
        return name

    def constant(self, text: str, type_: str) -> str:
        """The name of a constant, defined once at the top of the function."""
        key = f"arith.constant {text} : {type_}" if type_ != "i1" else f"arith.constant {text}"
        if key not in self._constants:
            self._constants[key] = self.name()
        return self._constants[key]

    def mask(self, width: int, lanes: int) -> str:
        """A mask of the first `width` of `lanes` lanes."""
        key = f"vector.constant_mask [{width}] : vector<{lanes}xi1>"
        if key not in self._constants:
            self._constants[key] = self.name()
        return self._constants[key]

    def text(self) -> str:
        """The body, constants first."""
        return "\n".join([*(f"{name} = {op}" for op, name in self._constants.items()), *self.lines])

    # ---------------------------------------------------------------- index arithmetic

    def index(self, i: Index) -> str:
        """The SSA name of an index."""
        return self.constant(str(i), "index") if isinstance(i, int) else i

    def add(self, a: Index, b: Index) -> Index:
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        if a == 0 or b == 0:
            return b if a == 0 else a
        return self.value(f"arith.addi {self.index(a)}, {self.index(b)} : index")

    def mul(self, a: Index, by: int) -> Index:
        if isinstance(a, int):
            return a * by
        if by in (0, 1):
            return a if by else 0
        return self.value(f"arith.muli {a}, {self.index(by)} : index")

    def div(self, a: Index, by: int) -> Index:
        """`a // by`, both not negative."""
        if isinstance(a, int):
            return a // by
        return a if by == 1 else self.value(f"arith.divui {a}, {self.index(by)} : index")

    def rest(self, a: Index, by: int) -> Index:
        """`a % by`, both not negative."""
        if isinstance(a, int):
            return a % by
        return self.value(f"arith.remui {a}, {self.index(by)} : index")

    def least(self, a: Index, b: Index) -> Index:
        """The smaller one."""
        if isinstance(a, int) and isinstance(b, int):
            return min(a, b)
        return self.value(f"arith.minsi {self.index(a)}, {self.index(b)} : index")

    def most(self, a: Index, b: Index) -> Index:
        """The larger one."""
        if isinstance(a, int) and isinstance(b, int):
            return max(a, b)
        return self.value(f"arith.maxsi {self.index(a)}, {self.index(b)} : index")

    def minus(self, a: Index, b: Index) -> Index:
        """`a - b`, which may be negative."""
        if isinstance(a, int) and isinstance(b, int):
            return a - b
        return a if b == 0 else self.value(f"arith.subi {self.index(a)}, {self.index(b)} : index")

    # ---------------------------------------------------------------- control flow

    @contextmanager
    def loop(self, lower: int, upper: int, step: int) -> Iterator[Index]:
        """A loop that has at least one trip; with just one there is none, and the index is a number."""
        if lower + step >= upper:
            yield lower
            return
        iv = self.name()
        bounds = [self.index(x) for x in (lower, upper, step)]
        self.line(f"scf.for {iv} = {bounds[0]} to {bounds[1]} step {bounds[2]} {{")
        yield iv
        self.line("}")

    @contextmanager
    def carrying_loop(
        self, lower: Index, upper: Index, step: int, values: Sequence[str], type_: str
    ) -> Iterator[tuple[Index, Carried]]:
        """As `loop`, carrying `values`, all of one type. Where run time knows the bounds there may be no trip."""
        if isinstance(lower, int) and isinstance(upper, int) and lower + step >= upper:
            yield lower, Carried(list(values))
            return
        iv, out = self.name(), self.name()
        carried = Carried([self.name() for _ in values])
        bounds = [self.index(x) for x in (lower, upper, step)]
        pairs = ", ".join(f"{a} = {v}" for a, v in zip(carried.args, values, strict=True))
        types = ", ".join([type_] * len(values))
        self.line(
            f"{out}:{len(values)} = scf.for {iv} = {bounds[0]} to {bounds[1]} step {bounds[2]} "
            f"iter_args({pairs}) -> ({types}) {{"
        )
        yield iv, carried
        self._yield(carried.results, types)
        self.line("}")
        carried.results = [f"{out}#{i}" for i in range(len(values))]

    def choose(self, condition: str, type_: str, then: Sequence[str], other: Sequence[str]) -> list[str]:
        """`scf.if` on values that exist already."""
        c = self.name()
        types = ", ".join([type_] * len(then))
        self.line(f"{c}:{len(then)} = scf.if {condition} -> ({types}) {{")
        self._yield(then, types)
        self.line("} else {")
        self._yield(other, types)
        self.line("}")
        return [f"{c}#{i}" for i in range(len(then))]

    def _yield(self, values: Sequence[str], types: str) -> None:
        self.line(f"scf.yield {', '.join(values)} : {types}")

    @contextmanager
    def branch(self, condition: str, type_: str, otherwise: Sequence[str]) -> Iterator[Carried]:
        """`otherwise` where `condition` holds; else what the block computes (its `results`)."""
        c = self.name()
        types = ", ".join([type_] * len(otherwise))
        self.line(f"{c}:{len(otherwise)} = scf.if {condition} -> ({types}) {{")
        self._yield(otherwise, types)
        self.line("} else {")
        computed = Carried(list(otherwise))
        yield computed
        self._yield(computed.results, types)
        self.line("}")
        computed.results = [f"{c}#{i}" for i in range(len(otherwise))]

    # ---------------------------------------------------------------- scalars

    def zero(self, dtype: str | None = None) -> str:
        """Zero of `dtype`, or of the type of the sums."""
        dtype = dtype or self.machine.dtype
        return self.constant("0.0" if is_float(dtype) else "0", element_type(dtype))

    def load(self, mem: Flat, at: Index) -> str:
        return self.value(f"memref.load {mem.name}[{self.index(at)}] : {mem.type}")

    def store(self, value: str, mem: Flat, at: Index) -> None:
        self.line(f"memref.store {value}, {mem.name}[{self.index(at)}] : {mem.type}")

    def prefetch(self, mem: Flat, at: Index, kind: str = "read", locality: int = 3) -> None:
        self.line(f"memref.prefetch {mem.name}[{self.index(at)}], {kind}, locality<{locality}>, data : {mem.type}")

    def keep_order(self) -> None:
        """What was loaded before is loaded before what follows. No instruction."""
        self.line('llvm.inline_asm has_side_effects "", "~{memory}" : () -> ()')

    def plus(self, x: str, y: str) -> str:
        """The sum of two sums."""
        op = "addf" if is_float(self.machine.dtype) else "addi"
        return self.value(f"arith.{op} {x}, {y} : {self.machine.dtype}")

    # ---------------------------------------------------------------- element types

    def convert(self, value: str, source: str, target: str, lanes: int = 0) -> str:
        """A scalar, or a vector of `lanes`, of dtype `source` as `target`: a wider one, or a narrower one, of floats
        rounded to nearest even, of integers the lower bits."""
        if source == target:
            return value
        here, there = (f"vector<{lanes}x{x}>" if lanes else x for x in (element_type(source), element_type(target)))
        if dtype_bytes(target) < dtype_bytes(source):
            op = "truncf" if is_float(source) else "trunci"
        elif is_float(source):
            op = "extf"
        else:
            op = "extui" if source == "u8" else "extsi"
        return self.value(f"arith.{op} {value} : {here} to {there}")

    def read(self, mem: Flat, at: Index) -> str:
        """An element in the type of the sums."""
        return self.convert(self.load(mem, at), mem.dtype, self.machine.dtype)

    def write(self, value: str, mem: Flat, at: Index) -> None:
        """Stores a sum as an element."""
        self.store(self.convert(value, self.machine.dtype, mem.dtype), mem, at)

    def vread(self, mem: Flat, at: Index, width: int, stride: int = 1) -> str:
        """As `vload` of a register of sums, in their type."""
        lanes = self.machine.lanes
        return self.convert(self.vload(mem, at, width, stride=stride), mem.dtype, self.machine.dtype, lanes)

    def vwrite(self, value: str, mem: Flat, at: Index, width: int, stride: int = 1) -> None:
        """As `vstore` of a register of sums, as elements of `mem`."""
        self.vstore(
            self.convert(value, self.machine.dtype, mem.dtype, self.machine.lanes), mem, at, width, stride=stride
        )

    # ---------------------------------------------------------------- vectors

    def zeros(self, lanes: int | None = None, dtype: str | None = None) -> str:
        zero = "0.0" if is_float(dtype or self.machine.dtype) else "0"
        return self.constant(f"dense<{zero}>", self.machine.vector(lanes, dtype))

    def broadcast(self, scalar: str) -> str:
        """A sum in all lanes."""
        return self.value(f"vector.broadcast {scalar} : {self.machine.dtype} to {self.machine.vector()}")

    def spread(self, mem: Flat, at: Index) -> str:
        """An element in all lanes, in the type of the sums."""
        if mem.dtype != "f16" or self.machine.dtype == "f16":
            return self.broadcast(self.read(mem, at))
        # LLVM would load a lone f16 into a register that holds sums, and wait for these.
        narrow = self.machine.vector(None, "f16")
        every = self.value(f"vector.broadcast {self.load(mem, at)} : f16 to {narrow}")
        return self.convert(every, "f16", self.machine.dtype, self.machine.lanes)

    def fma(self, x: str, y: str, acc: str) -> str:
        if is_float(self.machine.dtype):
            return self.value(f"vector.fma {x}, {y}, {acc} : {self.machine.vector()}")
        return self.add_vectors(self.value(f"arith.muli {x}, {y} : {self.machine.vector()}"), acc)

    def add_vectors(self, x: str, y: str, lanes: int | None = None) -> str:
        op = "addf" if is_float(self.machine.dtype) else "addi"
        return self.value(f"arith.{op} {x}, {y} : {self.machine.vector(lanes)}")

    def part(self, x: str, lanes: int, start: int, size: int) -> str:
        """`size` neighbours of a vector of sums of `lanes`."""
        if size == lanes:
            return x
        types = f"{self.machine.vector(lanes)} to {self.machine.vector(size)}"
        return self.value(
            f"vector.extract_strided_slice {x} {{offsets = [{start}], sizes = [{size}], strides = [1]}} : {types}"
        )

    def fence(self) -> None:
        """Stores past the caches before here are seen by whoever sees one after it."""
        self.line('llvm.call_intrinsic "llvm.x86.sse.sfence"() : () -> ()')

    def bitcast(self, x: str, lanes: int, dtype: str, to_lanes: int, to_dtype: str) -> str:
        """The bits of a vector as another."""
        here, there = self.machine.vector(lanes, dtype), self.machine.vector(to_lanes, to_dtype)
        return x if here == there else self.value(f"vector.bitcast {x} : {here} to {there}")

    def shuffle(self, x: str, y: str, picks: Sequence[int], lanes: int, dtype: str) -> str:
        t = self.machine.vector(lanes, dtype)
        return self.value(f"vector.shuffle {x}, {y} [{', '.join(map(str, picks))}] : {t}, {t}")

    def vload(self, mem: Flat, at: Index, width: int, lanes: int | None = None, stride: int = 1) -> str:
        """`width` elements from `at`, `stride` apart, in a vector of `lanes`; the other lanes are zero. Touches nothing
        else."""
        lanes = lanes or self.machine.lanes
        t = self.machine.vector(lanes, mem.dtype)
        if stride != 1 and width > 1:
            return self._assemble(mem, at, width, lanes, stride)
        i = self.index(at)
        if width == lanes:
            return self.value(f"vector.load {mem.name}[{i}] : {mem.type}, {t}")
        if _is_register(width, mem.dtype):
            small = self.machine.vector(width, mem.dtype)
            few = self.value(f"vector.load {mem.name}[{i}] : {mem.type}, {small}")
            # The vector of zeros is chosen from only where the elements end.
            picks = [*range(width), *[width] * (lanes - width)]
            return self.shuffle(few, self.zeros(width, mem.dtype), picks, width, mem.dtype)
        mask, zeros = self.mask(width, lanes), self.zeros(lanes, mem.dtype)
        types = f"{mem.type}, vector<{lanes}xi1>, {t} into {t}"
        return self.value(f"vector.maskedload {mem.name}[{i}], {mask}, {zeros} : {types}")

    def _assemble(self, mem: Flat, at: Index, width: int, lanes: int, stride: int) -> str:
        """A vector of elements that are not neighbours, one load each."""
        parts = [self.load(mem, self.add(at, i * stride)) for i in range(width)]
        parts += [self.zero(mem.dtype)] * (lanes - width)
        return self.value(f"vector.from_elements {', '.join(parts)} : {self.machine.vector(lanes, mem.dtype)}")

    def vstore(self, value: str, mem: Flat, at: Index, width: int, lanes: int | None = None, stride: int = 1) -> None:
        """The first `width` lanes of a vector of `lanes` to `at`, `stride` apart. Touches nothing else."""
        lanes = lanes or self.machine.lanes
        t = self.machine.vector(lanes, mem.dtype)
        if (stride != 1 and width > 1) or width == 1 < lanes:
            # One lane is no masked store: LLVM 22 makes a scalar store of what the lane was truncated from of it, which
            # writes over its neighbours.
            for i in range(width):
                self._store_lane(value, i, t, mem, self.add(at, i * stride))
        elif width == lanes:
            size = lanes * dtype_bytes(mem.dtype)
            past = f" {{nontemporal = true, alignment = {size} : i64}}" if mem.streams else ""
            self.line(f"vector.store {value}, {mem.name}[{self.index(at)}]{past} : {mem.type}, {t}")
        elif self.machine.masks and not _is_register(width, mem.dtype):
            mask, types = self.mask(width, lanes), f"{mem.type}, vector<{lanes}xi1>, {t}"
            self.line(f"vector.maskedstore {mem.name}[{self.index(at)}], {mask}, {value} : {types}")
        else:
            self._store_pieces(value, lanes, mem, at, width)

    def _store_pieces(self, value: str, lanes: int, mem: Flat, at: Index, width: int) -> None:
        t = self.machine.vector(lanes, mem.dtype)
        for start, size in self.machine.split(width, lanes):
            place = self.add(at, start)
            if size == 1:
                self._store_lane(value, start, t, mem, place)
                continue
            small = self.machine.vector(size, mem.dtype)
            piece = self.value(
                f"vector.extract_strided_slice {value} {{offsets = [{start}], sizes = [{size}], strides = [1]}} : "
                f"{t} to {small}"
            )
            self.line(f"vector.store {piece}, {mem.name}[{self.index(place)}] : {mem.type}, {small}")

    def _store_lane(self, value: str, lane: int, t: str, mem: Flat, at: Index) -> None:
        scalar = self.value(f"vector.extract {value}[{lane}] : {element_type(mem.dtype)} from {t}")
        self.store(scalar, mem, at)


#: Bytes of the smaller vector registers.
_SMALLER = (16, 32)


def _is_register(width: int, dtype: str) -> bool:
    """Whether `width` elements, of 32 bits or more, are a whole vector of a smaller size, which needs no mask."""
    return dtype_bytes(dtype) >= 4 and width * dtype_bytes(dtype) in _SMALLER
