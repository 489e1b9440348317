"""Functions of vectors, against f64 over all exponents and at the odd ends of the range."""

from __future__ import annotations

import ctypes
import itertools
import math
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from lowering_support import compile_module, context, needs
from mlir import ir

from benchmarks import erf_table as fit
from morello_mlir.lowering.builder import Builder
from morello_mlir.lowering.machine import Machine
from morello_mlir.nests.lowering import erf_table, vector_math
from morello_mlir.nests.lowering.vectors import Vectors, float_bits
from morello_mlir.targets import TARGETS

CHUNK = 48 * 64
REFERENCES = {
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "tanh": np.tanh,
    "erf": np.vectorize(math.erf, otypes=[float]),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sin": np.sin,
    "cos": np.cos,
}
#: What errors may be, in units in the last place of the exact result (docs/vector-math.md has what they are).
ULPS = {
    "exp": 1.1,
    "exp2": 1.1,
    "expm1": 1.6,
    "log": 0.9,
    "log2": 1.2,
    "log10": 1.1,
    "log1p": 1.5,
    "tanh": 2.6,
    "erf": 1.3,
    "erf_by_tables": 1.0,
    "rsqrt": 1.5,
    "sin": 1.6,
    "cos": 1.6,
    "powf": 0.51,
}
SPECIAL = np.array(
    [
        *(0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-45, -1e-45, 1.17549435e-38, -1.17549435e-38, 3.4028235e38),
        *(
            -3.4028235e38,
            88.72283,
            88.72284,
            -87.33,
            -103.97,
            -104,
            -150,
            128,
            127.99999,
            -149,
            -149.5,
            -126,
            0.5,
            -0.5,
        ),
    ],
    np.float32,
)


def _text(name: str, lanes: int, unroll: int, target: str) -> str:
    b = Builder(Machine.of(TARGETS[target], "f32"))
    v = Vectors(b, "f32", lanes)
    arity = 2 if name in ("powf", "exp_of_difference") else 1
    memory = f"memref<{CHUNK}xf32>"
    with b.loop(0, CHUNK, lanes * unroll) as i:
        places = [b.index(b.add(i, u * lanes)) for u in range(unroll)]
        args = [tuple(b.value(f"vector.load %a{k}[{at}] : {memory}, {v.type}") for at in places) for k in range(arity)]
        for at, y in zip(places, _function(name)(v, *args), strict=True):
            b.line(f"vector.store {y}, %o[{at}] : {memory}, {v.type}")
    parameters = ", ".join(f"%a{k}: {memory}" for k in range(arity))
    return f"func.func @{name}({parameters}, %o: {memory}) {{\n{b.text()}\nreturn\n}}"


def _function(name: str) -> vector_math.Function:
    return vector_math.FUNCTIONS.get(name) or vector_math.exp_of_difference


@lru_cache
def _library(lanes: int, unroll: int, target: str) -> dict[str, int]:
    names = [*vector_math.FUNCTIONS, "exp_of_difference"]
    with context(), ir.Location.unknown():
        module = ir.Module.parse("module {\n" + "\n".join(_text(n, lanes, unroll, target) for n in names) + "\n}")
        library = compile_module(module, names)
    _library.kept = library  # type: ignore[attr-defined]
    return {**library.addresses, "": library}  # type: ignore[dict-item]


def _run(name: str, lanes: int, unroll: int, *arrays: np.ndarray, target: str = "avx2") -> np.ndarray:
    count = len(arrays[0])
    padded = [np.concatenate([a, np.ones(-count % CHUNK, np.float32)]) for a in arrays]
    out = np.empty_like(padded[0])
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (len(arrays) + 1))(_library(lanes, unroll, target)[name])
    for at in range(0, len(out), CHUNK):
        function(*(a.ctypes.data + 4 * at for a in (*padded, out)))
    return out[:count]


