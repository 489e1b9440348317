"""How well predictions rank: Spearman's correlation, and regret."""

from __future__ import annotations

import numpy as np


def ranks(values: np.ndarray) -> np.ndarray:
    """Ranks from 1; equal values share the mean of theirs."""
    order = np.argsort(values, kind="stable")
    sorted_values = values[order]
    starts = np.flatnonzero(np.r_[True, sorted_values[1:] != sorted_values[:-1]])
    ends = np.r_[starts[1:], len(values)]
    out = np.empty(len(values))
    out[order] = np.repeat((starts + 1 + ends) / 2, ends - starts)
    return out


def spearman(a: np.ndarray, b: np.ndarray) -> float:
    """Rank correlation; nan where one side does not vary."""
    x, y = ranks(np.asarray(a, float)), ranks(np.asarray(b, float))
    x, y = x - x.mean(), y - y.mean()
    norm = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / norm if norm else float("nan")


def regret(chosen: float, measured: np.ndarray) -> float:
    """How much slower than the best known the chosen schedule is: 0.03 is 3 %; negative where it is itself the best."""
    return chosen / float(np.min(measured)) - 1
