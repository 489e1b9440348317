"""The text of the functions of nests: loops that carry values of several types, and scratch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ...lowering.builder import Builder, Carried, Index
from ...lowering.machine import Machine
from ..ops import element_bytes

#: Bytes of buffers on the stack; what is more comes from the heap.
STACK = 1 << 14


class NestBuilder(Builder):
    """A builder whose loops carry values of several types, and which has buffers for the time of its function."""

    def __init__(self, machine: Machine | None = None) -> None:
        super().__init__(machine)
        self._before: list[str] = []
        self._after: list[str] = []
        self._on_stack = 0
        self._bases: dict[str, str] = {}

    def line_of(self, base: str, dtype: str) -> str:
        """The line of elements (see `Place`) that starts at `base`, a rank-0 memref or a buffer."""
        name = self.name()
        self._before.append(
            f"{name} = memref.reinterpret_cast {base} to offset: [0], sizes: [{self.index(1)}], strides: [1] : "
            f"memref<{dtype}> to memref<?x{dtype}, strided<[1], offset: ?>>"
        )
        self._bases[name] = base
        return name

    def base_of(self, line: str) -> str:
        """The rank-0 memref where a line starts."""
        return self._bases[line]

    def buffer(self, dtype: str, elements: int) -> str:
        """The name of a line of `elements` elements (see `Place`), aligned to cache lines: small ones on the stack."""
        size, name = max(elements, 1) * element_bytes(dtype), self.name()
        type_ = f"memref<{max(elements, 1)}x{dtype}>"
        on_stack = self._on_stack + size <= STACK
        self._on_stack += size if on_stack else 0
        op = "alloca" if on_stack else "alloc"
        self._before.append(f"{name} = memref.{op}() {{alignment = 64 : i64}} : {type_}")
        if not on_stack:
            self._after.append(f"memref.dealloc {name} : {type_}")
        base = self.name()
        others = ", ".join(self.name() for _ in range(3))
        self._before.append(
            f"{base}, {others} = memref.extract_strided_metadata {name} : {type_} -> "
            f"memref<{dtype}>, index, index, index"
        )
        return self.line_of(base, dtype)

    def text(self) -> str:
        lines, self.lines = self.lines, [*self._before, *self.lines, *self._after]
        out = super().text()
        self.lines = lines
        return out

    @contextmanager
    def carry(
        self, lower: Index, upper: Index, step: int, values: Sequence[str], types: Sequence[str]
    ) -> Iterator[tuple[Index, Carried]]:
        """As `carrying_loop`; from any lower bound."""
        carried = Carried(list(values))
        if isinstance(lower, int) and isinstance(upper, int) and lower + step >= upper:
            yield lower, carried
            return
        iv = self.name()
        bounds = " ".join([self.index(lower), "to", self.index(upper), "step", self.index(step)])
        if not values:
            self.line(f"scf.for {iv} = {bounds} {{")
            yield iv, carried
            self.line("}")
            return
        out = self.name()
        carried.args = carried.results = [self.name() for _ in values]
        pairs = ", ".join(f"{a} = {v}" for a, v in zip(carried.args, values, strict=True))
        listed = ", ".join(types)
        self.line(f"{out}:{len(values)} = scf.for {iv} = {bounds} iter_args({pairs}) -> ({listed}) {{")
        yield iv, carried
        self.line(f"scf.yield {', '.join(carried.results)} : {listed}")
        self.line("}")
        carried.results = [f"{out}#{i}" for i in range(len(values))]
