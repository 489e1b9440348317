"""The declared space: which actions there are at a table, and how a schedule step finds its action.

"Exhaustive" refers to this page: the search tries every action that `explore` lists, at every size of the closure and
every limit (docs/search-space.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..errors import ScheduleError, SpecError
from ..search.nest_steps import NEST_STEPS
from ..search.schedule import (
    LOOPS,
    Exchange,
    Hole,
    Kernel,
    Move,
    Node,
    PackAhead,
    Parallel,
    Serial,
    Split,
    Tile,
    ToAccum,
    children,
)
from ..spec import FUNCTIONS, MEMORIES, Layout, Spec, dtype_bytes
from ..targets import Target
from .ahead import InPlaceAction, PackAheadAction
from .base import Action, Condition, reason
from .move import MoveAction, form_of
from .parallel import ParallelTile, SerialAction
from .registry import KERNELS
from .state import TableKey, key_of, spec_of
from .tile import ExchangeAction, TileAction, ToAccumAction, WithinAction


def scale(n: int) -> list[int]:
    """Tile sizes tried for a dim of size `n`: 2^x and 3*2^x below it."""
    out = set()
    x = 1
    while x < n:
        out.add(x)
        if 3 * x < n:
            out.add(3 * x)
        x *= 2
    return sorted(out)


def coarse_scale(n: int) -> list[int]:
    """Powers of two below `n`: how many units of a window are tried."""
    return [1 << x for x in range((n - 1).bit_length())]


def steps(size: int, units: Sequence[int] = ()) -> list[int]:
    """Tile sizes tried for a dim of size `size`: of the scale, or so many units of a window along it."""
    if not units:
        return scale(size)
    return [units[0] * count for count in coarse_scale(-(-size // units[0]))]


def closure(n: int, units: tuple[int, ...] = ()) -> list[int]:
    """Every size that tiling a dim of size `n` can lead to, remainders included, ascending. units: of a window along
    it, through which tiles go until it is packed."""
    todo: list[tuple[int, tuple[int, ...]]] = [(n, units)]
    seen: set[tuple[int, tuple[int, ...]]] = set()
    while todo:
        size, left = point = todo.pop()
        if point in seen:
            continue
        seen.add(point)
        if left:
            todo += [(size, ()), (size, left[1:])]
        for step in steps(size, left):
            todo.append((step, left))
            if size % step:
                todo.append((size % step, left))
    return sorted({size for size, _ in seen})


def holds(conditions: Sequence[Condition]) -> bool:
    """Whether all conditions hold, for sizes that are ints."""
    return all(ok for ok, _ in conditions)


def panels(key: TableKey, operand: int, target: Target) -> list[tuple[Layout, str | None]]:
    """Packed layouts tried for operand `operand`, and the dtype where that changes: what the kernels want that the
    other operand still allows."""
    if operand == len(key.operands) - 1:
        return []
    lhs, rhs = key.operands[0], key.operands[1]
    lanes = target.lanes(key.dtype)
    if operand == 0 and rhs.layout.pack_width(2) == 1:
        # Beside single columns only dot products pay, and they read lhs as it lies.
        return []
    widths = target.pack_rows if operand == 0 else tuple(v * lanes for v in target.pack_vectors)
    forms = dict.fromkeys(f for k in KERNELS.kernels for f in k.panels(key, operand, target))
    out = [(Layout.packed(3, 1 if operand == 0 else 2, w, group), dtype) for group, dtype in forms for w in widths]
    rows = lhs.layout.innermost == 2 and lhs.unit and not lhs.layout.is_packed and not key.units("k")
    if operand == 1 and rows and rhs.layout.innermost == 2:
        out.append((Layout.packed(3, 2, 1), None))
    return out


def moves(key: TableKey, target: Target) -> list[Action]:
    """Every legal move at `key`."""
    out: list[Action] = []
    for i in range(len(key.operands)):
        for memory in ("VRF", "L1", "L2"):
            out.append(MoveAction(i, memory))
        for layout, dtype in panels(key, i, target):
            out.append(MoveAction(i, "L2", layout, dtype))
            out.append(MoveAction(i, "GL", layout, dtype))
    return [a for a in out if holds(a.requires(key, target))]


def aheads(key: TableKey, target: Target) -> list[Action]:
    """Every legal way to pack a constant operand ahead at `key`."""
    out = [PackAheadAction(i, *form) for i in range(len(key.operands)) for form in panels(key, i, target)]
    return [a for a in out if holds(a.requires(key, target))]


def kernels(key: TableKey, target: Target) -> list[Action]:
    """The kernels that the target has for operands as `key` has them."""
    return [k for k in KERNELS.kernels if holds(k.requires(key, target))]


def tiles(key: TableKey, dim: str, size: int, target: Target) -> list[TileAction]:
    """Every legal tile of `dim` of size `size` at `key`."""
    sizes = (1,) if dim == "b" else steps(size, key.units(dim))
    candidates = [TileAction(dim, s) for s in sizes if s < size]
    return [a for a in candidates if holds(a.requires(key, target))]


def groups(key: TableKey) -> list[int]:
    """Among how many groups of threads a parallel loop's trips may be shared: all (0), or a divisor."""
    if key.is_serial:
        return []
    return [0, *(g for g in range(2, key.threads) if key.threads % g == 0 and not key.forked)]


