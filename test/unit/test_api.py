"""`compile()`: functions on arrays, whatever their types and shapes, through upstream's passes."""

import subprocess
import sys
import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thread_support import at_once

import morello_mlir
from morello_mlir.errors import CompileError, InputError, MorelloError
from morello_mlir.runtime.program import AssertionFailed

F32 = np.float32


def compiled(text, **options):
    """Through upstream's passes alone: what ours do is tested elsewhere."""
    return morello_mlir.compile(text, optimize=False, **options)


MATMUL = """
func.func @matmul(%a: tensor<{m}x{k}xf32>, %b: tensor<{k}x{n}xf32>, %c: tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32> {{
  %r = linalg.matmul ins(%a, %b : tensor<{m}x{k}xf32>, tensor<{k}x{n}xf32>)
                     outs(%c : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>
  return %r : tensor<{m}x{n}xf32>
}}
"""


def matmul_text(m="?", k="?", n="?"):
    return MATMUL.format(m=m, k=k, n=n)


def random(*shape, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(F32)


def test_import_is_light():
    code = (
        "import sys, morello_mlir; "
        "print([m for m in ('mlir', 'llvmlite', 'numpy', 'numba') if m in sys.modules], morello_mlir.__version__)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.startswith("[] 0.")


def test_names_of_the_package():
    assert {"compile", "CompiledModule", "__version__"} <= set(dir(morello_mlir))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = morello_mlir.nothing


def test_a_static_function_is_compiled_at_once():
    module = compiled(matmul_text(3, 4, 5))
    assert module.times["llvm_s"] > 0
    a, b, c = random(3, 4), random(4, 5), random(3, 5)
    for result in (module(a, b, c), module.matmul(a, b, c)):
        assert result.dtype == F32
        np.testing.assert_allclose(result, a @ b + c, rtol=1e-5)
    assert module.left == 1
    assert module.lifted == 0
    assert module.specs == []


def test_arguments_of_tensor_type_are_values():
    a, b, c = random(3, 4), random(4, 5), random(3, 5)
    before = c.copy()
    compiled(matmul_text(3, 4, 5))(a, b, c)
    assert np.array_equal(c, before)


def test_the_general_path_agrees_with_the_fast_one():
    module = compiled(matmul_text(4, 4, 4))
    a, b, c = random(4, 4), random(4, 4, seed=1), random(4, 4, seed=2)
    read_only = a.copy()
    read_only.flags.writeable = False
    want = module(a, b, c)
    assert np.array_equal(module(read_only, b, c), want)
    assert np.array_equal(module(np.asfortranarray(a), np.ascontiguousarray(b.T).T, c[:]), want)
    assert np.array_equal(module(memoryview(a), b, c), want)


def test_any_source(tmp_path):
    from mlir import ir

    from morello_mlir.runtime.context import parse_text

    text = matmul_text(2, 2, 2)
    path = tmp_path / "m (copy).mlir"
    path.write_text(text)
    parsed = parse_text(text)
    with open(tmp_path / "m.mlirbc", "wb") as file:  # noqa: PTH123 - the bindings want a file object
        parsed.operation.write_bytecode(file)
    foreign = ir.Module.parse(text, ir.Context())
    x = random(2, 2)
    want = compiled(text)(x, x, x)
    for source in (path, str(path), tmp_path / "m.mlirbc", (tmp_path / "m.mlirbc").read_bytes(), parsed, foreign):
        assert np.array_equal(compiled(source)(x, x, x), want)


@pytest.mark.parametrize("source", [42, None, "no_such_file.mlir", ""])
def test_unusable_sources(source):
    with pytest.raises(MorelloError):
        compiled(source)


def test_syntax_errors_have_a_place():
    with pytest.raises(CompileError, match=r"-:1:\d+: error: "):
        compiled("func.func @f( {")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"entry": "nope"}, "no function @nope .*@matmul"),
        ({"threads": 0}, "positive integer"),
        ({"memo": 3}, "memo: expected a path or 'off', got a int"),
        ({"memo": b"memo"}, "memo: expected a path or 'off', got a bytes"),
    ],
)
def test_unusable_options(options, message):
    with pytest.raises(InputError, match=message):
        compiled(matmul_text(2, 2, 2), **options)


@pytest.mark.parametrize("name", ["functions", "specs", "bind", "_module", "_settings", "_constants"])
def test_a_function_that_is_called_like_a_part_of_the_module(name: str):
    module = compiled(f"func.func @{name}(%x: f32) -> f32 {{ return %x : f32 }}")
    assert list(module.functions) == [name] and module.specs == []
    assert module(2.0) == module.functions[name](2.0) == 2.0


