"""Convolutions: windows as part of a Spec, how ops become such Specs, the search in them, and the code."""

from __future__ import annotations

import ctypes
import itertools
import math
import random
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from lowering_support import NUMPY, assert_close, compile_module, context, random_schedule
from mlir import ir
from small_target import CHEAP_FORKS, SMALL
from test_search import brute_force

from morello_mlir import dialect
from morello_mlir.actions import closure
from morello_mlir.errors import ScheduleError, SpecError
from morello_mlir.lowering import apply_all
from morello_mlir.lowering.builder import Builder
from morello_mlir.lowering.views import Operand, View
from morello_mlir.nests import NestSpec
from morello_mlir.passes.pipeline import run_pipeline
from morello_mlir.search.schedule import parse, to_text
from morello_mlir.search.solve import Search
from morello_mlir.spec import Lap, Spec, Window
from morello_mlir.targets import TARGETS, host_runs

AVX2 = TARGETS["avx2"]
PLAIN = "(f32, GL, row_major)"


# ---------------------------------------------------------------- the window


def places(window: Window, jumps: tuple[tuple[int, ...], tuple[int, ...]], sizes: tuple[int, int]) -> set[int]:
    """Every place that a tensor of `sizes` has, one element after the other."""

    def of(dim: int, i: int) -> int:
        at = 0
        for unit, jump in zip((*window.of(dim), 1), jumps[dim - 1], strict=True):
            at, i = at + i // unit * jump, i % unit
        return at

    return {of(1, i) + of(2, j) for i, j in itertools.product(range(sizes[0]), range(sizes[1]))}


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("taps", [1, 2, 3])
def test_what_a_window_touches(stride: int, taps: int) -> None:
    """[h, w, c] = [*, 11, 4] seen as rows (3 along w) and columns (`taps` along h, `taps` pixels along w)."""
    window = Window(((3,), (taps * 4,)), (Lap(1, 1, 4 * stride, 1), Lap(3, taps * 4, stride, 1)))
    for lines, heights in itertools.product((1, 2, 5), range(1, taps + 1)):
        sizes = (3 * lines, heights * taps * 4)
        rows, row = window.runs(2, (1, *sizes))
        found = len(places(window, ((44 * stride, 4 * stride), (44, 1)), sizes))
        assert rows * row == found if stride <= taps else rows * row >= found


def test_what_does_not_matter_is_left_out() -> None:
    window = Window(((56,), (192, 64)), (Lap(1, 64, 1, 1), Lap(56, 192, 1, 1)))
    assert window.fitted((1, 112, 576)) == window
    assert window.fitted((1, 56, 576)) == Window(((), (192, 64)), (Lap(1, 64, 1, 1),))
    assert window.fitted((1, 56, 64)) is None
    assert window.without(1) == Window(((), (192, 64)), (Lap(1, 64, 1, 1),))
    assert window.shape((2, 112, 576)) == (2, 2, 56, 3, 3, 64)


SPEC = (
    "Matmul([1, 8, 18, 5], (f32, GL, row_major, m%4, k%6, lap 1:1:2:1, lap 4:6:1:1), (f32, GL, row_major, const), "
    "(f32, GL, row_major), serial)"
)


def test_text() -> None:
    spec = Spec.parse(SPEC)
    assert str(spec) == SPEC and spec.canonical() == spec


@pytest.mark.parametrize(
    ("part", "why"),
    [
        ("m%4%3", "no chain of multiples"),
        ("m%1", "no chain of multiples"),
        ("k%0", "no chain of multiples"),
        ("k%5", "k=18 of lhs is no multiple of 5"),
        ("b%4", "expected one of m, k"),
        ("m%4, m%2", "each once"),
        ("lap 1:1:0:1", "not positive"),
        ("lap 1:1", "cannot read"),
    ],
)
def test_bad_windows_are_refused(part: str, why: str) -> None:
    with pytest.raises(SpecError, match=why):
        Spec.parse(
            f"Matmul([1, 8, 18, 5], (f32, GL, row_major, {part}), (f32, GL, row_major), (f32, GL, row_major), serial)"
        )


