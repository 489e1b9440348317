"""Softmax, layer normalisation, reductions, elementwise chains beside numpy and every installed library, interleaved.

All are called from Python; what a call costs is part of it for all. Inputs start at pages; outputs some lines behind
one, since a load waits for an earlier store whose address agrees in the last twelve bits.
"""

from __future__ import annotations

import importlib.util
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import morello_mlir
from morello_mlir.aligned import PAGE, aligned
from morello_mlir.nests import NestSpec

Call = Callable[[], Any]

_SOFTMAX = "m = max(x0); e = exp(sub(x0, m)); s = sum(e); y = div(e, s)"
_NORM = (
    "a = div(sum(x0), {n}.0:f32); d = sub(x0, a); v = div(sum(mul(d, d)), {n}.0:f32);"
    "y = add(mul(mul(d, rsqrt(add(v, 1e-05:f32))), x1), x2)"
)
_GELU = "y = mul(mul(x0, 0.5:f32), add(erf(mul(x0, 0.70710677:f32)), 1.0:f32))"


@dataclass(frozen=True)
class Workload:
    """f32, rows x cols, row-major. kind: softmax, layernorm, row_sum, column_sum, gelu."""

    kind: str
    rows: int
    cols: int

    @property
    def label(self) -> str:
        return f"{self.kind} {self.rows}x{self.cols}"

    @property
    def bytes(self) -> int:
        """What has to be read or written at least."""
        return 4 * self.rows * self.cols * (1 if self.kind.endswith("sum") else 2)

    @property
    def spec(self) -> NestSpec:
        n = self.cols
        x, row, col = f"(f32, GL, [{n}, 1])", "(f32, GL, [1, 0])", "(f32, GL, [0, 1])"
        text = {
            "softmax": f'Softmax([{self.rows}, {n} scan], {x}, {x}, "{_SOFTMAX}", serial)',
            "layernorm": f'Compose([{self.rows}, {n} scan], {x}, {col}, {col}, {x}, "{_NORM.format(n=n)}", serial)',
            "row_sum": f'Reduce([{self.rows}, {n} scan], {x}, {row}, "y = sum(x0)", serial)',
            "column_sum": f'Reduce([{self.rows} scan, {n}], {x}, {col}, "y = sum(x0)", serial)',
            "gelu": f'Map([{self.rows}, {n}], {x}, {x}, "{_GELU}", serial)',
        }
        return NestSpec.parse(text[self.kind])


WORKLOADS = (
    *(Workload("softmax", rows, cols) for cols in (512, 2048, 8192, 65536, 524288) for rows in (1, 8, 32)),
    *(Workload(*w) for w in (("softmax", 37, 1000), ("layernorm", 128, 768), ("layernorm", 1024, 1024))),
    *(Workload(*w) for w in (("row_sum", 1024, 1024), ("column_sum", 1024, 1024), ("gelu", 128, 3072))),
)


def module(spec: NestSpec) -> str:
    """A module with one function, @run, of the operands of a nest as flat memrefs."""
    types = [f"memref<{o.span(spec.dims)}x{o.dtype}>" for o in spec.operands]
    names = [f"%a{i}" for i in range(len(types))]
    arguments = ", ".join(f"{n}: {t}" for n, t in zip(names, types, strict=True))
    scan = ": " + ", ".join(map(str, spec.scan_dims)) if spec.scan_dims else ""
    operands = ", ".join(f'"{o}"' for o in spec.operands)
    return f"""func.func @run({arguments}) {{
  "morello.nest{len(types)}"({", ".join(names)}) {{
    function = "{spec.function}", dims = array<i64: {", ".join(map(str, spec.dims))}>, scan = array<i64{scan}>,
    operands = [{operands}], body = "{spec.body}", serial
  }} : ({", ".join(types)}) -> ()
  return
}}"""


def _array(*shape: int, behind: int = 0) -> np.ndarray:
    """An array `behind` bytes behind the start of a page."""
    size = 4 * int(np.prod(shape))
    return aligned(size + behind, PAGE)[behind:].view(np.float32).reshape(shape)


def calls(w: Workload, target: str) -> Mapping[str, Call]:
    """Our code, numpy, and what is installed: each does the same. Raises AssertionError where a result is wrong."""
    x = _array(w.rows, w.cols)
    x[:] = np.random.default_rng(0).normal(size=x.shape)
    g, h = np.full(w.cols, 1.5, np.float32), np.full(w.cols, 0.5, np.float32)
    out = _array(*{"row_sum": (w.rows,), "column_sum": (w.cols,)}.get(w.kind, x.shape), behind=1088)
    compiled = morello_mlir.compile(module(w.spec), target=target, threads=1)
    more = (g, h) if w.kind == "layernorm" else ()
    flat = [a.reshape(-1) for a in (x, *more, out)]
    found: dict[str, Call] = {"morello": lambda: compiled.run(*flat), "numpy": lambda: _numpy(w, x, g, h)}
    for name, make in (("torch", _torch), ("XNNPACK", _xnnpack), ("ONNX Runtime", _onnx), ("JAX", _jax)):
        call = make(w, x, g, h)
        if call is not None:
            found[name] = call
    found["morello"]()
    np.testing.assert_allclose(out, _numpy(w, x, g, h), rtol=1e-4, atol=1e-4 * (w.rows if w.kind[-3:] == "sum" else 1))
    return found


