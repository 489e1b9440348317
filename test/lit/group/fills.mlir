// A zero fill belongs to the contraction that starts from it; on tensors every contraction gets one of its own.
// RUN: morello-opt %s --morello-group --split-input-file | FileCheck %s

// CHECK-LABEL: func @zero
// CHECK: linalg.fill {morello.group = 0 : i64}
// CHECK: linalg.matmul {morello.group = 0 : i64}
func.func @zero(%a: tensor<4x5xf32>, %b: tensor<5x6xf32>) -> tensor<4x6xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x6xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<4x5xf32>, tensor<5x6xf32>) outs(%f : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// -----

// CHECK-LABEL: func @zero_by_generic
// CHECK: linalg.generic {{.*}}attrs = {morello.group = 0 : i64}
// CHECK: linalg.matmul {morello.group = 0 : i64}
func.func @zero_by_generic(%a: tensor<4x5xf32>, %b: tensor<5x6xf32>, %e: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %z = arith.constant 0.0 : f32
  %f = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      outs(%e : tensor<4x6xf32>) {
  ^bb0(%x: f32):
    linalg.yield %z : f32
  } -> tensor<4x6xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<4x5xf32>, tensor<5x6xf32>) outs(%f : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// -----

// Ones are no zeros: a live accumulator.
// CHECK-LABEL: func @one
// CHECK: linalg.fill ins
// CHECK: linalg.matmul {morello.group = 0 : i64}
func.func @one(%a: tensor<4x5xf32>, %b: tensor<5x6xf32>) -> tensor<4x6xf32> {
  %z = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<4x6xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<4x5xf32>, tensor<5x6xf32>) outs(%f : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// -----

// CHECK-LABEL: func @shared
// CHECK-DAG: %[[F0:.*]] = linalg.fill {morello.group = 0 : i64}
// CHECK-DAG: %[[F1:.*]] = linalg.fill {morello.group = 1 : i64}
// CHECK: linalg.matmul {morello.group = 0 : i64} {{.*}} outs(%[[F0]] :
// CHECK: linalg.matmul {morello.group = 1 : i64} {{.*}} outs(%[[F1]] :
func.func @shared(%a: tensor<4x5xf32>, %b: tensor<5x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>) {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x6xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<4x5xf32>, tensor<5x6xf32>) outs(%f : tensor<4x6xf32>) -> tensor<4x6xf32>
  %1 = linalg.matmul ins(%a, %b : tensor<4x5xf32>, tensor<5x6xf32>) outs(%f : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0, %1 : tensor<4x6xf32>, tensor<4x6xf32>
}

// -----

// CHECK-LABEL: func @constant
// CHECK-NOT: dense<
// CHECK: %[[F:.*]] = linalg.fill {morello.group = 0 : i64}
// CHECK: linalg.matmul {morello.group = 0 : i64} {{.*}} outs(%[[F]] :
func.func @constant(%a: tensor<4x5xf32>, %b: tensor<5x6xf32>) -> tensor<4x6xf32> {
  %c = arith.constant dense<0.0> : tensor<4x6xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<4x5xf32>, tensor<5x6xf32>) outs(%c : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// -----

// CHECK-LABEL: func @constant_not_zero
// CHECK: arith.constant dense<2.0
// CHECK-NOT: linalg.fill
func.func @constant_not_zero(%a: tensor<4x5xf32>, %b: tensor<5x6xf32>) -> tensor<4x6xf32> {
  %c = arith.constant dense<2.0> : tensor<4x6xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<4x5xf32>, tensor<5x6xf32>) outs(%c : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// -----

// On memrefs the fill must be of the same memref, and nothing may touch it in between.
// CHECK-LABEL: func @memrefs
// CHECK: linalg.fill {morello.group = 0 : i64}
// CHECK: linalg.matmul {morello.group = 0 : i64}
// CHECK: linalg.fill ins
// CHECK: memref.store
// CHECK: linalg.matmul {morello.group = 1 : i64}
func.func @memrefs(%a: memref<4x4xf32>, %c: memref<4x4xf32>, %d: memref<4x4xf32>, %i: index) {
  %z = arith.constant 0.0 : f32
  linalg.fill ins(%z : f32) outs(%c : memref<4x4xf32>)
  linalg.matmul ins(%a, %a : memref<4x4xf32>, memref<4x4xf32>) outs(%c : memref<4x4xf32>)
  linalg.fill ins(%z : f32) outs(%d : memref<4x4xf32>)
  memref.store %z, %d[%i, %i] : memref<4x4xf32>
  linalg.matmul ins(%a, %a : memref<4x4xf32>, memref<4x4xf32>) outs(%d : memref<4x4xf32>)
  return
}
