"""morello-chain: goals of which each consumes what the one before made become one goal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from morello_mlir import dialect
from morello_mlir.lifting.chains import Chains

from .base import Pass, remark


@dataclass(frozen=True)
class MorelloChain(Pass):
    """Replace calls of which each consumes what the one before made, in memory that nothing else uses, by one call of a
    private function with one `morello.chain`: contractions, and nests between them, as in attention.

    Before: calls of private functions that hold one `morello.spec` or one nest each, as `morello-lift` makes them. A
    chain begins and ends with a contraction; the first operand of each is what the goal before it made. Contractions
    with operands that can be packed ahead, and goals with schedules by hand, stay as they are. The search may still
    find that it is best to do one after the other.
    """

    name: ClassVar[str] = "morello-chain"
    summary: ClassVar[str] = "Make one goal of contractions, and nests between them, that follow one another"

    def run(self, op: Any) -> None:
        dialect.load(op.context)
        chains = Chains(op.operation)
        # All are found before anything is rewritten: what overlaps what is known of the module as it was.
        for chain in list(chains.find()):
            remark(chain.members[-1].call, f"{len(chain.members)} goals make one: {chain.spec}")
            chains.build(chain)
        chains.erase_unused()