def test_several_functions():
    text = matmul_text(2, 2, 2) + "func.func @twice(%x: f32) -> f32 { %r = arith.addf %x, %x : f32 return %r : f32 }"
    module = compiled(text)
    assert module.twice(1.5) == 3
    assert set(module.functions) == {"matmul", "twice"}
    with pytest.raises(InputError, match="@matmul, @twice"):
        module(1.0)
    with pytest.raises(AttributeError, match="no public function @thrice"):
        _ = module.thrice
    assert compiled(text, entry="twice")(2.0) == 4


def test_a_driver_that_cannot_run_does_not_matter():
    text = (
        matmul_text(2, 2, 2)
        + """
      func.func private @print(memref<*xf32>)
      func.func @main(%x: memref<*xf32>) { call @print(%x) : (memref<*xf32>) -> () return }
      func.func @odd() { "foo.bar"() : () -> () return }
    """
    )
    module = compiled(text)
    x = random(2, 2)
    assert module.matmul(x, x, x).shape == (2, 2)
    with pytest.raises(CompileError, match="needs a rank"):
        module.main(x)
    with pytest.raises(CompileError, match=r"'foo.bar' op cannot be lowered.*'foo' dialect"):
        module.odd()


def test_wrong_arguments():
    module = compiled(matmul_text(2, 3, 4))
    a, b, c = random(2, 3), random(3, 4), random(2, 4)
    for args, message in [
        ((a, b), "expected 3 arguments, got 2"),
        ((a, b, c, c), "expected 3 arguments, got 4"),
        ((a, b.astype(np.float64), c), "@matmul: argument 1: expected dtype float32 for f32, got float64"),
        ((a, b.T, c), "argument 1: expected shape 3x4, got 4x3"),
        ((a, b, c[None]), "argument 2: expected shape 2x4, got 1x2x4"),
        ((a, b, [[1.0]]), "argument 2: expected an array, got a list"),
    ]:
        with pytest.raises(InputError, match=message):
            module(*args)


def test_every_shape_gets_its_program():
    module = compiled(matmul_text())
    assert module.times["llvm_s"] == 0
    for m, k, n in [(2, 3, 4), (5, 1, 7), (2, 3, 4), (0, 3, 4), (3, 0, 2), (1, 1, 1)]:
        a, b, c = random(m, k), random(k, n), random(m, n)
        np.testing.assert_allclose(module(a, b, c), a @ b + c, rtol=1e-5, atol=1e-6)
    programs = module.matmul.programs
    assert len(programs) == 5
    assert all(p.is_static for program in programs for p in program.signature.parameters)


def test_shapes_that_contradict_each_other():
    with pytest.raises(InputError, match=r"do not fit the program.*but found 5"):
        compiled(matmul_text())(random(2, 4), random(5, 3), random(2, 3))


def test_sizes_that_arguments_do_not_determine_are_checked_at_run_time():
    text = """
      func.func @f(%x: memref<?xf32>, %n: index) -> f32 {
        %zero = arith.constant 0.0 : f32
        %y = memref.alloc(%n) : memref<?xf32>
        linalg.fill ins(%zero : f32) outs(%y : memref<?xf32>)
        linalg.add ins(%x, %y : memref<?xf32>, memref<?xf32>) outs(%y : memref<?xf32>)
        %c0 = arith.constant 0 : index
        %r = memref.load %y[%c0] : memref<?xf32>
        memref.dealloc %y : memref<?xf32>
        return %r : f32
      }"""
    module = compiled(text)
    assert module(random(4), 4) == random(4)[0]
    with pytest.raises(AssertionFailed, match="incompatible"):
        module(random(4), 5)


def test_dynamic_callees_are_specialised_too():
    text = (
        matmul_text().replace("func.func @matmul", "func.func private @matmul")
        + """
      func.func @f(%a: tensor<?x?xf32>) -> tensor<?x?xf32> {
        %r = call @matmul(%a, %a, %a) : (tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
        return %r : tensor<?x?xf32>
      }"""
    )
    module = compiled(text)
    a = random(5, 5)
    np.testing.assert_allclose(module(a), a @ a + a, rtol=1e-5, atol=1e-6)
    signature = module.f.programs[0].signature
    assert {p.shape for p in (*signature.parameters, *signature.results)} == {(5, 5)}