def test_only_inputs_that_are_not_packed_have_windows() -> None:
    with pytest.raises(SpecError, match="a window is for inputs"):
        Spec.parse(
            "Matmul([1, 8, 8, 8], (f32, GL, row_major), (f32, GL, row_major), (f32, GL, row_major, m%4), serial)"
        )
    with pytest.raises(SpecError, match="not packed"):
        Spec.parse(
            "Matmul([1, 8, 8, 8], (f32, L2, [b, m/4, k, m%4], k%4), (f32, GL, row_major), (f32, GL, row_major), serial)"
        )


def test_sizes_go_through_the_window() -> None:
    sizes = closure(5 * 7, (7,))
    assert {35, 28, 14, 7, 6, 4} <= set(sizes)
    assert all(n % t in {*sizes, 0} for n in sizes for t in sizes if t < n and n % 7 == t % 7 == 0)


# ---------------------------------------------------------------- the search


TINY = (
    "MatmulAccum([1, 4, 4, 2], (f32, GL, row_major, m%2, k%2, lap 1:1:1:1, lap 2:2:1:1), (f32, GL, row_major), "
    "(f32, GL, row_major), serial)",
    "Matmul([1, 2, 4, 6], (f32, GL, row_major), (f32, GL, row_major, s4, k%2, n%3, lap 1:1:1:1, lap 2:3:1:1), "
    "(f32, GL, row_major), serial)",
    f"Matmul([2, 4, 2, 3], (f32, GL, row_major, m%2, lap 2:1:1:1), (f32, GL, col_major, const), {PLAIN}, serial)",
    "Matmul([1, 6, 2, 2], (f32, GL, row_major, m%2), (f32, GL, row_major), (f32, GL, row_major), parallel 2)",
)


@pytest.mark.parametrize("text", TINY)
def test_optimum_is_the_brute_force_optimum(text: str) -> None:
    spec = Spec.parse(text)
    target = SMALL if spec.serial else CHEAP_FORKS
    assert Search(target).cost(spec) == brute_force(spec, target)


@pytest.mark.parametrize("text", [SPEC, *TINY])
def test_the_tree_costs_what_the_table_says(text: str) -> None:
    search, spec = Search(AVX2), Spec.parse(text)
    solution = search.solve(spec)
    assert search.price(solution.spec, solution.schedule) == solution.cost == search.cost(spec)
    assert parse(to_text(solution.schedule)) == solution.schedule


#: Channels first: 64 filters over an image whose lines have 14 places.
CHANNELS_FIRST = (
    "Matmul([1, 64, 288, 196], (f32, GL, row_major, const), "
    "(f32, GL, row_major, s4, k%9%3, n%14, lap 1:1:1:1, lap 3:14:1:1), (f32, GL, row_major), serial)"
)


def test_exchanged_the_image_is_broadcast_in_place() -> None:
    """With channels first the transposed problem is the cheaper one, and has no copy of the image."""
    search, spec = Search(TARGETS["avx512"]), Spec.parse(CHANNELS_FIRST)
    solution = search.solve(spec)
    text = to_text(solution.schedule)
    assert text.startswith("exchange\nto_accum\npack_ahead rhs as [b, n/") and "lhs to L2 as" not in text
    assert search.price(spec, solution.schedule) == solution.cost
    plain = search.complete(spec, parse("to_accum\n?"))
    assert plain.cost > solution.cost


def test_exchange_is_its_own_inverse() -> None:
    from morello_mlir.actions import key_of

    key = key_of(Spec.parse(CHANNELS_FIRST), AVX2)
    assert key.exchanged() != key == key.exchanged().exchanged()
    view = View("f32", (1, 288, 196), (0, 196, 14, 1, 16, 1), units=((9, 3), (14,)))
    assert view.exchanged().sizes == (1, 196, 288) and view.exchanged().units == ((14,), (9, 3))
    assert view.exchanged().strides == (0, 16, 1, 196, 14, 1) and view.exchanged().exchanged() == view


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("to_accum\npack_ahead lhs as [b, m/6, k, m%6]\nexchange\n?", "before any is packed"),
        ("exchange\nexchange\n?", "the output is column-major"),
        ("to_accum\nmove lhs to L2\nexchange\n?", "while all of them are in GL"),
    ],
)
def test_where_operands_are_not_exchanged(text: str, why: str) -> None:
    with pytest.raises(ScheduleError, match=why):
        Search(AVX2).complete(Spec.parse(CHANNELS_FIRST), parse(text))


