"""Properties that are computed once."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from morello_mlir.cached import cached_property


def test_a_property_is_computed_once_and_kept_with_its_object():
    @dataclass(frozen=True)
    class Pair:
        left: int
        right: int

        @cached_property
        def sum(self) -> list[int]:
            """What it is."""
            return [self.left + self.right]

    pair = Pair(1, 2)
    assert pair.sum == [3]
    assert pair.sum is pair.sum
    assert pair == Pair(1, 2)
    assert Pair.sum.__doc__ == "What it is."


def test_one_object_does_not_wait_for_another():
    """As they would for the one lock of functools' before Python 3.12."""
    inside, go_on = threading.Event(), threading.Event()

    class Slow:
        def __init__(self, slow: bool):
            self.slow = slow

        @cached_property
        def value(self) -> bool:
            if self.slow:
                inside.set()
                assert go_on.wait(10)
            return self.slow

    found: list[bool] = []
    first = threading.Thread(target=lambda: found.append(Slow(True).value))
    second = threading.Thread(target=lambda: found.append(Slow(False).value), daemon=True)
    first.start()
    inside.wait()
    second.start()
    second.join(10)
    assert found == [False]
    go_on.set()
    first.join()
    assert found == [False, True]
