"""Programs of elementwise ops and reductions, compiled all the way, against NumPy."""

import numpy as np
import pytest
from nest_program_support import NUMPY, Program, Tensor, check, compiled, layernorm, numbers, softmax

import morello_mlir


def exact_softmax(x, dim):
    with np.errstate(all="ignore"):
        wide = x.astype("f8")
        e = np.exp(wide - wide.max(dim, keepdims=True))
        return e / e.sum(dim, keepdims=True)


# ---------------------------------------------------------------- softmax, normalisations, activations


@pytest.mark.parametrize(
    ("shape", "dim", "dtype"),
    [
        ((5, 37), 1, "f32"),
        ((3, 7, 5), 1, "f32"),
        ((1, 1), 1, "f32"),
        ((4, 257), 0, "f32"),
        ((3, 19), 1, "f64"),
        ((3, 40), 1, "f16"),
    ],
)
def test_softmax(shape, dim, dtype):
    p = Program()
    f = compiled(p, softmax(p, p.argument(*shape, dtype=dtype), dim))
    x = numbers(shape, dtype)
    check(f(x), exact_softmax(x, dim), dtype)


def test_softmax_of_extremes():
    p = Program()
    f = compiled(p, softmax(p, p.argument(6, 11), 1))
    x = numbers((6, 11))
    x[0, 3], x[1], x[2, :10], x[3, 4], x[4] = np.nan, -np.inf, -np.inf, np.inf, 3e38
    check(f(x), exact_softmax(x, 1).astype("f4"))


@pytest.mark.parametrize("threads", [1, 2])
def test_masked_attention_scores(threads):
    p = Program()
    x, mask = p.argument(2, 3, 9, 13), p.argument(9, 13, dtype="i1")
    scale, low = p.constant("0.125", "f32"), p.constant("0xFF800000", "f32")
    scaled = p.map(f"%y = arith.mulf %a, {scale} : f32", x, shape=x.shape)
    masked = p.map(f"%y = arith.select %b, %a, {low} : f32", scaled, mask, shape=x.shape, maps=["", "(d2, d3)"])
    f = compiled(p, softmax(p, masked, 3), threads=threads)
    scores, keep = numbers(x.shape), numbers((9, 13), "i1", 1)
    keep[4] = False  # a row without anything is NaN
    check(f(scores, keep), exact_softmax(np.where(keep, scores * np.float32(0.125), -np.inf), 3))


@pytest.mark.parametrize("shape", [(7, 12), (1, 1), (13, 97), (2, 1030)])
def test_layernorm(shape):
    p = Program()
    f = compiled(p, layernorm(p, p.argument(*shape), p.argument(shape[1]), p.argument(shape[1])))
    x, w, b = numbers(shape), numbers(shape[1:], seed=1), numbers(shape[1:], seed=2)
    wide = x.astype("f8")
    normal = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    check(f(x, w, b), normal * w + b)


def test_gelu_and_others():
    from math import erf

    p = Program()
    x = p.argument(5, 33)
    one, half, root = (p.constant(c, "f32") for c in ("1.0", "0.5", "1.41421354"))
    gelu = p.map(
        f"%q = arith.divf %a, {root} : f32\n%e = math.erf %q : f32\n%s = arith.addf %e, {one} : f32\n"
        f"%h = arith.mulf %s, {half} : f32\n%y = arith.mulf %a, %h : f32",
        x,
        shape=x.shape,
    )
    sigmoid = p.map(
        f"%n = arith.negf %a : f32\n%e = math.exp %n : f32\n%s = arith.addf %e, {one} : f32\n"
        f"%y = arith.divf {one}, %s : f32",
        x,
        shape=x.shape,
    )
    tanh = p.map("%y = math.tanh %a : f32", x, shape=x.shape)
    f = compiled(p, gelu, sigmoid, tanh)
    v = numbers(x.shape)
    v[0, :3] = np.nan, np.inf, -30
    with np.errstate(all="ignore"):
        wide = v.astype("f8")
        expected = wide * 0.5 * (np.vectorize(erf)(wide / np.sqrt(2)) + 1), 1 / (1 + np.exp(-wide)), np.tanh(wide)
    for got, want in zip(f(v), expected, strict=True):
        check(got, want)


