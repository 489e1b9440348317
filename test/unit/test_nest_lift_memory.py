"""Where programs of elementwise ops and reductions read and write: in place, from what is given, from nothing."""

import numpy as np
import pytest
from nest_program_support import Program, Tensor, check, compiled, numbers

import morello_mlir


def test_in_place_on_memrefs():
    text = """func.func @f(%x: memref<7x9xf32>, %b: memref<9xf32>) {
      linalg.generic {indexing_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
          iterator_types = ["parallel", "parallel"]} ins(%b : memref<9xf32>) outs(%x : memref<7x9xf32>) {
      ^bb0(%u: f32, %v: f32):
        %s = arith.addf %u, %v : f32
        linalg.yield %s : f32
      }
      return
    }"""
    module = morello_mlir.compile(text, memo="off")
    assert module.left == 0
    x, b = numbers((7, 9)), numbers((9,), seed=1)
    expected = x + b
    module.f(x, b)
    check(x, expected)


def test_a_shift_in_place_is_left_alone():
    # Reads of row i + 1 come before its being written in upstream's order only.
    text = """func.func @f(%x: memref<8x5xf32>) {
      %low = memref.subview %x[0, 0] [7, 5] [1, 1] : memref<8x5xf32> to memref<7x5xf32, strided<[5, 1]>>
      %high = memref.subview %x[1, 0] [7, 5] [1, 1] : memref<8x5xf32> to memref<7x5xf32, strided<[5, 1], offset: 5>>
      linalg.exp ins(%high : memref<7x5xf32, strided<[5, 1], offset: 5>>) outs(%low : memref<7x5xf32, strided<[5, 1]>>)
      return
    }"""
    module = morello_mlir.compile(text, memo="off")
    assert module.left == 1
    x = numbers((8, 5))
    expected = np.concatenate([np.exp(x[1:]), x[-1:]])
    module.f(x)
    check(x, expected)


@pytest.mark.parametrize("shape", [(0, 4), (3, 0)])
def test_empty(shape):
    p = Program()
    x = p.argument(*shape)
    text = p.text(p.reduce("%y = arith.addf %a, %o : f32", x, [1], "2.0"))
    got = morello_mlir.compile(text, memo="off").f(numbers(shape))
    np.testing.assert_array_equal(got, np.full(shape[0], 2, "f4"))


def test_parts_that_are_empty():
    text = """func.func @f(%x: tensor<2x0xf32>, %y: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<4x2xf32>) {
      %c = arith.constant 1.0 : f32
      %q = tensor.concat dim(1) %y, %x : (tensor<2x3xf32>, tensor<2x0xf32>) -> tensor<2x3xf32>
      %p = tensor.pad %x low[2, 2] high[0, 0] {
      ^bb0(%i: index, %j: index):
        tensor.yield %c : f32
      } : tensor<2x0xf32> to tensor<4x2xf32>
      return %q, %p : tensor<2x3xf32>, tensor<4x2xf32>
    }"""
    y = numbers((2, 3))
    joined, padded = morello_mlir.compile(text, memo="off").f(numbers((2, 0)), y)
    np.testing.assert_array_equal(joined, y)
    np.testing.assert_array_equal(padded, np.ones((4, 2), "f4"))


def test_two_results_that_start_from_one_argument():
    # Each has a copy of it to write to; these are equal, and must not become one.
    text = """func.func @f(%a: tensor<5x6xf32>, %b: tensor<6x7xf32>, %c: tensor<5x7xf32>)
        -> (tensor<5x7xf32>, tensor<5x7xf32>) {
      %r = linalg.matmul ins(%a, %b : tensor<5x6xf32>, tensor<6x7xf32>) outs(%c : tensor<5x7xf32>) -> tensor<5x7xf32>
      %s = linalg.add ins(%r, %r : tensor<5x7xf32>, tensor<5x7xf32>) outs(%c : tensor<5x7xf32>) -> tensor<5x7xf32>
      %t = linalg.matmul ins(%a, %b : tensor<5x6xf32>, tensor<6x7xf32>) outs(%s : tensor<5x7xf32>) -> tensor<5x7xf32>
      return %r, %t : tensor<5x7xf32>, tensor<5x7xf32>
    }"""
    both = """func.func @f(%a: tensor<5x6xf32>, %b: tensor<5x6xf32>, %w: tensor<6x7xf32>, %c: tensor<5x7xf32>)
        -> (tensor<5x7xf32>, tensor<5x7xf32>) {
      %r = linalg.matmul ins(%a, %w : tensor<5x6xf32>, tensor<6x7xf32>) outs(%c : tensor<5x7xf32>) -> tensor<5x7xf32>
      %s = linalg.matmul ins(%b, %w : tensor<5x6xf32>, tensor<6x7xf32>) outs(%c : tensor<5x7xf32>) -> tensor<5x7xf32>
      return %r, %s : tensor<5x7xf32>, tensor<5x7xf32>
    }"""
    a, b, w, c = numbers((5, 6)), numbers((5, 6), seed=1), numbers((6, 7), seed=2), numbers((5, 7), seed=3)
    first, second = morello_mlir.compile(both, memo="off").f(a, b, w, c)
    check(first, a @ w + c)
    check(second, b @ w + c)
    first, second = morello_mlir.compile(text, memo="off").f(a, w, c)
    check(first, a @ w + c)
    check(second, a @ w + 2 * (a @ w + c))


