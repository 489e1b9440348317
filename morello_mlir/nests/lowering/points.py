"""The points of a nest: groups of rows, and the values of the tiles of which they are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from ...lowering.builder import Index
from ..body import Value
from ..facts import Facts
from ..online import Scaling
from ..spec import NestSpec
from . import vector_math
from .builder import NestBuilder
from .edges import Edge
from .memory import Memory, Place, Tile, spread
from .reductions import Reduction
from .tables import Places, gathered
from .values import Values, computed
from .vectors import Bundle

#: The least finite number of the types that maxima are held in.
LOWEST = {"f32": -3.4028234663852886e38, "f64": -1.7976931348623157e308}


@dataclass
class Group:
    """Points of the parallel dims that are worked on together. at, counts, live: as in Tile, of the parallel dims (0
    and 1 along the others). rows: what is known of the values that do not vary along scan dims, each a bundle. factors:
    what stored values are multiplied by, in the block at hand. inside: as in Tile, wherever it is along scan dims."""

    at: tuple[Index, ...]
    counts: tuple[int, ...]
    live: int | str | None
    rows: dict[int, Bundle] = field(default_factory=dict)
    factors: dict[int, Bundle] = field(default_factory=dict)
    inside: frozenset[Edge] = frozenset()

    @property
    def tile(self) -> Tile:
        return Tile(self.at, self.counts, self.live, inside=self.inside)


@dataclass(frozen=True, slots=True)
class Online:
    """See `Pass.online`: the maximum, how what is made of it scales, and the block (0: an unrolled step).

    shifts: where the maximum is kept that the stored values of each block are against, if any are stored: a vector for
    each of `rows` rows, block by block.
    """

    maximum: int
    scaling: dict[int, Scaling]
    block: int
    shifts: Place | None = None
    rows: int = 1


@dataclass(frozen=True, slots=True)
class Sweeping:
    """What one pass does in a sweep: the reductions that it computes, and what it writes where (place, value, past the
    caches). stored: where values lie that earlier passes have written; against: the online pass that has, where some of
    them are yet to be corrected."""

    reductions: tuple[int, ...]
    writes: tuple[tuple[int, Place, bool], ...]
    stored: dict[int, Place]
    prefetch: int = 0
    online: Online | None = None
    against: Online | None = None


@dataclass(frozen=True, slots=True)
class Stage:
    """A pass, and the group of rows at which it is in a sweep."""

    group: Group
    work: Sweeping


class Nest:
    """Emits tiles and sweeps of one nest. inputs: where they lie."""

    def __init__(self, b: NestBuilder, spec: NestSpec, memory: Memory, inputs: Sequence[Place]):
        self.b = b
        self.spec = spec
        self.memory = memory
        self.inputs = inputs
        self.v: Values = memory.values
        self.vector = memory.vector
        self.scan = frozenset(spec.scan_dims)
        self.facts = Facts(spec.body)
        #: Values that are computed once for a group of rows. Without scan dims, everything is computed in tiles.
        self.row = frozenset(v for v in range(len(spec.body.values)) if self.scan and spec.is_row(v))

    @cached_property
    def narrow(self) -> Nest:
        """The same with vectors of one lane, for places that are the same for a whole vector."""
        return Nest(self.b, self.spec, Memory(self.b, self.memory.machine, Values(self.b, 1), self.vector), self.inputs)

    def arguments(self, at: int, fuses: bool) -> Sequence[int]:
        """The values, as vectors, that `at` is computed from."""
        if self.spec.body.values[at].op != "gather":
            return self.facts.arguments(at, fuses)
        return [a for a in self.spec.body.values[at].args if self.vector in self.spec.varies[a]]

    # ---------------------------------------------------------------- values

    def rows(self, group: Group, wanted: Sequence[int]) -> None:
        """Computes the values `wanted`, which do not vary along scan dims, and remembers them in the group. The
        reductions that they are made of are known, or are none."""
        Evaluation(self, group.tile, group, {}, rows=True).values(wanted)

    def write_row(self, group: Group, number: int, place: Place) -> None:
        """Stores the value `number`, which the group knows."""
        shape = group.tile.shape(frozenset(d for d, s in enumerate(place.strides) if s))
        bundle = spread(group.rows[number], group.tile.shape(self.spec.varies[number]), shape)
        self.memory.write(place, group.tile, shape, bundle)

    def row_leaves(self, values: Sequence[int], have: set[int]) -> list[int]:
        """Of the values that `values` are made of, those that a sweep needs from outside of it: what does not vary
        along scan dims, but for what is made of the reductions `have`, which the sweep itself computes."""
        found: dict[int, None] = {}
        seen: set[int] = set()
        stack = list(values)
        while stack:
            at = stack.pop()
            if at in seen:
                continue
            seen.add(at)
            if at in self.row and not have & self.spec.body.depends(at):
                found[at] = None
            else:
                is_table = self.spec.body.values[at].op == "gather"
                stack += self.arguments(at, False) if is_table else self.spec.body.values[at].args
        return sorted(found)

    # ---------------------------------------------------------------- reductions

    def reduction(self, at: int) -> Reduction:
        """How the reduction number `at` is done."""
        body = self.spec.body
        value = body.values[at]
        name, args = value.op.removeprefix("reduce_"), [body.values[a] for a in value.args]
        if not name.startswith("arg"):
            return Reduction(name, args[0].dtype, quiet=at in self.facts.quiet)
        dim = args[1].attr
        ascending = args[1].op == "index" and self.scan == frozenset((dim,))
        return Reduction(name, args[0].dtype, args[1].dtype, ascending=ascending)

    # ---------------------------------------------------------------- what is against an earlier maximum

    def factor(self, group: Group, online: Online, at: int, old: Bundle) -> Bundle:
        """What makes the value `at`, which is against the maximum `old`, one against the maximum that the group knows:
        exp((old - maximum) * c), by row."""
        body, scaling = self.spec.body, online.scaling[at]
        dtype = body.values[online.maximum].dtype
        f = self.v.floats(dtype)
        difference = f.sub(old, group.rows[online.maximum])
        if scaling.factor is not None:
            self.rows(group, [scaling.factor])
            shape = group.tile.shape(self.spec.varies[scaling.factor])
            difference = f.mul(difference, spread(group.rows[scaling.factor], shape, group.counts))
        out = vector_math.apply(f, scaling.exponential, difference)
        there = body.values[at].dtype
        return out if computed(there) == f.dtype else self.v.cast("cast", out, dtype, there)

    def shift(self, online: Online, top: Bundle) -> Bundle:
        """What is subtracted instead of the maximum so far: never -inf, which less -inf would be NaN."""
        f = self.v.floats(self.spec.body.values[online.maximum].dtype)
        return f.larger(f.number(LOWEST[f.dtype]), top)


class Evaluation:
    """The values of one tile."""

    def __init__(self, nest: Nest, tile: Tile, group: Group, stored: dict[int, Place], rows: bool = False):
        self.nest = nest
        self.tile = tile
        self.group = group
        self.stored = stored
        #: What is computed is remembered by the group.
        self.known: dict[int, Bundle] = group.rows if rows else {}
        self.live = nest.memory.mask(tile)

    def shape(self, at: int) -> tuple[int, ...]:
        return self.tile.shape(self.nest.spec.varies[at])

    def values(self, wanted: Sequence[int]) -> list[Bundle]:
        """The bundles of the values `wanted`."""
        body = self.nest.spec.body
        todo: set[int] = set()
        stack = list(wanted)
        while stack:
            at = stack.pop()
            if at not in todo and at not in self.known and at not in self.group.rows:
                todo.add(at)
                if at not in self.stored:
                    stack += self.nest.arguments(at, self._fuses(at))
        for at in sorted(todo):
            self.known[at] = self._compute(at, body.values[at])
        return [self.get(at) for at in wanted]

    def get(self, at: int) -> Bundle:
        return self.known[at] if at in self.known else self.group.rows[at]

    def _fuses(self, at: int) -> bool:
        """Whether a multiply-add can be made of the value: not where its product is known already."""
        product = self.nest.facts.products.get(at)
        if product is None:
            return False
        known = product in self.known or product in self.group.rows or product in self.stored
        # What is the same for all of a row is computed once, outside.
        return not known and not (product in self.nest.row and at not in self.nest.row)

    def _compute(self, at: int, value: Value) -> Bundle:
        nest = self.nest
        if at in self.stored:
            bundle = nest.memory.read(self.stored[at], self.tile, self.shape(at))
            if at not in self.group.factors:
                return bundle
            factor = spread(self.group.factors[at], self.group.counts, self.shape(at))
            return nest.v.floats(value.dtype).mul(bundle, factor)
        if value.op == "input":
            return nest.memory.read(nest.inputs[int(value.attr or 0)], self.tile, self.shape(at))
        if value.op == "gather":
            return self._gathered(at, value)
        if value.op == "const":
            return nest.v.number(value.number, value.dtype)
        if value.op == "index":
            return self._positions(int(value.attr or 0), value.dtype)
        assert not value.reduces, "a reduction is known before what is made of it"
        if self._fuses(at):
            return self._fused(at, value)
        if at in nest.facts.differences:
            return self._difference(at, nest.facts.differences[at])
        operands = [nest.spec.body.values[a] for a in value.args]
        args = [spread(self.get(a), self.shape(a), self.shape(at)) for a in value.args]
        return nest.v.apply(value, args, operands, self.live)

    def _gathered(self, at: int, value: Value) -> Bundle:
        """Elements of a table."""
        nest, shape = self.nest, self.shape(at)
        places = [a for a in value.args if nest.vector not in nest.spec.varies[a]]
        alone = Evaluation(nest.narrow, replace(self.tile, live=None, known={}), Group((), (), None), {})
        same = dict(zip(places, alone.values(places), strict=True))
        at_once = [
            Places(spread(same.get(a) or self.get(a), self.shape(a), shape), nest.spec.body.values[a].dtype, a in same)
            for a in value.args
        ]
        return gathered(nest.memory, nest.inputs[int(value.attr or 0)], self.tile, shape, at_once)

    def _difference(self, at: int, parts: tuple[int, int]) -> Bundle:
        """exp(x - top)."""
        x, top = (spread(self.get(a), self.shape(a), self.shape(at)) for a in parts)
        return vector_math.exp_of_difference(self.nest.v.floats("f32"), x, top)

    def _fused(self, at: int, value: Value) -> Bundle:
        """A sum or difference of which one part is a product."""
        facts, v = self.nest.facts, self.nest.v.floats(value.dtype)
        product = facts.products[at]
        x, y = (spread(self.get(a), self.shape(a), self.shape(at)) for a in self.nest.spec.body.values[product].args)
        (other,) = [a for a in value.args if a != product]
        z = spread(self.get(other), self.shape(other), self.shape(at))
        if value.op == "sub":
            return v.fma(x, y, v.neg(z)) if value.args[0] == product else v.fma(v.neg(x), y, z)
        return v.fma(x, y, z)

    def _positions(self, dim: int, dtype: str) -> Bundle:
        """Where the points of the tile are along `dim`."""
        b, v, nest = self.nest.b, self.nest.v, self.nest
        lanes = v.lanes if dim == nest.vector else 1
        out: list[str] = []
        for step in range(self.tile.counts[dim]):
            at = b.add(self.tile.at[dim], step * lanes)
            if isinstance(at, int):
                splat = v.number(at, dtype)
            else:
                splat = (v.splat(b.value(f"arith.index_cast {at} : index to {dtype}"), dtype),)
            if dim == nest.vector:
                splat = v.each(f"arith.addi {{}}, {{}} : {v.type(dtype)}", splat, v.lane_numbers(dtype))
            out += splat
        return tuple(out)
