"""`lifting.explain`, `survey`, and what the passes leave behind."""

from __future__ import annotations

import numpy as np
import pytest
from lift_support import FROM_TENSORS, LIFT, Run
from mlir import ir

from morello_mlir import lifting

IN_PLACE = """func.func @f(%a: memref<4x4xf32>, %b: memref<4x4xf32>) {
  linalg.matmul ins(%a, %b : memref<4x4xf32>, memref<4x4xf32>) outs(%a : memref<4x4xf32>)
  return
}"""

FILLED = """func.func @f(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x4xf32>
  %c = linalg.fill ins(%z : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %r = linalg.matmul ins(%a, %b : tensor<4x4xf32>, tensor<4x4xf32>) outs(%c : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}"""


def _surveyed(text: str) -> list[tuple[str, object]]:
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        return [(op.name, outcome) for op, outcome in lifting.survey(module.operation)]


def test_rejected_says_why() -> None:
    ((name, outcome),) = _surveyed(IN_PLACE)
    assert name == "linalg.matmul"
    assert outcome == lifting.Rejected("the output may overlap the first input")


def test_lifted_knows_spec_and_fill() -> None:
    (_, covered), (_, lifted) = _surveyed(FILLED)
    assert isinstance(covered, lifting.Covered) and isinstance(lifted, lifting.Lifted)
    assert lifted.on_tensors and lifted.fill is not None
    assert str(lifted.spec).startswith("Matmul([1, 4, 4, 4], ")


def test_explain_alone() -> None:
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(IN_PLACE.replace("outs(%a", "outs(%b").replace("%a, %b :", "%a, %a :"))
        op = next(o for o in lifting.nested_ops(module.operation) if o.name == "linalg.matmul")
        outcome = lifting.explain(op)
    assert isinstance(outcome, lifting.Lifted) and outcome.spec.function == "MatmulAccum"


@pytest.mark.parametrize(
    "text",
    [
        "module {}",
        "module { module {} }",
        'func.func private @external(memref<4xf32>)\nmemref.global "private" @g : memref<4xf32> = uninitialized',
        "func.func @f() {\n  return\n}",
    ],
)
def test_modules_without_linalg(text: str) -> None:
    assert Run(text, FROM_TENSORS.partition(",")[0] + "," + LIFT).specs == []


def test_running_twice_changes_nothing() -> None:
    once, twice = Run(FILLED, FROM_TENSORS), Run(FILLED, f"{FROM_TENSORS},morello-group,morello-lift")
    assert str(once.module) == str(twice.module)


def test_one_buffer_for_inputs() -> None:
    text = IN_PLACE.replace("outs(%a", "outs(%b").replace("%a, %b :", "%a, %a :")
    a = np.arange(16, dtype=np.float32).reshape(4, 4)
    b = np.ones((4, 4), np.float32)
    Run(text, LIFT).compile()("f", a, b)
    np.testing.assert_array_equal(b, a @ a + 1)


def test_order_of_elements_matters_in_place() -> None:
    """Upstream's loops define what an in-place product is: lifting keeps it."""
    a = np.arange(16, dtype=np.float32).reshape(4, 4)
    b = np.eye(4, dtype=np.float32)
    want = a.copy()
    for i in range(4):
        for j in range(4):
            for k in range(4):
                want[i, j] += want[i, k] * b[k, j]
    run = Run(IN_PLACE, LIFT)
    assert run.specs == []
    run.compile()("f", a, b)
    np.testing.assert_array_equal(a, want)


def test_transposed_and_broadcast_inputs_compute_the_same() -> None:
    text = """func.func @f(%a: tensor<3x4x5xf32>, %b: tensor<6x5xf32>, %c: tensor<3x4x6xf32>, %out: memref<3x4x6xf32>) {
      %e = tensor.empty() : tensor<5x6xf32>
      %t = linalg.transpose ins(%b : tensor<6x5xf32>) outs(%e : tensor<5x6xf32>) permutation = [1, 0]
      %f = tensor.empty() : tensor<3x5x6xf32>
      %w = linalg.broadcast ins(%t : tensor<5x6xf32>) outs(%f : tensor<3x5x6xf32>) dimensions = [0]
      %r = linalg.batch_matmul ins(%a, %w : tensor<3x4x5xf32>, tensor<3x5x6xf32>) outs(%c : tensor<3x4x6xf32>)
        -> tensor<3x4x6xf32>
      bufferization.materialize_in_destination %r in writable %out : (tensor<3x4x6xf32>, memref<3x4x6xf32>) -> ()
      return
    }"""
    run = Run(text, FROM_TENSORS)
    (spec,) = run.specs
    assert spec.startswith("MatmulAccum([1, 12, 5, 6], (f32, GL, row_major), (f32, GL, col_major)")
    rng = np.random.default_rng(0)
    a, b, c = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((3, 4, 5), (6, 5), (3, 4, 6)))
    got = np.zeros((3, 4, 6), np.float32)
    run.compile()("f", a, b, c.copy(), got)
    np.testing.assert_array_equal(got, a @ b.T + c)
