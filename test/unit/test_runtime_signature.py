"""Which arguments a program may write to: those must be writable, and get their contents back where they are copied."""

from __future__ import annotations

import numpy as np
import pytest

import morello_mlir
from morello_mlir.errors import InputError
from morello_mlir.runtime.context import parse_text
from morello_mlir.runtime.signature import signature_of

M, V, G = "memref<4x8xf32>", "memref<4xf32>", "memref<4xf32, strided<[2]>>"
REDUCE = """
  linalg.reduce ins(%a, %a : memref<4x8xf32>, memref<4x8xf32>) outs(%o, %p : memref<4xf32>, memref<4xf32>)
    dimensions = [1] (%x: f32, %y: f32, %s: f32, %t: f32) {
      %u = arith.addf %x, %s : f32
      %v = arith.mulf %y, %t : f32
      linalg.yield %u, %v : f32, f32
    }
"""


def written(inputs, body):
    module = parse_text(f"func.func @f({inputs}) {{ {body}\n return }}")
    with module.context:
        return [p.written for p in signature_of(module.body.operations[0]).inputs]


@pytest.mark.parametrize(
    ("inputs", "body", "expected"),
    [
        (f"%a: {M}, %b: {M}", "linalg.exp ins(%a : memref<4x8xf32>) outs(%b : memref<4x8xf32>)", [False, True]),
        (f"%a: {M}, %o: {V}, %p: {V}", REDUCE, [False, True, True]),
        (
            f"%a: {M}, %b: {M}",
            "linalg.softmax dimension(1) ins(%a : memref<4x8xf32>) outs(%b : memref<4x8xf32>)",
            [False, True],
        ),
        (
            f"%a: {V}, %b: {M}",
            "linalg.broadcast ins(%a : memref<4xf32>) outs(%b : memref<4x8xf32>) dimensions = [1]",
            [False, True],
        ),
        (f"%a: {M}, %b: {M}", "memref.copy %a, %b : memref<4x8xf32> to memref<4x8xf32>", [False, True]),
        (f"%a: {M}", "%d = memref.dim %a, %c : memref<4x8xf32>", [False]),
        (
            f"%a: {M}",
            "%v = memref.cast %a : memref<4x8xf32> to memref<?x8xf32>\n"
            "linalg.exp ins(%v : memref<?x8xf32>) outs(%v : memref<?x8xf32>)",
            [True],
        ),
        (f"%a: {M}", '"some.op"(%a) : (memref<4x8xf32>) -> ()', [True]),
    ],
)
def test_what_may_be_written(inputs, body, expected):
    assert written(inputs, ("%c = arith.constant 0 : index\n" if "%c" in body else "") + body) == expected


def test_every_output_of_a_reduction_is_given_back():
    text = REDUCE.replace("memref<4xf32>, memref<4xf32>", f"{G}, {G}")
    f = morello_mlir.compile(f"func.func @f(%a: {M}, %o: {G}, %p: {G}) {{ {text}\n return }}").f
    a = np.arange(32, dtype=np.float32).reshape(4, 8) / 32
    # Neighbours, where the program wants every other one: what is passed on is a copy.
    outs = [np.zeros(4, np.float32), np.ones(4, np.float32)]
    f(a, *outs)
    np.testing.assert_allclose(outs[0], a.sum(1), rtol=1e-5)
    np.testing.assert_allclose(outs[1], a.prod(1), rtol=1e-5)
    outs[0].flags.writeable = False
    with pytest.raises(InputError, match="argument 1: the program writes"):
        f(a, *outs)
