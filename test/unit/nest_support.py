"""Running schedules of nests in NumPy: loops and rewrites as they say, leaves by the reference."""

import numpy as np

from morello_mlir.nests import NestSpec
from morello_mlir.nests.actions import rewritten
from morello_mlir.nests.ops import numpy_type
from morello_mlir.search.nest_steps import Partial, Rows
from morello_mlir.search.schedule import Parallel, Tile, children

SOFTMAX = "m = max(x0); e = exp(sub(x0, m)); s = sum(e); y = div(e, s)"
NORM = (
    "a = div(sum(x0), {n}.0:f32); d = sub(x0, a); v = div(sum(mul(d, d)), {n}.0:f32);"
    "y = add(mul(mul(d, rsqrt(add(v, 1e-05:f32))), x1), x2)"
)


def softmax(rows, cols, threading="serial"):
    return NestSpec.parse(
        f'Softmax([{rows}, {cols} scan], (f32, GL, [{cols}, 1]), (f32, GL, [{cols}, 1]), "{SOFTMAX}", {threading})'
    )


def layernorm(rows, cols, threading="serial"):
    full, row = f"(f32, GL, [{cols}, 1])", "(f32, GL, [0, 1])"
    body = NORM.format(n=cols)
    return NestSpec.parse(f'Compose([{rows}, {cols} scan], {full}, {row}, {row}, {full}, "{body}", {threading})')


def columns(rows, cols, threading="serial"):
    """Sums of columns."""
    return NestSpec.parse(
        f'Reduce([{cols}, {rows} scan], (f32, GL, [1, {cols}]), (f32, GL, [1, 0]), "y = sum(x0)", {threading})'
    )


def depthwise(h, w, c, k=3, threading="serial"):
    """A depthwise convolution of an image of channels-last (h + k - 1) x (w + k - 1) x c with k x k x c."""
    wide = w + k - 1
    x = f"(f32, GL, [{wide * c}, {c}, 1, {wide * c}, {c}])"
    f = f"(f32, GL, [0, 0, 1, {k * c}, {c}])"
    y = f"(f32, GL, [{w * c}, {c}, 1, 0, 0])"
    return NestSpec.parse(
        f'Reduce([{h}, {w}, {c}, {k} scan, {k} scan], {x}, {f}, {y}, "y = sum(mul(x0, x1))", {threading})'
    )


def run(spec, node, target, arrays):
    """What the schedule `node` writes: the flat buffers of the outputs. arrays: flat inputs."""
    buffers = [np.array(a).reshape(-1) for a in arrays]
    for o in spec.outputs:
        shared = o.alias is not None
        buffers.append(buffers[o.alias] if shared else np.full(o.span(spec.dims), 77, numpy_type(o.dtype)))
    _run(spec, node, target, [(b, 0) for b in buffers])
    return buffers[len(spec.inputs) :]


def _run(spec, node, target, places):
    step = rewritten(spec, node, target)
    if isinstance(node, Rows):
        _leaf(spec, places)
        return
    scratch = [(np.full(b.elements, 55, numpy_type(b.dtype)), 0) for b in step.buffers]
    for child, body in zip(step.children, children(node), strict=True):
        own = [scratch[s.scratch] if s.operand is None else places[s.operand] for s in child.sources]
        own = [(b, at + s.offset) for (b, at), s in zip(own, child.sources, strict=True)]
        loop = isinstance(node, (Tile, Parallel))
        for trip in range(child.count):
            move = trip * node.size if loop else 0
            steps = [o.strides[int(node.dim[1:])] * move if loop else 0 for o in child.spec.operands]
            _run(child.spec, body, target, [(b, at + s) for (b, at), s in zip(own, steps, strict=True)])


def _leaf(spec, places):
    """`spec.evaluate`, on buffers from their offsets on."""
    ins = [b[at:] for b, at in places[: len(spec.inputs)]]
    for k, out in enumerate(spec.evaluate(ins)):
        buffer, at = places[len(spec.inputs) + k]
        strides = spec.outputs[k].strides
        for point in np.ndindex(out.shape):
            buffer[at + sum(i * s for i, s in zip(point, strides, strict=True))] = out[point]


def want(spec, arrays):
    """The flat buffers of the outputs, by the reference."""
    out = []
    for k, values in enumerate(spec.evaluate(arrays)):
        buffer = np.full(spec.outputs[k].span(spec.dims), 77, numpy_type(spec.outputs[k].dtype))
        for point in np.ndindex(values.shape):
            buffer[sum(i * s for i, s in zip(point, spec.outputs[k].strides, strict=True))] = values[point]
        out.append(buffer)
    return out


__all__ = ["Partial", "columns", "depthwise", "layernorm", "run", "softmax", "want"]