def parallel_tiles(key: TableKey, dim: str, size: int, target: Target) -> list[ParallelTile]:
    """Every legal parallel tile of `dim` of size `size` at `key`."""
    sizes = (1,) if dim == "b" else steps(size, key.units(dim))
    candidates = [ParallelTile(dim, s, g) for g in groups(key) for s in sizes if s < size]
    return [a for a in candidates if holds(a.requires(key, target))]


def serials(key: TableKey, target: Target) -> list[Action]:
    """`serial`, where it is legal."""
    action = SerialAction()
    return [action] if holds(action.requires(key, target)) else []


def withins(key: TableKey, dims: Mapping[str, int], target: Target) -> list[Action]:
    """Where the sizes at `key` reach over no more than one unit of a window: that it is none."""
    actions = [WithinAction(dim) for dim in ("m", "k", "n") if key.units(dim)]
    return [a for a in actions if holds(a.conditions(key, dims, {}, target))]


def past_caches(key: TableKey, dims: Mapping[str, int], target: Target) -> list[Action]:
    """The move of the output to WC, where the goal at `key` overwrites it and it is so large that its lines are in no
    cache when they are written, nor wanted there."""
    size = dims["b"] * dims["m"] * dims["n"] * dtype_bytes(key.dtype_of(-1))
    action = MoveAction(len(key.operands) - 1, "WC")
    return [action] if key.far and 2 * size >= target.l3_bytes and holds(action.requires(key, target)) else []


def explore(key: TableKey, dims: Mapping[str, int], target: Target) -> list[Action]:
    """The actions tried for the Spec at `key` and `dims`, in the order that decides among equal costs.

    A function that overwrites its output goes through to_accum first (beside a window after an exchange, or not), or a
    large output is written past the caches, then
    constant operands are packed ahead or not, then a batch is tiled by 1 before anything else: no order can cost less,
    all being free. (With threads a batch has one more choice: they may share it.)
    """
    if not FUNCTIONS[key.function].accumulates and not key.streams:
        first: list[Action] = [ToAccumAction(), *([ExchangeAction()] if key.has_window else [])]
        return [*(a for a in first if holds(a.requires(key, target))), *past_caches(key, dims, target)]
    if key.has_const:
        return [InPlaceAction(), *aheads(key, target)]
    if narrower := withins(key, dims, target):
        return narrower[:1]
    if dims["b"] > 1:
        return [
            *serials(key, target),
            *parallel_tiles(key, "b", dims["b"], target),
            *tiles(key, "b", dims["b"], target),
        ]
    out: list[Action] = [*kernels(key, target), *serials(key, target), *moves(key, target)]
    for dim in ("m", "k", "n"):
        out += parallel_tiles(key, dim, dims[dim], target)
    for dim in ("m", "k", "n"):
        out += tiles(key, dim, dims[dim], target)
    return sorted(out, key=lambda a: a.rank + (isinstance(a, TileAction) and dims[a.dim] % a.size > 0))


# ---------------------------------------------------------------- schedules


