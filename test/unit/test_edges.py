"""Edges of padded images: what is known of them, what it is worth to the search, and code that leaves zeros out."""

from __future__ import annotations

import ctypes
import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from conv_support import LINES, ROWS, apply_at_random, lifted, window_spec
from hypothesis import given
from hypothesis import strategies as st
from lowering_support import assert_close, compile_module, compiling, context, needs
from mlir import ir

from morello_mlir import compile as compiled
from morello_mlir.errors import SpecError
from morello_mlir.lifting.borders import pads_of
from morello_mlir.lowering import apply_all
from morello_mlir.passes.pipeline import run_pipeline
from morello_mlir.search.schedule import parse
from morello_mlir.search.solve import Search
from morello_mlir.spec import Edge, Side, Spec, Window
from morello_mlir.targets import TARGETS

AVX2 = TARGETS["avx2"]

# ---------------------------------------------------------------- what is known


@given(st.tuples(*[st.integers(1, 6)] * 2), st.tuples(*[st.integers(1, 3)] * 2), st.integers(0, 9), st.integers(0, 9))
def test_what_an_edge_says(counts: tuple[int, int], steps: tuple[int, int], low: int, size: int) -> None:
    """Every pair of steps finds the image, or does not, by the place that they lead to."""
    edge = Edge(Side(1, counts[0], steps[0]), Side(1, counts[1], steps[1]), low, low + size)
    want = {
        (a, b) for a, b in itertools.product(*map(range, counts)) if low <= a * steps[0] + b * steps[1] < low + size
    }
    assert {(a, b) for a in range(counts[0]) for b in range(*edge.inside(a))} == want
    assert {(a, b) for f, g, r, e in edge.runs() for b in range(f, g) for a in range(r, e)} == want
    assert edge.found == len(want) and edge.share == len(want) / (counts[0] * counts[1])
    assert edge.exchanged().exchanged() == edge


SPEC = window_spec(ROWS, LINES)


@pytest.mark.parametrize(
    ("part", "why"),
    [
        ("edge m 1x4:2 k 1x6:1", "cannot read"),
        ("edge m 1x4:2 n 1x6:1 in 2:8", "cannot read"),
        ("edge m 1x4:0 k 1x6:1 in 2:8", "is none"),
        ("edge m 1x4:2 k 1x6:1 in 8:2", "is none"),
        ("edge m 2x2:2 k 1x6:1 in 2:8", "none of its digits"),
        ("edge m 1x4:2 k 1x5:1 in 2:8", "none of its digits"),
    ],
)
def test_bad_edges_are_refused(part: str, why: str) -> None:
    with pytest.raises(SpecError, match=why):
        Spec.parse(SPEC.replace(ROWS, part))


def test_what_does_not_matter_is_left_out() -> None:
    window = Spec.parse(SPEC).operands[0].window
    rows, lines = window.edges
    assert window.without(1).edges == window.without(2).edges == (rows, lines)
    assert window.fitted((1, 4, 12)).edges == (rows, lines)
    assert window.fitted((1, 4, 9)) == Window(((), (6,)), window.laps[:1])
    assert window.exchanged().exchanged() == window and window.without_edges.edges == ()


# ---------------------------------------------------------------- the search


@pytest.mark.parametrize("schedule", ["to_accum\n?", "to_accum\nsplit k by 384:\n    ?"])
def test_zeros_cost_nothing(schedule: str) -> None:
    """Of 3 x 3 pixels at 7 x 7 positions, 19 in 21 are the image's, in either direction (0.82 of the work): with all of
    k, and where k is split between lines of the window."""
    edges = "edge m 1x7:128 k 1x384:1 in 128:1024, edge m 7x7:1 k 384x3:1 in 1:8"
    text = (
        "Matmul([1, 49, 1152, 64], (f32, GL, row_major, m%7, k%384, lap 1:1:128:1, lap 7:384:1:1, {}), "
        "(f32, GL, row_major, const), (f32, GL, row_major), serial)"
    )
    search = Search(TARGETS["avx512"])
    plain, edged = (
        search.complete(Spec.parse(text.format(e).replace(", )", ")")), parse(schedule)).cost for e in ("", edges)
    )
    assert (19 / 21) ** 2 < edged / plain < 0.9


