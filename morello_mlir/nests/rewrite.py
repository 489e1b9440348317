"""The rewrites of nests: what each step of a schedule leaves to be implemented.

Dims keep their numbers all the way down (a dim that a tile cuts to one step stays, with size one), so that a schedule
can be read with the Spec at its top in mind; `partial` appends one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .body import Body, BodyBuilder, Value, needed_values
from .online import MAXIMA, scalings
from .ops import element_bytes
from .plan import Values
from .spec import NestSpec, Operand


@dataclass(frozen=True, slots=True)
class Source:
    """Where an operand of a child lies. operand: the parent's operand of that number; scratch: else, the number of the
    step's scratch buffer. offset: elements from its start (a loop adds its own steps)."""

    operand: int | None = None
    scratch: int | None = None
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Buffer:
    """Scratch that a step needs while its children run."""

    dtype: str
    elements: int

    @property
    def bytes(self) -> int:
        return self.elements * element_bytes(self.dtype)


@dataclass(frozen=True, slots=True)
class Child:
    """A smaller goal, how often it runs one after another, and where each of its operands lies."""

    count: int
    spec: NestSpec
    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class Rewritten:
    """What a step leaves: goals in schedule order, and scratch that lives as long as the step."""

    children: tuple[Child, ...]
    buffers: tuple[Buffer, ...] = ()


def same(spec: NestSpec) -> tuple[Source, ...]:
    """A child's operands where they are those of the whole."""
    return tuple(Source(k) for k in range(len(spec.operands)))


# ---------------------------------------------------------------- tiles


def tiled(spec: NestSpec, d: int, size: int, *, parallel: bool = False) -> Rewritten:
    """A loop over dim `d` in steps of `size`: the body, and what is left over (offset by the steps before it). Borders
    are where the first turn has them."""
    n = spec.dims[d]
    whole, rest = divmod(n, size)
    inner = replace(spec, serial=True, threads=0, among=max(1, spec.threads)) if parallel else spec
    sizes = lambda step: [step if e == d else m for e, m in enumerate(spec.dims)]  # noqa: E731
    out = [Child(whole, inner.with_dims(sizes(size)), same(spec))]
    if rest:
        at = tuple(Source(k, None, whole * size * o.strides[d]) for k, o in enumerate(spec.operands))
        moved = replace(inner, operands=tuple(o.moved(d, whole * size) for o in spec.operands))
        out.append(Child(1, moved.with_dims(sizes(rest)), at))
    return Rewritten(tuple(out))


# ---------------------------------------------------------------- bodies


def extract(body: Body, outputs: Sequence[int], given: dict[int, int], inputs: Sequence[Operand]) -> Body:
    """The body that computes the values `outputs`; given: values that are inputs of it, by number."""
    b = BodyBuilder()
    # Tables are inputs, and what is read there depends on its place.
    given = {at: k for at, k in given.items() if body.values[at].op != "gather"}
    made: dict[int, int] = {}
    for at in needed_values(body.values, outputs, given):
        value = body.values[at]
        if at in given:
            made[at] = b.input(given[at], inputs[given[at]].dtype)
        else:
            made[at] = b.add(value, [made[a] for a in value.args])
    return b.build([made[v] for v in outputs]).canonical()


def reciprocal_body(spec: NestSpec) -> Body | None:
    """The body with its divisions by row values as multiplications; None where there are none."""
    body, values = spec.body, Values(spec)
    b = BodyBuilder()
    made: list[int] = []
    changed = False
    for at, value in enumerate(body.values):
        args = [made[a] for a in value.args]
        slow = value.op == "div" and at not in values.row and value.args[1] in values.row
        if slow and value.dtype in ("f32", "f64") and body.values[value.args[1]].op != "const":
            one = b.const(1, value.dtype)
            made.append(b.op("mul", args[0], b.op("div", one, args[1])))
            changed = True
        else:
            made.append(b.add(value, args))
    return b.build([made[v] for v in body.outputs]).canonical() if changed else None


# ---------------------------------------------------------------- stages


