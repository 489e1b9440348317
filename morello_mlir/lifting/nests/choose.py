"""The nests of a block of tensor ops: from the last op up, each op that no nest has yet is the root of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from mlir import ir

from ..aliases import nested_ops
from ..body import is_multiply_add_of_other_types
from ..constants import depends_on_constants
from ..explain import explain
from ..outcome import Lifted, NotLifted
from .group import Surroundings, build, users
from .index import dims_of
from .record import MEMBER
from .space import Nest
from .structured import Structured, structured


def is_contraction(op: Structured) -> bool:
    """Whether an op adds products up and each factor has loops of the output's that the other has not."""
    if op.input_count != 2 or not op.reduced or not is_multiply_add_of_other_types(op.block):
        return False
    lhs, rhs = (dims_of(m) & op.written for m in op.maps[:2])
    return bool(lhs - rhs) and bool(rhs - lhs)


def is_others(op: Any) -> bool:
    """Whether a linalg op is a contraction that becomes a Spec of its own."""
    return isinstance(explain(op), Lifted)


class Chooser:
    """Finds the nests under an op. skip: ops that are others' concern.

    A reduction of constants is in no nest that reads something else: by itself it needs to run once.
    """

    def __init__(self, skip: Callable[[Any], bool]):
        self._skip = skip
        self._constant: dict[Any, bool] = {}
        self._facts: dict[Any, Structured | None] = {}

    def nests(self, root: Any) -> Iterator[Nest]:
        """One nest after the other. Each must be put away (its members moved or erased) before the next is asked
        for."""
        blocks = dict.fromkeys(op.block for op in nested_ops(root) if self._is_candidate(op))
        for block in blocks:
            for op in reversed([o.operation for o in block.operations if self._is_candidate(o.operation)]):
                if op.block == block and (facts := self._known(op)) is not None:
                    try:
                        known = self._known if self._is_constant(op) else self._known_to_others
                        yield build(facts, Surroundings(known, blocks=_Order(block).blocks))
                    except NotLifted:
                        continue

    def _is_candidate(self, op: Any) -> bool:
        if MEMBER in op.attributes:  # of a nest already
            return False
        tensors = len(op.results) > 0 and all(isinstance(r.type, ir.RankedTensorType) for r in op.results)
        return tensors and op.name.startswith("linalg.") and not self._skip(op)

    def _is_constant(self, op: Any) -> bool:
        return all(depends_on_constants(result, self._constant) for result in op.results)

    def _known_to_others(self, op: Any) -> Structured | None:
        """What nests that read more than constants may know of an op."""
        facts = self._known(op)
        return None if facts is not None and facts.reduced and self._is_constant(op) else facts

    def _known(self, op: Any) -> Structured | None:
        if op not in self._facts:
            try:
                found = structured(op) if self._is_candidate(op) else None
            except NotLifted:
                found = None
            self._facts[op] = None if found is None or is_contraction(found) else found
        return self._facts[op]


class _Order:
    """The order of the ops of a block, as it is now."""

    def __init__(self, block: Any):
        self._at = {op.operation: i for i, op in enumerate(block.operations)}

    def blocks(self, op: Any, members: set[Any]) -> bool:
        """Whether a member needs what ops that are no members make of results of `op`."""
        last = max(self._at[m] for m in members)
        todo = [u for r in op.results for u in users(r) if u not in members]
        seen = set(todo)
        while todo:
            here = todo.pop()
            if self._at.get(here, last + 1) > last:
                continue
            for result in here.results:
                for user in users(result):
                    if user in members:
                        return True
                    if user not in seen:
                        seen.add(user)
                        todo.append(user)
        return False
