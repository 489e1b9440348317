"""XNNPACK through LiteRT (distribution ai-edge-litert), called from Python."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..workloads import Data, Workload
from .base import Built, Peer, python_calls


class Xnnpack(Peer):
    """A graph of one FULLY_CONNECTED where the weight is known ahead, else of one BATCH_MATMUL."""

    name = "XNNPACK"
    module = "ai_edge_litert"
    distribution = "ai-edge-litert"

    def __init__(self) -> None:
        self._threads = 1

    def start(self, threads: int, isa: str) -> None:
        self._threads = threads

    def build(self, workload: Workload, data: Data) -> Built | None:
        from ai_edge_litert.interpreter import Interpreter

        if workload.types != ("f32",) * 3:
            return None
        model = _fully_connected(data) if workload.ahead else _batch_matmul(data)
        interpreter = Interpreter(model_content=model, num_threads=self._threads)
        interpreter.allocate_tensors()
        inputs, outputs = interpreter.get_input_details(), interpreter.get_output_details()
        for detail, array in zip(inputs, (data.lhs, data.rhs), strict=False):
            interpreter.set_tensor(detail["index"], array)

        def result(index: int = outputs[0]["index"]) -> Any:
            return interpreter.get_tensor(index)

        return Built(python_calls(interpreter.invoke), result, python=True)


def _fully_connected(data: Data) -> bytes:
    from ai_edge_litert import schema_py_generated as schema

    options = schema.FullyConnectedOptionsT()
    weight, bias = np.ascontiguousarray(data.rhs.T), np.zeros(data.workload.n, np.float32)
    tensors = [(data.lhs.shape, None), (weight.shape, weight), (bias.shape, bias), (data.out.shape, None)]
    kind = (schema.BuiltinOperator.FULLY_CONNECTED, schema.BuiltinOptions.FullyConnectedOptions)
    return _model(schema, tensors, kind, options, [0, 1, 2], [0])


def _batch_matmul(data: Data) -> bytes:
    from ai_edge_litert import schema_py_generated as schema

    tensors = [(data.lhs.shape, None), (data.rhs.shape, None), (data.out.shape, None)]
    kind = (schema.BuiltinOperator.BATCH_MATMUL, schema.BuiltinOptions.BatchMatMulOptions)
    return _model(schema, tensors, kind, schema.BatchMatMulOptionsT(), [0, 1], [0, 1])


def _model(schema: Any, tensors: Any, kind: tuple[int, int], options: Any, used: list[int], inputs: list[int]) -> bytes:
    """A flatbuffer with one op. tensors: (shape, contents or None); the last one is the result."""
    import flatbuffers

    graph, model = schema.SubGraphT(), schema.ModelT()
    graph.tensors, model.buffers = [], [schema.BufferT()]
    for number, (shape, contents) in enumerate(tensors):
        tensor = schema.TensorT()
        tensor.shape, tensor.type, tensor.name, tensor.buffer = list(shape), schema.TensorType.FLOAT32, f"t{number}", 0
        if contents is not None:
            buffer = schema.BufferT()
            buffer.data = np.frombuffer(contents.tobytes(), np.uint8)
            tensor.buffer = len(model.buffers)
            model.buffers.append(buffer)
        graph.tensors.append(tensor)
    code, op = schema.OperatorCodeT(), schema.OperatorT()
    code.builtinCode, code.deprecatedBuiltinCode, code.version = kind[0], min(kind[0], 127), 1
    op.opcodeIndex, op.inputs, op.outputs = 0, used, [len(tensors) - 1]
    op.builtinOptionsType, op.builtinOptions = kind[1], options
    graph.operators, graph.inputs, graph.outputs = [op], inputs, [len(tensors) - 1]
    model.version, model.description, model.operatorCodes, model.subgraphs = 3, "product", [code], [graph]
    builder = flatbuffers.Builder(1 << 16)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


PEERS = (Xnnpack(),)
