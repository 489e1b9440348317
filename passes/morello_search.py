"""`morello-search`: gives every `morello.spec` its schedule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from morello_mlir.dialect import GoalOp, NestOp, chain_ops, goal_ops
from morello_mlir.errors import InputError, ScheduleError, SpecError

from .base import Pass, option, remark, warn


@dataclass(frozen=True)
class MorelloSearch(Pass):
    """Write the optimal schedule and its predicted cost onto every `morello.spec`, nest and chain without one.

    A schedule that is there already is kept, once it is known to be legal; its holes (`?`) are filled with the optimum
    of what they stand for. Before: `morello.spec` ops with or without schedules. After: every one has a schedule
    without holes, a cost (integer units, 1000 a cycle) and a source (`search`, `memo`, `shipped`, `measured` or
    `manual`).

    top-k: the N cheapest schedules that a machine can tell apart become the attribute `morello.alternatives`, the
    optimum first: dictionaries with `cost` and `schedule`. measure: these are timed on this machine instead (8 without
    top-k), and the optimum is replaced by the fastest where that is clearly faster (docs/tuning.md). Both leave given
    schedules alone.
    """

    name: ClassVar[str] = "morello-search"
    summary: ClassVar[str] = "Choose the optimal schedule of every morello.spec; fill the holes of given ones"
    anchor: ClassVar[str | None] = None
    target: str = option("host", help="the machine to optimise for: host, avx2, avx512, a CPU by LLVM's name")
    memo: str = option("", help="the memo file, or off (default: MORELLO_MEMO, else the user's file)")
    force: bool = option(False, help="replace schedules that are there")
    timing: bool = option(
        False, help="write the seconds that each took (and what was measured) as attributes, morello.search_s"
    )
    top_k: int | None = option(None, help="list the so many cheapest schedules (with measure: choose among them)")
    measure: bool = option(False, help="time the cheapest schedules on this machine and take the fastest")

    def run(self, op: Any) -> None:
        from morello_mlir.search.solve import search_for
        from morello_mlir.targets import get_target
        from morello_mlir.tuning.tuner import Tuner, candidate_count, check_measurable

        try:
            target = get_target(self.target)
            count = candidate_count(self.top_k, self.measure)
            if self.measure:
                check_measurable(target)
            tuner = Tuner(search_for(target, self.memo), count, measure=self.measure)
        except InputError as error:
            self.fail(op, str(error))
        for goal_op in (*goal_ops(op), *chain_ops(op)):
            self._schedule(goal_op, tuner)

    def _schedule(self, op: GoalOp, tuner: Any) -> None:
        from morello_mlir.tuning.kinds import schedule_text

        given = None if self.force else op.schedule_text
        try:
            spec = op.spec
            tuned = (
                tuner.solve(spec, _function(op) if self.measure else "")
                if given is None
                else tuner.complete(spec, given)
            )
        except (SpecError, ScheduleError) as error:
            self.fail(op.operation, str(error))
        solution = tuned.solution
        if isinstance(op, NestOp):
            # The schedule names the dims of its goal.
            op.set_spec(solution.spec)
        op.set_schedule(schedule_text(spec, solution.schedule), solution.cost, solution.source)
        if self.top_k is not None and not self.measure and tuned.candidates:
            _write_alternatives(op, tuned.candidates)
        if self.timing:
            _write_seconds(op, "morello.search_s", solution.seconds)
            if tuned.winner is not None:
                _write_seconds(op, "morello.measured_s", tuned.winner.seconds)
                _write_seconds(op, "morello.model_s", tuned.winner.model_seconds)
        remark(op.operation, _summary(solution))
        self._report(op, tuned)

    def _report(self, op: GoalOp, tuned: Any) -> None:
        """Says what measuring found, and the alternatives where it did not happen."""
        if tuned.problem:
            warn(op.operation, f"{tuned.problem}; the cost model's choice is taken")
        for problem in tuned.measured.problems if tuned.measured else ():
            warn(op.operation, f"{problem}; it is left out")
        if tuned.winner is not None:
            remark(op.operation, tuned.describe())
        elif not self.measure and len(tuned.candidates) > 1:
            best = tuned.candidates[0].cost
            for number, other in enumerate(tuned.candidates[1:], 2):
                remark(op.operation, f"schedule {number}: {other.cycles:,.0f} cycles, {other.cost / best - 1:+.2%}")


def _function(op: Any) -> str:
    """The text of the function around a goal, where it does nothing else."""
    function = op.operation.parent
    if function is None or function.operation.name != "func.func":
        return ""
    if len([*goal_ops(function.operation), *chain_ops(function.operation)]) != 1:
        return ""
    text: str = function.operation.get_asm(use_local_scope=True)
    return text


def _summary(solution: Any) -> str:
    found = f"{solution.source}, {solution.seconds:.3f} s"
    return f"{solution.spec}: {solution.cycles:,.0f} cycles predicted ({found})"


def _write_seconds(op: GoalOp, name: str, seconds: float) -> None:
    from mlir import ir

    operation = op.operation
    kind = ir.F64Type.get(operation.context)
    operation.attributes[name] = ir.FloatAttr.get(kind, seconds, loc=operation.location)


def _write_alternatives(op: GoalOp, candidates: Sequence[Any]) -> None:
    from mlir import ir

    from morello_mlir.tuning.kinds import schedule_text

    def attribute(solution: Any) -> Any:
        cost = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), solution.cost)
        lines = ir.ArrayAttr.get(
            [ir.StringAttr.get(line) for line in schedule_text(solution.spec, solution.schedule).splitlines()]
        )
        return ir.DictAttr.get({"cost": cost, "schedule": lines})

    with op.operation.context:
        op.operation.attributes["morello.alternatives"] = ir.ArrayAttr.get([attribute(c) for c in candidates])
