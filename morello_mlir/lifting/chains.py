"""Chains among lifted goals: calls of private functions around one `morello.spec` or nest each, of which every one
consumes what the one before made, in memory of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from mlir import ir
from mlir.dialects import func

from morello_mlir.chains import ChainSpec, Stage
from morello_mlir.chains.masks import Mask, mask_made_by
from morello_mlir.chains.refine import as_stage
from morello_mlir.dialect import NestOp, SpecOp, build_chain_op, is_nest, is_spec
from morello_mlir.errors import SpecError
from morello_mlir.nests import NestSpec
from morello_mlir.spec import Spec

from .aliases import VIEWS, Aliases, nested_ops
from .private import in_bytes, plus, private_function, strided_view

#: Ops between the members of a chain that touch no memory.
_HARMLESS = ("arith.", "memref.alloc", "memref.dealloc", "memref.get_global")
#: Ops beside the goal in a function around one.
_PLUMBING = (
    "memref.reinterpret_cast",
    "builtin.unrealized_conversion_cast",
    "arith.constant",
    "arith.addi",
    "func.return",
)


@dataclass(frozen=True)
class Place:
    """Where an operand of a goal is: a rank-0 base and an offset, values at the call. start: elements beyond it."""

    base: Any
    offset: Any
    start: int


@dataclass(frozen=True)
class Member:
    """A call of a function around one goal. places, kinds: of its operands, the output last, and their memref types in
    the function."""

    call: Any
    goal: Spec | NestSpec
    places: tuple[Place, ...]
    kinds: tuple[Any, ...]

    @property
    def out(self) -> Place:
        return self.places[-1]


@dataclass(frozen=True)
class Chain:
    """members, in order; spec: what they make; operands: (place, sizes, strides) of x0, x1, ... and the output."""

    members: tuple[Member, ...]
    spec: ChainSpec
    operands: tuple[tuple[Place, tuple[int, ...], tuple[int, ...]], ...]


class Chains:
    """Finds and builds the chains of one module."""

    def __init__(self, module: Any):
        self.module = module
        self.aliases = Aliases(module)
        self._functions = {
            ir.StringAttr(op.attributes["sym_name"]).value: op
            for op in (o.operation for o in module.regions[0].blocks[0].operations)
            if op.name == "func.func"
        }
        self._used: set[Any] = set()
        self._made: dict[Any, str] = {}
        self._replaced: set[str] = set()

    # ------------------------------------------------------------ finding

    def find(self) -> Iterator[Chain]:
        """Every chain, none of which shares a call with another."""
        members = [m for op in nested_ops(self.module) if op.name == "func.call" for m in self._member(op)]
        by_call = {m.call: m for m in members}
        for member in members:
            if isinstance(member.goal, Spec) and member.call not in self._used:
                chain = self._longest(self._grown(member, by_call))
                if chain is not None:
                    self._used.update(m.call for m in chain.members)
                    yield chain

    def _member(self, call: Any) -> list[Member]:
        """The member that a call is, if it is one."""
        function = self._functions.get(ir.FlatSymbolRefAttr(call.attributes["callee"]).value)
        if function is None or len(function.regions[0].blocks) != 1:
            return []
        block = function.regions[0].blocks[0]
        goals = [o.operation for o in block.operations if is_spec(o.operation.name) or is_nest(o.operation.name)]
        rest = [o.operation for o in block.operations if o.operation not in goals]
        if len(goals) != 1 or any(o.name not in _PLUMBING for o in rest) or "schedule" in goals[0].attributes:
            return []
        try:
            view = NestOp(goals[0]) if is_nest(goals[0].name) else SpecOp(goals[0])
            places = tuple(_place(value, call) for value in view.operands)
            goal = view.spec
        except (SpecError, _Unknown):
            return []
        if isinstance(goal, Spec) and (goal.function != "Matmul" or any(t.const or t.window for t in goal.operands)):
            return []
        if isinstance(goal, NestSpec) and (
            len(goal.body.outputs) != 1 or any(o.borders or o.axes for o in goal.operands)
        ):
            return []
        order = list(range(len(places)))
        if isinstance(goal, Spec):
            order = [0, 1, *order[3:], 2]
        return [Member(call, goal, tuple(places[i] for i in order), tuple(view.operands[i].type for i in order))]

    def _grown(self, first: Member, by_call: dict[Any, Member]) -> list[Member]:
        """The members that follow `first`, each the only user of what the one before made."""
        found = [first]
        while True:
            last = found[-1]
            alloc = _alloc(last.out.base)
            calls = None if alloc is None else _users(alloc)
            if calls is None or last.out.offset is not None or last.out.start:
                return found
            nexts = [c for c in calls if c not in [m.call for m in found]]
            if len(nexts) != 1 or nexts[0] not in by_call or nexts[0].block != first.call.block:
                return found
            member, made = by_call[nexts[0]], _bases(alloc)
            # A stage streams what the one before made, once: no second operand is that too.
            if member.call in self._used or sum(p.base in made for p in member.places[:-1]) != 1:
                return found
            found.append(member)

    def _longest(self, members: list[Member]) -> Chain | None:
        """The longest chain of the first of `members` that ends with a contraction."""
        while len(members) > 1:
            if isinstance(members[-1].goal, Spec):
                chain = self._chain(members)
                if chain is not None and self._may_gather(chain):
                    return chain
            members = members[:-1]
        return None

    def _chain(self, members: list[Member]) -> Chain | None:
        stages: list[Stage] = []
        operands: list[Any] = []
        made: list[Any] = []
        shape: tuple[int, int, int] | None = None
        for at, member in enumerate(members):
            goal: Spec | NestSpec | None = member.goal
            source = None if at == 0 else next(i for i, p in enumerate(member.places) if p.base in _bases(made[-1]))
            if isinstance(goal, NestSpec):
                assert shape is not None and source is not None
                goal = as_stage(goal, shape, source)
                if goal is None:
                    return None
                goal = replace(goal, operands=tuple(replace(o, alias=None) for o in goal.operands))
            else:
                assert goal is not None
                goal = _plain(goal)
            reads = []
            for i in range(len(member.places) - 1):
                if i == source:
                    reads.append(f"t{at - 1}")
                    continue
                reads.append(f"x{len(operands)}")
                operands.append(_shaped(member, goal, i))
            try:
                stage = Stage(goal, tuple(reads))
                shape = stage.shape
            except ValueError:
                return None
            stages.append(stage)
            made.append(_alloc(member.out.base))
        operands.append(_shaped(members[-1], stages[-1].goal, len(members[-1].places) - 1))
        threads = max(1 if m.goal.serial else m.goal.threads for m in members)
        try:
            spec = ChainSpec(tuple(stages), threads == 1, 0 if threads == 1 else threads)
        except SpecError:
            return None
        spec = self._with_mask(members, spec)
        return Chain(tuple(members), spec, tuple(operands))

    def _with_mask(self, members: list[Member], spec: ChainSpec) -> ChainSpec:
        """`spec` with what is known of a mask of its softmax, if the nest that makes it shows something."""
        softmax, columns = spec.stages[1], spec.stages[0].shape[2]
        for i, name in enumerate(softmax.reads):
            if len(members) < 3 or not name.startswith("x") or not isinstance(softmax.goal, NestSpec):
                continue
            # Read as it was written: of one that is transposed the rows hide something else.
            as_written = softmax.goal.operands[i].strides[-2:] == (columns, 1)
            writer = self._only_writer(members[1], i) if as_written else None
            found = writer and mask_made_by(writer, spec.dims[1], columns)
            if found:
                try:
                    return replace(spec, mask=Mask(name, *found))
                except SpecError:
                    continue
        return spec

    def _only_writer(self, member: Member, i: int) -> NestSpec | None:
        """The nest that alone writes to the memory of an input, all of it, before the member runs."""
        place = member.places[i]
        alloc = _alloc(place.base)
        calls = _users(alloc) if alloc is not None and place.offset is None and not place.start else None
        if calls is None:
            return None
        known = [self._member(call) for call in calls]
        bases = _bases(alloc)
        writers = [m for each in known for m in each if m.out.base in bases]
        if not all(known) or len(writers) != 1 or writers[0].call.block != member.call.block:
            return None
        (writer,) = writers
        ops = [o.operation for o in member.call.block.operations]
        whole = writer.out.offset is None and not writer.out.start
        if not whole or ops.index(writer.call) > ops.index(member.call) or not isinstance(writer.goal, NestSpec):
            return None
        return writer.goal

    def _may_gather(self, chain: Chain) -> bool:
        """Whether the members may all run where the last one does, and none but itself overlaps the output."""
        last = chain.members[-1]
        inputs = [place.base for place, _, _ in chain.operands[:-1]]
        if any(self.aliases.may_overlap(base, last.out.base) for base in inputs):
            return False
        calls = [m.call for m in chain.members]
        ops = [o.operation for o in calls[0].block.operations]
        read: list[Any] = []
        for op in ops[ops.index(calls[0]) : ops.index(calls[-1])]:
            if op in calls:
                read += [place.base for place in chain.members[calls.index(op)].places[:-1]]
                continue
            if op.name in VIEWS or op.name.startswith(_HARMLESS):
                continue
            # What only later members read may be written: as before, they run after it.
            written = self._written(op)
            if written is None or any(self.aliases.may_overlap(w, base) for w in written for base in read):
                return False
        return True

    def _written(self, op: Any) -> list[Any] | None:
        """The memrefs that `op` may write to; None where that is not known."""
        if len(op.regions) or op.name != "func.call":
            return None
        known = self._member(op)
        memrefs = [o for o in op.operands if isinstance(o.type, ir.MemRefType)]
        return [known[0].out.base] if known else memrefs

    # ------------------------------------------------------------ building

    def build(self, chain: Chain) -> None:
        """Puts a call of one function in the place of the members."""
        last = chain.members[-1].call
        bases = list(dict.fromkeys(place.base for place, _, _ in chain.operands))
        offsets = [place.offset for place, _, _ in chain.operands if place.offset is not None]
        shape = tuple((bases.index(p.base), p.offset is not None, p.start, z, s) for p, z, s in chain.operands)
        key = (chain.spec, shape, tuple(str(b.type) for b in bases))
        if key not in self._made:
            self._made[key] = self._unused_name()
            with last.location, ir.InsertionPoint(self.module.regions[0].blocks[0]):
                _function(self._made[key], chain, [b.type for b in bases], shape)
        with last.location, ir.InsertionPoint(last):
            func.CallOp([], self._made[key], [*bases, *offsets])
        self._move_deallocs(chain)
        allocs = [_alloc(m.out.base) for m in chain.members[:-1]]
        for member in chain.members:
            self._replaced.add(ir.FlatSymbolRefAttr(member.call.attributes["callee"]).value)
            member.call.erase()
        for alloc in dict.fromkeys(a for a in allocs if a is not None):
            _erase(alloc)

    def erase_unused(self) -> None:
        """Erases the functions around single goals that nothing calls any more."""
        key = {"func.call": "callee", "func.constant": "value"}
        ops = [op for op in nested_ops(self.module) if op.name in key]
        used = {ir.FlatSymbolRefAttr(op.attributes[key[op.name]]).value for op in ops}
        for name in sorted(self._replaced - used):
            self._functions[name].erase()

    def _move_deallocs(self, chain: Chain) -> None:
        """What is freed between the members is still read by the last."""
        first, last = chain.members[0].call, chain.members[-1].call
        ops = [o.operation for o in first.block.operations]
        for op in ops[ops.index(first) : ops.index(last)]:
            if op.name == "memref.dealloc":
                op.move_after(last)

    def _unused_name(self) -> str:
        count = 0
        while f"morello_chain_{count}" in self._functions:
            count += 1
        name = f"morello_chain_{count}"
        self._functions[name] = None
        return name


class _Unknown(Exception):
    """An operand of a goal that is not a plain view of an argument."""


def _place(value: Any, call: Any) -> Place:
    """Where an operand of the goal in a called function is. Raises _Unknown."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.operation.name != "memref.reinterpret_cast":
        raise _Unknown
    cast = owner.operation
    source = cast.operands[0]
    if not isinstance(source.owner, ir.Block) and source.owner.operation.name == "builtin.unrealized_conversion_cast":
        source = source.owner.operation.operands[0]
    if not isinstance(source.owner, ir.Block):
        raise _Unknown
    base = call.operands[ir.BlockArgument(source).arg_number]
    if len(cast.operands) == 1:
        _, offset = value.type.get_strides_and_offset()
        return Place(base, None, offset)
    if len(cast.operands) > 2:
        raise _Unknown
    offset, start = cast.operands[1], 0
    if not isinstance(offset.owner, ir.Block):
        add = offset.owner.operation
        more = None if add.name != "arith.addi" else add.operands[1].owner
        if more is None or isinstance(more, ir.Block) or more.operation.name != "arith.constant":
            raise _Unknown
        start = ir.IntegerAttr(more.operation.attributes["value"]).value
        offset = add.operands[0]
        if not isinstance(offset.owner, ir.Block):
            raise _Unknown
    return Place(base, call.operands[ir.BlockArgument(offset).arg_number], start)


