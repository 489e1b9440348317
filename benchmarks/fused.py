"""Goals that are several ops: attention, products of products, layers of perceptrons, beside the installed libraries.

All are called from Python, in turns. Weights of perceptrons are known ahead; everything else is an argument.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import morello_mlir

from .streaming import Call
from .streaming_peers import installed, onnx_call


@dataclass(frozen=True)
class Workload:
    """f32. kind: attention, causal (heads x length x size of a head); chain: (A @ B) @ C of n x n matrices; mlp:
    relu(x @ W + b), m x k x n."""

    kind: str
    sizes: tuple[int, ...]

    @property
    def label(self) -> str:
        return f"{self.kind} {'x'.join(map(str, self.sizes))}"

    @property
    def operations(self) -> int:
        """Of the products, masked or not."""
        if self.kind == "chain":
            return 4 * self.sizes[0] ** 3
        if self.kind == "mlp":
            return 2 * math.prod(self.sizes)
        heads, length, size = self.sizes
        return 4 * heads * length * length * size

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Of the inputs: q, k, v; A, B, C; x, W, b."""
        if self.kind == "mlp":
            m, k, n = self.sizes
            return (m, k), (k, n), (n,)
        return (self.sizes * 2 if self.kind == "chain" else self.sizes,) * 3


WORKLOADS = (
    *(Workload(kind, (12, n, 64)) for kind in ("attention", "causal") for n in (128, 1024)),
    *(Workload("chain", (n,)) for n in (64, 128, 256, 512, 1024)),
    *(Workload("mlp", (m, 768, 3072)) for m in (128, 1)),
)


# ---------------------------------------------------------------- ours


def tensor(*shape: int) -> str:
    return f"tensor<{'x'.join(map(str, shape))}xf32>"


def module(w: Workload) -> str:
    """A module on tensors with one function, @run, of the inputs."""
    types = [tensor(*s) for s in w.shapes]
    body, result = {"chain": _chain, "mlp": _mlp}.get(w.kind, _attention)(w)
    arguments = ", ".join(f"%x{i}: {t}" for i, t in enumerate(types))
    return f"func.func @run({arguments}) -> {result} {{\n%zero = arith.constant 0.0 : f32\n{body}}}\n"


def _filled(name: str, type_: str) -> str:
    return (
        f"%{name}e = tensor.empty() : {type_}\n"
        f"%{name}z = linalg.fill ins(%zero : f32) outs(%{name}e : {type_}) -> {type_}\n"
    )


def _product(name: str, op: str, lhs: tuple[str, str], rhs: tuple[str, str], out: str) -> str:
    return (
        _filled(name, out) + f"%{name} = linalg.{op} ins({lhs[0]}, {rhs[0]} : {lhs[1]}, {rhs[1]}) "
        f"outs(%{name}z : {out}) -> {out}\n"
    )


def _chain(w: Workload) -> tuple[str, str]:
    t = tensor(*w.shapes[0])
    first = _product("t", "matmul", ("%x0", t), ("%x1", t), t)
    return first + _product("y", "matmul", ("%t", t), ("%x2", t), t) + f"return %y : {t}\n", t


def _mlp(w: Workload) -> tuple[str, str]:
    m, k, n = w.sizes
    t = tensor(m, n)
    text = _product("t", "matmul", ("%x0", tensor(m, k)), ("%x1", tensor(k, n)), t)
    text += f"""%y = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>,
        affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}}
        ins(%t, %x2 : {t}, {tensor(n)}) outs(%te : {t}) {{
      ^bb0(%a: f32, %b: f32, %c: f32):
        %s = arith.addf %a, %b : f32
        %r = arith.maximumf %s, %zero : f32
        linalg.yield %r : f32
      }} -> {t}
    return %y : {t}\n"""
    return text, t