def test_memo_and_search_agree(tmp_path) -> None:
    from morello_mlir.search.solve import search_for

    spec = Spec.parse(SPEC)
    plain = Search(AVX2).solve(spec)
    for _ in range(2):
        assert search_for(AVX2, tmp_path / "memo.sqlite").solve(spec).cost == plain.cost


# ---------------------------------------------------------------- from linalg


#: Dims of the image through which a window slides: those of the output and of the window.
SLIDING = {"D": ("d", "l"), "H": ("h", "i"), "W": ("w", "j")}


@dataclass(frozen=True)
class Conv:
    """A convolution as an op on memrefs. dims: of the input, the filter and the output, by letters: n (images), g
    (groups), c, f (channels), d, h, w and l, i, j (of the output, and of the window), D, H, W (of the input)."""

    op: str
    dims: str
    sizes: tuple[tuple[str, int], ...]
    stride: int = 1
    dilation: int = 1
    dtype: str = "f32"

    def size(self, letter: str) -> int:
        known = dict(self.sizes)
        if letter in SLIDING:
            out, taps = SLIDING[letter]
            return (known[out] - 1) * self.stride + (known[taps] - 1) * self.dilation + 1
        return known[letter]

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        return [tuple(self.size(x) for x in letters) for letters in self.dims.split()]

    @property
    def dtypes(self) -> list[str]:
        return (self.dtype.split(",") * 3)[:3]

    def text(self, fill: bool, offset: int = 0) -> str:
        kinds = []
        for shape, dtype in zip(self.shapes, self.dtypes, strict=True):
            element = "i8" if dtype == "u8" else dtype
            strides = [int(np.prod(shape[i + 1 :])) for i in range(len(shape))]
            kinds.append(f"memref<{'x'.join(map(str, shape))}x{element}, strided<{strides}, offset: {offset}>>")
        rank = len(set(self.dims) & set(SLIDING))
        out = self.dtypes[2]
        zero = "0" if out.startswith("i") else "0.0"
        lines = (
            [f"%z = arith.constant {zero} : {out}", f"linalg.fill ins(%z : {out}) outs(%c : {kinds[2]})"]
            if fill
            else []
        )
        numbers = (("strides", self.stride), ("dilations", self.dilation))
        attributes = ", ".join(f"{name} = dense<{value}> : tensor<{rank}xi64>" for name, value in numbers)
        lines.append(f"{self.op} {{{attributes}}} ins(%a, %b : {kinds[0]}, {kinds[1]}) outs(%c : {kinds[2]})")
        body = "\n".join(lines)
        return f"func.func @conv(%a: {kinds[0]}, %b: {kinds[1]}, %c: {kinds[2]}) {{\n{body}\nreturn\n}}"

    def reference(self, image: np.ndarray, filters: np.ndarray) -> np.ndarray:
        """In float64 (integers: int64), from shifted views of the image."""
        letters, taps, out = self.dims.split()
        wide = np.int64 if image.dtype.kind in "iu" else np.float64
        total = np.zeros([self.size(x) for x in out], wide)
        axes = [(letters.index(x), *SLIDING[x]) for x in letters if x in SLIDING]
        for at in itertools.product(*(range(self.size(t)) for _, _, t in axes)):
            part = [slice(None)] * image.ndim
            tap = [slice(None)] * filters.ndim
            for (axis, o, t), k in zip(axes, at, strict=True):
                first = k * self.dilation
                part[axis] = slice(first, first + (self.size(o) - 1) * self.stride + 1, self.stride)
                tap[taps.index(t)] = k
            names = letters.lower(), "".join(x for x in taps if x not in "ijl")
            x, y = image[tuple(part)].astype(wide), filters[tuple(tap)].astype(wide)
            total += np.einsum(f"{names[0]},{names[1]}->{out}", x, y)
        return total


