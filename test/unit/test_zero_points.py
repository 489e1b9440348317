"""Zero points: products of bytes from which numbers are subtracted, as ops with zero points or as differences."""

from __future__ import annotations

import numpy as np
import pytest

import morello_mlir


@pytest.mark.parametrize("batch", [(), (3,)])
def test_zero_points(batch: tuple[int, ...]) -> None:
    (m, k, n), lead = (5, 19, 6), "".join(f"{b}x" for b in batch)
    a, b, c = f"tensor<{lead}{m}x{k}xi8>", f"tensor<{lead}{k}x{n}xi8>", f"tensor<{lead}{m}x{n}xi32>"
    text = f"""
    func.func @f(%a: {a}, %b: {b}, %c: {c}, %x: i32, %y: i32) -> {c} {{
      %r = linalg.quantized_{"batch_" if batch else ""}matmul ins(%a, %b, %x, %y : {a}, {b}, i32, i32)
        outs(%c : {c}) -> {c}
      return %r : {c}
    }}"""
    compiled = morello_mlir.compile(text, memo="off", threads=1)
    # One product; the rest are nests around it.
    assert sum(str(s["function"]).startswith("Matmul") for s in compiled.specs) == 1
    rng = np.random.default_rng(2)
    x, y = (rng.integers(-128, 128, (*batch, *s)).astype(np.int8) for s in ((m, k), (k, n)))
    start = rng.integers(-(2**31), 2**31, (*batch, m, n)).astype(np.int32)
    for zeros in ((-128, 127), (3, 0), (0, -7)):
        want = (x.astype(np.int64) - zeros[0]) @ (y.astype(np.int64) - zeros[1]) + start
        assert (compiled.f(x, y, start, *map(np.int32, zeros)) == want.astype(np.int32)).all()


@pytest.mark.parametrize("zero", ["%y", "%z"], ids=["any", "no zero point of filters"])
@pytest.mark.parametrize("layout", ["nchw_fchw", "nhwc_hwcf"])
def test_convolutions(layout: str, zero: str) -> None:
    """Where filters have no zero point, a product of bytes with windows; as it is, where they have one."""
    first = layout == "nchw_fchw"
    shapes = ("1x3x7x6xi8", "5x3x3x2xi8") if first else ("1x7x6x3xi8", "3x2x3x5xi8")
    a, b, c = (f"tensor<{s}>" for s in (*shapes, "1x5x5x5xi32"))
    text = f"""
    func.func @f(%a: {a}, %b: {b}, %c: {c}, %x: i32, %y: i32) -> {c} {{
      %z = arith.constant 0 : i32
      %r = linalg.conv_2d_{layout}_q ins(%a, %b, %x, {zero} : {a}, {b}, i32, i32) outs(%c : {c}) -> {c}
      return %r : {c}
    }}"""
    compiled = morello_mlir.compile(text, memo="off", threads=1)
    assert any(str(s["function"]).startswith("Matmul") for s in compiled.specs) == (zero == "%z")
    rng = np.random.default_rng(3)
    image, filters = (rng.integers(-128, 128, s).astype(np.int8) for s in ((1, 3, 7, 6), (5, 3, 3, 2)))
    start = rng.integers(-(2**31), 2**31, (1, 5, 5, 5)).astype(np.int32)
    windows = np.lib.stride_tricks.sliding_window_view(image, (3, 2), (2, 3)).astype(np.int64)
    for zeros in ((-128, 127), (7, 0)):
        of_filters = filters.astype(np.int64) - (zeros[1] if zero == "%y" else 0)
        want = np.einsum("ncijkl,fckl->nfij", windows - zeros[0], of_filters)
        x, w = image, filters
        if not first:
            x, w, want = x.transpose(0, 2, 3, 1).copy(), w.transpose(2, 3, 1, 0).copy(), want.transpose(0, 2, 3, 1)
        assert (compiled.f(x, w, start, *map(np.int32, zeros)) == (want + start).astype(np.int32)).all()


