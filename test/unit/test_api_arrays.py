"""`compile()`: arrays of every element type and layout as arguments and results."""

import ml_dtypes
import numpy as np
import pytest

import morello_mlir
from morello_mlir.errors import InputError

F32 = np.float32


def compiled(text, **options):
    """Through upstream's passes alone: what ours do is tested elsewhere."""
    return morello_mlir.compile(text, optimize=False, **options)


def random(*shape):
    return np.random.default_rng(0).uniform(-1, 1, shape).astype(F32)


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16", "i8", "i16", "i32", "i64", "i1", "index"])
def test_elements(dtype):
    text = f"""
      func.func @f(%x: tensor<2x3x{dtype}>, %s: {dtype}) -> (tensor<3x2x{dtype}>, {dtype}, tensor<{dtype}>) {{
        %e = tensor.empty() : tensor<3x2x{dtype}>
        %t = linalg.transpose ins(%x : tensor<2x3x{dtype}>) outs(%e : tensor<3x2x{dtype}>) permutation = [1, 0]
        %z = tensor.from_elements %s : tensor<{dtype}>
        return %t, %s, %z : tensor<3x2x{dtype}>, {dtype}, tensor<{dtype}>
      }}"""
    names = {"f32": F32, "f64": "f8", "f16": "f2", "bf16": ml_dtypes.bfloat16, "i1": bool, "index": "i8"}
    kind = np.dtype(names.get(dtype) or f"int{dtype[1:]}")
    x = (np.arange(6) % 2 if dtype == "i1" else np.arange(6)).astype(kind).reshape(2, 3)
    transposed, scalar, rank0 = compiled(text)(x, x[0, 1])
    assert transposed.dtype == scalar.dtype == rank0.dtype == kind
    assert np.array_equal(transposed, x.T)
    assert scalar == x[0, 1]
    assert rank0.shape == ()
    assert rank0 == x[0, 1]


@pytest.mark.parametrize("contents", ["(0.0, 1.0)", "[(0.0, 1.0), (2.0, 3.0), (4.0, 5.0)]", "large"])
def test_complex_constants(contents):
    """MLIR's bindings have no class for dense complex attributes."""
    n = 5000 if contents == "large" else 3
    numbers = (random(n) + 1j * random(n)).astype(np.complex64)
    if contents == "large":
        contents = f'"0x{numbers.tobytes().hex()}"'
    else:
        numbers = np.array([1j] * 3 if contents[0] == "(" else [1j, 2 + 3j, 4 + 5j], np.complex64)
    t = f"tensor<{n}xcomplex<f32>>"
    text = f"""
      func.func @f(%x: {t}) -> {t} {{
        %c = arith.constant dense<{contents}> : {t}
        %e = tensor.empty() : {t}
        %r = linalg.mul ins(%x, %c : {t}, {t}) outs(%e : {t}) -> {t}
        return %r : {t}
      }}"""
    x = (random(n) - 2j).astype(np.complex64)
    for run in (compiled(text), morello_mlir.compile(text)):
        np.testing.assert_allclose(run(x), x * numbers, rtol=1e-5)


def test_bits_of_bf16_and_i1():
    text = """
      func.func @f(%x: tensor<4xbf16>, %m: tensor<4xi1>) -> tensor<4xbf16> {
        %e = tensor.empty() : tensor<4xbf16>
        %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
            iterator_types = ["parallel"]} ins(%x, %m : tensor<4xbf16>, tensor<4xi1>) outs(%e : tensor<4xbf16>) {
          ^bb0(%v: bf16, %c: i1, %o: bf16):
            %n = arith.negf %v : bf16
            %s = arith.select %c, %n, %v : bf16
            linalg.yield %s : bf16
        } -> tensor<4xbf16>
        return %r : tensor<4xbf16>
      }"""
    x = np.arange(1, 5).astype(ml_dtypes.bfloat16)
    module = compiled(text)
    # Any non-zero byte is true.
    for value, mask in [(x, np.array([1, 0, 1, 0], bool)), (x.view(np.uint16), np.array([1, 0, 255, 0], np.uint8))]:
        assert module(value, mask).tolist() == [-1, 2, -3, 4]


def test_memrefs_are_the_callers_memory():
    text = """
      func.func @f(%x: memref<3x4xf32>, %y: memref<4x3xf32, strided<[6, 2], offset: 1>>) {
        linalg.transpose ins(%x : memref<3x4xf32>) outs(%y : memref<4x3xf32, strided<[6, 2], offset: 1>>)
          permutation = [1, 0]
        return
      }"""
    module = compiled(text)
    x, wide = random(3, 4), np.full(30, 9, F32)
    exact = wide[1:].view()[: 4 * 6].reshape(4, 6)[:, ::2]
    for y in (np.zeros((4, 3), F32), np.zeros((3, 4), F32).T, exact):
        assert module(x, y) is None
        assert np.array_equal(y, x.T)
    assert (wide[2::2] == 9).all(), "what lies between the columns is not ours"
    frozen = np.zeros((4, 3), F32)
    frozen.flags.writeable = False
    with pytest.raises(InputError, match=r"argument 1: the program writes .* read-only"):
        module(x, frozen)
    x.flags.writeable = False
    module(x, np.zeros((4, 3), F32))


