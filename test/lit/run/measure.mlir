// RUN: env MORELLO_MEMO=%t.sqlite morello-run %s --measure --top-k 2 --check | FileCheck %s
// RUN: rm -f %t.progress.sqlite
// RUN: env MORELLO_MEMO=%t.progress.sqlite morello-run %s --measure --top-k 2 2>&1 >/dev/null | FileCheck %s --check-prefix=SAID
// RUN: morello-run %s --top-k 2 | FileCheck %s --check-prefix=LIST
// RUN: not morello-run %s --top-k 0 2>&1 | FileCheck %s --check-prefix=ZERO
// CHECK: cost {{[0-9]+}} (measured {{[0-9.]+}} us, the model's choice
// CHECK: check: right
// SAID: measuring Matmul([1, 8, 8, 8]
// LIST: schedule 1: cost
// LIST-NEXT: to_accum
// LIST: schedule 2: cost
// ZERO: morello-run: error: top-k must be at least 1, not 0
func.func @f(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x8xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %r = linalg.matmul ins(%a, %b : tensor<8x8xf32>, tensor<8x8xf32>) outs(%i : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %r : tensor<8x8xf32>
}
