"""Programs on tensors with convolutions, pads and what follows them, compiled and run."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from conv_support import conv_of
from lowering_support import NUMPY, needs

from morello_mlir import compile as compiled


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "i8"])
@pytest.mark.parametrize(("low", "high"), [((1, 2, 0), (1, 0, 0)), ((0, 3, 1), (2, 1, 2)), ((0, 0, 0), (0, 1, 0))])
def test_padding(dtype: str, low: tuple[int, ...], high: tuple[int, ...]) -> None:
    """Every element of a padded tensor, rows of many lengths."""
    shape = (3, 5, 37)
    out = tuple(n + a + b for n, a, b in zip(shape, low, high, strict=True))
    kinds = [f"tensor<{'x'.join(map(str, s))}x{dtype}>" for s in (shape, out)]
    zero = "7" if dtype == "i8" else "7.0"
    text = f"""func.func @f(%a: {kinds[0]}) -> {kinds[1]} {{
      %z = arith.constant {zero} : {dtype}
      %p = tensor.pad %a low{list(low)} high{list(high)} {{
      ^bb0(%i: index, %j: index, %k: index):
        tensor.yield %z : {dtype}
      }} : {kinds[0]} to {kinds[1]}
      return %p : {kinds[1]}
    }}"""
    image = np.random.default_rng(0).integers(-9, 9, shape).astype(NUMPY[dtype])
    want = np.pad(image, list(zip(low, high, strict=True)), constant_values=7)
    np.testing.assert_array_equal(np.asarray(compiled(text, threads=1).f(image)), want)


@pytest.mark.parametrize("target", ["avx2", "avx512"])
@pytest.mark.parametrize("stride", [1, 2])
def test_channels_first_with_what_follows(target: str, stride: int) -> None:
    """Exchanged, the tile is transposed before anything is done to it: a bias along channels, a residual, a cast."""
    needs(target)
    rng = np.random.default_rng(0)
    size, out = 15, (15 - 3) // stride + 1
    shapes = ((1, 5, size, size), (37, 5, 3, 3), (37,), (1, 37, out, out))
    image, weight, bias, more = (rng.standard_normal(s, np.float32) for s in shapes)
    kinds = [f"tensor<{'x'.join(map(str, s))}xf32>" for s in shapes]
    text = f"""func.func @f(%a: {kinds[0]}, %w: {kinds[1]}, %b: {kinds[2]}, %m: {kinds[3]}) -> {kinds[3]} {{
      %z = arith.constant 0.0 : f32
      %e = tensor.empty() : {kinds[3]}
      %o = linalg.fill ins(%z : f32) outs(%e : {kinds[3]}) -> {kinds[3]}
      %r = linalg.conv_2d_nchw_fchw {{morello.schedule = ["exchange", "?"], strides = dense<{stride}> : tensor<2xi64>}}
        ins(%a, %w : {kinds[0]}, {kinds[1]}) outs(%o : {kinds[3]}) -> {kinds[3]}
      %s = linalg.generic {{
        indexing_maps = [affine_map<(n, f, h, w) -> (n, f, h, w)>, affine_map<(n, f, h, w) -> (f)>,
                         affine_map<(n, f, h, w) -> (n, f, h, w)>, affine_map<(n, f, h, w) -> (n, f, h, w)>],
        iterator_types = ["parallel", "parallel", "parallel", "parallel"]}}
        ins(%r, %b, %m : {kinds[3]}, {kinds[2]}, {kinds[3]}) outs(%e : {kinds[3]}) {{
      ^bb0(%x: f32, %y: f32, %u: f32, %v: f32):
        %t = arith.addf %x, %y : f32
        %q = arith.addf %t, %u : f32
        %p = arith.maximumf %q, %z : f32
        linalg.yield %p : f32
      }} -> {kinds[3]}
      return %s : {kinds[3]}
    }}"""
    module = compiled(text, constants={1: weight, 2: bias}, target=target, threads=1, memo="off")
    got = np.asarray(module.f(image, more))
    spec = next(s for s in module.specs if s["function"] == "Matmul")
    assert "\nexchange\n" in "\n" + str(spec["schedule"]) and "then" in str(spec["spec"])
    sums = sum(
        np.einsum("chw,fc->fhw", image[0, :, i:, j:][:, : stride * out : stride, : stride * out : stride],
                  weight[:, :, i, j])
        for i in range(3) for j in range(3)
    )  # fmt: skip
    want = np.maximum(sums + bias[:, None, None] + more[0], 0)
    np.testing.assert_allclose(got[0], want, rtol=1e-4, atol=1e-4)


def test_padded_convolution_with_what_follows() -> None:
    """Padding, filters that are constant, bias and activation, on two threads: what a network has."""
    rng = np.random.default_rng(0)
    image, weight, bias = (rng.standard_normal(s, np.float32) for s in ((1, 6, 4, 3), (3, 3, 3, 8), (8,)))
    text = """func.func @f(%a: tensor<1x6x4x3xf32>, %w: tensor<3x3x3x8xf32>, %b: tensor<8xf32>)
        -> tensor<1x6x4x8xf32> {
      %z = arith.constant 0.0 : f32
      %p = tensor.pad %a low[0, 1, 1, 0] high[0, 1, 1, 0] {
      ^bb0(%i: index, %j: index, %k: index, %l: index):
        tensor.yield %z : f32
      } : tensor<1x6x4x3xf32> to tensor<1x8x6x3xf32>
      %e = tensor.empty() : tensor<1x6x4x8xf32>
      %o = linalg.fill ins(%z : f32) outs(%e : tensor<1x6x4x8xf32>) -> tensor<1x6x4x8xf32>
      %r = linalg.conv_2d_nhwc_hwcf ins(%p, %w : tensor<1x8x6x3xf32>, tensor<3x3x3x8xf32>)
        outs(%o : tensor<1x6x4x8xf32>) -> tensor<1x6x4x8xf32>
      %s = linalg.generic {
        indexing_maps = [affine_map<(n, h, w, f) -> (n, h, w, f)>, affine_map<(n, h, w, f) -> (f)>,
                         affine_map<(n, h, w, f) -> (n, h, w, f)>],
        iterator_types = ["parallel", "parallel", "parallel", "parallel"]
      } ins(%r, %b : tensor<1x6x4x8xf32>, tensor<8xf32>) outs(%e : tensor<1x6x4x8xf32>) {
      ^bb0(%x: f32, %y: f32, %w0: f32):
        %t = arith.addf %x, %y : f32
        %u = arith.maximumf %t, %z : f32
        linalg.yield %u : f32
      } -> tensor<1x6x4x8xf32>
      return %s : tensor<1x6x4x8xf32>
    }"""
    program = compiled(text, threads=2, constants={1: weight})
    conv = conv_of(0, c=3, f=8, h=6, w=4)
    want = np.maximum(conv.reference(np.pad(image, ((0, 0), (1, 1), (1, 1), (0, 0))), weight) + bias, 0)
    np.testing.assert_allclose(program.f(image, bias), want, rtol=1e-4, atol=1e-4)
    (spec,) = (s["spec"] for s in program.specs if s["spec"].startswith("Matmul"))
    assert "const" in spec and "lap" in spec and "then" in spec


#: Depthwise convolutions of padded images: form, sizes (n, h, w, c), borders (before, after) along h and w, window,
#: stride, dilation.
PADS = [
    ("depthwise_conv_2d_nhwc_hwc", (1, 9, 7, 20), ((1, 1), (1, 1)), 3, 1, 1),
    ("depthwise_conv_2d_nchw_chw", (2, 7, 7, 5), ((1, 1), (1, 1)), 3, 1, 1),
    ("depthwise_conv_2d_nhwc_hwc", (1, 61, 50, 48), ((1, 1), (1, 1)), 3, 1, 1),
    ("depthwise_conv_2d_nhwc_hwc", (2, 40, 41, 48), ((0, 1), (2, 0)), 3, 2, 1),
    ("depthwise_conv_2d_nhwc_hwc", (1, 57, 52, 48), ((4, 4), (2, 6)), 5, 1, 2),
    ("depthwise_conv_2d_nchw_chw", (1, 55, 49, 53), ((1, 1), (1, 1)), 3, 1, 1),
    ("depthwise_conv_2d_nchw_chw", (3, 71, 64, 9), ((2, 1), (1, 2)), 3, 2, 1),
]


@pytest.mark.parametrize(("form", "sizes", "pads", "taps", "stride", "dilation"), PADS)
@pytest.mark.parametrize("follow", [False, True])
def test_padded_images_are_not_made(form, sizes, pads, taps, stride, dilation, follow) -> None:
    n, h, w, c = sizes
    first = "nchw" in form
    reach = (taps - 1) * dilation + 1
    oh, ow = ((x + sum(p) - reach) // stride + 1 for x, p in zip((h, w), pads, strict=True))

    def shaped(*sizes: int) -> str:
        n, h, w, c = sizes
        return "x".join(map(str, (n, c, h, w) if first else sizes)) + "xf32"

    low, high = ((0, 0, *p) if first else (0, *p, 0) for p in zip(*pads, strict=True))
    image, padded, out = (
        f"tensor<{shaped(*s)}>" for s in (sizes, (n, h + sum(pads[0]), w + sum(pads[1]), c), (n, oh, ow, c))
    )
    filters = f"tensor<{f'{c}x{taps}x{taps}' if first else f'{taps}x{taps}x{c}'}xf32>"
    last = f"""%s = linalg.generic {{indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>,
          affine_map<(a, b, c, d) -> (a, b, c, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}}
          ins(%r : {out}) outs(%e : {out}) {{
        ^bb0(%x: f32, %y: f32):
          %t = arith.maximumf %x, %z : f32
          linalg.yield %t : f32
        }} -> {out}"""
    text = f"""func.func @f(%a: {image}, %w: {filters}) -> {out} {{
      %z = arith.constant 0.0 : f32
      %two = arith.constant 2.0 : f32
      %p = tensor.pad %a low{list(low)} high{list(high)} {{
      ^bb0(%i: index, %j: index, %k: index, %l: index):
        tensor.yield %two : f32
      }} : {image} to {padded}
      %e = tensor.empty() : {out}
      %o = linalg.fill ins(%z : f32) outs(%e : {out}) -> {out}
      %r = linalg.{form} {{strides = dense<{stride}> : tensor<2xi64>, dilations = dense<{dilation}> : tensor<2xi64>}}
        ins(%p, %w : {padded}, {filters}) outs(%o : {out}) -> {out}
      {last if follow else ""}
      return {"%s" if follow else "%r"} : {out}
    }}"""
    rng = np.random.default_rng(0)
    x, f = rng.standard_normal(sizes, np.float32), rng.standard_normal((taps, taps, c), np.float32)
    whole = np.pad(x, ((0, 0), *pads, (0, 0)), constant_values=2)
    want = np.zeros((n, oh, ow, c))
    for i, j in itertools.product(range(taps), range(taps)):
        rows = slice(i * dilation, i * dilation + stride * (oh - 1) + 1, stride)
        columns = slice(j * dilation, j * dilation + stride * (ow - 1) + 1, stride)
        want += whole[:, rows, columns] * f[i, j]
    if first:
        x, f, want = x.transpose(0, 3, 1, 2).copy(), f.transpose(2, 0, 1).copy(), want.transpose(0, 3, 1, 2)
    module = compiled(text, threads=1 + follow)
    (nest,) = (s["spec"] for s in module.specs)
    assert module.left == 0 and "border" in nest
    got = np.asarray(module.f(x, f))
    np.testing.assert_allclose(got, np.maximum(want, 0) if follow else want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("first", [True, False])
def test_pooling_of_padded_images(first: bool, threads: int) -> None:
    """Maxima beside -inf, and NaN where there is one; the rows are so many that threads share them."""
    shape = (1, 3, 33, 35) if first else (1, 33, 35, 3)
    wide = [1, 3, 35, 37] if first else [1, 35, 37, 3]
    low = [0, 0, 1, 1] if first else [0, 1, 1, 0]
    out = [1, 3, 17, 18] if first else [1, 17, 18, 3]
    image, padded, result = (f"tensor<{'x'.join(map(str, s))}xf32>" for s in (shape, wide, out))
    text = f"""func.func @f(%a: {image}) -> {result} {{
      %z = arith.constant 0xFF800000 : f32
      %p = tensor.pad %a low{low} high{low} {{
      ^bb0(%i: index, %j: index, %k: index, %l: index):
        tensor.yield %z : f32
      }} : {image} to {padded}
      %w = tensor.empty() : tensor<3x3xf32>
      %e = tensor.empty() : {result}
      %o = linalg.fill ins(%z : f32) outs(%e : {result}) -> {result}
      %r = linalg.pooling_{"nchw" if first else "nhwc"}_max {{strides = dense<2> : tensor<2xi64>}}
        ins(%p, %w : {padded}, tensor<3x3xf32>) outs(%o : {result}) -> {result}
      return %r : {result}
    }}"""
    x = np.random.default_rng(0).standard_normal(shape, np.float32) - 5
    x.reshape(-1)[[0, 77]] = np.nan, -np.inf
    axes = (2, 3) if first else (1, 2)
    whole = np.pad(x, [(1, 1) if d in axes else (0, 0) for d in range(4)], constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(whole, (3, 3), axis=axes)
    every = [slice(None, None, 2) if d in axes else slice(None) for d in range(4)]
    module = compiled(text, threads=threads)
    assert module.left == 0 and "border" in module.specs[0]["spec"]
    np.testing.assert_array_equal(module.f(x), windows[tuple(every)].max(axis=(-1, -2)))


def test_what_is_around_meets_filters() -> None:
    """Zeros around an image are numbers as others are: times infinity they are NaN."""
    text = """func.func @f(%a: tensor<1x4x4x2xf32>, %w: tensor<3x3x2xf32>) -> tensor<1x4x4x2xf32> {
      %z = arith.constant 0.0 : f32
      %p = tensor.pad %a low[0, 1, 1, 0] high[0, 1, 1, 0] {
      ^bb0(%i: index, %j: index, %k: index, %l: index):
        tensor.yield %z : f32
      } : tensor<1x4x4x2xf32> to tensor<1x6x6x2xf32>
      %e = tensor.empty() : tensor<1x4x4x2xf32>
      %o = linalg.fill ins(%z : f32) outs(%e : tensor<1x4x4x2xf32>) -> tensor<1x4x4x2xf32>
      %r = linalg.depthwise_conv_2d_nhwc_hwc ins(%p, %w : tensor<1x6x6x2xf32>, tensor<3x3x2xf32>)
        outs(%o : tensor<1x4x4x2xf32>) -> tensor<1x4x4x2xf32>
      return %r : tensor<1x4x4x2xf32>
    }"""
    weight = np.ones((3, 3, 2), np.float32)
    weight[0, 0] = np.inf
    got = np.asarray(compiled(text, threads=1).f(np.ones((1, 4, 4, 2), np.float32), weight))
    nan = np.zeros((4, 4), bool)
    nan[0], nan[:, 0] = True, True
    np.testing.assert_array_equal(np.isnan(got[0, ..., 0]), nan)
    assert np.isinf(got[0, 1:, 1:]).all()
