"""Online passes: a maximum and sums of exp(x - maximum) in one sweep, against the maximum so far.

Every lane has a maximum of its own until the end. What has been summed is corrected whenever it grows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from ...lowering.builder import Index
from ..online import Scaling
from . import vector_math
from .memory import spread
from .points import Group, Nest, Stage
from .reductions import State
from .sweep import Sweep
from .vectors import Bundle

#: The least finite number of the types that maxima are held in.
LOWEST = {"f32": -3.4028234663852886e38, "f64": -1.7976931348623157e308}


class OnlineSweep(Sweep):
    """The sweep of one stage, whose pass is online."""

    def __init__(self, nest: Nest, stage: Stage, unroll: dict[int, int]):
        super().__init__(nest, [stage], unroll)
        assert stage.work.online is not None
        self.online = online = stage.work.online
        # The maximum is one for all steps; without blocks, so are the sums, which every step corrects.
        self.reductions = [
            (s, at, r, 1 if at == online.maximum or not online.block else several)
            for s, at, r, several in self.reductions
        ]

    def loops(
        self, dims: Sequence[int], at: dict[int, tuple[Index, int]], live: int | None, state: list[State]
    ) -> list[State]:
        if len(dims) == 1 and self.online.block:
            return self.blocks(dims[0], at, live, state)
        return super().loops(dims, at, live, state)

    def body(self, at: dict[int, tuple[Index, int]], live: int | None, state: list[State]) -> list[State]:
        return self.tile(at, live, state) if self.online.block else self.step(at, live, state)

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
    ) -> list[State]:
        """A block of an online pass: the maximum first, then what is summed against it, the sums so far corrected."""
        online, group, out = self.online, self.stages[0].group, list(state)
        with self.only(lambda r: r == online.maximum) as (at,):
            old = self.shift(state[at])
            (out[at],) = maxima([state[at]])
            group.rows[online.maximum] = self.shift(out[at])
        with self.only(lambda r: r != online.maximum) as others:
            moved = [self.corrected(i, out[index], old) for i, index in enumerate(others)]
            for index, one in zip(others, sums(moved), strict=True):
                out[index] = one
        del group.rows[online.maximum]
        return out

    def shift(self, state: State) -> Bundle:
        """What is subtracted, of the state of the maximum: never -inf, which less -inf would be NaN."""
        _, _, r, _ = next(x for x in self.reductions if x[1] == self.online.maximum)
        f = self.nest.v.floats(r.dtype)
        return f.larger(f.number(LOWEST[f.dtype]), state[0])

    def corrected(self, i: int, state: State, old: Bundle) -> State:
        """The state of reduction `i`, which was summed against `old`, as if against the maximum of now."""
        stage, number, r, several = self.reductions[i]
        scaling = self.online.scaling.get(number)
        if scaling is None:
            return state
        factor = self.factor(stage.group, scaling, old)
        factor = tuple(x for x in factor for _ in range(several)) if len(factor) > 1 else factor
        return [self.nest.v.floats(r.dtype).mul(state[0], factor)]

    def factor(self, group: Group, scaling: Scaling, old: Bundle) -> Bundle:
        """exp((old - maximum) * c), by row."""
        v, body = self.nest.v, self.nest.spec.body
        dtype = body.values[self.online.maximum].dtype
        f = v.floats(dtype)
        difference = f.sub(old, group.rows[self.online.maximum])
        if scaling.factor is not None:
            self.nest.rows(group, [scaling.factor])
            shape = group.tile.shape(self.nest.spec.varies[scaling.factor])
            difference = f.mul(difference, spread(group.rows[scaling.factor], shape, group.counts))
        return vector_math.apply(f, scaling.exponential, difference)

    def blocks(self, d: int, at: dict[int, tuple[Index, int]], live: int | None, state: list[State]) -> list[State]:
        """The innermost loop of an online pass, in blocks."""
        step = self.count(d) * self.unit(d)
        size = max(1, self.online.block // step) * step
        n = self.nest.spec.dims[d]

        def block(lower: Index, size: int, state: list[State]) -> list[State]:
            def run(inside: list[State]) -> list[State]:
                return self.span([d], lower, size, at, live, inside)

            return self.advance(state, run, run)

        full = n - n % size
        if full:
            state = self.loop(0, full, size, lambda iv, s: block(iv, size, s), state)
        return block(full, n - full, state) if n > full else state

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
        group.rows[online.maximum] = f.larger(f.number(LOWEST[f.dtype]), top)
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
