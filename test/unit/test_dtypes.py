"""Contractions of several element types: what adds up what, panels in groups, kernels for them, and whole programs."""

from __future__ import annotations

import ctypes
import itertools
import random
from dataclasses import replace
from functools import cache

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lowering_support import (
    NUMPY,
    Case,
    Storage,
    assert_close,
    compile_cases,
    in_l1,
    make_spec,
    run_case,
)
from random_schedules import random_schedule

import morello_mlir
from morello_mlir.actions import check_tree, explore, key_of, spec_of
from morello_mlir.errors import ScheduleError, SpecError
from morello_mlir.memo.coordinates import coordinate, key_text, parse_key, spec_at
from morello_mlir.search import tables
from morello_mlir.search.schedule import Kernel, Move, Node, ToAccum, to_text
from morello_mlir.search.solve import Search
from morello_mlir.spec import Layout, Spec, accumulator, matmul_spec
from morello_mlir.targets import CPUS, TARGETS, Target, cpu_target, get_target, host_runs

ROWS, COLUMNS = Storage(), Storage(fast=1)


def target(name: str) -> Target:
    found = get_target(name)
    if not host_runs(found):
        pytest.skip(f"the host has no {name}")
    return found


def has(found: Target, kernel: str) -> None:
    if kernel not in found.narrow.pairs:
        pytest.skip(f"the host has no instruction for {kernel}")


def mixed(m: int, k: int, n: int, dtypes: str, **more: object) -> Spec:
    spec = matmul_spec(m, k, n, **more)  # type: ignore[arg-type]
    operands = tuple(replace(t, dtype=d) for t, d in zip(spec.operands, dtypes.split(","), strict=True))
    return replace(spec, operands=operands).canonical()


def check(cases: list[Case], found: Target) -> None:
    library = compile_cases(cases, found)
    for i, case in enumerate(cases):
        got, want = run_case(library.addresses[f"case{i}"], case, np.random.default_rng(i))
        assert_close(got, want, case.dims[2])


# ---------------------------------------------------------------- types and keys


@pytest.mark.parametrize(
    ("inputs", "out", "sums"),
    [
        (("bf16", "bf16"), "f32", "f32"),
        (("f32", "bf16"), "f32", "f32"),
        (("f16", "f16"), "f16", "f32"),
        (("f32", "f32"), "f64", "f64"),
        (("u8", "i8"), "i32", "i32"),
        (("i32", "i32"), "i32", "i32"),
        (("f64", "f32"), "f32", None),
        (("u8", "i8"), "i16", "i32"),
        (("i8", "i8"), "i8", "i32"),
        (("i64", "i8"), "i16", None),
        (("i8", "i8"), "f32", None),
        (("i1", "i8"), "i32", None),
    ],
)
def test_what_products_are_added_up_in(inputs, out, sums):
    assert accumulator(inputs, out) == sums


def test_types_without_sums_are_refused():
    with pytest.raises(SpecError, match="no kernels for the dtypes"):
        key_of(mixed(4, 4, 4, "f32,i8,f32"), TARGETS["avx2"])
    with pytest.raises(SpecError, match="only panels"):
        key_of(Spec.parse("Matmul([1, 4, 4, 4], (f32, GL, [b, m/2, k/2, k%2, m%2]), (f32, GL, row_major), "
                          "(f32, GL, row_major), serial)"), TARGETS["avx2"])  # fmt: skip


def test_keys_of_one_type_do_not_know_of_kernels_for_others():
    plain, narrow = (key_of(mixed(8, 8, 8, d), TARGETS["avx512"]) for d in ("f32,f32,f32", "bf16,bf16,f32"))
    assert key_text(plain) == "Matmul; f32; GL row_major s32; GL row_major s32; GL row_major s32; serial"
    assert key_text(narrow).startswith("Matmul; f32; GL row_major s16 bf16; GL row_major s16 bf16; GL row_major s32")
    without = replace(TARGETS["avx512"], narrow=TARGETS["avx512"].narrow.on(()))
    assert without.fingerprint == TARGETS["avx512"].fingerprint
    assert key_of(mixed(8, 8, 8, "bf16,bf16,f32"), without) != narrow
    for key in (plain, narrow):
        assert parse_key(key_text(key)) == key


