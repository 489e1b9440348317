"""Large constants reach the program without passing through LLVM IR."""

import numpy as np
import pytest

import morello_mlir

COUNT = 5000


def returned(elements, values, attribute=None, resource=""):
    """Compile a function that returns a constant, and call it."""
    type_ = f"tensor<{COUNT}x{elements}>"
    text = f"""
      func.func @f() -> {type_} {{
        %c = arith.constant {attribute or f"dense<{values}>"} : {type_}
        return %c : {type_}
      }}
      {resource}"""
    module = morello_mlir.compile(text, optimize=False, cache=False)
    return module(), module.f.program().build


def hexadecimal(array):
    return f'"0x{array.tobytes().hex()}"'


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i1", "i2", "i4", "i8"])
def test_numbers(dtype):
    values = np.random.default_rng(0).integers(-100, 100, COUNT).astype(dtype)
    name = ("f" if dtype[0] == "f" else "i") + str(8 * values.itemsize)
    got, build = returned(name, hexadecimal(values))
    assert np.array_equal(got, values)
    assert len(build.constants) == 1
    assert len(build.ir) < COUNT


def test_bf16():
    bits = np.arange(COUNT, dtype=np.uint16)
    got, build = returned("bf16", hexadecimal(bits))
    assert np.array_equal(got.view(np.uint16), bits)
    assert len(build.constants) == 1


def test_i1_and_splats():
    values = np.arange(COUNT) % 3 == 0
    got, build = returned("i1", "[" + ",".join("true" if v else "false" for v in values) + "]")
    assert np.array_equal(got, values)
    assert len(build.constants) == 1
    assert (returned("f32", "2.5")[0] == 2.5).all()
    assert returned("i1", "true")[0].all()


def test_odd_integers_stay_inside():
    values = np.arange(COUNT) % 16 - 8
    got, build = returned("i4", "[" + ",".join(map(str, values)) + "]")
    assert np.array_equal(got, values)
    assert not build.constants


def test_resources():
    values = np.random.default_rng(0).random(COUNT).astype(np.float32)
    blob = f'{{-# dialect_resources: {{ builtin: {{ weights: "0x04000000{values.tobytes().hex()}" }} }} #-}}'
    got, build = returned("f32", "", attribute="dense_resource<weights>", resource=blob)
    assert np.array_equal(got, values)
    assert len(build.constants) == 1


def test_small_ones_are_left_to_llvm():
    text = (
        "func.func @f() -> tensor<2xi8> { %c = arith.constant dense<[1, 2]> : tensor<2xi8> return %c : tensor<2xi8> }"
    )
    module = morello_mlir.compile(text)
    assert module().tolist() == [1, 2]
    assert not module.f.program().build.constants


def test_programs_with_other_weights_share_machine_code(tmp_path, monkeypatch):
    monkeypatch.setenv("MORELLO_CACHE_DIR", str(tmp_path))
    results = []
    for seed in range(2):
        values = np.random.default_rng(seed).random(COUNT).astype(np.float32)
        text = f"""
          func.func @f(%x: tensor<{COUNT}xf32>) -> tensor<{COUNT}xf32> {{
            %c = arith.constant dense<{hexadecimal(values)}> : tensor<{COUNT}xf32>
            %r = linalg.add ins(%x, %c : tensor<{COUNT}xf32>, tensor<{COUNT}xf32>) outs(%x : tensor<{COUNT}xf32>)
              -> tensor<{COUNT}xf32>
            return %r : tensor<{COUNT}xf32>
          }}"""
        results.append((morello_mlir.compile(text, optimize=False), values))
    assert results[1][0].f.program().from_cache
    for module, values in results:
        assert np.array_equal(module(np.zeros(COUNT, np.float32)), values)


def test_sixteen_megabytes_are_not_written_as_text():
    weights = np.random.default_rng(0).random((2048, 2048)).astype(np.float32)
    text = f"""
      func.func @f(%x: tensor<2048xf32>, %y: tensor<2048xf32>) -> tensor<2048xf32> {{
        %w = arith.constant dense<{hexadecimal(weights)}> : tensor<2048x2048xf32>
        %r = linalg.matvec ins(%w, %x : tensor<2048x2048xf32>, tensor<2048xf32>) outs(%y : tensor<2048xf32>)
          -> tensor<2048xf32>
        return %r : tensor<2048xf32>
      }}"""
    module = morello_mlir.compile(text, optimize=False)
    assert len(module.functions["f"].programs[0].build.ir) < weights.nbytes / 100, "LLVM would read it for a minute"
    x = np.ones(2048, np.float32)
    np.testing.assert_allclose(module(x, 0 * x), weights @ x, rtol=1e-4)
