"""Convolutions of networks beside the installed libraries, in turn: `python -m benchmarks conv`.

With one thread all are in one process and timed by the processor's clock, so that others on the machine take nothing
off. With several each is in a process of its own that is stopped while the others run, since threads of some
libraries go on for a while after a call, and timed by the wall's clock: medians alone.
Inputs are padded inside of what is timed (`tensor.pad` in ours), filters are known ahead. A library that is not
installed is left out.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

#: Shortest sample, in seconds.
SAMPLE = 0.02


@dataclass(frozen=True)
class Conv:
    """A square image of `size` pixels with `c` channels, windows of `taps` pixels, padded so that the output has
    size / stride pixels. depthwise: every channel has a filter of its own."""

    layout: str
    size: int
    c: int
    f: int
    taps: int = 3
    stride: int = 1
    padded: bool = True
    depthwise: bool = False

    @property
    def label(self) -> str:
        stride = f" /{self.stride}" if self.stride > 1 else ""
        filters = "depthwise" if self.depthwise else f"{self.taps}x{self.taps}x{self.f}"
        taps = f" {self.taps}x{self.taps}" if self.depthwise else ""
        return f"{self.layout} {self.size}x{self.size}x{self.c}, {filters}{taps}{stride}"

    @property
    def pads(self) -> tuple[int, int]:
        """Before and after, as torch has them: the same on both sides."""
        return ((self.taps - 1) // 2,) * 2 if self.padded else (0, 0)

    @property
    def out(self) -> int:
        return (self.size + sum(self.pads) - self.taps) // self.stride + 1

    @property
    def operations(self) -> int:
        return 2 * self.out**2 * self.f * (1 if self.depthwise else self.c) * self.taps**2

    @property
    def filters(self) -> tuple[int, ...]:
        """The shape of the filters, as the layout has it."""
        window = (self.taps, self.taps)
        if self.depthwise:
            return (*window, self.c) if self.layout == "NHWC" else (self.c, *window)
        return (*window, self.c, self.f) if self.layout == "NHWC" else (self.f, self.c, *window)

    def for_torch(self, weight: np.ndarray) -> np.ndarray:
        """Filters as torch has them: [f, c of a group, h, w]."""
        if self.depthwise:
            return weight.transpose(2, 0, 1)[:, None] if self.layout == "NHWC" else weight[:, None]
        return weight.transpose(3, 2, 0, 1) if self.layout == "NHWC" else weight

    @property
    def groups(self) -> int:
        return self.c if self.depthwise else 1


CONVS = (
    *(Conv(layout, 56, 64, 64) for layout in ("NHWC", "NCHW")),
    *(Conv(layout, 14, 256, 256) for layout in ("NHWC", "NCHW")),
    *(Conv(layout, 224, 3, 64, 7, 2) for layout in ("NHWC", "NCHW")),
    *(Conv(layout, 56, 64, 256, 1) for layout in ("NHWC", "NCHW")),
    *(Conv(layout, 14, 1024, 256, 1) for layout in ("NHWC", "NCHW")),
    *(Conv(layout, 56, 256, 512, 1, 2) for layout in ("NHWC", "NCHW")),
    *(Conv(layout, 28, 256, 256, 3, 2) for layout in ("NHWC", "NCHW")),
    *(Conv(layout, 7, 512, 512) for layout in ("NHWC", "NCHW")),
    Conv("NHWC", 58, 64, 64, padded=False),
    *(Conv(layout, 112, 32, 32, depthwise=True) for layout in ("NHWC", "NCHW")),
    *(Conv(layout, 112, 96, 96, 3, 2, depthwise=True) for layout in ("NHWC", "NCHW")),
    *(Conv(layout, 56, 144, 144, depthwise=True) for layout in ("NHWC", "NCHW")),
    *(Conv(layout, 28, 192, 192, 5, depthwise=True) for layout in ("NHWC", "NCHW")),
    *(Conv(layout, 14, 384, 384, depthwise=True) for layout in ("NHWC", "NCHW")),
    *(Conv(layout, 7, 960, 960, depthwise=True) for layout in ("NHWC", "NCHW")),
)

Call = Callable[[], Any]


# ---------------------------------------------------------------- ours


def module_text(conv: Conv, weight: np.ndarray) -> str:
    """A function on tensors with the filters as a constant, as frontends write it."""
    n, c, before, after = conv.size, conv.c, *conv.pads
    wide = n + before + after
    if conv.layout == "NHWC":
        image, padded, out = (1, n, n, c), (1, wide, wide, c), (1, conv.out, conv.out, conv.f)
        low, high, op = (0, before, before, 0), (0, after, after, 0), "conv_2d_nhwc_hwcf"
        op = "depthwise_conv_2d_nhwc_hwc" if conv.depthwise else op
    else:
        image, padded, out = (1, c, n, n), (1, c, wide, wide), (1, conv.f, conv.out, conv.out)
        low, high, op = (0, 0, before, before), (0, 0, after, after), "conv_2d_nchw_fchw"
        op = "depthwise_conv_2d_nchw_chw" if conv.depthwise else op
    types = [f"tensor<{'x'.join(map(str, shape))}xf32>" for shape in (image, padded, weight.shape, out)]
    lows, highs = (", ".join(map(str, x)) for x in (low, high))
    pad = f"""%p = tensor.pad %a low[{lows}] high[{highs}] {{
      ^bb0(%i: index, %j: index, %k: index, %l: index):
        tensor.yield %z : f32
      }} : {types[0]} to {types[1]}"""
    return f"""
    func.func @conv(%a: {types[0]}) -> {types[3]} {{
      %z = arith.constant 0.0 : f32
      %w = arith.constant dense<"0x{weight.tobytes().hex()}"> : {types[2]}
      %e = tensor.empty() : {types[3]}
      %o = linalg.fill ins(%z : f32) outs(%e : {types[3]}) -> {types[3]}
      {pad if before + after else ""}
      %r = linalg.{op} {{strides = dense<{conv.stride}> : tensor<2xi64>}}
        ins(%{"p" if before + after else "a"}, %w : {types[1]}, {types[2]}) outs(%o : {types[3]}) -> {types[3]}
      return %r : {types[3]}
    }}"""


def ours(conv: Conv, image: np.ndarray, weight: np.ndarray, threads: int, target: str) -> Call:
    import morello_mlir

    compiled = morello_mlir.compile(module_text(conv, weight), target=target, threads=threads)
    out = np.empty_like(compiled.conv(image))
    return lambda: compiled.conv(image, out=out)


# ---------------------------------------------------------------- others: image and weight as the layout has them


def torch_(conv: Conv, image: np.ndarray, weight: np.ndarray, threads: int, target: str) -> Call:
    import torch

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    x, w = torch.from_numpy(image), torch.from_numpy(np.ascontiguousarray(conv.for_torch(weight)))
    if conv.layout == "NHWC":
        x, w = x.permute(0, 3, 1, 2), w.contiguous(memory_format=torch.channels_last)
    pads, strides = [conv.pads[0]] * 2, [conv.stride] * 2
    try:
        packed = torch.ops.mkldnn._reorder_convolution_weight(w, pads, strides, [1, 1], conv.groups, list(x.shape))
        call = torch.ops.mkldnn._convolution_pointwise
        arguments = (x, packed, None, pads, strides, [1, 1], conv.groups, "none", [], "")
    except (AttributeError, RuntimeError):
        call, arguments = torch.nn.functional.conv2d, (x, w, None, strides, pads, 1, conv.groups)
    permute = conv.layout == "NHWC"
    return lambda: call(*arguments).permute(0, 2, 3, 1) if permute else call(*arguments)


def onnxruntime_(conv: Conv, image: np.ndarray, weight: np.ndarray, threads: int, target: str) -> Call:
    import onnxruntime as ort
    from onnx import TensorProto, helper, numpy_helper

    if conv.layout != "NCHW":
        raise NotImplementedError
    out = (1, conv.f, conv.out, conv.out)
    pads = [conv.pads[0]] * 2 + [conv.pads[1]] * 2
    weight = np.ascontiguousarray(conv.for_torch(weight))
    node = helper.make_node("Conv", ["a", "w"], ["y"], strides=[conv.stride] * 2, pads=pads, group=conv.groups)
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("a", image.shape), ("y", out))]
    graph = helper.make_graph([node], "conv", values[:1], values[1:], [numpy_helper.from_array(weight, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    binding, result = session.io_binding(), ort.OrtValue.ortvalue_from_numpy(np.zeros(out, np.float32))
    binding.bind_ortvalue_input("a", ort.OrtValue.ortvalue_from_numpy(image))
    binding.bind_ortvalue_output("y", result)

    def call() -> Any:
        session.run_with_iobinding(binding)
        return result

    return call


def xnnpack(conv: Conv, image: np.ndarray, weight: np.ndarray, threads: int, target: str) -> Call:
    from ai_edge_litert import schema_py_generated as schema
    from ai_edge_litert.interpreter import Interpreter

    from benchmarks.peers.adapters import xnnpack as peer

    if conv.layout != "NHWC" or (conv.stride > 1 and conv.padded and conv.taps > 1):
        raise NotImplementedError  # its SAME pads otherwise than torch's where a stride leaves pixels over
    kind = (schema.BuiltinOperator.CONV_2D, schema.BuiltinOptions.Conv2DOptions)
    options = schema.Conv2DOptionsT()
    filters = weight if conv.depthwise else weight.transpose(3, 0, 1, 2)
    if conv.depthwise:
        kind = (schema.BuiltinOperator.DEPTHWISE_CONV_2D, schema.BuiltinOptions.DepthwiseConv2DOptions)
        options, filters = schema.DepthwiseConv2DOptionsT(), weight[None]
        options.depthMultiplier = 1
    options.padding = schema.Padding.SAME if conv.padded and conv.taps > 1 else schema.Padding.VALID
    options.strideW = options.strideH = conv.stride
    options.dilationWFactor = options.dilationHFactor = 1
    filters, bias = np.ascontiguousarray(filters), np.zeros(conv.f, np.float32)
    out = (1, conv.out, conv.out, conv.f)
    tensors = [(image.shape, None), (filters.shape, filters), (bias.shape, bias), (out, None)]
    model = peer._model(schema, tensors, kind, options, [0, 1, 2], [0])
    interpreter = Interpreter(model_content=model, num_threads=threads)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], image)
    index = interpreter.get_output_details()[0]["index"]

    class Result:
        def numpy(self) -> Any:
            return interpreter.get_tensor(index)

    def call() -> Any:
        interpreter.invoke()
        return Result()

    return call


def jax_(conv: Conv, image: np.ndarray, weight: np.ndarray, threads: int, target: str) -> Call:
    if threads == 1:
        os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    import jax

    names = ("NHWC", "HWIO", "NHWC") if conv.layout == "NHWC" else ("NCHW", "OIHW", "NCHW")
    if conv.depthwise:
        weight = weight[:, :, None] if conv.layout == "NHWC" else weight[:, None]
    w = jax.numpy.asarray(weight)

    def product(x: Any) -> Any:
        options = {"dimension_numbers": names, "feature_group_count": conv.groups}
        return jax.lax.conv_general_dilated(x, w, (conv.stride,) * 2, (conv.pads,) * 2, **options)

    x = jax.numpy.asarray(image)
    compiled = jax.jit(product).lower(x).compile()
    return lambda: compiled(x).block_until_ready()


def expected(conv: Conv, image: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """What all of them compute, from shifted views of the image."""
    last = conv.layout == "NHWC"
    pads, s, n = (conv.pads, conv.pads), conv.stride, conv.out
    wide = np.pad(image[0] if last else image[0].transpose(1, 2, 0), (*pads, (0, 0)))
    filters = conv.for_torch(weight).transpose(2, 3, 1, 0)
    total = np.zeros((n, n, conv.f), np.float32)
    for i, j in np.ndindex(conv.taps, conv.taps):
        part = wide[i:, j:][: (n - 1) * s + 1 : s, : (n - 1) * s + 1 : s]
        total += part * filters[i, j, 0] if conv.depthwise else part @ filters[i, j]
    return (total if last else total.transpose(2, 0, 1))[None]


PEERS = {"ours": ours, "torch": torch_, "ONNX Runtime": onnxruntime_, "XNNPACK": xnnpack, "JAX": jax_}


# ---------------------------------------------------------------- measuring


#: For `turns`.
WORKLOADS, LIBRARIES = CONVS, tuple(PEERS)


def build(conv: Conv, library: str, threads: int, target: str) -> Call | None:
    """A call of a library (one of LIBRARIES); None where it is not installed or does not have the convolution. Raises
    AssertionError where its result is wrong."""
    rng = np.random.default_rng(1)
    shape = (1, conv.size, conv.size, conv.c) if conv.layout == "NHWC" else (1, conv.c, conv.size, conv.size)
    image, weight = (rng.uniform(-0.5, 0.5, s).astype(np.float32) for s in (shape, conv.filters))
    try:
        call = PEERS[library](conv, image, weight, threads, target)
    except (ImportError, NotImplementedError):
        return None
    result = call()
    got = np.asarray(result.numpy() if hasattr(result, "numpy") else result)
    atol = 1e-5 * conv.c * conv.taps**2
    np.testing.assert_allclose(
        got, expected(conv, image, weight), atol=atol, rtol=1e-3, err_msg=f"{library}, {conv.label}"
    )
    return call


def sample(call: Call, clock: Callable[[], float]) -> float:
    """Seconds of a call, over at least SAMPLE seconds of them."""
    count, start = 0, clock()
    while (now := clock()) - start < SAMPLE or not count:
        call()
        count += 1
    return (now - start) / count


def labels() -> list[str]:
    """The names of the rows."""
    return [conv.label for conv in CONVS]


def run(
    target: str = "host", rounds: int = 9, threads: int = 1, only: str = "", names: str = "", window: Any = nullcontext
) -> list[dict[str, Any]]:
    """Measures and prints the table; GFLOP/s, median and (best) of the rounds, and ours over the best of the others.

    only: rows whose label contains it; names: of libraries. window: what to enter around the rounds of a row.
    """
    chosen = [n for n in PEERS if not names or n in names.split(",")]
    print(f"| convolution, {threads} thread{'s' * (threads > 1)} | {' | '.join(chosen)} | ours / best |")
    print("|---" * (len(chosen) + 2) + "|")
    rows = []
    wanted = [conv for conv in CONVS if only in conv.label]
    for conv, times in (_together if threads == 1 else _apart)(wanted, chosen, threads, target, rounds, window):
        amount = conv.operations / 1e9
        speed = {n: (amount / statistics.median(t), amount / min(t)) for n, t in times.items()}
        cells = [f"{speed[n][0]:.0f} ({speed[n][1]:.0f})" if n in speed else "" for n in chosen]
        label = f"{conv.label}{'' if conv.padded else ', not padded'}"
        print(f"| {label} | {' | '.join(cells)} | {_ratio(speed)} |", flush=True)
        rows.append({"conv": label, "gflops": speed})
    return rows


#: A convolution, and seconds a call of every library that has it.
_Timed = Iterator[tuple[Conv, dict[str, list[float]]]]


def _together(wanted: list[Conv], names: list[str], threads: int, target: str, rounds: int, window: Any) -> _Timed:
    """All in this process."""
    for conv in wanted:
        calls = {n: call for n in names if (call := build(conv, n, threads, target)) is not None}
        times: dict[str, list[float]] = {name: [] for name in calls}
        with window():
            for _ in range(rounds):
                for name, call in calls.items():
                    times[name].append(sample(call, time.process_time))
        yield conv, times


def _apart(wanted: list[Conv], names: list[str], threads: int, target: str, rounds: int, window: Any) -> _Timed:
    """Each library in a process of its own; medians."""
    from .turns import measure

    by_label = {conv.label: conv for conv in wanted}
    with window():
        for label, took in measure("conv", list(by_label), threads, target, rounds):
            yield by_label[label], {name: [took[name]] for name in names if name in took}


def _ratio(speed: dict[str, tuple[float, float]]) -> str:
    """Ours over the best of the others, by medians and by best rounds."""
    others = [s for n, s in speed.items() if n != "ours"]
    if not others or "ours" not in speed:
        return ""
    return "{:.2f} ({:.2f})".format(*(speed["ours"][i] / max(s[i] for s in others) for i in (0, 1)))
