"""Our passes, upstream's and one of your own in one pipeline, on a module of the MLIR Python bindings."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from mlir import ir

from morello_mlir import dialect
from morello_mlir.passes.base import Pass, option, remark
from morello_mlir.passes.pipeline import run_pipeline
from morello_mlir.passes.registry import register


@register  # a package would name the class in the entry-point group `morello_mlir.passes` instead
@dataclass(frozen=True)
class CountSteps(Pass):
    """Report how many steps the schedule of every morello.spec has."""

    name: ClassVar[str] = "count-steps"
    summary: ClassVar[str] = "Report the length of schedules"
    kind: str = option("", help="only steps that start with this")

    def run(self, op: ir.Operation) -> None:
        for spec in dialect.spec_ops(op):
            lines = [line for line in (spec.schedule_text or "").splitlines() if line.strip().startswith(self.kind)]
            remark(spec.operation, f"{len(lines)} steps")


with ir.Context() as context:
    dialect.load(context)
    module = ir.Module.parse(Path(__file__).with_name("linear.mlir").read_text())
    remarks = run_pipeline(
        module.operation,
        "builtin.module(canonicalize,morello-group,morello-bufferize,morello-lift,morello-search,"
        "count-steps{kind=tile},morello-apply,cse)",
    )
    print(*remarks, sep="\n")
    assert "vector.fma" in str(module)