# ---------------------------------------------------------------- from linalg


@dataclass(frozen=True)
class Padded:
    """A convolution of an image with zeros around it, on memrefs, filters constant. image: h, w, c; window: lines and
    pixels; pads: above, below, left, right."""

    last: bool
    image: tuple[int, int, int]
    filters: int
    window: tuple[int, int]
    pads: tuple[int, int, int, int]
    stride: int = 1
    dilation: int = 1

    @property
    def padded(self) -> tuple[int, int]:
        (h, w, _), (above, below, left, right) = self.image, self.pads
        return h + above + below, w + left + right

    @property
    def out(self) -> tuple[int, int]:
        return tuple(  # type: ignore[return-value]
            (n - self.dilation * (t - 1) - 1) // self.stride + 1 for n, t in zip(self.padded, self.window, strict=True)
        )

    def arrays(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """An image, and filters [window lines, window pixels, c, f]."""
        c = self.image[2]
        shapes = (1, *self.image), (*self.window, c, self.filters)
        image, filters = (rng.standard_normal(s, np.float32) for s in shapes)
        return image, filters

    def laid(self, array: np.ndarray) -> np.ndarray:
        """Images and results as the op has them."""
        return array if self.last else np.ascontiguousarray(array.transpose(0, 3, 1, 2))

    def want(self, image: np.ndarray, filters: np.ndarray) -> np.ndarray:
        (above, below, left, right), (oh, ow), s = self.pads, self.out, self.stride
        wide = np.pad(image.astype(np.float64), ((0, 0), (above, below), (left, right), (0, 0)))
        total = np.zeros((1, oh, ow, self.filters))
        for i, j in itertools.product(*map(range, self.window)):
            y, x = i * self.dilation, j * self.dilation
            part = wide[:, y : y + (oh - 1) * s + 1 : s, x : x + (ow - 1) * s + 1 : s]
            # Zeros around the image are not multiplied: the image alone may be infinite or NaN.
            total += np.einsum("nhwc,cf->nhwf", part, filters[i, j].astype(np.float64))
        return self.laid(total)

    def text(self, filters: np.ndarray, constant: bool = True, around: str = "0.0") -> str:
        (h, w, c), (hp, wp), (oh, ow), (above, _, left, _) = self.image, self.padded, self.out, self.pads
        order = (0, 1, 2, 3) if self.last else (0, 3, 1, 2)
        image, padded, out = (
            [shape[i] for i in order] for shape in ((1, h, w, c), (1, hp, wp, c), (1, oh, ow, self.filters))
        )
        at = [(0, above, left, 0)[i] for i in order]
        filters = filters if self.last else np.ascontiguousarray(filters.transpose(3, 2, 0, 1))
        op = "conv_2d_nhwc_hwcf" if self.last else "conv_2d_nchw_fchw"
        kinds = [f"memref<{'x'.join(map(str, s))}xf32>" for s in (image, filters.shape, out, padded)]
        strides = [int(np.prod(padded[i + 1 :])) for i in range(4)]
        start = sum(a * s for a, s in zip(at, strides, strict=True))
        inner = f"{kinds[0][:-1]}, strided<{strides}, offset: {start}>>"
        numbers = f"strides = dense<{self.stride}> : tensor<2xi64>, dilations = dense<{self.dilation}> : tensor<2xi64>"
        given = f", %w: {kinds[1]}" if not constant else ""
        taken = f"%w = memref.get_global @w : {kinds[1]}" if constant else ""
        return f"""
        memref.global "private" constant @w : {kinds[1]} = dense<"0x{filters.tobytes().hex()}">
        func.func @conv(%a: {kinds[0]}, %c: {kinds[2]}{given}) {{
          %z = arith.constant 0.0 : f32
          %around = arith.constant {around} : f32
          {taken}
          %p = memref.alloc() : {kinds[3]}
          linalg.fill ins(%around : f32) outs(%p : {kinds[3]})
          %i = memref.subview %p[{", ".join(map(str, at))}] [{", ".join(map(str, image))}] [1, 1, 1, 1]
            : {kinds[3]} to {inner}
          linalg.copy ins(%a : {kinds[0]}) outs(%i : {inner})
          linalg.fill ins(%z : f32) outs(%c : {kinds[2]})
          linalg.{op} {{{numbers}}} ins(%p, %w : {kinds[3]}, {kinds[1]}) outs(%c : {kinds[2]})
          memref.dealloc %p : {kinds[3]}
          return
        }}"""


SAME = Padded(True, (5, 7, 4), 8, (3, 3), (1, 1, 1, 1))


def edges_of(conv: Padded, **how: object) -> list[str]:
    filters = np.ones((*conv.window, conv.image[2], conv.filters), np.float32)
    with context():
        _, (op,) = lifted(conv.text(filters, **how), nests=False)
        names = [op.spec.operand_names(i) for i in (0, 1)]
        windows = [t.window for t in op.spec.operands[:2]]
        return [e.text(n) for w, n in zip(windows, names, strict=True) if w is not None for e in w.edges]


@pytest.mark.parametrize(
    ("conv", "edges"),
    [
        (SAME, ["edge m 1x7:4 k 1x12:1 in 4:32", "edge m 7x5:1 k 12x3:1 in 1:6"]),
        (Padded(False, (5, 7, 4), 8, (3, 3), (1, 1, 1, 1)),
         ["edge n 1x7:1 k 1x3:1 in 1:8", "edge n 7x5:1 k 3x3:1 in 1:6"]),
        (Padded(True, (5, 7, 4), 8, (3, 3), (0, 0, 0, 1)), ["edge m 1x6:4 k 1x12:1 in 0:28"]),
        (Padded(True, (8, 8, 4), 8, (3, 3), (0, 1, 0, 1), 2),
         ["edge m 1x4:8 k 1x12:1 in 0:32", "edge m 4x4:2 k 12x3:1 in 0:8"]),
        (Padded(True, (7, 9, 4), 8, (3, 3), (2, 2, 2, 2), 1, 2),
         ["edge m 1x9:1 k 4x3:2 in 2:11", "edge m 9x7:1 k 12x3:2 in 2:9"]),
        # One pixel: a window is one run of its buffer, which is cut by lines alone.
        (Padded(True, (1, 1, 4), 8, (3, 3), (1, 1, 1, 1)),
         ["edge m 1x1:1 k 1x36:1 in 12:24"]),
    ],
    ids=str,
)  # fmt: skip
def test_what_lifting_finds(conv: Padded, edges: list[str]) -> None:
    assert edges_of(conv) == edges


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_infinite_filters_are_multiplied(value: float) -> None:
    """Zero times infinity is NaN, which every line next to the border would have."""
    filters = np.ones((3, 3, 4, 8), np.float32)
    filters[0, 0, 0, 0] = value
    with context():
        _, (op,) = lifted(SAME.text(filters), nests=False)
        assert not op.spec.operands[0].window.edges


def test_nothing_is_known_otherwise() -> None:
    assert edges_of(SAME, constant=False) == []
    assert edges_of(SAME, around="1.0") == []
    assert edges_of(Padded(True, (5, 7, 4), 8, (3, 3), (0, 0, 0, 0))) == []


KIND = "memref<1x7x9x4xf32>"
SAME_MAP = "affine_map<(i, j, k, l) -> (i, j, k, l)>"
AGAIN = {
    "one output": f"linalg.fill ins(%a0 : f32) outs(%p : {KIND})",
    "the first of two": f"""%q = memref.alloc() : {KIND}
      linalg.generic {{indexing_maps = [{SAME_MAP}, {SAME_MAP}], iterator_types = ["parallel", "parallel", "parallel",
          "parallel"]}} outs(%p, %q : {KIND}, {KIND}) {{
      ^bb0(%s: f32, %t: f32):
        linalg.yield %a0, %a0 : f32, f32
      }}""",
}


@pytest.mark.parametrize("again", AGAIN.values(), ids=AGAIN)
def test_a_buffer_that_is_written_to_again_has_no_edges(again: str) -> None:
    text = SAME.text(np.ones((3, 3, 4, 8), np.float32))
    text = text.replace("linalg.fill ins(%z : f32) outs(%c", f"{again}\nlinalg.fill ins(%z : f32) outs(%c")
    text = text.replace("%around =", "%a0 = arith.constant 1.0 : f32\n%around =")
    with context():
        _, (op,) = lifted(text, nests=False)
        assert not op.spec.operands[0].window.edges


@pytest.mark.parametrize(("shift", "found"), [(None, 2), (64, 0)])
def test_places_count_from_where_the_buffer_begins(shift: int | None, found: int) -> None:
    view = f"memref.view %p[%shift][] : memref<4096xi8> to {KIND}" if shift else f"memref.cast %b : {KIND} to {KIND}"
    with context():
        module = ir.Module.parse(f"""func.func @f() -> {KIND} {{
          %shift = arith.constant {shift or 0} : index
          %p = memref.alloc() {{morello.border = array<i64: 1, 4000>}} : memref<4096xi8>
          %b = memref.alloc() {{morello.border = array<i64: 0, 1, 1, 0, 1, 6, 8, 4>}} : {KIND}
          %v = {view}
          return %v : {KIND}
        }}""")
        (value,) = list(module.body.operations[0].regions[0].blocks[0].operations)[-1].operands
        assert len(pads_of(value)) == found


# ---------------------------------------------------------------- numbers


def check_numbers(conv: Padded, module: ir.Module, arrays: tuple[np.ndarray, np.ndarray]) -> None:
    with context(), ir.Location.unknown():
        run_pipeline(module.operation, "builtin.module(convert-linalg-to-loops)")
    library = compile_module(module, ["conv"])
    image, out = conv.laid(arrays[0]), np.full(conv.laid(np.zeros((1, *conv.out, conv.filters))).shape, 7, np.float32)
    ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2)(library.addresses["conv"])(image.ctypes.data, out.ctypes.data)
    with np.errstate(invalid="ignore"):
        assert_close(out, conv.want(*arrays), int(np.prod(arrays[1].shape[:3])))


