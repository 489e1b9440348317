"""From linalg ops to Specs: recognising contractions, planning their loops, aliases, and building the IR.

`explain(op)` says what becomes of one linalg op: `Lifted` with the Spec, or `Rejected` with the reason.
"""

from .aliases import Aliases, enclosing_module, nested_ops
from .constants import with_constants
from .explain import aliases_around, explain, survey
from .given import scalars_as_operands
from .inputs import (
    add_afterwards,
    erase_unused,
    join_empties,
    own_empties,
    own_zero_fill,
    read_operands_through,
    read_through_copies,
)
from .loops import Loop
from .orders import batch_outermost, channels_innermost, result_as_copied
from .outcome import Covered, Lifted, Rejected
from .plan import Operand, OuterLoop, Plan, make_plan
from .positions import masks_apart
from .quantized import without_zero_points
from .reshaped import reshape_first

__all__ = [
    "Aliases",
    "Covered",
    "Lifted",
    "Loop",
    "Operand",
    "OuterLoop",
    "Plan",
    "Rejected",
    "add_afterwards",
    "aliases_around",
    "batch_outermost",
    "channels_innermost",
    "enclosing_module",
    "erase_unused",
    "explain",
    "join_empties",
    "make_plan",
    "masks_apart",
    "nested_ops",
    "own_empties",
    "own_zero_fill",
    "read_operands_through",
    "read_through_copies",
    "reshape_first",
    "result_as_copied",
    "scalars_as_operands",
    "survey",
    "with_constants",
    "without_zero_points",
]