FORMS = (
    ("linalg.conv_2d_nhwc_hwcf", "nHWc ijcf nhwf"),
    ("linalg.conv_2d_nhwc_fhwc", "nHWc fijc nhwf"),
    ("linalg.conv_2d_nchw_fchw", "ncHW fcij nfhw"),
    ("linalg.conv_1d_nwc_wcf", "nWc jcf nwf"),
    ("linalg.conv_1d_ncw_fcw", "ncW fcj nfw"),
    ("linalg.conv_2d_ngchw_gfchw", "ngcHW gfcij ngfhw"),
    ("linalg.conv_2d_ngchw_fgchw", "ngcHW fgcij ngfhw"),
    ("linalg.conv_2d_nhwgc_gfhwc", "nHWgc gfijc nhwgf"),
    ("linalg.conv_3d_ndhwc_dhwcf", "nDHWc lijcf ndhwf"),
    ("linalg.conv_3d_ncdhw_fcdhw", "ncDHW fclij nfdhw"),
)


def lifted(conv: Conv, fill: bool = True, offset: int = 0):
    """The module after lifting, and its `morello.spec` ops."""
    with context(), ir.Location.unknown():
        module = ir.Module.parse(conv.text(fill, offset))
        run_pipeline(module.operation, "builtin.module(morello-lift)")
        assert dialect.verify_specs(module.operation)
    return module, list(dialect.spec_ops(module.operation))


def specs_of(conv: Conv) -> list[str]:
    with context():
        return [str(op.spec) for op in lifted(conv)[1]]


def conv_of(form: int, **sizes: int) -> Conv:
    op, dims = FORMS[form]
    known = {"n": 1, "g": 2, "c": 4, "f": 8, "h": 5, "w": 7, "i": 3, "j": 3} | sizes
    options = {k: known.pop(k) for k in ("stride", "dilation") if k in known}
    return Conv(op, dims, tuple((k, v) for k, v in known.items() if k in dims.lower()), **options)


@pytest.mark.parametrize(
    ("form", "sizes", "dims", "lhs", "rhs"),
    [
        (0, {}, [1, 35, 36, 8], "m%7, k%12, lap 1:1:4:1, lap 7:12:1:1", ""),
        (0, {"dilation": 2}, [1, 35, 36, 8], "m%7, k%12%4, lap 1:4:1:2, lap 7:12:1:2", ""),
        (0, {"stride": 2}, [1, 35, 36, 8], "s32, m%7, k%12, lap 1:1:8:1, lap 7:12:2:1", ""),
        (0, {"n": 2}, [1, 70, 36, 8], "m%35%7, k%12, lap 1:1:4:1, lap 7:12:1:1", ""),
        (0, {"i": 1, "j": 1}, [1, 35, 4, 8], "", ""),
        (2, {}, [1, 8, 36, 35], "", "k%9%3, n%7, lap 1:1:1:1, lap 3:7:1:1"),
        (2, {"n": 3}, [3, 8, 36, 35], "", "k%9%3, n%7, lap 1:1:1:1, lap 3:7:1:1"),
        (3, {}, [1, 7, 12, 8], "lap 1:1:4:1", ""),
        (4, {}, [1, 8, 12, 7], "", "k%3, lap 1:1:1:1"),
        (5, {}, [2, 8, 36, 35], "", "k%9%3, n%7, lap 1:1:1:1, lap 3:7:1:1"),
    ],
    ids=str,
)
def test_convolutions_are_products_with_windows(form, sizes, dims, lhs, rhs) -> None:
    (found,) = specs_of(conv_of(form, **sizes))
    lhs, rhs = (f"(f32, GL, row_major{', ' if part else ''}{part})" for part in (lhs, rhs))
    assert found == f"Matmul({dims}, {lhs}, {rhs}, {PLAIN}, serial)"


def test_filters_are_constant_operands() -> None:
    conv = conv_of(0)
    text = conv.text(True).replace(
        "%b: memref<3x3x4x8xf32, strided<[96, 32, 8, 1], offset: 0>>", "%b: memref<3x3x4x8xf32> {morello.constant}"
    )
    text = text.replace("memref<3x3x4x8xf32, strided<[96, 32, 8, 1], offset: 0>>", "memref<3x3x4x8xf32>")
    with context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        run_pipeline(module.operation, "builtin.module(morello-lift)")
        (op,) = dialect.spec_ops(module.operation)
        assert [t.const for t in op.spec.operands] == [False, True, False]


