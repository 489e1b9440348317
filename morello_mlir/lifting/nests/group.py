"""Which linalg ops make up one nest: from a root, producers are taken in for as long as one iteration space serves.

The root's loops are the space. A producer is evaluated where it is read: its loops are replaced by the indices there.
One that reduces must do so at every row of the space, once; the dims that it is not indexed by are then the scan dims
of the nest, and all reductions run over them. What is decided late (dims that must be two, dims that are scanned, ops
that are better left out) starts the building again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mlir import ir

from morello_mlir.nests import BodyBuilder

from ..outcome import NotLifted
from ..positions import is_between_products
from ..tables import number_of
from .combine import Reductions
from .index import Index, NotLinear, Split, covers, delinearize, dims_of, linearize, points
from .price import is_cheap, is_mask, is_transposed
from .scalars import Scalars, constant, dtype_of
from .space import Nest, Read, Space, Written
from .structured import VIEWS, Structured
from .tables import Tables, indices_of, narrowed, renumbered

#: A nest has no more ops than this.
MOST_OPS = 64
#: And no more operands than this.
MOST_OPERANDS = 16


class _Restart(Exception):
    """The nest must be built again in another space. op: what it got scan dims for, if so."""

    def __init__(self, space: Space, op: Any = None):
        super().__init__("restart")
        self.space, self.op = space, op


class _LeaveOut(Exception):
    """The nest must be built again without an op."""

    def __init__(self, op: Any):
        super().__init__("leave out")
        self.op = op


@dataclass
class Surroundings:
    """What decides whether a producer can be taken in. facts: what is known of an op, None where it can be in no nest;
    start: the constant that a memref holds as a reduction starts, an attribute or None; blocks: whether one of the ops
    that make up a nest needs what others make of a result of `op`, another."""

    facts: Callable[[Any], Structured | None]
    start: Callable[[Any], Any] = lambda value: None
    blocks: Callable[[Any, set[Any]], bool] = lambda op, members: False


def build(root: Structured, around: Surroundings) -> Nest:
    """The largest nest with that root. Raises NotLifted where the root alone is none."""
    for most in (MOST_OPS, MOST_OPS // 4, 1):
        nest = _build(root, around, most)
        if len(nest.inputs) + len(nest.outputs) <= MOST_OPERANDS:
            return nest
    raise NotLifted(f"it has more than {MOST_OPERANDS} operands")


def _build(root: Structured, around: Surroundings, most: int) -> Nest:
    """The same of at most so many ops."""
    space, left_out, scanning = Space.of(root), set[Any](), None
    while True:
        builder = _Builder(root, space, around, left_out, most)
        try:
            nest = builder.build()
            repeated = nest.repeated_reduction
            if repeated is None and (scanning is None or scanning in nest.members or scanning in nest.copies):
                return nest
            # The dims that were scanned for it must go again; without such, what is written there.
            left_out.add(scanning if scanning is not None else repeated)
        except _Restart as restart:
            space, scanning = restart.space, restart.op or scanning
            continue
        except _LeaveOut as op:
            if op.op == root.op:
                raise NotLifted("its results cannot be written") from None
            left_out.add(op.op)
        space, scanning = Space.of(root), None


@dataclass
class _Builder:
    root: Structured
    space: Space
    around: Surroundings
    left_out: set[Any]
    most: int
    b: BodyBuilder = field(default_factory=BodyBuilder)
    reads: list[Read] = field(default_factory=list)
    tables: Tables = field(default_factory=Tables)
    _numbers: dict[Any, int] = field(default_factory=dict)
    _values: dict[Any, int] = field(default_factory=dict)
    #: Results that have been evaluated, by op: number, loops, value.
    _members: dict[Any, list[tuple[int, tuple[Index, ...], int]]] = field(default_factory=dict)

    def build(self) -> Nest:
        root = self.root
        on_tensors = len(root.op.results) > 0
        for r in range(len(root.outputs)):
            if not on_tensors or any(True for _ in root.op.results[r].uses):
                self._evaluate(root, self.space.root, r)
        if not self._members:
            raise NotLifted("nothing uses its results")
        if (made := self.tables.made_in(self._members)) is not None:
            raise _LeaveOut(made)
        members, outputs, copies = self._settle()
        body = self.b.only([v for _, v in outputs]).canonical()
        if self.space.scanned and not body.reductions:
            raise NotLifted("what it reduces comes to a constant")
        used = sorted(body.inputs)
        number = {k: i for i, k in enumerate(used)}
        return Nest(
            self.space,
            renumbered(body, number),
            tuple(self.reads[k] for k in used),
            tuple(w for w, _ in outputs),
            tuple(members),
            tuple(copies),
        )

    # ------------------------------------------------------------ what is written

    def _settle(self) -> tuple[list[Any], list[tuple[Written, int]], list[Any]]:
        """(members, outputs with their values, copies): what is used outside becomes an output, is computed twice, or
        is left out."""
        members = list(self._members)
        if not len(self.root.op.results):
            return members, [self._output(self.root, r, loops, v) for r, loops, v in self._members[self.root.op]], []
        copies: list[Any] = []
        changed = True
        while changed:
            changed = False
            for op in members:
                if op != self.root.op and op not in copies and self._needs_copy(op, members, copies):
                    copies.append(op)
                    changed = True
        kept = self._with_idle([op for op in members if op not in copies])
        outputs = []
        for op in kept:
            outputs += [self._whole(op, r) for r in _used_outside(op, kept)]
        for op in reversed(kept):
            if op != self.root.op and _used_anywhere(op, kept) and self.around.blocks(op, set(kept)):
                raise _LeaveOut(op)
        return kept, outputs, copies

    def _whole(self, op: Any, r: int) -> tuple[Written, int]:
        """Result r of a member as an output. Raises _LeaveOut where the nest does not meet all of it, each element
        once."""
        facts = self.around.facts(op)
        assert facts is not None
        for loops in dict.fromkeys(loops for _, loops, _ in self._members[op]):
            indices = _at(facts, r, loops)
            dims = dims_of(indices)
            whole = dims == frozenset(range(len(self.space.sizes))) or dims == self.space.parallel
            if whole and covers(indices, op.results[r].type.shape, self.space.sizes):
                try:
                    return self._output(facts, r, loops, self._evaluate(facts, loops, r))
                except NotLifted:
                    break
        raise _LeaveOut(op)

    def _output(self, op: Structured, r: int, loops: Sequence[Index], value: int) -> tuple[Written, int]:
        """Raises NotLifted where memory cannot hold it."""
        _stored_dtype(op.outputs[r])
        return Written(op.op, r, _at(op, r, loops)), self._stored(value)

    def _with_idle(self, members: list[Any]) -> list[Any]:
        """`members`, and the ops that only they use, though nothing depends on that: what results that nobody uses
        start from, for one."""
        found = list(members)
        needed = {value for value, _ in self._numbers}
        for op in found:
            for value in op.operands:
                owner = None if isinstance(value.owner, ir.Block) else value.owner.operation
                if owner is None or owner in found or owner.block != self.root.op.block:
                    continue
                if not needed.isdisjoint(owner.results) or _used_anywhere(owner, found):
                    continue
                if self.around.facts(owner) is not None:
                    found.append(owner)
        return found

    def _needs_copy(self, op: Any, members: list[Any], copies: list[Any]) -> bool:
        """Whether others use an op that costs next to nothing."""
        kept = [m for m in members if m not in copies]
        return _used_anywhere(op, kept) and is_cheap(self.around.facts(op))

    def _stored(self, value: int) -> int:
        """A value as memory holds it: i1 in bytes."""
        if self.b.dtype(value) != "i1":
            return value
        return self.b.op("select", value, self.b.const(1, "i8"), self.b.const(0, "i8"))

    # ------------------------------------------------------------ evaluation

    def _evaluate(self, op: Structured, loops: Sequence[Index], r: int) -> int:
        """Result r of `op` at an iteration of its loops."""
        key = (op.op, tuple(loops), r)
        if key in self._values:
            return self._values[key]
        if op.op not in self._members and len(self._members) >= self.most:
            raise NotLifted("the nest has too many ops")
        scalars = Scalars(self.b, {}, lambda d: self._position(loops[d]))
        lazy = _Arguments(self, op, loops, scalars)
        for d in op.reduced:
            if not self.space.scan or not loops[d].dims:
                raise NotLifted("its reduction has no dims to run over")
        if op.reduced:
            value = Reductions(op, lazy, lambda n: self._start(op, loops, n)).result(r)
        else:
            value = lazy.value(op.yielded[r])
        self._members.setdefault(op.op, []).append((r, tuple(loops), value))
        self._values[key] = value
        return value

    def _start(self, op: Structured, loops: Sequence[Index], r: int) -> int:
        """What result r of a reducing op starts from."""
        operand = op.input_count + r
        known = self.around.start(op.outputs[r])
        if known is not None:
            return constant(self.b, known)
        return self.read(op, operand, loops)

    def _position(self, index: Index) -> int:
        """The number of an iteration, an i64."""
        b = self.b
        total = None
        for d, c in index.terms:
            term = b.index(d, "i64")
            term = term if c == 1 else b.op("mul", term, b.const(c, "i64"))
            total = term if total is None else b.op("add", total, term)
        base = b.const(index.base, "i64")
        if total is None:
            return base
        return b.op("add", total, base) if index.base else total

    # ------------------------------------------------------------ what is read

    def read(self, op: Structured, operand: int, loops: Sequence[Index]) -> int:
        """The element that an operand of `op` has at an iteration of its loops."""
        value = op.operands[operand]
        if not isinstance(value.type, ir.ShapedType):
            return Scalars(self.b, {}, lambda d: 0).value(value)
        indices = tuple(i.substitute(list(loops)) for i in op.maps[operand])
        if any(i.base < 0 or any(c < 0 for _, c in i.terms) for i in indices):
            raise NotLifted("an operand is read backwards")
        return self._element(value, indices, Read(op.op, operand, indices))

    def element(self, op: Structured, table: Any, places: Sequence[int]) -> int:
        """The element of a table of an op at `places`, values of the body."""
        indices = indices_of(self.b, places, table.type.shape, self.space.sizes)
        read = Read(op.op, number_of(op.op, table), indices)
        known = tuple(i for i in indices if i is not None)
        if len(known) == len(indices):
            return self._element(table, known, read)
        owner = None if isinstance(table.owner, ir.Block) else table.owner.operation
        if owner is not None and owner.name == "arith.constant" and _is_splat(owner.attributes["value"]):
            return constant(self.b, owner.attributes["value"])
        unknown = narrowed(self.b, [p for p, i in zip(places, indices, strict=True) if i is None])
        if self.b.only(unknown).reductions:
            # They would have to be complete before the pass that reads there.
            raise _LeaveOut(next(op for op in self._members if self._is_reduced(op)))
        dtype = _stored_dtype(table)
        number = self.tables.number(table, indices, unknown, len(self.reads))
        if number == len(self.reads):
            self.reads.append(read)
        return self._truth(self.b.gather(number, unknown, "i8" if dtype == "i1" else dtype), dtype)

    def _is_reduced(self, op: Any) -> bool:
        facts = self.around.facts(op)
        return facts is not None and bool(facts.reduced)

    def _element(self, value: Any, indices: tuple[Index, ...], read: Read) -> int:
        if not isinstance(value.owner, ir.Block):
            owner = value.owner.operation
            if owner.name in VIEWS and owner not in self.left_out:
                try:
                    return self._element(owner.operands[0], self._through(owner, indices), read)
                except NotLinear:
                    return self._input(value, indices, read)
            if owner.name == "arith.constant" and _is_splat(owner.attributes["value"]):
                return constant(self.b, owner.attributes["value"])
            if (inlined := self._inlined(value, owner, indices)) is not None:
                return inlined
        return self._input(value, indices, read)

    def _through(self, view: Any, indices: tuple[Index, ...]) -> tuple[Index, ...]:
        """The indices into the source of a reshape. Raises NotLinear."""
        groups = [_integers(g) for g in ir.ArrayAttr(view.attributes["reassociation"])]
        source, result = view.operands[0].type, view.results[0].type
        if not source.has_static_shape or not result.has_static_shape:
            raise NotLinear("dynamic sizes")
        out: list[Index] = []
        try:
            if view.name == "tensor.expand_shape":
                return tuple(linearize([indices[d] for d in g], [result.shape[d] for d in g]) for g in groups)
            if not groups:  # to a tensor of rank 0, from one of a single element
                return (Index(),) * source.rank
            for index, group in zip(indices, groups, strict=True):
                out += delinearize(index, [source.shape[d] for d in group], self.space.sizes)
        except Split as split:
            raise _Restart(self.space.split(split.dim, split.inner)) from None
        return tuple(out)

    def _input(self, value: Any, indices: tuple[Index, ...], read: Read) -> int:
        dtype = _stored_dtype(value)
        key = (value, indices)
        if key not in self._numbers:
            self._numbers[key] = len(self.reads)
            self.reads.append(read)
        return self._truth(self.b.input(self._numbers[key], "i8" if dtype == "i1" else dtype), dtype)

    def _truth(self, element: int, dtype: str) -> int:
        """An element that is read, which is an i8 for i1."""
        return element if dtype != "i1" else self.b.cmp("ne", element, self.b.const(0, "i8"))

    # ------------------------------------------------------------ producers

    def _inlined(self, value: Any, owner: Any, indices: tuple[Index, ...]) -> int | None:
        """The value where its op can be taken in, else None."""
        if owner in self.left_out or owner.block != self.root.op.block:
            return None
        op = self.around.facts(owner)
        if op is None:
            return None
        r = ir.OpResult(value).result_number
        before = {k: list(v) for k, v in self._members.items()}
        try:
            loops = self._loops(op, r, indices)
            self._check_price(op, indices)
            return self._evaluate(op, loops, r)
        except NotLifted:
            # What it has taken in goes with it; inputs that nothing reads are dropped in the end.
            self._members = before
            self._values = {k: v for k, v in self._values.items() if k[0] in before}
            return None

    def _loops(self, op: Structured, r: int, indices: tuple[Index, ...]) -> list[Index]:
        """The loops of a producer whose result r is read at `indices`. Raises NotLifted, _Restart."""
        loops = [Index() for _ in op.sizes]
        for own, index in zip(op.output_maps()[r], indices, strict=True):
            for d in own.dims:
                loops[d] = index
        if op.reduced:
            for d, index in zip(op.reduced, self._scan_of(op, indices), strict=True):
                loops[d] = index
        return loops

    def _scan_of(self, op: Structured, indices: tuple[Index, ...]) -> list[Index]:
        """The scan dims as the loops that `op` reduces."""
        dims, space = dims_of(indices), self.space
        shape = [op.sizes[d] for d in op.reduced]
        everything = frozenset(range(len(space.sizes)))
        if not covers(indices, op.op.results[0].type.shape, space.sizes):
            raise NotLifted("it reduces for rows that are read several times")
        rest = everything - dims
        if not space.scanned and not rest:
            raise _Restart(space.with_scan(shape), op.op)
        if space.scanned and dims != space.parallel:
            raise NotLifted("it reduces other rows")
        try:
            loops = bind(shape, sorted(rest), space.sizes)
        except Split as split:
            raise _Restart(space.split(split.dim, split.inner)) from None
        if not space.scanned:
            raise _Restart(space.scanning(rest), op.op)
        return loops

    def _check_price(self, op: Structured, indices: tuple[Index, ...]) -> None:
        """Raises NotLifted where it is better to store what the op computes than to compute it wherever it is read."""
        if op.reduced:
            return
        sizes, dims = self.space.sizes, dims_of(indices)
        if is_transposed(op) and self.space.scanned and dims_of(self.space.root) >= set(self.space.scanned):
            raise NotLifted("a transpose is read by several passes")
        every = range(len(sizes)) if dims.intersection(self.space.scanned) or not self.space.scanned else None
        times = points(every if every is not None else self.space.parallel, sizes)
        if self.space.scanned and is_mask(op):
            # Between products, always: tiles of chains know no positions.
            alone = times <= math.prod(op.op.results[0].type.shape)
            if not alone or is_between_products(self.root.op):
                raise NotLifted("a mask of positions is stored")
        if times > math.prod(op.op.results[0].type.shape) and not is_cheap(op):
            rest = frozenset(range(len(sizes))) - dims
            reduction = None if self.space.scanned else self._reduction_behind(op, points(rest, sizes))
            if reduction is not None:  # what it computes, it computes for a row
                raise _Restart(self.space.scanning(rest), reduction)
            raise NotLifted("it would be computed several times")

    def _reduction_behind(self, op: Structured, trips: int) -> Any:
        """The nearest op that reduces over so many elements, of those that `op` needs, itself excluded; or None."""
        todo, seen = [op], {op.op}
        while todo:
            here = todo.pop(0)
            for value in here.op.operands:
                while not isinstance(value.owner, ir.Block) and value.owner.operation.name in VIEWS:
                    value = value.owner.operation.operands[0]
                owner = None if isinstance(value.owner, ir.Block) else value.owner.operation
                if owner is None or owner in seen or owner in self.left_out or owner.block != self.root.op.block:
                    continue
                seen.add(owner)
                facts = self.around.facts(owner)
                if facts is not None and facts.reduced:
                    if math.prod(facts.sizes[d] for d in facts.reduced) == trips:
                        return owner
                elif facts is not None:
                    todo.append(facts)
        return None


class _Arguments(Scalars):
    """The scalars of one iteration of an op: arguments of its body are elements of operands."""

    def __init__(self, builder: _Builder, op: Structured, loops: Sequence[Index], scalars: Scalars):
        super().__init__(builder.b, {}, scalars._loop)
        self._builder, self._op, self._loops = builder, op, loops

    def element(self, op: Any, places: Sequence[int]) -> int:
        return self._builder.element(self._op, op.operands[0], places)

    def leaf(self, v: Any) -> int | None:
        if isinstance(v.owner, ir.Block) and v.owner == self._op.block:
            return self._builder.read(self._op, ir.BlockArgument(v).arg_number, self._loops)
        return None


def bind(shape: Sequence[int], dims: Sequence[int], sizes: Sequence[int]) -> list[Index]:
    """The dims `dims` as loops of the sizes `shape`, in order. Raises NotLifted where they do not fit, Split."""
    if [sizes[d] for d in dims] == list(shape):
        return [Index.dim(d) for d in dims]
    if math.prod(shape) != math.prod(sizes[d] for d in dims):
        raise NotLifted("it reduces over other dims")
    total = linearize([Index.dim(d) for d in dims], [sizes[d] for d in dims])
    try:
        return list(delinearize(total, shape, sizes))
    except NotLinear as reason:
        raise NotLifted(str(reason)) from None


def _stored_dtype(value: Any) -> str:
    """The dtype of the elements of a tensor or memref. Raises NotLifted; positions in memory have none."""
    if str(value.type.element_type) == "index":
        raise NotLifted("nests have no elements of type index")
    return dtype_of(value.type.element_type)


def _at(op: Structured, r: int, loops: Sequence[Index]) -> tuple[Index, ...]:
    """The indices of the element of result r at an iteration."""
    return tuple(i.substitute(list(loops)) for i in op.output_maps()[r])


def _integers(attribute: Any) -> list[int]:
    return [int(ir.IntegerAttr(a).value) for a in ir.ArrayAttr(attribute)]


def _is_splat(attribute: Any) -> bool:
    return isinstance(attribute, (ir.DenseFPElementsAttr, ir.DenseIntElementsAttr)) and attribute.is_splat


def _used_outside(op: Any, members: Sequence[Any]) -> list[int]:
    """The results of `op` that others than `members` use. Reshapes count as what uses them."""
    inside = set(members)
    return [r for r, result in enumerate(op.results) if any(u not in inside for u in users(result))]


def _used_anywhere(op: Any, members: Sequence[Any]) -> bool:
    """Whether others than `members` use a result of `op`."""
    return len(_used_outside(op, members)) > 0


def users(value: Any) -> list[Any]:
    """The ops that use a value, in its block or around what does; those of reshapes of it in their stead."""
    found, block = [], value.owner.operation.block
    for use in value.uses:
        op = use.owner.operation
        while op.block != block:
            op = op.parent.operation
        found += users(op.results[0]) if op.name in VIEWS and any(True for _ in op.results[0].uses) else [op]
    return found
