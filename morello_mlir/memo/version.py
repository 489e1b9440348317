"""What a record is valid for: target, cost model and format. Whatever changes an answer changes the space."""

from __future__ import annotations

from ..targets import Target

#: The layout of files and records. Files with a number that is not readable are left alone and not read.
FORMAT = 2
#: What is older and reads as it is: 1 has no packed records of states. A file that is written becomes one of FORMAT.
READABLE = (1, FORMAT)

#: To be raised whenever an action's declaration (cost, use, legality, children), a kernel or the space of actions
#: changes. A test compares the answers for a frozen machine with those of this version.
COST_MODEL = 10


def space_of(target: Target) -> str:
    """The name under which answers for `target` are kept. Coefficients and sizes are in the target's fingerprint."""
    return f"{target.fingerprint}/{COST_MODEL}"
