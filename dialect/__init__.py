"""The `morello` dialect: its definition in IRDL, typed access to its ops, and their verifier.

Importing this loads no MLIR; using it does. `load` a context before parsing a module that holds `morello` ops.
"""

from __future__ import annotations

from .chain_op import ChainOp, build_chain_op, chain_ops, is_chain
from .goal_op import OP_NAME, GoalOp, load, loaded, op_name
from .nest_op import NestOp, build_nest_op, goal_ops, is_nest, nest_ops
from .spec_op import SpecOp, build_spec_op, is_spec, spec_ops
from .verify import bundle_size, problems, verify_spec_op, verify_specs

__all__ = [
    "OP_NAME",
    "ChainOp",
    "GoalOp",
    "NestOp",
    "SpecOp",
    "build_chain_op",
    "build_nest_op",
    "build_spec_op",
    "bundle_size",
    "chain_ops",
    "goal_ops",
    "is_chain",
    "is_nest",
    "is_spec",
    "load",
    "loaded",
    "nest_ops",
    "op_name",
    "problems",
    "spec_ops",
    "verify_spec_op",
    "verify_specs",
]
