"""An ONNX model with an open batch size, run with two batches."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import morello_mlir.frontends.onnx as frontend

random = np.random.default_rng(0)
weights = [
    numpy_helper.from_array(random.standard_normal(s, np.float32), n) for n, s in (("w", (30, 50)), ("b", (30,)))
]
nodes = [helper.make_node("Gemm", ["x", "w", "b"], ["y"], transB=1), helper.make_node("Relu", ["y"], ["z"])]
x, z = (helper.make_tensor_value_info(n, TensorProto.FLOAT, ["batch", s]) for n, s in (("x", 50), ("z", 30)))
graph = helper.make_graph(nodes, "layer", [x], [z], weights)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])

compiled = frontend.compile(model, threads=1)  # or the path of a file
for batch in (4, 7):
    data = random.standard_normal((batch, 50), np.float32)
    np.testing.assert_allclose(
        compiled(data), ReferenceEvaluator(model).run(None, {"x": data})[0], rtol=1e-4, atol=1e-5
    )
print(f"inputs {compiled.inputs}, outputs {compiled.outputs}: right")
