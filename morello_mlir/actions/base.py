"""What an action declares, once, for search, reconstruction, legality and lowering alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..search.schedule import Node
from ..targets import Target
from .state import Dims, TableKey

#: A condition and what to tell the user where it does not hold (a function where the text needs the sizes: it is only
#: called for one point).
Condition = tuple[Any, str | Callable[[], str]]


def reason(condition: Condition) -> str:
    """What to tell the user where the condition does not hold."""
    why = condition[1]
    return why if isinstance(why, str) else why()


def sum_of(counts: Sequence[Any], costs: Sequence[Any]) -> Any:
    """Of what is met at all: elsewhere a cost may be infinite."""
    return sum(count * cost for count, cost in zip(counts, costs, strict=True) if count)


def dearest(costs: Sequence[Any]) -> Any:
    """The largest of several costs; 0 where there are none."""
    return max(costs, default=0)


@dataclass(frozen=True, slots=True)
class Child:
    """A smaller goal: how often it runs (int or array; 0 where there is none), its table and its sizes."""

    count: Any
    key: TableKey
    dims: Dims


class Action:
    """A rewrite of one Spec into a partial program whose holes are smaller Specs (kernels: no holes).

    All methods take sizes as ints or as arrays and answer alike.
    """

    #: Order among equal costs: lower is preferred (kernels, moves, tiles that divide, tiles with a remainder).
    rank: int = 0

    def requires(self, key: TableKey, target: Target) -> Sequence[Condition]:
        """Conditions on the table: they hold for all of its sizes or for none."""
        return ()

    def conditions(self, key: TableKey, dims: Dims, left: Mapping[str, Any], target: Target) -> Sequence[Condition]:
        """Conditions on sizes and on what is left of the memories."""
        return ()

    def children(self, key: TableKey, dims: Dims) -> Sequence[Child]:
        """The smaller goals, in schedule order."""
        return ()

    def ways(self, key: TableKey, dims: Dims) -> Sequence[tuple[Any, ...]]:
        """How often each child is met on each way through the action: threads go different ways at the same time, and
        the dearest decides. One way, that of all children, where nothing is parallel."""
        return (tuple(child.count for child in self.children(key, dims)),)

    def total(self, key: TableKey, dims: Dims, target: Target, below: Sequence[Any]) -> Any:
        """The cost with children that cost `below` each (anything where there is none)."""
        own = self.cost(key, dims, target)
        return own + dearest([sum_of(way, below) for way in self.ways(key, dims)])

    def cost(self, key: TableKey, dims: Dims, target: Target) -> Any:
        """The action's own cost in integer units, without its children's."""
        return 0

    def uses(self, key: TableKey, dims: Dims, target: Target) -> Mapping[str, Any]:
        """What its children can no longer use: registers or lines by memory."""
        return {}

    def traffic(self, key: TableKey, dims: Dims, target: Target) -> Mapping[tuple[str, str], Any]:
        """Bytes moved by the action itself, by (from, to) memory."""
        return {}

    def node(self, bodies: Sequence[Node]) -> Node:
        """The schedule node, given the children's."""
        raise NotImplementedError

    def label(self) -> str:
        """The step as it stands in a schedule."""
        raise NotImplementedError
