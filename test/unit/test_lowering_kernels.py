"""Each kernel and each way to pack by itself, at the sizes where something changes: tails, one iteration, no loop."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from lowering_support import Case, Storage, assert_close, compile_cases, in_l1, needs, run_case

from morello_mlir.search.schedule import Kernel, Move, Node, Tile
from morello_mlir.targets import TARGETS, host_runs

ROWS, COLUMNS = Storage(), Storage(fast=1)
TARGETS_AND_TYPES = [(t, d) for t in ("avx2", "avx512") for d in ("f32", "f64")]


def check(cases: list[Case], target: str) -> None:
    needs(target)
    library = compile_cases(cases, TARGETS[target])
    for i, case in enumerate(cases):
        got, want = run_case(library.addresses[f"case{i}"], case, np.random.default_rng(i))
        assert_close(got, want, case.dims[2])


@pytest.mark.parametrize(("target", "dtype"), TARGETS_AND_TYPES)
def test_broadcast_fma(target: str, dtype: str) -> None:
    lanes = TARGETS[target].lanes(dtype)
    body = in_l1(Move("out", "VRF", None, Kernel("broadcast_fma")))
    tiles = [(1, 1), (3, lanes), (2, lanes + 1), (4, 2 * lanes - 1), (1, 3 * lanes + 2)]
    outs = (ROWS, Storage(row_pad=3, offset=1), COLUMNS, Storage(gap=2))
    cases = [
        Case((1, m, k, n), dtype, (ROWS, ROWS, outs[(m + k) % 4]), True, body)
        for m, n in tiles
        for k in (1, 3, 4, 8, 13)
    ]
    check(cases, target)


@pytest.mark.parametrize(("target", "dtype"), TARGETS_AND_TYPES)
def test_vectors_of_several_steps(target: str, dtype: str) -> None:
    """Outputs of few columns whose rhs has no gaps, or has some; depths that leave a part of a vector, loops."""
    lanes = TARGETS[target].lanes(dtype)
    body = in_l1(Move("out", "VRF", None, Kernel("broadcast_fma")))
    rights = (ROWS, ROWS, Storage(row_pad=3), Storage(gap=2))
    cases = [
        Case((1, m, k, n), dtype, (ROWS, rights[k % 4], (ROWS, COLUMNS)[n % 2]), True, body)
        for n in range(2, lanes // 2 + 1)
        for m in (1, 3, 9)
        for k in (2, 5, 8, 77)
    ]
    check(cases, target)


FREE = replace(TARGETS["avx512"], shuffles=True)


@pytest.mark.skipif(not host_runs(FREE), reason="the host has no avx512")
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_steps_are_brought_together_where_shuffles_are_free(dtype: str) -> None:
    """One vector or a part of one under few and many rows, rhs with and without gaps: even and odd depths, loops."""
    body = in_l1(Move("out", "VRF", None, Kernel("broadcast_fma")))
    lanes = FREE.lanes(dtype)
    cases = [
        Case((1, m, k, n), dtype, (ROWS, (ROWS, Storage(row_pad=3))[(m + k + n) % 2], ROWS), True, body)
        for m in (1, 8, 9, 20)
        for n in (2, 3, lanes // 2 - 1, lanes // 2, lanes // 2 + 1, lanes)
        for k in (1, 2, 7, 16, 37)
    ]
    library = compile_cases(cases, FREE)
    for i, case in enumerate(cases):
        got, want = run_case(library.addresses[f"case{i}"], case, np.random.default_rng(i))
        assert_close(got, want, case.dims[2])


@pytest.mark.parametrize(("target", "dtype"), TARGETS_AND_TYPES)
def test_dot_fma(target: str, dtype: str) -> None:
    lanes = TARGETS[target].lanes(dtype)
    cases = [
        Case((1, m, k, n), dtype, (ROWS, COLUMNS, ROWS), True, in_l1(Kernel("dot_fma")))
        for m, n in [(1, 1), (2, 3), (3, 1), (1, 4)]
        for k in (1, lanes - 1, lanes, 2 * lanes + 1, 8 * lanes, 9 * lanes + 3)
    ]
    check(cases, target)


def packed(operand: str, width: int, size: int) -> Node:
    """Packs an operand; the scalar kernel reads the panels."""
    dim = "m" if operand == "lhs" else "n"
    layout = f"[b, m/{width}, k, m%{width}]" if operand == "lhs" else f"[b, n/{width}, k, n%{width}]"
    body: Node = Kernel("scalar")
    if size > width:
        body = Tile(dim, width, body, body if size % width else None)
    body = Move("out", "L2", None, body)
    return Move("rhs" if operand == "lhs" else "lhs", "L2", None, Move(operand, "L2", layout, body))


@pytest.mark.parametrize(("target", "dtype"), TARGETS_AND_TYPES)
@pytest.mark.parametrize("operand", ["lhs", "rhs"])
def test_packing(target: str, dtype: str, operand: str) -> None:
    lanes = TARGETS[target].lanes(dtype)
    sources = (ROWS, COLUMNS, Storage(gap=3, row_pad=1), Storage(fast=1, row_pad=5))
    cases = []
    for number, (width, depth) in enumerate(
        (w, k) for w in (3, 4, 6, lanes, lanes + 3) for k in (1, lanes, 2 * lanes + 3)
    ):
        size = (2 * width, 2 * width + 1, width - 1)[number % 3]
        for source in (sources[number % 4], sources[(number + 1) % 4]):
            places = (source, ROWS, ROWS) if operand == "lhs" else (ROWS, source, ROWS)
            dims = (1, size, depth, 2) if operand == "lhs" else (1, 2, depth, size)
            cases.append(Case(dims, dtype, places, True, packed(operand, width, size)))
    check(cases, target)
