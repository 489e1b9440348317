"""Which ops around a contraction can be part of its Spec: those whose results nobody else needs, in an order that does
not matter."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from mlir import ir

from .aliases import VIEWS, Aliases, ancestor_in, is_memref, nested_ops
from .contraction import Contraction, is_structured, operands_of
from .fills import TRANSPARENT
from .outcome import NotLifted
from .then import MOST_OPS, Chain, Growth, origin

#: Ops that look at no elements.
_LOOKS = (*VIEWS, "memref.dim", "tensor.expand_shape", "tensor.collapse_shape", "cf.assert")


class Order:
    """The ops of a block, and the place of each."""

    def __init__(self, block: Any):
        self.ops = [op.operation for op in block.operations]
        self.place = {op: i for i, op in enumerate(self.ops)}


class Orders:
    """The order of blocks that do not change meanwhile."""

    def __init__(self) -> None:
        self._known: dict[Any, Order] = {}

    def of(self, op: Any) -> Order:
        """That of the block which `op` is in."""
        block = op.operation.block
        if block not in self._known:
            self._known[block] = Order(block)
        return self._known[block]


@dataclass(frozen=True)
class Surroundings:
    """Of a contraction: its block, ops that are part of other Specs, and, on memrefs, the aliases of the module."""

    order: Order
    claimed: Collection[Any]
    aliases: Aliases | None


def chains(op: Any, contraction: Contraction, zeroed: Any, where: Surroundings) -> Iterator[Chain]:
    """What the Spec of the contraction `op` can do beside it, the most first. zeroed: the op that sets the output to
    zeros."""
    on_tensors = where.aliases is None
    seeker = _OnTensors(op, where) if where.aliases is None else _OnMemrefs(op, where, where.aliases)
    start = Growth.start(contraction, op.results[0] if on_tensors else contraction.values[2])
    for begin, accumulates in _starts(start, op, seeker, contraction.values[2], zeroed):
        for growth in reversed([begin, *seeker.grow(begin)]):
            # An initialiser by itself is worth it where less is read than it would write.
            if growth is begin and not (growth.members and _is_broadcast(growth)):
                continue
            if seeker.is_valid(growth, contraction, accumulates):
                yield growth.chain(accumulates)


def _starts(start: Growth, op: Any, seeker: _Seeker, out: Any, zeroed: Any) -> Iterator[tuple[Growth, bool]]:
    """Where chains may begin, and whether the contraction adds to what is in the place of the results."""
    if zeroed is not None:
        yield start, False
        return
    first = seeker.initialiser(out)
    if first is not None:
        with suppress(NotLifted):
            yield start.before(first), False
    yield start, True
    yield start.from_previous(op.operation), False


def _is_broadcast(growth: Growth) -> bool:
    return any(axis.along(("x", i)) == 0 for i in range(len(growth.reads)) for axis in growth.axes if axis.size != 1)


class _Seeker:
    """Walks through the block of a contraction."""

    def __init__(self, op: Any, where: Surroundings):
        self.op = op.operation
        self.claimed = where.claimed
        self.ops, self.place = where.order.ops, where.order.place

    def initialiser(self, out: Any) -> Any:
        """The op that wrote what the contraction adds to, if that can be part of its Spec."""
        raise NotImplementedError

    def is_valid(self, growth: Growth, contraction: Contraction, accumulates: bool) -> bool:
        """Whether the program does the same where all of the chain happens at the place of its last op."""
        raise NotImplementedError

    def grow(self, growth: Growth) -> Iterator[Growth]:
        """The chain with one more op after the other."""
        for at in range(self.place[self.op] + 1, len(self.ops)):
            op = self.ops[at]
            if len(growth.members) == MOST_OPS:
                return
            if op.name in _LOOKS:
                continue
            if op not in self.claimed and growth.reads_known(op) and self._writes_apart(op, growth):
                try:
                    growth = growth.after(op)
                    yield growth
                    continue
                except NotLifted:
                    pass
            if self.ends(op, growth):
                return

    def _writes_apart(self, op: Any, growth: Growth) -> bool:
        return is_structured(op)

    def ends(self, op: Any, growth: Growth) -> bool:
        """Whether nothing after `op`, which is not part of the chain, can be."""
        return False

    def here(self, op: Any) -> Any:
        """`op`, or the op around it that is in this block; None where there is none."""
        return ancestor_in(self.op.block, op)


class _OnTensors(_Seeker):
    def ends(self, op: Any, growth: Growth) -> bool:
        """What others read is the last of the chain."""
        return growth.reads_known(op)

    def initialiser(self, out: Any) -> Any:
        owner = None if isinstance(out.owner, ir.Block) else out.owner.operation
        alone = len(list(out.uses)) == 1
        return owner if owner in self.place and alone and owner not in self.claimed else None

    def is_valid(self, growth: Growth, contraction: Contraction, accumulates: bool) -> bool:
        """Whether nobody else needs what is computed on the way."""
        members = {self.op, *growth.members}
        result = origin(growth.out)
        return all(value == result or _users(value) <= members for value in growth.known)


def _users(value: Any) -> set[Any]:
    """The ops that use a value or a view of it."""
    found, todo = set(), [value]
    while todo:
        for use in todo.pop().uses:
            op = use.owner.operation
            if op.name in _LOOKS and op.name != "memref.dim":
                todo += list(op.results)
            else:
                found.add(op)
    return found


class _OnMemrefs(_Seeker):
    def __init__(self, op: Any, where: Surroundings, aliases: Aliases):
        super().__init__(op, where)
        self.aliases = aliases

    def initialiser(self, out: Any) -> Any:
        """The op that wrote `out` last."""
        for at in reversed(range(self.place[self.op])):
            op = self.ops[at]
            if self._touches(op, [out]):
                written = is_structured(op) and len(operands_of(op)[1]) == 1 and operands_of(op)[1][0]
                return op if written == out and op not in self.claimed else None
        return None

    def _writes_apart(self, op: Any, growth: Growth) -> bool:
        """Whether what `op` reads and writes beside the chain's buffers is no part of these."""
        others = [v for v in op.operands if is_memref(v) and origin(v) not in growth.known]
        return is_structured(op) and not any(self.aliases.may_overlap(v, k) for v in others for k in growth.known)

    def ends(self, op: Any, growth: Growth) -> bool:
        return self._touches(op, list(growth.known))

    def is_valid(self, growth: Growth, contraction: Contraction, accumulates: bool) -> bool:
        members = {self.op, *growth.members}
        target = origin(growth.out)
        if accumulates and target != origin(contraction.values[2]):
            return False
        if not all(buffer == target or self._dies(buffer, members) for buffer in growth.known):
            return False
        last = max(self.place[m] for m in members)
        inputs = contraction.values[:2]
        reads = [(v, self.op) for v in inputs] + list(growth.reads)
        if any(self.aliases.may_overlap(v, growth.out) for v, _ in reads):
            return False
        return all(not self._changes(v, self.place[reader] + 1, last, members) for v, reader in reads)

    def _dies(self, buffer: Any, members: set[Any]) -> bool:
        """Whether a buffer is this block's own, and needed by nobody once the members have run."""
        if isinstance(buffer.owner, ir.Block) or buffer.owner.operation.name != "memref.alloc":
            return False
        if buffer.owner.operation not in self.place:
            return False
        return all(user in members or self._is_harmless(user) for user in _users(buffer))

    def _is_harmless(self, user: Any) -> bool:
        """Whether a use of the buffer has no part in what happens from the contraction on."""
        if user.name in ("memref.dealloc", "memref.dim"):
            return True
        here = self.here(user)
        before = here is not None and self.place[here] < self.place[self.op]
        return before and (user.name.startswith("linalg.") or user.name in ("memref.copy", "memref.load"))

    def _changes(self, value: Any, start: int, end: int, members: set[Any]) -> bool:
        """Whether an op between two places may write to a memref."""
        between = [o for o in self.ops[start:end] if o not in members]
        return any(self._touches(op, [value], writing=True) for op in between)

    def _touches(self, op: Any, buffers: list[Any], writing: bool = False) -> bool:
        """Whether an op, or one in it, may read or write (or only write) memory of `buffers`."""
        for each in (op, *nested_ops(op)):
            if each.name in _LOOKS or each.name in ("memref.alloc", "memref.alloca"):
                continue
            memrefs = [v for v in each.operands if is_memref(v)]
            if each.name.partition(".")[0] not in TRANSPARENT and not self.aliases.is_open(each):
                # A call, say: it may reach what is not seen.
                return True
            if writing and is_structured(each):
                memrefs = operands_of(each)[1]
            if any(self.aliases.may_overlap(v, buffer) for v in memrefs for buffer in buffers):
                return True
        return False
