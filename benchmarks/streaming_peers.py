"""What `streaming` compares with: numpy, and the libraries that are installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .streaming import Call, Workload


def installed(*modules: str) -> bool:
    return all(map(importlib.util.find_spec, modules))


def numpy_of(w: Workload, x: np.ndarray, g: np.ndarray, h: np.ndarray) -> np.ndarray:
    """The result, by numpy. g, h: weights and biases of a normalisation."""
    if w.kind == "softmax":
        e = np.exp(x - x.max(1, keepdims=True))
        e /= e.sum(1, keepdims=True)
        return e
    if w.kind == "layernorm":
        d = x - x.mean(1, keepdims=True)
        return d / np.sqrt(np.mean(d * d, 1, keepdims=True) + 1e-5) * g + h
    if w.kind == "max_pool":
        return np.lib.stride_tricks.sliding_window_view(x, (3, 3), (1, 2))[:, ::2, ::2].max((3, 4))
    if w.kind.endswith("sum"):
        return x.sum(0 if w.kind == "column_sum" else 1)
    from morello_mlir.nests.evaluate import evaluate

    return evaluate(w.spec().body, [x], [])[0]


def _torch(w: Workload, x: np.ndarray, g: np.ndarray, h: np.ndarray, threads: int) -> Call | None:
    if not installed("torch"):
        return None
    import torch
    from torch.nn import functional

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    t, tg, th = map(torch.from_numpy, (x, g, h))
    out = torch.empty_like(t)
    functions: dict[str, Call] = {
        "softmax": lambda: torch.softmax(t, 1, out=out),
        "layernorm": lambda: functional.layer_norm(t, tg.shape, tg, th),
        "gelu": lambda: functional.gelu(t),
        "gelu_tanh": lambda: functional.gelu(t, approximate="tanh"),
        "tanh": lambda: torch.tanh(t),
        "row_sum": lambda: torch.sum(t, 1),
        "column_sum": lambda: torch.sum(t, 0),
        "middle_sum": lambda: torch.sum(t, 1),
        "max_pool": lambda: functional.max_pool2d(t, 3, 2),
    }
    return functions[w.kind]


def _xnnpack(w: Workload, x: np.ndarray, g: np.ndarray, h: np.ndarray, threads: int) -> Call | None:
    if w.kind != "softmax" or not installed("ai_edge_litert"):
        return None
    from ai_edge_litert import schema_py_generated as schema
    from ai_edge_litert.interpreter import Interpreter

    from .peers.adapters.xnnpack import _model

    options = schema.SoftmaxOptionsT()
    options.beta = 1.0
    kind = (schema.BuiltinOperator.SOFTMAX, schema.BuiltinOptions.SoftmaxOptions)
    content = _model(schema, [(x.shape, None), (x.shape, None)], kind, options, [0], [0])
    interpreter = Interpreter(model_content=content, num_threads=threads)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    return interpreter.invoke


def _onnx(w: Workload, x: np.ndarray, g: np.ndarray, h: np.ndarray, threads: int) -> Call | None:
    if not installed("onnx", "onnxruntime"):
        return None
    from onnx import helper

    weights: dict[str, np.ndarray] = {}
    if w.kind == "softmax":
        node = helper.make_node("Softmax", ["x"], ["y"], axis=1)
    elif w.kind == "layernorm":
        node = helper.make_node("LayerNormalization", ["x", "g", "h"], ["y"], axis=1, epsilon=1e-5)
        weights = {"g": g, "h": h}
    elif w.kind == "max_pool":
        node, x = helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[3, 3], strides=[2, 2]), x[None]
    elif w.kind in ("gelu", "gelu_tanh"):
        node = helper.make_node("Gelu", ["x"], ["y"], approximate="tanh" if w.kind == "gelu_tanh" else "none")
    elif w.kind == "tanh":
        node = helper.make_node("Tanh", ["x"], ["y"])
    else:
        return None
    shape = w.out_shape if w.kind != "max_pool" else (1, *w.out_shape)
    return onnx_call([node], {"x": x}, weights, shape, threads)


def onnx_call(
    nodes: Sequence[Any],
    inputs: dict[str, np.ndarray],
    weights: dict[str, np.ndarray],
    shape: Sequence[int],
    threads: int,
) -> Call:
    """ONNX Runtime on a graph of f32 `nodes`, whose output is called y and has this shape."""
    import onnxruntime as ort
    from onnx import TensorProto, helper, numpy_helper

    shapes = {**{n: a.shape for n, a in inputs.items()}, "y": shape}
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in shapes.items()]
    graph = helper.make_graph(
        nodes, "graph", values[:-1], values[-1:], [numpy_helper.from_array(a, n) for n, a in weights.items()]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for name, value in inputs.items():
        binding.bind_ortvalue_input(name, ort.OrtValue.ortvalue_from_numpy(value))
    binding.bind_ortvalue_output("y", ort.OrtValue.ortvalue_from_numpy(np.zeros(shape, np.float32)))
    return lambda: session.run_with_iobinding(binding)


def _jax(w: Workload, x: np.ndarray, g: np.ndarray, h: np.ndarray, threads: int) -> Call | None:
    if not installed("jax"):
        return None
    import jax
    import jax.numpy as jnp

    def norm(v: Any) -> Any:
        d = v - v.mean(1, keepdims=True)
        return d * jax.lax.rsqrt((d * d).mean(1, keepdims=True) + 1e-5) * g + h

    functions: dict[str, Callable[[Any], Any]] = {
        "softmax": lambda v: jax.nn.softmax(v, axis=1),
        "layernorm": norm,
        "gelu": lambda v: jax.nn.gelu(v, approximate=False),
        "gelu_tanh": lambda v: jax.nn.gelu(v, approximate=True),
        "tanh": jnp.tanh,
        "row_sum": lambda v: jnp.sum(v, 1),
        "column_sum": lambda v: jnp.sum(v, 0),
        "middle_sum": lambda v: jnp.sum(v, 1),
        "max_pool": lambda v: jax.lax.reduce_window(v, -jnp.inf, jax.lax.max, (1, 3, 3), (1, 2, 2), "VALID"),
    }
    on_device, compiled = jnp.asarray(x), jax.jit(functions[w.kind])
    return lambda: compiled(on_device).block_until_ready()


#: Name -> how to make a call of the library: None where it has no such op, or is not installed.
PEERS: dict[str, Callable[[Workload, np.ndarray, np.ndarray, np.ndarray, int], Call | None]] = {
    "torch": _torch,
    "XNNPACK": _xnnpack,
    "ONNX Runtime": _onnx,
    "JAX": _jax,
}
