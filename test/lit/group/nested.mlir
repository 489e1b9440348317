// The pass runs on any op, and its tags survive bufferization.
// RUN: morello-opt %s --pass-pipeline='builtin.module(func.func(morello-group),morello-bufferize)' | FileCheck %s

// CHECK-LABEL: func @f
// CHECK: linalg.fill {morello.group = 0 : i64}
// CHECK: linalg.matmul {morello.group = 0 : i64}
func.func @f(%a: tensor<4x5xf32>, %b: tensor<5x6xf32>) -> tensor<4x6xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x6xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<4x5xf32>, tensor<5x6xf32>) outs(%f : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// Old tags are forgotten.
// CHECK-LABEL: func @g
// CHECK: linalg.exp ins
func.func @g(%a: memref<4xf32>, %b: memref<4xf32>) {
  linalg.exp {morello.group = 7 : i64} ins(%a : memref<4xf32>) outs(%b : memref<4xf32>)
  return
}
