"""ONNX: `compile(path)`: a model file, imported by torch-mlir."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from morello_mlir.api import CompiledModule
from morello_mlir.errors import CompileError, InputError, first_line

from . import importer, isolated, need

need("onnx", "onnx")
need("torch_mlir", "onnx")

import onnx  # noqa: E402
from onnx import numpy_helper  # noqa: E402

from .onnx_padding import pad_ahead  # noqa: E402

#: Weights with fewer elements stay in the module, where passes can fold them.
THRESHOLD = 1024


def compile(
    model: str | os.PathLike[str] | bytes | Any, *, shapes: Mapping[str, Sequence[int]] | None = None, **options: Any
) -> CompiledOnnxModel:
    """An ONNX model compiled for this machine; its weights are constants, packed once.

    model:   the path of a file, its bytes, or an `onnx.ModelProto`.
    shapes:  the shape of inputs, by name, where the model leaves sizes open.
    options: those of `morello_mlir.compile`: target, threads, memo, optimize, cache, measure, top_k.

    Raises InputError (no such file, no model), CompileError (an op that torch-mlir does not lower).
    """
    return CompiledOnnxModel(_with_shapes(_loaded(model), shapes or {}), options, _name(model))


def import_model(model: str | os.PathLike[str] | bytes | Any) -> tuple[Any, dict[int | str, np.ndarray]]:
    """A model (as for `compile`) as a module (an `mlir.ir.Module`) of one function on tensors, and the contents of
    those of its arguments, by position, that are large weights. Raises InputError, CompileError."""
    text, constants, _ = to_linalg(_loaded(model), _name(model))
    return importer.clean(text), constants


#: ONNX's unsigned types, by number: MLIR's have no sign.
_UNSIGNED = {number: np.dtype(f"u{size}") for number, size in ((2, 1), (4, 2), (12, 4), (13, 8))}


class CompiledOnnxModel:
    """`m(*inputs)` or `m(name=input)` runs the model. inputs, outputs: their names. `compiled` is what is inside."""

    def __init__(self, model: Any, options: Mapping[str, Any], name: str = "the model"):
        from morello_mlir import compile as compile_module

        text, constants, self.inputs = to_linalg(model, name)
        self.outputs = tuple(each.name for each in model.graph.output)
        views = tuple(_UNSIGNED.get(each.type.tensor_type.elem_type) for each in model.graph.output)
        self._views = views if any(views) else None
        self.compiled: CompiledModule = compile_module(importer.clean(text), constants=constants, **options)

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Run with arrays; returns an array, or a tuple of them.

        Raises InputError where an input does not fit, AssertionFailed.
        """
        if named or len(args) != len(self.inputs):
            args = self._in_order(args, named)
        found = self.compiled(*args)
        if self._views is None:
            return found
        if not isinstance(found, tuple):
            return _viewed(found, self._views[0])
        return tuple(map(_viewed, found, self._views))

    def _in_order(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """The arguments of a call by position. Raises InputError: an input is missing, or not one that is left."""
        left = self.inputs[len(args) :]
        unknown = [name for name in named if name not in left]
        if unknown:
            raise InputError(f"no input '{unknown[0]}' is left (the model takes {', '.join(self.inputs)})")
        missing = [name for name in left if name not in named]
        if missing:
            raise InputError(f"input '{missing[0]}' is missing (the model takes {', '.join(self.inputs)})")
        return (*args, *(named[name] for name in left))


def _viewed(x: Any, dtype: np.dtype[Any] | None) -> Any:
    """A result with the sign that the model gives it."""
    return x.view(dtype) if dtype is not None and isinstance(x, np.ndarray) else x


def _name(model: Any) -> str:
    """What messages call a model: its file, if it comes from one."""
    return "the model" if isinstance(model, (bytes, onnx.ModelProto)) else os.fspath(model)


def _loaded(model: Any) -> Any:
    if isinstance(model, onnx.ModelProto):
        copy = onnx.ModelProto()
        copy.CopyFrom(model)
        return copy
    try:
        if isinstance(model, bytes):
            return onnx.load_model_from_string(model)
        return onnx.load(os.fspath(model))
    except OSError as error:
        raise InputError(f"{model}: cannot read the model: {error.strerror or error}") from error
    except Exception as error:
        raise InputError(f"{_name(model)}: not an ONNX model: {error}") from error


def _with_shapes(model: Any, shapes: Mapping[str, Sequence[int]]) -> Any:
    inputs = {each.name: each for each in model.graph.input}
    for name, shape in shapes.items():
        if name not in inputs:
            raise InputError(f"shapes: the model has no input '{name}' (it has: {', '.join(inputs)})")
        dims = inputs[name].type.tensor_type.shape.dim
        if len(dims) != len(shape):
            raise InputError(f"shapes: '{name}' has {len(dims)} dimensions, not {len(shape)}")
        for dim, size in zip(dims, shape, strict=True):
            dim.dim_value = size
    return model


def to_linalg(model: Any, name: str = "the model") -> tuple[str, dict[int | str, np.ndarray], tuple[str, ...]]:
    """A model (which is changed) as MLIR text; contents of arguments of its function; and the names of the others.

    name: of the model, for messages. Raises CompileError.
    """
    from torch_mlir import ir
    from torch_mlir.dialects import torch as torch_dialect
    from torch_mlir.extras import onnx_importer

    isolated.prepare()
    weights = _take_weights(model)
    try:
        onnx.checker.check_model(model)
        pad_ahead(model)
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
        context = ir.Context()
        torch_dialect.register_dialect(context)
        info = onnx_importer.ModelInfo(inferred)
        module = info.create_module(context=context)
        onnx_importer.NodeImporter.define_function(info.main_graph, module.operation).import_all()
    except CompileError:
        raise
    except Exception as error:
        raise CompileError(f"{name}: torch-mlir cannot import it: {first_line(error)}") from error
    names = [each.name for each in inferred.graph.input]
    text = importer.run(module, importer.FROM_ONNX, name)
    constants: dict[int | str, np.ndarray] = {i: weights[n] for i, n in enumerate(names) if n in weights}
    return text, constants, tuple(n for n in names if n not in weights)


def _take_weights(model: Any) -> dict[str, np.ndarray]:
    """Turn the large weights of a model into inputs; returns their contents by name."""
    graph = model.graph
    _transpose_weights(graph)
    own = {each.name for each in graph.initializer}
    # Old models list their weights among the inputs.
    inputs = [each for each in graph.input if each.name not in own]
    found: dict[str, np.ndarray] = {}
    small = []
    for each in graph.initializer:
        array = np.ascontiguousarray(numpy_helper.to_array(each))
        if array.size < THRESHOLD or array.dtype.kind not in "f":
            small.append(onnx.TensorProto.FromString(each.SerializeToString()))
            continue
        array.flags.writeable = False
        found[each.name] = array
        inputs.append(onnx.helper.make_tensor_value_info(each.name, each.data_type, list(each.dims)))
    copies = [onnx.ValueInfoProto.FromString(each.SerializeToString()) for each in inputs]
    del graph.input[:]
    graph.input.extend(copies)
    del graph.initializer[:]
    graph.initializer.extend(small)
    return found


def _transpose_weights(graph: Any) -> None:
    """Have every `Gemm` read its weights as a product does: those that it transposes are turned now."""
    weights = {each.name: each for each in graph.initializer}
    taken = dict.fromkeys(weights, 0)
    for node in graph.node:
        for name in node.input:
            if name in taken:
                taken[name] += 1
    for node in graph.node:
        flag = next((a for a in node.attribute if a.name == "transB" and a.i), None)
        if node.op_type == "Gemm" and flag is not None and taken.get(node.input[1]) == 1:
            each = weights[node.input[1]]
            array = np.ascontiguousarray(numpy_helper.to_array(each).T)
            each.CopyFrom(numpy_helper.from_array(array, each.name))
            flag.i = 0
