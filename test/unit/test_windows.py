"""Convolutions: windows as part of a Spec, how ops become such Specs, the search in them, and the code."""

from __future__ import annotations

import ctypes
import itertools

import numpy as np
import pytest
from conv_support import FORMS, LINES, ROWS, TINY_EDGES, Conv, apply_at_random, conv_of, lifted, window_spec
from hypothesis import given
from hypothesis import strategies as st
from lowering_support import NUMPY, assert_close, compile_module, compiling, context, needs
from mlir import ir
from search_support import brute_force
from small_target import CHEAP_FORKS, SMALL

from morello_mlir import dialect
from morello_mlir.actions import closure
from morello_mlir.errors import ScheduleError, SpecError
from morello_mlir.lowering.builder import Builder
from morello_mlir.lowering.views import Operand, View
from morello_mlir.passes.pipeline import run_pipeline
from morello_mlir.search.schedule import parse, to_text
from morello_mlir.search.solve import Search
from morello_mlir.spec import Lap, Spec, Window
from morello_mlir.targets import TARGETS

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


SPEC = window_spec()


@pytest.mark.parametrize("text", [SPEC, window_spec(ROWS, LINES)])
def test_text(text: str) -> None:
    spec = Spec.parse(text)
    assert str(spec) == text and spec.canonical() == spec


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


@pytest.mark.parametrize("text", [*TINY, *TINY_EDGES])
def test_optimum_is_the_brute_force_optimum(text: str) -> None:
    spec = Spec.parse(text)
    target = SMALL if spec.serial else CHEAP_FORKS
    assert Search(target).cost(spec) == brute_force(spec, target)


@pytest.mark.parametrize("text", [SPEC, window_spec(ROWS, LINES), *TINY, *TINY_EDGES])
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


def specs_of(conv: Conv) -> list[str]:
    with context():
        return [str(op.spec) for op in lifted(conv.text(True))[1]]


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
    with context():
        _, (op,) = lifted(text)
        assert [t.const for t in op.spec.operands] == [False, True, False]


def test_the_reference_says_the_same() -> None:
    """`morello-spec-to-linalg`, by which results are checked."""
    for form in (0, 2):
        conv = conv_of(form, n=2)
        module, _ = lifted(conv.text(True))
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
    needs(target)

    @compiling(16)
    @given(convs(), st.integers(0, 2**32 - 1), st.booleans(), st.sampled_from((0, 3)), st.booleans())
    def check(conv: Conv, seed: int, fill: bool, offset: int, special: bool) -> None:
        module, ops = lifted(conv.text(fill, offset))
        apply_at_random(ops, TARGETS[target], seed)
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


@pytest.mark.parametrize(("row", "comes_back"), [(1, True), (2, True), (4, False)])
def test_steps_that_come_back_are_a_loop_of_their_own(row: int, comes_back: bool) -> None:
    """Channels first: 64 channels, three lines, three pixels, rows of a tile so many pixels apart: a step, or two, lead
    to what another row had, or none."""
    from morello_mlir.lowering.bundle import Bundle
    from morello_mlir.lowering.digits import Digit
    from morello_mlir.lowering.kernels import _in_order, _Strides

    channels, lines, pixels = Digit(64, 900, 9), Digit(3, 30, 3), Digit(3, 1, 1)
    strides = _Strides(lhs_row=row, lhs_step=1, rhs_step=1, rhs_lane=1, widths=(16, 16))
    found = _in_order([channels, lines, pixels], strides, Bundle(14, 2, 16, [""] * 28))
    assert found == ([channels, pixels, lines] if comes_back else [channels, lines, pixels])


def test_lines_between_those_that_are_apart_are_counted_once() -> None:
    """Channels first, every second pixel: a tile touches whole lines of the image, not a cache line for each pixel."""
    from morello_mlir.actions.state import footprint, key_of

    spec = Spec.parse(
        "Matmul([1, 8, 576, 14], (f32, GL, row_major), "
        "(f32, GL, row_major, s4, gapped, k%9%3, lap 1:1:1:2), (f32, GL, row_major), serial)"
    )
    key = key_of(spec, AVX2)
    print_ = footprint(key, 1, {"b": 1, "m": 8, "k": 576, "n": 14})
    # 64 channels of three lines of 29 pixels: two cache lines each.
    assert (print_.rows, print_.row_lines, print_.lines) == (192, 2, 384)
    # A single step along the window: 14 pixels that are apart lie in two lines as well.
    assert footprint(key, 1, {"b": 1, "m": 8, "k": 1, "n": 14}).lines == 2
