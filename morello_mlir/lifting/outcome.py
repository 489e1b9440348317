"""What comes out of looking at one linalg op."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from morello_mlir.spec import Spec

    from .plan import Plan


class NotLifted(Exception):
    """Why an op is left to upstream. Internal to the analysis: `explain` turns it into `Rejected`."""


@dataclass(frozen=True)
class Lifted:
    """The op can be lifted.

    plan: the Spec, its operands and the loops around it. values: the op's operands (two inputs, output, what else
    `then` reads) that `plan.operands[i].source` counts. members: the other ops that the Spec stands for; the last op of
    all is where it happens. zeroed: the op that initialises the output with zeros, or None. constants: what
    the Spec's constant operands hold, as (operand, name of the contents).
    """

    plan: Plan
    values: tuple[Any, ...]
    on_tensors: bool
    zeroed: Any = None
    constants: tuple[tuple[str, str], ...] = ()
    members: tuple[Any, ...] = ()

    @property
    def spec(self) -> Spec:
        return self.plan.spec

    @property
    def fill(self) -> Any:
        """The op whose zeros the Spec makes superfluous, or None."""
        return None if self.plan.keeps_fill else self.zeroed


@dataclass(frozen=True)
class Covered:
    """The op zeroes the accumulator of `by`, a lifted op whose Spec does that too, or is one of its members."""

    by: Any


@dataclass(frozen=True)
class Rejected:
    """The op is left to upstream, and the one precise reason."""

    reason: str