def _attention(w: Workload) -> tuple[str, str]:
    heads, length, size = w.sizes
    t, scores = tensor(*w.sizes), tensor(heads, length, length)
    transposed = (
        "batch_matmul indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, "
        "affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>]"
    )
    mask = """%i = linalg.index 1 : index
        %j = linalg.index 2 : index
        %seen = arith.cmpi sle, %j, %i : index
        %q = arith.select %seen, %p, %none : f32"""
    same = "affine_map<(h, i, j) -> (h, i, j)>"
    text = f"""%scale = arith.constant {1 / math.sqrt(size)} : f32
    %none = arith.constant 0xFF800000 : f32
    {_product("s", transposed, ("%x0", t), ("%x1", t), scores)}
    %m = linalg.generic {{indexing_maps = [{same}, {same}],
        iterator_types = ["parallel", "parallel", "parallel"]}} ins(%s : {scores}) outs(%se : {scores}) {{
      ^bb0(%a: f32, %c: f32):
        %p = arith.mulf %a, %scale : f32
        {mask if w.kind == "causal" else ""}
        linalg.yield {"%q" if w.kind == "causal" else "%p"} : f32
      }} -> {scores}
    %w = linalg.softmax dimension(2) ins(%m : {scores}) outs(%se : {scores}) -> {scores}
    {_product("y", "batch_matmul", ("%w", scores), ("%x2", t), t)}
    return %y : {t}\n"""
    return text, t


def ours(w: Workload, arrays: list[np.ndarray], threads: int, target: str) -> Call:
    constants = {1: arrays[1], 2: arrays[2]} if w.kind == "mlp" else None
    compiled = morello_mlir.compile(module(w), target=target, threads=threads, constants=constants)
    given = arrays[: 1 if constants else 3]
    return lambda: compiled.run(*given)


# ---------------------------------------------------------------- others


def numpy_of(w: Workload, arrays: list[np.ndarray]) -> np.ndarray:
    """The result, by numpy."""
    a, b, c = arrays
    if w.kind == "chain":
        return (a @ b) @ c
    if w.kind == "mlp":
        return np.maximum(a @ b + c, 0)
    scores = a @ b.transpose(0, 2, 1) / np.float32(math.sqrt(w.sizes[2]))
    if w.kind == "causal":
        scores = np.where(np.tri(w.sizes[1], dtype=bool), scores, np.float32(-np.inf))
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ c


def _numpy(w: Workload, arrays: list[np.ndarray], threads: int) -> Call | None:
    """Beside others where it is as they are: products alone."""
    return (lambda: numpy_of(w, arrays)) if w.kind == "chain" and threads == 1 else None


def _torch(w: Workload, arrays: list[np.ndarray], threads: int) -> Call | None:
    if not installed("torch"):
        return None
    import torch
    from torch.nn import functional

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    a, b, c = map(torch.from_numpy, arrays)
    if w.kind == "chain":
        return lambda: (a @ b) @ c
    if w.kind == "mlp":
        weight = b.t().contiguous()
        return lambda: functional.linear(a, weight, c).relu_()
    q, k, v = a[None], b[None], c[None]
    return lambda: functional.scaled_dot_product_attention(q, k, v, is_causal=w.kind == "causal")[0]


def _onnx(w: Workload, arrays: list[np.ndarray], threads: int) -> Call | None:
    if not installed("onnx", "onnxruntime"):
        return None
    from onnx import helper

    names, weights = ["a", "b", "c"], {}
    node = helper.make_node
    if w.kind == "chain":
        nodes = [node("MatMul", ["a", "b"], ["t"]), node("MatMul", ["t", "c"], ["y"])]
    elif w.kind == "mlp":
        nodes = [node("Gemm", names, ["t"]), node("Relu", ["t"], ["y"])]
        weights = {"b": arrays[1], "c": arrays[2]}
    elif w.kind == "attention":
        weights = {"scale": np.array(1 / math.sqrt(w.sizes[2]), np.float32)}
        nodes = [
            node("Transpose", ["b"], ["k"], perm=[0, 2, 1]),
            node("MatMul", ["a", "k"], ["s"]),
            node("Mul", ["s", "scale"], ["m"]),
            node("Softmax", ["m"], ["w"], axis=-1),
            node("MatMul", ["w", "c"], ["y"]),
        ]
    else:
        return None
    given = {n: a for n, a in zip(names, arrays, strict=True) if n not in weights}
    return onnx_call(nodes, given, weights, numpy_of(w, arrays).shape, threads)