def row_strides(dims: Sequence[int], along: Sequence[int]) -> tuple[tuple[int, ...], int]:
    """Row-major strides over the dims `along`, 0 along others, and how many elements that makes."""
    strides, step = [0] * len(dims), 1
    for d in reversed(along):
        strides[d] = step
        step *= dims[d]
    return tuple(strides), step


def nearness(nbytes: int, levels: Sequence[tuple[str, int]]) -> str:
    """The innermost memory that `nbytes` fit; levels: (memory, bytes), innermost first."""
    return next((memory for memory, size in levels if nbytes <= size), "GL")


def nearer(a: str, b: str) -> str:
    """The memory that is nearer to the registers."""
    order = ("L1", "L2", "GL")
    return min(a, b, key=order.index)


def staged(spec: NestSpec, values: Sequence[int], levels: Sequence[tuple[str, int]]) -> Rewritten | str:
    """`stage`: the nest that computes `values`, and the rest, for which they are inputs. A text: why it is not legal.

    levels: the caches, innermost first, and the bytes they hold.
    """
    body = spec.body
    along = [frozenset(d for d in spec.varies[v] if spec.dims[d] > 1) for v in values]
    parallel = {frozenset(d for d in a if not spec.scan[d]) for a in along}
    if len(parallel) > 1:
        return "the values vary along different parallel dims: stage them apart"
    if any(body.values[v].is_leaf for v in values):
        return "inputs and constants need no stage"
    outer = next(iter(parallel))
    dims = tuple(n if s or d in outer else 1 for d, (n, s) in enumerate(zip(spec.dims, spec.scan, strict=True)))
    new, buffers = [], []
    for v, dims_of in zip(values, along, strict=True):
        strides, size = row_strides(dims, [d for d in range(len(dims)) if d in dims_of])
        dtype = body.values[v].dtype
        buffers.append(Buffer(dtype, size))
        new.append(Operand(dtype, nearness(size * element_bytes(dtype), levels), strides))
    inputs = list(spec.inputs)
    first_body = extract(body, values, {at: k for k, at in body.inputs.items()}, inputs)
    used = first_body.inputs
    how = (spec.serial, spec.threads, spec.far, spec.among)
    first = _unscanned(NestSpec(dims, spec.scan, (*inputs, *new), first_body, *how))
    if first is None:
        return "the values vary along fewer scan dims than others: that is not supported"
    touched = nearness(first.bytes, levels)
    kept = [replace(o, memory=nearer(o.memory, touched)) if k in used else o for k, o in enumerate(inputs)]
    given = {at: k for k, at in body.inputs.items()}
    given.update({v: len(inputs) + i for i, v in enumerate(values)})
    all_inputs = [*kept, *new]
    rest_body = extract(body, body.outputs, given, all_inputs)
    rest = _unscanned(NestSpec(spec.dims, spec.scan, (*all_inputs, *spec.outputs), rest_body, *how))
    if rest is None:
        return "the outputs vary along fewer scan dims than others: that is not supported"
    ins = tuple(Source(k) for k in range(len(inputs)))
    made = tuple(Source(None, i) for i in range(len(values)))
    outs = tuple(Source(len(inputs) + k) for k in range(len(spec.outputs)))
    return Rewritten((Child(1, first, (*ins, *made)), Child(1, rest, (*ins, *made, *outs))), tuple(buffers))


def _unscanned(spec: NestSpec) -> NestSpec | None:
    """`spec` with its scan dims parallel, where nothing is reduced: dims along which no output varies have size one.
    None where outputs differ in that."""
    if spec.body.reductions or not spec.scan_dims:
        return spec
    dims = list(spec.dims)
    for d in spec.scan_dims:
        steps = {bool(o.strides[d]) for o in spec.outputs}
        if len(steps) > 1 and dims[d] > 1:
            return None
        if steps == {False}:
            dims[d] = min(dims[d], 1)
    return replace(spec, dims=tuple(dims), scan=(False,) * len(dims))


# ---------------------------------------------------------------- partial reductions

_COMBINE = {"sum": "sum", "prod": "prod", "max": "max", "min": "min", "maxnum": "maxnum", "minnum": "minnum"}
_COMBINE |= {"umax": "umax", "umin": "umin", "and": "and", "or": "or", "xor": "xor"}


