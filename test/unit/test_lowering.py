"""Applying schedules: in one go and in steps, shared functions, concurrent calls."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from lowering_support import (
    Case,
    Storage,
    assert_close,
    compile_cases,
    context,
    make_spec,
    module_of,
    run_case,
)
from mlir import ir
from random_schedules import random_schedule
from thread_support import at_once

from morello_mlir import dialect
from morello_mlir.errors import ScheduleError, SpecError
from morello_mlir.lowering import apply
from morello_mlir.search.schedule import parse
from morello_mlir.targets import TARGETS

AVX2 = TARGETS["avx2"]
DENSE = (Storage(), Storage(), Storage())
TILES = """\
        tile m by 6:
            move out to L1
            move out to VRF
            kernel broadcast_fma
        rest:
            move out to L1
            move out to VRF
            kernel broadcast_fma
"""
BLOCKED = parse(
    f"""\
to_accum
split k by 16:
    move rhs to L2 as [b, n/16, k, n%16]
    move lhs to L2 as [b, m/6, k, m%6]
    move out to L2
    tile n by 16:
{TILES}
    rest:
{TILES}
rest:
    move lhs to L2
    move rhs to L2
    move out to L2
    kernel scalar
"""
)
CASE = Case((1, 15, 37, 23), "f32", DENSE, False, BLOCKED)


@pytest.mark.parametrize("stops", [(3, None), ("pack", "kernel", None), ("move", 2, "tile", None), (1, 1, 1, None)])
def test_going_on_from_a_partial_program_computes_the_same_bits(stops: tuple[int | str | None, ...]) -> None:
    results = []
    for way in ((None,), stops):
        library = compile_cases([CASE], AVX2, way)
        got, want = run_case(library.addresses["case0"], CASE, np.random.default_rng(0))
        assert_close(got, want, CASE.dims[2])
        results.append(got)
    np.testing.assert_array_equal(*results)


def test_partial_programs_of_random_schedules_go_on() -> None:
    rng = random.Random(7)
    cases = []
    for _ in range(8):
        dims = (rng.choice((1, 2)), *(rng.choice((1, 7, 13, 24)) for _ in range(3)))
        places = tuple(Storage(fast=rng.choice((1, 2)), gap=rng.choice((1, 1, 2))) for _ in range(3))
        spec = make_spec(dims, "f64", places, False)
        cases.append(Case(dims, "f64", places, False, random_schedule(spec, AVX2, rng)))
    library = compile_cases(cases, AVX2, (2, "kernel", None))
    for i, case in enumerate(cases):
        got, want = run_case(library.addresses[f"case{i}"], case, np.random.default_rng(i))
        assert_close(got, want, case.dims[2])


def functions_of(module: object) -> list[str]:
    return [str(f.attributes["sym_name"]).strip('"') for f in module.body.operations]  # type: ignore[attr-defined]


def test_equal_kernels_are_one_function() -> None:
    taller = replace(CASE, dims=(1, 21, 37, 23))
    module, ops = module_of([CASE, taller])
    for op in ops:
        apply(op, BLOCKED, AVX2)
    names = functions_of(module)
    assert len(names) == len(set(names))
    # Full and last panels of both dims, the common scalar remainder's two heights.
    assert sum(n.startswith("morello_broadcast_fma") for n in names) == 4
    assert sum(n.startswith("morello_scalar") for n in names) == 2
    assert module.operation.verify()


def test_the_order_of_applying_does_not_matter() -> None:
    texts = []
    for order in (1, -1):
        module, ops = module_of([CASE, replace(CASE, dims=(1, 21, 37, 23))])
        for op in ops[::order]:
            apply(op, BLOCKED, AVX2)
        texts.append({str(f) for f in module.body.operations})
    assert texts[0] == texts[1]


def test_an_illegal_schedule_changes_nothing() -> None:
    module, (op,) = module_of([CASE])
    before = str(module)
    with pytest.raises(ScheduleError, match="kernel scalar: Matmul does not accumulate"):
        apply(op, parse("kernel scalar"), AVX2)
    assert str(module) == before


def test_goals_without_elements_are_refused() -> None:
    spec = make_spec((1, 0, 4, 4), "f32", DENSE, True)
    types = ", ".join(["memref<1x0x4xf32>", "memref<1x4x4xf32>", "memref<1x0x4xf32>"])
    operands = [f'"{t.text(d)}"' for t, (_, d) in zip(spec.operands, spec.info.operands, strict=True)]
    module = ir.Module.parse(
        f"""func.func @f(%a: memref<1x0x4xf32>, %b: memref<1x4x4xf32>, %c: memref<1x0x4xf32>) {{
          "morello.spec"(%a, %b, %c) {{function = "MatmulAccum", dims = array<i64: 1, 0, 4, 4>,
            operands = [{", ".join(operands)}], serial}} : ({types}) -> ()
          return
        }}""",
        context(),
    )
    (op,) = dialect.spec_ops(module.operation)
    with pytest.raises(SpecError, match="has no elements"):
        apply(op, parse("kernel scalar"), AVX2)


def test_scratch_is_freed_and_every_location_is_the_ops() -> None:
    module, (op,) = module_of([CASE])
    op.operation.location = ir.Location.file("user.mlir", 3, 4, context())
    apply(op, BLOCKED, AVX2)
    text = str(module)
    assert text.count("memref.alloc(") == text.count("memref.dealloc") == 1
    _, *made = module.body.operations
    assert made
    for function in made:
        places = {str(inner.location) for inner in function.operation.regions[0].blocks[0].operations}
        assert places == {'loc("user.mlir":3:4)'}


def test_calls_at_the_same_time_do_not_disturb_each_other() -> None:
    case = replace(CASE, dims=(1, 63, 69, 55))
    library = compile_cases([case], AVX2)

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(100):
            got, want = run_case(library.addresses["case0"], case, rng)
            assert_close(got, want, case.dims[2])

    at_once([partial(work, i) for i in range(4)])


def test_specs_without_schedules_survive_around() -> None:
    module, ops = module_of([CASE, CASE])
    apply(ops[0], BLOCKED, AVX2)
    assert len(list(dialect.spec_ops(module.operation))) == 1
