"""What is known of some points of a table: for each the optimal action, as arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..actions import Action

#: Bits of a size, and of a limit index, in the number of a point.
_SIZE_BITS, _LIMIT_BITS = 18, 8
#: The largest size of a point.
LARGEST = (1 << _SIZE_BITS) - 1


class States:
    """Points (m, k, n, limit index) of one table, in ascending order, and the label of the action at each.

    points: [p, 4] int64, sizes as they are. numbers: [p], into labels.
    """

    def __init__(self) -> None:
        self.labels: list[str] = []
        self._known = np.zeros(0, np.int64), np.zeros(0, np.int32)
        #: Not yet sorted in.
        self._added: list[tuple[np.ndarray, np.ndarray]] = []

    def __len__(self) -> int:
        return len(self._sorted()[0])

    @property
    def points(self) -> np.ndarray:
        return _points(self._sorted()[0])

    @property
    def numbers(self) -> np.ndarray:
        return self._sorted()[1]

    def add(self, points: np.ndarray, action: Action | str) -> None:
        """`action` at `points`; what is known of a point already gives way."""
        label = action if isinstance(action, str) else action.label()
        if label not in self.labels:
            self.labels.append(label)
        number = np.full(len(points), self.labels.index(label), np.int32)
        self._added.append((_numbers(points), number))

    def unknown(self, points: np.ndarray) -> np.ndarray:
        """Those of `points` that nothing is known of, each once."""
        wanted = np.unique(_numbers(points))
        return _points(wanted[~np.isin(wanted, self._sorted()[0], assume_unique=True)])

    def _sorted(self) -> tuple[np.ndarray, np.ndarray]:
        if self._added:
            # The last of equal ones is the first of them backwards.
            parts = [self._known, *self._added]
            at, number = (np.concatenate([part[i] for part in parts])[::-1] for i in (0, 1))
            at, last = np.unique(at, return_index=True)
            self._known, self._added = (at, number[last]), []
        return self._known


def _numbers(points: np.ndarray) -> np.ndarray:
    """Points as single numbers, which sort like them."""
    out = np.zeros(len(points), np.int64)
    for i, bits in enumerate((0, _SIZE_BITS, _SIZE_BITS, _LIMIT_BITS)):
        out = (out << bits) + points[:, i]
    return out


def _points(numbers: np.ndarray) -> np.ndarray:
    """The inverse of `_numbers`."""
    columns: Sequence[np.ndarray] = (
        numbers >> (2 * _SIZE_BITS + _LIMIT_BITS),
        (numbers >> (_SIZE_BITS + _LIMIT_BITS)) & LARGEST,
        (numbers >> _LIMIT_BITS) & LARGEST,
        numbers & ((1 << _LIMIT_BITS) - 1),
    )
    return np.column_stack(columns)
