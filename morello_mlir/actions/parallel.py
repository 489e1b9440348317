"""`parallel tile`, `parallel split` (trips of a loop shared among threads) and `serial` (one thread does the rest)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..search.schedule import Hole, Node, Parallel, Serial
from ..spec import FUNCTIONS
from ..targets import Target, ceil_div, fixed
from .base import Action, Child, Condition
from .state import Dims, TableKey, footprint
from .tile import width_reason

#: Elements of the output beyond which threads do not get sums of their own.
MOST_SUMS = 1 << 16


@dataclass(frozen=True)
class ParallelTile(Action):
    """A loop over `dim` in steps of `size` whose trips are shared among `threads` threads (0: all of the Spec's).

    Thread t of T makes the trips from t * trips // T to (t + 1) * trips // T; the remainder is the last trip. Where
    fewer threads are taken than there are, each leads a group that shares a second parallel loop, right inside, under
    the same fork. Along a reduction dim each thread has sums of its own, which the caller adds up, in order.
    """

    dim: str
    size: int
    threads: int = 0
    #: Before loops of one thread, which cost no more only where nothing is parallel.
    rank = 2

    @property
    def adds(self) -> bool:
        """Whether the trips add to the same output."""
        return self.dim in FUNCTIONS["MatmulAccum"].reduction

    def over(self, key: TableKey) -> int:
        """Among how many the trips are shared."""
        return self.threads or key.threads

    def requires(self, key: TableKey, target: Target) -> Sequence[Condition]:
        info = FUNCTIONS[key.function]
        over, width = self.over(key), key.pack_width(self.dim)
        nested = key.forked or over == key.threads
        return (
            (not key.is_serial, "the Spec is serial: there is one thread"),
            (self.dim in info.dims, f"{key.function} has no dim '{self.dim}' (have {', '.join(info.dims)})"),
            (self.size % width == 0, lambda: width_reason(key, self.dim)),
            (self.dim != "b" or self.size == 1, "the batch dim is tiled by 1"),
            (set(key.memories) <= {"GL", "WC"}, "threads have caches of their own: all operands must be in GL"),
            (
                key.threads % over == 0 and (over > 1 or key.threads == 1),
                f"{key.threads} threads do not make {over} groups",
            ),
            (not nested or over == key.threads, f"the second parallel loop takes all {key.threads} threads"),
            *(self._sums(key, over) if self.adds else ()),
        )

    def _sums(self, key: TableKey, over: int) -> Sequence[Condition]:
        """Sums of its own for each thread are possible, and lie as the output does."""
        out = key.operands[-1]
        return (
            (
                FUNCTIONS[key.function].accumulates,
                f"only an accumulating function can be split along {self.dim}: put to_accum above",
            ),
            (over == key.threads and not key.forked, f"all threads together share {self.dim}"),
            (out.dtype is None, f"the output is rounded to {out.dtype}: only a kernel may add up along {self.dim}"),
            (out.unit and not key.has_window, "sums of threads lie in rows, and operands have no windows"),
        )

    def conditions(self, key: TableKey, dims: Dims, left: Mapping[str, Any], target: Target) -> Sequence[Condition]:
        size = dims[self.dim]
        out: list[Condition] = [(size > self.size, lambda: f"the size must be less than {self.dim}={size}")]
        if self.adds:
            threads, trips = self.over(key), ceil_div(size, self.size)
            out.append((dims["b"] == 1, "tile b by 1 first"))
            out.append((trips >= threads, lambda: f"{trips} trips do not give each of {threads} threads one"))
            elements = dims["m"] * dims["n"]
            out.append((elements <= MOST_SUMS, lambda: f"sums of {elements} elements are too many for each thread"))
        return out

    def children(self, key: TableKey, dims: Dims) -> Sequence[Child]:
        inner = key.threads // self.over(key)
        below = replace(key.plain, threads=inner, forked=inner > 1)
        size = dims[self.dim]
        rest = size % self.size
        return (
            Child(size // self.size, below, {**dims, self.dim: self.size}),
            Child(rest > 0, below, {**dims, self.dim: rest}),
        )

    def ways(self, key: TableKey, dims: Dims) -> Sequence[tuple[Any, ...]]:
        """The last thread has the remainder, as many trips as any; others have one less if one is left over."""
        size, over = dims[self.dim], self.over(key)
        if size % self.size == 0:
            return ((ceil_div(size // self.size, over), 0),)
        trips = size // self.size + 1
        most = ceil_div(trips, over)
        return ((most - (trips % over == 1), 0), (most - 1, 1))

    def cost(self, key: TableKey, dims: Dims, target: Target) -> Any:
        """The fork and the join, and what streams from DRAM lose that other threads' streams run beside."""
        own = 0 if key.forked else fixed(target.costs.fork_join)
        if self.adds:
            # Lines of sums come from the threads' caches, and the output goes both ways.
            lines = footprint(key, len(key.operands) - 1, dims).lines
            own = own + fixed(lines * (key.threads + 2) * target.costs.sums_line)
        if not key.far or key.forked:
            return own
        *inputs, out = (footprint(key, i, dims).lines for i in range(len(key.operands)))
        lines = sum(inputs) + 2 * out
        # With all threads at it, the whole takes no less than DRAM does, whatever each would take by itself.
        c = target.costs
        crowded = max(0.0, 1 / c.far_streams - 1 / key.threads)
        return own + fixed(lines * dims["b"] * c.far_to_l2.long_rows * crowded)

    def node(self, bodies: Sequence[Node]) -> Node:
        return Parallel(self.dim, self.size, bodies[0], bodies[1] if len(bodies) > 1 else None, self.threads, self.adds)

    def label(self) -> str:
        return Parallel(self.dim, self.size, Hole(), None, self.threads, self.adds).label()


@dataclass(frozen=True)
class SerialAction(Action):
    """One thread does the rest. Free."""

    def requires(self, key: TableKey, target: Target) -> Sequence[Condition]:
        return (
            (not key.is_serial, "the Spec is serial already"),
            (not key.forked, "threads are under way: only a parallel loop may follow"),
        )

    def children(self, key: TableKey, dims: Dims) -> Sequence[Child]:
        return (Child(1, replace(key.plain, threads=1), dims),)

    def node(self, bodies: Sequence[Node]) -> Node:
        return Serial(bodies[0])

    def label(self) -> str:
        return "serial"