def test_what_a_result_on_the_way_starts_from():
    """An argument, which is not written to; the result on the way has no place outside of the nest."""
    p = Program()
    x = p.argument(6, 5)
    body = "%n = math.absf %o : f32\n%y = math.sqrt %n : f32"
    first = p.combine(body, [], x, ["parallel"] * 2)
    f = compiled(p, p.reduce("%y = arith.addf %a, %o : f32", first, [1], "0.0"))
    x = numbers((6, 5))
    before = x.copy()
    check(f(x), np.sqrt(np.abs(x)).sum(1))
    assert np.array_equal(x, before)


def test_what_every_trip_of_a_loop_starts_from():
    """A tensor that is made once, for one user: in the loop it is needed again."""
    p = Program()
    x = p.argument(6, 5)
    wide = p.argument(6, 5, 3)
    made = p.reduce("%n = math.absf %a : f32\n%y = arith.addf %n, %o : f32", wide, [2], "0.0")
    p.line("%zero = arith.constant 0 : index\n%one = arith.constant 1 : index\n%three = arith.constant 3 : index")
    p.line(f"%all = scf.for %i = %zero to %three step %one iter_args(%last = {x.name}) -> ({x.type}) {{")
    body = "%n = math.sqrt %o : f32\n%y = arith.addf %n, %a : f32"
    y = p.combine(body, [Tensor("%last", x.shape, x.dtype)], made, ["parallel"] * 2)
    p.line(f"scf.yield {y.name} : {y.type}\n}}")
    f = compiled(p, Tensor("%all", x.shape, x.dtype))
    x, wide = numbers((6, 5)), numbers((6, 5, 3), seed=1)
    check(f(x, wide), x + 3 * np.sqrt(np.abs(wide).sum(2)))


@pytest.mark.parametrize(("m", "n", "k"), [(5, 64, 48), (8, 16, 32), (3, 7, 100)])
def test_sums_that_are_the_same_along_a_dim_of_the_output(m, n, k):
    p = Program()
    x = p.argument(m, k)
    y = p.combine(
        "%y = arith.addf %a, %o : f32",
        [x],
        p.fill((m, n), "f32", "0.0"),
        ["parallel", "parallel", "reduction"],
        maps=["(d0, d2)"],
        out="(d0, d1)",
    )
    v = numbers((m, k))
    check(compiled(p, y)(v), np.repeat(v.sum(1, dtype="f8")[:, None], n, 1))


@pytest.mark.parametrize("size", [1, 9, 17, 33, 65])
@pytest.mark.parametrize(("wide", "narrow"), [("i32", "i8"), ("i16", "i8"), ("i32", "i16"), ("i64", "i32")])
def test_a_last_element_that_is_truncated_leaves_its_neighbours_alone(wide, narrow, size):
    module = morello_mlir.compile(
        f"""func.func @f(%x: memref<{size}x{wide}>, %y: memref<{size}x{narrow}>) {{
          linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
              iterator_types = ["parallel"]}} ins(%x : memref<{size}x{wide}>) outs(%y : memref<{size}x{narrow}>) {{
          ^bb0(%a: {wide}, %b: {narrow}):
            %c = arith.trunci %a : {wide} to {narrow}
            linalg.yield %c : {narrow}
          }}
          return
        }}""",
        memo="off",
        threads=1,
    )
    dtype = f"int{narrow[1:]}"
    x, memory = np.arange(size, dtype=f"int{wide[1:]}"), np.full(size + 64, 77, dtype)
    module.f(x, memory[:size])
    np.testing.assert_array_equal(memory, [*range(size), *[77] * 64])