@st.composite
def padded(draw: st.DrawFn) -> Padded:
    size, pad = st.sampled_from((1, 2, 3, 5, 7, 8)), st.sampled_from((0, 1, 1, 2, 6))
    image = draw(size), draw(size), draw(st.sampled_from((1, 3, 4, 17)))
    window, dilation = (draw(st.integers(1, 4)), draw(st.integers(1, 4))), draw(st.integers(1, 2))
    pads = [draw(pad) for _ in range(4)]
    for i, (n, t) in enumerate(zip(image, window, strict=False)):
        pads[2 * i] += max(0, dilation * (t - 1) + 1 - n - pads[2 * i] - pads[2 * i + 1])
    filters = draw(st.sampled_from((1, 8, 16, 21)))
    return Padded(draw(st.booleans()), image, filters, window, tuple(pads), draw(st.integers(1, 3)), dilation)


@pytest.mark.parametrize("target", ["avx2", "avx512"])
def test_random_schedules(target: str) -> None:
    needs(target)

    @compiling(16)
    @given(padded(), st.integers(0, 2**32 - 1), st.booleans())
    def check(conv: Padded, seed: int, special: bool) -> None:
        image, filters = conv.arrays(np.random.default_rng(seed))
        if special:
            for value in (np.nan, np.inf, -np.inf):
                image[tuple(np.random.default_rng(seed).integers(0, n) for n in image.shape)] = value
        module, ops = lifted(conv.text(filters), nests=False)
        apply_at_random(ops, TARGETS[target], seed)
        check_numbers(conv, module, (image, filters))

    check()


