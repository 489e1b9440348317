"""Elements a few apart, picked from the vectors of a row: `nests/lowering/picks.py`."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from morello_mlir.nests.lowering.picks import Picks

LANES = 16


class Machine:
    """Vectors are tuples of places, None where nothing is known; what it has done is counted."""

    def __init__(self) -> None:
        self.loads: list[tuple[int, int]] = []
        self.shuffles = 0

    def load(self, first: int, count: int) -> str:
        self.loads.append((first, count))
        return repr(tuple(first + i if i < count else None for i in range(LANES)))

    def shuffle(self, x: str, y: str, choice: Sequence[int]) -> str:
        self.shuffles += 1
        both = eval(x) + eval(y)
        return repr(tuple(both[i] for i in choice))


def picked(wanted: dict[int, list[bool]], stride: int, grid: int = 0) -> Machine:
    """Picks, and checks what is picked and what is read."""
    machine = Machine()
    found = Picks(wanted, stride, grid, machine.load, machine.shuffle).all()
    count = [at + i * stride for at, lanes in wanted.items() for i, x in enumerate(lanes) if x]
    for first, size in machine.loads:
        assert min(count) <= first and first + size - 1 <= max(count)
    for at, lanes in wanted.items():
        for i, (x, counts) in enumerate(zip(eval(found[at]), lanes, strict=True)):
            assert not counts or x == at + i * stride
    return machine


ALL = [True] * LANES


def test_steps_of_a_window_share_what_is_read() -> None:
    """A row under a window of three pixels, every second of which begins one: the pixels 0 to 31 lie in two vectors,
    and the one before them in another; a shuffle each."""
    machine = picked({-1: ALL, 0: ALL, 1: ALL}, 2)
    assert len(machine.loads) == 3 and machine.shuffles == 3
    assert {0, 16} <= {first for first, _ in machine.loads}


def test_nothing_before_the_image_is_read() -> None:
    """At the left border the pixel before the first is none: two vectors are enough."""
    machine = picked({-1: [False, *ALL[1:]], 0: ALL, 1: ALL}, 2)
    assert sorted(machine.loads) == [(0, LANES), (16, LANES)] and machine.shuffles == 3


def test_few_lanes() -> None:
    """What is shorter than a vector is read in part."""
    machine = picked({0: [i < 3 for i in range(LANES)]}, 2)
    assert machine.loads == [(0, 5)] and machine.shuffles == 1


@pytest.mark.parametrize("stride", [2, 3, 4])
def test_one_vector_alone(stride: int) -> None:
    """So many loads as it is apart, and one shuffle fewer."""
    machine = picked({5: ALL}, stride, grid=5)
    assert len(machine.loads) == stride and machine.shuffles == stride - 1


@given(
    st.dictionaries(
        st.integers(-40, 40), st.lists(st.booleans(), min_size=LANES, max_size=LANES).filter(any), min_size=1
    ),
    st.integers(2, 4),
    st.integers(-20, 20),
)
def test_any_rows(wanted: dict[int, list[bool]], stride: int, grid: int) -> None:
    picked(wanted, stride, grid)
