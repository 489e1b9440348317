"""Chains: contractions and nests whose intermediate results are tiled together (docs/chains.md). Imports no MLIR."""

from .spec import ChainSpec, Stage, is_chain

__all__ = ["ChainSpec", "Stage", "is_chain"]
