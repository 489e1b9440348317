"""Constant operands from the module to the panels: which are recognised, what is shared, and the numbers."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from thread_support import at_once

import morello_mlir
from morello_mlir.errors import CompileError, InputError
from morello_mlir.lowering.ahead import SLACK

RNG = np.random.default_rng(0)


def array(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def product(
    m: int | str,
    k: int,
    n: int,
    *,
    name: str = "f",
    weight: str = "%w",
    transposed: bool = False,
    arguments: str = "",
    attributes: str = "",
) -> str:
    """y = x @ w, or x @ w^T as frontends write it. weight: an operand of the type of w."""
    rows, w = ("%d", f"{n}x{k}") if transposed else ("%d", f"{k}x{n}")
    start = "%c0 = arith.constant 0 : index\n%d = tensor.dim %x, %c0 : tensor<?x{k}xf32>" if m == "?" else ""
    turned = f"""%e = tensor.empty() : tensor<{k}x{n}xf32>
      %t = linalg.transpose ins({weight} : tensor<{w}xf32>) outs(%e : tensor<{k}x{n}xf32>) permutation = [1, 0]"""
    return f"""
    func.func @{name}(%x: tensor<{m}x{k}xf32>{arguments}) -> tensor<{m}x{n}xf32> {{
      {start.format(k=k)}
      %z = arith.constant 0.0 : f32
      {turned if transposed else ""}
      %o = tensor.empty({rows if m == "?" else ""}) : tensor<{m}x{n}xf32>
      %i = linalg.fill ins(%z : f32) outs(%o : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>
      %r = linalg.matmul {attributes}
        ins(%x, {"%t" if transposed else weight} : tensor<{m}x{k}xf32>, tensor<{k}x{n}xf32>)
        outs(%i : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>
      return %r : tensor<{m}x{n}xf32>
    }}"""


def argument(shape: str, attributes: str = "", location: str = "") -> str:
    return f", %w: tensor<{shape}xf32> {attributes} {location}"


def dense(values: np.ndarray) -> str:
    return f'dense<"0x{values.tobytes().hex()}"> : tensor<{"x".join(map(str, values.shape))}xf32>'


def close(got: Any, want: np.ndarray) -> None:
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-3)


def panels(module: Any) -> list[int]:
    """Bytes of each buffer of panels, over all programs."""
    return [len(p) for program in module._programs() for p in program.build.panels.values()]


def packs(module: Any) -> list[bool]:
    return ["pack_ahead" in spec["schedule"] for spec in module.specs]


# ---------------------------------------------------------------- recognised, and right


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(("m", "k", "n"), [(4, 33, 70), (37, 17, 101), (7, 64, 1), (1, 61, 67), (16, 1, 48)])
def test_given_arrays(m: int, k: int, n: int, transposed: bool) -> None:
    w = array(n, k) if transposed else array(k, n)
    shape = "x".join(map(str, w.shape))
    module = morello_mlir.compile(product(m, k, n, transposed=transposed, arguments=argument(shape)), constants={1: w})
    assert "const" in module.specs[0]["spec"]
    kept, w = w.copy(), w
    w[...] = np.nan
    for _ in range(3):
        x = array(m, k)
        close(module(x), x @ (kept.T if transposed else kept))


def test_a_weight_in_the_module() -> None:
    w = array(96, 64)
    text = product(8, 64, 96, transposed=True).replace("%z =", f"%w = arith.constant {dense(w)}\n%z =")
    module = morello_mlir.compile(text)
    assert packs(module) == [True] and len(panels(module)) == 1
    for _ in range(2):
        x = array(8, 64)
        close(module(x), x @ w.T)
    off = morello_mlir.compile(text, pack_constants=False)
    assert packs(off) == [False] and panels(off) == []
    close(off(x), x @ w.T)
    plain = morello_mlir.compile(text, optimize=False)
    assert panels(plain) == []
    close(plain(x), x @ w.T)


def test_an_argument_that_the_caller_says_is_constant() -> None:
    text = product(8, 64, 96, transposed=True, arguments=argument("96x64", "{morello.constant}"))
    module, w, x = morello_mlir.compile(text), array(96, 64), array(8, 64)
    assert packs(module) == [True]
    close(module(x, w), x @ w.T)
    close(module(x, w.copy()), x @ w.T)
    # A promise that is broken shows that the panels are those of the first call.
    close(module(x, 2 * w), x @ w.T)


def test_panels_may_be_filled_by_several_threads_at_once() -> None:
    w, x = array(192, 128), array(6, 128)
    text = product(6, 128, 192, transposed=True, arguments=argument("192x128"))
    for _ in range(5):
        module = morello_mlir.compile(text, constants={1: w})
        assert packs(module) == [True]
        for y in at_once([partial(module.f, x)] * 4):
            close(y, x @ w.T)


def two(first: str, second: str) -> str:
    """A function that calls two others, each a product with the constant @w."""
    return f"""
    memref.global constant @w : memref<96x64xf32> = dense<0.5>
    {first}
    {second}
    func.func @both(%x: tensor<8x64xf32>, %y: tensor<9x64xf32>) -> (tensor<8x96xf32>, tensor<9x96xf32>) {{
      %p = call @f(%x) : (tensor<8x64xf32>) -> tensor<8x96xf32>
      %q = call @g(%y) : (tensor<9x64xf32>) -> tensor<9x96xf32>
      return %p, %q : tensor<8x96xf32>, tensor<9x96xf32>
    }}"""


def test_functions_share_a_weight() -> None:
    read = """%g = memref.get_global @w : memref<96x64xf32>
      %w = bufferization.to_tensor %g restrict : memref<96x64xf32> to tensor<96x64xf32>
      %z ="""
    bodies = [product(m, 64, 96, name=n, transposed=True).replace("%z =", read) for m, n in ((8, "f"), (9, "g"))]
    text = two(*bodies).replace("func.func @f", "func.func private @f").replace("func.func @g", "func.func private @g")
    module = morello_mlir.compile(text)
    assert packs(module) == [True, True] and len(panels(module)) == 1
    x, y = array(8, 64), array(9, 64)
    for got, want in zip(module(x, y), (x, y), strict=True):
        close(got, want @ np.full((64, 96), 0.5, np.float32))


def test_specialisations_share_panels() -> None:
    w = array(96, 64)
    text = product("?", 64, 96, transposed=True, arguments=argument("96x64"))
    module = morello_mlir.compile(text, constants={1: w})
    for m in (8, 9):
        x = array(m, 64)
        close(module(x), x @ w.T)
    first, second = (program.build.panels["morello.panels.0"] for program in module.f.programs)
    assert first is second


def test_weights_in_the_module_are_shared_by_its_programs() -> None:
    w = array(96, 64)
    constant = f"%w = arith.constant {dense(w)}\n%z ="
    text = "\n".join(
        product(m, 64, 96, name=n, transposed=True).replace("%z =", constant) for m, n in ((8, "f"), (9, "g"))
    )
    module = morello_mlir.compile(text)
    close(module.f(x := array(8, 64)), x @ w.T)
    close(module.g(x := array(9, 64)), x @ w.T)
    first, second = (program.build for program in module._programs())
    assert first.panels["morello.panels.0"] is second.panels["morello.panels.0"]
    assert first.constants["morello.constant.0"] is second.constants["morello.constant.0"]


def test_programs_with_other_weights_share_machine_code(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MORELLO_CACHE_DIR", str(tmp_path))
    x, found = array(8, 64), []
    for w in (array(64, 96), array(64, 96)):
        module = morello_mlir.compile(product(8, 64, 96, arguments=argument("64x96")), constants={1: w})
        close(module(x), x @ w)
        found.append(module.f.program().from_cache)
    assert found == [False, True]


def test_batches() -> None:
    """A weight for every batch, and one for all of them, which is packed once."""
    for w, index, count in ((array(3, 24, 32), "(b, k, n)", 3), (array(24, 32), "(k, n)", 1)):
        shape = "x".join(map(str, w.shape))
        view = "memref<3x5x24xf32, strided<[150, 24, 1]>>"
        text = f"""
        #x = affine_map<(b, m, n, k) -> (b, m, k)>
        #w = affine_map<(b, m, n, k) -> {index}>
        #y = affine_map<(b, m, n, k) -> (b, m, n)>
        func.func @f(%x: memref<450xf32>, %w: memref<{shape}xf32>, %y: memref<3x5x32xf32>) {{
          %v = memref.reinterpret_cast %x to offset: [0], sizes: [3, 5, 24], strides: [150, 24, 1]
            : memref<450xf32> to {view}
          linalg.generic {{indexing_maps = [#x, #w, #y],
              iterator_types = ["parallel", "parallel", "parallel", "reduction"]}}
            ins(%v, %w : {view}, memref<{shape}xf32>) outs(%y : memref<3x5x32xf32>) {{
            ^bb0(%a: f32, %b: f32, %c: f32):
              %p = arith.mulf %a, %b : f32
              %s = arith.addf %c, %p : f32
              linalg.yield %s : f32
          }}
          return
        }}"""
        module = morello_mlir.compile(text, constants={1: w}, target="avx2")
        assert module.specs[0]["spec"].startswith("MatmulAccum([3, 5, 24, 32]") and packs(module) == [True]
        assert panels(module)[0] - SLACK < 1.3 * count * 24 * 32 * 4 + 128
        x, y = array(450), np.zeros((3, 5, 32), np.float32)
        module(x, y)
        close(y, np.lib.stride_tricks.as_strided(x, (3, 5, 24), (600, 96, 4)) @ w)


def test_a_schedule_by_hand() -> None:
    steps = [
        "to_accum", "pack_ahead rhs as [b, n/7, k, n%7]", "move lhs to L2", "move rhs to L2", "move out to L2",
        "tile n by 7:", "    kernel scalar",
    ]  # fmt: skip
    listed = ", ".join(f'"{s}"' for s in steps)
    text = product(3, 5, 14, arguments=argument("5x14"), attributes=f"{{morello.schedule = [{listed}]}}")
    w, x = array(5, 14), array(3, 5)
    module = morello_mlir.compile(text, constants={1: w})
    assert module.specs[0]["schedule"].splitlines() == steps and module.specs[0]["source"] == "manual"
    close(module(x), x @ w)
    with pytest.raises(CompileError, match=r"pack_ahead rhs .*: rhs is not constant here"):
        morello_mlir.compile(text)
    # Schedules that know nothing of constants stay legal.
    plain = product(
        3, 5, 14, arguments=argument("5x14"), attributes='{morello.schedule = ["to_accum", "tile m by 1:", "  ?"]}'
    )
    module = morello_mlir.compile(plain, constants={1: w})
    assert packs(module) == [False]
    close(module(x), x @ w)


@pytest.mark.parametrize(("m", "k", "n"), [(16, 97, 67), (13, 200, 64), (5, 96, 48)])
def test_tiles_of_rows_that_ask_for_the_next_panel(m: int, k: int, n: int) -> None:
    steps = ["to_accum", "pack_ahead rhs as [b, n/32, k, n%32]", "move lhs to L2"]
    steps += ["tile n by 32:", "    move rhs to L2", "    tile m by 4:", "        ?"]
    steps += ["    rest:", "        ?"] * (m % 4 > 0) + ["rest:", "    ?"] * (n % 32 > 0)
    listed = ", ".join(f'"{s}"' for s in steps)
    text = product(m, k, n, arguments=argument(f"{k}x{n}"), attributes=f"{{morello.schedule = [{listed}]}}")
    w, x = array(k, n), array(m, k)
    close(morello_mlir.compile(text, constants={1: w})(x), x @ w)


def test_a_remainder_with_another_kernel_asks_for_nothing() -> None:
    steps = ["to_accum", "pack_ahead rhs as [b, n/32, k, n%32]", "move lhs to L2", "move rhs to L2", "move out to L2"]
    steps += ["tile n by 32:", "    tile m by 4:", "        move lhs to L1", "        move out to L1"]
    steps += ["        move out to VRF", "        kernel broadcast_fma", "    rest:", "        kernel scalar"]
    listed = ", ".join(f'"{s}"' for s in steps)
    text = product(9, 12, 64, arguments=argument("12x64"), attributes=f"{{morello.schedule = [{listed}]}}")
    w, x = array(12, 64), array(9, 12)
    close(morello_mlir.compile(text, constants={1: w})(x), x @ w)


def test_contents_without_a_name_are_not_shared() -> None:
    """Two functions with Specs of constant operands, written by hand: nothing says that these hold the same."""
    steps = [
        "to_accum", "pack_ahead rhs as [b, n/7, k, n%7]", "move lhs to L2", "move rhs to L2", "move out to L2",
        "tile n by 7:", "    kernel scalar",
    ]  # fmt: skip
    types = ["memref<1x3x5xf32>", "memref<1x5x{n}xf32>", "memref<1x3x{n}xf32>"]
    names = ["%x", "%w", "%y"]
    text = ""
    for n in (14, 21, 28):
        own = [t.format(n=n) for t in types]
        arguments = ", ".join(f"{a}: {t}" for a, t in zip(names, own, strict=True))
        text += f"""
        func.func @f{n}({arguments}) {{
          "morello.spec"({", ".join(names)}) {{
            function = "Matmul", dims = array<i64: 1, 3, 5, {n}>, serial,
            operands = ["(f32, GL, row_major)", "(f32, GL, row_major, const)", "(f32, GL, row_major)"],
            schedule = [{", ".join(f'"{s}"' for s in steps)}]
          }} : ({", ".join(own)}) -> ()
          return
        }}"""
    module = morello_mlir.compile(text)
    for n in (14, 21, 28):
        x, w, y = array(1, 3, 5), array(1, 5, n), array(1, 3, n)
        getattr(module, f"f{n}")(x, w, y)
        close(y, x @ w)


# ---------------------------------------------------------------- how arrays are given


def test_names_and_dynamic_sizes() -> None:
    w, x = array(12, 16), array(3, 12)
    for named in (argument("12x16", '{morello.name = "weight"}'), argument("12x16", "", 'loc("weight")')):
        close(morello_mlir.compile(product(3, 12, 16, arguments=named), constants={"weight": w})(x), x @ w)
    text = """
    func.func @f(%x: tensor<3x12xf32>, %w: tensor<?x?xf32>, %o: tensor<3x16xf32>) -> tensor<3x16xf32> {
      %r = linalg.matmul ins(%x, %w : tensor<3x12xf32>, tensor<?x?xf32>) outs(%o : tensor<3x16xf32>) -> tensor<3x16xf32>
      return %r : tensor<3x16xf32>
    }"""
    module = morello_mlir.compile(text, constants={1: w})
    assert module.lifted == 1
    close(module(x, np.zeros((3, 16), np.float32)), x @ w)


def test_read_only_arrays_are_not_copied() -> None:
    room = np.empty(12 * 16 * 4 + 64, np.uint8)
    w = room[-room.ctypes.data % 64 :][: 12 * 16 * 4].view(np.float32).reshape(12, 16)
    w[...] = array(12, 16)
    text = product(3, 12, 16, arguments=argument("12x16"))
    copied = morello_mlir.compile(text, constants={1: w})
    assert not np.shares_memory(copied._constants.given["morello.given.0"], w)
    w.flags.writeable = False
    copied = morello_mlir.compile(text, constants={1: w})
    assert not np.shares_memory(copied._constants.given["morello.given.0"], w), "its base can be written to"
    room.flags.writeable = False
    kept = morello_mlir.compile(text, constants={1: w})
    assert np.shares_memory(kept._constants.given["morello.given.0"], w)
    x = array(3, 12)
    close(kept(x), x @ w)


@pytest.mark.parametrize(
    ("constants", "why"),
    [
        ({2: array(12, 16)}, "no argument 2 .it takes 2"),
        ({-1: array(12, 16)}, "no argument -1"),
        ({True: array(12, 16)}, "no argument True"),
        ({"v": array(12, 16)}, "no argument is called 'v' .w"),
        ({1: array(12, 16), "w": array(12, 16)}, "argument 1 is given twice"),
        ({1: array(12, 15)}, "constant for argument 1: expected shape 12x16, got 12x15"),
        ({1: array(12, 16).astype(np.float64)}, "expected dtype float32"),
        ({1: [1.0, 2.0]}, "expected an array, got a list"),
        ([array(12, 16)], "constants: expected a mapping from arguments to arrays, got a list"),
    ],
)
def test_arrays_that_do_not_fit(constants: Any, why: str) -> None:
    text = product(3, 12, 16, arguments=argument("12x16", '{morello.name = "w"}'))
    with pytest.raises(InputError, match=why):
        morello_mlir.compile(text, constants=constants)


def test_a_name_that_is_no_string_is_refused() -> None:
    text = product(3, 12, 16, arguments=argument("12x16", "{morello.name = 3}"))
    with pytest.raises(InputError, match=r"morello\.name of argument \d must be a string, not 3"):
        morello_mlir.compile(text, constants={"w": array(12, 16)})


@pytest.mark.parametrize(
    ("type_", "why"),
    [
        ("f32", "it is a scalar"),
        ("memref<4xf32, strided<[2]>>", "strides of its own"),
        ("memref<4xf32>", "the program writes to it"),
    ],
)
def test_arguments_that_cannot_be_given(type_: str, why: str) -> None:
    body = "memref.store %x, %w[%i] : memref<4xf32>" if type_ == "memref<4xf32>" else ""
    text = f"func.func @f(%x: f32, %i: index, %w: {type_}) {{ {body} return }}"
    with pytest.raises(InputError, match=why):
        morello_mlir.compile(text, constants={2: array(4)})


def test_constants_are_for_one_function() -> None:
    text = product(3, 12, 16, arguments=argument("12x16")) + product(3, 12, 16, name="g", arguments=argument("12x16"))
    w, x = array(12, 16), array(3, 12)
    with pytest.raises(InputError, match="choose it with entry="):
        morello_mlir.compile(text, constants={1: w})
    close(morello_mlir.compile(text, entry="g", constants={1: w})(x), x @ w)


def test_an_argument_that_is_written_is_not_constant() -> None:
    text = """
    func.func @f(%x: memref<4x8xf32>, %w: memref<8x16xf32> {morello.constant}, %y: memref<4x16xf32>) {
      %z = arith.constant 0.0 : f32
      linalg.matmul ins(%x, %w : memref<4x8xf32>, memref<8x16xf32>) outs(%y : memref<4x16xf32>)
      linalg.fill ins(%z : f32) outs(%w : memref<8x16xf32>)
      return
    }"""
    with pytest.warns(UserWarning, match="argument 1 of @f is 'morello.constant' and may be written to"):
        module = morello_mlir.compile(text)
    x, w, y = array(4, 8), array(8, 16), np.zeros((4, 16), np.float32)
    want = x @ w
    module(x, w, y)
    close(y, want)
