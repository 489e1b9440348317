// From tensors: group, bufferize, lift.
// RUN: morello-opt %s --pass-pipeline='builtin.module(morello-group,morello-bufferize,morello-lift)' | FileCheck %s

// A chain: the fills vanish, transposed weights are a layout, and nothing is copied.
// CHECK-LABEL: func @chain
// CHECK-NOT: linalg
// CHECK-NOT: memref.copy
// CHECK: call @morello_matmul_1x4x5x6_f32(
// CHECK: call @morello_matmul_1x4x6x7_f32(
// CHECK-NOT: memref.copy
// CHECK: return
func.func @chain(%x: tensor<4x5xf32>, %v: tensor<6x5xf32>, %w: tensor<6x7xf32>) -> tensor<4x7xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x6xf32>
  %t = linalg.transpose ins(%v : tensor<6x5xf32>) outs(%e : tensor<5x6xf32>) permutation = [1, 0]
  %e0 = tensor.empty() : tensor<4x6xf32>
  %f0 = linalg.fill ins(%z : f32) outs(%e0 : tensor<4x6xf32>) -> tensor<4x6xf32>
  %0 = linalg.matmul ins(%x, %t : tensor<4x5xf32>, tensor<5x6xf32>) outs(%f0 : tensor<4x6xf32>) -> tensor<4x6xf32>
  %e1 = tensor.empty() : tensor<4x7xf32>
  %f1 = linalg.fill ins(%z : f32) outs(%e1 : tensor<4x7xf32>) -> tensor<4x7xf32>
  %1 = linalg.matmul ins(%0, %w : tensor<4x6xf32>, tensor<6x7xf32>) outs(%f1 : tensor<4x7xf32>) -> tensor<4x7xf32>
  return %1 : tensor<4x7xf32>
}

// A live accumulator that is an argument is copied by bufferization, and accumulated into.
// CHECK-LABEL: func @live
// CHECK: call @morello_matmul_accum_1x4x5x6_f32(
func.func @live(%a: tensor<4x5xf32>, %b: tensor<5x6xf32>, %c: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = linalg.matmul ins(%a, %b : tensor<4x5xf32>, tensor<5x6xf32>) outs(%c : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