def minus(name: str, source: str, zero: str, shape: str, how: str, rank: int = 2) -> str:
    """The tensor %name of i32: %source of bytes, widened by `how`, less the i32 %zero."""
    dims, loops = (", ".join(words) for words in ((f"d{i}" for i in range(rank)), ['"parallel"'] * rank))
    same = f"affine_map<({dims}) -> ({dims})>"
    kinds = f"{{indexing_maps = [{same}, {same}], iterator_types = [{loops}]}} ins(%{source} : tensor<{shape}xi8>)"
    return f"""
      %{name}e = tensor.empty() : tensor<{shape}xi32>
      %{name}w = linalg.generic {kinds} outs(%{name}e : tensor<{shape}xi32>) {{
      ^bb0(%v: i8, %o: i32):
        %w = arith.{how} %v : i8 to i32
        linalg.yield %w : i32
      }} -> tensor<{shape}xi32>
      %{name} = linalg.generic {kinds.replace(source + " : ", name + "w : ").replace("xi8", "xi32")}
        outs(%{name}e : tensor<{shape}xi32>) {{
      ^bb0(%v: i32, %o: i32):
        %d = arith.subi %v, %{zero} : i32
        linalg.yield %d : i32
      }} -> tensor<{shape}xi32>"""


@pytest.mark.parametrize("sums", ["i32", "i64"])
def test_differences_from_zero_points(sums: str) -> None:
    """As importers of ONNX write them: one product of bytes, in i32."""
    narrow = """
      %cut = tensor.empty() : tensor<7x19xi32>
      %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%p : tensor<7x19xi64>) outs(%cut : tensor<7x19xi32>) {
      ^bb0(%v: i64, %o: i32):
        %t = arith.trunci %v : i64 to i32
        linalg.yield %t : i32
      } -> tensor<7x19xi32>
      return %r : tensor<7x19xi32>"""
    text = f"""
    #id = affine_map<(d0, d1) -> (d0, d1)>
    func.func @f(%a: tensor<7x37xi8>, %b: tensor<37x19xi8>, %x: i32, %y: i32) -> tensor<7x19xi32> {{
      {minus("m", "a", "x", "7x37", "extui")}
      {minus("n", "b", "y", "37x19", "extsi")}
      %z = arith.constant 0 : {sums}
      %e = tensor.empty() : tensor<7x19x{sums}>
      %i = linalg.fill ins(%z : {sums}) outs(%e : tensor<7x19x{sums}>) -> tensor<7x19x{sums}>
      %p = linalg.matmul ins(%m, %n : tensor<7x37xi32>, tensor<37x19xi32>) outs(%i : tensor<7x19x{sums}>)
        -> tensor<7x19x{sums}>
      {narrow if sums == "i64" else "return %p : tensor<7x19xi32>"}
    }}"""
    compiled = morello_mlir.compile(text, memo="off", threads=1)
    assert sum("(u8, GL" in str(s["spec"]) and "(i8, GL" in str(s["spec"]) for s in compiled.specs) == 1
    rng = np.random.default_rng(4)
    a = rng.integers(0, 256, (7, 37)).astype(np.uint8)
    b = rng.integers(-128, 128, (37, 19)).astype(np.int8)
    for x, y in ((128, -3), (0, 7), (2**30, -(2**31))):
        want = (a.astype(np.int64) - x) @ (b.astype(np.int64) - y)
        assert (compiled.f(a, b, np.int32(x), np.int32(y)) == want.astype(np.int32)).all()


@pytest.mark.parametrize(("lhs", "rhs"), [("m, k", "n"), ("m", "k, n")])
def test_differences_of_which_one_is_not_summed_over(lhs: str, rhs: str) -> None:
    """Not products of matrices: each element of the smaller operand counts as often as there are steps along k."""
    sizes = {"m": 4, "k": 5, "n": 6}
    shapes = [tuple(sizes[d] for d in dims.split(", ")) for dims in (lhs, rhs)]
    texts = ["x".join(map(str, shape)) for shape in shapes]
    differences = "".join(
        minus(name, source, zero, text, "extsi", len(shape))
        for name, source, zero, text, shape in zip("pq", "ab", "xy", texts, shapes, strict=True)
    )
    text = f"""
    func.func @f(%a: tensor<{texts[0]}xi8>, %b: tensor<{texts[1]}xi8>, %x: i32, %y: i32) -> tensor<4x6xi32> {{
      {differences}
      %z = arith.constant 0 : i32
      %e = tensor.empty() : tensor<4x6xi32>
      %i = linalg.fill ins(%z : i32) outs(%e : tensor<4x6xi32>) -> tensor<4x6xi32>
      %r = linalg.generic {{indexing_maps = [affine_map<(m, n, k) -> ({lhs})>, affine_map<(m, n, k) -> ({rhs})>,
        affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}}
        ins(%p, %q : tensor<{texts[0]}xi32>, tensor<{texts[1]}xi32>) outs(%i : tensor<4x6xi32>) {{
      ^bb0(%v: i32, %w: i32, %o: i32):
        %t = arith.muli %v, %w : i32
        %s = arith.addi %o, %t : i32
        linalg.yield %s : i32
      }} -> tensor<4x6xi32>
      return %r : tensor<4x6xi32>
    }}"""
    rng = np.random.default_rng(5)
    a, b = (rng.integers(-128, 128, shape).astype(np.int8) for shape in shapes)
    names = f"{lhs.replace(', ', '')},{rhs.replace(', ', '')}->mn"
    want = np.einsum(names, a.astype(np.int64) - 3, b.astype(np.int64) + 7)
    got = morello_mlir.compile(text, memo="off", threads=1).f(a, b, np.int32(3), np.int32(-7))
    assert (got == want).all()


