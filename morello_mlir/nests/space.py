"""The declared space of nests: "exhaustive" refers to what is listed here (docs/nests.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from ..errors import ScheduleError
from ..search.nest_steps import SCRATCH, Pass, Rows
from ..targets import Target
from .online import MAXIMA, scalings
from .plan import MOST_SIDE_BY_SIDE, PassPlan, RowsPlan, Values, goals, lanes_of, rows_plan, swept_outputs, value_of
from .spec import NestSpec

#: Points of a group along a parallel dim that is not the vector dim.
TILES = (1, 2, 3, 4, 6, 8)
#: The same along a dim in which the elements of an operand are neighbours that are not so along the vector dim.
SQUARES = (*TILES, 16)
#: Vectors of a group along a parallel vector dim.
VECTORS = (1, 2, 4, 8)
#: The most vectors of one value that a group computes side by side.
MOST_SIDE = 16
#: Unrolled steps along the innermost scan dim; all of a dim, where it has no more than the last.
UNROLLS = (1, 2, 4, MOST_SIDE_BY_SIDE)
#: Elements of a block of an online pass.
BLOCKS = (256, 512, 1024, 2048, 4096)
#: How many reductions that could be next are tried in any combination; of more, all at once.
FREE_CHOICES = 3
#: Stored values that are tried in any combination with one pass; of more, the dearest.
FREE_STORES = 3


def layouts(spec: NestSpec, target: Target) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """(vector dim, vectors, tile of every dim in points): ways to cut a nest into groups."""
    lanes = lanes_of(spec, target)
    dims = [d for d, n in enumerate(spec.dims) if n > 1] or [0]
    for vector in dims:
        parallel = not spec.scan[vector]
        units = -(-spec.dims[vector] // lanes)
        others = [d for d in dims if not spec.scan[d] and d != vector]
        for vectors in VECTORS if parallel else (1,):
            if vectors > max(1, units):
                continue
            for tile in _tiles(spec, vector, others):
                side = vectors
                for n in tile:
                    side *= n
                if side <= MOST_SIDE:
                    yield vector, vectors, tile


def _tiles(spec: NestSpec, vector: int, dims: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Tiles of at most two of `dims`, the last ones first."""
    one = [1] * len(spec.dims)
    yield tuple(one)
    across = [o for o in spec.operands if o.strides[vector] > 1 and not o.axes]
    along = {d for d in dims if any(o.strides[d] == 1 for o in across)}
    sizes = {d: [t for t in (SQUARES if d in along else TILES) if 1 < t <= spec.dims[d]] for d in dims}
    for d in dims:
        for n in sizes[d]:
            yield tuple(n if e == d else 1 for e in range(len(one)))
    for d, e in combinations(dims, 2):
        for n in sizes[d]:
            for m in sizes[e]:
                yield tuple(n if f == d else m if f == e else 1 for f in range(len(one)))


