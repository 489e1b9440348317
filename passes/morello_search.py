"""`morello-search`: gives every `morello.spec` its schedule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from morello_mlir.dialect import SpecOp, spec_ops
from morello_mlir.errors import InputError, ScheduleError, SpecError

from .base import Pass, option, remark


@dataclass(frozen=True)
class MorelloSearch(Pass):
    """Write the optimal schedule and its predicted cost onto every `morello.spec` without one.

    A schedule that is there already is kept, once it is known to be legal; its holes (`?`) are filled with the optimum
    of what they stand for. Before: `morello.spec` ops with or without schedules. After: every one has a schedule
    without holes, a cost (integer units, 1000 a cycle) and a source (`search`, `memo`, `shipped` or `manual`).
    """

    name: ClassVar[str] = "morello-search"
    summary: ClassVar[str] = "Choose the optimal schedule of every morello.spec; fill the holes of given ones"
    anchor: ClassVar[str | None] = None
    target: str = option("host", help="the machine to optimise for: host, avx2, avx512")
    memo: str = option("", help="the memo file, or off (default: MORELLO_MEMO, else the user's file)")
    force: bool = option(False, help="replace schedules that are there")
    timing: bool = option(False, help="write the seconds that each took, as the attribute morello.search_s")

    def run(self, op: Any) -> None:
        from morello_mlir.search.solve import search_for
        from morello_mlir.targets import get_target

        try:
            search = search_for(get_target(self.target), self.memo)
        except InputError as error:
            self.fail(op, str(error))
        for spec_op in spec_ops(op):
            self._schedule(spec_op, search)

    def _schedule(self, op: SpecOp, search: Any) -> None:
        from morello_mlir.search.schedule import parse, to_text

        given = None if self.force else op.schedule_text
        try:
            spec = op.spec
            solution = search.solve(spec) if given is None else search.complete(spec, parse(given))
        except (SpecError, ScheduleError) as error:
            self.fail(op.operation, str(error))
        op.set_schedule(to_text(solution.schedule), solution.cost, solution.source)
        if self.timing:
            _write_seconds(op, solution.seconds)
        remark(
            op.operation,
            f"{solution.spec}: {solution.cycles:,.0f} cycles predicted ({solution.source}, {solution.seconds:.3f} s)",
        )


def _write_seconds(op: SpecOp, seconds: float) -> None:
    from mlir import ir

    operation = op.operation
    kind = ir.F64Type.get(operation.context)
    operation.attributes["morello.search_s"] = ir.FloatAttr.get(kind, seconds, loc=operation.location)