def test_the_reference_says_the_same() -> None:
    """`morello-spec-to-linalg`, by which results are checked."""
    for form in (0, 2):
        conv = conv_of(form, n=2)
        module, _ = lifted(conv)
        with context(), ir.Location.unknown():
            run_pipeline(module.operation, "builtin.module(morello-spec-to-linalg,convert-linalg-to-loops)")
            assert not list(dialect.spec_ops(module.operation))
        check_numbers(conv, module, np.random.default_rng(0), fill=True)


# ---------------------------------------------------------------- numbers


def check_numbers(
    conv: Conv, module, rng: np.random.Generator, fill: bool, offset: int = 0, special: bool = False
) -> None:
    """Compiles `module` and runs it on random operands with nothing but NaN around them."""
    library = compile_module(module, ["conv"])
    arrays, buffers = [], []
    for i, (shape, name) in enumerate(zip(conv.shapes, conv.dtypes, strict=True)):
        dtype = np.dtype(NUMPY[name])
        count = int(np.prod(shape))
        buffer = np.full(offset + count + 128, 77 if dtype.kind in "iu" or i == 2 else np.nan, dtype)
        array = buffer[64 + offset :][:count].reshape(shape)
        if dtype.kind in "iu":
            array[...] = (
                rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype, endpoint=True) if i < 2 else 5
            )
        else:
            array[...] = rng.standard_normal(shape) if i < 2 or not fill else np.nan
        arrays.append(array)
        buffers.append(buffer)
    if special:
        for array in (a for a in arrays[:2] if a.dtype.kind not in "iu"):
            for value in (np.nan, np.inf, -np.inf):
                array[tuple(rng.integers(0, n) for n in array.shape)] = value
    before = arrays[2].copy()
    with np.errstate(invalid="ignore", over="ignore"):
        want = conv.reference(*arrays[:2]) + (0 if fill else before)
    ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(library.addresses["conv"])(
        *(b.ctypes.data + 64 * b.itemsize for b in buffers)
    )
    depth = int(np.prod([n for k, n in conv.sizes if k in "cijl"]))
    assert_close(arrays[2], want, depth)
    assert (buffers[2][: 64 + offset] == 77).all() and (buffers[2][64 + offset + arrays[2].size :] == 77).all()


@st.composite
def convs(draw: st.DrawFn) -> Conv:
    small = st.sampled_from((1, 2, 3, 5, 7, 8, 13, 16, 17))
    op, dims = draw(st.sampled_from(FORMS))
    sizes = {x: draw(small if x in "cfhw" else st.integers(1, 3)) for x in "ngcfdhwlij" if x in dims.lower()}
    # Output channels: with none of them it is no product of matrices.
    dtype = draw(st.sampled_from(("f32", "f32", "f64", "bf16,bf16,f32", "f16,f16,f32", "i8,i8,i32")))
    return Conv(op, dims, tuple(sizes.items()), draw(st.integers(1, 3)), draw(st.integers(1, 2)), dtype)


@pytest.mark.parametrize("target", ["avx2", "avx512"])
def test_random_schedules(target: str) -> None:
    if not host_runs(TARGETS[target]):
        pytest.skip(f"the host has no {target}")

    @settings(
        max_examples=16,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.explicit, Phase.reuse, Phase.generate),
    )
    @given(convs(), st.integers(0, 2**32 - 1), st.booleans(), st.sampled_from((0, 3)), st.booleans())
    def check(conv: Conv, seed: int, fill: bool, offset: int, special: bool) -> None:
        module, ops = lifted(conv, fill, offset)
        pick = random.Random(seed)
        with context():
            jobs = [(op, random_schedule(op.spec, TARGETS[target], pick)) for op in ops]
        apply_all(jobs, TARGETS[target])
        check_numbers(conv, module, np.random.default_rng(seed), fill, offset, special)

    check()


