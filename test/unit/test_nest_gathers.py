"""What reads tables at places of its own, op by op as frontends write it: numbers, and what becomes one nest."""

from __future__ import annotations

import numpy as np
import pytest
from nest_program_support import Program, check, compiled, layernorm, lift, numbers

from morello_mlir import compile as compile_module
from morello_mlir.lifting.nests.index import Index
from morello_mlir.lifting.nests.linear import linear
from morello_mlir.nests import BodyBuilder
from morello_mlir.runtime.program import AssertionFailed

ROWS = 30
PLACE = "%i = arith.index_cast %a : {0} to index"


def embedding(p, table, ids, wrap=False, asserts=False):
    """Rows of a table of two dims, as torch-mlir writes it."""
    t, n = ids.dtype, table.shape[0]
    body = [PLACE.format(t)]
    if wrap:
        zero, count = p.constant("0", t), p.constant(f"{n}", t)
        body = [
            f"%n = arith.cmpi slt, %a, {zero} : {t}",
            f"%w = arith.addi %a, {count} : {t}",
            f"%s = arith.select %n, %w, %a : {t}",
            f"%i = arith.index_cast %s : {t} to index",
        ]
    if asserts:
        zero, count = p.constant("0", t), p.constant(f"{n}", "index")
        body += [f"%l = arith.cmpi slt, %i, {count} : index", 'cf.assert %l, "too large"']
        body += [f"%g = arith.cmpi sge, %a, {zero} : {t}", 'cf.assert %g, "negative"']
    rank = len(ids.shape)
    body += [f"%j = linalg.index {rank} : index", f"%y = tensor.extract {table.name}[%i, %j] : {table.type}"]
    dims = ", ".join(f"d{d}" for d in range(rank))
    shape = (*ids.shape, table.shape[1])
    return p.map("\n".join(body), ids, shape=shape, dtype=table.dtype, maps=[f"({dims})"])


def places(*shape, low=0, dtype="i8", seed=0):
    return np.random.default_rng(seed).integers(low, ROWS, shape).astype(dtype)


@pytest.mark.parametrize("index", ["i64", "i32"])
@pytest.mark.parametrize("dtype", ["f64", "f32", "f16", "i64", "i16", "i8", "i1"])
def test_rows_of_all_types(dtype, index):
    p = Program()
    table, ids = p.argument(ROWS, 13, dtype=dtype), p.argument(3, 5, dtype=index)
    f = compiled(p, embedding(p, table, ids))
    w, i = numbers((ROWS, 13), dtype), places(3, 5, dtype=f"i{int(index[1:]) // 8}")
    np.testing.assert_array_equal(f(w, i), w[i])