def test_specs_of_several_types_have_coordinates():
    found = TARGETS["avx512"]
    spec = mixed(6, 64, 64, "u8,i8,i32", accumulate=True)
    at = coordinate(spec, found)
    assert at is not None
    assert spec_at(*at, found) == spec
    assert spec_of(key_of(spec, found), dict(zip("bmkn", spec.dims, strict=True)), {}) == spec


def test_cpus_have_the_kernels_that_they_have_instructions_for():
    kernels = {name: set(cpu_target(name, CPUS[name]).narrow.pairs) for name in CPUS}
    assert kernels["skylake-avx512"] == kernels["haswell"] == {"maddwd"}
    assert kernels["icelake-server"] == {"maddwd", "dpbusd"}
    assert kernels["sapphirerapids"] == kernels["znver4"] == {"maddwd", "dpbusd", "dpbf16"}
    key = key_of(mixed(2, 4, 8, "i8,i8,i32"), TARGETS["avx2"])
    labels = [a.label() for a in explore(key, {"b": 1, "m": 2, "k": 4, "n": 8}, TARGETS["avx2"])]
    assert not any("k%4" in label for label in labels)


@pytest.mark.parametrize(
    "order", [*itertools.permutations(("f32,f32,f32", "bf16,bf16,bf16", "i16,i16,i16"), 2)], ids=" then ".join
)
def test_answers_do_not_depend_on_what_was_asked_before(order):
    """Outputs that are rounded are tiled otherwise than sums, and than integers that are cut off: goals of equal sizes
    share what they can, not that."""
    alone = [_alone(dtypes) for dtypes in order]
    tables._axes.clear()
    shared = Search(get_target("avx512"))
    assert [shared.solve(mixed(64, 4096, 64, dtypes)).cost for dtypes in order] == alone


@cache
def _alone(dtypes: str) -> int:
    """The cost of a goal before which nothing was asked."""
    tables._axes.clear()
    return Search(get_target("avx512")).solve(mixed(64, 4096, 64, dtypes)).cost


@given(st.integers(1, 2), st.integers(1, 9), st.sampled_from((2, 4)), st.tuples(*[st.integers(1, 9)] * 3))
def test_groups_in_layouts(dim, width, group, shape):
    layout = Layout.packed(3, dim, width, group)
    names = ("b", "k", "n")
    assert Layout.parse(layout.text(names), names) == layout
    assert layout.panels == (dim, width, group)
    offsets = {layout.offset(index, shape) for index in np.ndindex(*shape)}
    assert len(offsets) == np.prod(shape)
    assert max(offsets) < layout.volume(shape)
    # Neighbours of a group are neighbours in memory.
    other = 3 - dim
    if shape[other] > 1:
        second = tuple(int(d == other) for d in range(3))
        assert layout.offset(second, shape) == 1


# ---------------------------------------------------------------- kernels


def packed(kernel: str, group: int, casts: tuple[str, str], width: int, in_place: bool) -> Node:
    """A tile whose inputs are packed in groups for `kernel`; lhs may stay where it is."""
    body: Node = Move("out", "VRF", None, Kernel(kernel))
    for operand in ("out", "rhs", "lhs"):
        body = Move(operand, "L1", None, body)
    body = Move("out", "L2", None, body)
    lhs = None if in_place else f"[b, m/5, k/{group}, m%5, k%{group}]{casts[0]}"
    return Move("lhs", "L2", lhs, Move("rhs", "L2", f"[b, n/{width}, k/{group}, n%{width}, k%{group}]{casts[1]}", body))


