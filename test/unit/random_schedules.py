"""Schedules at random, for tests of what they compute."""

from __future__ import annotations

import random
from dataclasses import replace

from morello_mlir.actions import action_of, check, check_tree, child_specs, explore, key_of
from morello_mlir.errors import ScheduleError
from morello_mlir.search.schedule import (
    LOOPS,
    Hole,
    Kernel,
    Move,
    Node,
    PackAhead,
    Parallel,
    Serial,
    Split,
    Tile,
    ToAccum,
)
from morello_mlir.spec import Spec
from morello_mlir.targets import Target


class DeadEnd(Exception):
    """No legal step leads on from here (the output is in registers, say, and no kernel takes the operands)."""


def random_schedule(spec: Spec, target: Target, rng: random.Random, budget: int = 8) -> Node:
    """A legal schedule for `spec`, chosen at random: any action that the rules allow, tile sizes from everywhere."""
    for left in (budget, budget // 2, 0):
        try:
            tree = _random_node(spec, target, rng, left)
        except DeadEnd:
            continue
        check_tree(spec, tree, target)
        return tree
    raise AssertionError(f"no schedule found for {spec}")


def _random_node(spec: Spec, target: Target, rng: random.Random, budget: int) -> Node:
    if not spec.info.accumulates:
        if rng.random() < 0.3 and (past := _random_past_caches(spec, target, rng)):
            return past
        ((_, accumulating),) = child_specs(spec, ToAccum(Hole()), target)
        return ToAccum(_random_node(accumulating, target, rng, budget))
    const = [i for i, t in enumerate(spec.operands) if t.const]
    if const:
        return _random_ahead(spec, rng.choice(const), target, rng, budget)
    if not spec.serial:
        return _random_sharing(spec, target, rng, budget)
    options = _options(spec, target)
    kernels = [n for n in options if isinstance(n, Kernel)]
    vector_kernels = [n for n in kernels if n.name != "scalar"]
    if vector_kernels and (budget <= 0 or rng.random() < 0.6):
        return rng.choice(vector_kernels)
    if kernels and rng.random() < 0.1:
        return rng.choice(kernels)
    for pick in _picks(spec, target, rng, budget, [n for n in options if isinstance(n, Move)])[:4]:
        try:
            return _with_bodies(pick, spec, target, rng, budget)
        except DeadEnd:
            continue
    if kernels:
        return rng.choice(kernels)
    raise DeadEnd


def _random_ahead(spec: Spec, operand: int, target: Target, rng: random.Random, budget: int) -> Node:
    """Operand `operand`, a constant, packed ahead in any panels, or not."""
    if rng.random() < 0.2:
        tensors = [replace(t, const=t.const and i != operand) for i, t in enumerate(spec.operands)]
        return _random_node(replace(spec, operands=tuple(tensors)), target, rng, budget)
    lanes = target.lanes(spec.operands[operand].dtype)
    width = rng.choice((1, 5, 6, 12, lanes, lanes + 3))
    layout = f"[b, m/{width}, k, m%{width}]" if operand == 0 else f"[b, n/{width}, k, n%{width}]"
    name = spec.info.operands[operand][0]
    ((_, packed),) = child_specs(spec, PackAhead(name, layout, Hole()), target)
    return PackAhead(name, layout, _random_node(packed, target, rng, budget))


def _random_past_caches(spec: Spec, target: Target, rng: random.Random) -> Node | None:
    """A schedule that writes the output past the caches: loops, and kernels whose output is in registers. None where
    such a one is not legal."""
    loops = [(d, s) for d, s in (("n", 16 * rng.randint(1, 2)), ("m", rng.randint(1, 3))) if s < spec.size(d)]
    tree: Node = Move("out", "VRF", None, Kernel("broadcast_fma"))
    for dim, size in rng.sample(loops, len(loops)):
        tree = Tile(dim, size, tree, tree if spec.size(dim) % size else None)
    for name in ("rhs", "lhs"):
        tree = Move(name, "L2", None, tree)
    tree = Move("out", "WC", None, tree)
    try:
        check_tree(spec, tree, target)
    except ScheduleError:
        return None
    return tree


def _random_sharing(spec: Spec, target: Target, rng: random.Random, budget: int) -> Node:
    """A step of a parallel Spec: a parallel loop mostly, one or two dims deep."""
    key = key_of(spec, target)
    groups = [g for g in range(2, key.threads + 1) if key.threads % g == 0]
    loops, others = [], []
    for dim in "bmn":
        width = key.pack_width(dim)
        if spec.size(dim) > width:
            size = 1 if dim == "b" else rng.randint(1, (spec.size(dim) - 1) // width) * width
            over = rng.choice(groups)
            loops.append(Parallel(dim, size, Hole(), None, over if over < key.threads else 0))
            others.append(Tile(dim, size, Hole(), None))
    if spec.size("k") > 1:
        others.append(Split("k", rng.randint(1, spec.size("k") - 1), Hole(), None))
        # Every thread has a trip.
        loops.append(Parallel("k", max(1, rng.randint(1, spec.size("k")) // key.threads), Hole(), None, adds=True))
    width = rng.choice((1, 5, 8))
    others.append(Move("lhs", "GL", f"[b, m/{width}, k, m%{width}]", Hole()))
    others.append(Move("rhs", "GL", f"[b, n/{width}, k, n%{width}]", Hole()))
    first = rng.sample(loops, len(loops))
    rest = rng.sample(others, len(others)) if budget > 0 else []
    # Two steps in three are loops; a group that finds nothing to share is a dead end.
    for pick in [*(first + rest if rng.random() < 0.66 else rest + first), Serial(Hole())][:6]:
        if _legal(pick, spec, target):
            try:
                return _with_bodies(pick, spec, target, rng, budget)
            except DeadEnd:
                continue
    raise DeadEnd


def _picks(spec: Spec, target: Target, rng: random.Random, budget: int, moves: list[Move]) -> list[Node]:
    """Steps to try, in order. Registers come first where they can be had: most random steps lead past them."""
    registers = [n for n in moves if n.memory == "VRF"]
    if registers and rng.random() < 0.7:
        return [*registers, *_forced(spec, target, moves)]
    if budget <= 0:
        return _forced(spec, target, moves)
    # At most one of the many ways to pack: otherwise everything would be packed.
    packs = [n for n in moves if n.layout is not None]
    moves = [n for n in moves if n.layout is None] + rng.sample(packs, min(len(packs), rng.choice((0, 0, 1))))
    tiles = _random_tiles(spec, target, rng)
    groups = [moves, tiles] if rng.random() < 0.6 else [tiles, moves]
    return [n for group in groups for n in rng.sample(group, len(group))]


def _with_bodies(pick: Node, spec: Spec, target: Target, rng: random.Random, budget: int) -> Node:
    below = [s for _, s in child_specs(spec, _probe(pick, spec), target)]
    bodies = [_random_node(s, target, rng, budget - 1 - (i > 0)) for i, s in enumerate(below)]
    if isinstance(pick, Move):
        return Move(pick.operand, pick.memory, pick.layout, bodies[0])
    if isinstance(pick, Serial):
        return Serial(bodies[0])
    return replace(pick, body=bodies[0], rest=bodies[1] if len(bodies) > 1 else None)


def _probe(node: Node, spec: Spec) -> Node:
    """The step with a remainder where it needs one, so that its children can be asked for."""
    if isinstance(node, LOOPS):
        return replace(node, rest=Hole() if spec.size(node.dim) % node.size else None)
    return node


def _legal(node: Node, spec: Spec, target: Target) -> bool:
    try:
        check(action_of(node, spec), spec, target)
    except ScheduleError:
        return False
    return True


def _options(spec: Spec, target: Target) -> list[Node]:
    """Legal kernels and moves; panel widths beyond those that the target tries are legal too."""
    key = key_of(spec, target)
    dims = dict(zip(spec.info.dims, spec.dims, strict=True))
    nodes = [a.node([Hole()]) for a in explore(key, dims, target)]
    lanes = target.lanes(key.dtype)
    for width in (1, 5, 6, 12, lanes, lanes + 3):
        nodes.append(Move("lhs", "L2", f"[b, m/{width}, k, m%{width}]", Hole()))
        nodes.append(Move("rhs", "L2", f"[b, n/{width}, k, n%{width}]", Hole()))
        if key.kernels:
            for group, dtype in ((1, " " + key.dtype), (2, " i16"), (2, ""), (4, "")):
                inner = ("k", "") if group == 1 else (f"k/{group}", f", k%{group}")
                nodes.append(Move("lhs", "L2", f"[b, m/{width}, {inner[0]}, m%{width}{inner[1]}]{dtype}", Hole()))
                nodes.append(Move("rhs", "L2", f"[b, n/{width}, {inner[0]}, n%{width}{inner[1]}]{dtype}", Hole()))
    return [n for n in nodes if isinstance(n, (Kernel, Move)) and _legal(n, spec, target)]


def _random_tiles(spec: Spec, target: Target, rng: random.Random) -> list[Node]:
    key = key_of(spec, target)
    out = []
    for dim in ("b", "m", "k", "n"):
        width = key.pack_width(dim)
        if spec.size(dim) <= width:
            continue
        size = 1 if dim == "b" else rng.randint(1, max(1, (spec.size(dim) - 1) // width)) * width
        node = (Split if dim == "k" else Tile)(dim, size, Hole(), None)
        if _legal(node, spec, target):
            out.append(node)
    return out


def _forced(spec: Spec, target: Target, moves: list[Move]) -> list[Node]:
    """Steps towards a vector kernel, best first: batches to one, tiles to panels, operands inwards, a small tile."""
    key = key_of(spec, target)
    out: list[Node] = []
    for dim in ("b", "m", "n"):
        width = key.pack_width(dim)
        if spec.size(dim) > width and (dim == "b" or width > 1):
            out.append(Tile(dim, width, Hole(), None))
    plain = [n for n in moves if n.layout is None and n.memory != "VRF"]
    out += sorted(plain, key=lambda n: n.memory != "L2")
    streams_rows = spec.operands[1].layout.innermost == 2
    limits = (("m", 3), ("n", 2 * target.lanes(key.dtype) if streams_rows else 3))
    out += [Tile(dim, size, Hole(), None) for dim, size in limits if spec.size(dim) > size]
    out += [n for n in moves if n.memory == "VRF"]
    return [n for n in out if _legal(n, spec, target)]