# ---------------------------------------------------------------- reductions


@pytest.mark.parametrize("dims", [(0,), (1,), (2,), (0, 2), (0, 1, 2)])
def test_sums_along_any_dims(dims):
    p = Program()
    f = compiled(p, p.reduce("%y = arith.addf %a, %o : f32", p.argument(5, 7, 11), dims, "0.0"))
    x = numbers((5, 7, 11))
    check(np.asarray(f(x)), x.sum(dims, dtype="f8"))


_REDUCTIONS = [
    ("arith.maximumf", "f32", "0xFF800000", np.max),
    ("arith.minimumf", "f32", "0x7F800000", np.min),
    ("arith.mulf", "f32", "1.0", np.prod),
    ("arith.addf", "f16", "0.0", np.sum),
    ("arith.addf", "f64", "1.5", lambda x, axis: 1.5 + x.sum(axis)),
    ("arith.addi", "i32", "0", lambda x, axis: x.sum(axis, dtype="i4")),
    ("arith.addi", "i8", "0", lambda x, axis: x.sum(axis, dtype="i1")),
    ("arith.maxsi", "i64", "-9223372036854775808", np.max),
    ("arith.minsi", "i16", "32767", np.min),
    ("arith.maxui", "i8", "0", lambda x, axis: x.view("u1").max(axis).view("i1")),
    ("arith.xori", "i32", "0", np.bitwise_xor.reduce),
    ("arith.xori", "i64", "77", lambda x, axis: 77 ^ np.bitwise_xor.reduce(x, axis)),
]


@pytest.mark.parametrize(
    ("op", "dtype", "init", "reference"), _REDUCTIONS, ids=[f"{o}-{t}" for o, t, _, _ in _REDUCTIONS]
)
def test_reductions(op, dtype, init, reference):
    p = Program()
    f = compiled(p, p.reduce(f"%y = {op} %a, %o : {dtype}", p.argument(6, 29, dtype=dtype), [1], init))
    x = numbers((6, 29), dtype)
    if dtype == "f32":
        x[2, 5] = np.nan
    check(f(x), np.asarray(reference(x if dtype != "f16" else x.astype("f8"), axis=1)), dtype)


_BETTER = {
    "until": "%y = arith.maximumf %a, %m : f32\n %c = arith.cmpf ogt, %a, %m : f32",
    "num": "%c = arith.cmpf ogt, %a, %m : f32\n %y = arith.select %c, %a, %m : f32",
    "tosa": "%u = arith.cmpf ugt, %a, %m : f32\n %o = arith.cmpf ord, %m, %m : f32\n"
    "%c = arith.andi %u, %o : i1\n %y = arith.select %c, %a, %m : f32",
}


@pytest.mark.parametrize("kind", _BETTER)
@pytest.mark.parametrize("start", ["0xFF800000", "0.5", "-3.40282347E+38", "0x7F800000"])
def test_argmax_starts_from_any_number(kind, start):
    text = f"""func.func @f(%x: tensor<8x9xf32>) -> tensor<8xi32> {{
      %low = arith.constant {start} : f32
      %zero = arith.constant 0 : i32
      %e0 = tensor.empty() : tensor<8xf32>
      %e1 = tensor.empty() : tensor<8xi32>
      %f0 = linalg.fill ins(%low : f32) outs(%e0 : tensor<8xf32>) -> tensor<8xf32>
      %f1 = linalg.fill ins(%zero : i32) outs(%e1 : tensor<8xi32>) -> tensor<8xi32>
      %r:2 = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
          affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}}
          ins(%x : tensor<8x9xf32>) outs(%f0, %f1 : tensor<8xf32>, tensor<8xi32>) {{
      ^bb0(%a: f32, %m: f32, %n: i32):
        %i = linalg.index 1 : index
        %p = arith.index_cast %i : index to i32
        {_BETTER[kind]}
        %q = arith.select %c, %p, %n : i32
        linalg.yield %y, %q : f32, i32
      }} -> (tensor<8xf32>, tensor<8xi32>)
      return %r#1 : tensor<8xi32>
    }}"""
    module = morello_mlir.compile(text, memo="off")
    assert module.left == 0
    x = numbers((8, 9))
    least = np.finfo("f4").min
    x[1], x[2], x[3, 4], x[4, 2:4], x[5, ::2], x[6], x[7] = -np.inf, -1.0, np.nan, np.nan, np.inf, least, -np.inf
    x[5, 3], x[6, 2:5], x[7, 5] = np.nan, [0.5, 0.75, 0.75], least
    naive = morello_mlir.compile(text, memo="off", optimize=False)
    np.testing.assert_array_equal(module.f(x), naive.f(x))


