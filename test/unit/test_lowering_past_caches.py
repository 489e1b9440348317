"""Outputs that are written past the caches: right wherever they begin, and only where nothing reads them."""

from __future__ import annotations

import random

import numpy as np
import pytest
from lowering_support import Case, Storage, assert_close, compile_cases, run_case
from small_target import SMALL

import morello_mlir
from morello_mlir.actions import key_of
from morello_mlir.actions.space import past_caches
from morello_mlir.lowering.plan import make_plan, streams
from morello_mlir.search.explain import steps
from morello_mlir.search.schedule import parse, to_text
from morello_mlir.search.solve import Search
from morello_mlir.search.steps import traffic
from morello_mlir.spec import Spec, matmul_spec
from morello_mlir.targets import get_target

SERIAL = """
move out to WC
move lhs to L2
move rhs to L2
tile n by {n}:
    tile m by 4:
        move out to VRF
        kernel broadcast_fma
    rest:
        move out to VRF
        kernel broadcast_fma
"""
SHARED = "move out to WC\nparallel tile m by 4:\n{}rest:\n{}"
BLOCK = """    move lhs to L2
    move rhs to L2
    tile n by 16:
        move out to VRF
        kernel broadcast_fma
"""
SHARED = SHARED.format(BLOCK, BLOCK)
#: The same with the output in caches.
CACHED = "to_accum\n" + SERIAL.format(n=16).replace("to WC", "to L2").replace("L2\ntile", "L2\nmove out to L1\ntile")


def module(schedule: str, dtype: str = "f32", then: str = "") -> str:
    """10 x 7 by 7 x 48, with a schedule."""
    lines = ", ".join(f'"{line}"' for line in schedule.strip().splitlines())
    lhs, rhs, out = (f"memref<{s}x{dtype}>" for s in ("10x7", "7x48", "10x48"))
    inputs = f"%a, %b : {lhs}, {rhs}"
    return f"""
    func.func @f(%a: {lhs}, %b: {rhs}, %c: {out}) {{
      %zero = arith.constant 0.0 : {dtype}
      linalg.fill ins(%zero : {dtype}) outs(%c : {out})
      linalg.matmul {{morello.schedule = [{lines}]}} ins({inputs}) outs(%c : {out})
      {then}
      return
    }}"""


RELU = """
      linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                      iterator_types = ["parallel", "parallel"]}
        ins(%c : memref<10x48xf32>) outs(%c : memref<10x48xf32>) {
      ^bb0(%x: f32, %y: f32):
        %p = arith.maximumf %x, %zero : f32
        linalg.yield %p : f32
      }"""


def placed(array: np.ndarray, skip: int) -> np.ndarray:
    """A copy that begins `skip` elements after a line."""
    room = np.full(array.size + 64, 77, array.dtype)
    start = (-room.ctypes.data % 64) // array.itemsize + skip
    out = room[start : start + array.size].reshape(array.shape)
    out[...] = array
    return out


def inputs(dtype: type) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    lhs, rhs = (rng.standard_normal(shape).astype(dtype) for shape in ((10, 7), (7, 48)))
    return lhs, rhs, np.full((10, 48), np.nan, dtype)


@pytest.mark.parametrize("skip", [0, 1, 8])
@pytest.mark.parametrize(
    ("schedule", "dtype", "threads"),
    [
        (SERIAL.format(n=16), "f32", 1),
        (SERIAL.format(n=8), "f64", 1),
        (SERIAL.format(n=8), "f32", 1),
        (SHARED, "f32", 3),
    ],
)
def test_numbers(schedule: str, dtype: str, threads: int, skip: int) -> None:
    compiled = morello_mlir.compile(module(schedule, dtype), target="avx2", threads=threads, memo="off")
    lhs, rhs, out = inputs(np.float64 if dtype == "f64" else np.float32)
    out = placed(out, skip)
    compiled.f(lhs, rhs, out)
    assert_close(out, lhs.astype(np.float64) @ rhs, 7)
    assert ((out.base == 77).sum()) == out.base.size - out.size


