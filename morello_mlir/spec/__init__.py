"""Specs, tensor specs and layouts, and their text form. Imports no MLIR."""

from .dtype import DTYPE_BYTES, accumulator, dtype_bytes, element_type, is_float
from .edge import Edge, Side
from .layout import Layout, dense_strides, is_dense, row_stride
from .spec import (
    FUNCTIONS,
    LIMITED,
    MAX_THREADS,
    MEMORIES,
    Function,
    Spec,
    TensorSpec,
    matmul_spec,
    split_top,
    stride_class,
)
from .then import Extra, Then
from .window import Lap, Window

__all__ = [
    "DTYPE_BYTES",
    "FUNCTIONS",
    "LIMITED",
    "MAX_THREADS",
    "MEMORIES",
    "Edge",
    "Extra",
    "Function",
    "Lap",
    "Layout",
    "Side",
    "Spec",
    "TensorSpec",
    "Then",
    "Window",
    "accumulator",
    "dense_strides",
    "dtype_bytes",
    "element_type",
    "is_dense",
    "is_float",
    "matmul_spec",
    "row_stride",
    "split_top",
    "stride_class",
]
