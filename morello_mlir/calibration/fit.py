"""Fitting the coefficients of the cost model to measured schedules.

The predicted cost is linear in the coefficients (`features`), so this is a least-squares problem: relative errors,
coefficients that are not negative, short rows that cost no less than long ones. What the measurements say little about
stays near what the target had before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..spec import Spec
from ..targets import COST_UNITS, Target
from .features import NAMES, FeatureCounter, get, put
from .measure import SpecMeasurements
from .recipe import cheapest

#: How much a relative change of a coefficient by one weighs, against a relative error of one of a schedule.
PRIOR_WEIGHT = 0.03
#: The same for the offset of a Spec, in times of its multiply-adds.
OFFSET_WEIGHT = 0.17
#: A schedule that takes x times as long as the best of its Spec has weight x ** -NEAR_BEST: what matters is to tell
#: good schedules apart.
NEAR_BEST = 2
#: Placing the cache moves depends on the coefficients, and these on where the moves are: how often to go round.
PASSES = 3
#: What a coefficient of zero is measured against in the prior.
_LEAST_SCALE = 0.25


def non_negative_least_squares(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """x >= 0 that minimises |a x - b| (Lawson and Hanson's active set method)."""
    columns = a.shape[1]
    x, passive = np.zeros(columns), np.zeros(columns, bool)
    tolerance = 1e-10 * max(1.0, float(np.abs(a.T @ b).max(initial=0.0)))
    for _ in range(10 * columns):
        gradient = np.where(passive, -np.inf, a.T @ (b - a @ x))
        if gradient.max(initial=-np.inf) <= tolerance:
            break
        passive[int(np.argmax(gradient))] = True
        x = _inner(a, b, x, passive)
    return x


def _inner(a: np.ndarray, b: np.ndarray, x: np.ndarray, passive: np.ndarray) -> np.ndarray:
    """Solves for the columns of `passive`, dropping from it (in place) those that would become negative."""
    while True:
        goal = np.zeros_like(x)
        goal[passive] = np.linalg.lstsq(a[:, passive], b, rcond=None)[0]
        negative = passive & (goal <= 0)
        if not negative.any():
            return goal
        step = float(np.min(x[negative] / np.maximum(x[negative] - goal[negative], 1e-300)))
        x = x + step * (goal - x)
        passive &= x > 1e-14
        x[~passive] = 0.0


@dataclass(frozen=True, slots=True)
class Design:
    """Schedules as rows. features: counts of coefficients; cycles: measured; spec: number of the Spec that it is of;
    peak: cycles of that Spec's multiply-adds."""

    features: np.ndarray
    cycles: np.ndarray
    spec: np.ndarray
    peak: np.ndarray


def fit_coefficients(design: Design, start: np.ndarray, prior_weight: float = PRIOR_WEIGHT) -> np.ndarray:
    """Coefficients (in the order of NAMES) for which `features @ coefficients` is near `cycles`, up to an offset for
    each Spec: what all its schedules pay alike (operands that are warm, or far, in this loop of measurements) is not
    for the coefficients to explain.

    start: coefficients that are kept where the measurements do not tell.
    """
    to_steps, from_steps = _cumulative()
    rows, before = len(design.cycles), to_steps @ start
    scale = np.maximum(np.abs(before), _LEAST_SCALE)
    columns = (design.features / design.cycles[:, None]) @ from_steps * scale
    offsets = np.equal.outer(design.spec, np.unique(design.spec)) * (design.peak / design.cycles)[:, None]
    table = np.hstack([columns, offsets, -offsets])
    weights = _near_best(design)
    count = len(scale)
    penalties = np.full(table.shape[1], OFFSET_WEIGHT * np.sqrt(rows))
    penalties[:count] = prior_weight * np.sqrt(rows)
    wanted = np.concatenate([before / scale, np.zeros(table.shape[1] - count)])
    solution = non_negative_least_squares(
        np.vstack([table * weights[:, None], np.diag(penalties)]), np.concatenate([weights, penalties * wanted])
    )
    return from_steps @ (scale * solution[:count])


def _near_best(design: Design) -> np.ndarray:
    best = np.array([design.cycles[design.spec == s].min() for s in design.spec])
    return (best / design.cycles) ** NEAR_BEST


def _cumulative() -> tuple[np.ndarray, np.ndarray]:
    """Matrices to and from coefficients in which that of short rows is what they cost more than long ones, and that of
    long rows what they cost more than packed ones."""
    to_steps = np.eye(len(NAMES))
    less = {"short_rows": "long_rows", "long_rows": "packed"}
    for i, (name, part) in enumerate(NAMES):
        if part in less:
            to_steps[i, NAMES.index((name, less[part]))] = -1.0
    return to_steps, np.linalg.inv(to_steps)


@dataclass(frozen=True, slots=True)
class Prediction:
    """Measured and predicted cycles of the random schedules of one Spec, in the order of its samples.

    Predicted is infinite where a target's caches are too small for a schedule."""

    measured: np.ndarray
    predicted: np.ndarray


def predict(measurements: SpecMeasurements, target: Target) -> Prediction:
    """What `target` predicts for the code that was measured, cache moves placed as it would place them."""
    measured, predicted = [], []
    for m in measurements.samples:
        found = cheapest(m.sample.spec, m.sample.recipe, target)
        measured.append(m.cycles)
        predicted.append(found[1] / COST_UNITS if found else np.inf)
    return Prediction(np.array(measured), np.array(predicted))


def fit(measurements: Sequence[SpecMeasurements], target: Target, prior_weight: float = PRIOR_WEIGHT) -> Target:
    """`target` with the coefficients that fit the measurements best."""
    start = get(target.costs)
    fitted = target
    for _ in range(PASSES):
        coefficients = fit_coefficients(_design(measurements, fitted), start, prior_weight)
        fitted = replace(fitted, costs=put(fitted.costs, np.round(coefficients, 3)))
    return fitted


def _design(measurements: Sequence[SpecMeasurements], target: Target) -> Design:
    """All schedules as rows, cache moves placed as `target` would place them."""
    count = FeatureCounter(target)
    features, cycles, number, peak = [], [], [], []
    for i, measured in enumerate(measurements):
        for m in measured.samples:
            found = cheapest(m.sample.spec, m.sample.recipe, target)
            if found is not None:
                features.append(count(m.sample.spec, found[0]))
                cycles.append(m.cycles)
                number.append(i)
                peak.append(peak_cycles(m.sample.spec, target))
    return Design(np.array(features), np.array(cycles), np.array(number), np.array(peak))


def peak_cycles(spec: Spec, target: Target) -> float:
    """Cycles of the multiply-adds of `spec` by whole vectors."""
    return spec.flops / 2 / target.lanes(spec.operands[0].dtype) / target.costs.fma_per_cycle
