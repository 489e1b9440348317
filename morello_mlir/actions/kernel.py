"""`kernel`: leaf implementations. Each states where it accepts its operands, what sizes it takes and what it costs.

Here is what they have in common, and the one that takes anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from ..search.schedule import Kernel, Node
from ..spec import FUNCTIONS
from ..targets import LINE, PAGE, Target, fixed
from .base import Action, Condition
from .move import l1_cycles
from .state import Dims, Footprint, TableKey, footprint, maximum

CACHES = ("L2", "L1")
#: A form of panels: the size of the groups, and the dtype where that changes.
Form = tuple[int, str | None]


class KernelAction(Action):
    """A kernel of the accumulating matmul; `name` is what schedules call it, `summary` what it does."""

    name: ClassVar[str]
    summary: ClassVar[str]
    #: Memories accepted for lhs, rhs and out.
    accepts: ClassVar[tuple[tuple[str, ...], ...]]
    #: Whether it takes inputs whose reduction goes through a window (see `Window`).
    windows: ClassVar[bool] = False
    rank = 0

    @property
    def groups(self) -> tuple[int, ...]:
        """Sizes of groups (see `Layout.packed`) in which it takes inputs that are packed in groups."""
        return (1,)

    def requires(self, key: TableKey, target: Target) -> Sequence[Condition]:
        out: list[Condition] = [
            (key.is_serial, "a kernel runs on one thread: put serial or a parallel tile above"),
            (FUNCTIONS[key.function].accumulates, f"{key.function} does not accumulate: put to_accum above"),
            (key.dtype in target.accumulators, f"{target.name} has no kernel for {key.dtype}"),
        ]
        for (name, _), state in zip(FUNCTIONS[key.function].operands, key.operands, strict=True):
            group = state.layout.group
            out.append((group in self.groups, f"{name} is packed in groups of {group}, which it does not read"))
        out += [(key.unit(d) == 1, f"it does not reach over several units of a window along {d}") for d in "mn"]
        out.append((self.windows or not key.units("k"), "it does not step through a window along k"))
        for (name, _), state, ok in zip(FUNCTIONS[key.function].operands, key.operands, self.accepts, strict=True):
            out.append((state.memory in ok, f"{name} must be in {' or '.join(ok)}, not {state.memory}"))
        return out

    def conditions(self, key: TableKey, dims: Dims, left: Mapping[str, Any], target: Target) -> Sequence[Condition]:
        """No kernel runs across panels, or over batches."""
        out: list[Condition] = [(dims["b"] == 1, "tile b by 1 first")]
        for dim in ("m", "k", "n"):
            width = key.panel_width(dim)
            if width > 1:
                out.append((dims[dim] <= width, crosses(dim, dims[dim], width)))
        return out

    def panels(self, key: TableKey, operand: int, target: Target) -> Sequence[Form]:
        """The forms of panels that it wants of input `operand`, where it could still come to run below `key`."""
        return ()

    def traffic(self, key: TableKey, dims: Dims, target: Target) -> Mapping[tuple[str, str], Any]:
        """Operands that are still in L2 come to L1 as the kernel reads them."""
        inputs = [i for i in range(len(key.operands) - 1) if key.operands[i].memory == "L2"]
        return {("L2", "L1"): sum(footprint(key, i, dims).lines * LINE for i in inputs)} if inputs else {}

    def node(self, bodies: Sequence[Node]) -> Node:
        return Kernel(self.name)

    def label(self) -> str:
        return f"kernel {self.name}"


class GroupKernel(KernelAction):
    """A kernel whose instruction adds up the products of a group of k."""

    #: Elements in a group, and the dtypes of the inputs (lhs, rhs) as the instruction takes them.
    group: ClassVar[int]
    inputs: ClassVar[tuple[tuple[str, str], ...]]
    accumulates: ClassVar[str]

    @property
    def groups(self) -> tuple[int, ...]:
        return (1, self.group)


def crosses(dim: str, size: Any, width: int) -> Callable[[], str]:
    """Why `size` steps along `dim` are too many for panels of `width`."""
    return lambda: f"{dim}={size} reaches across a panel of {width}"


def streamed(key: TableKey, operand: int, dims: Dims, target: Target, touched: Any) -> tuple[Any, Any]:
    """An operand that is still in L2 comes to L1 as the kernel reads it: (cycles for which that lasts at least, cycles
    that it adds). `touched`: element accesses, which is how many lines are fetched where the tile's rows fight over the
    sets of L1."""
    state = key.operands[operand]
    if state.memory != "L2":
        return 0, 0.0
    fp: Footprint = footprint(key, operand, dims)
    lines = fp.lines
    if state.window is not None and operand == 0 and state.layout.innermost == 1:
        # The kernel goes from row to row.
        return lines, l1_cycles(key, operand, fp, target)
    if fp.stride is not None:
        # At a time it needs one line of every row.
        front = replace(fp, row_lines=1, lines=fp.rows)
        thrashes = front.occupied(target.l1.sets) > target.l1.lines
        lines = thrashes * touched + (1 - thrashes) * lines
        fp = replace(fp, row_lines=lines / fp.rows, lines=lines)
    least = lines * target.costs.l2_line
    if operand == 1 and fp.stride is not None:
        c = target.costs
        least = least + fp.rows * (c.page_row if fp.stride >= PAGE else c.row_line)
        if PAGE // 2 <= fp.stride < PAGE:
            least = maximum(least, fp.rows * c.half_page_row)
    return least, l1_cycles(key, operand, fp, target)


def vector_cycles(work: Any, target: Target, *streams: tuple[Any, Any]) -> Any:
    """Cycles of a vector kernel that computes for `work` cycles while operands are streamed to it: lines arrive beside
    the arithmetic, unless they take longer than it."""
    busy = maximum(work, sum(least for least, _ in streams)) * target.costs.kernel_scale
    return busy + sum(cycles for _, cycles in streams)


class Scalar(KernelAction):
    """Scalar multiply-adds, for whatever lies however."""

    name = "scalar"
    summary = "scalar multiply-add loops, any strides"
    accepts = (CACHES, CACHES, CACHES)
    windows = True

    @property
    def groups(self) -> tuple[int, ...]:
        return (1, 2, 4)

    def cost(self, key: TableKey, dims: Dims, target: Target) -> Any:
        m, k, n = dims["m"], dims["k"], dims["n"]
        # A float first: the product of three large sizes is no int64.
        cycles = target.costs.call + target.costs.scalar_fma * m * n * k
        cycles = cycles + streamed(key, 0, dims, target, m * k)[1]
        return fixed(cycles + streamed(key, 1, dims, target, k * n)[1])