def _errors(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """In units in the last place; infinite where NaN, an infinity or the sign of a zero is not as it should be."""
    with np.errstate(all="ignore"):
        rounded = want.astype(np.float32)
        unit = np.maximum(2.0**-149, 2.0 ** (np.floor(np.log2(np.maximum(np.abs(want), 1e-300))) - 23))
        error = np.abs(got.astype(float) - want) / unit
    exact = ~np.isfinite(rounded) | (want == 0)
    same = ((got == rounded) & (np.signbit(got) == np.signbit(rounded))) | (np.isnan(got) & np.isnan(rounded))
    return np.where(exact, np.where(same, 0.0, np.inf), error)


def _points(per_exponent: int, seed: int = 0) -> np.ndarray:
    """Numbers with every exponent there is, of both signs, and the special ones."""
    rng = np.random.default_rng(seed)
    exponents = np.arange(256, dtype=np.uint32)[:, None] << 23
    bits = exponents | rng.integers(0, 1 << 23, (256, per_exponent), dtype=np.uint32)
    numbers = np.concatenate([bits.ravel(), bits.ravel() | np.uint32(1 << 31)]).astype(np.uint32).view(np.float32)
    return np.concatenate([SPECIAL, numbers])


@pytest.mark.parametrize("name", REFERENCES)
@pytest.mark.parametrize(
    ("lanes", "unroll", "target"),
    [(8, 1, "avx2"), (16, 2, "avx512"), (8, 1, "avx512"), (16, 1, "avx2"), (3, 1, "avx2")],
)
def test_errors(name: str, lanes: int, unroll: int, target: str) -> None:
    needs(target)
    x = np.concatenate([_points(40), np.linspace(-20, 20, 30_001).astype(np.float32)])
    with np.errstate(all="ignore"):
        want = REFERENCES[name](x.astype(float))
    error = _errors(_run(name, lanes, unroll, x, target=target), want)
    worst = int(error.argmax())
    assert error[worst] <= ULPS[name], f"{name}({x[worst]!r}): {error[worst]}"


def test_erf_by_tables() -> None:
    """Sixteen lanes of AVX-512 look polynomials up, which are better than those of other vectors."""
    needs("avx512")
    borders = np.arange(1, 64, 2, dtype=np.float32) / 16
    near = np.concatenate([np.nextafter(borders, np.float32(k)) for k in (0, 9)])
    x = np.concatenate([borders, near, _points(400), np.linspace(0, 4.5, 400_001).astype(np.float32)])
    got = _run("erf", 16, 2, x, target="avx512")
    with np.errstate(all="ignore"):
        want = REFERENCES["erf"](x.astype(float))
    assert _errors(got, want).max() <= ULPS["erf_by_tables"]
    ends = np.array([np.inf, -np.inf, 4, -4, 3.9375, 0.0, -0.0, np.nan], np.float32)
    np.testing.assert_array_equal(_run("erf", 16, 2, ends, target="avx512"), [1, -1, 1, -1, 1, 0, 0, np.nan])
    assert "vpermi2var" in _text("erf", 16, 1, "avx512")
    assert all("vpermi2var" not in _text("erf", lanes, 1, t) for lanes, t in ((8, "avx512"), (16, "avx2"), (3, "avx2")))


def test_tables_of_erf() -> None:
    """Centers lie where they are looked up for, and erf of them is what stands beside them."""
    assert len({len(t) for t in (erf_table.CENTERS, erf_table.VALUES, *erf_table.POLYNOMIALS)}) == 1
    for i, (center, value) in enumerate(zip(erf_table.CENTERS, erf_table.VALUES, strict=True)):
        assert np.float32(center) == center and np.float32(value) == value
        assert abs(center - i / 8) <= 1 / 16
        assert abs(math.erf(center) - value) <= 2**-29 * value
    assert erf_table.VALUES[-1] < 1.0 and round(8 * erf_table.TOP) == 31


def test_tables_of_erf_are_what_the_fit_makes() -> None:
    assert fit.text() == Path(erf_table.__file__).read_text()


@pytest.mark.parametrize(("lanes", "unroll"), [(8, 1), (16, 2)])
def test_powers(lanes: int, unroll: int) -> None:
    odd = [0.0, -0.0, 1, -1, 2, -2, 3, -3, 0.5, -0.5, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 3e38, 16777215, -1e9]
    pairs = np.array(list(itertools.product(odd, odd)), np.float32)
    rng = np.random.default_rng(1)
    # Signalling NaN among the points: NumPy warns when it converts them.
    with np.errstate(all="ignore"):
        x = np.concatenate([pairs[:, 0], _points(8), rng.uniform(0.01, 50, 20_000), rng.uniform(0.99, 1.01, 20_000)])
        y = np.concatenate([pairs[:, 1], rng.permutation(_points(8)), rng.uniform(-20, 20, 20_000)])
        y = np.concatenate([y, rng.uniform(-9000, 9000, 20_000)])
        x, y = x.astype(np.float32), y.astype(np.float32)
        want = np.power(x.astype(float), y.astype(float))
    error = _errors(_run("powf", lanes, unroll, x, y), want)
    worst = int(error.argmax())
    assert error[worst] <= ULPS["powf"], f"{x[worst]!r} ** {y[worst]!r}: {error[worst]}"


@pytest.mark.parametrize(("lanes", "target"), [(8, "avx2"), (16, "avx2"), (8, "avx512"), (16, "avx512")])
def test_exp_of_difference(lanes: int, target: str) -> None:
    needs(target)
    top = np.full(60_000, 3.25, np.float32)
    x = np.linspace(3.25 - 86, 3.25, len(top)).astype(np.float32)
    got, difference = _run("exp_of_difference", lanes, 1, x, top, target=target), (x - top).astype(float)
    error = _errors(got, np.exp(difference))
    assert (error <= (5 if target == "avx2" else 3 - 1.5 * difference)).all()
    assert (np.abs(got - np.exp(difference)) <= 2.0**-23).all()
    ends = np.array([-np.inf, np.nan, -110, -3.4e38, 3.25], np.float32)
    got = _run("exp_of_difference", lanes, 1, ends, top[:5], target=target)
    np.testing.assert_array_equal(got, np.array([0, np.nan, 0, 0, 1], np.float32))


def test_literals() -> None:
    assert float_bits(1.0, "f32") == "0x3F800000"
    assert float_bits(math.inf, "f32") == "0x7F800000"
    assert float_bits(-1e300, "f32") == "0xFF800000"
    assert float_bits(1.0, "f64") == "0x3FF0000000000000"
