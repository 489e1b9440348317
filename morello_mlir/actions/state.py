"""Table keys: what stays the same while a dynamic program runs over sizes and limits.

A key is a Spec without its sizes and limits: function, dtype, where each operand is and how it lies. Arithmetic on
`Dims` is written so that it is right for Python ints and for broadcasting NumPy arrays: the same declaration serves the
search (whole blocks) and reconstruction (one point).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..errors import SpecError
from ..spec import FUNCTIONS, Layout, Spec, TensorSpec, Window, accumulator, dtype_bytes, is_float
from ..targets import LINE, Target, ceil_div, thread_count

#: Sizes by dim name; values are ints, or arrays that broadcast against each other.
Dims = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class OperandState:
    """Where an operand is: memory, layout, row stride class (None when packed), whether its inner stride is 1, and
    whether it is constant and may still be packed ahead.

    dtype: where it is not the one in which the contraction is added up (`TableKey.dtype`), else None. window: where
    places along a dim are not all one stride apart (see `Window`).
    """

    memory: str
    layout: Layout
    stride: int | None = None
    unit: bool = True
    const: bool = False
    dtype: str | None = None
    window: Window | None = None

    def exchanged(self) -> OperandState:
        """The same operand with its last two dims in each other's role."""
        window = self.window and self.window.exchanged()
        return replace(self, layout=self.layout.exchanged(), window=window)


@dataclass(frozen=True, slots=True)
class TableKey:
    """dtype: in which the contraction is added up. threads: how many work on it. far: the goal's operands do not fit
    the last-level cache, so that GL is DRAM. forked: the threads are under way already (see Spec).

    kernels: which kernels for narrow element types there are (`Target.narrow_fingerprint`), where some operand has one;
    the target's fingerprint does not say.
    """

    function: str
    dtype: str
    operands: tuple[OperandState, ...]
    threads: int = 1
    far: bool = False
    forked: bool = False
    kernels: str = ""

    @property
    def is_serial(self) -> bool:
        return self.threads == 1 and not self.forked

    def names(self, i: int) -> tuple[str, ...]:
        """Dim names of operand `i`."""
        return FUNCTIONS[self.function].operands[i][1]

    def dtype_of(self, i: int) -> str:
        """The element type of operand `i`."""
        return self.operands[i].dtype or self.dtype

    @property
    def is_narrow(self) -> bool:
        """Whether some operand has another element type than the sums."""
        return any(o.dtype for o in self.operands)

    def with_operand(self, i: int, state: OperandState) -> TableKey:
        ops = list(self.operands)
        ops[i] = state
        return replace(self, operands=tuple(ops))

    @property
    def has_const(self) -> bool:
        """Whether something can still be packed ahead. No table has such a key: see `explore`."""
        return any(o.const for o in self.operands)

    @property
    def plain(self) -> TableKey:
        """The key without constant operands: below anything but `to_accum` and `pack_ahead` they are like others."""
        if not self.has_const:
            return self
        return replace(self, operands=tuple(replace(o, const=False) for o in self.operands))

    @property
    def streams(self) -> bool:
        """Whether the output is written once, past the caches: such a goal overwrites it, all along k at once."""
        return self.operands[-1].memory == "WC"

    def exchanged(self) -> TableKey:
        """The key of the transposed problem: its lhs is rhs^T, its rhs lhs^T, and its output out^T."""
        lhs, rhs, out = (o.exchanged() for o in self.operands)
        return replace(self, operands=(rhs, lhs, out))

    @property
    def memories(self) -> tuple[str, ...]:
        return tuple(o.memory for o in self.operands)

    def canonical(self, target: Target) -> TableKey:
        """The key whose table holds the same numbers: row strides are told apart only where a cost or an occupancy does
        (below a vector: unaligned; up to a line: aligned; in L1 the kernels' vectors of rhs alone), and what GL is only
        while an operand is there."""

        def plain(i: int, o: OperandState) -> OperandState:
            stride = canonical_stride(i, o.memory, o.stride, target)
            return o if stride == o.stride else replace(o, stride=stride)

        far = self.far and "GL" in self.memories
        operands = tuple(plain(i, o) for i, o in enumerate(self.operands))
        same = far == self.far and all(a is b for a, b in zip(operands, self.operands, strict=True))
        # Most keys are canonical already, and are asked for again and again.
        return self if same else replace(self, operands=operands, far=far)

    def limit_axis(self) -> str | None:
        """The cache whose limit can still matter: some operand is in it and another may still come. At most one, since
        moves are level-synchronous (an operand enters L1 only when none is left in GL)."""
        mems = self.memories
        if "L1" in mems and "L2" in mems:
            return "L1"
        if "L2" in mems and "GL" in mems:
            return "L2"
        return None

    def pack_width(self, dim: str) -> int:
        """Tiles of `dim` must start at a panel, at a group, or at a unit of a window, of every operand: the width of
        these along it (their least common multiple; 1 where no operand is packed)."""
        widths = (
            o.layout.pack_width(self.names(i).index(dim)) for i, o in enumerate(self.operands) if dim in self.names(i)
        )
        return math.lcm(self.unit(dim), *(w for w in widths if w))

    def units(self, dim: str) -> tuple[int, ...]:
        """How many places along `dim` the steps of a window count, slowest digit first. (At most one operand has a
        window along a dim.)"""
        for i, o in enumerate(self.operands):
            if o.window is not None and dim in self.names(i) and (units := o.window.of(self.names(i).index(dim))):
                return units
        return ()

    def unit(self, dim: str) -> int:
        """The first of `units`; 1 where there are none."""
        return next(iter(self.units(dim)), 1)

    @property
    def has_window(self) -> bool:
        return any(o.window is not None for o in self.operands)

    def within(self, dim: str) -> TableKey:
        """The key for sizes that reach over no more than a unit of `dim`."""
        return replace(
            self,
            operands=tuple(
                replace(o, window=o.window.without(self.names(i).index(dim)))
                if o.window is not None and dim in self.names(i) and o.window.of(self.names(i).index(dim))
                else o
                for i, o in enumerate(self.operands)
            ),
        )

    def panel_width(self, dim: str) -> int:
        """The same of panels alone."""
        found = ((o.layout.panels, self.names(i)) for i, o in enumerate(self.operands))
        return math.lcm(*(panels[1] for panels, names in found if panels and names[panels[0]] == dim))