@pytest.mark.parametrize("nan", [False, True])
def test_argmax(nan):
    text = """func.func @f(%x: tensor<5x21xf32>) -> (tensor<5xf32>, tensor<5xi64>) {
      %low = arith.constant 0xFF800000 : f32
      %zero = arith.constant 0 : i64
      %e0 = tensor.empty() : tensor<5xf32>
      %e1 = tensor.empty() : tensor<5xi64>
      %f0 = linalg.fill ins(%low : f32) outs(%e0 : tensor<5xf32>) -> tensor<5xf32>
      %f1 = linalg.fill ins(%zero : i64) outs(%e1 : tensor<5xi64>) -> tensor<5xi64>
      %r:2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
          affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
          ins(%x : tensor<5x21xf32>) outs(%f0, %f1 : tensor<5xf32>, tensor<5xi64>) {
      ^bb0(%a: f32, %m: f32, %n: i64):
        %i = linalg.index 1 : index
        %p = arith.index_cast %i : index to i64
        %y = arith.maximumf %a, %m : f32
        %c = arith.cmpf ogt, %a, %m : f32
        %q = arith.select %c, %p, %n : i64
        linalg.yield %y, %q : f32, i64
      } -> (tensor<5xf32>, tensor<5xi64>)
      return %r#0, %r#1 : tensor<5xf32>, tensor<5xi64>
    }"""
    module = morello_mlir.compile(text, memo="off")
    assert module.left == 0
    x = numbers((5, 21))
    x[1] = -np.inf
    x[2, 3], x[2, 9] = 7, 7
    if nan:
        x[3, 6] = np.nan
    top, at = module.f(x)
    # As the program says it, element after element: after a NaN nothing is larger.
    expected, running = np.zeros(5, "i8"), np.full(5, -np.inf, "f4")
    for j in range(21):
        expected = np.where(x[:, j] > running, j, expected)
        running = np.maximum(running, x[:, j])
    np.testing.assert_array_equal(top, running)
    np.testing.assert_array_equal(at, expected)


def test_mean_and_variance_are_two_results():
    p = Program()
    x = p.argument(9, 31)
    count = p.constant("31.0", "f32")
    total = p.reduce("%y = arith.addf %a, %o : f32", x, [1], "0.0")
    mean = p.map(f"%y = arith.divf %a, {count} : f32", total, shape=(9,))
    squares = p.map(
        "%d = arith.subf %a, %b : f32\n%y = arith.mulf %d, %d : f32", x, mean, shape=x.shape, maps=["", "(d0)"]
    )
    sums = p.reduce("%y = arith.addf %a, %o : f32", squares, [1], "0.0")
    f = compiled(p, mean, p.map(f"%y = arith.divf %a, {count} : f32", sums, shape=(9,)))
    v = numbers((9, 31))
    for got, want in zip(f(v), (v.mean(1, dtype="f8"), v.astype("f8").var(1)), strict=True):
        check(got, want)


# ---------------------------------------------------------------- elementwise


@pytest.mark.parametrize("shape", [(1,), (7, 13), (2, 3, 5), (64, 48)])
def test_transposes_and_broadcasts(shape):
    p = Program()
    x, y = p.argument(*reversed(shape)), p.argument(shape[-1])
    loops = ", ".join(f"d{d}" for d in reversed(range(len(shape))))
    f = compiled(
        p, p.map("%y = arith.subf %a, %b : f32", x, y, shape=shape, maps=[f"({loops})", f"(d{len(shape) - 1})"])
    )
    a, b = numbers(tuple(reversed(shape))), numbers(shape[-1:], seed=1)
    check(f(a, b), a.T - b)