WINDOW_LOOPS = """func.func @f(%a: memref<4x4x2x3xf32>, %b: memref<2x2x2x3x4xf32>, %c: memref<3x3x2x4xf32>) {
  %z = arith.constant 0.0 : f32
  linalg.fill ins(%z : f32) outs(%c : memref<3x3x2x4xf32>)
  linalg.generic {indexing_maps = [affine_map<(h, w, g, f, i, j, c) -> (h + i, w + j, g, c)>,
      affine_map<(h, w, g, f, i, j, c) -> (i, j, g, c, f)>, affine_map<(h, w, g, f, i, j, c) -> (h, w, g, f)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%a, %b : memref<4x4x2x3xf32>, memref<2x2x2x3x4xf32>) outs(%c : memref<3x3x2x4xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  }
  return
}"""


def test_loops_of_a_window_around_a_product() -> None:
    """Groups between the window and the channels: k is the channels, the window two loops around it."""
    from morello_mlir import compile as compiled

    rng = np.random.default_rng(0)
    image, filters = (rng.standard_normal(s, np.float32) for s in ((4, 4, 2, 3), (2, 2, 2, 3, 4)))
    want = sum(
        np.einsum("hwgc,gcf->hwgf", image[i : i + 3, j : j + 3], filters[i, j]) for i in range(2) for j in range(2)
    )
    out = np.full((3, 3, 2, 4), np.nan, np.float32)
    module = compiled(WINDOW_LOOPS, target="avx2", threads=1, memo="off")
    module.f(image, filters, out)
    np.testing.assert_allclose(out, want, rtol=1e-5, atol=1e-5)
    assert module.left == 0


def test_tiles_of_a_line_where_batches_have_its_stride() -> None:
    """A tile of one line drops a dim whose stride another dim of one step has as well."""
    view = View("i8", (1, 18, 10), (90, 1, 18, 3, 90, 9), units=((6, 2), (5,)))
    b = Builder()
    operand = Operand(view, "%a").tile(b, 2, 5, 5)
    text = (
        f"func.func @f(%a: {view.type}) -> {operand.view.type} {{\n{b.text()}\n"
        f"return {operand.name} : {operand.view.type}\n}}"
    )
    with context(), ir.Location.unknown():
        assert ir.Module.parse(text).operation.verify()


# ---------------------------------------------------------------- from tensors


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "i8"])
@pytest.mark.parametrize(("low", "high"), [((1, 2, 0), (1, 0, 0)), ((0, 3, 1), (2, 1, 2)), ((0, 0, 0), (0, 1, 0))])
def test_padding(dtype: str, low: tuple[int, ...], high: tuple[int, ...]) -> None:
    """Every element of a padded tensor, rows of many lengths."""
    from morello_mlir import compile as compiled

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
    from morello_mlir import compile as compiled

    if not host_runs(TARGETS[target]):
        pytest.skip(f"the host has no {target}")
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
    from morello_mlir import compile as compiled

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


#: Depthwise convolution, pooling and their like over padded images that are too large for L2: form, sizes (n, h, w, c),
#: borders (before, after) along h and w, window, stride, dilation.
LARGE_PADS = [
    ("depthwise_conv_2d_nhwc_hwc", (1, 61, 50, 48), ((1, 1), (1, 1)), 3, 1, 1),
    ("depthwise_conv_2d_nhwc_hwc", (2, 40, 41, 48), ((0, 1), (2, 0)), 3, 2, 1),
    ("depthwise_conv_2d_nhwc_hwc", (1, 57, 52, 48), ((4, 4), (2, 6)), 5, 1, 2),
    ("depthwise_conv_2d_nchw_chw", (1, 55, 49, 53), ((1, 1), (1, 1)), 3, 1, 1),
    ("depthwise_conv_2d_nchw_chw", (3, 71, 64, 9), ((2, 1), (1, 2)), 3, 2, 1),
]


@pytest.mark.parametrize(("form", "sizes", "pads", "taps", "stride", "dilation"), LARGE_PADS)
@pytest.mark.parametrize("follow", [False, True])
def test_large_padded_images_are_read_in_parts(form, sizes, pads, taps, stride, dilation, follow) -> None:
    from morello_mlir import compile as compiled

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
    nest = NestSpec.parse(next(s["spec"] for s in module.specs if "mul(" in s["spec"]))
    assert module.left == 0 and math.prod(nest.dims) < want.size * taps**2
    got = np.asarray(module.f(x, f))
    np.testing.assert_allclose(got, np.maximum(want, 0) if follow else want, rtol=1e-4, atol=1e-4)