#: Tiles that are lines, or parts of them; k whole, and split between and within lines of the window.
SCHEDULES = (
    "tile m by 7:|    move out to VRF|    kernel broadcast_fma",
    "tile m by 14:|    split k by 24:|        tile m by 7:|            move out to VRF|            kernel broadcast_fma"
    "|    rest:|        tile m by 7:|            move out to VRF|            kernel broadcast_fma"
    "|rest:|    move out to VRF|    kernel broadcast_fma",
    "tile m by 7:|    split k by 12:|        move out to VRF|        kernel broadcast_fma",
    "tile m by 7:|    tile m by 3:|        move out to VRF|        kernel broadcast_fma"
    "|    rest:|        move out to VRF|        kernel broadcast_fma",
)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_zeros_are_left_out(schedule: str) -> None:
    """With every way of cutting positions and the window."""
    conv = SAME
    arrays = conv.arrays(np.random.default_rng(0))
    module, (op,) = lifted(conv.text(arrays[1]), nests=False)
    moves = [f"move {x} to {memory}" for memory in ("L2", "L1") for x in ("lhs", "rhs", "out")]
    head = ["to_accum", "pack_ahead rhs as [b, n/8, k, n%8]", *moves]
    with context():
        apply_all([(op, parse("\n".join([*head, *schedule.split("|")])))], AVX2)
    check_numbers(conv, module, arrays)


