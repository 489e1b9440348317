"""Fitting the coefficients of the cost model to measured schedules.

The predicted cost is linear in the coefficients (`features`), so this is a least-squares problem: relative errors,
coefficients that are not negative, short rows that cost no less than long ones. What the measurements say little about
stays near what the target had before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..targets import COST_UNITS, Target
from .features import NAMES, FeatureCounter, get, put
from .measure import SpecMeasurements
from .recipe import cheapest

#: How much a relative change of a coefficient by one weighs, against a relative error of one of a schedule.
PRIOR_WEIGHT = 0.05
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


def fit_coefficients(
    features: np.ndarray, cycles: np.ndarray, start: np.ndarray, prior_weight: float = PRIOR_WEIGHT
) -> np.ndarray:
    """Coefficients (in the order of NAMES) for which `features @ coefficients` is near `cycles`.

    features: a row per schedule. start: coefficients that are kept where the measurements do not tell.
    """
    to_steps, from_steps = _cumulative()
    a = (features / cycles[:, None]) @ from_steps
    before = to_steps @ start
    scale = np.maximum(np.abs(before), _LEAST_SCALE)
    weight = prior_weight * np.sqrt(len(cycles))
    rows = np.vstack([a * scale, weight * np.eye(len(scale))])
    goal = np.concatenate([np.ones(len(cycles)), weight * before / scale])
    return from_steps @ (scale * non_negative_least_squares(rows, goal))


def _cumulative() -> tuple[np.ndarray, np.ndarray]:
    """Matrices to and from coefficients in which that of short rows is what they cost more than long ones."""
    to_steps = np.eye(len(NAMES))
    for i, (name, part) in enumerate(NAMES):
        if part == "short_rows":
            to_steps[i, NAMES.index((name, "long_rows"))] = -1.0
    return to_steps, np.linalg.inv(to_steps)


@dataclass(frozen=True, slots=True)
class Prediction:
    """Measured and predicted cycles of the random schedules of one Spec, in the order of its samples."""

    measured: np.ndarray
    predicted: np.ndarray


def predict(measurements: SpecMeasurements, target: Target) -> Prediction:
    """What `target` predicts for the code that was measured, cache moves placed as it would place them."""
    measured, predicted = [], []
    for m in measurements.samples:
        found = cheapest(m.sample.spec, m.sample.recipe, target)
        if found is not None:
            measured.append(m.cycles)
            predicted.append(found[1] / COST_UNITS)
    return Prediction(np.array(measured), np.array(predicted))


def fit(measurements: list[SpecMeasurements], target: Target, prior_weight: float = PRIOR_WEIGHT) -> Target:
    """`target` with the coefficients that fit the measurements best."""
    start = get(target.costs)
    fitted = target
    for _ in range(PASSES):
        features, cycles = _design(measurements, fitted)
        coefficients = fit_coefficients(features, cycles, start, prior_weight)
        fitted = replace(fitted, costs=put(fitted.costs, np.round(coefficients, 4)))
    return fitted


def _design(measurements: list[SpecMeasurements], target: Target) -> tuple[np.ndarray, np.ndarray]:
    """Feature rows and measured cycles of all schedules."""
    count = FeatureCounter(target)
    rows, cycles = [], []
    for spec_measurements in measurements:
        for m in spec_measurements.samples:
            found = cheapest(m.sample.spec, m.sample.recipe, target)
            if found is not None:
                rows.append(count(m.sample.spec, found[0]))
                cycles.append(m.cycles)
    return np.array(rows), np.array(cycles)
