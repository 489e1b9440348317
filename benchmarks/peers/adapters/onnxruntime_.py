"""ONNX Runtime's CPU provider, called from Python with its buffers bound."""

from __future__ import annotations

import importlib.util
from functools import partial
from typing import Any

import numpy as np

from ..workloads import Data, Workload
from .base import Built, Peer, python_calls

_OPSET, _IR_VERSION = 17, 8


class OnnxRuntime(Peer):
    """A graph of one MatMul, or MatMulInteger; the weight is an initialiser where it is known ahead."""

    name = "ONNX Runtime"
    module = "onnxruntime"

    def __init__(self) -> None:
        self._threads = 1

    def available(self) -> bool:
        return super().available() and importlib.util.find_spec("onnx") is not None

    def start(self, threads: int, isa: str) -> None:
        self._threads = threads

    def build(self, workload: Workload, data: Data) -> Built | None:
        import onnxruntime as ort

        op = {("f32",) * 3: "MatMul", ("f64",) * 3: "MatMul", ("u8", "i8", "i32"): "MatMulInteger"}.get(workload.types)
        if op is None:
            return None
        # Bytes are multiplied fast only where the weight is known.
        constant = workload.ahead or op == "MatMulInteger"
        options = ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = self._threads, 1
        model = _model(op, data, constant)
        session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        binding = session.io_binding()
        result = ort.OrtValue.ortvalue_from_numpy(data.out)
        binding.bind_ortvalue_input("a", ort.OrtValue.ortvalue_from_numpy(data.lhs))
        if not constant:
            binding.bind_ortvalue_input("b", ort.OrtValue.ortvalue_from_numpy(data.rhs))
        binding.bind_ortvalue_output("y", result)
        call = partial(session.run_with_iobinding, binding)
        note = "weight packed ahead" if constant else ""
        return Built(python_calls(call), result.numpy, python=True, note=note)


def _model(op: str, data: Data, constant: bool) -> bytes:
    from onnx import TensorProto, helper, numpy_helper

    types = {"float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE, "uint8": TensorProto.UINT8}
    types |= {"int8": TensorProto.INT8, "int32": TensorProto.INT32}

    def value(name: str, array: Any) -> Any:
        return helper.make_tensor_value_info(name, types[array.dtype.name], array.shape)

    inputs = [value("a", data.lhs)] + ([] if constant else [value("b", data.rhs)])
    weights = [numpy_helper.from_array(np.ascontiguousarray(data.rhs), "b")] if constant else []
    node = helper.make_node(op, ["a", "b"], ["y"])
    graph = helper.make_graph([node], "product", inputs, [value("y", data.out)], weights)
    opset = [helper.make_opsetid("", _OPSET)]
    serialized: bytes = helper.make_model(graph, opset_imports=opset, ir_version=_IR_VERSION).SerializeToString()
    return serialized


PEERS = (OnnxRuntime(),)