def _alloc(base: Any) -> Any:
    """The `memref.alloc` whose start a rank-0 base is; None where it is something else."""
    value = base
    while not isinstance(value.owner, ir.Block):
        op = value.owner.operation
        if op.name == "memref.alloc":
            return op
        if op.name not in VIEWS or op.name in ("memref.subview", "memref.reinterpret_cast"):
            return None
        value = op.operands[0]
    return None


def _users(alloc: Any) -> list[Any] | None:
    """The calls that use an allocation; None where something else does, which is more than freeing it."""
    found, todo = [], list(alloc.results)
    while todo:
        for use in todo.pop().uses:
            op = use.owner.operation
            if op.name in VIEWS:
                todo += [r for r in op.results if isinstance(r.type, ir.MemRefType)]
            elif op.name == "func.call":
                if op not in found:
                    found.append(op)
            elif op.name != "memref.dealloc":
                return None
    return found


def _bases(alloc: Any) -> list[Any]:
    """All rank-0 bases of an allocation, and views."""
    found, todo = [], list(alloc.results)
    while todo:
        value = todo.pop()
        found.append(value)
        for use in value.uses:
            if use.owner.operation.name in VIEWS:
                todo += [r for r in use.owner.operation.results if isinstance(r.type, ir.MemRefType)]
    return found