_CASTS = [
    ("arith.extf", "f32", "f64"), ("arith.truncf", "f64", "f32"), ("arith.truncf", "f32", "f16"),
    ("arith.extf", "f16", "f32"), ("arith.sitofp", "i32", "f32"), ("arith.fptosi", "f32", "i32"),
    ("arith.extsi", "i8", "i64"), ("arith.trunci", "i64", "i16"), ("arith.sitofp", "i8", "f32"),
    ("arith.uitofp", "i1", "f32"), ("arith.extui", "i1", "i32"), ("arith.extsi", "i1", "i32"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "source", "target"), _CASTS, ids=["-".join(c) for c in _CASTS])
def test_casts(op, source, target):
    p = Program()
    f = compiled(
        p, p.map(f"%y = {op} %a : {source} to {target}", p.argument(3, 11, dtype=source), shape=(3, 11), dtype=target)
    )
    x = numbers((3, 11), source)
    expected = x.astype(NUMPY[target])
    check(f(x), -expected if (op, source) == ("arith.extsi", "i1") else expected, target)


def test_comparisons_yield_truth_values():
    p = Program()
    x, y = p.argument(5, 9), p.argument(5, 9)
    f = compiled(p, p.map("%y = arith.cmpf olt, %a, %b : f32", x, y, shape=(5, 9), dtype="i1"))
    a, b = numbers((5, 9)), numbers((5, 9), seed=1)
    a[0, 0] = np.nan
    np.testing.assert_array_equal(f(a, b), a < b)


def test_integers():
    p = Program()
    x, y = p.argument(5, 9, dtype="i32"), p.argument(5, 9, dtype="i32")
    text = (
        "%m = arith.muli %a, %b : i32\n%s = arith.subi %m, %a : i32\n%n = arith.minsi %s, %b : i32\n"
        "%x = arith.xori %n, %a : i32\n%y = arith.maxsi %x, %b : i32"
    )
    f = compiled(p, p.map(text, x, y, shape=(5, 9), dtype="i32"))
    a, b = numbers((5, 9), "i32"), numbers((5, 9), "i32", 1)
    check(f(a, b), np.maximum(np.minimum(a * b - a, b) ^ a, b), "i32")


def test_bf16():
    import ml_dtypes

    p = Program()
    x = p.argument(6, 21, dtype="bf16")
    doubled = p.map("%y = arith.addf %a, %a : bf16", x, shape=x.shape, dtype="bf16")
    f = compiled(p, p.reduce("%y = arith.addf %a, %o : bf16", doubled, [1], "0.0"))
    v = numbers(x.shape).astype(ml_dtypes.bfloat16)
    check(f(v), (v.astype("f8") * 2).sum(1), "bf16")


def test_positions():
    p = Program()
    text = (
        "%i = linalg.index 0 : index\n%j = linalg.index 1 : index\n%k = arith.subi %i, %j : index\n"
        "%c = arith.cmpi sge, %i, %j : index\n%z = arith.constant 0.0 : f32\n%y = arith.select %c, %a, %z : f32"
    )
    f = compiled(p, p.map(text, p.argument(9, 13), shape=(9, 13)))
    x = numbers((9, 13))
    check(f(x), np.tril(x))


# ---------------------------------------------------------------- windows