def test_returned_memrefs():
    text = """
      memref.global "private" constant @table : memref<3xi32> = dense<[1, 2, 3]>
      func.func @same(%x: memref<4xf32>) -> memref<4xf32> { return %x : memref<4xf32> }
      func.func @part(%x: memref<4xf32>) -> memref<2xf32, strided<[2], offset: 1>> {
        %s = memref.subview %x[1] [2] [2] : memref<4xf32> to memref<2xf32, strided<[2], offset: 1>>
        return %s : memref<2xf32, strided<[2], offset: 1>>
      }
      func.func @shifted(%x: memref<4xf32, strided<[1], offset: 3>>) -> memref<4xf32, strided<[1], offset: 3>> {
        return %x : memref<4xf32, strided<[1], offset: 3>>
      }
      func.func @empty(%x: memref<0xf32>) -> memref<0xf32> { return %x : memref<0xf32> }
      func.func @table_() -> memref<3xi32> { %t = memref.get_global @table : memref<3xi32> return %t : memref<3xi32> }
      func.func @twice(%n: index) -> (memref<?xf32>, memref<?xf32>) {
        %m = memref.alloc(%n) : memref<?xf32>
        %c = arith.constant 7.0 : f32
        linalg.fill ins(%c : f32) outs(%m : memref<?xf32>)
        return %m, %m : memref<?xf32>, memref<?xf32>
      }"""
    module = compiled(text)
    x = random(4)
    assert np.shares_memory(module.same(x), x)
    part = module.part(x)
    assert np.shares_memory(part, x)
    assert np.array_equal(part, x[1::2])
    # What an argument's type says of its offset must not make its memory look like the program's own.
    room = random(12)
    assert np.shares_memory(module.shifted(room[5:9]), room)
    assert module.empty(room[4:4]).shape == (0,)
    first = module.table_()
    first[:] = 0
    assert module.table_().tolist() == [1, 2, 3], "a constant stays what it is"
    one, two = module.twice(5)
    assert np.shares_memory(one, two)
    del one
    assert two.tolist() == [7] * 5
    assert module.twice(0)[0].shape == (0,)


def test_returned_tensors_are_new():
    module = compiled("func.func @f(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {"
                      "return %x, %x : tensor<4xf32>, tensor<4xf32> }")  # fmt: skip
    x = random(4)
    one, two = module(x)
    assert np.array_equal(one, x)
    assert not np.shares_memory(one, x)
    assert not np.shares_memory(one, two)


def test_aliased_memref_arguments():
    text = """
      func.func @f(%x: memref<6xf32>, %y: memref<6xf32>) {
        linalg.exp ins(%x : memref<6xf32>) outs(%y : memref<6xf32>)
        return
      }"""
    x = random(6)
    want = np.exp(x)
    compiled(text)(x, x)
    np.testing.assert_allclose(x, want, rtol=1e-6)


def test_nan_and_infinity_stay():
    a = np.array([[np.nan, 1], [np.inf, -1]], F32)
    b, c = np.array([[1, 0], [0, 1]], F32), np.zeros((2, 2), F32)
    with np.errstate(all="ignore"):
        want = a @ b + c
    module = compiled("""
      func.func @f(%a: tensor<2x2xf32>, %b: tensor<2x2xf32>, %c: tensor<2x2xf32>) -> tensor<2x2xf32> {
        %r = linalg.matmul ins(%a, %b : tensor<2x2xf32>, tensor<2x2xf32>) outs(%c : tensor<2x2xf32>) -> tensor<2x2xf32>
        return %r : tensor<2x2xf32>
      }""")
    np.testing.assert_array_equal(module(a, b, c), want)


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 0), (1, 0, 2)])
def test_empty_arrays(shape):
    kind = f"tensor<{'x'.join(map(str, shape))}xf32>"
    text = f"""
      func.func @f(%x: {kind}) -> {kind} {{
        %r = linalg.exp ins(%x : {kind}) outs(%x : {kind}) -> {kind}
        return %r : {kind}
      }}"""
    assert compiled(text)(np.zeros(shape, F32)).shape == shape


@pytest.mark.parametrize("shape", ["64x64", "?x?"])
def test_arguments_that_overlap_are_multiplied_as_upstream_does(shape):
    """Lifted code reads inputs after it has written parts of the output: it must not be what runs then."""
    m = f"memref<{shape}xf32>"
    text = f"""func.func @f(%a: {m}, %b: {m}, %c: {m}) {{
      linalg.matmul ins(%a, %b : {m}, {m}) outs(%c : {m})
      return
    }}"""
    ours, theirs = morello_mlir.compile(text), morello_mlir.compile(text, optimize=False)
    a, b = random(64, 64), random(64, 64)
    x, y = a.copy(), a.copy()
    ours.f(x, b, x), theirs.f(y, b, y)
    assert ours.lifted == 1 and np.array_equal(x, y)
    # Halves of one buffer, rows apart: each starts inside the other only in the second call.
    for step in (64, 60):
        room = random(128, 64)
        other = room.copy()
        ours.f(room[:64], b, room[step : step + 64])
        theirs.f(other[:64], b, other[step : step + 64])
        np.testing.assert_allclose(room, other, rtol=1e-4, atol=1e-4)
    # Inputs may be one memory.
    c = np.zeros((64, 64), np.float32)
    ours.f(a, a, c)
    np.testing.assert_allclose(c, a @ a, rtol=1e-4, atol=1e-4)