@pytest.mark.parametrize("skip", [0, 1])
def test_numbers_of_what_is_done_to_the_sums(skip: int) -> None:
    compiled = morello_mlir.compile(module(SERIAL.format(n=16), then=RELU), target="avx2", threads=1, memo="off")
    lhs, rhs, out = inputs(np.float32)
    out = placed(out, skip)
    compiled.f(lhs, rhs, out)
    assert_close(out, np.maximum(lhs.astype(np.float64) @ rhs, 0), 7)
    assert "vmovntps" in compiled.emit("asm")


def test_stores_past_the_caches_are_fenced() -> None:
    for schedule, past in ((SERIAL.format(n=16), True), (CACHED, False)):
        assembly = morello_mlir.compile(module(schedule), target="avx2", threads=1, memo="off").emit("asm")
        assert ("vmovntps" in assembly) == ("sfence" in assembly) == past


@pytest.mark.parametrize("padding", [0, 16, 3])
@pytest.mark.parametrize("stop", [None, 1, 3, "kernel"])
def test_rows_with_gaps_and_stopping_early(padding: int, stop: int | str | None) -> None:
    """Gaps that are no whole lines leave rows that do not begin at lines: no such schedule is legal for them."""
    storages = (Storage(), Storage(), Storage(row_pad=padding))
    case = Case((1, 10, 7, 48), "f32", storages, False, parse(SERIAL.format(n=16)))
    target = get_target("avx2")
    if padding % 16:
        with pytest.raises(Exception, match="its rows do not begin at lines"):
            make_plan(case.spec, case.schedule, target)
        return
    library = compile_cases([case], target, (None,) if stop is None else (stop, None))
    got, want = run_case(library.addresses["case0"], case, np.random.default_rng(1))
    assert_close(got, want, 7)


# ---------------------------------------------------------------- the space


def large(m: int = 64, k: int = 2, n: int = 64, **more: object) -> Spec:
    """A goal whose output is larger than the last-level cache of the small machine."""
    return matmul_spec(m, k, n, **more)  # type: ignore[arg-type]


def test_large_outputs_are_written_past_the_caches() -> None:
    found = Search(SMALL).solve(large())
    assert to_text(found.schedule).startswith("move out to WC\n")
    assert streams(make_plan(found.spec, found.schedule, SMALL))
    assert Search(SMALL).price(found.spec, parse(to_text(found.schedule))) == found.cost
    plain = Search(SMALL).complete(large(), parse("to_accum\n?"))
    assert found.cost < plain.cost
    moved = traffic(steps(found.spec, found.schedule, SMALL))
    assert moved["VRF", "GL"] == 64 * 64 * 4 and ("L2", "GL") not in moved


@pytest.mark.parametrize(
    "spec",
    [
        large(8, 2, 64),  # fits a cache
        large(4, 200, 64),  # the inputs are large, not the output
        large(accumulate=True),  # is read
        large(n=63),  # rows do not begin at lines
    ],
)
def test_others_are_not(spec: Spec) -> None:
    dims = dict(zip(spec.info.dims, spec.dims, strict=True))
    key = key_of(spec, SMALL)
    assert spec.info.accumulates or not past_caches(key, dims, SMALL)
    assert "WC" not in to_text(Search(SMALL).solve(spec).schedule)


def test_a_long_reduction_is_not_written_at_once() -> None:
    """Where k has to be split the output is read again: it stays in the caches."""
    assert "WC" not in to_text(Search(SMALL).solve(large(64, 4096, 64)).schedule)


def test_random_schedules_have_them() -> None:
    from random_schedules import random_schedule

    target = get_target("avx2")
    found = [to_text(random_schedule(large(12, 5, 64), target, random.Random(i))) for i in range(20)]
    assert any("WC" in text for text in found) and any("to_accum" in text for text in found)