def canonical_stride(i: int, memory: str, stride: int | None, target: Target) -> int | None:
    """The row stride class that stands for `stride` of operand `i` in `memory` (see `TableKey.canonical`)."""
    if memory in ("L1", "VRF") and i != 1:
        return None
    if stride is not None and (stride <= LINE or memory == "L1"):
        return LINE if stride >= target.vector_bytes else 1
    return stride


def key_of(spec: Spec, target: Target) -> TableKey:
    """The table key of `spec`. Raises SpecError where no sum of such products is implemented, or a layout is not."""
    *inputs, out = (t.dtype for t in spec.operands)
    dtype = accumulator(inputs, out)
    if dtype is None or dtype not in target.accumulators:
        raise SpecError(f"{target.name} has no kernels for the dtypes of {spec}")
    for t in spec.operands:
        if t.layout.is_packed and t.layout.panels is None:
            raise SpecError(f"layout {t.layout}: only panels along one of the last two dims are implemented")
    states = tuple(
        OperandState(
            t.memory, t.layout, spec.row_class(i), t.unit, t.const, t.dtype if t.dtype != dtype else None, t.window
        )
        for i, t in enumerate(spec.operands)
    )
    far = spec.far or operand_bytes(spec) > target.l3_bytes
    threads = 1 if spec.serial else spec.threads or thread_count()
    key = TableKey(spec.function, dtype, states, threads, far, spec.forked)
    return replace(key, kernels=target.narrow_fingerprint) if key.is_narrow or not is_float(dtype) else key


