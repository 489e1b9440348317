"""k shared among threads: sums of each thread, added up in order, whatever is done to them and wherever they go."""

from __future__ import annotations

from textwrap import indent

import numpy as np
import pytest
from lowering_support import Case, Storage, assert_close, compile_cases, in_l1, run_case
from small_target import CHEAP_FORKS
from test_then_numbers import RELU, RESIDUAL, run
from test_then_numbers import Case as ThenCase

import morello_mlir
from morello_mlir.lowering.plan import Sums, make_plan, scratch_bytes
from morello_mlir.search.explain import steps
from morello_mlir.search.schedule import Kernel, parse, to_text
from morello_mlir.search.solve import Search, search_for
from morello_mlir.spec import matmul_spec
from morello_mlir.targets import get_target

ROWS, COLUMNS = Storage(), Storage(fast=1)
AVX2 = get_target("avx2")
BODY = "\n" + indent(to_text(in_l1(Kernel("{kernel}"))), "    ") + "\n"
REGISTERS = BODY.format(kernel="broadcast_fma").replace("    kernel", "    move out to VRF\n    kernel")


def shared(size: int, body: str, rest: bool = False) -> str:
    text = f"parallel split k by {size}:{body.rstrip()}\n"
    return text + (f"rest:{body.rstrip()}\n" if rest else "")


def case(
    dims: tuple[int, int, int, int],
    text: str,
    *,
    lhs: Storage = ROWS,
    rhs: Storage = ROWS,
    out: Storage = ROWS,
    **more: object,
) -> Case:
    settings = {"dtype": "f32", "accumulate": True, "threads": 3, **more}
    return Case(dims, storages=(lhs, rhs, out), schedule=parse(text), **settings)  # type: ignore[arg-type]


SCALAR = BODY.format(kernel="scalar")
DOTS = BODY.format(kernel="dot_fma")
CASES = {
    "trips that divide": case((1, 3, 24, 16), shared(4, REGISTERS)),
    "a remainder": case((1, 3, 23, 13), shared(5, REGISTERS, rest=True)),
    "a thread with the remainder alone": case((1, 2, 10, 7), shared(4, REGISTERS, rest=True)),
    "stored": case((1, 3, 23, 13), "to_accum\n" + shared(5, REGISTERS, rest=True), accumulate=False),
    "five vectors and a tail": case((1, 2, 9, 45), shared(2, SCALAR, rest=True)),
    "gaps between rows": case((1, 3, 12, 9), shared(4, REGISTERS), out=Storage(row_pad=7, offset=3)),
    "rows a page apart": case((1, 3, 12, 9), shared(4, REGISTERS), out=Storage(row_pad=1015)),
    "columns": case((1, 9, 12, 3), shared(4, SCALAR), out=Storage(fast=1, row_pad=2)),
    "dot products": case((1, 2, 100, 3), shared(33, DOTS, rest=True), rhs=COLUMNS),
    "f64": case((1, 3, 23, 13), shared(5, SCALAR, rest=True), dtype="f64"),
    "integers": case((1, 3, 23, 13), shared(5, SCALAR, rest=True), dtype="u8,i8,i32"),
    "a batch": case(
        (2, 3, 12, 9), "tile b by 1:\n" + "\n".join(f"    {line}" for line in shared(4, REGISTERS).splitlines() if line)
    ),
    "split outside": case(
        (1, 3, 24, 9),
        "split k by 12:\n" + "\n".join(f"    {line}" for line in shared(4, REGISTERS).splitlines() if line),
    ),
}


def test_numbers() -> None:
    cases = list(CASES.values())
    library = compile_cases(cases, AVX2)
    for i, each in enumerate(cases):
        got, want = run_case(library.addresses[f"case{i}"], each, np.random.default_rng(i))
        assert_close(got, want, each.dims[2])


@pytest.mark.parametrize("stop", [1, 2, "kernel", "parallel"])
def test_in_steps(stop: int | str) -> None:
    each = CASES["stored"]
    library = compile_cases([each], AVX2, (stop, None))
    got, want = run_case(library.addresses["case0"], each, np.random.default_rng(5))
    assert_close(got, want, each.dims[2])