@pytest.mark.parametrize(
    ("op", "init", "reference"),
    [
        ("pooling_nhwc_max", "0xFF800000", np.max),
        ("pooling_nhwc_sum", "0.0", np.sum),
        ("pooling_nhwc_min", "0x7F800000", np.min),
    ],
)
@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (3, 2)])
def test_pooling(op, init, reference, stride, dilation):
    p = Program()
    x, w = p.argument(2, 11, 13, 5), p.argument(3, 2)
    high, wide = (11 - 2 * dilation - 1) // stride + 1, (13 - dilation - 1) // stride + 1
    start, out = p.fill((2, high, wide, 5), "f32", init), Tensor("%p", (2, high, wide, 5), "f32")
    attributes = f"strides = dense<{stride}> : vector<2xi64>, dilations = dense<{dilation}> : vector<2xi64>"
    p.line(
        f"%p = linalg.{op} {{{attributes}}} ins({x.name}, {w.name} : {x.type}, {w.type}) "
        f"outs({start.name} : {out.type}) -> {out.type}"
    )
    f = compiled(p, out)
    v = numbers(x.shape)
    windows = [
        v[:, a * dilation :, b * dilation :][:, : (high - 1) * stride + 1 : stride, : (wide - 1) * stride + 1 : stride]
        for a in range(3)
        for b in range(2)
    ]
    check(f(v, numbers((3, 2))), reference(np.stack(windows), axis=0))


@pytest.mark.parametrize("stride", [1, 2])
def test_depthwise_convolution(stride):
    p = Program()
    x, w = p.argument(1, 10, 9, 6), p.argument(3, 3, 6)
    high, wide = (10 - 3) // stride + 1, (9 - 3) // stride + 1
    start, out = p.fill((1, high, wide, 6), "f32", "0.0"), Tensor("%p", (1, high, wide, 6), "f32")
    attributes = f"strides = dense<{stride}> : vector<2xi64>, dilations = dense<1> : vector<2xi64>"
    p.line(
        f"%p = linalg.depthwise_conv_2d_nhwc_hwc {{{attributes}}} ins({x.name}, {w.name} : {x.type}, {w.type}) "
        f"outs({start.name} : {out.type}) -> {out.type}"
    )
    f = compiled(p, out)
    v, k = numbers(x.shape), numbers(w.shape, seed=1)
    expected = np.zeros(out.shape)
    for a in range(3):
        for b in range(3):
            part = v[:, a:, b:][:, : (high - 1) * stride + 1 : stride, : (wide - 1) * stride + 1 : stride]
            expected += part * k[a, b]
    check(f(v, k), expected)


@pytest.mark.parametrize("dtype", ["f64", "f32"])
@pytest.mark.parametrize(("name", "exact"), [("expm1", np.expm1), ("log1p", np.log1p)])
def test_functions_that_are_exact_near_zero(name, exact, dtype):
    p = Program()
    f = compiled(p, p.map(f"%y = math.{name} %a : {dtype}", p.argument(19, dtype=dtype), shape=(19,), dtype=dtype))
    x = np.concatenate([np.geomspace(1e-30, 0.5, 9), -np.geomspace(1e-30, 0.5, 9), [0.0]]).astype(NUMPY[dtype])
    np.testing.assert_allclose(f(x), exact(x.astype("f8")), rtol=4 * np.finfo(NUMPY[dtype]).eps)


def test_positions_in_memory_are_left():
    kind = "tensor<3x4xindex>"
    text = f"""func.func @f(%x: {kind}) -> {kind} {{
      %seven = arith.constant 7 : index
      %e = tensor.empty() : {kind}
      %s = linalg.fill ins(%seven : index) outs(%e : {kind}) -> {kind}
      %r = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>,
          affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}}
          ins(%s, %x : {kind}, {kind}) outs(%x : {kind}) {{
      ^bb0(%a: index, %b: index, %o: index):
        %i = linalg.index 0 : index
        %m = arith.addi %a, %i : index
        %y = arith.addi %m, %b : index
        linalg.yield %y : index
      }} -> {kind}
      return %r : {kind}
    }}"""
    module = morello_mlir.compile(text, memo="off")
    assert module.left
    x = np.arange(12).reshape(3, 4)
    np.testing.assert_array_equal(module.f(x), x + 7 + np.arange(3)[:, None])


def test_reductions_that_come_to_constants_are_left():
    p = Program()
    text = p.text(p.reduce("%y = arith.ori %a, %o : i1", p.argument(3, 9, dtype="i1"), [1], "1"))
    module = morello_mlir.compile(text, memo="off")
    np.testing.assert_array_equal(module.f(numbers((3, 9), "i1")), [True] * 3)