@pytest.mark.parametrize("name", ["avx2", "avx512"])
@pytest.mark.parametrize(
    ("kernel", "dtypes"),
    [
        ("dpbf16", "bf16,bf16,f32"),
        ("dpbf16", "bf16,bf16,bf16"),
        ("dpbusd", "u8,i8,i32"),
        ("dpbusd", "i8,u8,i32"),
        ("dpbusd", "i8,i8,i32"),
        ("maddwd", "i8,u8,i32"),
        ("maddwd", "u8,u8,i32"),
        ("maddwd", "i16,i16,i32"),
    ],
)
def test_kernels_for_groups(name: str, kernel: str, dtypes: str) -> None:
    found = target(name)
    has(found, kernel)
    lanes, group = found.lanes("f32"), 4 if kernel == "dpbusd" else 2
    casts = tuple(" i16" if kernel == "maddwd" and d != "i16" else "" for d in dtypes.split(",")[:2])
    cases = []
    for number, (m, k, n) in enumerate([(1, 1, 1), (2, 2, lanes), (3, 7, lanes + 3), (1, 16, 2 * lanes), (2, 35, 5)]):
        in_place = not casts[0] and number % 2 == 0
        lhs = ROWS if in_place else (COLUMNS, Storage(gap=3), Storage(row_pad=1, offset=1))[number % 3]
        rhs = (ROWS, COLUMNS, Storage(gap=2), Storage(row_pad=3), Storage(fast=1, row_pad=5))[number]
        width = lanes * (-(-n // lanes)) if number % 2 else n
        schedule = packed(kernel, group, casts, width, in_place)  # type: ignore[arg-type]
        cases.append(Case((1, m, k, n), dtypes, (lhs, rhs, (ROWS, Storage(row_pad=2))[number % 2]), True, schedule))
    check(cases, found)


@pytest.mark.parametrize(
    ("kernel", "dtypes"),
    [
        ("dot_dpbf16", "bf16,bf16,f32"),
        ("dot_dpbf16", "bf16,bf16,bf16"),
        ("dot_dpbusd", "u8,i8,i32"),
        ("dot_dpbusd", "i8,u8,i32"),
        ("dot_dpbusd", "i8,i8,i32"),
        ("dot_dpbusd", "i8,i8,i8"),
    ],
)
def test_dot_products_of_groups(kernel: str, dtypes: str) -> None:
    found = target("avx512")
    has(found, kernel.removeprefix("dot_"))
    cases = []
    for m, k, n in [(1, 1, 1), (1, 129, 2), (2, 64, 1), (4, 200, 2), (3, 31, 5), (1, 1027, 3), (7, 300, 1)]:
        lhs = Storage(row_pad=m, offset=1)
        rhs, out = Storage(fast=1, row_pad=n), (ROWS, COLUMNS, Storage(row_pad=2))[k % 3]
        schedule, adds = in_l1(Kernel(kernel)), k % 2 == 0
        cases.append(Case((1, m, k, n), dtypes, (lhs, rhs, out), adds, schedule if adds else ToAccum(schedule)))
    check(cases, found)


def test_the_search_picks_dot_products_of_groups() -> None:
    found = cpu_target("znver5", CPUS["znver5"])
    for dtypes, kernel in (("bf16,bf16,f32", "dot_dpbf16"), ("i8,i8,i32", "dot_dpbusd")):
        spec = mixed(1, 512, 96, dtypes)
        rhs = replace(spec.operands[1], layout=Layout.col_major(3))
        spec = replace(spec, operands=(spec.operands[0], rhs, spec.operands[2]))
        assert f"kernel {kernel}" in to_text(Search(found).solve(spec).schedule)


@pytest.mark.parametrize(
    ("cpu", "dtypes", "lhs", "why"),
    [
        ("skylake-avx512", "bf16,bf16,f32", ROWS, "does not have the instruction"),
        ("znver5", "f32,bf16,f32", ROWS, "it does not take f32 x bf16"),
        ("znver5", "bf16,bf16,f32", Storage(gap=2), "lhs needs unit stride along k"),
    ],
)
def test_dot_products_of_groups_that_cannot_be(cpu: str, dtypes: str, lhs: Storage, why: str) -> None:
    spec = make_spec((1, 2, 64, 2), dtypes, (lhs, COLUMNS, ROWS), True)
    with pytest.raises(ScheduleError, match=why):
        check_tree(spec, in_l1(Kernel("dot_dpbf16")), cpu_target(cpu, CPUS[cpu]))


def test_the_extremes_of_bytes_are_exact() -> None:
    """-128 * 255 as often as it goes: where pairs of products are added up in 16 bits, this saturates."""
    for name in ("avx2", "avx512"):
        found = get_target(name)
        if not host_runs(found):
            continue
        search = Search(found)
        spec = mixed(5, 36, 20, "u8,i8,i32")
        case = Case(spec.dims, "u8,i8,i32", (ROWS, ROWS, ROWS), False, search.solve(spec).schedule)  # type: ignore[arg-type]
        library = compile_cases([case], found)
        a, b = np.full((5, 36), 255, np.uint8), np.full((36, 20), -128, np.int8)
        out = np.zeros((5, 20), np.int32)
        ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(library.addresses["case0"])(
            a.ctypes.data, b.ctypes.data, out.ctypes.data
        )
        assert (out == 36 * 255 * -128).all()


@pytest.mark.parametrize("name", ["avx2", "avx512"])
@pytest.mark.parametrize(
    "dtypes", ["bf16,f32,f32", "f16,f16,f16", "i8,i8,i32", "bf16,bf16,f64", "u8,i8,i16", "i16,i8,i8"]
)
def test_random_schedules(name: str, dtypes: str) -> None:
    found, rng, cases = target(name), random.Random(dtypes), []
    for _ in range(4):
        dims = (rng.choice((1, 1, 2)), rng.choice((1, 3, 7)), rng.choice((1, 2, 5, 33)), rng.choice((1, 5, 17, 40)))
        storages = tuple(rng.choice((ROWS, COLUMNS, Storage(row_pad=3, offset=1), Storage(gap=2))) for _ in range(3))
        accumulate = rng.random() < 0.5
        spec = make_spec(dims, dtypes, storages, accumulate)  # type: ignore[arg-type]
        cases.append(Case(dims, dtypes, storages, accumulate, random_schedule(spec, found, rng)))  # type: ignore[arg-type]
    check(cases, found)


# ---------------------------------------------------------------- the search


def test_the_search_picks_the_kernels_for_groups() -> None:
    plain = replace(TARGETS["avx2"], narrow=TARGETS["avx2"].narrow)
    text = to_text(Search(plain).solve(mixed(48, 64, 48, "u8,i8,i32")).schedule)
    assert "kernel maddwd" in text
    assert "k%2] i16" in text


def test_a_cost_is_that_of_its_tree() -> None:
    search = Search(TARGETS["avx2"])
    for dtypes in ("bf16,bf16,f32", "i8,i8,i32", "f16,f16,f16"):
        found = search.solve(mixed(12, 17, 24, dtypes))
        assert search.price(found.spec, found.schedule) == found.cost


# ---------------------------------------------------------------- whole programs


def program(dtypes: str, m: int, k: int, n: int) -> str:
    a, b, c = ("i8" if d == "u8" else d for d in dtypes.split(","))
    zero = "0" if c.startswith("i") else "0.0"
    return f"""
    func.func @f(%a: tensor<{m}x{k}x{a}>, %b: tensor<{k}x{n}x{b}>) -> tensor<{m}x{n}x{c}> {{
      %z = arith.constant {zero} : {c}
      %e = tensor.empty() : tensor<{m}x{n}x{c}>
      %i = linalg.fill ins(%z : {c}) outs(%e : tensor<{m}x{n}x{c}>) -> tensor<{m}x{n}x{c}>
      %r = linalg.matmul ins(%a, %b : tensor<{m}x{k}x{a}>, tensor<{k}x{n}x{b}>)
                         outs(%i : tensor<{m}x{n}x{c}>) -> tensor<{m}x{n}x{c}>
      return %r : tensor<{m}x{n}x{c}>
    }}"""


@pytest.mark.parametrize(
    ("dtypes", "shape"),
    [
        ("bf16,bf16,f32", (3, 7, 19)),
        ("f16,f16,f16", (5, 1, 2)),
        ("i8,i8,i32", (2, 9, 33)),
        ("bf16,bf16,bf16", (1, 6, 5)),
        ("i8,i8,i16", (9, 13, 21)),
        ("i8,i8,i8", (3, 5, 7)),
        ("i32,i32,i32", (7, 11, 37)),
        ("i64,i64,i64", (5, 3, 11)),
        ("f64,f64,f64", (7, 13, 19)),
    ],
)
def test_programs(dtypes: str, shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    compiled = morello_mlir.compile(program(dtypes, m, k, n), memo="off")
    assert [s["function"] for s in compiled.specs] == ["Matmul"]
    rng = np.random.default_rng(0)
    kinds = [np.dtype(NUMPY[d]) for d in dtypes.split(",")]
    a, b = (
        rng.integers(-128, 128, s).astype(d) if d.kind == "i" else rng.standard_normal(s).astype(d)
        for s, d in (((m, k), kinds[0]), ((k, n), kinds[1]))
    )
    got = compiled.f(a, b)
    assert got.dtype == kinds[2]
    assert_close(got, a.astype(np.float64) @ b.astype(np.float64), k)


def test_an_output_is_rounded_once() -> None:
    """512 times 1/256 on top of 1: every step by itself would be lost in bf16."""
    compiled = morello_mlir.compile(program("bf16,bf16,bf16", 1, 513, 3), memo="off")
    a = np.full((1, 513), 1 / 256, ml_dtypes.bfloat16)
    a[0, 0] = 1
    assert (compiled.f(a, np.ones((513, 3), ml_dtypes.bfloat16)).astype(np.float32) == 3).all()


def shorts(body: str, out: str = "i16") -> str:
    """A product of unsigned and signed bytes; `body` makes of a sum, %s, the result %r."""
    return f"""
    #a = affine_map<(m, n, k) -> (m, k)>
    #b = affine_map<(m, n, k) -> (k, n)>
    #c = affine_map<(m, n, k) -> (m, n)>
    #o = affine_map<(m, n) -> (m, n)>
    func.func @f(%a: tensor<7x37xi8>, %b: tensor<37x19xi8>) -> tensor<7x19xi16> {{
      %z = arith.constant 0 : {out}
      %e = tensor.empty() : tensor<7x19x{out}>
      %i = linalg.fill ins(%z : {out}) outs(%e : tensor<7x19x{out}>) -> tensor<7x19x{out}>
      %p = linalg.generic {{indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}}
        ins(%a, %b : tensor<7x37xi8>, tensor<37x19xi8>) outs(%i : tensor<7x19x{out}>) {{
      ^bb0(%x: i8, %y: i8, %t: {out}):
        %u = arith.extui %x : i8 to {out}
        %v = arith.extsi %y : i8 to {out}
        %w = arith.muli %u, %v : {out}
        %q = arith.addi %t, %w : {out}
        linalg.yield %q : {out}
      }} -> tensor<7x19x{out}>
      {body}
    }}"""


def test_sums_of_shorts_wrap_around() -> None:
    """As the op says: every step is modulo 2^16. vpmaddubsw would saturate."""
    compiled = morello_mlir.compile(shorts("return %p : tensor<7x19xi16>"), memo="off", threads=1)
    assert len(compiled.specs) == 1
    rng = np.random.default_rng(3)
    extremes = np.full((7, 37), 255, np.uint8), np.full((37, 19), -128, np.int8)
    some = rng.integers(0, 256, (7, 37)).astype(np.uint8), rng.integers(-128, 128, (37, 19)).astype(np.int8)
    for a, b in (extremes, some):
        want = (a.astype(np.int64) @ b.astype(np.int64)).astype(np.int16)
        assert (compiled.f(a, b) == want).all()


def test_sums_that_are_clamped_saturate() -> None:
    """How frontends write saturation: sums in i32, clamped. It is part of the product's Spec."""
    compiled = morello_mlir.compile(
        shorts(
            """%low = arith.constant -32768 : i32
      %high = arith.constant 32767 : i32
      %n = tensor.empty() : tensor<7x19xi16>
      %r = linalg.generic {indexing_maps = [#o, #o], iterator_types = ["parallel", "parallel"]}
        ins(%p : tensor<7x19xi32>) outs(%n : tensor<7x19xi16>) {
      ^bb0(%x: i32, %y: i16):
        %l = arith.maxsi %x, %low : i32
        %h = arith.minsi %l, %high : i32
        %t = arith.trunci %h : i32 to i16
        linalg.yield %t : i16
      } -> tensor<7x19xi16>
      return %r : tensor<7x19xi16>""",
            "i32",
        ),
        memo="off",
        threads=1,
    )
    assert len(compiled.specs) == 1
    a = np.repeat(np.array([0, 1, 7, 8, 100, 200, 255], np.uint8), 37).reshape(7, 37)
    b = np.tile(np.linspace(-128, 127, 19).astype(np.int8), (37, 1))
    want = np.clip(a.astype(np.int64) @ b.astype(np.int64), -32768, 32767)
    assert {-32768, 32767} <= set(want.flat)
    assert (compiled.f(a, b) == want).all()


def test_weights_in_groups_are_packed_ahead() -> None:
    """Bytes in a constant: packed once, in groups and with zeros after k, and widened where the kernel wants that."""
    rng = np.random.default_rng(1)
    a = rng.integers(-128, 128, (8, 30)).astype(np.int8)
    weights = rng.integers(-128, 128, (30, 40)).astype(np.int8)
    text = f"""
    func.func @f(%a: tensor<8x30xi8>) -> tensor<8x40xi32> {{
      %b = arith.constant dense<{weights.tolist()}> : tensor<30x40xi8>
      %z = arith.constant 0 : i32
      %e = tensor.empty() : tensor<8x40xi32>
      %i = linalg.fill ins(%z : i32) outs(%e : tensor<8x40xi32>) -> tensor<8x40xi32>
      %r = linalg.matmul ins(%a, %b : tensor<8x30xi8>, tensor<30x40xi8>) outs(%i : tensor<8x40xi32>) -> tensor<8x40xi32>
      return %r : tensor<8x40xi32>
    }}"""
    want = a.astype(np.int64) @ weights.astype(np.int64)
    for name in ("avx2", "avx512"):
        if host_runs(get_target(name)):
            compiled = morello_mlir.compile(text, memo="off", target=name, threads=1)
            assert "pack_ahead rhs as" in str(compiled.specs[0]["schedule"])
            assert all((compiled.f(a) == want).all() for _ in range(2))


def test_integers_of_either_sign_are_taken_as_they_are() -> None:
    compiled = morello_mlir.compile(program("i8,i8,i32", 2, 3, 4), memo="off", threads=1)
    a = np.array([[-1, 2, 3], [4, -5, 6]], np.int8)
    b = np.arange(12, dtype=np.int8).reshape(3, 4)
    assert (compiled.f(a.view(np.uint8), b) == compiled.f(a, b)).all()


_DOT = """func.func @NAME(%a: tensor<1xKxi8>, %b: tensor<1xKxi8>, %c: tensor<1x1xi32>) -> tensor<1x1xi32> {
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
      affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<1xKxi8>, tensor<1xKxi8>) outs(%c : tensor<1x1xi32>) {
  ^bb0(%x: i8, %y: i8, %s: i32):
    %p = arith.LHS %x : i8 to i32
    %q = arith.RHS %y : i8 to i32
    %m = arith.muli %p, %q : i32
    %t = arith.addi %s, %m : i32
    linalg.yield %t : i32
  } -> tensor<1x1xi32>
  return %r : tensor<1x1xi32>
}"""
_SIGNS = (("extsi", "extui"), ("extui", "extsi"), ("extui", "extui"))
_DOTS = [(f"{lhs}_{rhs}_{k}", k, lhs, rhs) for k in range(4, 10) for lhs, rhs in _SIGNS]


def _dot(name: str, k: int, lhs: str, rhs: str) -> str:
    return _DOT.replace("NAME", name).replace("K", str(k)).replace("LHS", lhs).replace("RHS", rhs)


@pytest.fixture(scope="module")
def dots() -> morello_mlir.CompiledModule:
    return morello_mlir.compile("\n".join(_dot(*each) for each in _DOTS), memo="off", threads=1)


@pytest.mark.parametrize(("name", "k", "lhs", "rhs"), _DOTS, ids=[d[0] for d in _DOTS])
def test_one_dot_product_of_bytes(dots: morello_mlir.CompiledModule, name: str, k: int, lhs: str, rhs: str) -> None:
    """LLVM makes one instruction of short ones."""
    a, b = (np.random.default_rng(seed).integers(-128, 128, (1, k)).astype(np.int8) for seed in (k, k + 50))
    wide = [
        x.view(np.uint8 if sign == "extui" else np.int8).astype(np.int64)
        for x, sign in zip((a, b), (lhs, rhs), strict=True)
    ]
    for start in (0, 7):
        got = getattr(dots, name)(a, b, np.full((1, 1), start, np.int32))
        assert got[0, 0] == start + (wide[0] * wide[1]).sum()
