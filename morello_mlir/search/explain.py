"""A schedule of a contraction explained: its tree with, at every step, how often it runs, what it costs and moves."""

from __future__ import annotations

from dataclasses import dataclass

from ..actions import PackAheadAction, action_of, child_specs, key_of
from ..actions.base import sum_of
from ..spec import Spec, dtype_bytes
from ..targets import Target
from .schedule import Exchange, Node, PackAhead, ToAccum, children, opens_block
from .solve import Search
from .steps import Step, sizes_text
from .then import then_bytes, then_cost


def steps(spec: Spec, node: Node, target: Target, *, runs: int = 1, met: int = 1) -> Step:
    """The tree of a legal schedule without holes, priced; what is done to the sums stands below its top, as a comment.

    runs: how often all threads come by; met: how often the one that decides does. Raises ScheduleError where the
    schedule is not legal.
    """
    root = _steps(spec.plain, node, target, Search(target), runs, met)
    if spec.then is not None:
        cost = then_cost(spec, target) * met
        moved = {("GL", "L2"): then_bytes(spec) * runs} if spec.then.extras else {}
        root.below.insert(0, Step(f"// then {spec.then.body}", runs, cost, cost, moved, "at the last step along k"))
        root.summed()
    return root


def _steps(spec: Spec, node: Node, target: Target, search: Search, runs: int, met: int) -> Step:
    action = action_of(node, spec)
    key, dims = key_of(spec, target), dict(zip(spec.info.dims, spec.dims, strict=True))
    moved = {way: int(amount) * runs for way, amount in action.traffic(key, dims, target).items()}
    opens = opens_block(node)
    own = int(action.cost(key, dims, target)) * met
    here = Step(node.label() + (":" if opens else ""), runs, own, 0, moved, sizes_text(spec.info.dims, spec.dims))
    below = list(zip(child_specs(spec, node, target), children(node), strict=True))
    ways = [way[: len(below)] for way in action.ways(key, dims)]
    if len(ways) > 1:
        costs = [search.price(child, body) for (_, child), body in below]
        ways.sort(key=lambda way: sum_of(way, costs))
    for i, (((count, child), body), often) in enumerate(zip(below, ways[-1] if ways else (), strict=True)):
        part = _steps(child, body, target, search, runs * count, met * int(often))
        part.indent = int(opens and not i)
        here.below.append(part.under("rest") if i else part)
    return here.summed()


@dataclass(frozen=True, slots=True)
class Packed:
    """A constant operand that a schedule packs ahead: its name, the layout as text, and bytes."""

    operand: str
    layout: str
    bytes: int


def packed_ahead(spec: Spec, node: Node) -> list[Packed]:
    """What the schedule `node` of `spec` packs ahead."""
    found = []
    spec, exchanged = spec.plain, False
    # Nothing but these stands above.
    while isinstance(node, (ToAccum, Exchange, PackAhead)):
        exchanged ^= isinstance(node, Exchange)
        if isinstance(node, PackAhead):
            action = action_of(node, spec)
            assert isinstance(action, PackAheadAction)
            source = 1 - action.operand if exchanged else action.operand
            batch, *sizes = spec.operand_shape(source)
            size = action.layout.volume((batch, *(reversed(sizes) if exchanged else sizes)))
            size *= dtype_bytes(action.dtype or spec.operands[source].dtype)
            found.append(Packed(node.operand, node.layout, size))
        node = node.body
    return found