def test_recursion_of_the_entry():
    text = """
      func.func @sum(%x: memref<?xi64>, %n: i64) -> i64 {
        %c0 = arith.constant 0 : i64
        %c1 = arith.constant 1 : i64
        %done = arith.cmpi sle, %n, %c0 : i64
        %r = scf.if %done -> (i64) {
          scf.yield %c0 : i64
        } else {
          %less = arith.subi %n, %c1 : i64
          %rest = func.call @sum(%x, %less) : (memref<?xi64>, i64) -> i64
          %i = arith.index_cast %less : i64 to index
          %v = memref.load %x[%i] : memref<?xi64>
          %s = arith.addi %rest, %v : i64
          scf.yield %s : i64
        }
        return %r : i64
      }"""
    assert compiled(text)(np.arange(10), 10) == 45


ASSERT = """
  func.func private @check(%n: index) -> index {
    %c3 = arith.constant 3 : index
    %ok = arith.cmpi slt, %n, %c3 : index
    cf.assert %ok, "n must be below three"
    return %n : index
  }
  func.func @f(%x: memref<1xindex>, %n: index) -> index {
    %c0 = arith.constant 0 : index
    %r = call @check(%n) : (index) -> index
    memref.store %r, %x[%c0] : memref<1xindex>
    return %r : index
  }
"""


def test_failed_assertions_return():
    module = compiled(ASSERT)
    x = np.full(1, -1)
    assert module(x, 2) == 2
    assert x[0] == 2
    for _ in range(2):
        with pytest.raises(AssertionFailed, match="@f: assertion failed: n must be below three"):
            module(x, 5)
    assert x[0] == 2, "nothing after the assertion runs"
    assert module(x, 1) == 1


def test_a_symbol_that_nobody_defines_is_named():
    text = "func.func private @nowhere(f32) -> f32\nfunc.func @f(%x: f32) -> f32 {" \
           "%r = call @nowhere(%x) : (f32) -> f32 return %r : f32 }"  # fmt: skip
    with pytest.raises(CompileError, match="'nowhere', which no library"):
        compiled(text)


@pytest.mark.parametrize("size", ["?", "3"])
@pytest.mark.parametrize("name", ["a b", "a,b", "{a=1}", r"\22\5C\0A", r"\00", "\u65e5", "a%b", ""])
def test_functions_may_have_any_name(name, size):
    kind = f"tensor<{size}xf32>"
    text = f"""
      func.func private @"{name}!"(%x: {kind}) -> {kind} {{
        %r = linalg.add ins(%x, %x : {kind}, {kind}) outs(%x : {kind}) -> {kind}
        return %r : {kind}
      }}
      func.func @"{name}"(%x: {kind}) -> {kind} {{
        %r = call @"{name}!"(%x) : ({kind}) -> {kind}
        return %r : {kind}
      }}"""
    x = random(3)
    np.testing.assert_array_equal(compiled(text)(x), x + x)


def test_what_no_memory_holds_is_refused():
    text = """
      func.func @f(%x: tensor<4611686018427387904x4xf32>) -> tensor<4611686018427387904x4xf32> {
        return %x : tensor<4611686018427387904x4xf32>
      }"""
    with pytest.raises(CompileError, match="more elements than any memory"):
        compiled(text)


@pytest.mark.parametrize("name", ["free", "malloc", "memcpy", "expf", "main", "abort", "fn.f"])
def test_functions_may_be_called_like_the_librarys(name):
    text = f"""
      func.func @"{name}"(%x: tensor<300xf32>) -> tensor<300xf32> {{
        %r = linalg.exp ins(%x : tensor<300xf32>) outs(%x : tensor<300xf32>) -> tensor<300xf32>
        %s = linalg.exp ins(%r : tensor<300xf32>) outs(%x : tensor<300xf32>) -> tensor<300xf32>
        return %s : tensor<300xf32>
      }}"""
    x = random(300)
    np.testing.assert_allclose(compiled(text)(x), np.exp(np.exp(x)), rtol=1e-5)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9), st.booleans(), st.booleans())
def test_odd_sizes_and_layouts(m, k, n, turn_a, turn_b):
    a = random(k, m).T if turn_a else random(m, k)
    b = random(n, k, seed=1).T if turn_b else random(k, n, seed=1)
    c = random(m, n, seed=2)
    np.testing.assert_allclose(_dynamic()(a, b, c), a @ b + c, rtol=1e-4, atol=1e-5)


_modules = []


def _dynamic():
    if not _modules:
        _modules.append(compiled(matmul_text()))
    return _modules[0]