@pytest.mark.parametrize("shape", [(1, 1), (1, 64), (7, 1), (5, 37), (129, 100)])
@pytest.mark.parametrize("threads", [1, 2])
def test_sizes(shape, threads):
    p = Program()
    table, ids = p.argument(ROWS, shape[1]), p.argument(shape[0], dtype="i64")
    f = compiled(p, embedding(p, table, ids, wrap=True), threads=threads)
    w, i = numbers((ROWS, shape[1])), places(shape[0], low=-ROWS)
    w[3] = np.nan
    i[: shape[0] // 2] = 3
    np.testing.assert_array_equal(f(w, i), w[i])


def test_no_rows():
    p = Program()
    table, ids = p.argument(ROWS, 7), p.argument(0, dtype="i64")
    module = compile_module(p.text(embedding(p, table, ids, asserts=True)), memo="off")
    assert module.f(numbers((ROWS, 7)), np.zeros(0, "i8")).shape == (0, 7)


def test_each_element_at_a_place_of_its_own():
    p = Program()
    table, ids = p.argument(4, ROWS), p.argument(4, 21, dtype="i64")
    body = (
        f"%j = linalg.index 0 : index\n{PLACE.format('i64')}\n%y = tensor.extract {table.name}[%j, %i] : {table.type}"
    )
    f = compiled(p, p.map(body, ids, shape=(4, 21)))
    w, i = numbers((4, ROWS)), places(4, 21)
    np.testing.assert_array_equal(f(w, i), np.take_along_axis(w, i, 1))


def test_two_tables_and_a_layer_norm_are_one_nest():
    p = Program()
    words, kinds = p.argument(ROWS, 70), p.argument(2, 70)
    ids, which, weight, bias = p.argument(9, dtype="i64"), p.argument(9, dtype="i64"), p.argument(70), p.argument(70)
    rows = [embedding(p, words, ids, wrap=True), embedding(p, kinds, which, wrap=True)]
    result = layernorm(p, p.map("%y = arith.addf %a, %b : f32", *rows, shape=(9, 70)), weight, bias)
    nests, _, _ = lift(p.text(result))
    assert len(nests) == 1 and nests[0].count("gather") == 2 and nests[0].count("sum") == 2
    w, k, i, j = numbers((ROWS, 70)), numbers((2, 70), seed=1), places(9), places(9) % 2
    g, b = numbers((70,), seed=2), numbers((70,), seed=3)
    x = (w[i] + k[j]).astype("f8")
    expected = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * g + b
    check(compiled(p, result)(w, k, i, j, g, b), expected.astype("f4"))


def test_what_is_asserted_is_looked_at_before():
    p = Program()
    table, ids = p.argument(ROWS, 7), p.argument(5, dtype="i64")
    result = embedding(p, table, ids, asserts=True)
    nests, _, _ = lift(p.text(result))
    assert [n.partition("(")[0] for n in sorted(nests)] == ["Map", "Reduce"]
    f, w = compiled(p, result), numbers((ROWS, 7))
    good = np.array([0, 29, 3, 3, 7])
    np.testing.assert_array_equal(f(w, good), w[good])
    for bad, why in ((30, "too large"), (1 << 40, "too large"), (-1, "negative"), (-(1 << 62), "negative")):
        with pytest.raises(AssertionFailed, match=why):
            f(w, np.array([0, 29, bad, 3, 7]))
        with pytest.raises(AssertionFailed, match=why):
            f(w, np.array([0, 29, bad, 3, 7]), out=np.empty((5, 7), "f4"))
    np.testing.assert_array_equal(f(w, good, out=np.empty((5, 7), "f4")), w[good])


def test_places_that_a_reduction_makes():
    """The reduction is a nest of its own, before."""
    p = Program()
    table, x = p.argument(ROWS, 7), p.argument(5, 11, dtype="i64")
    most = p.reduce("%y = arith.maxsi %a, %o : i64", x, [1], "0")
    result = embedding(p, table, most)
    assert len(lift(p.text(result))[0]) == 2
    w, i = numbers((ROWS, 7)), places(5, 11)
    np.testing.assert_array_equal(compiled(p, result)(w, i), w[i.max(1)])


def test_tables_that_are_made():
    p = Program()
    x, ids = p.argument(ROWS, 7), p.argument(ROWS, dtype="i64")
    table = p.map("%y = arith.addf %a, %a : f32", x, shape=(ROWS, 7))
    result = p.map("%y = arith.addf %a, %b : f32", embedding(p, table, ids), table, shape=(ROWS, 7))
    w, i = numbers((ROWS, 7)), places(ROWS)
    np.testing.assert_array_equal(compiled(p, result)(w, i), 2 * w[i] + 2 * w)


@pytest.mark.parametrize("number", ["2.5", "0x7FC00000", "0x7F800000"])
def test_a_place_that_is_made_of_a_number_with_a_fraction(number):
    """What is no integer may be no place, but does not keep other ops from being lifted."""
    p = Program()
    table, x = p.argument(ROWS, 7), p.argument(5, 7)
    half, last = p.constant(number, "f32"), p.constant(f"{ROWS - 1}", "i64")
    body = [f"%r = arith.fptosi {half} : f32 to i64", f"%s = arith.minui %r, {last} : i64"]
    body += ["%i = arith.index_cast %s : i64 to index", "%j = linalg.index 1 : index"]
    rows = p.map("\n".join([*body, f"%y = tensor.extract {table.name}[%i, %j] : {table.type}"]), shape=(5, 7))
    f = compiled(p, rows, p.map("%y = arith.addf %a, %a : f32", x, shape=(5, 7)))
    w, a = numbers((ROWS, 7)), numbers((5, 7), seed=1)
    got, twice = f(w, a)
    np.testing.assert_array_equal(twice, a + a)
    if number == "2.5":
        np.testing.assert_array_equal(got, np.tile(w[2], (5, 1)))


def test_a_table_in_memory_with_strides():
    text = """func.func @f(%x: memref<70x24xf32>, %ids: memref<5xi32>, %o: memref<5x8xf32>) {
      %t = memref.subview %x[3, 1] [30, 8] [2, 3] : memref<70x24xf32> to memref<30x8xf32, strided<[48, 3], offset: 73>>
      linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
          iterator_types = ["parallel", "parallel"]} ins(%ids : memref<5xi32>) outs(%o : memref<5x8xf32>) {
      ^bb0(%id: i32, %old: f32):
        %i = arith.index_cast %id : i32 to index
        %j = linalg.index 1 : index
        %y = memref.load %t[%i, %j] : memref<30x8xf32, strided<[48, 3], offset: 73>>
        linalg.yield %y : f32
      }
      return
    }"""
    module = compile_module(text, memo="off")
    assert module.left == 0
    x, i, o = numbers((70, 24)), places(5, dtype="i4"), np.zeros((5, 8), "f4")
    module.f(x, i, o)
    np.testing.assert_array_equal(o, x[3:63:2, 1:25:3][i])


# ---------------------------------------------------------------- which places are known


def known(make, sizes=(5, 7)):
    b = BodyBuilder()
    return linear(b, make(b, lambda n: b.const(n, "i64"), b.index(0), b.index(1)), sizes)


def test_linear_places():
    assert known(lambda b, c, i, j: b.op("add", b.op("mul", i, c(3)), j)) == Index.of(0, {0: 3, 1: 1})
    assert known(lambda b, c, i, j: b.op("sub", i, c(2))) == Index.of(-2, {0: 1})
    assert known(lambda b, c, i, j: b.cast(b.cast(i, "i32"), "i64")) == Index.dim(0)
    assert known(lambda b, c, i, j: b.op("min", b.op("max", i, c(0)), c(4))) == Index.dim(0)
    assert known(lambda b, c, i, j: b.op("umin", i, c(4))) == Index.dim(0)
    assert known(lambda b, c, i, j: b.op("max", i, c(9))) == Index(9)
    wrapped = known(lambda b, c, i, j: b.op("select", b.cmp("slt", i, c(0)), b.op("add", i, c(5)), i))
    assert wrapped == Index.dim(0)
    assert known(lambda b, c, i, j: b.op("select", b.cmp("sge", i, c(0)), i, c(0))) == Index.dim(0)


def test_places_that_are_not_linear():
    assert known(lambda b, c, i, j: b.op("mul", i, j)) is None
    assert known(lambda b, c, i, j: b.op("max", i, c(1))) is None
    assert known(lambda b, c, i, j: b.op("umin", b.op("sub", i, c(1)), c(9))) is None
    assert known(lambda b, c, i, j: b.op("select", b.cmp("slt", i, c(2)), i, c(0))) is None
    assert known(lambda b, c, i, j: b.cast(b.op("mul", i, c(1 << 40)), "i32")) is None
    assert known(lambda b, c, i, j: b.input(0, "i64")) is None
    assert known(lambda b, c, i, j: b.op("rem", i, c(2))) is None
    assert known(lambda b, c, i, j: b.cast(b.const(2.5, "f32"), "i64")) is None
