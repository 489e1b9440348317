"""From linalg ops to nests: which ops one nest computes together, what it computes, and where."""

from .checks import has_assertion, take_out_assertions
from .choose import Chooser, is_contraction, is_others
from .emit import NestFunctions
from .enclose import enclose, tidy
from .lift import IS_CONTRACTION, LiftedNest, calls, explain_call, explain_op
from .loops import to_loops
from .outline import is_inside, outline, regions
from .padded import holds_until, unpadded
from .softmax import take_apart
from .space import Nest

__all__ = [
    "IS_CONTRACTION",
    "Chooser",
    "LiftedNest",
    "Nest",
    "NestFunctions",
    "calls",
    "enclose",
    "explain_call",
    "explain_op",
    "has_assertion",
    "holds_until",
    "is_contraction",
    "is_inside",
    "is_others",
    "outline",
    "regions",
    "take_apart",
    "take_out_assertions",
    "tidy",
    "to_loops",
    "unpadded",
]
