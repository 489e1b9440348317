"""Kernels on tile registers (AMX): who has them, where they are legal, what they compute, and when they are chosen."""

from __future__ import annotations

import ctypes
from dataclasses import replace

import numpy as np
import pytest
import test_then_numbers as then_numbers
from hypothesis import given
from hypothesis import strategies as st
from lowering_support import Case, Storage, assert_close, compile_cases, run_case
from search_support import block_and_point

import morello_mlir
from morello_mlir.actions import TILE_KERNELS, check_tree, key_of, rows_at_once
from morello_mlir.errors import ScheduleError
from morello_mlir.memo.coordinates import key_text
from morello_mlir.runtime import jit
from morello_mlir.search.schedule import Node, ToAccum, parse, to_text
from morello_mlir.search.solve import Search
from morello_mlir.spec import Layout, Spec, matmul_spec
from morello_mlir.targets import CPUS, TARGETS, Target, cpu_target, get_target, host, refusal, this_host

ROWS, COLUMNS = Storage(), Storage(fast=1)
SPR = cpu_target("sapphirerapids", CPUS["sapphirerapids"])
SPR_FLAGS = [
    *(f.lstrip("+") for f in TARGETS["avx512"].features),
    *("avx512_vnni", "avx512_bf16", "amx_tile", "amx_bf16", "amx_int8"),
]
GROUP = {"amx_bf16": 2, "amx_int8": 4}


@pytest.fixture
def here() -> Target:
    found = get_target("host")
    if not {"amx_bf16", "amx_int8"} <= set(found.narrow.tiles):
        pytest.skip("the host has no tile registers, or does not let processes use them")
    return found


def mixed(m: int, k: int, n: int, dtypes: str, **more: object) -> Spec:
    spec = matmul_spec(m, k, n, **more)  # type: ignore[arg-type]
    operands = tuple(replace(t, dtype=d) for t, d in zip(spec.operands, dtypes.split(","), strict=True))
    return replace(spec, operands=operands).canonical()


def schedule(kernel: str, width: int, split: int = 0, tile: int = 0, n: int = 0) -> Node:
    """rhs in panels, a loop over k, and one over n where it is wider than a panel."""
    group = GROUP[kernel]
    lines = [f"move rhs to L2 as [b, n/{width}, k/{group}, n%{width}, k%{group}]", "move lhs to L2", "move out to L2"]
    loops = [f"split k by {split}:"] if split else []
    loops += [f"tile n by {width}:"] if n > width else []
    loops += [f"tile m by {tile}:"] if tile else []

    def under(rest: list[str], depth: int) -> list[str]:
        pad = "    " * depth
        if not rest:
            return [f"{pad}kernel {kernel}"]
        body = under(rest[1:], depth + 1)
        return [pad + rest[0], *body, f"{pad}rest:", *body]

    return parse("\n".join([*lines, *under(loops, 0)]))


def check(cases: list[Case], target: Target, special: bool = False) -> None:
    library = compile_cases(cases, target)
    for i, case in enumerate(cases):
        got, want = run_case(library.addresses[f"case{i}"], case, np.random.default_rng(i), special)
        assert_close(got, want, case.dims[2])


# ---------------------------------------------------------------- who has them


def test_cpus_that_have_tiles() -> None:
    kernels = {name: set(cpu_target(name, CPUS[name]).narrow.tiles) for name in CPUS}
    having = {name for name, tiles in kernels.items() if tiles}
    assert having == {"sapphirerapids", "emeraldrapids", "graniterapids"}
    assert kernels["sapphirerapids"] == {"amx_bf16", "amx_int8"}


def test_a_host_whose_system_does_not_permit_tiles_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    told = replace(this_host(), flags=frozenset(SPR_FLAGS))
    monkeypatch.setattr(host, "read_host", lambda *_: told)
    try:
        for permitted in (True, False):
            this_host.cache_clear()
            monkeypatch.setattr(host, "tiles_permitted", lambda answer=permitted: answer)
            assert ("amx_tile" in this_host().flags) is permitted
            assert ("amx_bf16" in get_target("avx512").narrow.tiles) is permitted
            assert (refusal("sapphirerapids") is None) is permitted
            assert refusal("skylake-avx512") is None
    finally:
        monkeypatch.undo()
        this_host.cache_clear()