def test_nothing_hides_what_is_not_a_number() -> None:
    each = CASES["a remainder"]
    library = compile_cases([each], AVX2)
    got, want = run_case(library.addresses["case0"], each, np.random.default_rng(7), special=True)
    assert_close(got, want, each.dims[2])


@pytest.mark.parametrize("then", [RELU, RESIDUAL])
@pytest.mark.parametrize("accumulate", [False, True])
def test_what_is_done_to_the_sums_is_done_once(then: object, accumulate: bool) -> None:
    text = shared(5, REGISTERS, rest=True)
    goal = ThenCase((1, 3, 23, 13), "f32", then, accumulate, threads=2)  # type: ignore[arg-type]
    got, want = run(goal, parse(text if accumulate else "to_accum\n" + text))
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_sums_of_threads_fall_into_sets_as_the_output_does() -> None:
    """Their rows have the stride class of those of the output, and do not overlap."""
    for name, each in CASES.items():
        plan = make_plan(each.spec, each.schedule, AVX2)
        while not isinstance(plan, Sums):
            plan = plan.body  # type: ignore[union-attr]
        _, m, _, n = plan.sizes
        inner = each.spec.operands[2].layout.innermost
        row, length = plan.view.strides[3 - inner], (m, n)[inner - 1]
        element = 8 if each.dtype == "f64" else 4
        assert row >= length and row * element % each.spec.row_class(2) == 0, name
        assert row * element // each.spec.row_class(2) % 2 == 1
        assert plan.view.strides[0] * element % 64 == 0 and scratch_bytes(plan, {}) >= plan.bytes


# ---------------------------------------------------------------- the search


def test_long_reductions_are_shared() -> None:
    search = search_for(AVX2, "off")
    for dims in ((4, 100000, 4), (16, 100000, 16), (1, 1000000, 1)):
        spec = matmul_spec(*dims)
        found = search.solve(replace_threads(spec, 2))
        assert "parallel split k by" in to_text(found.schedule)
        assert (
            parse(to_text(found.schedule)) == found.schedule and search.price(found.spec, found.schedule) == found.cost
        )
        assert found.cost < 0.7 * search.solve(spec).cost


def test_others_are_not() -> None:
    assert "parallel split" not in to_text(
        search_for(AVX2, "off").solve(replace_threads(matmul_spec(256, 256, 256), 2)).schedule
    )


def replace_threads(spec, threads):  # type: ignore[no-untyped-def]
    from dataclasses import replace

    return replace(spec, serial=False, threads=threads)


def test_what_it_costs_is_explained() -> None:
    spec = replace_threads(matmul_spec(4, 4096, 4), 2)
    found = Search(CHEAP_FORKS).solve(spec)
    root = steps(found.spec, found.schedule, CHEAP_FORKS)
    assert root.total == found.cost
    assert any(step.label.startswith("parallel split k by") and step.own for step in root.walk())


def test_the_same_bits_every_time() -> None:
    """On the pool, whoever is first: 50 runs."""
    text = """
    func.func @f(%a: memref<4x5003xf32>, %b: memref<5003x5xf32>, %c: memref<4x5xf32>) {
      %zero = arith.constant 0.0 : f32
      linalg.fill ins(%zero : f32) outs(%c : memref<4x5xf32>)
      linalg.matmul {morello.schedule = ["to_accum", "parallel split k by 100:", "    ?", "rest:", "    ?"]}
        ins(%a, %b : memref<4x5003xf32>, memref<5003x5xf32>) outs(%c : memref<4x5xf32>)
      return
    }"""
    rng = np.random.default_rng(0)
    lhs, rhs = rng.standard_normal((4, 5003)).astype(np.float32), rng.standard_normal((5003, 5)).astype(np.float32)
    compiled = morello_mlir.compile(text, target="avx2", threads=3, memo="off")
    results = set()
    for _ in range(50):
        out = np.full((4, 5), np.nan, np.float32)
        compiled.f(lhs, rhs, out)
        results.add(out.tobytes())
    assert len(results) == 1
    np.testing.assert_allclose(out, lhs.astype(np.float64) @ rhs, rtol=1e-3, atol=1e-3)