def partial(spec: NestSpec, d: int, size: int, levels: Sequence[tuple[str, int]]) -> Rewritten | str:
    """`partial`: the reduction of the parts, of what is left over, and of the parts' results. A text: why not."""
    body = spec.body
    if any(o.varies.intersection(spec.scan_dims) for o in spec.outputs):
        return "an output varies along scan dims: stage its reductions first"
    whole, rest = divmod(spec.dims[d], size)
    count = whole + bool(rest)
    plan = _combination(spec)
    if isinstance(plan, str):
        return plan
    parts, combine_body = plan
    how = (spec.serial, spec.threads, spec.far, spec.among)
    # The parts' dim is the last; in scratch, it is innermost.
    dims = (*spec.dims, count)
    strides, elements = row_strides(dims, [*spec.parallel_dims, len(spec.dims)])
    buffers = [Buffer(body.values[r].dtype, elements) for r in parts]
    memory = nearness(sum(b.bytes for b in buffers), levels)
    new = [Operand(body.values[r].dtype, memory, strides) for r in parts]
    part_body = extract(body, parts, {at: k for k, at in body.inputs.items()}, spec.inputs)
    sources = tuple(Source(k) for k in range(len(spec.inputs)))
    made = tuple(Source(None, i) for i in range(len(parts)))

    def part(step: int, trips: int, first: int) -> Child:
        sizes = (*(step if e == d else n for e, n in enumerate(spec.dims)), trips)
        ins = [o.widened(o.strides[d] * size) for o in spec.inputs]
        nest = NestSpec(sizes, (*spec.scan, False), (*ins, *new), part_body, *how)
        at = [replace(s, offset=first * o.strides[-1]) for s, o in zip(sources, ins, strict=True)]
        return Child(1, nest, (*at, *(replace(s, offset=first) for s in made)))

    children = [part(size, whole, 0)] + ([part(rest, 1, whole)] if rest else [])
    sizes = tuple(1 if s else n for n, s in zip(spec.dims, spec.scan, strict=True))
    ins = [o.widened(0) for o in (*spec.inputs, *spec.outputs)]
    operands = (*ins[: len(spec.inputs)], *new, *ins[len(spec.inputs) :])
    combine = NestSpec((*sizes, count), (*spec.scan, True), operands, combine_body, *how)
    outs = tuple(Source(len(spec.inputs) + k) for k in range(len(spec.outputs)))
    children.append(Child(1, combine, (*sources, *made, *outs)))
    return Rewritten(tuple(children), tuple(buffers))


def _combination(spec: NestSpec) -> tuple[list[int], Body] | str:
    """The reductions that parts compute, and the body that combines them (inputs: the nest's, then the parts'); a text:
    why there is none."""
    body, values = spec.body, Values(spec)
    parts = list(body.reductions)
    scaled: dict[int, tuple[int, str]] = {}
    for r in parts:
        needs = values.needs(r)
        if not needs:
            continue
        if len(needs) != 1 or body.values[m := next(iter(needs))].op not in MAXIMA:
            return f"{body.names[r]} needs other reductions: stage these first"
        found = scalings(body, m, values.row).get(r)
        if found is None or found.factor is not None:
            return f"{body.names[r]} is no sum of exp(x - {body.names[m]}) times what is free of it"
        scaled[r] = m, found.exponential
    extra = [body.values[r].args[0] for r in parts if body.values[r].op.startswith("reduce_arg")]
    if extra:
        return "argmax and argmin are not cut into parts"
    b = BodyBuilder()
    made: dict[int, int] = {}
    first = len(spec.inputs)
    for at, value in enumerate(body.values):
        if at in parts:
            own = b.input(first + parts.index(at), value.dtype)
            if at in scaled:
                m, exponential = scaled[at]
                old = b.input(first + parts.index(m), body.values[m].dtype)
                shift = b.op(exponential, b.op("sub", old, made[m]))
                own = b.op("mul", own, b.cast(shift, value.dtype))
            made[at] = b.reduce(_COMBINE[value.op.removeprefix("reduce_")], own)
        elif at in values.row:
            made[at] = b.add(Value(value.op, (), value.dtype, value.attr), [made[a] for a in value.args])
    return parts, b.build([made[v] for v in body.outputs]).canonical()
