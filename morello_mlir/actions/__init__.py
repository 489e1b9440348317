"""Actions: the rewrites that the search chooses among, each declared once. Imports no MLIR."""

from .ahead import PackAheadAction
from .amx import TILE_KERNELS, TileKernel, rows_at_once
from .base import Action, Child, reason
from .broadcast import STEPS_OF_FOUR, is_spread
from .dots import DOT_KERNELS, PAIRS_IN_FLIGHT, DotFma, in_flight
from .kernel import KernelAction
from .move import MoveAction, form_of
from .pairs import PAIR_KERNELS, PairKernel
from .parallel import ParallelTile, SerialAction
from .peak import multiply_adds
from .registry import KERNELS
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
from .state import OperandState, TableKey, canonical_stride, footprint, key_of, spec_of
from .tile import ExchangeAction, TileAction, ToAccumAction, WithinAction

__all__ = [
    "DOT_KERNELS",
    "KERNELS",
    "PAIRS_IN_FLIGHT",
    "PAIR_KERNELS",
    "STEPS_OF_FOUR",
    "TILE_KERNELS",
    "Action",
    "Child",
    "DotFma",
    "ExchangeAction",
    "KernelAction",
    "MoveAction",
    "OperandState",
    "PackAheadAction",
    "PairKernel",
    "ParallelTile",
    "SerialAction",
    "TableKey",
    "TileAction",
    "TileKernel",
    "ToAccumAction",
    "WithinAction",
    "action_of",
    "canonical_stride",
    "check",
    "check_tree",
    "child_specs",
    "closure",
    "explore",
    "footprint",
    "form_of",
    "in_flight",
    "is_spread",
    "kernels",
    "key_of",
    "limits_of",
    "matters",
    "moves",
    "multiply_adds",
    "parallel_tiles",
    "reason",
    "remaining",
    "rows_at_once",
    "scale",
    "spec_of",
    "steps",
    "tiles",
]