@pytest.mark.parametrize(("value", "edges"), [(1.0, 2), (np.inf, 0)])
def test_filters_that_are_given(value: float, edges: int) -> None:
    """As frontends give weights: what they hold is looked at."""
    weight = np.ones((3, 3, 3, 8), np.float32)
    weight[0, 0, 0, 0] = value
    text = PROGRAM.format(argument=", %w: tensor<3x3x3x8xf32>", constant="")
    program = compiled(text, constants={1: weight}, threads=1, memo="off")
    (spec,) = (s["spec"] for s in program.specs if s["spec"].startswith("Matmul"))
    assert spec.count("edge ") == edges


PROGRAM = """func.func @f(%a: tensor<1x6x7x3xf32>{argument}) -> tensor<1x6x7x8xf32> {{
  %z = arith.constant 0.0 : f32
  {constant}
  %p = tensor.pad %a low[0, 1, 1, 0] high[0, 1, 1, 0] {{
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %z : f32
  }} : tensor<1x6x7x3xf32> to tensor<1x8x9x3xf32>
  %e = tensor.empty() : tensor<1x6x7x8xf32>
  %o = linalg.fill ins(%z : f32) outs(%e : tensor<1x6x7x8xf32>) -> tensor<1x6x7x8xf32>
  %r = linalg.conv_2d_nhwc_hwcf ins(%p, %w : tensor<1x8x9x3xf32>, tensor<3x3x3x8xf32>)
    outs(%o : tensor<1x6x7x8xf32>) -> tensor<1x6x7x8xf32>
  return %r : tensor<1x6x7x8xf32>
}}"""


def test_programs_have_edges() -> None:
    """From `tensor.pad` on, through the whole pipeline: a network's convolution leaves its border out."""
    rng = np.random.default_rng(0)
    image, weight = (rng.standard_normal(s, np.float32) for s in ((1, 6, 7, 3), (3, 3, 3, 8)))
    constant = f'%w = arith.constant dense<"0x{weight.tobytes().hex()}"> : tensor<3x3x3x8xf32>'
    conv = Padded(True, (6, 7, 3), 8, (3, 3), (1, 1, 1, 1))
    for threads in (1, 2):
        program = compiled(PROGRAM.format(argument="", constant=constant), threads=threads, memo="off")
        np.testing.assert_allclose(program.f(image), conv.want(image, weight), rtol=1e-4, atol=1e-4)
        (spec,) = (s["spec"] for s in program.specs if s["spec"].startswith("Matmul"))
        assert spec.count("edge ") == 2