def _xnnpack(w: Workload, arrays: list[np.ndarray], threads: int) -> Call | None:
    if w.kind != "mlp" or not installed("ai_edge_litert"):
        return None
    from ai_edge_litert import schema_py_generated as schema
    from ai_edge_litert.interpreter import Interpreter

    from .peers.adapters.xnnpack import _model

    options = schema.FullyConnectedOptionsT()
    options.fusedActivationFunction = schema.ActivationFunctionType.RELU
    weight = np.ascontiguousarray(arrays[1].T)
    shape = (w.sizes[0], w.sizes[2])
    tensors = [(arrays[0].shape, None), (weight.shape, weight), (arrays[2].shape, arrays[2]), (shape, None)]
    kind = (schema.BuiltinOperator.FULLY_CONNECTED, schema.BuiltinOptions.FullyConnectedOptions)
    content = _model(schema, tensors, kind, options, [0, 1, 2], [0])
    interpreter = Interpreter(model_content=content, num_threads=threads)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], arrays[0])
    return interpreter.invoke


def _jax(w: Workload, arrays: list[np.ndarray], threads: int) -> Call | None:
    if not installed("jax"):
        return None
    import jax
    import jax.numpy as jnp

    a, b, c = map(jnp.asarray, arrays)

    def attention(q: Any, k: Any, v: Any) -> Any:
        scores = jnp.einsum("hid,hjd->hij", q, k) / math.sqrt(w.sizes[2])
        if w.kind == "causal":
            scores = jnp.where(jnp.tri(w.sizes[1], dtype=bool), scores, -jnp.inf)
        return jnp.einsum("hij,hjd->hid", jax.nn.softmax(scores, axis=-1), v)

    functions: dict[str, Callable[[Any, Any, Any], Any]] = {
        "chain": lambda x, y, z: (x @ y) @ z,
        "mlp": lambda x, y, z: jax.nn.relu(x @ y + z),
    }
    compiled = jax.jit(functions.get(w.kind, attention))
    return lambda: compiled(a, b, c).block_until_ready()


PEERS: dict[str, Callable[[Workload, list[np.ndarray], int], Call | None]] = {
    "torch": _torch,
    "ONNX Runtime": _onnx,
    "XNNPACK": _xnnpack,
    "JAX": _jax,
    "numpy": _numpy,
}
LIBRARIES = ("ours", *PEERS)


def build(w: Workload, library: str, threads: int, target: str) -> Call | None:
    """A call of a library (one of LIBRARIES), or None. Raises AssertionError where our result is wrong."""
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(s).astype(np.float32) for s in w.shapes]
    if library != "ours":
        return PEERS[library](w, arrays, threads)
    own, want = ours(w, arrays, threads, target), numpy_of(w, arrays)
    np.testing.assert_allclose(own(), want, rtol=1e-4, atol=1e-4 * float(np.abs(want).max()), err_msg=w.label)
    return own


def labels() -> list[str]:
    """The names of the rows."""
    return [w.label for w in WORKLOADS]


def run(target: str, rounds: int, threads: int = 1, only: str = "") -> list[dict[str, Any]]:
    """Measures and prints the table: our time, and the others' over it. only: rows whose label contains it."""
    from .turns import measure

    out, best = [], []
    print(f"| {threads} thread{'s' * (threads > 1)} | us | GFLOP/s | {' | '.join(PEERS)} |")
    print(f"|---|---|---|{'---|' * len(PEERS)}")
    rows = {w.label: w for w in WORKLOADS if only in w.label}
    for label, took in measure("fused", list(rows), threads, target, rounds):
        if "ours" not in took:
            continue
        own = took["ours"]
        cells = [f"{took[n] / own:.2f}x" if n in took else "" for n in PEERS]
        print(
            f"| {label} | {1e6 * own:.1f} | {rows[label].operations / own / 1e9:.0f} | {' | '.join(cells)} |",
            flush=True,
        )
        out.append({"workload": label, "threads": threads, "seconds": took})
        best += [min(s for n, s in took.items() if n != "ours") / own] if len(took) > 1 else []
    if best:
        mean = math.exp(statistics.fmean(map(math.log, best)))
        print(f"\nbeside the best library of each row: geometric mean {mean:.2f}, worst {min(best):.2f}")
    return out