def test_memory_does_not_grow():
    text = """
      func.func private @double(%x: tensor<?xf32>) -> tensor<?xf32> {
        %r = linalg.add ins(%x, %x : tensor<?xf32>, tensor<?xf32>) outs(%x : tensor<?xf32>) -> tensor<?xf32>
        return %r : tensor<?xf32>
      }
      func.func @f(%x: tensor<20000xf32>, %n: index) -> (tensor<?xf32>, tensor<20000xf32>) {
        %e = tensor.empty(%n) : tensor<?xf32>
        %c = arith.constant 2.0 : f32
        %q = linalg.fill ins(%c : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
        %d = func.call @double(%q) : (tensor<?xf32>) -> tensor<?xf32>
        %y = linalg.exp ins(%x : tensor<20000xf32>) outs(%x : tensor<20000xf32>) -> tensor<20000xf32>
        %z = linalg.add ins(%y, %x : tensor<20000xf32>, tensor<20000xf32>) outs(%x : tensor<20000xf32>)
          -> tensor<20000xf32>
        return %d, %z : tensor<?xf32>, tensor<20000xf32>
      }"""
    module, x = compiled(text), random(20000)

    def pages():
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123
            return int(file.read().split()[1])

    for _ in range(20):
        assert (module(x, 20000)[0] == 4).all()
    before = pages()
    for _ in range(400):
        module(x, 20000)
    assert pages() - before < 2000, "each call allocates 40 pages or more: some of them are never freed"


def test_threads_may_call_at_the_same_time():
    module = compiled(matmul_text())

    def work(seed):
        a, b, c = random(8, 8, seed=seed), random(8, 8, seed=seed + 1), random(8, 8 + seed % 2, seed=seed + 2)
        b = random(8, 8 + seed % 2, seed=seed)
        for _ in range(50):
            np.testing.assert_allclose(module(a, b, c), a @ b + c, rtol=1e-4, atol=1e-5)

    at_once([partial(work, i) for i in range(4)])


def test_emit():
    module = compiled(matmul_text(2, 2, 2))
    assert "define void @morello.call" in module.emit("llvm")
    assert "morello.call" in module.emit("asm")
    assert module.emit("obj")[:4] == b"\x7fELF"
    assert "linalg.matmul" in module.emit("mlir")
    with pytest.raises(InputError, match="cannot emit 'c'"):
        module.emit("c")


def test_the_object_cache_is_used(tmp_path, monkeypatch):
    monkeypatch.setenv("MORELLO_CACHE_DIR", str(tmp_path))
    text = matmul_text(3, 3, 2)
    assert not compiled(text).matmul.program().from_cache
    assert compiled(text).matmul.program().from_cache
    for path in tmp_path.glob("objects/??/*"):
        path.write_bytes(b"damaged")
    again = compiled(text)
    assert not again.matmul.program().from_cache
    assert again(random(3, 3), random(3, 2), random(3, 2)).shape == (3, 2)
    assert not compiled(text, cache=False).matmul.program().from_cache


def test_our_passes_failing_is_a_warning(monkeypatch):
    from morello_mlir.passes import pipelines

    real = pipelines.stages

    def broken(settings):
        stages = real(replace(settings, optimize=False))
        return stages | {"search": "morello-select-entry{entry=gone}"} if settings.optimize else stages

    monkeypatch.setattr(pipelines, "stages", broken)
    x = random(2, 2)
    with pytest.warns(UserWarning, match=r"by upstream's passes alone: search failed: .*set MORELLO_STRICT=1"):
        module = morello_mlir.compile(matmul_text(2, 2, 2), optimize=True)
    assert module(x, x, x).shape == (2, 2)
    monkeypatch.setenv("MORELLO_STRICT", "1")
    with warnings.catch_warnings(), pytest.raises(CompileError, match="no function @gone"):
        morello_mlir.compile(matmul_text(2, 2, 2), optimize=True)


def test_programs_that_print(capfd):
    text = "func.func @f() { %v = arith.constant dense<[1, 2]> : vector<2xi32> vector.print %v : vector<2xi32> return }"
    module = compiled(text)
    module()
    assert "( 1, 2 )" in capfd.readouterr().out


def test_search_times_are_reported():
    text = """
    func.func @mm(%a: tensor<5x6xf32>, %b: tensor<6x7xf32>, %c: tensor<5x7xf32>) -> tensor<5x7xf32> {
      %r = linalg.matmul ins(%a, %b : tensor<5x6xf32>, tensor<6x7xf32>) outs(%c : tensor<5x7xf32>) -> tensor<5x7xf32>
      return %r : tensor<5x7xf32>
    }
    """
    # The other one copies %c to where the sums go.
    (spec,) = (s for s in morello_mlir.compile(text).specs if s["function"] == "MatmulAccum")
    assert spec["search_s"] >= 0 and spec["cost"] > 0 and "kernel" in spec["schedule"]
