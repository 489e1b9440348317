"""Bodies and Specs of nests: text, types, canonical forms, and what they compute."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from morello_mlir.errors import SpecError
from morello_mlir.nests import Body, BodyBuilder, NestSpec, Operand
from morello_mlir.nests.evaluate import evaluate
from morello_mlir.nests.ops import literal, number

SOFTMAX = "m = max(x0); e = exp(sub(x0, m)); s = sum(e); y = div(e, s)"
NORM = (
    "a = div(sum(x0), 8.0:f32); d = sub(x0, a); v = div(sum(mul(d, d)), 8.0:f32);"
    "y = add(mul(mul(d, rsqrt(add(v, 1e-05:f32))), x1), x2)"
)


def softmax(rows=8, cols=2048):
    return NestSpec.parse(
        f'Softmax([{rows}, {cols} scan], (f32, GL, [{cols}, 1]), (f32, GL, [{cols}, 1]), "{SOFTMAX}", serial)'
    )


def test_text_round_trip():
    spec = softmax()
    assert NestSpec.parse(str(spec)) == spec
    assert str(spec.body) == SOFTMAX
    norm = Body.parse(NORM, ["f32"] * 3)
    assert Body.parse(str(norm), ["f32"] * 3) == norm


@pytest.mark.parametrize(
    ("body", "outputs", "function"),
    [
        ("y = exp(x0)", "[4, 1]", "Map"),
        ("y = sum(x0)", "[1, 0]", "Reduce"),
        ("y = div(sum(mul(x0, x0)), 4.0:f32)", "[1, 0]", "Reduce"),
        ("y = div(x0, sum(x0))", "[4, 1]", "Compose"),
        ("m = max(x0); y = log(sum(exp(sub(x0, m))))", "[1, 0]", "Compose"),
        (SOFTMAX, "[4, 1]", "Softmax"),
    ],
)
def test_function_follows_from_body(body, outputs, function):
    text = f'[3, 4 scan], (f32, GL, [4, 1]), (f32, GL, {outputs}), "{body}", serial)'
    assert NestSpec.parse(f"{function}({text}").function == function
    other = "Map" if function != "Map" else "Reduce"
    with pytest.raises(SpecError, match=f"makes it a {function}, not a {other}"):
        NestSpec.parse(f"{other}({text}")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("y = foo(x0)", "unknown op 'foo'"),
        ("y = exp(x1)", "there is no input x1"),
        ("y = exp(z)", "'z' is not defined above"),
        ("z = exp(x0)", "outputs are called y"),
        ("y = and(x0, x0)", "takes ints"),
        ("y = add(x0)", "add does not take 1 operands"),
        ("y = add(x0, 1:i32)", "one type"),
        ("y = exp(x0", "expected"),
        ("y = exp(x0); y = x0", "defined twice"),
        ("x1 = exp(x0)", "is an input"),
        ("y = cmp(zz, x0, x0)", "no predicate zz"),
        ("y = cast(x0, f31)", "unknown element type 'f31'"),
        ("y = 1.5:f31", "unknown element type"),
        ("y = ???", "cannot read"),
        ("", "outputs are called y"),
        ("y1 = x0", "without gaps"),
        ("y = " + "neg(" * 300 + "x0" + ")" * 300, "nested too deeply"),
    ],
)
def test_bad_bodies(text, why):
    with pytest.raises(SpecError, match=why):
        Body.parse(text, ["f32"])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('Map([2], (f32, GL, [1]), (f32, GL, [1, 1]), "y = x0", serial)', "1 strides"),
        ('Map([2], (f32, GL, [1]), (f64, GL, [1]), "y = x0", serial)', "output 0 is f64"),
        ('Map([2], (f32, GL, [1]), (f32, GL, [0]), "y = x0", serial)', "has no stride"),
        ('Compose([2, 3 scan], (f32, GL, [3, 1]), (f32, GL, [3, 1]), "y = sum(x0)", serial)', "a reduction along d1"),
        ('Map([2, 3], (f32, GL, [3, 1]), (f32, GL, [2, 1]), "y = x0", serial)', "written more than once"),
        ('Map([2], (f32, L9, [1]), (f32, GL, [1]), "y = x0", serial)', "unknown memory"),
        ('Map([2], (f32, GL, [1]), (f32, GL, [1], is x1), "y = x0", serial)', "there are 1 inputs"),
        ('Map([2], (f32, GL, [2]), (f32, GL, [1], is x0), "y = x0", serial)', "must agree"),
        ('Map([-2], (f32, GL, [1]), (f32, GL, [1]), "y = x0", serial)', "cannot read the sizes"),
        ('Map([2], (f32, GL, [1]), (f32, GL, [1]), "y = x0", whatever)', "cannot read the Spec"),
        ('Map([2], (f32, GL, [1]), (i64, GL, [1]), "y = index(3, i64)", serial)', "there are 1 dims"),
        ('Map([2], (f32, GL, [1]), (f32, GL, [1]), "y = x0", parallel 9999)', "threads"),
    ],
)
def test_bad_specs(text, why):
    with pytest.raises(SpecError, match=why):
        NestSpec.parse(text)


def test_canonical_merges_and_drops():
    text = 'Map([2, 1, 3, 4], (f32, GL, [12, 5, 4, 1]), (f32, GL, [12, 7, 4, 1]), "y = exp(x0)", serial)'
    assert str(NestSpec.parse(text).canonical()) == 'Map([24], (f32, GL, [1]), (f32, GL, [1]), "y = exp(x0)", serial)'
    transposed = 'Map([3, 2], (f32, GL, [1, 3]), (f32, GL, [1, 3]), "y = exp(x0)", parallel 1)'
    assert str(NestSpec.parse(transposed).canonical()).startswith("Map([6], ")
    strided = 'Reduce([5 scan, 4, 3], (f32, GL, [12, 3, 1]), (f32, GL, [0, 3, 1]), "y = sum(x0)", serial)'
    assert str(NestSpec.parse(strided).canonical()).startswith(
        "Reduce([12, 5 scan], (f32, GL, [1, 12]), (f32, GL, [1, 0])"
    )
    single = 'Map([1, 1], (f32, GL, [1, 1]), (f32, GL, [1, 1]), "y = exp(x0)", serial)'
    assert NestSpec.parse(single).canonical().dims == (1,)


def test_positions_keep_their_dims():
    text = 'Map([1, 3, 4], (i64, GL, [12, 4, 1]), "y = add(mul(index(1, i64), 4:i64), index(2, i64))", serial)'
    spec = NestSpec.parse(text)
    canon = spec.canonical()
    assert canon.dims == (3, 4)
    np.testing.assert_array_equal(canon.evaluate([])[0].ravel(), np.arange(12))


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("y = cmp(oeq, cast(x0, f64), -inf:f64)", "y = cmp(oeq, x0, -inf:f32)"),
        ("y = cmp(ult, 0.5:f64, cast(x0, f64))", "y = cmp(ult, 0.5:f32, x0)"),
        ("y = cmp(olt, cast(x0, f64), cast(x1, f64))", "y = cmp(olt, x0, x1)"),
        ("y = cmp(one, cast(x0, f64), nan:f64)", "y = cmp(one, x0, nan:f32)"),
        # 0.1 is another number in f32; f32 has more values than bf16; integers may not fit.
        ("y = cmp(olt, cast(x0, f64), 0.1:f64)", None),
        ("y = cmp(olt, cast(x0, f64), 1e+300:f64)", None),
        ("y = cmp(olt, cast(x0, bf16), 0.5:bf16)", None),
        ("y = cmp(olt, cast(x2, f64), 0.5:f64)", None),
        ("y = and(1:i1, cmp(olt, x0, x1))", "y = cmp(olt, x0, x1)"),
        ("y = div(x0, 8.0:f32)", "y = mul(x0, 0.125:f32)"),
        ("y = div(x0, -0.5:f32)", "y = mul(x0, -2.0:f32)"),
        ("y = div(x0, 3.0:f32)", None),
        ("y = div(x0, 0.0:f32)", None),
        ("y = div(x0, inf:f32)", None),
        ("y = div(x2, 8:i64)", None),
        ("y = div(8.0:f32, x0)", None),
        ("y = or(cmp(olt, x0, x1), 0:i1)", "y = cmp(olt, x0, x1)"),
        ("y = and(0:i1, cmp(olt, x0, x1))", "y = 0:i1"),
        ("y = or(cmp(olt, x0, x1), 1:i1)", "y = 1:i1"),
    ],
)
def test_canonical_body_is_simplified(text: str, want: str | None) -> None:
    types = ["f32", "f32", "i64"]
    assert str(Body.parse(text, types)) == (want or text)


def test_canonical_body():
    one = Body.parse("a = mul(x0, x1); b = exp(x0); y = add(a, mul(x1, x0))", ["f32", "f32"]).canonical()
    other = Body.parse("y = add(mul(x1, x0), mul(x0, x1))", ["f32", "f32"]).canonical()
    assert one == other
    assert len(one.values) == 4


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16"])
@pytest.mark.parametrize("value", [0.0, -0.0, 0.1, 1e-5, -3.25, math.inf, -math.inf, math.nan, 1e30])
def test_constants(dtype, value):
    text = literal(value, dtype)
    assert literal(number(text, dtype), dtype) == text
    b = BodyBuilder()
    body = b.build([b.const(value, dtype)])
    assert Body.parse(str(body), []) == body


def test_softmax_and_layernorm_numbers():
    x = np.random.default_rng(0).normal(size=(5, 8)).astype("f4")
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(softmax(5, 8).evaluate([x])[0], e / e.sum(1, keepdims=True), rtol=1e-6)
    norm = Body.parse(NORM, ["f32"] * 3)
    g, h = np.full((1, 8), 2, "f4"), np.full((1, 8), 3, "f4")
    want = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * 2 + 3
    np.testing.assert_allclose(evaluate(norm, [x, g, h], [1])[0], want, rtol=1e-4)


def test_arg_reductions():
    x = np.array([[1, 3, np.nan, 3], [2, 5, 5, 1], [np.nan] * 4, [-np.inf] * 4], "f4")
    found = {}
    for name in ("argmax", "argmaxnum", "argmin", "argminnum"):
        body = Body.parse(f"y = {name}(x0, index(1, i64))", ["f32"])
        found[name] = evaluate(body, [x], [1])[0].ravel().tolist()
    assert found == {
        "argmax": [2, 1, 0, 0],
        "argmaxnum": [1, 1, 0, 0],
        "argmin": [2, 3, 0, 0],
        "argminnum": [0, 3, 0, 0],
    }


def test_empty_reductions():
    x = np.empty((2, 0), "f4")
    for name, want in (("sum", 0), ("prod", 1), ("max", -np.inf), ("minnum", np.inf), ("argmax", None)):
        text = f"y = {name}(x0, index(1, i64))" if want is None else f"y = {name}(x0)"
        assert evaluate(Body.parse(text, ["f32"]), [x], [1])[0].tolist() == [[want or 0]] * 2


def test_integers_without_a_sign():
    x = np.array([[-1, 2, -128, 127]], "i1")
    run = lambda text: evaluate(Body.parse(text, ["i8"]), [x], [1])[0].ravel().tolist()  # noqa: E731
    assert run("y = umax(x0)") == [-1]
    assert run("y = umin(x0)") == [2]
    assert run("y = max(x0)") == [127]
    assert run("y = ucast(x0, i32)") == [255, 2, 128, 127]
    assert run("y = cast(x0, i32)") == [-1, 2, -128, 127]
    assert run("y = udiv(x0, 2:i8)") == [127, 1, 64, 63]
    assert run("y = div(x0, 3:i8)") == [0, 0, -42, 42]
    assert run("y = rem(x0, 3:i8)") == [-1, 2, -2, 1]
    assert run("y = cmp(ult, x0, 100:i8)") == [False, True, False, False]
    assert run("y = cast(cmp(slt, x0, 0:i8), i32)") == [-1, 0, -1, 0]
    assert run("y = ucast(cmp(slt, x0, 0:i8), i32)") == [1, 0, 1, 0]


# ---------------------------------------------------------------- properties


@st.composite
def bodies(draw):
    """A body over two f32 inputs, with reductions."""
    b = BodyBuilder()
    values = [b.input(0, "f32"), b.input(1, "f32"), b.const(draw(st.sampled_from([0.5, -1.0, 2.0])), "f32")]
    for _ in range(draw(st.integers(1, 9))):
        pick = lambda: draw(st.sampled_from(values))  # noqa: E731
        kind = draw(st.integers(0, 4))
        if kind < 2:
            values.append(b.op(draw(st.sampled_from(["add", "mul", "max", "sub", "minnum"])), pick(), pick()))
        elif kind == 2:
            values.append(b.op(draw(st.sampled_from(["tanh", "neg", "abs"])), pick()))
        elif kind == 3:
            values.append(b.reduce(draw(st.sampled_from(["sum", "max", "minnum"])), pick()))
        else:
            values.append(b.op("select", b.cmp("olt", pick(), pick()), pick(), pick()))
    return b.build(draw(st.lists(st.sampled_from(values), min_size=1, max_size=2)))


@given(bodies())
@settings(max_examples=150, deadline=None)
def test_canonical_body_means_the_same(body):
    canon = body.canonical()
    assert canon.canonical() == canon
    assert Body.parse(str(body), ["f32", "f32"]) == canon
    assert Body.parse(str(canon), ["f32", "f32"]) == canon
    rng = np.random.default_rng(len(body.values))
    arrays = [rng.normal(size=(3, 5)).astype("f4"), rng.normal(size=(1, 5)).astype("f4")]
    for want, got in zip(evaluate(body, arrays, [1]), evaluate(canon, arrays, [1]), strict=True):
        np.testing.assert_array_equal(want, got)


@st.composite
def specs(draw):
    """A nest of up to four dims whose output is full along parallel dims, in some order, and maybe along scan dims."""
    rank = draw(st.integers(1, 4))
    dims = tuple(draw(st.lists(st.integers(1, 4), min_size=rank, max_size=rank)))
    scan = tuple(draw(st.lists(st.booleans(), min_size=rank, max_size=rank)))

    def strides(which, gap=1):
        out, step = [0] * rank, 1
        for d in draw(st.permutations(range(rank))):
            if which(d):
                out[d], step = step, step * dims[d] * (gap if draw(st.booleans()) else 1)
        return tuple(out)

    full = draw(st.booleans())
    text = "y = add(sum(mul(x0, x1)), max(x0))" if not full else "s = sum(x0); y = add(x1, mul(x0, s))"
    if draw(st.booleans()):
        text += f"; y1 = add(index({draw(st.integers(0, rank - 1))}, i32), cast(x0, i32))" if full else ""
    body = Body.parse(text.replace("y =", "y0 =" if "y1" in text else "y ="), ["f32", "f32"])
    inputs = [Operand("f32", "GL", strides(lambda d: draw(st.booleans()), 2)) for _ in range(2)]
    outs = [Operand(body.values[v].dtype, "GL", strides(lambda d: full or not scan[d], 3)) for v in body.outputs]
    return NestSpec(dims, scan, (*inputs, *outs), body)


@given(specs())
@settings(max_examples=150, deadline=None)
def test_canonical_spec_means_the_same(spec):
    canon = spec.canonical()
    assert canon.canonical() == canon
    assert NestSpec.parse(str(canon)) == canon
    rng = np.random.default_rng(1)
    arrays = [rng.normal(size=o.span(spec.dims)).round(1).astype("f4") for o in spec.inputs]
    for k in range(len(spec.outputs)):
        a, b = _written(spec, arrays, k), _written(canon, arrays, k)
        assert a.keys() == b.keys()
        np.testing.assert_allclose(list(a.values()), [b[key] for key in a], rtol=1e-4, atol=1e-4)


def _written(spec, arrays, k):
    """What output `k` holds, by offset."""
    out, strides = spec.evaluate(arrays)[k], spec.outputs[k].strides
    return {sum(i * s for i, s in zip(at, strides, strict=True)): float(out[at]) for at in np.ndindex(out.shape)}
