"""What follows from constants alone is computed once: sums of a weight's columns, and what else nests make of it."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from quantised_support import product
from thread_support import at_once

import morello_mlir

RNG = np.random.default_rng(0)


def array(*shape: int) -> np.ndarray:
    return RNG.integers(-128, 128, shape).astype(np.int8)


def kept(module: Any) -> list[int]:
    """Bytes of what is made once, over all programs."""
    sizes = [len(p) for program in module._programs() for p in program.build.panels.values()]
    # What is packed ahead has slack behind it.
    return sorted(size - 64 for size in sizes if size < 1 << 15)


def wanted(a: np.ndarray, b: np.ndarray, x: int, y: int) -> np.ndarray:
    return ((a.astype(np.int64) - x) @ (b.astype(np.int64) - y)).astype(np.int32)


@pytest.mark.parametrize(("m", "k", "n"), [(1, 67, 35), (5, 19, 6), (16, 96, 64), (7, 33, 1)])
@pytest.mark.parametrize("batch", [0, 3])
def test_zero_points_that_change(m: int, k: int, n: int, batch: int) -> None:
    """The sums of the columns are kept, whatever they are multiplied by."""
    lead = (batch,) if batch else ()
    w = array(*lead, k, n)
    module = morello_mlir.compile(product(m, k, n, batch=f"{batch}x" if batch else ""), constants={1: w}, memo="off")
    for x, y in ((-128, 127), (3, 0), (0, -7), (5, 9)):
        a = array(*lead, m, k)
        assert (module(a, np.int32(x), np.int32(y)) == wanted(a, w, x, y)).all()
    assert kept(module) == [4 * max(batch, 1) * n]


@pytest.mark.parametrize(("zeros", "buffers"), [((9, -3), 1), ((9, 0), 1), ((0, -3), 0), ((0, 0), 0)])
def test_zero_points_that_are_numbers(zeros: tuple[int, int], buffers: int) -> None:
    """Without one of lhs nobody needs the sums of the columns. What zero points take off is part of the product."""
    w = array(70, 33)
    module = morello_mlir.compile(product(9, 70, 33, zeros), constants={1: w}, memo="off", threads=1)
    for _ in range(2):
        a = array(9, 70)
        assert (module(a) == wanted(a, w, *zeros)).all()
    assert len(kept(module)) == buffers
    assert {str(s["function"]) for s in module.specs} <= {"Matmul", "Reduce"}


def test_weights_in_the_module_and_weights_that_are_no_constants() -> None:
    w = array(37, 19)
    text = product(7, 37, 19, (4, 5))
    inside = text.replace(", %b: tensor<37x19xi8> ", "").replace(
        "%z =", f'%b = arith.constant dense<"0x{w.tobytes().hex()}"> : tensor<37x19xi8>\n%z ='
    )
    once, off = (morello_mlir.compile(inside, memo="off", pack_constants=p) for p in (True, False))
    each_time = morello_mlir.compile(text, memo="off")
    for _ in range(2):
        a = array(7, 37)
        want = wanted(a, w, 4, 5)
        assert (once(a) == want).all() and (off(a) == want).all() and (each_time(a, w) == want).all()
        w2 = array(37, 19)
        assert (each_time(a, w2) == wanted(a, w2, 4, 5)).all()
    assert kept(once) == [76] and kept(off) == [] and kept(each_time) == []


def test_an_argument_that_the_caller_says_is_constant() -> None:
    module = morello_mlir.compile(product(7, 37, 19, (4, 5), mark="{morello.constant}"), memo="off")
    w, a = array(37, 19), array(7, 37)
    assert (module(a, w) == wanted(a, w, 4, 5)).all()
    assert (module(a, w.copy()) == wanted(a, w, 4, 5)).all()
    assert kept(module) == [76]


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_that_come_first_at_once(threads: int) -> None:
    w, a = array(192, 129), array(6, 192)
    module = morello_mlir.compile(product(6, 192, 129, (4, 5)), constants={1: w}, threads=threads)
    for y in at_once([partial(module.f, a)] * 4):
        assert (y == wanted(a, w, 4, 5)).all()


def test_programs_of_other_shapes_and_other_weights() -> None:
    """Each has sums of its own."""
    text = product(7, 37, 19, (4, 5)).replace("7x37", "?x37").replace("7x19xi32", "?x19xi32")
    text = text.replace("tensor.empty()", "tensor.empty(%d)").replace(
        "%z =", "%c0 = arith.constant 0 : index\n%d = tensor.dim %a, %c0 : tensor<?x37xi8>\n%z ="
    )
    for _ in range(2):
        w = array(37, 19)
        module = morello_mlir.compile(text, constants={1: w}, memo="off")
        for m in (1, 5, 1):
            a = array(m, 37)
            assert (module(a) == wanted(a, w, 4, 5)).all()
        assert kept(module) == [76, 76]


def test_convolutions() -> None:
    text = """
    func.func @f(%a: tensor<1x7x6x3xi8>, %b: tensor<3x2x3x5xi8>, %x: i32) -> tensor<1x5x5x5xi32> {
      %z = arith.constant 0 : i32
      %e = tensor.empty() : tensor<1x5x5x5xi32>
      %i = linalg.fill ins(%z : i32) outs(%e : tensor<1x5x5x5xi32>) -> tensor<1x5x5x5xi32>
      %r = linalg.conv_2d_nhwc_hwcf_q ins(%a, %b, %x, %z : tensor<1x7x6x3xi8>, tensor<3x2x3x5xi8>, i32, i32)
        outs(%i : tensor<1x5x5x5xi32>) -> tensor<1x5x5x5xi32>
      return %r : tensor<1x5x5x5xi32>
    }"""
    filters = array(3, 2, 3, 5)
    module = morello_mlir.compile(text, constants={1: filters}, memo="off", threads=1)
    for zero in (-128, 7):
        image = array(1, 7, 6, 3)
        windows = np.lib.stride_tricks.sliding_window_view(image, (3, 2), (1, 2)).astype(np.int64) - zero
        want = np.einsum("nijckl,klcf->nijf", windows, filters.astype(np.int64))
        assert (module(image, np.int32(zero)) == want).all()
    assert kept(module) == [20]


@pytest.mark.parametrize("value", [1.0, np.nan, -np.inf])
def test_norms_of_a_weight(value: float) -> None:
    """Any nest on constants: here the sum of squares of each row, by whose root another input is divided."""
    text = """
    #id = affine_map<(d0, d1) -> (d0, d1)>
    #row = affine_map<(d0, d1) -> (d0)>
    func.func @f(%x: tensor<9x33xf32>, %w: tensor<9x33xf32>) -> tensor<9x33xf32> {
      %c0 = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<9xf32>
      %i = linalg.fill ins(%c0 : f32) outs(%e : tensor<9xf32>) -> tensor<9xf32>
      %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
        ins(%w : tensor<9x33xf32>) outs(%i : tensor<9xf32>) {
      ^bb0(%a: f32, %o: f32):
        %q = arith.mulf %a, %a : f32
        %t = arith.addf %q, %o : f32
        linalg.yield %t : f32
      } -> tensor<9xf32>
      %e2 = tensor.empty() : tensor<9x33xf32>
      %r = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
        ins(%x, %s : tensor<9x33xf32>, tensor<9xf32>) outs(%e2 : tensor<9x33xf32>) {
      ^bb0(%a: f32, %b: f32, %o: f32):
        %q = math.sqrt %b : f32
        %t = arith.divf %a, %q : f32
        linalg.yield %t : f32
      } -> tensor<9x33xf32>
      return %r : tensor<9x33xf32>
    }"""
    w = RNG.standard_normal((9, 33)).astype(np.float32)
    w[3, 4] = value
    module = morello_mlir.compile(text, constants={1: w}, memo="off")
    for _ in range(2):
        x = RNG.standard_normal((9, 33)).astype(np.float32)
        np.testing.assert_allclose(module(x), x / np.sqrt((w * w).sum(1, keepdims=True)), rtol=1e-5)
    assert kept(module) == [36]


@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (1, 2), (3, 2)])
@pytest.mark.parametrize("channels", [1, 5, 8])
def test_convolutions_with_channels_first(channels: int, stride: int, dilation: int) -> None:
    """Two of one kind, with filters of their own, which are turned once."""
    rows, columns = ((n - dilation * (taps - 1) - 1) // stride + 1 for n, taps in ((11, 3), (10, 2)))
    a, b, c = f"tensor<1x{channels}x11x10xi8>", f"tensor<6x{channels}x3x2xi8>", f"tensor<1x6x{rows}x{columns}xi32>"
    steps = f"{{strides = dense<{stride}> : vector<2xi64>, dilations = dense<{dilation}> : vector<2xi64>}}"
    results = [
        f"%r{w} = linalg.conv_2d_nchw_fchw {steps} ins(%a, %{w} : {a}, {b}) outs(%i : {c}) -> {c}\n" for w in "vw"
    ]
    text = f"""
    func.func @f(%a: {a}, %v: {b}, %w: {b}) -> ({c}, {c}) {{
      %z = arith.constant 0 : i32
      %e = tensor.empty() : {c}
      %i = linalg.fill ins(%z : i32) outs(%e : {c}) -> {c}
      {"".join(results)}
      return %rv, %rw : {c}, {c}
    }}"""
    filters = [array(6, channels, 3, 2) for _ in range(2)]
    module = morello_mlir.compile(text, constants=dict(enumerate(filters, 1)), memo="off", threads=1)
    for _ in range(2):
        image = array(1, channels, 11, 10)
        reach = (2 * dilation + 1, dilation + 1)
        windows = np.lib.stride_tricks.sliding_window_view(image, reach, (2, 3)).astype(np.int64)
        windows = windows[:, :, ::stride, ::stride, ::dilation, ::dilation]
        for got, each in zip(module(image), filters, strict=True):
            assert (got == np.einsum("ncijkl,fckl->nfij", windows, each.astype(np.int64))).all()
    assert kept(module) == ([] if channels < 4 else [36 * channels] * 2)


def test_a_weight_that_is_made_once_is_packed_ahead() -> None:
    """The panels of two weights of one shape are two, though the products are one Spec."""
    text = """
    #id = affine_map<(d0, d1) -> (d0, d1)>
    #left = affine_map<(m, n, k) -> (m, k)>
    #right = affine_map<(m, n, k) -> (n, k)>
    #out = affine_map<(m, n, k) -> (m, n)>
    func.func @f(%x: tensor<6x128xf32>, %v: tensor<192x128xf32>, %w: tensor<192x128xf32>)
        -> (tensor<6x192xf32>, tensor<6x192xf32>) {
      %c0 = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<6x192xf32>
      %i = linalg.fill ins(%c0 : f32) outs(%e : tensor<6x192xf32>) -> tensor<6x192xf32>
      %e2 = tensor.empty() : tensor<192x128xf32>
      PARTS
      return %rv, %rw : tensor<6x192xf32>, tensor<6x192xf32>
    }"""
    part = """%sX = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%X : tensor<192x128xf32>) outs(%e2 : tensor<192x128xf32>) {
      ^bb0(%a: f32, %o: f32):
        %t = arith.mulf %a, %a : f32
        linalg.yield %t : f32
      } -> tensor<192x128xf32>
      %rX = linalg.matmul indexing_maps = [#left, #right, #out]
        ins(%x, %sX : tensor<6x128xf32>, tensor<192x128xf32>) outs(%i : tensor<6x192xf32>)
        -> tensor<6x192xf32>"""
    weights = [RNG.standard_normal((192, 128)).astype(np.float32) for _ in range(2)]
    text = text.replace("PARTS", "\n".join(part.replace("X", name) for name in "vw"))
    module = morello_mlir.compile(text, constants=dict(enumerate(weights, 1)), memo="off", threads=1)
    for _ in range(2):
        x = RNG.standard_normal((6, 128)).astype(np.float32)
        for got, each in zip(module(x), weights, strict=True):
            np.testing.assert_allclose(got, x @ (each * each).T, rtol=1e-4, atol=1e-3)
    products = [s for s in module.specs if s["function"] == "Matmul"]
    assert len(products) == 2 and all("const" in str(s["spec"]) for s in products)
    assert all("pack_ahead" in str(s["schedule"]) for s in products)
    sizes = sorted(len(p) for program in module._programs() for p in program.build.panels.values())
    assert sizes[:2] == [64 + 4 * 192 * 128] * 2 and len(sizes) == 4
