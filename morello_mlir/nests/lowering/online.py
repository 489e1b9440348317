"""Online passes: a maximum and sums of exp(x - maximum) in one sweep, against the maximum so far.

Every lane has a maximum of its own until the end. What has been summed is corrected whenever it grows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ...lowering.builder import Index
from .points import Nest, Online, Stage
from .reductions import State
from .sweep import Sweep
from .vectors import Bundle


class OnlineSweep(Sweep):
    """The sweep of one stage, whose pass is online."""

    def __init__(self, nest: Nest, stage: Stage, unroll: dict[int, int]):
        super().__init__(nest, [stage], unroll)
        assert stage.work.online is not None
        self.online = online = stage.work.online
        #: Accumulators of the maximum within a block.
        self.beside = next(several for _, at, _, several in self.reductions if at == online.maximum)
        # The maximum is one for all steps; without blocks, so are the sums, which every step corrects.
        self.reductions = [
            (s, at, r, 1 if at == online.maximum or not online.block else several)
            for s, at, r, several in self.reductions
        ]

    @property
    def block(self) -> Online | None:
        return self.stages[0].work.online if self.stages[0].work.online.block else None  # type: ignore[union-attr]

    def body(self, at: dict[int, tuple[Index, int]], live: int | None, state: list[State]) -> list[State]:
        return self.tile(at, live, state) if self.online.block else self.step(at, live, state)

    def in_block(
        self, online: Online, number: Index, run: Callable[[list[State]], list[State]], state: list[State]
    ) -> list[State]:
        return self.advance(state, run, run, None if online.shifts is None else number)

    @contextmanager
    def only(self, which: Callable[[int], bool]) -> Iterator[list[int]]:
        """For a time, there are no other reductions than those whose numbers `which` says; yields their indices."""
        everything = self.reductions
        picked = [i for i, (_, number, _, _) in enumerate(everything) if which(number)]
        self.reductions = [everything[i] for i in picked]
        yield picked
        self.reductions = everything

    def advance(
        self,
        state: list[State],
        maxima: Callable[[list[State]], list[State]],
        sums: Callable[[list[State]], list[State]],
        keep: Index | None = None,
    ) -> list[State]:
        """A block of an online pass: the maximum first, then what is summed against it, the sums so far corrected.

        keep: under which number what is stored meanwhile can be corrected later."""
        online, group, out = self.online, self.stages[0].group, list(state)
        with self.only(lambda r: r == online.maximum) as (at,):
            old = self.shift(state[at])
            self.writing = False
            out[at] = self.maximum(state[at], maxima)
            self.writing = True
            group.rows[online.maximum] = self.shift(out[at])
        if keep is not None:
            self.remember(keep, group.rows[online.maximum])
        with self.only(lambda r: r != online.maximum) as others:
            moved = [self.corrected(i, out[index], old) for i, index in enumerate(others)]
            for index, one in zip(others, sums(moved), strict=True):
                out[index] = one
        del group.rows[online.maximum]
        return out

    def maximum(self, state: State, maxima: Callable[[list[State]], list[State]]) -> State:
        """The maximum so far and that of a block, which has as many accumulators as the passes that are not online."""
        ((stage, number, r, _),) = self.reductions
        if not self.online.block or self.beside == 1 or len(state) > 1:
            return maxima([state])[0]
        self.reductions = [(stage, number, r, self.beside)]
        (own,) = maxima(self.start())
        return r.merge(self.nest.v, state, self.merged(r, self.beside, own))

    def remember(self, number: Index, top: Bundle) -> None:
        """Keeps the maximum of block `number`."""
        place, b, lanes = self.online.shifts, self.nest.b, self.nest.v.lanes
        assert place is not None
        first = b.mul(b.mul(number, self.online.rows), lanes)
        for r, x in enumerate(top):
            i = b.index(b.add(first, r * lanes))
            b.line(f"vector.store {x}, {place.memory}[{i}] : {place.type}, {self.nest.v.type(place.dtype)}")

    def shift(self, state: State) -> Bundle:
        """What is subtracted, of the state of the maximum."""
        return self.nest.shift(self.online, state[0])

    def corrected(self, i: int, state: State, old: Bundle) -> State:
        """The state of reduction `i`, which was summed against `old`, as if against the maximum of now."""
        stage, number, r, several = self.reductions[i]
        if number not in self.online.scaling:
            return state
        factor = self.nest.factor(stage.group, self.online, number, old)
        factor = tuple(x for x in factor for _ in range(several)) if len(factor) > 1 else factor
        return [self.nest.v.floats(r.dtype).mul(state[0], factor)]

    def apart(self, body: Callable[[list[State]], list[State]], state: list[State]) -> list[State]:
        """As in any sweep; what has been summed so far is corrected where the maximum has grown meanwhile."""
        maximum, group, v = self.online.maximum, self.stages[0].group, self.nest.v
        at = next((i for i, x in enumerate(self.reductions) if x[1] == maximum), None)
        if at is None:
            return super().apart(body, state)
        old = self.shift(state[at])
        inside = [f if r.is_sum else s for (_, _, r, _), f, s in zip(self.reductions, self.start(), state, strict=True)]
        out = body(inside)
        group.rows[maximum] = self.shift(out[at])
        for i, (_, _, r, _) in enumerate(self.reductions):
            if r.is_sum:
                out[i] = [r.combine(v, self.corrected(i, state[i], old)[0], out[i][0])]
        del group.rows[maximum]
        return out

    def step(self, at: dict[int, tuple[Index, int]], live: int | None, state: list[State]) -> list[State]:
        """A step of an online pass, a block by itself."""

        def sums(inside: list[State]) -> list[State]:
            # Added up from nothing, so that the terms do not wait for the correction.
            fresh = self.tile(at, live, self.start())
            return [
                r.merge(self.nest.v, s, f) for (_, _, r, _), s, f in zip(self.reductions, inside, fresh, strict=True)
            ]

        return self.advance(state, lambda s: self.tile(at, live, s), sums)

    def finish(self, state: list[State]) -> None:
        """As `finish`: lanes, which each have their own maximum, are brought to that of all first."""
        v, online, group = self.nest.v, self.online, self.stages[0].group
        at = next(i for i, x in enumerate(self.reductions) if x[1] == online.maximum)
        _, _, r, several = self.reductions[at]
        top = r.result(v, self.combined(r, several, r.settle(v, state[at])))
        f = v.floats(r.dtype)
        old = self.shift(state[at])
        group.rows[online.maximum] = self.nest.shift(online, top)
        moved = [s if i == at else self.corrected(i, s, old) for i, s in enumerate(state)]
        # Where there is nothing above -inf, exp(-inf - -inf) is NaN, as it would have been in two sweeps.
        nothing = f.compare("oeq", top, f.number(-math.inf))
        for i, (_, number, r, several) in enumerate(self.reductions):
            if i == at:
                continue
            result = r.result(v, self.combined(r, several, r.settle(v, moved[i])))
            if number in online.scaling:
                result = v.select(nothing, v.number(math.nan, r.dtype), result, r.dtype)
            group.rows[number] = result
        group.rows[online.maximum] = top
