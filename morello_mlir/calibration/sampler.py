"""Random recipes: blockings, loop orders, packing and register tiles as people and searches would try them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from ..search.schedule import Node
from ..spec import Spec
from ..targets import Target
from .recipe import Block, Pack, Recipe, cheapest

#: Depths tried for blocks of k.
DEPTHS = (16, 32, 64, 96, 128, 192, 256, 384, 512, 768)
#: Register tiles use at least this share of the registers that the largest ones use.
LEAST_SHARE = 0.4
#: Recipes that do not fit the caches are thrown away; a size of which this many in a row do not fit has none.
TRIES = 500


@dataclass(frozen=True, slots=True)
class Sample:
    """A Spec, a recipe for it and the schedule that it amounts to."""

    spec: Spec
    recipe: Recipe
    schedule: Node


def random_samples(spec: Spec, target: Target, count: int, seed: int) -> list[Sample]:
    """`count` random schedules of `spec`, no two alike; fewer where there are not that many."""
    rng = random.Random(f"{seed} {spec}")
    out: dict[Node, Sample] = {}
    misses = 0
    while len(out) < count and misses < TRIES:
        recipe = random_recipe(spec, target, rng)
        found = cheapest(spec, recipe, target)
        if found is None or found[0] in out:
            misses += 1
        else:
            out[found[0]] = Sample(spec, recipe, found[0])
            misses = 0
    return list(out.values())


def random_recipe(spec: Spec, target: Target, rng: random.Random) -> Recipe:
    """A recipe whose register tile does not spill. Whether it fits the caches is another question."""
    rows, vectors = rng.choice(register_tiles(target))
    width = vectors * target.lanes(spec.operands[0].dtype)
    blocks = [
        Block("m", rows * rng.choice(tuple(_doubling(spec.size("m") // rows)))),
        Block("k", rng.choice(DEPTHS)),
        Block("n", width * rng.choice(tuple(_doubling(spec.size("n") // width)))),
    ]
    rng.shuffle(blocks)
    outer: list[Block | Pack] = [b for b in blocks if rng.random() < 0.75]
    inner = [Block("m", rows), Block("n", width)]
    rng.shuffle(inner)
    for operand, panel, chance in ((0, rows, 0.6), (1, width, 0.7)):
        if rng.random() < chance:
            outer.insert(_pack_place(operand, outer, rng), Pack(operand, panel))
    return (*outer, *inner)


def register_tiles(target: Target) -> list[tuple[int, int]]:
    """Register tiles (rows, vectors) that fit and are not absurdly small."""
    fitting = [
        (m, v)
        for m in range(1, target.registers)
        for v in range(1, target.registers)
        if not target.spills(m, v) and (m <= 12 or m % 2 == 0)
    ]
    largest = max(m * v for m, v in fitting)
    return [t for t in fitting if t[0] * t[1] >= LEAST_SHARE * largest and t[1] <= 6]


def _doubling(n: int) -> Iterator[int]:
    """1, 2, 3, 4, 6, 8, 12, ... up to `n`, at least 1."""
    yield 1
    x = 2
    while x <= n:
        yield x
        if x * 3 // 2 <= n:
            yield x * 3 // 2
        x *= 2


def _pack_place(operand: int, outer: list[Block | Pack], rng: random.Random) -> int:
    """Mostly right inside the last loop that changes which part of the operand is used, else anywhere."""
    own = ("m", "k") if operand == 0 else ("k", "n")
    last = max((i + 1 for i, s in enumerate(outer) if isinstance(s, Block) and s.dim in own), default=0)
    return last if rng.random() < 0.75 else rng.randint(0, len(outer))
