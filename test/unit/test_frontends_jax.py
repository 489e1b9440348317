"""JAX: functions of pytrees become programs that give JAX's numbers."""

from __future__ import annotations

import numpy as np
import pytest

from morello_mlir.errors import CompileError, InputError

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402

from morello_mlir.frontends import jax as frontend  # noqa: E402


def random(*shape, seed=0):
    return jax.random.normal(jax.random.key(seed), shape)


def same(got, wanted):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), got, wanted)


def dense(parameters, x):
    hidden = jax.nn.gelu(x @ parameters["w"] + parameters["b"], approximate=False)
    return {"probabilities": jax.nn.softmax(hidden, -1), "best": jnp.argmax(hidden, -1), "sum": jnp.sum(hidden)}


@pytest.mark.parametrize("constant", [True, False])
def test_pytrees_go_in_and_come_out(constant):
    parameters, x = {"w": random(8, 16), "b": random(16, seed=1)}, random(5, 8)
    compiled = frontend.compile(dense, parameters, x, constant_argnums=0 if constant else ())
    got = compiled(x) if constant else compiled(parameters, x)
    same(got, dense(parameters, x))
    assert isinstance(got["sum"], jax.Array)
    assert compiled.compiled.lifted >= 1


def test_convolution_and_pooling():
    def function(w, x):
        y = jax.lax.conv_general_dilated(x, w, (2, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        y = jax.lax.reduce_window(jax.nn.relu(y), -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return y.mean((1, 2))

    w, x = random(3, 3, 4, 8), random(1, 9, 8, 4)
    same(frontend.compile(function, w, x)(w, x), function(w, x))


def test_a_loop_and_an_argument_that_nobody_needs():
    def function(x, unused, steps):
        return jax.lax.fori_loop(0, 3, lambda i, c: jnp.tanh(c @ x), jnp.eye(4)), steps + 1

    x = random(4, 4)
    compiled = frontend.compile(function, x, x, 3)
    same(compiled(x, x, 3), function(x, x, 3))


def test_branches():
    def function(x, k):
        y = jax.lax.cond(k > 1, lambda: x + 1, lambda: x * 2)
        return jax.lax.switch(k, [lambda: y, lambda: -y, lambda: y * y])

    x = random(3)
    compiled = frontend.compile(function, x, 0)
    for k in (-1, 0, 1, 2, 7):
        same(compiled(x, k), function(x, k))


def test_a_scan():
    def function(w, x):
        return jax.lax.scan(lambda c, row: ((c + jnp.tanh(row @ w)), c.sum()), jnp.zeros(4), x)

    w, x = random(3, 4), random(5, 3)
    same(frontend.compile(function, w, x, constant_argnums=0)(x), function(w, x))


def test_types_other_than_single():
    def function(x, i):
        return (x * 2).astype(jnp.bfloat16), i << 1, i > 3

    x, i = random(3).astype(jnp.bfloat16), jnp.arange(5, dtype=jnp.uint8)
    got = frontend.compile(function, x, i)(x, i)
    for mine, theirs in zip(got, function(x, i), strict=True):
        assert mine.dtype == theirs.dtype
        np.testing.assert_array_equal(mine, theirs)


def test_arguments_that_do_not_fit():
    compiled = frontend.compile(lambda x: x + 1, random(3))
    with pytest.raises(InputError, match="structured"):
        compiled({"x": random(3)})
    with pytest.raises(InputError, match=r"argument 0 is float32\[4\], and was float32\[3\]"):
        compiled(random(4))
    with pytest.raises(InputError, match="constant_argnums"):
        frontend.compile(lambda x: x + 1, random(3), constant_argnums=1)
    with pytest.raises(InputError, match="contents"):
        frontend.compile(lambda x: x + 1, jax.ShapeDtypeStruct((3,), jnp.float32), constant_argnums=0)
    with pytest.raises(InputError, match="a function"):
        frontend.compile(3)


def test_what_cannot_be_compiled():
    with pytest.raises(CompileError, match="cannot export"):
        frontend.compile(lambda x: x if x.sum() > 0 else -x, random(3))
    with pytest.raises(CompileError, match=r"jaxlib does not lower 'stablehlo\.custom_call' to linalg"):
        frontend.compile(jnp.linalg.svd, random(3, 3))
    with pytest.raises(CompileError, match=r"'stablehlo\.sort'"):
        frontend.compile(lambda x: jnp.sort(x) + 1, random(3))


def test_functions_that_come_as_composites():
    x = 3 * random(2, 5)
    same(frontend.compile(jnp.arcsinh, x)(x), jnp.arcsinh(x))


def test_complex_constants():
    def function(x):
        return x * 2j + jnp.array([1, 1j, 0])

    x = random(2, 3)
    same(frontend.compile(function, x)(x), function(x))


@pytest.mark.parametrize("causal", [False, True])
def test_attention_is_one_chain(causal):
    """Heads lie inside of the sequence, and JAX multiplies the values by the weights, transposed."""

    def attention(q, k, v):
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / 8
        if causal:
            scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -jnp.inf)
        return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, -1), v)

    q, k, v = (np.random.default_rng(i).standard_normal((1, 66, 3, 16)).astype(np.float32) for i in range(3))
    compiled = frontend.compile(attention, q, k, v, threads=1)
    np.testing.assert_allclose(compiled(q, k, v), attention(q, k, v), rtol=1e-4, atol=1e-5)
    assert compiled.compiled.left == 0
    (chain,) = (spec["spec"] for spec in compiled.compiled.specs if spec["spec"].startswith("Chain("))
    assert ("= 0 above 0" in chain) == causal


