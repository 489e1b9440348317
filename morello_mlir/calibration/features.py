"""What a schedule is charged for: its predicted cost as a linear form in the coefficients of `Costs`.

The counts come from the actions' own `cost`, evaluated with one coefficient at a time: nothing is declared twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from ..actions import Action, TableKey, action_of, child_specs, key_of
from ..search.schedule import Node, children
from ..spec import Spec
from ..targets import COST_UNITS, Costs, Target

#: Coefficients that enter the cost as factors: (field of Costs, field of LineCost or '').
_SCALARS = (
    "out_vector",
    "out_masked",
    "call",
    "kernel_scale",
    "horizontal",
    "scalar_fma",
    "pack_gather",
    "pack_start",
    "pack_away",
    "burst_line",
    "lone_line",
)
Name = tuple[str, str]


def _names() -> tuple[Name, ...]:
    lines = [f.name for f in fields(Costs) if f.type == "LineCost"]
    parts = ("packed", "long_rows", "short_rows", "conflict", "row", "lone", "panel")
    return (*((n, p) for n in lines for p in parts), *((n, "") for n in _SCALARS))


#: All coefficients, in the order of feature vectors.
NAMES: tuple[Name, ...] = _names()
#: A coefficient by itself is given this value, so that rounding to cost units does not show.
_UNIT = 1000.0


def get(costs: Costs) -> np.ndarray:
    """The coefficients as a vector, in the order of NAMES."""
    return np.array([getattr(getattr(costs, n), p) if p else getattr(costs, n) for n, p in NAMES])


def put(costs: Costs, vector: np.ndarray) -> Costs:
    """`costs` with the coefficients of `vector`."""
    changed: dict[str, Any] = {}
    for (name, part), value in zip(NAMES, vector, strict=True):
        if part:
            changed[name] = replace(changed.get(name, getattr(costs, name)), **{part: float(value)})
        else:
            changed[name] = float(value)
    return replace(costs, **changed)


@dataclass(frozen=True)
class _Step:
    """An action at a point of its table."""

    action: Action
    key: TableKey
    dims: tuple[tuple[str, int], ...]


class FeatureCounter:
    """Feature vectors of schedules for one target."""

    def __init__(self, target: Target):
        zero = put(target.costs, np.zeros(len(NAMES)))
        self._target = target
        self._units = [replace(target, costs=put(zero, np.eye(len(NAMES))[i] * _UNIT)) for i in range(len(NAMES))]
        self._known: dict[_Step, np.ndarray] = {}

    def __call__(self, spec: Spec, schedule: Node) -> np.ndarray:
        """How often each coefficient is charged: `features @ get(costs)` is the predicted cost in cycles.

        Raises ScheduleError where the schedule is not legal.
        """
        total = np.zeros(len(NAMES))
        for step, runs in _steps(spec.canonical(), schedule, self._target).items():
            total += runs * self._of(step)
        return total

    def _of(self, step: _Step) -> np.ndarray:
        if step not in self._known:
            dims = dict(step.dims)
            costs = [int(step.action.cost(step.key, dims, unit)) for unit in self._units]
            self._known[step] = np.array(costs) / (COST_UNITS * _UNIT)
        return self._known[step]


def _steps(spec: Spec, schedule: Node, target: Target) -> Mapping[_Step, int]:
    """Every action of the schedule, with how often it runs."""
    below: dict[tuple[Spec, Node], dict[_Step, int]] = {}

    def visit(s: Spec, node: Node) -> dict[_Step, int]:
        if (s, node) not in below:
            dims = dict(zip(s.info.dims, s.dims, strict=True))
            own = _Step(action_of(node, s), key_of(s, target), tuple(dims.items()))
            counts = {own: 1}
            for (runs, child), body in zip(child_specs(s, node, target), children(node), strict=True):
                for step, times in visit(child, body).items():
                    counts[step] = counts.get(step, 0) + runs * times
            below[s, node] = counts
        return below[s, node]

    return visit(spec, schedule)
