"""From a nest and its schedule to functions: loops over parallel dims, scratch, shares of threads, leaves.

Every nest becomes a private function of the bases and offsets of its operands; equal nests with equal schedules share
one. What a thread does of a parallel loop is another, which is also told the number of the thread.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace

from ...lowering.builder import Index
from ...lowering.machine import Machine
from ...lowering.outline import INTERNAL, THREADS
from ...search.nest_steps import Rows
from ...search.schedule import Node, Parallel, Tile, children, to_text
from ...targets import Target, thread_count
from ..actions import rewritten
from ..plan import dim_of, rows_plan
from ..rewrite import Child, Rewritten
from ..spec import NestSpec
from .builder import NestBuilder
from .edges import shifted
from .memory import Place
from .rows import emit_rows

#: Trips of a loop, at borders, that have code of their own, at most: the first and the last.
MOST_TRIPS = 2


@dataclass(frozen=True, slots=True)
class Function:
    """A function that is to be declared or defined: its name and the types of its arguments."""

    name: str
    types: tuple[str, ...]


class Functions:
    """The functions of nests in one module. existing: symbols that it has already, which are only declared."""

    def __init__(self, target: Target, existing: Set[str] = frozenset()):
        self.target = target
        self.machine = Machine.of(target, "f32")
        self.texts: dict[str, str] = {}
        self._existing = existing

    def nest(self, spec: NestSpec, node: Node) -> Function:
        """The function of a nest: for each operand a rank-0 memref and an offset in elements.

        Raises ScheduleError where the schedule is not legal, or has holes."""
        return self._function(spec, node, "", lambda walk, places: walk.emit(spec, node, places))

    def share(self, spec: NestSpec, node: Parallel, step: Rewritten) -> Function:
        """What one thread does of a parallel loop; its number is the last argument."""
        return self._function(spec, node, "_share", lambda walk, places: walk.share(spec, node, step, places))

    def _function(self, spec: NestSpec, node: Node, kind: str, fill: Callable[[Walk, list[Place]], None]) -> Function:
        key = f"{spec}\n{to_text(node)}\n{self.target.name} {kind}"
        digest = hashlib.blake2s(key.encode(), digest_size=5).hexdigest()
        sizes = "x".join(map(str, spec.dims))
        name = f"morello_{spec.function.lower()}{kind}_{sizes}_{digest}"
        types = [t for o in spec.operands for t in (f"memref<{o.dtype}>", "index")] + (["index"] if kind else [])
        function = Function(name, tuple(types))
        if name in self.texts:
            return function
        if name in self._existing:
            self.texts[name] = f"func.func private @{name}({', '.join(types)})"
            return function
        b = NestBuilder(self.machine)
        places = []
        for i, o in enumerate(spec.operands):
            # A share is given the offset of the first point, a nest that of what is there.
            offset = f"%offset{i}" if kind else b.add(f"%offset{i}", o.first)
            line, still = b.line_of(f"%base{i}", o.dtype), (0,) * len(o.borders)
            axes = tuple(a.stride for a in o.axes)
            places.append(Place(line, o.dtype, o.strides, offset, (), o.borders, o.around, still, axes=axes))
        self.texts[name] = ""
        fill(Walk(self, b), places)
        names = [n for i in range(len(spec.operands)) for n in (f"%base{i}", f"%offset{i}")] + (
            ["%thread"] if kind else []
        )
        parameters = ", ".join(f"{n}: {t}" for n, t in zip(names, types, strict=True))
        self.texts[name] = f"func.func private @{name}({parameters}) {INTERNAL} {{\n{b.text()}\nreturn\n}}"
        return function


def at_borders(
    spec: NestSpec, places: Sequence[Place], d: int, size: int, count: int
) -> tuple[list[int], list[frozenset[int]]]:
    """(the trips of a loop along `d` of `spec`, of `count` trips of `size`, that have points beyond a border, or all
    where that is not known; for each operand the numbers of borders that all points of the other trips are inside)."""
    low, high, inside = 0, spec.dims[d], []
    for place in places:
        own = frozenset(i for i, border in enumerate(place.borders) if border.steps[d])
        inside.append(place.inside | own)
        for i in own - place.inside:
            shift, border = place.shifts[i], place.borders[i]
            if not isinstance(shift, int):
                return list(range(count)), inside
            found = replace(border, start=border.start + shift).inside(d, spec.dims)
            low, high = max(low, found.start), min(high, found.stop)
    return [t for t in range(count) if t * size < low or (t + 1) * size > high], inside


class Walk:
    """Emits the steps of a schedule into one function."""

    def __init__(self, functions: Functions, b: NestBuilder):
        self.functions = functions
        self.target = functions.target
        self.b = b

    def emit(self, spec: NestSpec, node: Node, places: Sequence[Place]) -> None:
        """The nest `spec`, whose operands are at `places`, as `node` says."""
        step = rewritten(spec, node, self.target)
        if isinstance(node, Rows):
            emit_rows(self.b, self.functions.machine, rows_plan(spec, node, self.target), places)
            return
        if isinstance(node, Parallel):
            self.fork(spec, node, step, places)
            return
        buffers = [self.b.buffer(x.dtype, x.elements) for x in step.buffers]
        for child, body in zip(step.children, children(node), strict=True):
            own = self.sources(child, places, buffers)
            if isinstance(node, Tile) and child is step.children[0]:
                d = dim_of(node.dim, spec)
                with self.b.carry(0, child.count * node.size, node.size, (), ()) as (iv, _):
                    self.trip(spec, child, body, own, d, iv)
            else:
                self.emit(child.spec, body, own)

    def sources(self, child: Child, places: Sequence[Place], buffers: Sequence[str]) -> list[Place]:
        """Where the operands of `child` are."""
        out = []
        for source, o in zip(child.sources, child.spec.operands, strict=True):
            if source.operand is None:
                out.append(Place(buffers[source.scratch or 0], o.dtype, o.strides, source.offset))
            else:
                place = places[source.operand]
                offset = self.b.add(place.offset, source.offset)
                out.append(replace(place, strides=o.strides, offset=offset, borders=o.borders))
        return out

    def trip(self, spec: NestSpec, child: Child, body: Node, places: Sequence[Place], d: int, at: Index) -> None:
        """The trip of a loop along `d` of `spec` that is at `at`. places: those of the first. Where few trips are at
        borders, these have code of their own, which knows where it is; the others know of no borders along `d`."""
        size = child.spec.dims[d]
        met, inside = at_borders(spec, places, d, size, child.count)
        if len(met) > MOST_TRIPS:
            self.emit(child.spec, body, [self.moved(p, d, at) for p in places])
            return
        known = met if len(met) < child.count else met[:-1]
        for trip in known:
            here = self.b.value(f"arith.cmpi eq, {self.b.index(at)}, {self.b.index(trip * size)} : index")
            self.b.line(f"scf.if {here} {{")
            self.emit(child.spec, body, [self.moved(p, d, trip * size) for p in places])
            self.b.line("} else {")
        if known == met:
            free = [replace(self.moved(p, d, at), inside=own) for p, own in zip(places, inside, strict=True)]
        else:
            free = [self.moved(p, d, met[-1] * size) for p in places]
        self.emit(child.spec, body, free)
        for _ in known:
            self.b.line("}")

    def moved(self, place: Place, d: int, by: Index) -> Place:
        """The operand from position `by` along dim `d` on."""
        offset = self.b.add(place.offset, self.b.mul(by, place.strides[d]))
        return replace(place, offset=offset, shifts=shifted(place, d, by, self.b))

    # ---------------------------------------------------------------- threads

    def fork(self, spec: NestSpec, node: Parallel, step: Rewritten, places: Sequence[Place]) -> None:
        """A call for every thread."""
        b = self.b
        function = self.functions.share(spec, node, step)
        args = [x for p in places for x in (b.base_of(p.memory), b.index(p.offset))]
        thread = b.name()
        zero, one, many = (b.index(i) for i in (0, 1, _threads(spec)))
        b.line(f"scf.parallel ({thread}) = ({zero}) to ({many}) step ({one}) {{")
        b.line(f"func.call @{function.name}({', '.join([*args, thread])}) : ({', '.join(function.types)}) -> ()")
        b.line(f"}} {{{THREADS}}}")

    def share(self, spec: NestSpec, node: Parallel, step: Rewritten, places: Sequence[Place]) -> None:
        """The trips of thread `%thread`: as many as any, the remainder being the last."""
        b, d, threads = self.b, dim_of(node.dim, spec), _threads(spec)
        body, *rest = step.children
        trips, size = body.count + len(rest), node.size
        low, high = (b.index(b.div(b.mul(t, trips), threads)) for t in ("%thread", b.index(b.add("%thread", 1))))
        first = b.index(b.mul(low, size))
        last = b.value(f"arith.minui {b.index(b.mul(high, size))}, {b.index(body.count * size)} : index")
        own = self.sources(body, places, ())
        with b.carry(first, last, size, (), ()) as (iv, _):
            self.trip(spec, body, node.body, own, d, iv)
        if rest and node.rest is not None:
            b.line(f"scf.if {b.value(f'arith.cmpi eq, {high}, {b.index(trips)} : index')} {{")
            self.emit(rest[0].spec, node.rest, self.sources(rest[0], places, ()))
            b.line("}")


def _threads(spec: NestSpec) -> int:
    return spec.threads or thread_count(None)
