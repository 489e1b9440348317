"""What measuring says of itself while it goes on: it takes seconds for every goal. Nobody listens unasked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Listener(Protocol):
    """begin: the goal (its text) whose schedules will be compared. stage: what is done now: `finding`, `compiling` the
    schedule number `at` of `of`, or `timing` all of them. end: it has been compared."""

    def begin(self, goal: str) -> None: ...
    def stage(self, what: str, at: int, of: int) -> None: ...
    def end(self) -> None: ...


_listeners: list[Listener] = []


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Has `listener` told of all goals that are measured within."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


@contextmanager
def reporting(goal: str) -> Iterator[None]:
    """While the schedules of `goal` are compared."""
    for listener in _listeners:
        listener.begin(goal)
    try:
        yield
    finally:
        for listener in _listeners:
            listener.end()


def stage(what: str, at: int = 0, of: int = 0) -> None:
    """Says what is done now."""
    for listener in _listeners:
        listener.stage(what, at, of)