def _erase(alloc: Any) -> None:
    """Erases an allocation that only views of it, and what frees it, still use."""
    for result in alloc.results:
        for use in list(result.uses):
            _erase_view(use.owner.operation)
    alloc.erase()


def _erase_view(op: Any) -> None:
    for result in op.results:
        for use in list(result.uses):
            _erase_view(use.owner.operation)
    op.erase()


def _plain(goal: Spec) -> Spec:
    """A contraction as a stage: its threads are the chain's."""
    return replace(goal, serial=True, threads=0).canonical()


def _shaped(member: Member, goal: Spec | NestSpec, i: int) -> tuple[Place, tuple[int, ...], tuple[int, ...]]:
    """An operand with the dims of a stage."""
    if isinstance(goal, NestSpec):
        return member.places[i], goal.dims, goal.operands[i].strides
    strides, _ = member.kinds[i].get_strides_and_offset()
    return member.places[i], tuple(member.kinds[i].shape), tuple(strides)


def _function(name: str, chain: Chain, types: list[Any], shape: Any) -> None:
    shifted = [has_offset for _, has_offset, *_ in shape]
    with private_function(name, [t.element_type for t in types], shifted) as (given, offsets):
        bases = [in_bytes(base) for base in given]
        views = [
            strided_view(bases[base], plus(offset, start), sizes, strides)
            for offset, (base, _, start, sizes, strides) in zip(offsets, shape, strict=True)
        ]
        build_chain_op(chain.spec, views)
