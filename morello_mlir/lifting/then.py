"""The elementwise ops around a contraction that its Spec can do to the sums: those that follow it, and one that
initialises its output.

Values are followed by the buffers that they are in: a tensor is a dense buffer of its own, of which reshapes are views.
An op belongs to the chain where its loops are the axes of the contraction's output, split or merged. Other operands
become operands of the Spec.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mlir import ir

from morello_mlir.nests.body import Body, BodyBuilder
from morello_mlir.spec import accumulator

from .axes import Axis, Steps, refine
from .contraction import Contraction, dims_of, indexing_maps, is_structured, operands_of
from .outcome import NotLifted
from .views import view_of

#: A chain has no more ops, and the Spec no more operands of them.
MOST_OPS = 32
MOST_EXTRAS = 16
_VIEWS = ("tensor.expand_shape", "tensor.collapse_shape")
_PURE = ("arith.", "math.", "linalg.yield")


@dataclass(frozen=True)
class Chain:
    """What one Spec does beside the contraction.

    axes: of the output, with strides named 0 and 1 in the contraction's inputs, OUT in the output, ("x", i) in extra i.
    body: x0 is the sum. extras: the values that x1, x2, ... are read from. out: where results go. members: the ops
    that are part of it, in order. accumulates: the sum goes on from what is in `out`.
    """

    axes: tuple[Axis, ...]
    body: Body
    sums: str
    extras: tuple[Any, ...]
    out: Any
    members: tuple[Any, ...]
    accumulates: bool = False


OUT = "out"


@dataclass(frozen=True)
class Growth:
    """A chain while it grows. known: by buffer, the body's value that it holds now and where in the buffer that starts;
    axes: strides in these are named by the buffers. reads: the extras, each with the member that reads it first. out:
    what was written last."""

    b: BodyBuilder
    sums: str
    axes: tuple[Axis, ...]
    known: dict[Hashable, tuple[int, Any]]
    reads: tuple[tuple[Any, Any], ...] = ()
    members: tuple[Any, ...] = ()
    out: Any = None

    @staticmethod
    def start(contraction: Contraction, out: Any) -> Growth:
        """The sums of `contraction`, in `out`."""
        dtypes = contraction.dtypes
        sums = accumulator(dtypes[:2], dtypes[2]) or dtypes[2]
        b = BodyBuilder()
        axes = []
        for loop in contraction.loops:
            if loop.role != "k":
                strides = {0: loop.strides[0] or 0, 1: loop.strides[1] or 0, origin(out): loop.strides[2] or 0}
                axes.append(Axis(loop.size, loop.role, strides))
        known = {origin(out): (b.cast(b.input(0, sums), dtypes[2]), _offset(out))}
        return Growth(b, sums, tuple(axes), known, out=out)

    def from_previous(self, op: Any) -> Growth:
        """The same where what the contraction `op` adds to is an operand: the results go elsewhere."""
        ((total, offset),) = self.known.values()
        b, target = self.b, origin(self.out)
        before = b.input(1, b.dtype(total))
        total = b.cast(b.op("add", b.input(0, self.sums), b.cast(before, self.sums)), b.dtype(total))
        axes = [replace(a, strides={**a.strides, ("x", 0): a.along(target)}) for a in self.axes]
        return replace(self, axes=tuple(axes), known={target: (total, offset)}, reads=((self.out, op),))

    def reads_known(self, op: Any) -> bool:
        return any(origin(v) in self.known for v in op.operands)

    def after(self, op: Any) -> Growth:
        """With the elementwise `op`, which reads what is known. Raises NotLifted where that cannot be."""
        facts = Elementwise.of(op)
        anchor = next((i for i, v in enumerate(facts.read) if v is not None and origin(v) in self.known), None)
        if anchor is None:
            raise NotLifted("it reads no sums")
        pairs = refine(self.axes, origin(facts.read[anchor]), facts.loops, anchor)
        return self._with(facts, pairs)

    def before(self, op: Any) -> Growth:
        """With the elementwise `op` that initialises the output of the contraction: it reads no sums."""
        facts = Elementwise.of(op)
        if facts.reads_out or self.members:
            raise NotLifted("it reads what it overwrites")
        pairs = refine(self.axes, origin(self.out), facts.loops, facts.output)
        ((_, offset),) = self.known.values()
        grown = replace(self, known={})._with(facts, pairs)
        ((init, start),) = grown.known.values()
        if start != offset:
            raise NotLifted("it initialises something else")
        b = self.b
        total = b.op("add", b.input(0, self.sums), b.cast(init, self.sums))
        return replace(grown, known={origin(self.out): (b.cast(total, b.dtype(init)), offset)}, out=self.out)

    def _with(self, facts: Elementwise, pairs: Sequence[tuple[Axis, Steps]]) -> Growth:
        axes = [axis for axis, _ in pairs]
        reads, values = list(self.reads), dict[Any, int]()
        for i, (argument, value) in enumerate(zip(facts.block.arguments, facts.read, strict=True)):
            if value is None:
                continue
            strides = [steps.strides[i] for _, steps in pairs]
            if origin(value) in self.known:
                number, offset = self.known[origin(value)]
                if strides != [axis.along(origin(value)) for axis in axes] or _offset(value) != offset:
                    raise NotLifted("it reads the sums in another order")
                values[argument] = number
            else:
                number = _number(reads, value, strides, axes)
                if number == len(reads):
                    reads.append((value, facts.op))
                    named = zip(axes, strides, strict=True)
                    axes = [replace(a, strides={**a.strides, ("x", number): s}) for a, s in named]
                values[argument] = self.b.input(1 + number, str(value.type.element_type))
        if len(reads) > MOST_EXTRAS:
            raise NotLifted(f"it has more than {MOST_EXTRAS} operands")
        result = _translate(self.b, facts, values)
        to = [steps.strides[facts.output] for _, steps in pairs]
        if 0 in to:
            raise NotLifted("its output has no place for every element")
        target = origin(facts.out)
        self._check_place(target, facts.out, [(a, s) for a, s in zip(axes, to, strict=True) if a.size != 1])
        axes = [replace(a, strides={**a.strides, target: s}) for a, s in zip(axes, to, strict=True)]
        known = {**self.known, target: (result, _offset(facts.out))}
        return replace(
            self,
            axes=tuple(axes),
            known=known,
            reads=tuple(reads),
            members=(*self.members, facts.op),
            out=facts.out,
        )

    def _check_place(self, target: Any, out: Any, strides: Sequence[tuple[Axis, int]]) -> None:
        """Raises NotLifted where a buffer holds something already that writing `out` leaves in it: of two results in
        two parts of a buffer, as a concatenation has them, a chain knows one."""
        if target not in self.known:
            return
        _, offset = self.known[target]
        if _offset(out) != offset or any(axis.along(target) != stride for axis, stride in strides):
            raise NotLifted("it writes beside a result in the same buffer")

    def chain(self, accumulates: bool) -> Chain:
        """The chain as it is: what was written last is what is left of it."""
        target = origin(self.out)
        kept = [0, 1, *(("x", i) for i in range(len(self.reads)))]
        axes = []
        for axis in self.axes:
            strides = {name: axis.along(name) for name in kept}
            axes.append(replace(axis, strides={**strides, OUT: axis.along(target)}))
        body = self.b.only([self.known[target][0]]).canonical()
        extras = tuple(value for value, _ in self.reads)
        return Chain(tuple(axes), body, self.sums, extras, self.out, self.members, accumulates)


def _number(reads: Sequence[tuple[Any, Any]], value: Any, strides: Sequence[int], axes: Sequence[Axis]) -> int:
    """The number of the extra that is `value` read that way; that of a new one where there is none."""
    for i, (other, _) in enumerate(reads):
        if other == value and list(strides) == [axis.along(("x", i)) for axis in axes]:
            return i
    return len(reads)


def _translate(b: BodyBuilder, facts: Elementwise, values: dict[Any, int]) -> int:
    from .nests.scalars import Scalars

    def position(loop: int) -> int:
        raise NotLifted("its body depends on the position")

    scalars = Scalars(b, values, position)
    for argument, scalar in facts.scalars:
        values[argument] = scalars.value(scalar)
    return scalars.value(facts.yielded)


def origin(value: Any) -> Any:
    """The buffer that a value is in: what it is a view of."""
    from .aliases import VIEWS

    while not isinstance(value.owner, ir.Block) and value.owner.operation.name in (*_VIEWS, *VIEWS):
        value = value.owner.operation.operands[0]
    return value


def _offset(value: Any) -> Any:
    """Where a value starts in its buffer: a number, or the value itself where only run time knows."""
    if isinstance(value.type, ir.RankedTensorType):
        return 0
    offset = view_of(value.type, "").offset
    return value if offset is None else offset


@dataclass(frozen=True)
class Elementwise:
    """An op that computes each element of its one output from one element of each input.

    read: by argument of the body, the tensor or memref that it is an element of; None where it is none, or not used.
    loops: with strides by operand; output: the number of the output among these. scalars: other arguments.
    """

    op: Any
    read: tuple[Any, ...]
    out: Any
    loops: tuple[Steps, ...]
    output: int
    reads_out: bool
    scalars: tuple[tuple[Any, Any], ...]

    @property
    def block(self) -> Any:
        return self.op.regions[0].blocks[0]

    @property
    def yielded(self) -> Any:
        return list(self.block.operations)[-1].operation.operands[0]

    @staticmethod
    def of(op: Any) -> Elementwise:
        """Raises NotLifted with the reason where `op` is no such op."""
        if not is_structured(op):
            raise NotLifted("it is no linalg op with a body")
        inputs, outputs = operands_of(op)
        if len(outputs) != 1:
            raise NotLifted("it has several outputs")
        block = op.regions[0].blocks[0]
        if any(not o.operation.name.startswith(_PURE) or len(o.operation.regions) for o in block.operations):
            raise NotLifted("its body does more than compute")
        operands = [*inputs, *outputs]
        maps = [dims_of(m, "an operand") for m in indexing_maps(op)]
        views = [view_of(v.type, "an operand") if isinstance(v.type, ir.ShapedType) else None for v in operands]
        loops = []
        for d in range(indexing_maps(op)[0].n_dims):
            places = [m.index(d) if d in m else None for m in maps]
            sizes = [v.sizes[at] for v, at in zip(views, places, strict=True) if v is not None and at is not None]
            strides = [0 if v is None or at is None else v.strides[at] for v, at in zip(views, places, strict=True)]
            if not sizes or (places[-1] is None and sizes[0] != 1):
                raise NotLifted("it reduces")
            loops.append(Steps(sizes[0], tuple(strides)))
        out = op.results[0] if len(op.results) else outputs[0]
        used = [bool(len(list(a.uses))) for a in block.arguments]
        read = [v if u and isinstance(v.type, ir.ShapedType) else None for v, u in zip(operands, used, strict=True)]
        scalars = [
            (a, v)
            for a, v, u in zip(block.arguments, operands, used, strict=True)
            if u and not isinstance(v.type, ir.ShapedType)
        ]
        return Elementwise(op, tuple(read), out, tuple(loops), len(inputs), used[-1], tuple(scalars))
