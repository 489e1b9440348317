"""Compile a matrix product from MLIR text and call it with numpy arrays."""

import numpy as np

import morello_mlir

MODULE = """
func.func @matmul(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>, %c: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %r = linalg.matmul ins(%a, %b : tensor<?x?xf32>, tensor<?x?xf32>) outs(%c : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}
"""

module = morello_mlir.compile(MODULE)  # sizes are dynamic: every set of shapes gets a program of its own
rng = np.random.default_rng(0)
for m, k, n in ((64, 96, 32), (197, 64, 49)):
    a, b = (rng.uniform(-1, 1, shape).astype(np.float32) for shape in ((m, k), (k, n)))
    c = np.ones((m, n), np.float32)
    result = module.matmul(a, b, c)  # c is a value here: the program does not write into it
    assert np.allclose(result, a @ b + c, rtol=1e-4, atol=1e-4)
    print(f"{m} x {k} x {n}: right")

print(f"{module.lifted} linalg ops lifted, {sum(module.times.values()):.2f} s to compile")
print(module.specs[0]["schedule"])
