"""`morello-apply`: executes the schedules of `morello.spec` ops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from morello_mlir.dialect import NestOp, chain_ops, goal_ops
from morello_mlir.errors import InputError, ScheduleError, SpecError

from .base import Pass, option


@dataclass(frozen=True)
class MorelloApply(Pass):
    """Replace every `morello.spec` and nest that has a schedule by what the schedule makes of it: loops, packs, vector
    code.

    Before: `morello.spec` ops with or without schedules. After: those with one are gone, unless `stop-at` stopped early
    or the schedule has holes; then smaller `morello.spec` ops with the remaining schedules stand in the loops, and
    another run goes on from there. Micro-kernels, and what is used more than once, are private functions of the module.
    Nests become calls of private functions, all of them at once: `stop-at` leaves them alone.
    """

    name: ClassVar[str] = "morello-apply"
    summary: ClassVar[str] = "Execute the schedules of morello.spec ops: loops, packing, vector code"
    anchor: ClassVar[str | None] = None
    target: str = option(
        "host", help="the machine that the schedules are for: host, avx2, avx512, a CPU by LLVM's name"
    )
    stop_at: str = option(
        "",
        help="stop after this many steps, or above the first of a kind: to_accum, tile, split, parallel, serial, move, "
        "pack, kernel",
    )
    require_schedule: bool = option(False, help="a morello.spec without a schedule is an error")

    def run(self, op: Any) -> None:
        from morello_mlir.lowering.execute import execute, prepare
        from morello_mlir.lowering.plan import Stop
        from morello_mlir.nests.lowering.execute import execute_nests, prepare_nest
        from morello_mlir.search.schedule import parse
        from morello_mlir.targets import get_target

        try:
            target = get_target(self.target)
            Stop.parse(self.stop_at)
        except (InputError, ScheduleError) as error:
            self.fail(op, str(error))
        self._expand_chains(op, target)
        roots, nests = [], []
        for spec_op in goal_ops(op):
            try:
                text = spec_op.schedule_text
                if text is not None and isinstance(spec_op, NestOp):
                    if not self.stop_at:
                        nests.append(prepare_nest(spec_op, spec_op.spec, parse(text), target))
                elif text is not None:
                    roots.append(prepare(spec_op.operation, parse(text), target, self.stop_at))
                elif self.require_schedule:
                    self.fail(spec_op.operation, "has no schedule: run morello-search before")
            except (SpecError, ScheduleError) as error:
                self.fail(spec_op.operation, str(error))
        execute(roots, target)
        execute_nests(nests, target)

    def _expand_chains(self, op: Any, target: Any) -> None:
        """Chains become loops around the goals of their stages, which have schedules of their own."""
        from morello_mlir.lowering.chains import expand

        for chain_op in chain_ops(op):
            if chain_op.schedule_text is None:
                if self.require_schedule:
                    self.fail(chain_op.operation, "has no schedule: run morello-search before")
                continue
            try:
                expand(chain_op, target)
            except (SpecError, ScheduleError) as error:
                self.fail(chain_op.operation, str(error))
