// A remark says the Spec of what is lifted, and the reason of what is not; a fill that the Spec covers is not mentioned.
// RUN: morello-opt %s --morello-lift --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func @f
// CHECK-NOT: morello.group
func.func @f(%a: memref<4x5xf32>, %b: memref<5x6xf32>, %c: memref<4x6xf32>, %d: memref<4x6xf32>) {
  %z = arith.constant 0.0 : f32
  linalg.fill {morello.group = 0 : i64} ins(%z : f32) outs(%c : memref<4x6xf32>)
  // expected-remark @below {{linalg.matmul lifted: Matmul([1, 4, 5, 6], (f32, GL, row_major), (f32, GL, row_major), (f32, GL, row_major), serial)}}
  linalg.matmul {morello.group = 0 : i64} ins(%a, %b : memref<4x5xf32>, memref<5x6xf32>) outs(%c : memref<4x6xf32>)
  // expected-remark @below {{linalg.exp lifted: Map([24], (f32, GL, [1]), (f32, GL, [1]), "y = exp(x0)", serial)}}
  linalg.exp {morello.group = 1 : i64} ins(%c : memref<4x6xf32>) outs(%d : memref<4x6xf32>)
  return
}