def operand_bytes(spec: Spec) -> int:
    """Of lhs, rhs and the output, each element once."""
    return sum(_elements(t, spec.operand_shape(i)) * dtype_bytes(t.dtype) for i, t in enumerate(spec.operands))


def _elements(tensor: TensorSpec, shape: tuple[int, ...]) -> int:
    if tensor.window is None:
        return tensor.layout.volume(shape)
    rows, row = tensor.window.runs(tensor.layout.innermost, shape)
    return int(shape[0] * rows * row)


def spec_of(key: TableKey, dims: Mapping[str, int], limits: Mapping[str, int]) -> Spec:
    """The Spec at one point of a table; only limits that can still matter are kept."""
    info = FUNCTIONS[key.function]
    ops = tuple(
        TensorSpec(o.dtype or key.dtype, o.memory, o.layout, o.stride, o.unit, o.const, o.window) for o in key.operands
    )
    sizes = tuple(int(dims[d]) for d in info.dims)
    threads = 0 if key.is_serial else key.threads
    return Spec(
        key.function, sizes, ops, key.is_serial, tuple(limits.items()), key.far, threads, key.forked
    ).canonical()


@dataclass(frozen=True, slots=True)
class Footprint:
    """A tile of an operand as cache lines.

    rows, row_lines: rows and lines in each; lines: all of them; long_rows: rows of 256 bytes or more, or packed;
    stride: bytes class between rows, None where lines follow one another.
    """

    rows: Any
    row_lines: Any
    lines: Any
    long_rows: Any
    stride: int | None

    def occupied(self, sets: int) -> Any:
        """Lines' worth of a cache with `sets` sets that the tile takes: strides that share a factor with the sets leave
        some unused (docs/cost-model.md)."""
        if self.stride is None:
            return self.lines
        span = sets * LINE
        distinct = max(1, span // min(span, max(self.stride, LINE)))
        crowded = ceil_div(self.rows, distinct) * sets
        fits = self.rows <= distinct
        return fits * self.lines + (1 - fits) * maximum(self.lines, crowded)


def maximum(a: Any, b: Any) -> Any:
    """Elementwise maximum of ints or arrays."""
    return (a > b) * a + (a <= b) * b


def minimum(a: Any, b: Any) -> Any:
    """Elementwise minimum of ints or arrays."""
    return a + b - maximum(a, b)


def footprint(key: TableKey, i: int, dims: Dims, layout: Layout | None = None, dtype: str | None = None) -> Footprint:
    """The lines of operand `i` at `dims`, in its own layout and dtype or in `layout` and `dtype`. Batch dims must have
    been tiled to 1."""
    state = key.operands[i]
    lay = layout or state.layout
    names = key.names(i)
    size = dtype_bytes(dtype or key.dtype_of(i))
    packed = lay.panels
    if packed is not None:
        dim, width, group = packed
        panels = ceil_div(dims[names[dim]], width)
        row_lines = ceil_div(ceil_div(dims[names[3 - dim]], group) * group * width * size, LINE)
        return Footprint(panels, row_lines, panels * row_lines, True, None)
    inner = lay.innermost if lay.innermost != 0 else names.index(names[-1])
    outer = next(d for d in (1, 2) if d != inner)
    if state.window is None:
        rows, cols = dims[names[outer]], dims[names[inner]]
    else:
        rows, cols = state.window.runs(inner, [1, dims[names[1]], dims[names[2]]])
    if not state.unit and state.window is not None and state.window.fills(inner):
        # Neighbours along the window lie between those that are apart.
        rows, span = state.window.runs(inner, [1, dims[names[1]], dims[names[2]]], gaps=True)
        row_lines = minimum(ceil_div(span * size, LINE), cols)
        return Footprint(rows, row_lines, rows * row_lines, False, state.stride)
    if not state.unit:
        return Footprint(rows, cols, rows * cols, False, state.stride)
    row_lines = ceil_div(cols * size, LINE)
    return Footprint(rows, row_lines, rows * row_lines, cols * size >= 256, state.stride)
