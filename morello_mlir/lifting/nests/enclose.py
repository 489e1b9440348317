"""Puts the ops of a nest on tensors into an `scf.execute_region`, which bufferizes in place: inputs keep the strides
that they have outside, and outputs go where their users want them.
"""

from __future__ import annotations

from typing import Any

from mlir import ir
from mlir.dialects import linalg, tensor

from morello_mlir.nests.body import READS

from ..emit import SCHEDULE
from ..tables import loads_of
from .group import users
from .record import MEMBER, NEST, Access, Record
from .space import Nest
from .structured import VIEWS


def enclose(nest: Nest) -> Any:
    """The region op that now has the members of `nest`, in their places. They are known by `morello.member`, the nest
    by `morello.nest` on the last of them."""
    return _Enclosure(nest).make()


def tidy(region: Any) -> None:
    """Erases what nothing uses in the region of a nest: fills, each of whose users has one of its own. Only once nobody
    holds ops of the region any more."""
    for op in reversed([o.operation for o in region.regions[0].blocks[0].operations]):
        if len(op.results) and not any(len(list(r.uses)) for r in op.results):
            op.erase()


class _Enclosure:
    def __init__(self, nest: Nest):
        self.nest = nest
        # Ops are known by their first results: the hash of an op changes with its attributes and operands.
        self._members = {op.results[0] for op in nest.members}
        self._copies = {op.results[0] for op in nest.copies}
        self._block = nest.members[0].block
        order = {op.operation: i for i, op in enumerate(self._block.operations)}
        self._inside = sorted(nest.members, key=lambda op: order[op])
        self._root = self._inside[-1]
        self._dependent = self._dependents(order)
        self._loose = self._reshapes() + self._starts()
        #: Of ops that are computed here too, by their first results: the op here.
        self._here: dict[Any, Any] = {}
        #: Where operands are read instead, by (first result of the op, operand): of the op, operand.
        self._elsewhere: dict[tuple[Any, int], tuple[Any, int]] = {}

    def make(self) -> Any:
        root, outputs = self._root, self.nest.outputs
        results = [w.op.results[w.result] for w in outputs]
        with root.location:
            region = ir.Operation.create(
                "scf.execute_region",
                results=[v.type for v in results],
                attributes={"no_inline": ir.UnitAttr.get()},
                regions=1,
                ip=ir.InsertionPoint(root),
            )
            body = region.regions[0].blocks.append()
            with ir.InsertionPoint(body):
                end = ir.Operation.create("scf.yield", operands=results)
            for op in self._inside:
                op.move_before(end)
                self._adopt(op)
                for r, result in enumerate(op.results):
                    if result in results:
                        self._destination(op, r, region)
                    else:
                        self._scratch(op, len(op.operands) - len(op.results) + r)
            self._number(region)
        for number, value in enumerate(results):
            _replace_outside(value, region.results[number], region)
        after = region
        for op in self._dependent:
            op.move_after(after)
            after = op
        self._erase_unused()
        return region

    def _dependents(self, order: dict[Any, int]) -> list[Any]:
        """The ops between the members that need results of theirs, directly or not, in order."""
        last = order[self._root]
        found: set[Any] = set()
        todo = list(self.nest.members)
        while todo:
            for result in todo.pop().results:
                for use in result.uses:
                    user = _ancestor(use.owner.operation, self._block)
                    if not self._is_member(user) and user not in found and order[user] < last:
                        found.add(user)
                        todo.append(user)
        views = {op for op in found if op.name in VIEWS and all(map(self._is_member, users(op.results[0])))}
        return sorted(found - views, key=lambda op: order[op])

    def _is_member(self, op: Any) -> bool:
        return len(op.results) > 0 and op.results[0] in self._members

    def _is_members(self, value: Any) -> bool:
        return not isinstance(value.owner, ir.Block) and self._is_member(value.owner.operation)

    def _is_copy(self, op: Any) -> bool:
        return len(op.results) > 0 and op.results[0] in self._copies

    # ------------------------------------------------------------ what members read

    def _adopt(self, op: Any) -> None:
        """Lets `op` read what is computed in the region: reshapes of members' results, and copies."""
        outputs = len(op.results)
        for i, value in enumerate(op.operands):
            if i < len(op.operands) - outputs:
                op.operands[i] = self._local(value, op)
        for load in loads_of(op):
            load.operands[0] = self._local(load.operands[0], op)

    def _local(self, value: Any, before: Any) -> Any:
        """`value` as computed in the region, before the op `before`, where its op belongs there."""
        if isinstance(value.owner, ir.Block):
            return value
        owner = value.owner.operation
        if owner.results[0] in self._here:
            return self._here[owner.results[0]].results[ir.OpResult(value).result_number]
        if self._is_copy(owner) or (owner.name in VIEWS and self._is_inside(owner.operands[0])):
            copy = self._cloned(owner, before)
            self._here[owner.results[0]] = copy
            return copy.results[ir.OpResult(value).result_number]
        return value

    def _cloned(self, owner: Any, before: Any) -> Any:
        operands = [self._local(o, before) for o in owner.operands]
        copy = owner.clone(ip=ir.InsertionPoint(before))
        for i, operand in enumerate(operands):
            copy.operands[i] = operand
        for load in loads_of(copy):
            load.operands[0] = self._local(load.operands[0], copy)
        for r in range(len(copy.results)) if self._is_copy(owner) else ():
            self._scratch(copy, len(copy.operands) - len(copy.results) + r)
        return copy

    def _is_inside(self, value: Any) -> bool:
        """Whether a value is a member's, or a reshape of such a one."""
        while not isinstance(value.owner, ir.Block):
            owner = value.owner.operation
            if self._is_member(owner) or self._is_copy(owner):
                return True
            if owner.name not in VIEWS:
                return False
            value = owner.operands[0]
        return False

    # ------------------------------------------------------------ what members write

    def _destination(self, op: Any, r: int, region: Any) -> None:
        """Gives result r of `op` memory outside of the region."""
        i = len(op.operands) - len(op.results) + r
        start = op.operands[i]
        read = _is_read(op, i)
        if read and self._is_members(start) and len(list(start.uses)) == 1:
            # What it starts from is made here, for it alone: one memory serves both.
            self._destination(start.owner.operation, ir.OpResult(start).result_number, region)
            return
        if not self._is_inside(start) and not _is_empty(start) and _is_own(start, region.block):
            return
        with ir.InsertionPoint(region):
            fresh = _fresh(start)
        if read:
            self._start_from_copy(op, i, fresh)
        else:
            op.operands[i] = fresh

    def _scratch(self, op: Any, i: int) -> None:
        """Gives operand `i`, what a result that stays in the region starts from, memory of its own there."""
        start = op.operands[i]
        if _is_empty(start):
            with ir.InsertionPoint(op):
                op.operands[i] = start.owner.operation.clone().results[0]
        elif (fill := self._fill(start, None, op)) is not None:
            op.operands[i] = fill.results[0]
        elif _is_read(op, i) and not self._is_inside(start) and not _is_own(start, self._block):
            # Others may need it as it is: bufferization would copy it to where the nest was not to read it from.
            with ir.InsertionPoint(op):
                fresh = _fresh(start)
            self._start_from_copy(op, i, fresh)
        else:
            op.operands[i] = self._local(start, op)

    def _start_from_copy(self, op: Any, i: int, fresh: Any) -> None:
        """Lets `op` find what its operand `i` holds in `fresh`; the nest reads it from where it was."""
        start = op.operands[i]
        with ir.InsertionPoint(op):
            copied = self._fill(start, fresh, op) or linalg.copy(self._local(start, op), outs=[fresh]).owner.operation
        op.operands[i] = copied.results[0]
        self._elsewhere[op.results[0], i] = (copied, 0)

    def _fill(self, value: Any, out: Any, before: Any) -> Any:
        """An op of its own, before `before`, that fills `out` (None: new memory) as the one that makes `value`, a
        member or a copy, does; None where that is no fill."""
        owner = None if isinstance(value.owner, ir.Block) else value.owner.operation
        if owner is None or owner.name != "linalg.fill" or not (self._is_member(owner) or self._is_copy(owner)):
            return None
        copy = owner.clone(ip=ir.InsertionPoint(before))
        copy.operands[1] = out if out is not None else copy.operands[1]
        if out is None:
            self._scratch(copy, 1)
        return copy

    # ------------------------------------------------------------ the rest

    def _number(self, region: Any) -> None:
        """Numbers the ops inside, and writes what the nest is onto the root."""
        nest = self.nest
        numbers: dict[Any, int] = {}
        for op in region.regions[0].blocks[0].operations:
            if op.operation.name.startswith("linalg."):
                op.operation.attributes[MEMBER] = _i64(len(numbers))
                numbers[op.operation.results[0]] = len(numbers)
        accesses = []
        dtypes = {int(v.attr or 0): v.dtype for v in nest.body.values if v.op in READS}
        for k, read in enumerate(nest.inputs):
            owner = self._here.get(read.op.results[0], read.op)
            op, operand = self._elsewhere.get((owner.results[0], read.operand), (owner, read.operand))
            accesses.append(Access(dtypes[k], f"{numbers[op.results[0]]}.{operand}", read.indices))
        for r, written in enumerate(nest.outputs):
            accesses.append(Access(nest.body.values[nest.body.outputs[r]].dtype, str(r), written.indices))
        record = Record(nest.space.sizes, nest.space.scan, nest.body, tuple(accesses))
        self._root.attributes[NEST] = record.attribute()
        given = next((op.attributes[SCHEDULE] for op in reversed(self._inside) if SCHEDULE in op.attributes), None)
        if given is not None:
            self._root.attributes[SCHEDULE] = given

    def _reshapes(self) -> list[Any]:
        """The reshapes of members' results."""
        found: list[Any] = []
        todo = list(self.nest.members)
        while todo:
            for result in todo.pop().results:
                views = [u.owner.operation for u in result.uses if u.owner.operation.name in VIEWS]
                found += views
                todo += views
        return found

    def _starts(self) -> list[Any]:
        """The empty tensors that members write to."""
        values = {v for op in self.nest.members for v in op.operands if _is_empty(v)}
        return [v.owner.operation for v in values]

    def _erase_unused(self) -> None:
        """Erases reshapes that only members used, and what they wrote to."""
        left, count = self._loose, -1
        while len(left) != count:
            count, kept = len(left), []
            for op in left:
                if any(len(list(r.uses)) for r in op.results):
                    kept.append(op)
                else:
                    op.erase()
            left = kept