def test_every_process_that_loads_code_for_tiles_asks_the_system(here: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []
    monkeypatch.setattr(jit, "tiles_permitted", lambda: asked.append(True))
    plain = parse("move lhs to L2\nmove rhs to L2\nmove out to L2\nkernel scalar")
    for times, tree in enumerate((plain, schedule("amx_int8", 16))):
        compile_cases([Case((1, 2, 3, 4), "i8,i8,i32", (ROWS,) * 3, True, tree)], here)
        assert len(asked) == times


def test_keys_tell_tiles_apart_and_answers_for_f32_are_shared() -> None:
    without = cpu_target("cooperlake", replace(CPUS["sapphirerapids"], flags=CPUS["cooperlake"].flags))
    assert without.fingerprint == SPR.fingerprint
    for dtypes, same in (("bf16,bf16,f32", False), ("u8,i8,i32", False), ("f32,f32,f32", True)):
        keys = [key_text(key_of(mixed(8, 8, 8, dtypes), t)) for t in (SPR, without)]
        assert (keys[0] == keys[1]) is same


# ---------------------------------------------------------------- legality and cost


@pytest.mark.parametrize(
    ("text", "spec", "why"),
    [
        ("kernel amx_bf16", mixed(8, 8, 8, "f32,bf16,f32"), "it does not take f32 x bf16"),
        ("kernel amx_bf16", mixed(8, 8, 8, "bf16,bf16,f32"), "rhs needs panels of 16, or multiples, in groups of 2"),
        ("kernel amx_bf16", mixed(8, 8, 8, "bf16,bf16,f32", lhs="col_major"), "lhs needs unit stride along k"),
        ("kernel amx_int8", mixed(8, 8, 8, "bf16,bf16,f32"), "it does not take bf16 x bf16"),
    ],
)
def test_illegal_uses(text: str, spec: Spec, why: str) -> None:
    with pytest.raises(ScheduleError, match=why):
        check_tree(spec, parse(f"to_accum\nmove lhs to L2\nmove rhs to L2\nmove out to L2\n{text}"), SPR)


def test_more_columns_than_a_panel_or_four_tiles_are_refused() -> None:
    for width, why in ((32, "n=48 reaches across a panel of 32"), (128, "takes no more than 64 columns, not 100")):
        spec = mixed(8, 8, 48 if width == 32 else 100, "bf16,bf16,f32", accumulate=True)
        with pytest.raises(ScheduleError, match=why):
            check_tree(spec, schedule("amx_bf16", width), SPR)
    with pytest.raises(ScheduleError, match="does not have the instruction"):
        check_tree(mixed(8, 8, 8, "bf16,bf16,f32", accumulate=True), schedule("amx_bf16", 16), TARGETS["avx2"])


@given(st.tuples(*[st.integers(1, 300)] * 2), st.integers(1, 64), st.sampled_from(TILE_KERNELS))
def test_arrays_and_points_agree(mk, n, kernel):
    m, k = mk
    types = ",".join((*kernel.inputs[0], kernel.accumulates))
    spec = mixed(m, k, n, types, accumulate=True)
    key = key_of(spec, SPR)
    panel = replace(key.operands[1], layout=Layout.packed(3, 2, 64, kernel.group), stride=None, memory="L2")
    key = replace(key, operands=(replace(key.operands[0], memory="L2"), panel, replace(key.operands[2], memory="L1")))
    grid, point = block_and_point(m, k, n)
    assert all(ok for ok, _ in kernel.requires(key, SPR))
    assert kernel.cost(key, grid, SPR)[1, 1, 1] == kernel.cost(key, point, SPR) > 0
    assert kernel.cost(key, {**point, "m": m + 1}, SPR) > 0
    assert [rows_at_once(a) for a in (1, 2, 3, 4)] == [64, 32, 16, 16]


# ---------------------------------------------------------------- numbers


@pytest.mark.parametrize(
    ("kernel", "dtypes"),
    [
        ("amx_bf16", "bf16,bf16,f32"),
        ("amx_bf16", "bf16,bf16,bf16"),
        ("amx_int8", "u8,i8,i32"),
        ("amx_int8", "i8,u8,i32"),
        ("amx_int8", "i8,i8,i32"),
        ("amx_int8", "u8,u8,i32"),
    ],
)
def test_kernels(here: Target, kernel: str, dtypes: str) -> None:
    """Sizes round whole tiles, blocks and depths; rows that start anywhere; every kind of output."""
    cases = []
    outs = (ROWS, Storage(row_pad=3, offset=1), COLUMNS, Storage(gap=2))
    for number, (m, k, n) in enumerate(
        [(1, 1, 1), (16, 32, 16), (33, 65, 31), (70, 131, 9), (37, 96, 50), (64, 64, 64)]
    ):
        out = ROWS if dtypes.endswith("bf16,bf16,bf16") and number % 2 else outs[number % 4]
        lhs = (ROWS, Storage(row_pad=1, offset=1))[number % 2]
        cases.append(
            Case(
                (1, m, k, n),
                dtypes,
                (lhs, ROWS, out),
                number % 2 == 0,
                schedule(kernel, 64) if number % 2 == 0 else ToAccum(schedule(kernel, 64)),
            )
        )
    check(cases, here)


def test_loops_round_kernels(here: Target) -> None:
    """Whether the first step stores is known at run time only; panels narrower than the product; blocks in loops."""
    cases = [
        Case((1, 50, 70, 40), "bf16,bf16,f32", (ROWS,) * 3, False, ToAccum(schedule("amx_bf16", 32, 32, 32, 40))),
        Case((1, 35, 200, 20), "u8,i8,i32", (ROWS,) * 3, False, ToAccum(schedule("amx_int8", 16, 64, 16, 20))),
        Case((1, 35, 200, 33), "i8,i8,i32", (ROWS, ROWS, COLUMNS), True, schedule("amx_int8", 32, 128, 0, 33)),
    ]
    check(cases, here)


def test_nan_and_infinities(here: Target) -> None:
    cases = [
        Case((1, m, k, n), "bf16,bf16,f32", (ROWS,) * 3, False, ToAccum(schedule("amx_bf16", 64)))
        for m, k, n in ((5, 33, 17), (20, 64, 16))
    ]
    check(cases, here, special=True)


@pytest.mark.parametrize("stops", [(None,), (2, None), ("kernel", None), ("split", "tile", None)])
def test_going_on_from_a_partial_program(here: Target, stops: tuple[int | str | None, ...]) -> None:
    """What is applied later sets the shapes of tiles and lets go of them: what was there before goes on."""
    case = Case((1, 40, 80, 40), "u8,i8,i32", (ROWS,) * 3, False, ToAccum(schedule("amx_int8", 32, 64, 32, 40)))
    library = compile_cases([case], here, stops)
    got, want = run_case(library.addresses["case0"], case, np.random.default_rng(0))
    assert_close(got, want, 80)


@pytest.mark.parametrize("split", [0, 32])
@pytest.mark.parametrize("dims", [(1, 37, 70, 40), (1, 70, 90, 13)])
def test_what_is_done_to_the_sums(
    here: Target, monkeypatch: pytest.MonkeyPatch, split: int, dims: tuple[int, int, int, int]
) -> None:
    monkeypatch.setattr(then_numbers, "AVX2", here)
    tree = ToAccum(schedule("amx_bf16", 64, split) if dims[3] > 32 else schedule("amx_bf16", 32, split))
    got, want = then_numbers.run(then_numbers.Case(dims, "bf16,bf16,f32", then_numbers.RELU), tree)
    np.testing.assert_allclose(got.astype(float), want.astype(float), rtol=1e-4, atol=1e-4)
    tree = ToAccum(schedule("amx_int8", 64, 2 * split))
    got, want = then_numbers.run(then_numbers.Case(dims, "u8,i8,i8", then_numbers.REQUANTISE), tree)
    np.testing.assert_array_equal(got, want)


def test_the_extremes_of_bytes_are_exact(here: Target) -> None:
    case = Case((1, 17, 260, 20), "u8,i8,i32", (ROWS,) * 3, False, ToAccum(schedule("amx_int8", 32)))
    library = compile_cases([case], here)
    a, b = np.full((17, 260), 255, np.uint8), np.full((260, 20), -128, np.int8)
    out = np.zeros((17, 20), np.int32)
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(library.addresses["case0"])
    call(a.ctypes.data, b.ctypes.data, out.ctypes.data)
    assert (out == 260 * 255 * -128).all()


# ---------------------------------------------------------------- the search, and whole programs


def test_the_search_packs_for_tiles_where_they_pay() -> None:
    search = Search(SPR)
    for dtypes, kernel in (("bf16,bf16,f32", "amx_bf16"), ("u8,i8,i32", "amx_int8"), ("u8,u8,i32", "amx_int8")):
        found = search.solve(mixed(48, 64, 32, dtypes))
        assert f"kernel {kernel}" in to_text(found.schedule)
        assert search.price(found.spec, found.schedule) == found.cost
    assert "amx" not in to_text(search.solve(mixed(1, 64, 64, "bf16,bf16,f32")).schedule)
    assert "amx" not in to_text(search.solve(mixed(64, 64, 64, "f32,f32,f32")).schedule)


@pytest.mark.parametrize("threads", [1, 2])
def test_programs(here: Target, threads: int) -> None:
    """Batches, weights that are packed ahead, threads: every thread sets its own shapes."""
    m, k, n = 96, 80, 96
    text = f"""
    func.func @f(%a: tensor<3x{m}x{k}xi8>, %b: tensor<3x{k}x{n}xi8>) -> tensor<3x{m}x{n}xi32> {{
      %z = arith.constant 0 : i32
      %e = tensor.empty() : tensor<3x{m}x{n}xi32>
      %i = linalg.fill ins(%z : i32) outs(%e : tensor<3x{m}x{n}xi32>) -> tensor<3x{m}x{n}xi32>
      %r = linalg.batch_matmul ins(%a, %b : tensor<3x{m}x{k}xi8>, tensor<3x{k}x{n}xi8>)
                               outs(%i : tensor<3x{m}x{n}xi32>) -> tensor<3x{m}x{n}xi32>
      return %r : tensor<3x{m}x{n}xi32>
    }}"""
    rng = np.random.default_rng(threads)
    a, b = (rng.integers(-128, 128, s).astype(np.int8) for s in ((3, m, k), (3, k, n)))
    for constants in (None, {1: b}):
        compiled = morello_mlir.compile(text, memo="off", threads=threads, constants=constants)
        assert "kernel amx_int8" in str(compiled.specs[0]["schedule"])
        got = compiled.f(a) if constants else compiled.f(a, b)
        assert (got == a.astype(np.int64) @ b.astype(np.int64)).all()
