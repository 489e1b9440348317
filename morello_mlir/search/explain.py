"""A schedule explained: its tree with, at every step, how often it runs, what it costs and what it moves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ..actions import PackAheadAction, action_of, child_specs, key_of
from ..actions.base import sum_of
from ..spec import MEMORIES, Spec, dtype_bytes
from ..targets import COST_UNITS, Target
from .schedule import INDENT, LOOPS, Node, PackAhead, ToAccum, children
from .solve import Search
from .then import then_cost

Traffic = dict[tuple[str, str], int]


@dataclass(slots=True)
class Step:
    """One place of the tree. runs: how often it is reached; own, total: cost units of the step alone and with all below
    it, as often as the thread that decides (with the most to do) comes by; traffic: bytes of all runs, by (from, to)
    memory, of the step alone."""

    label: str
    spec: Spec
    runs: int
    own: int
    total: int = 0
    traffic: Traffic = field(default_factory=dict)
    opens_loop: bool = False
    below: list[Step] = field(default_factory=list)

    def walk(self) -> Iterator[Step]:
        yield self
        for step in self.below:
            yield from step.walk()


def steps(spec: Spec, node: Node, target: Target) -> Step:
    """The tree of a legal schedule without holes, priced; what is done to the sums counts at its top. Raises
    ScheduleError where it is not legal."""
    root = _steps(spec.plain, node, target, Search(target), 1, 1)
    more = then_cost(spec, target)
    root.own += more
    root.total += more
    return root


def _steps(spec: Spec, node: Node, target: Target, search: Search, runs: int, met: int) -> Step:
    """runs: how often all threads come by; met: how often the one that decides does."""
    action = action_of(node, spec)
    key, dims = key_of(spec, target), dict(zip(spec.info.dims, spec.dims, strict=True))
    moved = {way: int(amount) * runs for way, amount in action.traffic(key, dims, target).items()}
    here = Step(node.label(), spec, runs, int(action.cost(key, dims, target)) * met, traffic=moved)
    here.opens_loop = isinstance(node, LOOPS)
    below = list(zip(child_specs(spec, node, target), children(node), strict=True))
    ways = [way[: len(below)] for way in action.ways(key, dims)]
    if len(ways) > 1:
        costs = [search.price(child, body) for (_, child), body in below]
        ways.sort(key=lambda way: sum_of(way, costs))
    for ((count, child), body), often in zip(below, ways[-1] if ways else (), strict=True):
        here.below.append(_steps(child, body, target, search, runs * count, met * int(often)))
    here.total = here.own + sum(s.total for s in here.below)
    return here


def traffic(root: Step) -> Traffic:
    """Bytes moved by the whole schedule, by (from, to) memory."""
    out: Traffic = {}
    for step in root.walk():
        for way, amount in step.traffic.items():
            out[way] = out.get(way, 0) + amount
    return dict(sorted(out.items(), key=lambda p: (MEMORIES.index(p[0][0]), MEMORIES.index(p[0][1]))))


@dataclass(frozen=True, slots=True)
class Packed:
    """A constant operand that a schedule packs ahead: its name, the layout as text, and bytes."""

    operand: str
    layout: str
    bytes: int


def packed_ahead(spec: Spec, node: Node) -> list[Packed]:
    """What the schedule `node` of `spec` packs ahead."""
    found = []
    spec = spec.plain
    # Nothing but to_accum stands above.
    while isinstance(node, (ToAccum, PackAhead)):
        if isinstance(node, PackAhead):
            action = action_of(node, spec)
            assert isinstance(action, PackAheadAction)
            dtype = action.dtype or spec.operands[action.operand].dtype
            size = action.layout.volume(spec.operand_shape(action.operand)) * dtype_bytes(dtype)
            found.append(Packed(node.operand, node.layout, size))
        node = node.body
    return found


def peak_share(spec: Spec, cycles: float, target: Target) -> float:
    """Predicted share of the multiply-add peak of the vector units of all threads."""
    threads = key_of(spec.plain, target).threads
    per_cycle = threads * target.costs.fma_per_cycle * target.lanes(spec.sums) * 2
    return spec.flops / per_cycle / cycles if cycles else 0.0


def explain(spec: Spec, node: Node, target: Target, *, least: float = 0.5) -> str:
    """The schedule as annotated text. Branches that cost less than `least` percent of the whole are cut to `...`.

    Raises ScheduleError where the schedule is not legal.
    """
    root = steps(spec.canonical(), node, target)
    cycles = root.total / COST_UNITS
    lines = [
        f"{spec}",
        f"target {target.name}: {cycles:,.0f} cycles predicted, {peak_share(spec, cycles, target):.1%} of the FMA peak",
        "traffic: " + ", ".join(f"{a} to {b} {_bytes(n)}" for (a, b), n in traffic(root).items()),
        *([f"then, at the last step along k: {then_cost(spec, target) / COST_UNITS:,.0f} cycles"] if spec.then else []),
        *(f"packed ahead: {p.operand}, {_bytes(p.bytes)}" for p in packed_ahead(spec, node)),
        "",
        *table([*_rows(root, root.total, least, 0)]),
    ]
    return "\n".join(lines)


def _rows(step: Step, whole: int, least: float, depth: int) -> Iterator[tuple[str, Mapping[str, str]]]:
    pad = INDENT * depth
    if whole and 100 * step.total < least * whole:
        yield f"{pad}...", {"share": f"{step.total / whole:.1%}"}
        return
    sizes = " ".join(f"{d}={s}" for d, s in zip(step.spec.info.dims, step.spec.dims, strict=True) if d != "b" or s > 1)
    moved = ", ".join(_bytes(n) for n in step.traffic.values())
    share = f"{step.own / whole:.1%}" if whole and step.own else ""
    yield (
        f"{pad}{step.label}{':' if step.opens_loop else ''}",
        {"runs": f"{step.runs:,}", "share": share, "moved": moved, "sizes": sizes},
    )
    for i, child in enumerate(step.below):
        if i:
            yield f"{pad}rest:", {}
        yield from _rows(child, whole, least, depth + step.opens_loop)


def table(rows: list[tuple[str, Mapping[str, str]]]) -> list[str]:
    """The steps, and beside them as comments: runs, own share, bytes moved, sizes. It parses as a schedule where
    nothing was cut."""
    width = max(len(text) for text, _ in rows)
    cols = {c: max([len(c), *(len(r.get(c, "")) for _, r in rows)]) for c in ("runs", "share", "moved", "sizes")}
    head = "  ".join(c.rjust(w) if c != "sizes" else c for c, w in cols.items())
    out = [f"{'':{width}}  // {head}".rstrip()]
    for text, r in rows:
        cells = "  ".join(r.get(c, "").rjust(w) if c != "sizes" else r.get(c, "") for c, w in cols.items())
        out.append(f"{text:{width}}  // {cells}".rstrip() if r else text)
    return out


def _bytes(n: int) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n >= size:
            return f"{n / size:.3g} {unit}"
    return f"{n} B"
