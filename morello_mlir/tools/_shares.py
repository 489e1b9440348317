"""`morello explain FILE --shares`: where the time of a module is predicted to go, and what is left to upstream."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any


def call_counts(module: Any) -> Counter[Any]:
    """How often the functions of each goal are called, by goal and schedule by hand; loops round calls do not count."""
    import mlir.ir as ir

    from ..dialect import ChainOp, NestOp, chain_ops, goal_ops
    from ..passes.symbols import all_ops, symbol_name

    calls = Counter(
        ir.FlatSymbolRefAttr(op.attributes["callee"]).value for op in all_ops(module) if op.name == "func.call"
    )
    found: Counter[Any] = Counter()
    for op in (*goal_ops(module.operation), *chain_ops(module.operation)):
        spec = op.spec if isinstance(op, (NestOp, ChainOp)) else op.spec.canonical()
        found[spec, op.schedule_text] += calls[symbol_name(_function(op.operation))] or 1
    return found


def _function(op: Any) -> Any:
    while op.operation.name != "func.func":
        op = op.operation.parent
    return op


def left_ops(module: Any) -> Counter[str]:
    """The linalg ops that no goal covers, by name."""
    from ..passes.symbols import all_ops

    skipped = ("linalg.yield", "linalg.index")
    return Counter(op.name for op in all_ops(module) if op.name.startswith("linalg.") and op.name not in skipped)


def table(rows: Iterable[tuple[str, float, int]], left: Counter[str]) -> str:
    """rows: goal, predicted cycles of one call, calls."""
    ordered = sorted(rows, key=lambda row: -row[1] * row[2])
    total = sum(cycles * calls for _, cycles, calls in ordered)
    lines = [f"{total:,.0f} cycles predicted in all"] if ordered else ["nothing was lifted"]
    lines += [f"{cycles * calls / total:6.1%}  {calls:3} x {cycles:14,.0f}  {goal}" for goal, cycles, calls in ordered]
    listed = ", ".join(f"{count} {name}" for name, count in left.most_common())
    return "\n".join([*lines, f"left to upstream: {listed or 'nothing'}"])
