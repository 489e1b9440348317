"""For tests of the search: Specs that are small enough to try everything."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np

from morello_mlir.actions import ParallelTile, child_specs, explore, key_of
from morello_mlir.errors import ScheduleError
from morello_mlir.search.schedule import LOOPS, Hole
from morello_mlir.targets import INFINITE


def with_limits(spec, **limits):
    """The same goal with that much left of some memories."""
    return replace(spec, limits=tuple(limits.items())).canonical()


def key_and_sizes(goal, target):
    return key_of(goal, target), dict(zip(goal.info.dims, goal.dims, strict=True))


def choices(goal, target):
    """The legal actions at `goal`, each with how often it leads to which Specs; None: to the same one, no operand of
    which is packed ahead."""
    key, dims = key_and_sizes(goal, target)
    for action in explore(key, dims, target):
        node = action.node([Hole(), Hole()])
        if isinstance(node, Hole):
            yield action, None
            continue
        if isinstance(node, LOOPS) and dims[node.dim] % node.size == 0:
            node = replace(node, rest=None)
        try:
            yield action, child_specs(goal, node, target)
        except ScheduleError:
            continue


def brute_force(spec, target):
    """The optimum by plain recursion over Specs: no tables, axes or limit indices, only the actions' meaning."""

    @cache
    def best(goal):
        key, dims = key_and_sizes(goal, target)
        costs = [INFINITE]
        for action, smaller in choices(goal, target):
            if smaller is None:
                plain = tuple(replace(t, const=False) for t in goal.operands)
                costs.append(best(replace(goal, operands=plain)))
                continue
            below = [best(child) for _, child in smaller]
            costs.append(int(action.cost(key, dims, target)) + slowest(action, key, dims, smaller, below))
        return min(costs)

    return best(spec.canonical())


def slowest(action, key, dims, smaller, below):
    """What the busiest thread does, worked out trip by trip."""
    if not isinstance(action, ParallelTile):
        return sum(count * cost for (count, _), cost in zip(smaller, below, strict=True))
    trips = [below[0]] * (dims[action.dim] // action.size) + below[1:]
    threads = action.threads or key.threads
    at = [t * len(trips) // threads for t in range(threads + 1)]
    return max(sum(trips[first:last]) for first, last in pairwise(at))


def block_and_point(m, k, n):
    """Sizes as arrays over a block of two along each dim, and those of its last point."""
    grid = {
        "b": np.int64(1),
        "m": np.array([1, m]).reshape(2, 1, 1),
        "k": np.array([2, k]).reshape(1, 2, 1),
        "n": np.array([3, n]).reshape(1, 1, 2),
    }
    return grid, {"b": 1, "m": m, "k": k, "n": n}
