"""Convolutions as ops on memrefs, what they compute, and the Specs that they become."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass

import numpy as np
from lowering_support import context
from mlir import ir
from random_schedules import random_schedule

from morello_mlir import dialect
from morello_mlir.lowering import apply_all
from morello_mlir.passes.pipeline import run_pipeline
from morello_mlir.targets import Target

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


def conv_of(form: int, **sizes: int) -> Conv:
    op, dims = FORMS[form]
    known = {"n": 1, "g": 2, "c": 4, "f": 8, "h": 5, "w": 7, "i": 3, "j": 3} | sizes
    options = {k: known.pop(k) for k in ("stride", "dilation") if k in known}
    return Conv(op, dims, tuple((k, v) for k, v in known.items() if k in dims.lower()), **options)


#: Edges of the image of `window_spec()`.
ROWS = "edge m 1x4:2 k 1x6:1 in 2:8"
LINES = "edge m 4x2:1 k 6x3:1 in 1:3"
#: Products of windows with edges, small enough to try everything.
TINY_EDGES = (
    "MatmulAccum([1, 4, 4, 2], (f32, GL, row_major, m%2, k%2, lap 1:1:1:1, lap 2:2:1:1, edge m 1x2:1 k 1x2:1 in 1:2, "
    "edge m 2x2:1 k 2x2:1 in 1:3), (f32, GL, row_major), (f32, GL, row_major), serial)",
    "Matmul([1, 2, 4, 4], (f32, GL, row_major), (f32, GL, row_major, s4, k%2, n%2, lap 1:1:1:1, lap 2:2:1:1, "
    "edge n 1x2:1 k 1x2:1 in 0:2, edge n 2x2:1 k 2x2:1 in 0:1), (f32, GL, row_major), serial)",
)


def window_spec(*edges: str) -> str:
    """The text of a product whose rows go through a window of images, by its edges."""
    window = ", ".join(("m%4, k%6, lap 1:1:2:1, lap 4:6:1:1", *edges))
    return (
        f"Matmul([1, 8, 18, 5], (f32, GL, row_major, {window}), (f32, GL, row_major, const), "
        "(f32, GL, row_major), serial)"
    )


def lifted(text: str, nests: bool = True):
    """The module after lifting, and its `morello.spec` ops."""
    with context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        run_pipeline(module.operation, f"builtin.module(morello-lift{{nests={str(nests).lower()}}})")
        assert dialect.verify_specs(module.operation)
    return module, list(dialect.spec_ops(module.operation))


def apply_at_random(ops: list, target: Target, seed: int) -> None:
    """Executes schedules at random."""
    pick = random.Random(seed)
    with context():
        jobs = [(op, random_schedule(op.spec, target, pick)) for op in ops]
    apply_all(jobs, target)


#: A small one, its filters a constant of the module.
CONV = """
func.func @f(%x: tensor<1x6x6x3xf32>, %w: tensor<3x3x3x8xf32> {morello.constant}) -> tensor<1x4x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x4x4x8xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<1x4x4x8xf32>) -> tensor<1x4x4x8xf32>
  %c = linalg.conv_2d_nhwc_hwcf ins(%x, %w : tensor<1x6x6x3xf32>, tensor<3x3x3x8xf32>)
    outs(%i : tensor<1x4x4x8xf32>) -> tensor<1x4x4x8xf32>
  return %c : tensor<1x4x4x8xf32>
}
"""
