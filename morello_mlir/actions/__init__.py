"""Actions: the rewrites that the search chooses among, each declared once. Imports no MLIR."""

from .ahead import PackAheadAction
from .base import Action, Child, reason
from .move import MoveAction, form_of
from .parallel import ParallelTile, SerialAction
from .select import KERNELS, PAIR_KERNELS, DotFma, KernelAction, PairKernel, in_flight
from .space import (
    action_of,
    check,
    check_tree,
    child_specs,
    closure,
    explore,
    kernels,
    limits_of,
    matters,
    moves,
    parallel_tiles,
    remaining,
    scale,
    steps,
    tiles,
)
from .state import OperandState, TableKey, footprint, key_of, spec_of
from .tile import TileAction, ToAccumAction, WithinAction

__all__ = [
    "KERNELS",
    "PAIR_KERNELS",
    "Action",
    "Child",
    "DotFma",
    "KernelAction",
    "MoveAction",
    "OperandState",
    "PackAheadAction",
    "PairKernel",
    "ParallelTile",
    "SerialAction",
    "TableKey",
    "TileAction",
    "ToAccumAction",
    "WithinAction",
    "action_of",
    "check",
    "check_tree",
    "child_specs",
    "closure",
    "explore",
    "footprint",
    "form_of",
    "in_flight",
    "kernels",
    "key_of",
    "limits_of",
    "matters",
    "moves",
    "parallel_tiles",
    "reason",
    "remaining",
    "scale",
    "spec_of",
    "steps",
    "tiles",
]
