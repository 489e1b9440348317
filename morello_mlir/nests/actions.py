"""The steps of schedules of nests: legality and what they leave, declared once for search, checks and lowering."""

from __future__ import annotations

from dataclasses import replace

from ..errors import ScheduleError
from ..search.nest_steps import Partial, Reciprocal, Rows, Stage
from ..search.schedule import Hole, Node, Parallel, Serial, Tile, children
from ..targets import LINE, Target
from .ops import element_bytes
from .plan import check_rows, dim_of, value_of
from .rewrite import Child, Rewritten, partial, reciprocal_body, same, staged, tiled
from .spec import NestSpec, Operand
from .touch import levels

#: The share of the last-level cache that operands may take to be found there.
FAR = 0.75


def goal(spec: NestSpec, target: Target) -> NestSpec:
    """`spec` with its operands where they are when it starts (what fits a cache is there), and `far` where they exceed
    what stays in the last-level cache."""
    size = spec.bytes
    near = next((memory for memory, capacity in levels(target) if size <= capacity), None)
    if near is not None:
        rank = ("L1", "L2", "GL").index
        # Of a table that no cache holds, other rows are read the next time.
        near_by = [rank(o.memory) < rank(near) or not _fits(o, spec, target) for o in spec.operands]
        moved = [o if stays else replace(o, memory=near) for o, stays in zip(spec.operands, near_by, strict=True)]
        return replace(spec, operands=tuple(moved))
    return replace(spec, far=spec.far or size > FAR * target.l3_bytes)


def _fits(o: Operand, spec: NestSpec, target: Target) -> bool:
    """Whether all of an operand stays in the caches: of tables, a nest reads a part."""
    return not o.axes or o.span(spec.dims) * element_bytes(o.dtype) <= target.l2.lines * LINE


def rewritten(spec: NestSpec, node: Node, target: Target) -> Rewritten:
    """What the step `node` leaves of `spec`. Raises ScheduleError, naming the step and the reason, where it is not
    legal."""
    try:
        out = _rewritten(spec, node, target)
    except ScheduleError as error:
        text = str(error)
        raise (error if text.startswith(node.label()) or ", in " in text else fail(spec, node, text)) from None
    if isinstance(out, str):
        raise fail(spec, node, out)
    has_rest = isinstance(node, (Tile, Parallel, Partial)) and node.rest is not None
    bodies = len(children(node))
    if len(out.children) != bodies:
        why = "divides: there is no rest" if has_rest else "needs a 'rest:'"
        raise fail(spec, node, why)
    return out


def fail(spec: NestSpec, node: Node, why: str) -> ScheduleError:
    """The error that names the step, the reason and the goal."""
    return ScheduleError(f"{node.label()}: {why}, in {spec}")


def _rewritten(spec: NestSpec, node: Node, target: Target) -> Rewritten | str:
    if isinstance(node, Rows):
        if not spec.serial:
            return "the goal is parallel: share a loop among the threads (parallel tile), or say serial"
        check_rows(spec, node, target)
        return Rewritten(())
    if isinstance(node, (Tile, Parallel)):
        return _loop(spec, node)
    if isinstance(node, Serial):
        if spec.serial:
            return "the goal is serial already"
        return Rewritten((Child(1, replace(spec, serial=True, threads=0), same(spec)),))
    if isinstance(node, Reciprocal):
        body = reciprocal_body(spec)
        if body is None:
            return "the body has no division by what is the same along scan dims"
        return Rewritten((Child(1, replace(spec, body=body), same(spec)),))
    if isinstance(node, Stage):
        values = [value_of(name, spec) for name in node.values]
        if len(set(values)) < len(values):
            return "a value is named twice"
        if set(values) & set(spec.body.outputs) and not set(spec.body.outputs) - set(values):
            return "the outputs themselves need no stage"
        return staged(spec, values, levels(target))
    if isinstance(node, Partial):
        d = dim_of(node.dim, spec)
        if not spec.scan[d]:
            return f"{node.dim} is parallel: tile it"
        if node.size >= spec.dims[d]:
            return f"the size must be less than {node.dim}={spec.dims[d]}"
        if positions(spec, d):
            return f"the body uses the position along {node.dim}"
        if any(b.steps[d] for o in spec.operands for b in o.borders):
            return f"an operand has a border along {node.dim}"
        return partial(spec, d, node.size, levels(target))
    return "not a step for nests (have tile, parallel tile, serial, stage, partial, reciprocal, rows)"


def _loop(spec: NestSpec, node: Tile | Parallel) -> Rewritten | str:
    d = dim_of(node.dim, spec)
    shared = isinstance(node, Parallel)
    if spec.scan[d]:
        return f"{node.dim} is a scan dim: passes sweep it (or stage its reductions and say partial)"
    if node.size >= spec.dims[d]:
        return f"the size must be less than {node.dim}={spec.dims[d]}"
    if positions(spec, d):
        return f"the body uses the position along {node.dim}"
    if shared and spec.serial:
        return "the goal is serial"
    if shared and isinstance(node, Parallel) and node.threads:
        return "all threads share the loop"
    if not shared and not spec.serial:
        return "the goal is parallel: share a loop among the threads (parallel tile), or say serial"
    return tiled(spec, d, node.size, parallel=shared)


def positions(spec: NestSpec, d: int) -> bool:
    """Whether the body uses the position along dim `d`."""
    return any(v.op == "index" and v.attr == d for v in spec.body.values)


def check_tree(spec: NestSpec, node: Node, target: Target) -> None:
    """Raises ScheduleError for the first illegal step of the schedule `node` of `spec`; holes are legal anywhere."""
    seen: set[tuple[NestSpec, Node]] = set()
    stack: list[tuple[NestSpec, Node]] = [(spec, node)]
    while stack:
        s, n = stack.pop()
        if isinstance(n, Hole) or (s, n) in seen:
            continue
        seen.add((s, n))
        stack.extend((c.spec, b) for c, b in zip(rewritten(s, n, target).children, children(n), strict=True))