def action_of(node: Node, spec: Spec) -> Action:
    """The action that the schedule step `node` names. Raises ScheduleError for unknown operands, layouts or kernels."""
    if isinstance(node, ToAccum):
        return ToAccumAction()
    if isinstance(node, Exchange):
        return ExchangeAction()
    if isinstance(node, (Tile, Split)):
        action = TileAction(node.dim, node.size)
        word = "split" if isinstance(node, Split) else "tile"
        if node.dim in spec.info.dims and action.word != word:
            raise ScheduleError(f"{node.label()}: {node.dim} is {action.word}, not {word} ({action.label()})")
        return action
    if isinstance(node, Parallel):
        shared = ParallelTile(node.dim, node.size, node.threads)
        if node.dim in spec.info.dims and shared.adds != node.adds:
            words = ("tile", "split")
            raise ScheduleError(f"{node.label()}: {node.dim} is {words[shared.adds]}, not {words[node.adds]}")
        return shared
    if isinstance(node, Serial):
        return SerialAction()
    if isinstance(node, Kernel):
        kernel = KERNELS[node.name]
        if kernel is None:
            known = ", ".join(k.name for k in KERNELS.kernels)
            raise ScheduleError(f"{node.label()}: no such kernel (have {known})")
        return kernel
    if isinstance(node, (Move, PackAhead)):
        try:
            i = spec.info.operand_index(node.operand)
            layout, dtype = form_of(node.layout, spec.operand_names(i)) if node.layout else (None, None)
            if isinstance(node, PackAhead):
                assert layout is not None
                return PackAheadAction(i, layout, dtype)
            if node.memory not in MEMORIES:
                raise SpecError(f"unknown memory '{node.memory}'")
        except SpecError as e:
            raise ScheduleError(f"{node.label()}: {e}") from None
        return MoveAction(i, node.memory, layout, dtype)
    if isinstance(node, NEST_STEPS):
        raise ScheduleError(f"{node.label()}: a step of nests, not of {spec.function}")
    raise ScheduleError("a hole has no action: let the search fill it")


def limits_of(spec: Spec, target: Target) -> dict[str, int]:
    """What the implementation of `spec` may take of each memory, caches in whole steps."""
    out = dict(target.limits)
    for memory, amount in spec.limits:
        if memory == "VRF":
            out[memory] = min(amount, target.registers)
        else:
            step = target.cache(memory).step
            out[memory] = min(amount, target.cache(memory).lines) // step * step
    return out


def matters(key: TableKey, memory: str) -> bool:
    """True where some operand may still enter `memory`."""
    if memory == "VRF":
        return True
    return any(m == "GL" or (memory == "L1" and m == "L2") for m in key.memories)


def remaining(
    action: Action, key: TableKey, dims: Mapping[str, int], left: Mapping[str, int], target: Target
) -> dict[str, int]:
    """What the children of `action` may take: caches rounded down to whole steps, as the tables are."""
    out = dict(left)
    for memory, amount in action.uses(key, dims, target).items():
        rest = left[memory] - int(amount)
        out[memory] = rest if memory == "VRF" else rest // target.cache(memory).step * target.cache(memory).step
    return out


def check(action: Action, spec: Spec, target: Target) -> None:
    """Raises ScheduleError naming the step and the reason where `action` is not legal for `spec`."""
    key = key_of(spec, target)
    dims = dict(zip(spec.info.dims, spec.dims, strict=True))
    for condition in action.requires(key, target):
        if not condition[0]:
            raise ScheduleError(f"{action.label()}: {reason(condition)}, in {spec}")
    for condition in action.conditions(key, dims, limits_of(spec, target), target):
        if not condition[0]:
            raise ScheduleError(f"{action.label()}: {reason(condition)}, in {spec}")


def child_specs(spec: Spec, node: Node, target: Target) -> list[tuple[int, Spec]]:
    """The Specs that step `node` of a schedule leaves to be implemented, with how often each runs, in schedule order.

    Raises ScheduleError naming the step and the reason where the step is not legal for `spec`.
    """
    action = action_of(node, spec)
    check(action, spec, target)
    key = key_of(spec, target)
    dims = dict(zip(spec.info.dims, spec.dims, strict=True))
    left = remaining(action, key, dims, limits_of(spec, target), target)
    out = []
    for child in action.children(key, dims):
        if child.count:
            keep = {m: v for m, v in left.items() if v != target.limits[m] and matters(child.key, m)}
            out.append((int(child.count), spec_of(child.key, child.dims, keep)))
    has_rest = isinstance(node, LOOPS) and node.rest is not None
    if isinstance(node, LOOPS) and has_rest != (len(out) > 1):
        size = spec.size(node.dim)
        why = "needs a 'rest:'" if len(out) > 1 else "divides: there is no rest"
        raise ScheduleError(f"{node.label()}: {node.dim}={size} {why}, in {spec}")
    return out


def check_tree(spec: Spec, node: Node, target: Target) -> None:
    """Raises ScheduleError for the first illegal step of the schedule `node` of `spec`; holes are legal anywhere."""
    seen: set[tuple[Spec, Node]] = set()
    stack = [(spec, node)]
    while stack:
        s, n = stack.pop()
        if isinstance(n, Hole) or (s, n) in seen:
            continue
        seen.add((s, n))
        specs = child_specs(s, n, target)
        stack.extend((c, b) for (_, c), b in zip(specs, children(n), strict=True))
