"""Lifted contractions compute the right numbers: random maps, orders, strides and offsets against numpy's einsum."""

from __future__ import annotations

import string
from dataclasses import dataclass

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lift_support import FROM_TENSORS, LIFT, OPTIMIZE, Run

from morello_mlir.spec import Spec

SETTINGS = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
_BODIES = (
    "%p = arith.mulf %x, %y : {t}\n%q = arith.addf %z, %p : {t}",
    "%p = arith.mulf %y, %x fastmath<fast> : {t}\n%q = arith.addf %p, %z : {t}",
    "%q = math.fma %y, %x, %z : {t}",
)
_PRESENT = {"b": "lro", "m": "lo", "n": "ro", "k": "lr", "l": "lo", "r": "ro"}


@dataclass(frozen=True)
class Array:
    """One operand: its loops in logical order, its sizes, and where its elements are in a buffer."""

    loops: tuple[int, ...]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    dynamic: bool

    @property
    def extent(self) -> int:
        return self.offset + 1 + sum((n - 1) * s for n, s in zip(self.sizes, self.strides, strict=True))

    def view(self, buffer: np.ndarray) -> np.ndarray:
        strides = [s * buffer.itemsize for s in self.strides]
        return np.lib.stride_tricks.as_strided(buffer[self.offset :], self.sizes, strides)

    def memref(self, dtype: str) -> str:
        shape = "".join(f"{n}x" for n in self.sizes)
        offset = "?" if self.dynamic else self.offset
        return f"memref<{shape}{dtype}, strided<[{', '.join(map(str, self.strides))}], offset: {offset}>>"