@pytest.mark.parametrize("mode", ["fill", "clip", "wrap"])
@pytest.mark.parametrize("axis", [0, 1])
def test_rows_of_tables(mode, axis):
    """Places that are none mean what the mode says."""
    table = random(30, 70)
    places = jnp.array([[3, 0, 29], [-1, 35, -40]], jnp.int32)

    def function(table, places):
        return jnp.take(table, places, axis=axis, mode=mode) * 2

    compiled = frontend.compile(function, table, places)
    np.testing.assert_array_equal(compiled(table, places), function(table, places))
    assert compiled.compiled.left == 0 and any("gather" in s["spec"] for s in compiled.compiled.specs)


@pytest.mark.parametrize("number", [3, 2.5, True, np.int8(3)], ids=repr)
@pytest.mark.parametrize("dtype", ["uint8", "int16", "bool", "bfloat16", "float32"])
def test_numbers_of_python_take_the_dtype_beside_them(number, dtype):
    def function(number, x):
        return x * number, number

    x = jnp.arange(5).astype(dtype)
    got, wanted = frontend.compile(function, number, x)(number, x), jax.jit(function)(number, x)
    assert [each.dtype for each in got] == [each.dtype for each in wanted]
    same(got, wanted)


@pytest.mark.parametrize("constant", [(), 0])
@pytest.mark.parametrize("dtype", ["int4", "uint4", "int2"])
def test_integers_of_a_few_bits(dtype, constant):
    def function(x):
        return x, x + x, x > 1, x[None].astype(jnp.int8) @ x[:, None].astype(jnp.int8)

    x = jnp.arange(-2, 6).astype(dtype)
    got = frontend.compile(function, x, constant_argnums=constant)(*([x] if constant == () else []))
    for each, wanted in zip(got, jax.jit(function)(x), strict=True):
        assert each.dtype == wanted.dtype
        np.testing.assert_array_equal(np.asarray(each), np.asarray(wanted))


@pytest.mark.parametrize("shape", [(), (0,), (0, 4), (4, 0)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "bfloat16"])
def test_reductions_along_no_dims_and_of_no_elements(dtype, shape):
    def function(x):
        some = [x.sum(), x.sum(-1) if shape else x.any(), x.sum(0, keepdims=True) if shape else x.prod(), x.all()]
        return [*some, jnp.max(x, initial=0)] if dtype != "bool" else some

    x = jnp.full(shape, 3).astype(dtype)
    got, wanted = frontend.compile(function, x)(x), jax.jit(function)(x)
    for each, other in zip(got, wanted, strict=True):
        assert (each.dtype, each.shape) == (other.dtype, other.shape)
    same(got, wanted)


def test_places_of_the_largest_along_no_dims():
    def function(x):
        places = jax.lax.iota(jnp.int32, 1)[0]
        larger = lambda a, b: (jnp.maximum(a[0], b[0]), jnp.where(a[0] < b[0], b[1], a[1]))  # noqa: E731
        return jax.lax.reduce((x, places), (jnp.float32(-jnp.inf), jnp.int32(-1)), larger, ())

    x = jnp.float32(2)
    same(frontend.compile(function, x)(x), jax.jit(function)(x))


@pytest.mark.parametrize("wide", ["int32", "uint32", "float32"])
@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_products_of_unsigned_integers(dtype, wide):
    def function(x):
        product = jax.lax.dot_general(x, x, (((1,), (1,)), ((), ())), preferred_element_type=wide)
        windows = jax.lax.conv(x[None, None], x[None, None, :2, :3], (1, 1), "SAME", preferred_element_type=wide)
        return product, windows

    bounds = jnp.iinfo(dtype)
    x = jnp.asarray(np.random.default_rng(0).integers(bounds.min, bounds.max, (6, 7), dtype, endpoint=True))
    got, wanted = frontend.compile(function, x)(x), jax.jit(function)(x)
    assert [each.dtype for each in got] == [each.dtype for each in wanted]
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), got, wanted)


def test_products_of_bytes_are_read_as_bytes():
    def function(x, y):
        return jax.lax.dot(x, y, preferred_element_type=jnp.int32)

    x, y = jnp.full((33, 64), 200, jnp.uint8), jnp.full((64, 48), 255, jnp.uint8)
    compiled = frontend.compile(function, x, y)
    np.testing.assert_array_equal(compiled(x, y), 64 * 200 * 255)
    assert "u8" in compiled.compiled.specs[0]["spec"]