@pytest.mark.parametrize("zero", [-128, -123, 0, 127, None], ids=["none taken off", "some", "128", "255", "any"])
@pytest.mark.parametrize("layout", ["nchw_fchw", "nhwc_hwcf"])
def test_images_less_128(layout: str, zero: int | None) -> None:
    """Unsigned images as importers write them, two convolutions of one padded image: products of unsigned bytes."""
    first = layout == "nchw_fchw"
    shapes = ("1x3x7x6", "1x3x9x7", "5x3x3x2") if first else ("1x7x6x3", "1x9x7x3", "3x2x3x5")
    image, padded, filters = (f"tensor<{s}xi8>" for s in shapes)
    out, loops = "tensor<1x5x7x6xi32>" if first else "tensor<1x7x6x5xi32>", ", ".join(['"parallel"'] * 4)
    low, high = ("[0, 0, 1, 0]", "[0, 0, 1, 1]") if first else ("[0, 1, 0, 0]", "[0, 1, 1, 0]")
    around, x = (17, "%given") if zero is None else (zero, "%known")
    conv = f"linalg.conv_2d_{layout}_q ins(%p, %b, {x}, %z : {padded}, {filters}, i32, i32) outs(%c : {out}) -> {out}"
    text = f"""
    #id = affine_map<(a, b, c, d) -> (a, b, c, d)>
    func.func @f(%a: {image}, %b: {filters}, %c: {out}, %given: i32) -> ({out}, {out}) {{
      %z = arith.constant 0 : i32
      %offset = arith.constant -128 : i8
      %around = arith.constant {around} : i8
      %known = arith.constant {around} : i32
      %e = tensor.empty() : {image}
      %s = linalg.generic {{indexing_maps = [#id, #id], iterator_types = [{loops}]}}
        ins(%a : {image}) outs(%e : {image}) {{
      ^bb0(%v: i8, %o: i8):
        %w = arith.addi %v, %offset : i8
        linalg.yield %w : i8
      }} -> {image}
      %p = tensor.pad %s low{low} high{high} {{
      ^bb0(%i: index, %j: index, %k: index, %l: index):
        tensor.yield %around : i8
      }} : {image} to {padded}
      %r = {conv}
      %q = {conv}
      return %r, %q : {out}, {out}
    }}"""
    rng = np.random.default_rng(6)
    a = rng.integers(0, 256, (1, 3, 7, 6)).astype(np.uint8)
    w = rng.integers(-128, 128, (5, 3, 3, 2)).astype(np.int8)
    start = rng.integers(-(2**31), 2**31, (1, 5, 7, 6)).astype(np.int32)
    wide = np.pad(a.astype(np.int64), ((0, 0), (0, 0), (1, 1), (0, 1)), constant_values=around + 128)
    windows = np.lib.stride_tricks.sliding_window_view(wide, (3, 2), (2, 3))
    want = np.einsum("ncijkl,fckl->nfij", windows - (around + 128), w.astype(np.int64))
    if not first:
        a, w = a.transpose(0, 2, 3, 1).copy(), w.transpose(2, 3, 1, 0).copy()
        start, want = start.transpose(0, 2, 3, 1).copy(), want.transpose(0, 2, 3, 1)
    compiled = morello_mlir.compile(text, memo="off", threads=1, constants={1: w})
    products = [s for s in map(str, (s["spec"] for s in compiled.specs)) if s.startswith("Matmul")]
    assert products and all("u8, GL" in s and "(i8, GL" in s for s in products)
    for got in compiled.f(a, start, np.int32(around)):
        assert (got == (want + start).astype(np.int32)).all()