def unrolls(spec: NestSpec, vector: int, lanes: int) -> list[tuple[tuple[str, int], ...]]:
    """Ways to unroll a pass: the innermost scan dim in part, or whole ones from the innermost on."""
    scan = [d for d in spec.scan_dims if d != vector] + ([vector] if spec.scan[vector] else [])
    units = {d: -(-spec.dims[d] // lanes) if d == vector else spec.dims[d] for d in scan}
    scan = [d for d in scan if units[d] > 1]
    if not scan:
        return [()]
    last = scan[-1]
    out: list[tuple[tuple[str, int], ...]] = [((f"d{last}", n),) if n > 1 else () for n in UNROLLS if n <= units[last]]
    whole: tuple[tuple[str, int], ...] = ()
    points = 1
    for d in reversed(scan):
        points *= units[d]
        if units[d] > UNROLLS[-1] or points > 2 * MOST_SIDE:
            break
        whole = ((f"d{d}", units[d]), *whole)
        if whole not in out:
            out.append(whole)
    return out


#: Structures found before, by what they depend on.
_KNOWN: dict[object, list[RowsPlan]] = {}
MOST_KNOWN = 512


class Structures:
    """The sequences of passes of a nest, without what depends on how it is cut into groups."""

    def __init__(self, spec: NestSpec, target: Target):
        self.spec, self.target = spec, target
        self.values = Values(spec)
        self.body = spec.body
        outputs = {f"y{k}" if len(spec.outputs) > 1 else "y": k for k in swept_outputs(spec)}
        self.outputs = {n: spec.body.outputs[k] for n, k in outputs.items()}
        self.names = goals(spec)
        self.targets = {n: self.outputs.get(n, value_of(n, spec) if n not in self.outputs else -1) for n in self.names}

    def known(self) -> list[RowsPlan]:
        """`plans` of no given passes; nests that differ in sizes alone share them."""
        spec = self.spec
        operands = tuple((o.dtype, tuple(s > 0 for s in o.strides), o.alias) for o in spec.operands)
        sizes = tuple(n > 1 for n in spec.dims), tuple(b < self._length() for b in BLOCKS)
        key = spec.body, spec.scan, operands, sizes, self.target.vector_bytes
        found = _KNOWN.get(key)
        if found is None:
            if len(_KNOWN) >= MOST_KNOWN:
                _KNOWN.clear()
            found = _KNOWN[key] = list(self.plans())
        return [replace(plan, spec=spec) for plan in found]

    def plans(self, given: Sequence[Pass] = ()) -> Iterator[RowsPlan]:
        """Every sequence that begins with the passes `given`, as a legal plan of some layout."""
        vector = f"d{next((d for d, n in enumerate(self.spec.dims) if n > 1), 0)}"
        seen = set()
        for passes in self.sequences(tuple(given)):
            if passes in seen:
                continue
            seen.add(passes)
            try:
                plan = rows_plan(self.spec, Rows(vector, 1, (), 0, self.bare(passes, given)), self.target)
            except ScheduleError:
                continue
            own = [replace(p, step=s) for p, s in zip(plan.passes, passes, strict=True)]
            yield replace(plan, passes=tuple(own), node=replace(plan.node, passes=passes))

    def bare(self, passes: tuple[Pass, ...], given: Sequence[Pass]) -> tuple[Pass, ...]:
        """Without what given passes say that only some layouts allow."""
        return tuple(replace(p, unroll=(), streaming=False) for p in passes)

    def sequences(self, given: tuple[Pass, ...]) -> Iterator[tuple[Pass, ...]]:
        done: set[str] = set()
        stored: dict[int, str] = {}
        for p in given:
            done.update(p.values)
            for v, place in p.stores:
                stored[value_of(v, self.spec)] = place
        if not self.names and not given:
            # Nothing varies along scan dims: an empty sequence is none.
            return
        yield from self._from(given, frozenset(done), stored)

    def _from(
        self, passes: tuple[Pass, ...], done: frozenset[str], stored: dict[int, str]
    ) -> Iterator[tuple[Pass, ...]]:
        left = [n for n in self.names if n not in done]
        if not left:
            yield passes
            return
        for step in self._next(left, done):
            after = done | set(step.values)
            for stores in self._stores(step, [n for n in left if n not in after], stored):
                more = {**stored, **{value_of(v, self.spec): place for v, place in stores}}
                yield from self._from((*passes, replace(step, stores=stores)), after, more)

    def _done(self, done: frozenset[str]) -> set[int]:
        return {self.targets[n] for n in done if self.body.values[self.targets[n]].reduces and n not in self.outputs}

    def _missing(self, name: str, have: set[int]) -> set[int]:
        at = self.targets[name]
        missing = set(self.values.needs(at)) - have
        if name in self.outputs and self.body.values[at].reduces and self.values.swept and at not in have:
            missing.add(at)
        return missing

    def _next(self, left: Sequence[str], done: frozenset[str]) -> Iterator[Pass]:
        have = self._done(done)
        ready = [n for n in left if not self._missing(n, have)]
        outputs = tuple(n for n in ready if n in self.outputs)
        sums = [n for n in ready if n not in self.outputs]
        for chosen in _subsets(sums, FREE_CHOICES):
            if chosen:
                yield Pass(chosen)
            if outputs:
                yield Pass((*chosen, *outputs))
        for m in sums:
            at = self.targets[m]
            if self.body.values[at].op not in MAXIMA:
                continue
            found = scalings(self.body, at, self.values.row)
            with_m = tuple(n for n in left if self._missing(n, have) == {at} and self.targets[n] in found)
            if with_m and not any(n in self.outputs for n in with_m):
                for block in (0, *(b for b in BLOCKS if b < self._length())):
                    yield Pass((m, *with_m), online=block)

    def _length(self) -> int:
        return max((self.spec.dims[d] for d in self.spec.scan_dims), default=0)

    def _stores(self, step: Pass, left: Sequence[str], stored: dict[int, str]) -> Iterator[tuple[tuple[str, str], ...]]:
        yield ()
        if not left or not self.values.swept:
            return
        _, now, _ = self.values.step([self.targets[n] for n in step.values], stored)
        _, later, _ = self.values.step([self.targets[n] for n in left], stored)
        names = self.body.names
        candidates = [
            v
            for v in sorted(now & later)
            if names[v] and not self.body.values[v].is_leaf and not self.body.values[v].reduces
            if v not in self.values.row and any(u in later and u not in now for u in self.body.users[v])
        ]
        candidates = candidates[-FREE_STORES:]
        free = [n for n in left if n in self.outputs and n not in stored.values()]
        for chosen in _subsets([names[v] for v in candidates], FREE_STORES):
            if not chosen:
                continue
            rooms, pairs = list(free), []
            for v in chosen:
                room = next((r for r in rooms if self._fits(v, r)), None)
                if room:
                    rooms.remove(room)
                pairs.append((v, room or SCRATCH))
            if any(place != SCRATCH for _, place in pairs):
                yield tuple(pairs)
            yield tuple((v, SCRATCH) for v in chosen)

    def _fits(self, name: str, room: str) -> bool:
        """Whether the output `room` can hold value `name`, as far as types and strides go."""
        at = value_of(name, self.spec)
        k = next(k for k in swept_outputs(self.spec) if room in ("y", f"y{k}"))
        out = self.spec.outputs[k]
        steps = all(out.strides[d] or self.spec.dims[d] == 1 for d in self.spec.varies[at])
        return out.dtype == self.body.values[at].dtype and steps


def _subsets(items: Sequence[str], most: int) -> Iterator[tuple[str, ...]]:
    """All subsets of a few, or nothing and all of many."""
    if len(items) > most:
        yield ()
        yield tuple(items)
        return
    for n in range(len(items) + 1):
        yield from combinations(items, n)


def sweeps_of(count: int, per: int) -> tuple[tuple[tuple[int, int], ...], ...]:
    """As `RowsPlan.sweeps`, of `count` passes in `per` sweeps."""
    return tuple(tuple((j, j // per) for j in reversed(range(w, count, per))) for w in range(per))


def can_pipeline(plan: RowsPlan, per: int) -> bool:
    """Whether the passes of a plan may run in `per` sweeps, as `plan.check_pipeline` has it."""
    spec = plan.spec
    loops = [d for d in spec.parallel_dims if spec.dims[d] > plan.tile[d]]
    if not spec.scan[plan.vector] or not loops:
        return False
    inner = loops[-1]
    count = len(plan.passes)
    lag = (count - 1) // per
    if spec.dims[inner] % plan.tile[inner] or spec.dims[inner] // plan.tile[inner] <= lag:
        return False
    if any(len(s) > 1 and any(plan.passes[j].step.online is not None for j, _ in s) for s in sweeps_of(count, per)):
        return False
    for j, p in enumerate(plan.passes):
        for store in p.stores:
            last = max((i for i, q in enumerate(plan.passes) if store.value in q.loads), default=j)
            if store.output is None and last - j > per:
                return False
    return True


def streams(p: PassPlan, spec: NestSpec, vector: int) -> bool:
    """Whether a pass may write past the caches."""
    return bool(p.outputs) and all(spec.outputs[k].strides[vector] == 1 for k in p.outputs)


# ---------------------------------------------------------------- steps above `rows`

#: Steps of a serial loop over a parallel dim that keeps near what comes back.
BLOCK_STEPS = (16, 64, 256)
#: The share of the cost that such a loop must be able to save.
BLOCK_GAIN = 0.1
#: Into how many parts for each thread a loop is cut that threads share.
PARTS = (1, 2, 4)


def shared_steps(n: int, threads: int) -> list[int]:
    """Sizes of steps tried for a loop of `n` turns that `threads` share."""
    return sorted({size for parts in PARTS if 0 < (size := -(-n // (threads * parts))) < n}, reverse=True)


def stages(spec: NestSpec) -> list[tuple[str, ...]]:
    """Sets of values that are tried as a stage: the reductions that need no others, with those that need only these,
    and so on; each with one of the values that are needed on both sides."""
    body, values = spec.body, Values(spec)
    out: list[tuple[str, ...]] = []
    have: set[int] = set()
    final = set(body.outputs)
    while True:
        ready = {r for r in body.reductions if r not in have and values.needs(r) <= have}
        if not ready:
            return out
        have |= ready
        chosen = sorted(have)
        names = tuple(body.names[v] for v in chosen)
        if not final <= have:
            out.append(names)
            kept = [
                v
                for v in sorted(frozenset().union(*(body.depends(r) for r in have)))
                if v not in values.row and not body.values[v].is_leaf and body.names[v]
                if any(u not in have and not body.values[u].reduces for u in body.users[v])
            ]
            out += [(*names, body.names[v]) for v in kept]
