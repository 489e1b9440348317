"""Modules from files: MLIR text, bytecode, and ONNX models where their importer is installed."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from morello_mlir.errors import InputError

from . import _cli


def load(path: str) -> Any:
    """The module (an `mlir.ir.Module`) in a file, or on stdin for `-`; large weights of an ONNX model are arguments of
    its function that are marked as constant.

    Raises InputError (no such file; the importer is not installed), CompileError.
    """
    from ..runtime.context import is_onnx, parse_file, parse_text

    if is_onnx(path):
        module, constants = import_onnx(path)
        _mark(module, list(map(int, constants)))
        return module
    return parse_text(_cli.read_bytes("-")) if path == "-" else parse_file(path)


def read(path: str) -> str | bytes:
    """As `load`, as text, or bytecode where the file is that. Raises InputError, CompileError."""
    from ..runtime.context import is_onnx

    return str(load(path)) if is_onnx(path) else _cli.read_module(path)


def import_onnx(path: str) -> tuple[Any, Mapping[int | str, Any]]:
    """An ONNX model as a module of one function, and the contents of those arguments that are its large weights.

    Raises InputError (no such file, no model, the importer is not installed), CompileError.
    """
    try:
        onnx = importlib.import_module("morello_mlir.frontends.onnx")
    except ImportError as error:
        raise InputError(_cli.located(path, 0, 0, f"an ONNX model: {error}")) from error
    imported: tuple[Any, Mapping[int | str, Any]] = onnx.import_model(path)
    return imported


def _mark(module: Any, constants: list[int]) -> None:
    """Says of arguments of the only function that they are constants."""
    import mlir.ir as ir

    from ..lifting.constants import CONSTANT
    from ..passes.symbols import functions

    (function,) = functions(module)
    with module.context:
        marked = ir.DictAttr.get({CONSTANT: ir.UnitAttr.get()})
        count = len(function.operation.regions[0].blocks[0].arguments)
        listed = [marked if i in constants else ir.DictAttr.get({}) for i in range(count)]
        function.operation.attributes["arg_attrs"] = ir.ArrayAttr.get(listed)
