"""How a contraction's loops become one Spec: collapsing, what is left to outer loops, the canonical transposition.

Pure arithmetic on sizes and strides; no MLIR here.

A contraction has any number of loops of each role: b (batch: in all three operands), m (lhs and out), n (rhs and
out) and k (lhs and rhs, reduced). A Spec has one of each. `make_plan` first merges neighbouring loops of a role,
then chooses which of those that remain are the Spec's; the others become a loop nest around it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, permutations

from morello_mlir.nests.body import Body
from morello_mlir.spec import (
    FUNCTIONS,
    Extra,
    Layout,
    Spec,
    TensorSpec,
    Then,
    Window,
    dtype_bytes,
    row_stride,
    stride_class,
)

from .loops import Loop, merge_loops
from .windows import Counted, Digits, Pad, edges_of, fold, unfold, window_of

ROLES = ("b", "m", "k", "n")
LHS, RHS, OUT = 0, 1, 2

#: Runs of consecutive elements are worth more the longer they are, up to a cache line of them.
_RUN = 16


@dataclass(frozen=True)
class Operand:
    """An operand as its memref has it: the Spec's three logical dims, those of a window digit by digit, with sizes and
    strides. `source`: which input of the linalg op it is (0, 1, or 2 for the output; from 3 on those of `then`)."""

    source: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True)
class OuterLoop:
    """A loop around the Spec: trip count, stride in elements per Spec operand (0 where absent), reduction or not."""

    size: int
    strides: tuple[int, ...]
    reduction: bool


@dataclass(frozen=True)
class Finish:
    """What is done to the sums before they are written: see `spec.Then`. dtypes: of its further operands, whose strides
    the loops have after those of the output."""

    body: Body
    sums: str
    dtypes: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """The Spec, its operands in order (lhs, rhs, out, those of `then`), and the loops around it, outermost first.

    `spec.function` is `Matmul` only where the output is written without being read; `keeps_fill` says that this was
    asked for but an outer reduction loop needs the output initialised.
    """

    spec: Spec
    operands: tuple[Operand, ...]
    outer: tuple[OuterLoop, ...]
    keeps_fill: bool = False


def make_plan(
    loops: Sequence[Loop],
    dtypes: Sequence[str],
    accumulate: bool,
    finish: Finish | None = None,
    window: int | None = None,
    pads: Sequence[Pad] = (),
) -> Plan:
    """Plans a contraction over `loops`.

    dtypes: of the inputs and the output. accumulate: out += lhs @ rhs instead of out = lhs @ rhs. finish: what is done
    to the sums. window: the input through which one slides, if any. pads: its padded dims. Raises SpecError where there
    is no such Spec.
    """
    live = merge_loops(loops)
    chosen, outer = _choose(live if window is None else fold(live, window))
    reads = accumulate or any(loop.role == "k" for loop in outer)
    sources = (LHS, RHS, OUT)
    if _should_swap(chosen):
        chosen = {_MIRROR[role]: _mirror(loop) for role, loop in chosen.items()}
        outer = [_mirror(loop) for loop in outer]
        sources = (RHS, LHS, OUT)
    function = FUNCTIONS["MatmulAccum" if reads else "Matmul"]
    operands = []
    specs = []
    for i, (_, dims) in enumerate(function.operands):
        operand, tensor = _operand(i, sources[i], [chosen.get(d) for d in dims], dtypes[sources[i]])
        if pads and any(loop.window == i for loop in chosen.values()):
            tensor = replace(tensor, window=_with_edges(i, operand, tensor.window or Window(), outer, pads))
        operands.append(operand)
        specs.append(tensor)
    sizes = tuple(chosen[role].size if role in chosen else 1 for role in ROLES)
    then = None
    if finish is not None:
        extras = [_extra(i, [chosen.get(d) for d in function.operands[OUT][1]]) for i in range(len(finish.dtypes))]
        operands += extras
        named = [Extra(dtype, _dims(e)) for dtype, e in zip(finish.dtypes, extras, strict=True)]
        then = Then(finish.body, finish.sums, tuple(named))
    spec = Spec(function.name, sizes, tuple(specs), then=then).canonical()
    nest = tuple(OuterLoop(o.size, _zeros(o.strides), o.role == "k") for o in outer)
    return Plan(spec, tuple(operands), nest, reads and not accumulate)


def _with_edges(i: int, operand: Operand, window: Window, outer: Sequence[Loop], pads: Sequence[Pad]) -> Window | None:
    """The window of operand `i` with what is known of the padded dims of the buffer in which it lies."""
    other = [operand.strides[0] * (operand.sizes[0] > 1), *(o.strides[i] or 0 for o in outer if o.size > 1)]
    edges = edges_of(pads, _digits(operand, window), 2 if i == LHS else 1, other)
    return replace(window, edges=tuple(edges)) or None


def _digits(operand: Operand, window: Window) -> list[list[Counted]]:
    """The digits of the last two dims of an operand with a window."""
    at, found = 1, []
    for units in window.units:
        end = at + len(units) + 1
        found.append(list(zip((*units, 1), operand.sizes[at:end], operand.strides[at:end], strict=True)))
        at = end
    return found


def _zeros(strides: tuple[int | None, ...]) -> tuple[int, ...]:
    """Strides with 0 where the operand does not have the loop."""
    return tuple(s or 0 for s in strides)


def _extra(i: int, loops: Sequence[Loop | None]) -> Operand:
    """Operand x`i + 1` of `then`, over the dims of the output."""
    sizes = tuple(loop.size if loop else 1 for loop in loops)
    strides = tuple((loop.strides[OUT + 1 + i] or 0) if loop else 0 for loop in loops)
    return Operand(OUT + 1 + i, sizes, strides)


def _dims(extra: Operand) -> tuple[str, ...]:
    """The dims along which an operand of `then` is no broadcast, slowest first."""
    moving = [(-stride, d) for d, stride in zip("bmn", extra.strides, strict=True) if stride]
    return tuple(d for _, d in sorted(moving))


def _choose(loops: list[Loop]) -> tuple[dict[str, Loop], list[Loop]]:
    """The loops of the Spec by role, and those around it: parallel ones outermost, so that reductions revisit a warm
    output."""
    chosen: dict[str, Loop] = {}
    left = [loop for loop in loops if loop.role == "b"]
    for role in "mkn":
        candidates = sorted((x for x in loops if x.role == role), key=_worth, reverse=True)
        if candidates:
            chosen[role] = candidates[0]
        left += [loop for rest in candidates[1:] for loop in unfold(rest)]
    # A batch dim of the Spec is the slowest of its operands: elsewhere it would only hide how far apart rows are. One
    # more parallel loop may take a free one; the operand without that loop is then broadcast (stride 0).
    # (Beside a window there is no choice: tiles of the others go through it.)
    windows = any(x.window is not None for x in chosen.values())
    batches = [x for x in left if x.role != "k" and (_is_slowest(x, chosen) or (windows and x.role == "b"))]
    if batches:
        chosen["b"] = max(batches, key=lambda x: (x.role == "b", _worth(x)))
        left.remove(chosen["b"])
    left.sort(key=lambda x: (x.role == "k", -max(s or 0 for s in x.strides[: OUT + 1])))
    return chosen, left


def _is_slowest(loop: Loop, others: dict[str, Loop]) -> bool:
    """Whether `loop` steps farther than the others in every operand that has it."""
    return all(
        not stride or all(stride >= (other.strides[i] or 0) for other in others.values())
        for i, stride in enumerate(loop.strides[: OUT + 1])
    )


def _worth(loop: Loop) -> tuple[int, int]:
    """What to prefer where one of several loops of a role becomes the Spec's: extent, but consecutive elements (they
    fill vectors and cache lines) before an extent that steps over them; then short steps."""
    run = min(loop.size, _RUN) if loop.contiguous else 1
    return loop.size * run * run, -sum(s or 0 for s in loop.strides[: OUT + 1])


#: Roles in the transposed problem: out^T = rhs^T lhs^T.
_MIRROR = {"b": "b", "m": "n", "n": "m", "k": "k"}


def _mirror(loop: Loop) -> Loop:
    """The loop as the transposed problem has it."""
    window = None if loop.window is None else 1 - loop.window
    strides = (loop.strides[RHS], loop.strides[LHS], *loop.strides[OUT:])
    return Loop(_MIRROR[loop.role], loop.size, strides, loop.digits, window)


def _should_swap(chosen: dict[str, Loop]) -> bool:
    """Whether the output is column-major, or a column that is contiguous: its transpose is row-major."""
    m, n = chosen.get("m"), chosen.get("n")
    if m is None:
        return False
    if n is None:
        return m.strides[OUT] == 1
    return (m.strides[OUT] or 0) < (n.strides[OUT] or 0)


def _operand(i: int, source: int, loops: Sequence[Loop | None], dtype: str) -> tuple[Operand, TensorSpec]:
    """Operand `i` over its three logical dims (None: of size one)."""
    sizes = tuple(loop.size if loop else 1 for loop in loops)
    known = [(loop.strides[i] or 0) if loop else None for loop in loops]
    digits = [loop.digits if loop and loop.window == i else () for loop in loops]
    order = physical_order(known) if not any(digits) else _window_order(known, sizes, digits)
    if i == RHS and order[-2:] == (1, 2) and known[2] is None and known[1] is not None:
        # A single column: its elements follow one another along k, which is what products of vectors want.
        order = (*order[:-2], 2, 1)
    strides = _fill_strides(order, sizes, known)
    layout = Layout.permutation(order)
    step = row_stride(layout, strides)
    declared = None if step == sizes[order[-1]] else stride_class(step * dtype_bytes(dtype))
    # Dims of one element do not count: there is no second element to be next to.
    innermost = next((strides[d] for d in reversed(order) if sizes[d] != 1), 1)
    window = None
    if any(digits) or any(loop and loop.window == i for loop in loops):
        window = window_of(sizes, strides, digits)
    spec = TensorSpec(dtype, "GL", layout, declared, innermost == 1, window=window)
    return _digit_by_digit(source, sizes, strides, digits), spec


def _window_order(strides: Sequence[int | None], sizes: Sequence[int], digits: Sequence[Digits]) -> tuple[int, ...]:
    """As `physical_order`, of an operand with a window, by how far the runs of a dim reach: the fastest one is the dim
    whose neighbours are neighbours for longest, or (none being) whose steps are shortest."""
    runs = [digits[d][-1][0] if digits[d] else sizes[d] for d in range(len(sizes))]

    inner = max((1, 2), key=lambda d: (strides[d] is not None, *(_nearness(strides[d] or 0, runs[d])), d))
    return (0, 3 - inner, inner)


def _nearness(stride: int, run: int) -> tuple[int, int]:
    """What to prefer as the fastest dim: the longer run of neighbours, then the shorter step."""
    return (run // stride if stride else 0, -stride)


def _digit_by_digit(source: int, sizes: Sequence[int], strides: Sequence[int], digits: Sequence[Digits]) -> Operand:
    """The operand with a dim for every digit."""
    shape: list[int] = []
    steps: list[int] = []
    for size, stride, slower in zip(sizes, strides, digits, strict=True):
        units = [size, *(unit for unit, _ in slower), 1]
        shape += [a // b for a, b in pairwise(units)]
        steps += [*(jump for _, jump in slower), stride]
    return Operand(source, tuple(shape), tuple(steps))


def physical_order(strides: Sequence[int | None]) -> tuple[int, ...]:
    """Dims slowest to fastest. Dims of size one (None) and ties go where the order is closest to row-major; a
    broadcast dim (stride 0) is slowest: it is the one whose steps are far apart in reuse."""
    far = float("inf")
    keys = [None if s is None else (s or far) for s in strides]
    for order in permutations(range(len(strides))):  # in lexicographic order: the first fit is the most row-major one
        live = [k for k in (keys[d] for d in order) if k is not None]
        if all(a >= b for a, b in pairwise(live)):
            return order
    raise AssertionError("some order is sorted")


def _fill_strides(order: Sequence[int], sizes: Sequence[int], known: Sequence[int | None]) -> tuple[int, ...]:
    """Strides with those of size-one dims set to what a dense tensor would have, so that equal operands look
    equal."""
    strides = [0] * len(order)
    run = 1
    for dim in reversed(order):
        stride = known[dim]
        strides[dim] = run if stride is None else stride
        run = max(run, strides[dim] * sizes[dim])
    return tuple(strides)