def _numpy(w: Workload, x: np.ndarray, g: np.ndarray, h: np.ndarray) -> np.ndarray:
    if w.kind == "softmax":
        e = np.exp(x - x.max(1, keepdims=True))
        e /= e.sum(1, keepdims=True)
        return e
    if w.kind == "layernorm":
        d = x - x.mean(1, keepdims=True)
        return d / np.sqrt(np.mean(d * d, 1, keepdims=True) + 1e-5) * g + h
    if w.kind == "gelu":
        from morello_mlir.nests.evaluate import evaluate

        return evaluate(w.spec.body, [x], [])[0]
    return x.sum(1 if w.kind == "row_sum" else 0)


def _torch(w: Workload, x: np.ndarray, g: np.ndarray, h: np.ndarray) -> Call | None:
    if not importlib.util.find_spec("torch"):
        return None
    import torch

    torch.set_num_threads(1)
    t, tg, th = map(torch.from_numpy, (x, g, h))
    out = torch.empty_like(t)
    functions: dict[str, Call] = {
        "softmax": lambda: torch.softmax(t, 1, out=out),
        "layernorm": lambda: torch.nn.functional.layer_norm(t, (w.cols,), tg, th),
        "gelu": lambda: torch.nn.functional.gelu(t),
        "row_sum": lambda: torch.sum(t, 1),
        "column_sum": lambda: torch.sum(t, 0),
    }
    return functions[w.kind]


def _xnnpack(w: Workload, x: np.ndarray, g: np.ndarray, h: np.ndarray) -> Call | None:
    if w.kind != "softmax" or not importlib.util.find_spec("ai_edge_litert"):
        return None
    from ai_edge_litert import schema_py_generated as schema
    from ai_edge_litert.interpreter import Interpreter

    from .peers.adapters.xnnpack import _model

    options = schema.SoftmaxOptionsT()
    options.beta = 1.0
    kind = (schema.BuiltinOperator.SOFTMAX, schema.BuiltinOptions.SoftmaxOptions)
    content = _model(schema, [(x.shape, None), (x.shape, None)], kind, options, [0], [0])
    interpreter = Interpreter(model_content=content, num_threads=1)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    return interpreter.invoke


def _onnx(w: Workload, x: np.ndarray, g: np.ndarray, h: np.ndarray) -> Call | None:
    if w.kind not in ("softmax", "layernorm") or not all(map(importlib.util.find_spec, ("onnx", "onnxruntime"))):
        return None
    import onnxruntime as ort
    from onnx import TensorProto, helper, numpy_helper

    if w.kind == "softmax":
        node = helper.make_node("Softmax", ["x"], ["y"], axis=1)
    else:
        node = helper.make_node("LayerNormalization", ["x", "g", "h"], ["y"], axis=1, epsilon=1e-5)
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, x.shape) for n in "xy"]
    weights = [numpy_helper.from_array(a, n) for a, n in ((g, "g"), (h, "h"))] if w.kind == "layernorm" else []
    graph = helper.make_graph([node], "one", values[:1], values[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", ort.OrtValue.ortvalue_from_numpy(x))
    binding.bind_ortvalue_output("y", ort.OrtValue.ortvalue_from_numpy(np.empty_like(x)))
    return lambda: session.run_with_iobinding(binding)


def _jax(w: Workload, x: np.ndarray, g: np.ndarray, h: np.ndarray) -> Call | None:
    if not importlib.util.find_spec("jax"):
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
        "row_sum": lambda v: jnp.sum(v, 1),
        "column_sum": lambda v: jnp.sum(v, 0),
    }
    on_device, compiled = jnp.asarray(x), jax.jit(functions[w.kind])
    return lambda: compiled(on_device).block_until_ready()


def timed(found: Mapping[str, Call], rounds: int, seconds: float = 0.01) -> dict[str, float]:
    """Seconds per call of each, the median of rounds in turns."""
    repeats = {}
    for name, call in found.items():
        call()
        start = time.perf_counter()
        call()
        repeats[name] = max(1, round(seconds / max(time.perf_counter() - start, 1e-7)))
    samples: dict[str, list[float]] = {name: [] for name in found}
    for _ in range(rounds):
        for name, call in found.items():
            start = time.perf_counter()
            for _ in range(repeats[name]):
                call()
            samples[name].append((time.perf_counter() - start) / repeats[name])
    return {name: statistics.median(values) for name, values in samples.items()}


def run(target: str, rounds: int) -> list[dict[str, Any]]:
    out = []
    names = ("numpy", "torch", "XNNPACK", "ONNX Runtime", "JAX")
    print(f"| workload | us | GB/s | {' | '.join(names)} |\n|---|---|---|{'---|' * len(names)}")
    for w in WORKLOADS:
        took = timed(calls(w, target), rounds)
        own = took["morello"]
        cells = [f"{took[n] / own:.2f}x" if n in took else "" for n in names]
        print(f"| {w.label} | {1e6 * own:.2f} | {w.bytes / own / 1e9:.1f} | {' | '.join(cells)} |", flush=True)
        out.append({"workload": w.label, "seconds": took, "bytes": w.bytes})
    return out
