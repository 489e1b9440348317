"""AVX-512 code on any machine: right numbers when legalised for the host, and what its assembly and llvm-mca say."""

from __future__ import annotations

import random

import numpy as np
import pytest
from lowering_support import Case, Storage, assert_close, compile_cases, make_spec, run_case
from random_schedules import random_schedule

import morello_mlir
from benchmarks.inner_loop import chosen_assembly, inner_loop, loops, share_of_peak
from morello_mlir.errors import InputError
from morello_mlir.runtime import jit
from morello_mlir.search.solve import search_for
from morello_mlir.targets import TARGETS, get_target, host
from morello_mlir.tools.bench import Workload

AVX512 = TARGETS["avx512"]
ROWS = (Storage(), Storage(), Storage())


@pytest.fixture
def without_avx512(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code generation for a machine that has AVX2 only: LLVM splits the 16-lane vectors."""
    monkeypatch.setattr(jit, "host", lambda: ("haswell", ""))


def _chosen(dims: tuple[int, int, int, int], dtype: str = "f32") -> Case:
    spec = make_spec(dims, dtype, ROWS, accumulate=False)
    return Case(dims, dtype, ROWS, False, search_for(AVX512).solve(spec).schedule)


@pytest.mark.isa("avx2")
@pytest.mark.usefixtures("without_avx512")
@pytest.mark.parametrize("dims", [(1, 64, 64, 64), (1, 100, 37, 53), (1, 49, 130, 97), (1, 1, 64, 200)])
def test_chosen_schedules_compute_the_right_numbers_without_avx512(dims: tuple[int, int, int, int]) -> None:
    case = _chosen(dims)
    library = compile_cases([case], AVX512)
    got, want = run_case(library.addresses["case0"], case, np.random.default_rng(1))
    assert_close(got, want, dims[2])


@pytest.mark.isa("avx2")
@pytest.mark.usefixtures("without_avx512")
def test_random_schedules_compute_the_right_numbers_without_avx512() -> None:
    rng = random.Random(5)
    cases = []
    for dims in ((1, 33, 20, 65), (1, 24, 31, 48), (2, 13, 17, 40)):
        spec = make_spec(dims, "f32", ROWS, accumulate=True)
        cases += [Case(dims, "f32", ROWS, True, random_schedule(spec, AVX512, rng)) for _ in range(3)]
    library = compile_cases(cases, AVX512)
    for i, case in enumerate(cases):
        got, want = run_case(library.addresses[f"case{i}"], case, np.random.default_rng(i))
        assert_close(got, want, case.dims[2])


@pytest.mark.parametrize("cpu", ["znver4", "sapphirerapids"])
def test_the_inner_loop_of_the_chosen_kernel(cpu: str) -> None:
    """64-byte multiply-adds, nothing on the stack, and 95 % of the peak that llvm-mca sees."""
    loop = inner_loop(chosen_assembly((512, 512, 512), cpu))
    assert loop.fmas >= 40
    assert loop.wide_fmas == loop.fmas
    assert loop.stack_accesses == ()
    assert share_of_peak(loop, cpu) >= 0.95


_TILE = """
func.func @tile(%a: memref<1xROWSx64xf32>, %b: memref<1x64x16xf32>, %c: memref<1xROWSx16xf32>) {
  "morello.spec"(%a, %b, %c) {function = "MatmulAccum", dims = array<i64: 1, ROWS, 64, 16>,
    operands = ["(f32, L1, row_major)", "(f32, L1, row_major)", "(f32, L1, row_major)"], serial,
    schedule = ["move out to VRF", "kernel broadcast_fma"]
  } : (memref<1xROWSx64xf32>, memref<1x64x16xf32>, memref<1xROWSx16xf32>) -> ()
  return
}
"""


@pytest.mark.parametrize("rows", [8, 24, 25, 26, 27, 28, 29, 30])
def test_pairs_that_are_spread_leave_room_for_the_sums(rows: int) -> None:
    """Tiles of one vector load pairs of k steps of so many rows as there are registers for: nothing is spilled."""
    text = morello_mlir.compile(_TILE.replace("ROWS", str(rows)), target="znver5", memo="off").emit("asm")
    loop = max(loops(str(text)), key=lambda found: found.fmas)
    assert loop.fmas % rows == 0
    assert loop.stack_accesses == ()


def test_loops_are_found_in_assembly() -> None:
    text = """
fn.name_4x16:
\txorl\t%eax, %eax
.LBB0_1:
\tvfmadd231ps\t(%rsi), %zmm1, %zmm0
\tvfmadd231ps\t8(%rsp), %ymm1, %ymm0
\tjb\t.LBB0_1 # back
.LBB0_2:
\tjmp\t.LBB0_1
"""
    (loop,) = loops(text)
    assert (loop.function, loop.fmas, loop.wide_fmas) == ("fn.name_4x16", 2, 1)
    assert loop.stack_accesses == ("vfmadd231ps\t8(%rsp), %ymm1, %ymm0",)


def test_a_foreign_target_is_emitted_and_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine without AVX-512, code for znver4 can be looked at; a call says what is missing."""
    old = host.Host(frozenset({"avx2", "fma", "f16c", "bmi2"}), ("x", "1", "2", "3"), "old", {})
    monkeypatch.setattr("morello_mlir.targets.this_host", lambda: old)
    compiled = morello_mlir.compile(Workload(16, 16, 16).mlir(), target="znver4", memo="off", cache=False)
    assert "%zmm" in str(compiled.emit("asm"))
    arrays = [np.zeros((16, 16), np.float32) for _ in range(3)]
    with pytest.raises(InputError, match="cannot run code for target 'znver4': its CPU has no avx512f"):
        compiled(*arrays)
    assert get_target("host").name == "avx2"
    with pytest.raises(InputError, match="target 'avx512'"):
        morello_mlir.compile(Workload(16, 16, 16).mlir(), target="avx512", memo="off", cache=False)(*arrays)