def _i64(value: int) -> Any:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)


def _ancestor(op: Any, block: Any) -> Any:
    while op.block != block:
        op = op.parent.operation
    return op


def _replace_outside(value: Any, new: Any, region: Any) -> None:
    for use in list(value.uses):
        owner, at = use.owner.operation, use.operand_number
        op = owner
        while op is not None and op != region:
            op = op.parent.operation if op.parent is not None else None
        if op is None:
            owner.operands[at] = new


def _is_empty(value: Any) -> bool:
    return not isinstance(value.owner, ir.Block) and value.owner.operation.name == "tensor.empty"


def _fresh(value: Any) -> Any:
    """An empty tensor like `value`."""
    return tensor.EmptyOp(list(value.type.shape), value.type.element_type).result


def _is_own(value: Any, block: Any) -> bool:
    """Whether an op of `block`, which runs as often as its user there, makes a tensor for one user alone, which may
    then write to it."""
    if isinstance(value.owner, ir.Block) or value.owner.operation.block != block:
        return False
    return len(list(value.uses)) == 1 and value.owner.operation.name.startswith("linalg.")


def _is_read(op: Any, i: int) -> bool:
    """Whether a structured op reads what its operand `i` holds before."""
    arguments = list(op.regions[0].blocks[0].arguments)
    return i < len(arguments) and any(True for _ in arguments[i].uses)