@dataclass(frozen=True)
class Case:
    """A contraction: loop roles and sizes, operands, body."""

    sizes: tuple[int, ...]
    kinds: tuple[str, ...]
    arrays: tuple[Array, Array, Array]
    dtype: str
    body: str
    fill: bool

    def einsum(self, lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
        names = ["".join(string.ascii_letters[d] for d in a.loops) for a in self.arrays]
        return np.einsum(f"{names[0]},{names[1]}->{names[2]}", lhs, rhs)

    def generic(self, types: list[str], result: str = "") -> str:
        dims = ", ".join(f"d{i}" for i in range(len(self.sizes)))
        maps = [f"affine_map<({dims}) -> ({', '.join(f'd{d}' for d in a.loops)})>" for a in self.arrays]
        return f"""linalg.generic {{indexing_maps = [{", ".join(maps)}],
            iterator_types = [{", ".join(f'"{k}"' for k in self.kinds)}]}}
            ins(%a, %b : {types[0]}, {types[1]}) outs(%c : {types[2]}) {{
            ^bb0(%x: {self.dtype}, %y: {self.dtype}, %z: {self.dtype}):
              {self.body.format(t=self.dtype)}
              linalg.yield %q : {self.dtype}
            }} {result}"""


@st.composite
def cases(draw: st.DrawFn) -> Case:
    counts = {r: draw(st.integers(0, 2)) for r in "bmn"} | {"k": draw(st.integers(1, 2))}
    roles = draw(st.permutations([r for r, c in counts.items() for _ in range(c)]))
    sizes = tuple(draw(st.integers(1, 4)) for _ in roles)
    kinds = tuple("reduction" if r == "k" else "parallel" for r in roles)
    arrays = []
    for operand in "lro":
        loops = tuple(draw(st.permutations([d for d, r in enumerate(roles) if operand in _PRESENT[r]])))
        arrays.append(_array(draw, loops, tuple(sizes[d] for d in loops)))
    dtype = draw(st.sampled_from(["f32", "f64"]))
    return Case(
        sizes, kinds, (arrays[0], arrays[1], arrays[2]), dtype, draw(st.sampled_from(_BODIES)), draw(st.booleans())
    )


def _array(draw: st.DrawFn, loops: tuple[int, ...], sizes: tuple[int, ...]) -> Array:
    """Elements in some physical order, dense half of the time, else with gaps."""
    order = draw(st.permutations(range(len(loops))))
    gaps = draw(st.booleans())
    strides = [0] * len(loops)
    run = draw(st.integers(1, 2)) if gaps else 1
    for at in order:
        strides[at] = run
        run = run * sizes[at] + (draw(st.integers(0, 2)) if gaps else 0)
    offset = draw(st.integers(0, 3)) if gaps else 0
    return Array(loops, sizes, tuple(strides), offset, draw(st.booleans()))


def _memref_module(case: Case) -> str:
    buffers = [f"memref<{a.extent}x{case.dtype}>" for a in case.arrays]
    types = [a.memref(case.dtype) for a in case.arrays]
    views = []
    for name, array, buffer, kind in zip("abc", case.arrays, buffers, types, strict=True):
        offset = f"%o{name}" if array.dynamic else array.offset
        sizes, strides = list(array.sizes), list(array.strides)
        views.append(
            f"%{name} = memref.reinterpret_cast %buf{name} to offset: [{offset}], sizes: {sizes}, "
            f"strides: {strides} : {buffer} to {kind}"
        )
    fill = f"linalg.fill ins(%zero : {case.dtype}) outs(%c : {types[2]})" if case.fill else ""
    parameters = [f"%buf{n}: {b}" for n, b in zip("abc", buffers, strict=True)] + [f"%o{n}: index" for n in "abc"]
    return f"""func.func @f({", ".join(parameters)}) {{
        %zero = arith.constant 0.0 : {case.dtype}
        {chr(10).join(views)}
        {fill}
        {case.generic(types)}
        return
      }}"""


def _data(array: Array, dtype: str, seed: int) -> np.ndarray:
    kind = np.float32 if dtype == "f32" else np.float64
    return np.random.default_rng(seed).integers(-4, 5, array.extent).astype(kind)


@SETTINGS
@given(cases())
def test_strided_memrefs(case: Case) -> None:
    run = Run(_memref_module(case), LIFT)
    (spec,) = run.specs
    assert str(Spec.parse(spec)) == spec
    _check_memrefs(case, run)


@settings(SETTINGS, max_examples=15)
@given(cases())
def test_strided_memrefs_as_searched(case: Case) -> None:
    """The Specs that lifting makes, odd strides and broadcasts included, have implementations that are right."""
    run = Run(_memref_module(case), OPTIMIZE)
    assert run.specs == []
    _check_memrefs(case, run)


def _check_memrefs(case: Case, run: Run) -> None:
    buffers = [_data(a, case.dtype, i) for i, a in enumerate(case.arrays)]
    lhs, rhs, out = (a.view(b) for a, b in zip(case.arrays, buffers, strict=True))
    want = buffers[2].copy()
    target = case.arrays[2].view(want)
    target[...] = case.einsum(lhs, rhs) + (0 if case.fill else out)
    run.compile()("f", *buffers, *(a.offset for a in case.arrays))
    # The whole buffer: nothing between the elements may have changed. Small integers are exact in any order.
    np.testing.assert_array_equal(buffers[2], want)


def _tensor_module(case: Case) -> str:
    types = ["tensor<" + "".join(f"{n}x" for n in a.sizes) + f"{case.dtype}>" for a in case.arrays]
    out = types[2].replace("tensor", "memref")
    fill = f"%c = linalg.fill ins(%zero : {case.dtype}) outs(%e : {types[2]}) -> {types[2]}"
    return f"""func.func @f(%a: {types[0]}, %b: {types[1]}, %e: {types[2]}, %out: {out}) {{
        %zero = arith.constant 0.0 : {case.dtype}
        {fill if case.fill else fill.replace("%c =", "%unused =")}
        %r = {case.generic(types, f"-> {types[2]}").replace("%c", "%c" if case.fill else "%e")}
        bufferization.materialize_in_destination %r in writable %out : ({types[2]}, {out}) -> ()
        return
      }}"""


@SETTINGS
@given(cases())
def test_tensors(case: Case) -> None:
    run = Run(_tensor_module(case), FROM_TENSORS)
    assert len(run.specs) == 1
    shapes = [a.sizes for a in case.arrays]
    rng = np.random.default_rng(0)
    kind = np.float32 if case.dtype == "f32" else np.float64
    lhs, rhs, out = (rng.integers(-4, 5, shape).astype(kind) for shape in shapes)
    got = np.full(shapes[2], np.nan, kind)
    want = case.einsum(lhs, rhs) + (0 if case.fill else out)
    run.compile()("f", lhs, rhs, out.copy(), got)
    np.testing.assert_array_equal(got, want)
